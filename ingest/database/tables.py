"""The tables and their columns: the one place where these are written down.

From this data follow the statements that make a new database (`ingest.database.ddl`), what Alembic compares
and generates revisions from (`ingest.database.metadata`), the types of staged rows, the tables that an import
fills and forgets, and `docs/tables.md`. Names are an API: users type them in a DuckDB shell.

Choices that hold everywhere:

* Sizes, offsets and counts are BIGINT bytes; what a text does not say is NULL, never 0.
* `shape_index` columns hold a ShapeIndex as XLA prints it (`{1,0}`); the top level is `{}` also where
  the dump leaves it out, so that the columns join across tables.
* Primary keys stand on the small tables only. On the bulk tables a key costs 20-35 % of the load and
  13 % of the file, rows are appended in run order (zone maps serve `run_id` filters), and the importer
  proves uniqueness before it loads. There are no foreign keys: DuckDB cannot delete parent and child in
  one transaction, so a run could not be replaced atomically.
"""

from __future__ import annotations

from typing import Final

from ingest.database.schema import Column, Origin, Rows, Table

TABLES: Final[dict[str, Table]] = {}
"""Every table by name, in the order in which a new database gets them."""


def _table(name: str, comment: str, rows: Rows, *columns: Column) -> None:
    TABLES[name] = Table(name, comment, rows, columns)


_RUN: Final = Column(
    "run_id", "BIGINT", "Run that this row belongs to (runs.run_id).", required=True, origin="load"
)
_RUN_KEY: Final = Column(
    "run_id", "BIGINT", "Run that this row belongs to (runs.run_id).", key=True, origin="load"
)
_VALUE: Final = "Value that this row belongs to (values.value_id within the run)."
_INDEX: Final = "ShapeIndex as XLA prints it; {} is the top level."

