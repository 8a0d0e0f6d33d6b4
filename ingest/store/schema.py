"""The relational schema: the one source of truth for tables, columns and their comments.

Alembic migrations in `migrations/` create exactly this; a test compares the two. Names are an
API: users type them in a DuckDB shell.

Choices that hold everywhere:

* Sizes, offsets and counts are BIGINT bytes; a text that does not tell a fact leaves NULL, never 0.
* `shape_index` columns hold a ShapeIndex as XLA prints it (`{1,0}`); the top level is `{}` also where
  the dump leaves it out, so that the columns join across tables.
* Primary keys stand on the small tables only. On the bulk tables a key costs 20-35 % of the load and
  13 % of the file, rows are appended in run order (zone maps serve `run_id` filters), and the importer
  proves uniqueness before it loads. There are no foreign keys: DuckDB cannot delete parent and child in
  one transaction, so a run could not be replaced atomically.
"""

from __future__ import annotations

from typing import TypeVar

import sqlalchemy as sa

_T = TypeVar("_T")

metadata = sa.MetaData()


class Compressed(sa.types.UserDefinedType[str]):
    """VARCHAR stored with ZSTD.

    DuckDB leaves long, distinct strings uncompressed: 141 MB against 9.7 MB for the instruction
    texts of 7,551 dumps, at the same load and scan speed.
    """

    cache_ok = True

    def get_col_spec(self, **_: object) -> str:
        return "VARCHAR USING COMPRESSION zstd"

    def compare_against_backend(self, dialect: sa.Dialect, conn_type: sa.types.TypeEngine[object]) -> bool:
        """Tell Alembic that the VARCHAR which DuckDB reports is this type; it shows no compression."""
        return isinstance(conn_type, sa.String)


def _column(
    name: str,
    type_: sa.types.TypeEngine[_T] | type[sa.types.TypeEngine[_T]],
    comment: str,
    *,
    key: bool = False,
    required: bool = False,
) -> sa.Column[_T]:
    """Build a column; `required` means NOT NULL, `key` means part of the primary key."""
    return sa.Column(
        name, type_, primary_key=key, nullable=not (required or key), comment=comment, autoincrement=False
    )


_RUN = "Run that this row belongs to (runs.run_id)."
_VALUE = "Value that this row belongs to (values.value_id within the run)."
_INDEX = "ShapeIndex as XLA prints it; {} is the top level."

imports = sa.Table(
    "imports",
    metadata,
    _column("import_id", sa.BigInteger, "Number of the import, ascending in time.", key=True),
    _column("started_at", sa.DateTime, "When the import started, UTC.", required=True),
    _column("finished_at", sa.DateTime, "When it ended, UTC; NULL while it runs or when it was killed."),
    _column(
        "status",
        sa.String,
        "running, ok, rejects (some dumps were rejected), interrupted (Ctrl-C or killed) or failed.",
        required=True,
    ),
    _column("tool_version", sa.String, "Version of xbuf that ran.", required=True),
    _column("host", sa.String, "Host name of the machine that ran the import."),
    _column("sources", sa.ARRAY(sa.String), "Directories and files given on the command line."),
    _column("found", sa.BigInteger, "Dump sets found, count."),
    _column("loaded", sa.BigInteger, "Dump sets loaded as new runs or completed in place, count."),
    _column("unchanged", sa.BigInteger, "Dump sets that the database already held, count."),
    _column("rejected", sa.BigInteger, "Dump sets rejected, count; see rejects."),
    _column("unfinished", sa.BigInteger, "Dump sets still being written, left for the next import, count."),
    comment="One row for each invocation of xbuf-ingest.",
)

