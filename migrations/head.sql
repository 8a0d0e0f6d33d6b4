-- Written by `python -m ingest.store.migrate`; see ingest/store/creation.py.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL,
    CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
CREATE TABLE imports (
    import_id BIGINT NOT NULL,
    started_at TIMESTAMP WITHOUT TIME ZONE NOT NULL,
    finished_at TIMESTAMP WITHOUT TIME ZONE,
    status VARCHAR NOT NULL,
    tool_version VARCHAR NOT NULL,
    host VARCHAR,
    sources VARCHAR[],
    found BIGINT,
    loaded BIGINT,
    unchanged BIGINT,
    rejected BIGINT,
    unfinished BIGINT,
    PRIMARY KEY (import_id)
);
COMMENT ON TABLE imports IS 'One row for each invocation of xbuf-ingest.';
COMMENT ON COLUMN imports.import_id IS 'Number of the import, ascending in time.';
COMMENT ON COLUMN imports.started_at IS 'When the import started, UTC.';
COMMENT ON COLUMN imports.finished_at IS 'When it ended, UTC; NULL while it runs or when it was killed.';
COMMENT ON COLUMN imports.status IS 'running, ok, rejects (some dumps were rejected), interrupted (Ctrl-C or killed) or failed.';
COMMENT ON COLUMN imports.tool_version IS 'Version of xbuf that ran.';
COMMENT ON COLUMN imports.host IS 'Host name of the machine that ran the import.';
COMMENT ON COLUMN imports.sources IS 'Directories and files given on the command line.';
COMMENT ON COLUMN imports.found IS 'Dump sets found, count.';
COMMENT ON COLUMN imports.loaded IS 'Dump sets loaded as new runs or completed in place, count.';
COMMENT ON COLUMN imports.unchanged IS 'Dump sets that the database already held, count.';
COMMENT ON COLUMN imports.rejected IS 'Dump sets rejected, count; see rejects.';
COMMENT ON COLUMN imports.unfinished IS 'Dump sets still being written, left for the next import, count.';
CREATE TABLE runs (
    run_id BIGINT NOT NULL,
    import_id BIGINT NOT NULL,
    dump_dir VARCHAR NOT NULL,
    stem VARCHAR NOT NULL,
    module_id BIGINT,
    module_name VARCHAR,
    target VARCHAR,
    backend VARCHAR,
    stage VARCHAR,
    dump_time TIMESTAMP WITHOUT TIME ZONE,
    content_sha256 VARCHAR,
    file_bytes BIGINT,
    ingested_at TIMESTAMP WITHOUT TIME ZONE NOT NULL,
    format VARCHAR[],
    total_bytes BIGINT,
    schedule_length BIGINT,
    printed_peak_time BIGINT,
    printed_peak_bytes BIGINT,
    peak_time BIGINT,
    peak_bytes BIGINT,
    has_values BOOLEAN NOT NULL,
    has_ranges BOOLEAN NOT NULL,
    PRIMARY KEY (run_id)
);
COMMENT ON TABLE runs IS 'One row for each compiled module''s dump.';
COMMENT ON COLUMN runs.run_id IS 'Number of the run, ascending in import order.';
COMMENT ON COLUMN runs.import_id IS 'Import that loaded it (imports.import_id).';
COMMENT ON COLUMN runs.dump_dir IS 'Absolute directory of the dump set.';
COMMENT ON COLUMN runs.stem IS 'File name without the endings that tell the members apart.';
COMMENT ON COLUMN runs.module_id IS 'Module number in the file name (module_0003 is 3).';
COMMENT ON COLUMN runs.module_name IS 'HLO module name in the file name, e.g. jit_train_step.';
COMMENT ON COLUMN runs.target IS 'Target in the file name: cpu, gpu, sm_9.0a_gpu, gfx90a_gpu, cl_933746096.';
COMMENT ON COLUMN runs.backend IS 'cpu, gpu or tpu, from the file name, else from tiled layouts in the text.';
COMMENT ON COLUMN runs.stage IS 'Compilation stage in the file name, e.g. after_optimizations.';
COMMENT ON COLUMN runs.dump_time IS 'Timestamp prefix of the file name, UTC; NULL without one.';
COMMENT ON COLUMN runs.content_sha256 IS 'SHA-256 of the primary file''s text, uncompressed, hexadecimal.';
COMMENT ON COLUMN runs.file_bytes IS 'Bytes of text of the set''s members, uncompressed.';
COMMENT ON COLUMN runs.ingested_at IS 'When the run was loaded, UTC.';
COMMENT ON COLUMN runs.format IS 'Features that the text showed, e.g. pointer, page, split_files.';
COMMENT ON COLUMN runs.total_bytes IS '''Total bytes used'' as printed, bytes: sum of all allocations.';
COMMENT ON COLUMN runs.schedule_length IS '''max N'' as printed: number of slots in the flattened schedule.';
COMMENT ON COLUMN runs.printed_peak_time IS 'Slot that the dump calls the peak. Wrong in 7 % of dumps.';
COMMENT ON COLUMN runs.printed_peak_bytes IS 'Sum of the bytes in the printed peak list: unpadded sizes, not what is allocated.';
COMMENT ON COLUMN runs.peak_time IS 'First slot at which the live bytes are greatest, from ranges and sizes.';
COMMENT ON COLUMN runs.peak_bytes IS 'Most bytes live at one slot over all colors, from ranges and allocated sizes. Ranges are closed (start and end slot both count: an operand and the result that reads it need memory at once); bytes that one value hands to the next at a shared slot are counted once. NULL without ranges.';
COMMENT ON COLUMN runs.has_values IS 'The dump told positions and uses (Used values).';
COMMENT ON COLUMN runs.has_ranges IS 'The dump told live ranges (HloLiveRange).';
CREATE TABLE run_files (
    run_id BIGINT NOT NULL,
    role VARCHAR NOT NULL,
    file_name VARCHAR NOT NULL,
    file_bytes BIGINT NOT NULL,
    mtime_ns BIGINT NOT NULL,
    content_sha256 VARCHAR,
    PRIMARY KEY (run_id, role)
);
COMMENT ON TABLE run_files IS 'One row for each member file of a run; how an import knows what is unchanged.';
COMMENT ON COLUMN run_files.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN run_files.role IS 'primary, values, live_range, hlo or proto.';
COMMENT ON COLUMN run_files.file_name IS 'Name of the file within runs.dump_dir.';
COMMENT ON COLUMN run_files.file_bytes IS 'Size on disk when read, bytes.';
COMMENT ON COLUMN run_files.mtime_ns IS 'Modification time when read, nanoseconds since 1970.';
COMMENT ON COLUMN run_files.content_sha256 IS 'SHA-256 of the file''s content, uncompressed, hexadecimal.';
CREATE TABLE run_labels (
    run_id BIGINT NOT NULL,
    key VARCHAR NOT NULL,
    value VARCHAR NOT NULL,
    PRIMARY KEY (run_id, key)
);
COMMENT ON TABLE run_labels IS 'Labels given with --label, one row for each run and key.';
COMMENT ON COLUMN run_labels.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN run_labels.key IS 'Key of --label key=value.';
COMMENT ON COLUMN run_labels.value IS 'Value of --label key=value.';
CREATE TABLE allocations (
    run_id BIGINT NOT NULL,
    allocation_index BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    color BIGINT NOT NULL,
    page BIGINT,
    parameter_number BIGINT,
    parameter_shape_index VARCHAR,
    parameter_shape VARCHAR,
    output_shape VARCHAR,
    is_constant BOOLEAN NOT NULL,
    is_thread_local BOOLEAN NOT NULL,
    maybe_live_out BOOLEAN NOT NULL,
    is_preallocated_temp BOOLEAN NOT NULL,
    kind VARCHAR NOT NULL
);
COMMENT ON TABLE allocations IS 'One row for each BufferAllocation.';
COMMENT ON COLUMN allocations.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN allocations.allocation_index IS 'Number of the BufferAllocation, 0, 1, 2 ...';
COMMENT ON COLUMN allocations.size_bytes IS 'Size, bytes.';
COMMENT ON COLUMN allocations.color IS 'Memory space; 0 is the default (HBM on TPU and GPU, host on CPU).';
COMMENT ON COLUMN allocations.page IS 'Page number as printed by jaxlib 0.11.1 and later.';
COMMENT ON COLUMN allocations.parameter_number IS 'Entry parameter held, 0-based; NULL for none.';
COMMENT ON COLUMN allocations.parameter_shape_index IS 'Which part of the parameter; {} is the whole.';
COMMENT ON COLUMN allocations.parameter_shape IS 'Parameter shape as printed (whole up to jaxlib 0.7.0, then the part).';
COMMENT ON COLUMN allocations.output_shape IS 'Shape of the entry result when this holds its top level.';
COMMENT ON COLUMN allocations.is_constant IS 'Holds a constant.';
COMMENT ON COLUMN allocations.is_thread_local IS 'Scratch of a scalar sub-computation.';
COMMENT ON COLUMN allocations.maybe_live_out IS 'Holds something reachable from the entry result.';
COMMENT ON COLUMN allocations.is_preallocated_temp IS 'Scratch arena of the module.';
COMMENT ON COLUMN allocations.kind IS 'parameter, output, parameter+output (donated), constant, thread-local or temp.';
CREATE TABLE values (
    run_id BIGINT NOT NULL,
    value_id BIGINT NOT NULL,
    allocation_index BIGINT NOT NULL,
    instruction VARCHAR NOT NULL,
    shape_index VARCHAR NOT NULL,
    is_phi BOOLEAN NOT NULL,
    color BIGINT,
    offset_bytes BIGINT NOT NULL,
    size_bytes BIGINT NOT NULL,
    shape VARCHAR USING COMPRESSION zstd NOT NULL,
    dtype VARCHAR,
    dimensions BIGINT[],
    minor_to_major BIGINT[],
    tiling VARCHAR,
    element_bits BIGINT,
    memory_space BIGINT,
    logical_bytes BIGINT,
    padding_bytes BIGINT,
    opcode VARCHAR,
    op_name VARCHAR,
    source_file VARCHAR,
    source_line BIGINT,
    stack_frame_id BIGINT,
    instruction_text VARCHAR USING COMPRESSION zstd
);
COMMENT ON TABLE values IS 'One row for each HloValue. Sizes overlap in an arena: never sum them as memory.';
COMMENT ON COLUMN values.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN values.value_id IS 'Id of the HloValue, unique within the run.';
COMMENT ON COLUMN values.allocation_index IS 'Allocation that holds it.';
COMMENT ON COLUMN values.instruction IS 'Name of the defining instruction.';
COMMENT ON COLUMN values.shape_index IS 'Part of the instruction''s result. ShapeIndex as XLA prints it; {} is the top level.';
COMMENT ON COLUMN values.is_phi IS 'Merges several definitions (phi).';
COMMENT ON COLUMN values.color IS 'Memory space of the value (@N); may differ from the allocation''s.';
COMMENT ON COLUMN values.offset_bytes IS 'Start within the allocation, bytes.';
COMMENT ON COLUMN values.size_bytes IS 'Allocated size, bytes, padding included.';
COMMENT ON COLUMN values.shape IS 'Shape with layout, verbatim.';
COMMENT ON COLUMN values.dtype IS 'Element type, e.g. bf16; tuple for tuples.';
COMMENT ON COLUMN values.dimensions IS 'Dimensions (bounds of dynamic ones); NULL for tuples.';
COMMENT ON COLUMN values.minor_to_major IS 'Layout order, most minor dimension first.';
COMMENT ON COLUMN values.tiling IS 'Tiles as printed, e.g. T(8,128)(2,1); NULL if not tiled.';
COMMENT ON COLUMN values.element_bits IS 'Bits of one element, from E(n) or the type.';
COMMENT ON COLUMN values.memory_space IS 'S(n) of the layout, 0 if not printed; NULL for tuples.';
COMMENT ON COLUMN values.logical_bytes IS 'Dimensions x element bits without tiling, bytes; NULL for tuples.';
COMMENT ON COLUMN values.padding_bytes IS 'size_bytes - logical_bytes; NULL for tuples and tokens.';
COMMENT ON COLUMN values.opcode IS 'Opcode of the defining instruction.';
COMMENT ON COLUMN values.op_name IS 'op_name of its metadata, unescaped.';
COMMENT ON COLUMN values.source_file IS 'Source file: innermost frame of the user''s own code.';
COMMENT ON COLUMN values.source_line IS 'Source line of that frame, from 1.';
COMMENT ON COLUMN values.stack_frame_id IS 'stack_frame_id of its metadata (jaxlib 0.8 and later).';
COMMENT ON COLUMN values.instruction_text IS '''from instruction'' text, verbatim.';
CREATE TABLE positions (
    run_id BIGINT NOT NULL,
    value_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    instruction VARCHAR NOT NULL,
    shape_index VARCHAR NOT NULL
);
COMMENT ON TABLE positions IS 'One row for each place where a value appears.';
COMMENT ON COLUMN positions.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN positions.value_id IS 'Value that this row belongs to (values.value_id within the run).';
COMMENT ON COLUMN positions.position IS 'Order as printed; 0 is the defining position.';
COMMENT ON COLUMN positions.instruction IS 'Instruction whose result holds the value.';
COMMENT ON COLUMN positions.shape_index IS 'Part of that result. ShapeIndex as XLA prints it; {} is the top level.';
CREATE TABLE uses (
    run_id BIGINT NOT NULL,
    value_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    instruction VARCHAR NOT NULL,
    operand_number BIGINT NOT NULL,
    operand_index VARCHAR NOT NULL
);
COMMENT ON TABLE uses IS 'One row for each use of a value.';
COMMENT ON COLUMN uses.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN uses.value_id IS 'Value that this row belongs to (values.value_id within the run).';
COMMENT ON COLUMN uses.position IS 'Order as printed, from 0.';
COMMENT ON COLUMN uses.instruction IS 'Instruction that uses the value.';
COMMENT ON COLUMN uses.operand_number IS 'Operand of that instruction, from 0.';
COMMENT ON COLUMN uses.operand_index IS 'Part of the operand. ShapeIndex as XLA prints it; {} is the top level.';
CREATE TABLE ranges (
    run_id BIGINT NOT NULL,
    value_id BIGINT,
    instruction VARCHAR NOT NULL,
    shape_index VARCHAR NOT NULL,
    start_time BIGINT NOT NULL,
    end_time BIGINT NOT NULL,
    handover_bytes BIGINT,
    printed_at_peak BOOLEAN,
    printed_peak_bytes BIGINT
);
COMMENT ON TABLE ranges IS 'One row for each live range.';
COMMENT ON COLUMN ranges.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN ranges.value_id IS 'Value that this row belongs to (values.value_id within the run). NULL where the dump lists no such value.';
COMMENT ON COLUMN ranges.instruction IS 'Defining instruction as printed.';
COMMENT ON COLUMN ranges.shape_index IS 'ShapeIndex as XLA prints it; {} is the top level.';
COMMENT ON COLUMN ranges.start_time IS 'First slot at which the value is live.';
COMMENT ON COLUMN ranges.end_time IS 'Last slot at which it is live (closed); may be schedule_length.';
COMMENT ON COLUMN ranges.handover_bytes IS 'Bytes of this value that, at end_time, other live values already own (aliases, in-place updates). Live bytes at a slot = sum(size_bytes) of live values - sum(handover_bytes) of those that end there. NULL without a value.';
COMMENT ON COLUMN ranges.printed_at_peak IS 'The dump lists it at its printed peak; NULL without a peak list.';
COMMENT ON COLUMN ranges.printed_peak_bytes IS 'Bytes that the peak list prints for it: unpadded.';
CREATE TABLE schedule (
    run_id BIGINT NOT NULL,
    time BIGINT NOT NULL,
    instruction VARCHAR NOT NULL
);
COMMENT ON TABLE schedule IS 'One row for each slot of the flattened schedule.';
COMMENT ON COLUMN schedule.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN schedule.time IS 'Slot, 0, 1, 2 ...';
COMMENT ON COLUMN schedule.instruction IS 'Instruction that runs in the slot.';
CREATE TABLE peak_breakdown (
    run_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    parent BIGINT,
    depth BIGINT NOT NULL,
    label VARCHAR NOT NULL,
    percent DOUBLE PRECISION,
    total_bytes BIGINT NOT NULL,
    current_bytes BIGINT,
    remaining_bytes BIGINT
);
COMMENT ON TABLE peak_breakdown IS 'One row for each node of the printed stack-trace tree of the peak.';
COMMENT ON COLUMN peak_breakdown.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN peak_breakdown.position IS 'Order as printed, from 0.';
COMMENT ON COLUMN peak_breakdown.parent IS 'position of the parent node; NULL for a root.';
COMMENT ON COLUMN peak_breakdown.depth IS '0 for a root.';
COMMENT ON COLUMN peak_breakdown.label IS 'Label as printed; op_name text may hold line breaks.';
COMMENT ON COLUMN peak_breakdown.percent IS 'Share of the printed peak, per cent as printed.';
COMMENT ON COLUMN peak_breakdown.total_bytes IS 'Bytes of the subtree as printed, unpadded.';
COMMENT ON COLUMN peak_breakdown.current_bytes IS 'Bytes of the node itself as printed, unpadded.';
COMMENT ON COLUMN peak_breakdown.remaining_bytes IS 'Printed peak minus own bytes so far, in print order.';
CREATE TABLE color_reuse (
    run_id BIGINT NOT NULL,
    allocation_index BIGINT NOT NULL,
    value_id BIGINT NOT NULL,
    color BIGINT NOT NULL
);
COMMENT ON TABLE color_reuse IS 'One row for each ''reused by buffers of a different color'' line.';
COMMENT ON COLUMN color_reuse.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN color_reuse.allocation_index IS 'Allocation that is reused.';
COMMENT ON COLUMN color_reuse.value_id IS 'Value of another color placed in it.';
COMMENT ON COLUMN color_reuse.color IS 'Color of that value as printed.';
CREATE TABLE notices (
    run_id BIGINT NOT NULL,
    file VARCHAR,
    line BIGINT,
    kind VARCHAR NOT NULL,
    message VARCHAR NOT NULL,
    text VARCHAR
);
COMMENT ON TABLE notices IS 'Odd but legal things in loaded dumps.';
COMMENT ON COLUMN notices.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN notices.file IS 'File that it was seen in.';
COMMENT ON COLUMN notices.line IS 'Line in that file, from 1; NULL where it concerns the whole.';
COMMENT ON COLUMN notices.kind IS 'What was odd, one word.';
COMMENT ON COLUMN notices.message IS 'What was odd, a sentence.';
COMMENT ON COLUMN notices.text IS 'The text concerned, verbatim; cut after 2,000 characters.';
CREATE TABLE rejects (
    import_id BIGINT NOT NULL,
    file VARCHAR NOT NULL,
    line BIGINT,
    byte_offset BIGINT,
    section VARCHAR,
    kind VARCHAR NOT NULL,
    message VARCHAR NOT NULL,
    text VARCHAR
);
COMMENT ON TABLE rejects IS 'One row for each dump that was not loaded.';
COMMENT ON COLUMN rejects.import_id IS 'Import that rejected it (imports.import_id).';
COMMENT ON COLUMN rejects.file IS 'File at fault.';
COMMENT ON COLUMN rejects.line IS 'Line in that file, from 1.';
COMMENT ON COLUMN rejects.byte_offset IS 'Where that line starts in the file''s text, bytes from 0.';
COMMENT ON COLUMN rejects.section IS 'Section of the dump: allocations, values, sequence, ranges, peak, tree.';
COMMENT ON COLUMN rejects.kind IS 'Which rule failed, one word.';
COMMENT ON COLUMN rejects.message IS 'What failed and what to do, a sentence.';
COMMENT ON COLUMN rejects.text IS 'The text concerned, verbatim; cut after 2,000 characters.';
CREATE TABLE saved_queries (
    name VARCHAR NOT NULL,
    title VARCHAR NOT NULL,
    question VARCHAR NOT NULL,
    parameters VARCHAR NOT NULL,
    example VARCHAR NOT NULL,
    tool_version VARCHAR NOT NULL,
    sha256 VARCHAR NOT NULL,
    PRIMARY KEY (name)
);
COMMENT ON TABLE saved_queries IS 'One row for each saved query installed as a table macro: FROM saved_queries.';
COMMENT ON COLUMN saved_queries.name IS 'Name of the query; FROM name() runs it.';
COMMENT ON COLUMN saved_queries.title IS 'Title, a few words.';
COMMENT ON COLUMN saved_queries.question IS 'Question that it answers, a sentence.';
COMMENT ON COLUMN saved_queries.parameters IS 'Parameters with type and default, as in the call.';
COMMENT ON COLUMN saved_queries.example IS 'A call to paste into a DuckDB shell.';
COMMENT ON COLUMN saved_queries.tool_version IS 'Version of xbuf that installed it.';
COMMENT ON COLUMN saved_queries.sha256 IS 'SHA-256 of what was installed; tells when to install again.';
COMMENT ON TABLE alembic_version IS 'Schema revision of this database; xbuf db upgrade moves it.';
COMMENT ON COLUMN alembic_version.version_num IS 'Name of the revision, e.g. 0001_core.';
INSERT INTO alembic_version (version_num) VALUES ('0001_core') RETURNING alembic_version.version_num;
ALTER TABLE allocations ADD COLUMN is_tuple BOOLEAN;
COMMENT ON COLUMN allocations.is_tuple IS 'Holds a tuple table; NULL without protobuf.';
ALTER TABLE allocations ADD COLUMN is_aliased_with_output BOOLEAN;
COMMENT ON COLUMN allocations.is_aliased_with_output IS 'The protobuf''s is_parameter_aliased_with_output; NULL where it is not told.';
ALTER TABLE values ADD COLUMN source_via VARCHAR;
COMMENT ON COLUMN values.source_via IS 'How the source line was found: own (the instruction''s metadata), fused, operand, user or caller (inherited from a near instruction of the HLO module).';
ALTER TABLE values ADD COLUMN source_frame_id BIGINT;
COMMENT ON COLUMN values.source_frame_id IS 'Frame of the source line (source_frames.frame_id).';
CREATE TABLE hlo_modules (
    run_id BIGINT NOT NULL,
    name VARCHAR,
    is_scheduled BOOLEAN NOT NULL,
    num_partitions BIGINT,
    replica_count BIGINT,
    entry_computation_layout VARCHAR USING COMPRESSION zstd
);
COMMENT ON TABLE hlo_modules IS 'One row for each run whose HLO text or protobuf was read: what the module''s head tells.';
COMMENT ON COLUMN hlo_modules.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN hlo_modules.name IS 'Name of the HLO module.';
COMMENT ON COLUMN hlo_modules.is_scheduled IS 'The module has a schedule.';
COMMENT ON COLUMN hlo_modules.num_partitions IS 'num_partitions; 1 where it is not printed.';
COMMENT ON COLUMN hlo_modules.replica_count IS 'replica_count; 1 where it is not printed.';
COMMENT ON COLUMN hlo_modules.entry_computation_layout IS 'Layouts of the entry''s parameters and result, verbatim.';
CREATE TABLE source_frames (
    run_id BIGINT NOT NULL,
    frame_id BIGINT NOT NULL,
    parent_frame_id BIGINT,
    function VARCHAR,
    file VARCHAR,
    line BIGINT,
    end_line BIGINT,
    "column" BIGINT,
    end_column BIGINT,
    is_framework BOOLEAN NOT NULL
);
COMMENT ON TABLE source_frames IS 'One row for each Python stack frame that the HLO module names (jaxlib 0.8 and later).';
COMMENT ON COLUMN source_frames.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN source_frames.frame_id IS 'Number of the frame; values.stack_frame_id refers to it.';
COMMENT ON COLUMN source_frames.parent_frame_id IS 'Frame that called it; NULL for the outermost.';
COMMENT ON COLUMN source_frames.function IS 'Name of the function.';
COMMENT ON COLUMN source_frames.file IS 'Source file.';
COMMENT ON COLUMN source_frames.line IS 'First line, from 1.';
COMMENT ON COLUMN source_frames.end_line IS 'Last line, from 1.';
COMMENT ON COLUMN source_frames."column" IS 'First column.';
COMMENT ON COLUMN source_frames.end_column IS 'Last column.';
COMMENT ON COLUMN source_frames.is_framework IS 'The file lies in a framework''s own folders.';
CREATE TABLE instructions (
    run_id BIGINT NOT NULL,
    position BIGINT NOT NULL,
    computation VARCHAR NOT NULL,
    instruction VARCHAR NOT NULL,
    opcode VARCHAR NOT NULL,
    shape VARCHAR USING COMPRESSION zstd NOT NULL,
    operands VARCHAR[],
    op_name VARCHAR,
    stack_frame_id BIGINT,
    called_computations VARCHAR[],
    is_root BOOLEAN NOT NULL,
    source_file VARCHAR,
    source_line BIGINT,
    source_via VARCHAR
);
COMMENT ON TABLE instructions IS 'One row for each HLO instruction of the module, fused ones too; from HLO text or protobuf.';
COMMENT ON COLUMN instructions.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN instructions.position IS 'Order in the module, from 0.';
COMMENT ON COLUMN instructions.computation IS 'Computation that holds it.';
COMMENT ON COLUMN instructions.instruction IS 'Name, unique within the run.';
COMMENT ON COLUMN instructions.opcode IS 'Opcode.';
COMMENT ON COLUMN instructions.shape IS 'Shape with layout, verbatim.';
COMMENT ON COLUMN instructions.operands IS 'Names of the operands, in order.';
COMMENT ON COLUMN instructions.op_name IS 'op_name of its metadata.';
COMMENT ON COLUMN instructions.stack_frame_id IS 'Frame of its metadata (source_frames.frame_id).';
COMMENT ON COLUMN instructions.called_computations IS 'Computations that it calls, in order.';
COMMENT ON COLUMN instructions.is_root IS 'Root of its computation.';
COMMENT ON COLUMN instructions.source_file IS 'Source file: innermost frame of the user''s own code.';
COMMENT ON COLUMN instructions.source_line IS 'Source line of that frame, from 1.';
COMMENT ON COLUMN instructions.source_via IS 'How the source line was found; see values.source_via.';
CREATE TABLE aliases (
    run_id BIGINT NOT NULL,
    output_index VARCHAR NOT NULL,
    parameter_number BIGINT NOT NULL,
    parameter_index VARCHAR NOT NULL,
    kind VARCHAR NOT NULL
);
COMMENT ON TABLE aliases IS 'One row for each entry of the module''s input_output_alias: a donation.';
COMMENT ON COLUMN aliases.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN aliases.output_index IS 'Part of the entry result. ShapeIndex as XLA prints it; {} is the top level.';
COMMENT ON COLUMN aliases.parameter_number IS 'Entry parameter that shares its buffer, from 0.';
COMMENT ON COLUMN aliases.parameter_index IS 'Part of that parameter. ShapeIndex as XLA prints it; {} is the top level.';
COMMENT ON COLUMN aliases.kind IS 'may (the runtime decides) or must (the compiler relies on it).';
CREATE TABLE heap_events (
    run_id BIGINT NOT NULL,
    allocation_index BIGINT,
    position BIGINT NOT NULL,
    kind VARCHAR NOT NULL,
    value_id BIGINT NOT NULL,
    share_with_value_id BIGINT,
    computation VARCHAR,
    instruction VARCHAR
);
COMMENT ON TABLE heap_events IS 'One row for each event of the protobuf''s heap simulator traces.';
COMMENT ON COLUMN heap_events.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN heap_events.allocation_index IS 'Arena that the trace is of; NULL where it is not told.';
COMMENT ON COLUMN heap_events.position IS 'Order within the run, from 0.';
COMMENT ON COLUMN heap_events.kind IS 'alloc, free or share.';
COMMENT ON COLUMN heap_events.value_id IS 'Value concerned.';
COMMENT ON COLUMN heap_events.share_with_value_id IS 'Value whose memory it shares; NULL otherwise.';
COMMENT ON COLUMN heap_events.computation IS 'Computation of the instruction at which it happens.';
COMMENT ON COLUMN heap_events.instruction IS 'Instruction at which it happens.';
CREATE TABLE peak_buffers (
    run_id BIGINT NOT NULL,
    allocation_index BIGINT NOT NULL,
    value_id BIGINT NOT NULL
);
COMMENT ON TABLE peak_buffers IS 'One row for each value of the protobuf''s peak buffers (jaxlib 0.10.2 and later).';
COMMENT ON COLUMN peak_buffers.run_id IS 'Run that this row belongs to (runs.run_id).';
COMMENT ON COLUMN peak_buffers.allocation_index IS 'Allocation.';
COMMENT ON COLUMN peak_buffers.value_id IS 'Value that the compiler counts at that allocation''s peak.';
UPDATE alembic_version SET version_num='0002_siblings' WHERE alembic_version.version_num = '0001_core';
