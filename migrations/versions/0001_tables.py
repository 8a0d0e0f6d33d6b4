"""Every table of version 0.1.0.

Revision: 0001_tables, after nothing
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from ingest.database.metadata import Compressed, column

revision = "0001_tables"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Apply the revision."""
    op.create_table(
        "aliases",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "output_index",
            sa.String(),
            "Part of the entry result. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        column(
            "parameter_number",
            sa.BigInteger(),
            "Entry parameter that shares its buffer, from 0.",
            required=True,
        ),
        column(
            "parameter_index",
            sa.String(),
            "Part of that parameter. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        column(
            "kind",
            sa.String(),
            "may (the runtime decides) or must (the compiler relies on it).",
            required=True,
        ),
        comment="One row for each entry of the module's input_output_alias: a donation.",
    )
    op.create_table(
        "allocations",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "allocation_index", sa.BigInteger(), "Number of the BufferAllocation, 0, 1, 2 ...", required=True
        ),
        column("size_bytes", sa.BigInteger(), "Size, bytes.", required=True),
        column(
            "color",
            sa.BigInteger(),
            "Memory space; 0 is the default (HBM on TPU and GPU, host on CPU).",
            required=True,
        ),
        column("page", sa.BigInteger(), "Page number as printed by jaxlib 0.11.1 and later."),
        column("parameter_number", sa.BigInteger(), "Entry parameter held, 0-based; NULL for none."),
        column("parameter_shape_index", sa.String(), "Which part of the parameter; {} is the whole."),
        column(
            "parameter_shape",
            sa.String(),
            "Parameter shape as printed (whole up to jaxlib 0.7.0, then the part).",
        ),
        column("output_shape", sa.String(), "Shape of the entry result when this holds its top level."),
        column("is_constant", sa.Boolean(), "Holds a constant.", required=True),
        column("is_thread_local", sa.Boolean(), "Scratch of a scalar sub-computation.", required=True),
        column(
            "maybe_live_out", sa.Boolean(), "Holds something reachable from the entry result.", required=True
        ),
        column("is_preallocated_temp", sa.Boolean(), "Scratch arena of the module.", required=True),
        column(
            "kind",
            sa.String(),
            "parameter, output, parameter+output (donated), constant, thread-local or temp.",
            required=True,
        ),
        column("is_tuple", sa.Boolean(), "Holds a tuple table; NULL without protobuf."),
        column(
            "is_aliased_with_output",
            sa.Boolean(),
            "The protobuf's is_parameter_aliased_with_output: the module declares the parameter as donated. NULL without protobuf, and where nothing in it shows a release that writes this (jaxlib 0.7 or later).",
        ),
        column(
            "placed_values", sa.BigInteger(), "Values placed in it over the whole run, count.", required=True
        ),
        column(
            "placed_bytes",
            sa.BigInteger(),
            "Sum of the sizes of all values placed in it, bytes: shows reuse, is not memory.",
            required=True,
        ),
        column(
            "live_peak_time",
            sa.BigInteger(),
            "First slot with the most bytes live in it; NULL without ranges.",
        ),
        column(
            "live_peak_bytes",
            sa.BigInteger(),
            "Bytes live in it at that slot, each byte once (closed ranges).",
        ),
        column(
            "released_peak_bytes",
            sa.BigInteger(),
            "Most bytes live in it at one slot if a value lets go at the slot of its last use (half-open ranges). What the allocation needs lies between this and live_peak_bytes.",
        ),
        column(
            "parameter_value_id",
            sa.BigInteger(),
            "Value that the parameter is: the first one that a parameter instruction defines, else the first; NULL without parameter_number.",
        ),
        column(
            "live_out_value_id",
            sa.BigInteger(),
            "Value that leaves the program in it: the one that lives longest, of these the largest; where live ranges are not known, the one that the HLO module has in the entry result. NULL without maybe_live_out.",
        ),
        column(
            "donation",
            sa.String(),
            "What became of its parameter's memory: honoured (it also leaves the program), unused (it does not, though declared), missed (not declared, and fitting_value_id would fit) or no fit; NULL without parameter_number and where the parameter is no array.",
        ),
        column(
            "declared_donation",
            sa.String(),
            "may or must, as the module's input_output_alias declares its parameter; donor for its buffer_donor; NULL where donation is, for none, and without HLO.",
        ),
        column(
            "fitting_value_id",
            sa.BigInteger(),
            "Value that leaves the program in an allocation of its own and could have had this memory: of equal element type, dimensions, size and color. Each fits one parameter, declared ones first.",
        ),
        column(
            "other_color_values",
            sa.BigInteger(),
            "Values placed in it whose color (values.color) is not that of the allocation, count.",
            required=True,
        ),
        comment="One row for each BufferAllocation.",
    )
    op.create_table(
        "buffer_donors",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "parameter_number",
            sa.BigInteger(),
            "Entry parameter that may be overwritten, from 0.",
            required=True,
        ),
        column(
            "parameter_index",
            sa.String(),
            "Part of that parameter. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        comment="One row for each entry of the module's buffer_donor: donated, and paired with no result.",
    )
    op.create_table(
        "color_peaks",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("color", sa.BigInteger(), "Memory space of the allocations.", required=True),
        column("peak_time", sa.BigInteger(), "First slot with the most bytes live in it.", required=True),
        column(
            "peak_bytes", sa.BigInteger(), "Bytes live in it at that slot, each byte once.", required=True
        ),
        comment="One row for each memory space of a run in which something with a live range has a size.",
    )
    op.create_table(
        "color_reuse",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("allocation_index", sa.BigInteger(), "Allocation that is reused.", required=True),
        column("value_id", sa.BigInteger(), "Value of another color placed in it.", required=True),
        column("color", sa.BigInteger(), "Color of that value as printed.", required=True),
        comment="One row for each 'reused by buffers of a different color' line.",
    )
    op.create_table(
        "heap_events",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "allocation_index", sa.BigInteger(), "Arena that the trace is of; NULL where it is not known."
        ),
        column("position", sa.BigInteger(), "Order within the run, from 0.", required=True),
        column("kind", sa.String(), "alloc, free or share.", required=True),
        column("value_id", sa.BigInteger(), "Value concerned.", required=True),
        column("share_with_value_id", sa.BigInteger(), "Value whose memory it shares; NULL otherwise."),
        column("computation", sa.String(), "Computation of the instruction at which it happens."),
        column("instruction", sa.String(), "Instruction at which it happens."),
        comment="One row for each event of the protobuf's heap simulator traces.",
    )
    op.create_table(
        "hlo_modules",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("name", sa.String(), "Name of the HLO module."),
        column("is_scheduled", sa.Boolean(), "The module has a schedule.", required=True),
        column("num_partitions", sa.BigInteger(), "num_partitions; NULL where it is not stated (TF)."),
        column("replica_count", sa.BigInteger(), "replica_count; NULL where it is not stated (TF)."),
        column(
            "entry_computation_layout",
            Compressed(),
            "Layouts of the entry's parameters and result, verbatim.",
        ),
        column("read_from", sa.String(), "protobuf, or text where there is none.", required=True),
        column(
            "program_sha256",
            sa.String(),
            "Fingerprint of the program: opcodes, operands, shapes, attributes and constants of all instructions in the order in which they run, without names, numbers and metadata. Comparable where read_from is the same. NULL where a part cannot be read.",
        ),
        column(
            "layout_digest",
            sa.BigInteger(),
            "Stands for the shapes of entry_computation_layout, without layouts, results too. First 64 bits of a SHA-256; NULL where the layout is.",
        ),
        comment="One row for each run whose HLO text or protobuf was read: what the module's head states.",
    )
    op.create_table(
        "imports",
        column("import_id", sa.BigInteger(), "Number of the import, ascending in time.", required=True),
        column("started_at", sa.DateTime(), "When the import started, UTC.", required=True),
        column("finished_at", sa.DateTime(), "When it ended, UTC; NULL while it runs or when it was killed."),
        column(
            "status",
            sa.String(),
            "running, ok, rejects (some dumps were rejected), interrupted (Ctrl-C or killed) or failed.",
            required=True,
        ),
        column("tool_version", sa.String(), "Version of xbuf that ran.", required=True),
        column("host", sa.String(), "Host name of the machine that ran the import."),
        column("sources", sa.ARRAY(sa.String()), "Directories and files given on the command line."),
        column(
            "found",
            sa.BigInteger(),
            "Dump sets found, and files and directories that could not be read, count.",
        ),
        column("loaded", sa.BigInteger(), "Dump sets loaded as new runs or completed in place, count."),
        column("unchanged", sa.BigInteger(), "Dump sets that the database already held, count."),
        column("rejected", sa.BigInteger(), "Dump sets rejected, count; see rejects."),
        column(
            "unfinished", sa.BigInteger(), "Dump sets still being written, left for the next import, count."
        ),
        column("import_uuid", sa.String(), "Random name of the import, by which an export's is known again."),
        sa.PrimaryKeyConstraint("import_id"),
        comment="One row for each invocation of xbuf-ingest.",
    )
    op.create_table(
        "instructions",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("position", sa.BigInteger(), "Order in the module, from 0.", required=True),
        column("computation", sa.String(), "Computation that holds it.", required=True),
        column("instruction", sa.String(), "Name, unique within the run.", required=True),
        column("opcode", sa.String(), "Opcode.", required=True),
        column("shape", Compressed(), "Shape with layout, verbatim.", required=True),
        column("operands", sa.ARRAY(sa.String()), "Names of the operands, in order."),
        column("op_name", sa.String(), "op_name of its metadata."),
        column("stack_frame_id", sa.BigInteger(), "Frame of its metadata (source_frames.frame_id)."),
        column("called_computations", sa.ARRAY(sa.String()), "Computations that it calls, in order."),
        column("is_root", sa.Boolean(), "Root of its computation.", required=True),
        column("source_file", sa.String(), "Source file: innermost frame of the user's own code."),
        column("source_line", sa.BigInteger(), "Source line of that frame, from 1."),
        column("source_via", sa.String(), "How the source line was found; see values.source_via."),
        comment="One row for each HLO instruction of the module, fused ones too; from HLO text or protobuf.",
    )
    op.create_table(
        "notices",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("file", sa.String(), "File that it was seen in."),
        column("line", sa.BigInteger(), "Line in that file, from 1; NULL where it concerns the whole."),
        column("kind", sa.String(), "What was unusual, one word.", required=True),
        column("message", sa.String(), "What was unusual, a sentence.", required=True),
        column("text", sa.String(), "The text concerned, verbatim; cut after 2,000 characters."),
        comment="Warnings: unusual but legal things in loaded dumps.",
    )
    op.create_table(
        "peak_breakdown",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("position", sa.BigInteger(), "Order as printed, from 0.", required=True),
        column("parent", sa.BigInteger(), "position of the parent node; NULL for a root."),
        column("depth", sa.BigInteger(), "0 for a root.", required=True),
        column("label", sa.String(), "Label as printed; op_name text may hold line breaks.", required=True),
        column("percent", sa.Double(), "Share of the printed peak, per cent as printed."),
        column("total_bytes", sa.BigInteger(), "Bytes of the subtree as printed, unpadded.", required=True),
        column("current_bytes", sa.BigInteger(), "Bytes of the node itself as printed, unpadded."),
        column("remaining_bytes", sa.BigInteger(), "Printed peak minus own bytes so far, in print order."),
        comment="One row for each node of the printed stack-trace tree of the peak.",
    )
    op.create_table(
        "peak_buffers",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("allocation_index", sa.BigInteger(), "Allocation.", required=True),
        column(
            "value_id",
            sa.BigInteger(),
            "Value that the compiler counts at that allocation's peak.",
            required=True,
        ),
        comment="One row for each value of the protobuf's peak buffers (jaxlib 0.10.2 and later).",
    )
    op.create_table(
        "positions",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "value_id",
            sa.BigInteger(),
            "Value that this row belongs to (values.value_id within the run).",
            required=True,
        ),
        column(
            "position",
            sa.BigInteger(),
            "Order as printed, or where derived that of the module; 0 is the defining position.",
            required=True,
        ),
        column("instruction", sa.String(), "Instruction whose result holds the value.", required=True),
        column(
            "shape_index",
            sa.String(),
            "Part of that result. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        comment="One row for each place where a value appears.",
    )
    op.create_table(
        "ranges",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "value_id",
            sa.BigInteger(),
            "Value that this row belongs to (values.value_id within the run). NULL where the dump lists no such value.",
        ),
        column("instruction", sa.String(), "Defining instruction as printed.", required=True),
        column(
            "shape_index", sa.String(), "ShapeIndex as XLA prints it; {} is the top level.", required=True
        ),
        column("start_time", sa.BigInteger(), "First slot at which the value is live.", required=True),
        column(
            "end_time",
            sa.BigInteger(),
            "Last slot at which it is live (closed); may be schedule_length.",
            required=True,
        ),
        column(
            "handover_bytes",
            sa.BigInteger(),
            "Bytes of this value that, at end_time, other live values own (aliases, in-place updates); the others are live no more after it. NULL without a value.",
        ),
        column(
            "printed_at_peak",
            sa.Boolean(),
            "The dump lists it at its printed peak; NULL without a peak list.",
        ),
        column("printed_peak_bytes", sa.BigInteger(), "Bytes that the peak list prints for it: unpadded."),
        column(
            "gained_bytes",
            sa.BigInteger(),
            "Bytes that become live at start_time: those of this value that no value live there holds yet. Live bytes at a slot = sum(gained_bytes) of ranges started by then - sum(size_bytes - handover_bytes) of those ended before; so for a run, an allocation or a color. NULL without a value.",
        ),
        column(
            "peak_bytes",
            sa.BigInteger(),
            "Its bytes that count at the run's peak (runs.peak_time); they add up to runs.peak_bytes. NULL where it is not live there.",
        ),
        column(
            "value_bytes",
            sa.BigInteger(),
            "Allocated size of the value (values.size_bytes), bytes; NULL without one.",
        ),
        column(
            "role",
            sa.String(),
            "What the value is to the program: parameter, constant, donated (made in the memory of an entry parameter) or result (made in other memory); NULL without a value.",
        ),
        comment="One row for each live range.",
    )
    op.create_table(
        "rejects",
        column("import_id", sa.BigInteger(), "Import that rejected it (imports.import_id).", required=True),
        column("file", sa.String(), "The file rejected.", required=True),
        column("line", sa.BigInteger(), "Line in that file, from 1."),
        column("byte_offset", sa.BigInteger(), "Where that line starts in the file's text, bytes from 0."),
        column(
            "section", sa.String(), "Section of the dump: allocations, values, sequence, ranges, peak, tree."
        ),
        column("kind", sa.String(), "Which rule failed, one word.", required=True),
        column("message", sa.String(), "What failed and what to do, a sentence.", required=True),
        column("text", sa.String(), "The text concerned, verbatim; cut after 2,000 characters."),
        comment="One row for each dump that was not loaded.",
    )
    op.create_table(
        "run_files",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("role", sa.String(), "primary, values, live_range, hlo or proto.", required=True),
        column("file_name", sa.String(), "Name of the file within runs.dump_dir.", required=True),
        column("file_bytes", sa.BigInteger(), "Size on disk when read, bytes.", required=True),
        column(
            "mtime_ns", sa.BigInteger(), "Modification time when read, nanoseconds since 1970.", required=True
        ),
        column(
            "etag",
            sa.String(),
            "Version of the file as the store or archive that holds it names it; NULL for files in folders.",
        ),
        column("content_sha256", sa.String(), "SHA-256 of the file's content, uncompressed, hexadecimal."),
        sa.PrimaryKeyConstraint("run_id", "role"),
        comment="One row for each member file of a run; how an import knows what is unchanged.",
    )
    op.create_table(
        "run_labels",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("key", sa.String(), "Key of --label key=value.", required=True),
        column("value", sa.String(), "Value of --label key=value.", required=True),
        sa.PrimaryKeyConstraint("run_id", "key"),
        comment="Labels given with --label, one row for each run and key.",
    )
    op.create_table(
        "runs",
        column("run_id", sa.BigInteger(), "Number of the run, ascending in import order.", required=True),
        column("import_id", sa.BigInteger(), "Import that loaded it (imports.import_id).", required=True),
        column("dump_dir", sa.String(), "Absolute directory of the dump set.", required=True),
        column(
            "stem", sa.String(), "File name without the endings that distinguish the members.", required=True
        ),
        column("module_id", sa.BigInteger(), "Module number in the file name (module_0003 is 3)."),
        column("module_name", sa.String(), "HLO module name in the file name, e.g. jit_train_step."),
        column(
            "target", sa.String(), "Target in the file name: cpu, gpu, sm_9.0a_gpu, gfx90a_gpu, cl_933746096."
        ),
        column(
            "backend",
            sa.String(),
            "cpu, gpu or tpu, from the file name, else from tiled layouts in the text.",
        ),
        column("stage", sa.String(), "Compilation stage in the file name, e.g. after_optimizations."),
        column(
            "dump_time",
            sa.DateTime(),
            "Timestamp prefix of the file name, or when the profile started; UTC, NULL without one.",
        ),
        column(
            "content_sha256", sa.String(), "SHA-256 of the primary file's text, uncompressed, hexadecimal."
        ),
        column("file_bytes", sa.BigInteger(), "Bytes of text of the set's members, uncompressed."),
        column("ingested_at", sa.DateTime(), "When the run was loaded, UTC.", required=True),
        column(
            "format", sa.ARRAY(sa.String()), "Features that the text showed, e.g. pointer, page, split_files."
        ),
        column(
            "total_bytes",
            sa.BigInteger(),
            "Sum of all allocations, bytes; 'Total bytes used' where format has total.",
        ),
        column(
            "schedule_length",
            sa.BigInteger(),
            "'max N' as printed: number of slots in the flattened schedule.",
        ),
        column(
            "printed_peak_time", sa.BigInteger(), "Slot that the dump calls the peak. Wrong in 7 % of dumps."
        ),
        column(
            "printed_peak_bytes",
            sa.BigInteger(),
            "Sum of the bytes in the printed peak list: unpadded sizes, not what is allocated.",
        ),
        column(
            "peak_time",
            sa.BigInteger(),
            "First slot at which the live bytes are greatest, from ranges and sizes.",
        ),
        column(
            "peak_bytes",
            sa.BigInteger(),
            "Most bytes live at one slot over all colors, from ranges and allocated sizes. Ranges are closed (start and end slot both count: an operand and the result that reads it need memory at once); bytes that several values hold count once. NULL without ranges.",
        ),
        column("has_values", sa.Boolean(), "Positions and uses are known; see uses_from.", required=True),
        column("has_ranges", sa.Boolean(), "Live ranges are known; see ranges_from.", required=True),
        column(
            "resident_peak_bytes",
            sa.BigInteger(),
            "XProf's peak heap: in color 0, all allocations but temporary arenas and thread-local scratch, and the most bytes live at one slot in the arenas, without pointer tables of tuples. NULL where there are arenas and it is not known what is live in them.",
        ),
        column(
            "uses_from",
            sa.String(),
            "Where positions and uses come from: dump (Used values), hlo (derived from the HLO module), approximate (derived from an HLO text that leaves instructions out); NULL where they are not known.",
        ),
        column(
            "ranges_from",
            sa.String(),
            "Where schedule and live ranges come from: dump (HloLiveRange), hlo (derived from the HLO module and its schedule), approximate (derived from an HLO text that leaves instructions out, so slots have other numbers); NULL where they are not known.",
        ),
        column("profile_host", sa.String(), "Machine whose profile the run was found in; NULL for dumps."),
        column(
            "device_type", sa.String(), "Device that was profiled, as the profiler names it; NULL for dumps."
        ),
        column(
            "parameters_digest",
            sa.BigInteger(),
            "Stands for the shapes of the entry parameters, in order and without layouts: equal where a function was called alike. First 64 bits of a SHA-256; NULL without parameters.",
        ),
        column(
            "dump_digest",
            sa.BigInteger(),
            "Stands for the program as the dump alone prints it, without ids, numbers in names and names of parameters: values with their live ranges and uses, and allocations. NULL where hlo_modules.program_sha256 says more.",
        ),
        sa.PrimaryKeyConstraint("run_id"),
        comment="One row for each compiled module's dump.",
    )
    op.create_table(
        "saved_queries",
        column("name", sa.String(), "Name of the query; FROM name() runs it.", required=True),
        column("title", sa.String(), "Title, a few words.", required=True),
        column("question", sa.String(), "Question that it answers, a sentence.", required=True),
        column("parameters", sa.String(), "Parameters with type and default, as in the call.", required=True),
        column("example", sa.String(), "A call to paste into a DuckDB shell.", required=True),
        column("tool_version", sa.String(), "Version of xbuf that installed it.", required=True),
        column(
            "sha256",
            sa.String(),
            "SHA-256 of what was installed; shows when to install again.",
            required=True,
        ),
        sa.PrimaryKeyConstraint("name"),
        comment="One row for each saved query installed as a table macro: FROM saved_queries.",
    )
    op.create_table(
        "schedule",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("time", sa.BigInteger(), "Slot, 0, 1, 2 ...", required=True),
        column("instruction", sa.String(), "Instruction that runs in the slot.", required=True),
        comment="One row for each slot of the flattened schedule.",
    )
    op.create_table(
        "shared_addresses",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("allocation_index", sa.BigInteger(), "Allocation that holds them.", required=True),
        column("offset_bytes", sa.BigInteger(), "Start within the allocation, bytes.", required=True),
        column("placed_values", sa.BigInteger(), "Values there over the whole run, count.", required=True),
        column("slot_bytes", sa.BigInteger(), "Size of the largest, bytes.", required=True),
        column(
            "placed_bytes",
            sa.BigInteger(),
            "Sum of their sizes, bytes: shows reuse, is not memory.",
            required=True,
        ),
        column(
            "turns",
            sa.BigInteger(),
            "Values that take turns there, count: those whose bytes another one takes over in place are one turn, and so is the state of a loop, although its bytes are free for other values between its last use in the body and its update there. NULL without ranges.",
        ),
        column("turn_bytes", sa.BigInteger(), "Sum of the sizes of the turns, bytes; NULL without ranges."),
        comment="One row for each address (allocation and offset) at which two or more values that have a size lie.",
    )
    op.create_table(
        "source_frames",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "frame_id",
            sa.BigInteger(),
            "Number of the frame; values.stack_frame_id refers to it.",
            required=True,
        ),
        column("parent_frame_id", sa.BigInteger(), "Frame that called it; NULL for the outermost."),
        column("function", sa.String(), "Name of the function."),
        column("file", sa.String(), "Source file."),
        column("line", sa.BigInteger(), "First line, from 1."),
        column("end_line", sa.BigInteger(), "Last line, from 1."),
        column("start_column", sa.BigInteger(), "First column."),
        column("end_column", sa.BigInteger(), "Last column."),
        column("is_framework", sa.Boolean(), "The file lies in a framework's own folders.", required=True),
        comment="One row for each Python stack frame that the HLO module names (jaxlib 0.8 and later).",
    )
    op.create_table(
        "uses",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column(
            "value_id",
            sa.BigInteger(),
            "Value that this row belongs to (values.value_id within the run).",
            required=True,
        ),
        column(
            "position",
            sa.BigInteger(),
            "Order as printed, or where derived that of the module; from 0.",
            required=True,
        ),
        column("instruction", sa.String(), "Instruction that uses the value.", required=True),
        column("operand_number", sa.BigInteger(), "Operand of that instruction, from 0.", required=True),
        column(
            "operand_index",
            sa.String(),
            "Part of the operand. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        comment="One row for each use of a value.",
    )
    op.create_table(
        "values",
        column("run_id", sa.BigInteger(), "Run that this row belongs to (runs.run_id).", required=True),
        column("value_id", sa.BigInteger(), "Id of the HloValue, unique within the run.", required=True),
        column("allocation_index", sa.BigInteger(), "Allocation that holds it.", required=True),
        column("instruction", sa.String(), "Name of the defining instruction.", required=True),
        column(
            "shape_index",
            sa.String(),
            "Part of the instruction's result. ShapeIndex as XLA prints it; {} is the top level.",
            required=True,
        ),
        column(
            "is_phi",
            sa.Boolean(),
            "Merges several definitions (phi); NULL up to TF 1.14, which does not print it.",
        ),
        column("color", sa.BigInteger(), "Memory space of the value (@N); may differ from the allocation's."),
        column("offset_bytes", sa.BigInteger(), "Start within the allocation, bytes.", required=True),
        column("size_bytes", sa.BigInteger(), "Allocated size, bytes, padding included.", required=True),
        column("shape", Compressed(), "Shape with layout, verbatim.", required=True),
        column("dtype", sa.String(), "Element type, e.g. bf16; tuple for tuples."),
        column(
            "dimensions", sa.ARRAY(sa.BigInteger()), "Dimensions (bounds of dynamic ones); NULL for tuples."
        ),
        column("minor_to_major", sa.ARRAY(sa.BigInteger()), "Layout order, most minor dimension first."),
        column("tiling", sa.String(), "Tiles as printed, e.g. T(8,128)(2,1); NULL if not tiled."),
        column("element_bits", sa.BigInteger(), "Bits of one element, from E(n) or the type."),
        column("memory_space", sa.BigInteger(), "S(n) of the layout, 0 if not printed; NULL for tuples."),
        column(
            "logical_bytes",
            sa.BigInteger(),
            "Dimensions x element bits without tiling, bytes; NULL for tuples.",
        ),
        column("padding_bytes", sa.BigInteger(), "size_bytes - logical_bytes; NULL for tuples and tokens."),
        column("opcode", sa.String(), "Opcode of the defining instruction."),
        column("op_name", sa.String(), "op_name of its metadata, unescaped."),
        column("source_file", sa.String(), "Source file: innermost frame of the user's own code."),
        column("source_line", sa.BigInteger(), "Source line of that frame, from 1."),
        column("stack_frame_id", sa.BigInteger(), "stack_frame_id of its metadata (jaxlib 0.8 and later)."),
        column("instruction_text", Compressed(), "'from instruction' text, verbatim."),
        column(
            "source_via",
            sa.String(),
            "How the source line was found: own (the instruction's metadata), fused, operand, user or caller (inherited from a near instruction of the HLO module).",
        ),
        column("source_frame_id", sa.BigInteger(), "Frame of the source line (source_frames.frame_id)."),
        comment="One row for each HloValue. Sizes overlap in an arena: never sum them as memory.",
    )


def downgrade() -> None:
    """Take the revision back."""
    op.drop_table("values")
    op.drop_table("uses")
    op.drop_table("source_frames")
    op.drop_table("shared_addresses")
    op.drop_table("schedule")
    op.drop_table("saved_queries")
    op.drop_table("runs")
    op.drop_table("run_labels")
    op.drop_table("run_files")
    op.drop_table("rejects")
    op.drop_table("ranges")
    op.drop_table("positions")
    op.drop_table("peak_buffers")
    op.drop_table("peak_breakdown")
    op.drop_table("notices")
    op.drop_table("instructions")
    op.drop_table("imports")
    op.drop_table("hlo_modules")
    op.drop_table("heap_events")
    op.drop_table("color_reuse")
    op.drop_table("color_peaks")
    op.drop_table("buffer_donors")
    op.drop_table("allocations")
    op.drop_table("aliases")