runs = sa.Table(
    "runs",
    metadata,
    _column("run_id", sa.BigInteger, "Number of the run, ascending in import order.", key=True),
    _column("import_id", sa.BigInteger, "Import that loaded it (imports.import_id).", required=True),
    _column("dump_dir", sa.String, "Absolute directory of the dump set.", required=True),
    _column("stem", sa.String, "File name without the endings that tell the members apart.", required=True),
    _column("module_id", sa.BigInteger, "Module number in the file name (module_0003 is 3)."),
    _column("module_name", sa.String, "HLO module name in the file name, e.g. jit_train_step."),
    _column("target", sa.String, "Target in the file name: cpu, gpu, sm_9.0a_gpu, gfx90a_gpu, cl_933746096."),
    _column(
        "backend", sa.String, "cpu, gpu or tpu, from the file name, else from tiled layouts in the text."
    ),
    _column("stage", sa.String, "Compilation stage in the file name, e.g. after_optimizations."),
    _column("dump_time", sa.DateTime, "Timestamp prefix of the file name, UTC; NULL without one."),
    _column("content_sha256", sa.String, "SHA-256 of the primary file's text, uncompressed, hexadecimal."),
    _column("file_bytes", sa.BigInteger, "Bytes of text of the set's members, uncompressed."),
    _column("ingested_at", sa.DateTime, "When the run was loaded, UTC.", required=True),
    _column("format", sa.ARRAY(sa.String), "Features that the text showed, e.g. pointer, page, split_files."),
    _column("total_bytes", sa.BigInteger, "'Total bytes used' as printed, bytes: sum of all allocations."),
    _column(
        "schedule_length", sa.BigInteger, "'max N' as printed: number of slots in the flattened schedule."
    ),
    _column("printed_peak_time", sa.BigInteger, "Slot that the dump calls the peak. Wrong in 7 % of dumps."),
    _column(
        "printed_peak_bytes",
        sa.BigInteger,
        "Sum of the bytes in the printed peak list: unpadded sizes, not what is allocated.",
    ),
    _column(
        "peak_time", sa.BigInteger, "First slot at which the live bytes are greatest, from ranges and sizes."
    ),
    _column(
        "peak_bytes",
        sa.BigInteger,
        "Most bytes live at one slot over all colors, from ranges and allocated sizes. Ranges are closed "
        "(start and end slot both count: an operand and the result that reads it need memory at once); bytes "
        "that one value hands to the next at a shared slot are counted once. NULL without ranges.",
    ),
    _column("has_values", sa.Boolean, "The dump told positions and uses (Used values).", required=True),
    _column("has_ranges", sa.Boolean, "The dump told live ranges (HloLiveRange).", required=True),
    comment="One row for each compiled module's dump.",
)

run_files = sa.Table(
    "run_files",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, key=True),
    _column("role", sa.String, "primary, values, live_range, hlo or proto.", key=True),
    _column("file_name", sa.String, "Name of the file within runs.dump_dir.", required=True),
    _column("file_bytes", sa.BigInteger, "Size on disk when read, bytes.", required=True),
    _column("mtime_ns", sa.BigInteger, "Modification time when read, nanoseconds since 1970.", required=True),
    _column("content_sha256", sa.String, "SHA-256 of the file's content, uncompressed, hexadecimal."),
    comment="One row for each member file of a run; how an import knows what is unchanged.",
)

run_labels = sa.Table(
    "run_labels",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, key=True),
    _column("key", sa.String, "Key of --label key=value.", key=True),
    _column("value", sa.String, "Value of --label key=value.", required=True),
    comment="Labels given with --label, one row for each run and key.",
)

allocations = sa.Table(
    "allocations",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("allocation_index", sa.BigInteger, "Number of the BufferAllocation, 0, 1, 2 ...", required=True),
    _column("size_bytes", sa.BigInteger, "Size, bytes.", required=True),
    _column(
        "color",
        sa.BigInteger,
        "Memory space; 0 is the default (HBM on TPU and GPU, host on CPU).",
        required=True,
    ),
    _column("page", sa.BigInteger, "Page number as printed by jaxlib 0.11.1 and later."),
    _column("parameter_number", sa.BigInteger, "Entry parameter held, 0-based; NULL for none."),
    _column("parameter_shape_index", sa.String, "Which part of the parameter; {} is the whole."),
    _column(
        "parameter_shape", sa.String, "Parameter shape as printed (whole up to jaxlib 0.7.0, then the part)."
    ),
    _column("output_shape", sa.String, "Shape of the entry result when this holds its top level."),
    _column("is_constant", sa.Boolean, "Holds a constant.", required=True),
    _column("is_thread_local", sa.Boolean, "Scratch of a scalar sub-computation.", required=True),
    _column("maybe_live_out", sa.Boolean, "Holds something reachable from the entry result.", required=True),
    _column("is_preallocated_temp", sa.Boolean, "Scratch arena of the module.", required=True),
    _column(
        "kind",
        sa.String,
        "parameter, output, parameter+output (donated), constant, thread-local or temp.",
        required=True,
    ),
    _column("is_tuple", sa.Boolean, "Holds a tuple table; NULL without protobuf."),
    _column(
        "is_aliased_with_output",
        sa.Boolean,
        "The protobuf's is_parameter_aliased_with_output; NULL where it is not told.",
    ),
    comment="One row for each BufferAllocation.",
)