_table(
    "imports",
    "One row for each invocation of xbuf-ingest.",
    "import",
    Column("import_id", "BIGINT", "Number of the import, ascending in time.", key=True),
    Column("started_at", "TIMESTAMP", "When the import started, UTC.", required=True),
    Column("finished_at", "TIMESTAMP", "When it ended, UTC; NULL while it runs or when it was killed."),
    Column(
        "status",
        "VARCHAR",
        "running, ok, rejects (some dumps were rejected), interrupted (Ctrl-C or killed) or failed.",
        required=True,
    ),
    Column("tool_version", "VARCHAR", "Version of xbuf that ran.", required=True),
    Column("host", "VARCHAR", "Host name of the machine that ran the import."),
    Column("sources", "VARCHAR[]", "Directories and files given on the command line."),
    Column("found", "BIGINT", "Dump sets found, and files and directories that could not be read, count."),
    Column("loaded", "BIGINT", "Dump sets loaded as new runs or completed in place, count."),
    Column("unchanged", "BIGINT", "Dump sets that the database already held, count."),
    Column("rejected", "BIGINT", "Dump sets rejected, count; see rejects."),
    Column("unfinished", "BIGINT", "Dump sets still being written, left for the next import, count."),
    Column("import_uuid", "VARCHAR", "Random name of the import, by which an export's is known again."),
)
_table(
    "runs",
    "One row for each compiled module's dump.",
    "set",
    Column("run_id", "BIGINT", "Number of the run, ascending in import order.", key=True, origin="load"),
    Column("import_id", "BIGINT", "Import that loaded it (imports.import_id).", required=True, origin="load"),
    Column("dump_dir", "VARCHAR", "Absolute directory of the dump set.", required=True),
    Column("stem", "VARCHAR", "File name without the endings that distinguish the members.", required=True),
    Column("module_id", "BIGINT", "Module number in the file name (module_0003 is 3)."),
    Column("module_name", "VARCHAR", "HLO module name in the file name, e.g. jit_train_step."),
    Column("target", "VARCHAR", "Target in the file name: cpu, gpu, sm_9.0a_gpu, gfx90a_gpu, cl_933746096."),
    Column("backend", "VARCHAR", "cpu, gpu or tpu, from the file name, else from tiled layouts in the text."),
    Column("stage", "VARCHAR", "Compilation stage in the file name, e.g. after_optimizations."),
    Column(
        "dump_time",
        "TIMESTAMP",
        "Timestamp prefix of the file name, or when the profile started; UTC, NULL without one.",
    ),
    Column("content_sha256", "VARCHAR", "SHA-256 of the primary file's text, uncompressed, hexadecimal."),
    Column("file_bytes", "BIGINT", "Bytes of text of the set's members, uncompressed."),
    Column("ingested_at", "TIMESTAMP", "When the run was loaded, UTC.", required=True, origin="load"),
    Column("format", "VARCHAR[]", "Features that the text showed, e.g. pointer, page, split_files."),
    Column(
        "total_bytes", "BIGINT", "Sum of all allocations, bytes; 'Total bytes used' where format has total."
    ),
    Column("schedule_length", "BIGINT", "'max N' as printed: number of slots in the flattened schedule."),
    Column("printed_peak_time", "BIGINT", "Slot that the dump calls the peak. Wrong in 7 % of dumps."),
    Column(
        "printed_peak_bytes",
        "BIGINT",
        "Sum of the bytes in the printed peak list: unpadded sizes, not what is allocated.",
    ),
    Column("peak_time", "BIGINT", "First slot at which the live bytes are greatest, from ranges and sizes."),
    Column(
        "peak_bytes",
        "BIGINT",
        "Most bytes live at one slot over all colors, from ranges and allocated sizes. Ranges are "
        "closed (start and end slot both count: an operand and the result that reads it need memory "
        "at once); bytes that several values hold count once. NULL without ranges.",
    ),
    Column("has_values", "BOOLEAN", "Positions and uses are known; see uses_from.", required=True),
    Column("has_ranges", "BOOLEAN", "Live ranges are known; see ranges_from.", required=True),
    Column(
        "resident_peak_bytes",
        "BIGINT",
        "XProf's peak heap: in color 0, all allocations but temporary arenas and thread-local scratch, "
        "and the most bytes live at one slot in the arenas, without pointer tables of tuples. NULL where "
        "there are arenas and it is not known what is live in them.",
    ),
    Column(
        "uses_from",
        "VARCHAR",
        "Where positions and uses come from: dump (Used values), hlo (derived from the HLO module), "
        "approximate (derived from an HLO text that leaves instructions out); NULL where they are not known.",
    ),
    Column(
        "ranges_from",
        "VARCHAR",
        "Where schedule and live ranges come from: dump (HloLiveRange), hlo (derived from the HLO module and "
        "its schedule), approximate (derived from an HLO text that leaves instructions out, so slots have "
        "other numbers); NULL where they are not known.",
    ),
    Column("profile_host", "VARCHAR", "Machine whose profile the run was found in; NULL for dumps."),
    Column("device_type", "VARCHAR", "Device that was profiled, as the profiler names it; NULL for dumps."),
    Column(
        "parameters_digest",
        "BIGINT",
        "Stands for the shapes of the entry parameters, in order and without layouts: equal where a function "
        "was called alike. First 64 bits of a SHA-256; NULL without parameters.",
    ),
    Column(
        "dump_digest",
        "BIGINT",
        "Stands for the program as the dump alone prints it, without ids, numbers in names and names of "
        "parameters: values with their live ranges and uses, and allocations. NULL where "
        "hlo_modules.program_sha256 says more.",
    ),
)
_table(
    "run_files",
    "One row for each member file of a run; how an import knows what is unchanged.",
    "set",
    _RUN_KEY,
    Column("role", "VARCHAR", "primary, values, live_range, hlo or proto.", key=True),
    Column("file_name", "VARCHAR", "Name of the file within runs.dump_dir.", required=True),
    Column("file_bytes", "BIGINT", "Size on disk when read, bytes.", required=True),
    Column("mtime_ns", "BIGINT", "Modification time when read, nanoseconds since 1970.", required=True),
    Column(
        "etag",
        "VARCHAR",
        "Version of the file as the store or archive that holds it names it; NULL for files in folders.",
    ),
    Column("content_sha256", "VARCHAR", "SHA-256 of the file's content, uncompressed, hexadecimal."),
)
_table(
    "run_labels",
    "Labels given with --label, one row for each run and key.",
    "import",
    _RUN_KEY,
    Column("key", "VARCHAR", "Key of --label key=value.", key=True),
    Column("value", "VARCHAR", "Value of --label key=value.", required=True),
)
_table(
    "allocations",
    "One row for each BufferAllocation.",
    "dump",
    _RUN,
    Column("allocation_index", "BIGINT", "Number of the BufferAllocation, 0, 1, 2 ...", required=True),
    Column("size_bytes", "BIGINT", "Size, bytes.", required=True),
    Column(
        "color", "BIGINT", "Memory space; 0 is the default (HBM on TPU and GPU, host on CPU).", required=True
    ),
    Column("page", "BIGINT", "Page number as printed by jaxlib 0.11.1 and later."),
    Column("parameter_number", "BIGINT", "Entry parameter held, 0-based; NULL for none."),
    Column("parameter_shape_index", "VARCHAR", "Which part of the parameter; {} is the whole."),
    Column(
        "parameter_shape",
        "VARCHAR",
        "Parameter shape as printed (whole up to jaxlib 0.7.0, then the part).",
        long=True,
    ),
    Column("output_shape", "VARCHAR", "Shape of the entry result when this holds its top level.", long=True),
    Column("is_constant", "BOOLEAN", "Holds a constant.", required=True),
    Column("is_thread_local", "BOOLEAN", "Scratch of a scalar sub-computation.", required=True),
    Column("maybe_live_out", "BOOLEAN", "Holds something reachable from the entry result.", required=True),
    Column("is_preallocated_temp", "BOOLEAN", "Scratch arena of the module.", required=True),
    Column(
        "kind",
        "VARCHAR",
        "parameter, output, parameter+output (donated), constant, thread-local or temp.",
        required=True,
    ),
    Column("is_tuple", "BOOLEAN", "Holds a tuple table; NULL without protobuf."),
    Column(
        "is_aliased_with_output",
        "BOOLEAN",
        "The protobuf's is_parameter_aliased_with_output: the module declares the parameter as donated. "
        "NULL without protobuf, and where nothing in it shows a release that writes this (jaxlib 0.7 or "
        "later).",
    ),
    Column("placed_values", "BIGINT", "Values placed in it over the whole run, count.", required=True),
    Column(
        "placed_bytes",
        "BIGINT",
        "Sum of the sizes of all values placed in it, bytes: shows reuse, is not memory.",
        required=True,
    ),
    Column("live_peak_time", "BIGINT", "First slot with the most bytes live in it; NULL without ranges."),
    Column("live_peak_bytes", "BIGINT", "Bytes live in it at that slot, each byte once (closed ranges)."),
    Column(
        "released_peak_bytes",
        "BIGINT",
        "Most bytes live in it at one slot if a value lets go at the slot of its last use (half-open "
        "ranges). What the allocation needs lies between this and live_peak_bytes.",
    ),
    Column(
        "parameter_value_id",
        "BIGINT",
        "Value that the parameter is: the first one that a parameter instruction defines, else the first; "
        "NULL without parameter_number.",
    ),
    Column(
        "live_out_value_id",
        "BIGINT",
        "Value that leaves the program in it: the one that lives longest, of these the largest; where live "
        "ranges are not known, the one that the HLO module has in the entry result. NULL without "
        "maybe_live_out.",
    ),
    Column(
        "donation",
        "VARCHAR",
        "What became of its parameter's memory: honoured (it also leaves the program), unused (it does not, "
        "though declared), missed (not declared, and fitting_value_id would fit) or no fit; NULL without "
        "parameter_number and where the parameter is no array.",
    ),
    Column(
        "declared_donation",
        "VARCHAR",
        "may or must, as the module's input_output_alias declares its parameter; donor for its buffer_donor; "
        "NULL where donation is, for none, and without HLO.",
    ),
    Column(
        "fitting_value_id",
        "BIGINT",
        "Value that leaves the program in an allocation of its own and could have had this memory: of equal "
        "element type, dimensions, size and color. Each fits one parameter, declared ones first.",
    ),
    Column(
        "other_color_values",
        "BIGINT",
        "Values placed in it whose color (values.color) is not that of the allocation, count.",
        required=True,
    ),
)
_table(
    "color_peaks",
    "One row for each memory space of a run in which something with a live range has a size.",
    "dump",
    _RUN,
    Column("color", "BIGINT", "Memory space of the allocations.", required=True),
    Column("peak_time", "BIGINT", "First slot with the most bytes live in it.", required=True),
    Column("peak_bytes", "BIGINT", "Bytes live in it at that slot, each byte once.", required=True),
)
_table(
    "shared_addresses",
    "One row for each address (allocation and offset) at which two or more values that have a size lie.",
    "dump",
    _RUN,
    Column("allocation_index", "BIGINT", "Allocation that holds them.", required=True),
    Column("offset_bytes", "BIGINT", "Start within the allocation, bytes.", required=True),
    Column("placed_values", "BIGINT", "Values there over the whole run, count.", required=True),
    Column("slot_bytes", "BIGINT", "Size of the largest, bytes.", required=True),
    Column("placed_bytes", "BIGINT", "Sum of their sizes, bytes: shows reuse, is not memory.", required=True),
    Column(
        "turns",
        "BIGINT",
        "Values that take turns there, count: those whose bytes another one takes over in place are one "
        "turn, and so is the state of a loop, although its bytes are free for other values between its last "
        "use in the body and its update there. NULL without ranges.",
    ),
    Column("turn_bytes", "BIGINT", "Sum of the sizes of the turns, bytes; NULL without ranges."),
)
_table(
    "values",
    "One row for each HloValue. Sizes overlap in an arena: never sum them as memory.",
    "dump",
    _RUN,
    Column("value_id", "BIGINT", "Id of the HloValue, unique within the run.", required=True),
    Column("allocation_index", "BIGINT", "Allocation that holds it.", required=True),
    Column("instruction", "VARCHAR", "Name of the defining instruction.", required=True),
    Column("shape_index", "VARCHAR", "Part of the instruction's result. " + _INDEX, required=True),
    Column(
        "is_phi", "BOOLEAN", "Merges several definitions (phi); NULL up to TF 1.14, which does not print it."
    ),
    Column("color", "BIGINT", "Memory space of the value (@N); may differ from the allocation's."),
    Column("offset_bytes", "BIGINT", "Start within the allocation, bytes.", required=True),
    Column("size_bytes", "BIGINT", "Allocated size, bytes, padding included.", required=True),
    Column(
        "shape",
        "VARCHAR",
        "Shape with layout, verbatim.",
        required=True,
        compressed=True,
        long=True,
        origin="text",
    ),
    Column("dtype", "VARCHAR", "Element type, e.g. bf16; tuple for tuples.", origin="shape"),
    Column("dimensions", "BIGINT[]", "Dimensions (bounds of dynamic ones); NULL for tuples.", origin="shape"),
    Column("minor_to_major", "BIGINT[]", "Layout order, most minor dimension first.", origin="shape"),
    Column("tiling", "VARCHAR", "Tiles as printed, e.g. T(8,128)(2,1); NULL if not tiled.", origin="shape"),
    Column("element_bits", "BIGINT", "Bits of one element, from E(n) or the type.", origin="shape"),
    Column(
        "memory_space", "BIGINT", "S(n) of the layout, 0 if not printed; NULL for tuples.", origin="shape"
    ),
    Column(
        "logical_bytes",
        "BIGINT",
        "Dimensions x element bits without tiling, bytes; NULL for tuples.",
        origin="shape",
    ),
    Column(
        "padding_bytes",
        "BIGINT",
        "size_bytes - logical_bytes; NULL for tuples and tokens.",
        origin="computed",
    ),
    Column("opcode", "VARCHAR", "Opcode of the defining instruction.", origin="instruction"),
    Column("op_name", "VARCHAR", "op_name of its metadata, unescaped.", long=True, origin="instruction"),
    Column(
        "source_file", "VARCHAR", "Source file: innermost frame of the user's own code.", origin="instruction"
    ),
    Column("source_line", "BIGINT", "Source line of that frame, from 1.", origin="instruction"),
    Column(
        "stack_frame_id",
        "BIGINT",
        "stack_frame_id of its metadata (jaxlib 0.8 and later).",
        origin="instruction",
    ),
    Column(
        "instruction_text",
        "VARCHAR",
        "'from instruction' text, verbatim.",
        compressed=True,
        long=True,
        origin="text",
    ),
    Column(
        "source_via",
        "VARCHAR",
        "How the source line was found: own (the instruction's metadata), fused, operand, user or "
        "caller (inherited from a near instruction of the HLO module).",
        origin="module",
    ),
    Column(
        "source_frame_id", "BIGINT", "Frame of the source line (source_frames.frame_id).", origin="module"
    ),
)
_table(
    "positions",
    "One row for each place where a value appears.",
    "dump",
    _RUN,
    Column("value_id", "BIGINT", _VALUE, required=True),
    Column(
        "position",
        "BIGINT",
        "Order as printed, or where derived that of the module; 0 is the defining position.",
        required=True,
    ),
    Column("instruction", "VARCHAR", "Instruction whose result holds the value.", required=True),
    Column("shape_index", "VARCHAR", "Part of that result. " + _INDEX, required=True),
)
_table(
    "uses",
    "One row for each use of a value.",
    "dump",
    _RUN,
    Column("value_id", "BIGINT", _VALUE, required=True),
    Column(
        "position", "BIGINT", "Order as printed, or where derived that of the module; from 0.", required=True
    ),
    Column("instruction", "VARCHAR", "Instruction that uses the value.", required=True),
    Column("operand_number", "BIGINT", "Operand of that instruction, from 0.", required=True),
    Column("operand_index", "VARCHAR", "Part of the operand. " + _INDEX, required=True),
)
_table(
    "ranges",
    "One row for each live range.",
    "dump",
    _RUN,
    Column("value_id", "BIGINT", _VALUE + " NULL where the dump lists no such value."),
    Column("instruction", "VARCHAR", "Defining instruction as printed.", required=True),
    Column("shape_index", "VARCHAR", _INDEX, required=True),
    Column("start_time", "BIGINT", "First slot at which the value is live.", required=True),
    Column(
        "end_time", "BIGINT", "Last slot at which it is live (closed); may be schedule_length.", required=True
    ),
    Column(
        "handover_bytes",
        "BIGINT",
        "Bytes of this value that, at end_time, other live values own (aliases, in-place updates); "
        "the others are live no more after it. NULL without a value.",
    ),
    Column("printed_at_peak", "BOOLEAN", "The dump lists it at its printed peak; NULL without a peak list."),
    Column("printed_peak_bytes", "BIGINT", "Bytes that the peak list prints for it: unpadded."),
    Column(
        "gained_bytes",
        "BIGINT",
        "Bytes that become live at start_time: those of this value that no value live there holds yet. "
        "Live bytes at a slot = sum(gained_bytes) of ranges started by then - sum(size_bytes - "
        "handover_bytes) of those ended before; so for a run, an allocation or a color. NULL without a "
        "value.",
    ),
    Column(
        "peak_bytes",
        "BIGINT",
        "Its bytes that count at the run's peak (runs.peak_time); they add up to runs.peak_bytes. NULL "
        "where it is not live there.",
    ),
    Column(
        "value_bytes", "BIGINT", "Allocated size of the value (values.size_bytes), bytes; NULL without one."
    ),
    Column(
        "role",
        "VARCHAR",
        "What the value is to the program: parameter, constant, donated (made in the memory of an entry "
        "parameter) or result (made in other memory); NULL without a value.",
    ),
)
_table(
    "schedule",
    "One row for each slot of the flattened schedule.",
    "dump",
    _RUN,
    Column("time", "BIGINT", "Slot, 0, 1, 2 ...", required=True),
    Column("instruction", "VARCHAR", "Instruction that runs in the slot.", required=True),
)
_table(
    "peak_breakdown",
    "One row for each node of the printed stack-trace tree of the peak.",
    "dump",
    _RUN,
    Column("position", "BIGINT", "Order as printed, from 0.", required=True),
    Column("parent", "BIGINT", "position of the parent node; NULL for a root."),
    Column("depth", "BIGINT", "0 for a root.", required=True),
    Column("label", "VARCHAR", "Label as printed; op_name text may hold line breaks.", required=True),
    Column("percent", "DOUBLE", "Share of the printed peak, per cent as printed."),
    Column("total_bytes", "BIGINT", "Bytes of the subtree as printed, unpadded.", required=True),
    Column("current_bytes", "BIGINT", "Bytes of the node itself as printed, unpadded."),
    Column("remaining_bytes", "BIGINT", "Printed peak minus own bytes so far, in print order."),
)
_table(
    "color_reuse",
    "One row for each 'reused by buffers of a different color' line.",
    "dump",
    _RUN,
    Column("allocation_index", "BIGINT", "Allocation that is reused.", required=True),
    Column("value_id", "BIGINT", "Value of another color placed in it.", required=True),
    Column("color", "BIGINT", "Color of that value as printed.", required=True),
)
_table(
    "notices",
    "Warnings: unusual but legal things in loaded dumps.",
    "dump",
    _RUN,
    Column("file", "VARCHAR", "File that it was seen in."),
    Column("line", "BIGINT", "Line in that file, from 1; NULL where it concerns the whole."),
    Column("kind", "VARCHAR", "What was unusual, one word.", required=True),
    Column("message", "VARCHAR", "What was unusual, a sentence.", required=True),
    Column("text", "VARCHAR", "The text concerned, verbatim; cut after 2,000 characters."),
)
_table(
    "rejects",
    "One row for each dump that was not loaded.",
    "import",
    Column("import_id", "BIGINT", "Import that rejected it (imports.import_id).", required=True),
    Column("file", "VARCHAR", "The file rejected.", required=True),
    Column("line", "BIGINT", "Line in that file, from 1."),
    Column("byte_offset", "BIGINT", "Where that line starts in the file's text, bytes from 0."),
    Column("section", "VARCHAR", "Section of the dump: allocations, values, sequence, ranges, peak, tree."),
    Column("kind", "VARCHAR", "Which rule failed, one word.", required=True),
    Column("message", "VARCHAR", "What failed and what to do, a sentence.", required=True),
    Column("text", "VARCHAR", "The text concerned, verbatim; cut after 2,000 characters."),
)
_table(
    "saved_queries",
    "One row for each saved query installed as a table macro: FROM saved_queries.",
    "import",
    Column("name", "VARCHAR", "Name of the query; FROM name() runs it.", key=True),
    Column("title", "VARCHAR", "Title, a few words.", required=True),
    Column("question", "VARCHAR", "Question that it answers, a sentence.", required=True),
    Column("parameters", "VARCHAR", "Parameters with type and default, as in the call.", required=True),
    Column("example", "VARCHAR", "A call to paste into a DuckDB shell.", required=True),
    Column("tool_version", "VARCHAR", "Version of xbuf that installed it.", required=True),
    Column(
        "sha256",
        "VARCHAR",
        "SHA-256 of what was installed; shows when to install again.",
        required=True,
    ),
)
_table(
    "hlo_modules",
    "One row for each run whose HLO text or protobuf was read: what the module's head states.",
    "dump",
    _RUN,
    Column("name", "VARCHAR", "Name of the HLO module."),
    Column("is_scheduled", "BOOLEAN", "The module has a schedule.", required=True),
    Column("num_partitions", "BIGINT", "num_partitions; NULL where it is not stated (TF)."),
    Column("replica_count", "BIGINT", "replica_count; NULL where it is not stated (TF)."),
    Column(
        "entry_computation_layout",
        "VARCHAR",
        "Layouts of the entry's parameters and result, verbatim.",
        compressed=True,
        long=True,
    ),
    Column("read_from", "VARCHAR", "protobuf, or text where there is none.", required=True),
    Column(
        "program_sha256",
        "VARCHAR",
        "Fingerprint of the program: opcodes, operands, shapes, attributes and constants of all instructions "
        "in the order in which they run, without names, numbers and metadata. Comparable where read_from is "
        "the same. NULL where a part cannot be read.",
    ),
    Column(
        "layout_digest",
        "BIGINT",
        "Stands for the shapes of entry_computation_layout, without layouts, results too. First 64 bits of a "
        "SHA-256; NULL where the layout is.",
    ),
)
_table(
    "source_frames",
    "One row for each Python stack frame that the HLO module names (jaxlib 0.8 and later).",
    "dump",
    _RUN,
    Column("frame_id", "BIGINT", "Number of the frame; values.stack_frame_id refers to it.", required=True),
    Column("parent_frame_id", "BIGINT", "Frame that called it; NULL for the outermost."),
    Column("function", "VARCHAR", "Name of the function."),
    Column("file", "VARCHAR", "Source file."),
    Column("line", "BIGINT", "First line, from 1."),
    Column("end_line", "BIGINT", "Last line, from 1."),
    Column("start_column", "BIGINT", "First column."),
    Column("end_column", "BIGINT", "Last column."),
    Column("is_framework", "BOOLEAN", "The file lies in a framework's own folders.", required=True),
)
_table(
    "instructions",
    "One row for each HLO instruction of the module, fused ones too; from HLO text or protobuf.",
    "dump",
    _RUN,
    Column("position", "BIGINT", "Order in the module, from 0.", required=True),
    Column("computation", "VARCHAR", "Computation that holds it.", required=True),
    Column("instruction", "VARCHAR", "Name, unique within the run.", required=True),
    Column("opcode", "VARCHAR", "Opcode.", required=True),
    Column("shape", "VARCHAR", "Shape with layout, verbatim.", required=True, compressed=True, long=True),
    Column("operands", "VARCHAR[]", "Names of the operands, in order."),
    Column("op_name", "VARCHAR", "op_name of its metadata.", long=True),
    Column("stack_frame_id", "BIGINT", "Frame of its metadata (source_frames.frame_id)."),
    Column("called_computations", "VARCHAR[]", "Computations that it calls, in order."),
    Column("is_root", "BOOLEAN", "Root of its computation.", required=True),
    Column("source_file", "VARCHAR", "Source file: innermost frame of the user's own code."),
    Column("source_line", "BIGINT", "Source line of that frame, from 1."),
    Column("source_via", "VARCHAR", "How the source line was found; see values.source_via."),
)
_table(
    "aliases",
    "One row for each entry of the module's input_output_alias: a donation.",
    "dump",
    _RUN,
    Column("output_index", "VARCHAR", "Part of the entry result. " + _INDEX, required=True),
    Column("parameter_number", "BIGINT", "Entry parameter that shares its buffer, from 0.", required=True),
    Column("parameter_index", "VARCHAR", "Part of that parameter. " + _INDEX, required=True),
    Column(
        "kind", "VARCHAR", "may (the runtime decides) or must (the compiler relies on it).", required=True
    ),
)
_table(
    "buffer_donors",
    "One row for each entry of the module's buffer_donor: donated, and paired with no result.",
    "dump",
    _RUN,
    Column("parameter_number", "BIGINT", "Entry parameter that may be overwritten, from 0.", required=True),
    Column("parameter_index", "VARCHAR", "Part of that parameter. " + _INDEX, required=True),
)
_table(
    "heap_events",
    "One row for each event of the protobuf's heap simulator traces.",
    "dump",
    _RUN,
    Column("allocation_index", "BIGINT", "Arena that the trace is of; NULL where it is not known."),
    Column("position", "BIGINT", "Order within the run, from 0.", required=True),
    Column("kind", "VARCHAR", "alloc, free or share.", required=True),
    Column("value_id", "BIGINT", "Value concerned.", required=True),
    Column("share_with_value_id", "BIGINT", "Value whose memory it shares; NULL otherwise."),
    Column("computation", "VARCHAR", "Computation of the instruction at which it happens."),
    Column("instruction", "VARCHAR", "Instruction at which it happens."),
)
_table(
    "peak_buffers",
    "One row for each value of the protobuf's peak buffers (jaxlib 0.10.2 and later).",
    "dump",
    _RUN,
    Column("allocation_index", "BIGINT", "Allocation.", required=True),
    Column("value_id", "BIGINT", "Value that the compiler counts at that allocation's peak.", required=True),
)

RUN_TABLES: Final = tuple(
    table.name for table in TABLES.values() if table.rows != "import" and table.name != "runs"
)
"""Tables whose staged rows belong to a run, besides `runs` itself."""


def types_of(table: str, *origins: Origin) -> dict[str, str]:
    """Return DuckDB's types of a table's columns, by name; only those of `origins` where any are given."""
    return {
        column.name: column.type
        for column in TABLES[table].columns
        if not origins or column.origin in origins
    }


def staged_types(table: str) -> dict[str, str]:
    """Return the types of a table's staged columns: `run_no`, the dump's place in the import, and its own."""
    own = {column.name: column.type for column in TABLES[table].columns if column.origin != "load"}
    return {"run_no": "BIGINT", **own}
