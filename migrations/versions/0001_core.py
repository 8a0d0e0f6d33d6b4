"""Core tables: imports, runs and what the text of a dump says.

Revision: 0001_core, after nothing
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

from ingest.store.schema import Compressed

revision = "0001_core"
down_revision = None
branch_labels = None
depends_on = None


def _column(
    name: str, type_: Any, comment: str, *, key: bool = False, required: bool = False
) -> sa.Column[Any]:
    nullable = not (key or required)
    return sa.Column(name, type_, primary_key=key, nullable=nullable, comment=comment, autoincrement=False)


def upgrade() -> None:
    """Create the tables."""
    op.create_table(
        "imports",
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
        _column(
            "unfinished", sa.BigInteger, "Dump sets still being written, left for the next import, count."
        ),
        comment="One row for each invocation of xbuf-ingest.",
    )
    op.create_table(
        "runs",
        _column("run_id", sa.BigInteger, "Number of the run, ascending in import order.", key=True),
        _column("import_id", sa.BigInteger, "Import that loaded it (imports.import_id).", required=True),
        _column("dump_dir", sa.String, "Absolute directory of the dump set.", required=True),
        _column(
            "stem", sa.String, "File name without the endings that tell the members apart.", required=True
        ),
        _column("module_id", sa.BigInteger, "Module number in the file name (module_0003 is 3)."),
        _column("module_name", sa.String, "HLO module name in the file name, e.g. jit_train_step."),
        _column(
            "target", sa.String, "Target in the file name: cpu, gpu, sm_9.0a_gpu, gfx90a_gpu, cl_933746096."
        ),
        _column(
            "backend", sa.String, "cpu, gpu or tpu, from the file name, else from tiled layouts in the text."
        ),
        _column("stage", sa.String, "Compilation stage in the file name, e.g. after_optimizations."),
        _column("dump_time", sa.DateTime, "Timestamp prefix of the file name, UTC; NULL without one."),
        _column(
            "content_sha256", sa.String, "SHA-256 of the primary file's text, uncompressed, hexadecimal."
        ),
        _column("file_bytes", sa.BigInteger, "Bytes of text of the set's members, uncompressed."),
        _column("ingested_at", sa.DateTime, "When the run was loaded, UTC.", required=True),
        _column(
            "format", sa.ARRAY(sa.String), "Features that the text showed, e.g. pointer, page, split_files."
        ),
        _column(
            "total_bytes", sa.BigInteger, "'Total bytes used' as printed, bytes: sum of all allocations."
        ),
        _column(
            "schedule_length", sa.BigInteger, "'max N' as printed: number of slots in the flattened schedule."
        ),
        _column(
            "printed_peak_time", sa.BigInteger, "Slot that the dump calls the peak. Wrong in 7 % of dumps."
        ),
        _column(
            "printed_peak_bytes",
            sa.BigInteger,
            "Sum of the bytes in the printed peak list: unpadded sizes, not what is allocated.",
        ),
        _column(
            "peak_time",
            sa.BigInteger,
            "First slot at which the live bytes are greatest, from ranges and sizes.",
        ),
        _column(
            "peak_bytes",
            sa.BigInteger,
            "Most bytes live at one slot over all colors, from ranges and allocated sizes. Ranges are "
            "closed (start and end slot both count: an operand and the result that reads it need memory "
            "at once); bytes that one value hands to the next at a shared slot are counted once. NULL "
            "without ranges.",
        ),
        _column("has_values", sa.Boolean, "The dump told positions and uses (Used values).", required=True),
        _column("has_ranges", sa.Boolean, "The dump told live ranges (HloLiveRange).", required=True),
        comment="One row for each compiled module's dump.",
    )
    op.create_table(
        "run_files",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", key=True),
        _column("role", sa.String, "primary, values, live_range, hlo or proto.", key=True),
        _column("file_name", sa.String, "Name of the file within runs.dump_dir.", required=True),
        _column("file_bytes", sa.BigInteger, "Size on disk when read, bytes.", required=True),
        _column(
            "mtime_ns", sa.BigInteger, "Modification time when read, nanoseconds since 1970.", required=True
        ),
        _column("content_sha256", sa.String, "SHA-256 of the file's content, uncompressed, hexadecimal."),
        comment="One row for each member file of a run; how an import knows what is unchanged.",
    )
    op.create_table(
        "run_labels",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", key=True),
        _column("key", sa.String, "Key of --label key=value.", key=True),
        _column("value", sa.String, "Value of --label key=value.", required=True),
        comment="Labels given with --label, one row for each run and key.",
    )
    op.create_table(
        "allocations",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column(
            "allocation_index", sa.BigInteger, "Number of the BufferAllocation, 0, 1, 2 ...", required=True
        ),
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
            "parameter_shape",
            sa.String,
            "Parameter shape as printed (whole up to jaxlib 0.7.0, then the part).",
        ),
        _column("output_shape", sa.String, "Shape of the entry result when this holds its top level."),
        _column("is_constant", sa.Boolean, "Holds a constant.", required=True),
        _column("is_thread_local", sa.Boolean, "Scratch of a scalar sub-computation.", required=True),
        _column(
            "maybe_live_out", sa.Boolean, "Holds something reachable from the entry result.", required=True
        ),
        _column("is_preallocated_temp", sa.Boolean, "Scratch arena of the module.", required=True),
        _column(
            "kind",
            sa.String,
            "parameter, output, parameter+output (donated), constant, thread-local or temp.",
            required=True,
        ),
        comment="One row for each BufferAllocation.",
    )
    op.create_table(
        "values",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("value_id", sa.BigInteger, "Id of the HloValue, unique within the run.", required=True),
        _column("allocation_index", sa.BigInteger, "Allocation that holds it.", required=True),
        _column("instruction", sa.String, "Name of the defining instruction.", required=True),
        _column(
            "shape_index",
            sa.String,
            "Part of the instruction's result. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        _column("is_phi", sa.Boolean, "Merges several definitions (phi).", required=True),
        _column("color", sa.BigInteger, "Memory space of the value (@N); may differ from the allocation's."),
        _column("offset_bytes", sa.BigInteger, "Start within the allocation, bytes.", required=True),
        _column("size_bytes", sa.BigInteger, "Allocated size, bytes, padding included.", required=True),
        _column("shape", Compressed, "Shape with layout, verbatim.", required=True),
        _column("dtype", sa.String, "Element type, e.g. bf16; tuple for tuples."),
        _column(
            "dimensions", sa.ARRAY(sa.BigInteger), "Dimensions (bounds of dynamic ones); NULL for tuples."
        ),
        _column("minor_to_major", sa.ARRAY(sa.BigInteger), "Layout order, most minor dimension first."),
        _column("tiling", sa.String, "Tiles as printed, e.g. T(8,128)(2,1); NULL if not tiled."),
        _column("element_bits", sa.BigInteger, "Bits of one element, from E(n) or the type."),
        _column("memory_space", sa.BigInteger, "S(n) of the layout, 0 if not printed; NULL for tuples."),
        _column(
            "logical_bytes",
            sa.BigInteger,
            "Dimensions x element bits without tiling, bytes; NULL for tuples.",
        ),
        _column("padding_bytes", sa.BigInteger, "size_bytes - logical_bytes; NULL for tuples and tokens."),
        _column("opcode", sa.String, "Opcode of the defining instruction."),
        _column("op_name", sa.String, "op_name of its metadata, unescaped."),
        _column("source_file", sa.String, "Source file: innermost frame of the user's own code."),
        _column("source_line", sa.BigInteger, "Source line of that frame, from 1."),
        _column("stack_frame_id", sa.BigInteger, "stack_frame_id of its metadata (jaxlib 0.8 and later)."),
        _column("instruction_text", Compressed(), "'from instruction' text, verbatim."),
        comment="One row for each HloValue. Sizes overlap in an arena: never sum them as memory.",
    )
    op.create_table(
        "positions",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column(
            "value_id",
            sa.BigInteger,
            "Value that this row belongs to (values.value_id within the run).",
            required=True,
        ),
        _column("position", sa.BigInteger, "Order as printed; 0 is the defining position.", required=True),
        _column("instruction", sa.String, "Instruction whose result holds the value.", required=True),
        _column(
            "shape_index",
            sa.String,
            "Part of that result. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        comment="One row for each place where a value appears.",
    )
    op.create_table(
        "uses",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column(
            "value_id",
            sa.BigInteger,
            "Value that this row belongs to (values.value_id within the run).",
            required=True,
        ),
        _column("position", sa.BigInteger, "Order as printed, from 0.", required=True),
        _column("instruction", sa.String, "Instruction that uses the value.", required=True),
        _column("operand_number", sa.BigInteger, "Operand of that instruction, from 0.", required=True),
        _column(
            "operand_index",
            sa.String,
            "Part of the operand. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        comment="One row for each use of a value.",
    )
    op.create_table(
        "ranges",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column(
            "value_id",
            sa.BigInteger,
            "Value that this row belongs to (values.value_id within the run). NULL where the dump lists "
            "no such value.",
        ),
        _column("instruction", sa.String, "Defining instruction as printed.", required=True),
        _column("shape_index", sa.String, "ShapeIndex as XLA prints it; {} is the top level.", required=True),
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
            "Bytes of this value that, at end_time, other live values already own (aliases, in-place "
            "updates). Live bytes at a slot = sum(size_bytes) of live values - sum(handover_bytes) of "
            "those that end there. NULL without a value.",
        ),
        _column(
            "printed_at_peak", sa.Boolean, "The dump lists it at its printed peak; NULL without a peak list."
        ),
        _column("printed_peak_bytes", sa.BigInteger, "Bytes that the peak list prints for it: unpadded."),
        comment="One row for each live range.",
    )
    op.create_table(
        "schedule",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("time", sa.BigInteger, "Slot, 0, 1, 2 ...", required=True),
        _column("instruction", sa.String, "Instruction that runs in the slot.", required=True),
        comment="One row for each slot of the flattened schedule.",
    )
    op.create_table(
        "peak_breakdown",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
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
    op.create_table(
        "color_reuse",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("allocation_index", sa.BigInteger, "Allocation that is reused.", required=True),
        _column("value_id", sa.BigInteger, "Value of another color placed in it.", required=True),
        _column("color", sa.BigInteger, "Color of that value as printed.", required=True),
        comment="One row for each 'reused by buffers of a different color' line.",
    )
    op.create_table(
        "notices",
        _column("run_id", sa.BigInteger, "Run that this row belongs to (runs.run_id).", required=True),
        _column("file", sa.String, "File that it was seen in."),
        _column("line", sa.BigInteger, "Line in that file, from 1; NULL where it concerns the whole."),
        _column("kind", sa.String, "What was odd, one word.", required=True),
        _column("message", sa.String, "What was odd, a sentence.", required=True),
        _column("text", sa.String, "The text concerned, verbatim; cut after 2,000 characters."),
        comment="Odd but legal things in loaded dumps.",
    )
    op.create_table(
        "rejects",
        _column("import_id", sa.BigInteger, "Import that rejected it (imports.import_id).", required=True),
        _column("file", sa.String, "File at fault.", required=True),
        _column("line", sa.BigInteger, "Line in that file, from 1."),
        _column("byte_offset", sa.BigInteger, "Where that line starts in the file's text, bytes from 0."),
        _column(
            "section", sa.String, "Section of the dump: allocations, values, sequence, ranges, peak, tree."
        ),
        _column("kind", sa.String, "Which rule failed, one word.", required=True),
        _column("message", sa.String, "What failed and what to do, a sentence.", required=True),
        _column("text", sa.String, "The text concerned, verbatim; cut after 2,000 characters."),
        comment="One row for each dump that was not loaded.",
    )
    op.create_table(
        "saved_queries",
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
    op.execute(
        "COMMENT ON TABLE alembic_version IS 'Schema revision of this database; xbuf db upgrade moves it.'"
    )
    op.execute("COMMENT ON COLUMN alembic_version.version_num IS 'Name of the revision, e.g. 0001_core.'")


def downgrade() -> None:
    """Drop the tables."""
    for name in (
        "saved_queries",
        "rejects",
        "notices",
        "color_reuse",
        "peak_breakdown",
        "schedule",
        "ranges",
        "uses",
        "positions",
        "values",
        "allocations",
        "run_labels",
        "run_files",
        "runs",
        "imports",
    ):
        op.drop_table(name)