values = sa.Table(
    "values",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("value_id", sa.BigInteger, "Id of the HloValue, unique within the run.", required=True),
    _column("allocation_index", sa.BigInteger, "Allocation that holds it.", required=True),
    _column("instruction", sa.String, "Name of the defining instruction.", required=True),
    _column("shape_index", sa.String, "Part of the instruction's result. " + _INDEX, required=True),
    _column("is_phi", sa.Boolean, "Merges several definitions (phi).", required=True),
    _column("color", sa.BigInteger, "Memory space of the value (@N); may differ from the allocation's."),
    _column("offset_bytes", sa.BigInteger, "Start within the allocation, bytes.", required=True),
    _column("size_bytes", sa.BigInteger, "Allocated size, bytes, padding included.", required=True),
    _column("shape", Compressed, "Shape with layout, verbatim.", required=True),
    _column("dtype", sa.String, "Element type, e.g. bf16; tuple for tuples."),
    _column("dimensions", sa.ARRAY(sa.BigInteger), "Dimensions (bounds of dynamic ones); NULL for tuples."),
    _column("minor_to_major", sa.ARRAY(sa.BigInteger), "Layout order, most minor dimension first."),
    _column("tiling", sa.String, "Tiles as printed, e.g. T(8,128)(2,1); NULL if not tiled."),
    _column("element_bits", sa.BigInteger, "Bits of one element, from E(n) or the type."),
    _column("memory_space", sa.BigInteger, "S(n) of the layout, 0 if not printed; NULL for tuples."),
    _column(
        "logical_bytes", sa.BigInteger, "Dimensions x element bits without tiling, bytes; NULL for tuples."
    ),
    _column("padding_bytes", sa.BigInteger, "size_bytes - logical_bytes; NULL for tuples and tokens."),
    _column("opcode", sa.String, "Opcode of the defining instruction."),
    _column("op_name", sa.String, "op_name of its metadata, unescaped."),
    _column("source_file", sa.String, "Source file: innermost frame of the user's own code."),
    _column("source_line", sa.BigInteger, "Source line of that frame, from 1."),
    _column("stack_frame_id", sa.BigInteger, "stack_frame_id of its metadata (jaxlib 0.8 and later)."),
    _column("instruction_text", Compressed, "'from instruction' text, verbatim."),
    _column(
        "source_via",
        sa.String,
        "How the source line was found: own (the instruction's metadata), fused, operand, user or caller "
        "(inherited from a near instruction of the HLO module).",
    ),
    _column("source_frame_id", sa.BigInteger, "Frame of the source line (source_frames.frame_id)."),
    comment="One row for each HloValue. Sizes overlap in an arena: never sum them as memory.",
)

positions = sa.Table(
    "positions",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("value_id", sa.BigInteger, _VALUE, required=True),
    _column("position", sa.BigInteger, "Order as printed; 0 is the defining position.", required=True),
    _column("instruction", sa.String, "Instruction whose result holds the value.", required=True),
    _column("shape_index", sa.String, "Part of that result. " + _INDEX, required=True),
    comment="One row for each place where a value appears.",
)

uses = sa.Table(
    "uses",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("value_id", sa.BigInteger, _VALUE, required=True),
    _column("position", sa.BigInteger, "Order as printed, from 0.", required=True),
    _column("instruction", sa.String, "Instruction that uses the value.", required=True),
    _column("operand_number", sa.BigInteger, "Operand of that instruction, from 0.", required=True),
    _column("operand_index", sa.String, "Part of the operand. " + _INDEX, required=True),
    comment="One row for each use of a value.",
)

ranges = sa.Table(
    "ranges",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("value_id", sa.BigInteger, _VALUE + " NULL where the dump lists no such value."),
    _column("instruction", sa.String, "Defining instruction as printed.", required=True),
    _column("shape_index", sa.String, _INDEX, required=True),
    _column("start_time", sa.BigInteger, "First slot at which the value is live.", required=True),
    _column(
        "end_time",
        sa.BigInteger,
        "Last slot at which it is live (closed); may be schedule_length.",
        required=True,
    ),
    _column(
        "handover_bytes",
        sa.BigInteger,
        "Bytes of this value that, at end_time, other live values already own (aliases, in-place updates). "
        "Live bytes at a slot = sum(size_bytes) of live values - sum(handover_bytes) of those that end "
        "there. NULL without a value.",
    ),
    _column(
        "printed_at_peak", sa.Boolean, "The dump lists it at its printed peak; NULL without a peak list."
    ),
    _column("printed_peak_bytes", sa.BigInteger, "Bytes that the peak list prints for it: unpadded."),
    comment="One row for each live range.",
)

schedule = sa.Table(
    "schedule",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("time", sa.BigInteger, "Slot, 0, 1, 2 ...", required=True),
    _column("instruction", sa.String, "Instruction that runs in the slot.", required=True),
    comment="One row for each slot of the flattened schedule.",
)

peak_breakdown = sa.Table(
    "peak_breakdown",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("position", sa.BigInteger, "Order as printed, from 0.", required=True),
    _column("parent", sa.BigInteger, "position of the parent node; NULL for a root."),
    _column("depth", sa.BigInteger, "0 for a root.", required=True),
    _column("label", sa.String, "Label as printed; op_name text may hold line breaks.", required=True),
    _column("percent", sa.Double, "Share of the printed peak, per cent as printed."),
    _column("total_bytes", sa.BigInteger, "Bytes of the subtree as printed, unpadded.", required=True),
    _column("current_bytes", sa.BigInteger, "Bytes of the node itself as printed, unpadded."),
    _column("remaining_bytes", sa.BigInteger, "Printed peak minus own bytes so far, in print order."),
    comment="One row for each node of the printed stack-trace tree of the peak.",
)

color_reuse = sa.Table(
    "color_reuse",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("allocation_index", sa.BigInteger, "Allocation that is reused.", required=True),
    _column("value_id", sa.BigInteger, "Value of another color placed in it.", required=True),
    _column("color", sa.BigInteger, "Color of that value as printed.", required=True),
    comment="One row for each 'reused by buffers of a different color' line.",
)

notices = sa.Table(
    "notices",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("file", sa.String, "File that it was seen in."),
    _column("line", sa.BigInteger, "Line in that file, from 1; NULL where it concerns the whole."),
    _column("kind", sa.String, "What was odd, one word.", required=True),
    _column("message", sa.String, "What was odd, a sentence.", required=True),
    _column("text", sa.String, "The text concerned, verbatim; cut after 2,000 characters."),
    comment="Odd but legal things in loaded dumps.",
)

rejects = sa.Table(
    "rejects",
    metadata,
    _column("import_id", sa.BigInteger, "Import that rejected it (imports.import_id).", required=True),
    _column("file", sa.String, "File at fault.", required=True),
    _column("line", sa.BigInteger, "Line in that file, from 1."),
    _column("byte_offset", sa.BigInteger, "Where that line starts in the file's text, bytes from 0."),
    _column("section", sa.String, "Section of the dump: allocations, values, sequence, ranges, peak, tree."),
    _column("kind", sa.String, "Which rule failed, one word.", required=True),
    _column("message", sa.String, "What failed and what to do, a sentence.", required=True),
    _column("text", sa.String, "The text concerned, verbatim; cut after 2,000 characters."),
    comment="One row for each dump that was not loaded.",
)

saved_queries = sa.Table(
    "saved_queries",
    metadata,
    _column("name", sa.String, "Name of the query; FROM name() runs it.", key=True),
    _column("title", sa.String, "Title, a few words.", required=True),
    _column("question", sa.String, "Question that it answers, a sentence.", required=True),
    _column("parameters", sa.String, "Parameters with type and default, as in the call.", required=True),
    _column("example", sa.String, "A call to paste into a DuckDB shell.", required=True),
    _column("tool_version", sa.String, "Version of xbuf that installed it.", required=True),
    _column(
        "sha256", sa.String, "SHA-256 of what was installed; tells when to install again.", required=True
    ),
    comment="One row for each saved query installed as a table macro: FROM saved_queries.",
)

hlo_modules = sa.Table(
    "hlo_modules",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("name", sa.String, "Name of the HLO module."),
    _column("is_scheduled", sa.Boolean, "The module has a schedule.", required=True),
    _column("num_partitions", sa.BigInteger, "num_partitions; 1 where it is not printed."),
    _column("replica_count", sa.BigInteger, "replica_count; 1 where it is not printed."),
    _column(
        "entry_computation_layout", Compressed, "Layouts of the entry's parameters and result, verbatim."
    ),
    comment="One row for each run whose HLO text or protobuf was read: what the module's head tells.",
)

source_frames = sa.Table(
    "source_frames",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column(
        "frame_id", sa.BigInteger, "Number of the frame; values.stack_frame_id refers to it.", required=True
    ),
    _column("parent_frame_id", sa.BigInteger, "Frame that called it; NULL for the outermost."),
    _column("function", sa.String, "Name of the function."),
    _column("file", sa.String, "Source file."),
    _column("line", sa.BigInteger, "First line, from 1."),
    _column("end_line", sa.BigInteger, "Last line, from 1."),
    _column("column", sa.BigInteger, "First column."),
    _column("end_column", sa.BigInteger, "Last column."),
    _column("is_framework", sa.Boolean, "The file lies in a framework's own folders.", required=True),
    comment="One row for each Python stack frame that the HLO module names (jaxlib 0.8 and later).",
)

instructions = sa.Table(
    "instructions",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("position", sa.BigInteger, "Order in the module, from 0.", required=True),
    _column("computation", sa.String, "Computation that holds it.", required=True),
    _column("instruction", sa.String, "Name, unique within the run.", required=True),
    _column("opcode", sa.String, "Opcode.", required=True),
    _column("shape", Compressed, "Shape with layout, verbatim.", required=True),
    _column("operands", sa.ARRAY(sa.String), "Names of the operands, in order."),
    _column("op_name", sa.String, "op_name of its metadata."),
    _column("stack_frame_id", sa.BigInteger, "Frame of its metadata (source_frames.frame_id)."),
    _column("called_computations", sa.ARRAY(sa.String), "Computations that it calls, in order."),
    _column("is_root", sa.Boolean, "Root of its computation.", required=True),
    _column("source_file", sa.String, "Source file: innermost frame of the user's own code."),
    _column("source_line", sa.BigInteger, "Source line of that frame, from 1."),
    _column("source_via", sa.String, "How the source line was found; see values.source_via."),
    comment="One row for each HLO instruction of the module, fused ones too; from HLO text or protobuf.",
)

aliases = sa.Table(
    "aliases",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("output_index", sa.String, "Part of the entry result. " + _INDEX, required=True),
    _column(
        "parameter_number", sa.BigInteger, "Entry parameter that shares its buffer, from 0.", required=True
    ),
    _column("parameter_index", sa.String, "Part of that parameter. " + _INDEX, required=True),
    _column(
        "kind", sa.String, "may (the runtime decides) or must (the compiler relies on it).", required=True
    ),
    comment="One row for each entry of the module's input_output_alias: a donation.",
)

heap_events = sa.Table(
    "heap_events",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("allocation_index", sa.BigInteger, "Arena that the trace is of; NULL where it is not told."),
    _column("position", sa.BigInteger, "Order within the run, from 0.", required=True),
    _column("kind", sa.String, "alloc, free or share.", required=True),
    _column("value_id", sa.BigInteger, "Value concerned.", required=True),
    _column("share_with_value_id", sa.BigInteger, "Value whose memory it shares; NULL otherwise."),
    _column("computation", sa.String, "Computation of the instruction at which it happens."),
    _column("instruction", sa.String, "Instruction at which it happens."),
    comment="One row for each event of the protobuf's heap simulator traces.",
)

peak_buffers = sa.Table(
    "peak_buffers",
    metadata,
    _column("run_id", sa.BigInteger, _RUN, required=True),
    _column("allocation_index", sa.BigInteger, "Allocation.", required=True),
    _column(
        "value_id", sa.BigInteger, "Value that the compiler counts at that allocation's peak.", required=True
    ),
    comment="One row for each value of the protobuf's peak buffers (jaxlib 0.10.2 and later).",
)
