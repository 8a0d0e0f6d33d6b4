"""The few message definitions of XLA's protobufs that are needed, built at run time.

Field numbers are those of `xla/service/hlo.proto` and `xla/xla_data.proto` (FORMAT 8). Strings are declared
as bytes: XLA writes op_names that are no UTF-8, which a string field refuses. Enums are declared as int64:
a number of a later release is kept. Fields that are not declared are constants and configurations for the
most part; `ingest.hlo.fields` leaves them out where they are large.

Import this module late: it imports the protobuf runtime (25 ms).
"""

from __future__ import annotations

from typing import Any, Final

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_PACKAGE: Final = "xbuf.hlo"
_Field = descriptor_pb2.FieldDescriptorProto
_TYPES: Final = {"int": _Field.TYPE_INT64, "bytes": _Field.TYPE_BYTES, "bool": _Field.TYPE_BOOL}

# name: (number, type); a type in brackets is repeated, a type with a capital is a message from here.
_DEFINITIONS: Final[dict[str, dict[str, tuple[int, str]]]] = {
    "Tile": {"dimensions": (1, "[int]")},
    "SplitConfig": {"dimension": (1, "int"), "split_indices": (2, "[int]")},
    "Layout": {
        "minor_to_major": (1, "[int]"),
        "tiles": (6, "[Tile]"),
        "element_size_in_bits": (7, "int"),
        "memory_space": (8, "int"),
        "dim_level_types": (9, "[int]"),
        "physical_shape": (10, "Shape"),
        "index_primitive_type": (11, "int"),
        "pointer_primitive_type": (12, "int"),
        "dim_unique": (13, "[bool]"),
        "dim_ordered": (14, "[bool]"),
        "dynamic_shape_metadata_prefix_bytes": (15, "int"),
        "tail_padding_alignment_in_elements": (16, "int"),
        "split_configs": (17, "[SplitConfig]"),
    },
    "Shape": {
        "element_type": (2, "int"),
        "dimensions": (3, "[int]"),
        "tuple_shapes": (4, "[Shape]"),
        "layout": (5, "Layout"),
        "is_dynamic_dimension": (6, "[bool]"),
    },
    "Metadata": {
        "op_name": (2, "bytes"),
        "source_file": (3, "bytes"),
        "source_line": (4, "int"),
        "stack_frame_id": (15, "int"),
    },
    "Instruction": {
        "name": (1, "bytes"),
        "opcode": (2, "bytes"),
        # A ShapeProto, kept as bytes: few shapes are different, and equal bytes are printed once.
        "shape": (3, "bytes"),
        "metadata": (7, "Metadata"),
        "parameter_number": (9, "int"),
        "tuple_index": (13, "int"),
        "id": (35, "int"),
        "operand_ids": (36, "[int]"),
        "called_computation_ids": (38, "[int]"),
        # Not part of the program, see `ingest.hlo.program`.
        "channel_id": (26, "int"),
        "control_predecessor_ids": (37, "[int]"),
        "sharding": (40, "bytes"),
        "all_reduce_id": (45, "int"),
        "frontend_attributes": (68, "bytes"),
        "statistics": (82, "bytes"),
        "original_value": (88, "bytes"),
    },
    "Computation": {
        "name": (1, "bytes"),
        "instructions": (2, "[Instruction]"),
        "id": (5, "int"),
        "root_id": (6, "int"),
    },
    "ProgramShape": {"parameters": (1, "[Shape]"), "result": (2, "Shape")},
    "Sequence": {"instruction_ids": (1, "[int]")},
    "ScheduleEntry": {"key": (1, "int"), "value": (2, "Sequence")},
    "Schedule": {"sequences": (1, "[ScheduleEntry]")},
    "Alias": {
        "output_shape_index": (1, "[int]"),
        "parameter_number": (2, "int"),
        "parameter_shape_index": (3, "[int]"),
        "kind": (4, "int"),
    },
    "Aliases": {"entries": (1, "[Alias]")},
    "Donor": {"parameter_number": (1, "int"), "parameter_shape_index": (2, "[int]")},
    "Donors": {"entries": (1, "[Donor]")},
    "FileLocation": {
        "file_name_id": (1, "int"),
        "function_name_id": (2, "int"),
        "line": (3, "int"),
        "column": (4, "int"),
        "end_line": (5, "int"),
        "end_column": (6, "int"),
    },
    "StackFrame": {"file_location_id": (1, "int"), "parent_frame_id": (2, "int")},
    "FrameIndex": {
        "file_names": (1, "[bytes]"),
        "function_names": (2, "[bytes]"),
        "file_locations": (3, "[FileLocation]"),
        "stack_frames": (4, "[StackFrame]"),
    },
    "Replicas": {"replica_count": (1, "int"), "computation_count": (2, "int")},
    "Module": {
        "name": (1, "bytes"),
        "entry_computation_name": (2, "bytes"),
        "computations": (3, "[Computation]"),
        "program_shape": (4, "ProgramShape"),
        "entry_computation_id": (6, "int"),
        "schedule": (7, "Schedule"),
        "aliases": (8, "Aliases"),
        "replicas": (15, "Replicas"),
        "frames": (17, "FrameIndex"),
        "donors": (18, "Donors"),
    },
    "Location": {
        "computation_name": (1, "bytes"),
        "instruction_name": (2, "bytes"),
        "shape_index": (3, "[int]"),
        "instruction_id": (4, "int"),
    },
    "LogicalBuffer": {
        "id": (1, "int"),
        "size": (2, "int"),
        "defined_at": (3, "Location"),
        "color": (4, "int"),
    },
    "BufferAlias": {"source_buffer_id": (1, "int"), "location": (2, "Location")},
    "Assigned": {
        "logical_buffer_id": (1, "int"),
        "offset": (2, "int"),
        "size": (3, "int"),
        "element_type": (4, "int"),
    },
    "Allocation": {
        "index": (1, "int"),
        "size": (2, "int"),
        "is_thread_local": (3, "bool"),
        "is_parameter": (5, "bool"),
        "parameter_number": (6, "int"),
        "maybe_live_out": (7, "bool"),
        "color": (8, "int"),
        "assigned": (9, "[Assigned]"),
        "parameter_index": (10, "[int]"),
        "is_tuple": (11, "bool"),
        "is_constant": (12, "bool"),
        "is_aliased": (13, "bool"),
    },
    "PeakBuffers": {"index": (1, "int"), "logical_buffer_ids": (2, "[int]")},
    "Event": {
        "kind": (1, "int"),
        "buffer_id": (2, "int"),
        "computation_name": (3, "bytes"),
        "instruction_name": (4, "bytes"),
        "share_with_canonical_id": (5, "int"),
    },
    "HeapTrace": {"events": (1, "[Event]"), "whole_module": (2, "bool")},
    "Assignment": {
        "buffers": (1, "[LogicalBuffer]"),
        "aliases": (2, "[BufferAlias]"),
        "allocations": (3, "[Allocation]"),
        "traces": (4, "[HeapTrace]"),
        "peak_buffers": (5, "[PeakBuffers]"),
    },
}


def _build() -> dict[str, Any]:
    file = descriptor_pb2.FileDescriptorProto(name="xbuf/hlo.proto", package=_PACKAGE, syntax="proto3")
    for name, fields in _DEFINITIONS.items():
        message = file.message_type.add(name=name)
        for field, (number, type_) in fields.items():
            plain = type_.strip("[]")
            label = _Field.LABEL_OPTIONAL if plain == type_ else _Field.LABEL_REPEATED
            added = message.field.add(name=field, number=number, label=label)
            if plain in _TYPES:
                added.type = _TYPES[plain]
            else:
                added.type = _Field.TYPE_MESSAGE
                added.type_name = f".{_PACKAGE}.{plain}"
    # A pool of its own: TensorFlow in the same process has these messages under XLA's names.
    pool = descriptor_pool.DescriptorPool()
    pool.AddSerializedFile(file.SerializeToString())
    return {
        name: message_factory.GetMessageClass(pool.FindMessageTypeByName(f"{_PACKAGE}.{name}"))
        for name in _DEFINITIONS
    }


# Built classes have no static type; `ingest.hlo.proto` turns what they hold into records at once.
_CLASSES: Final[dict[str, Any]] = _build()
Aliases = _CLASSES["Aliases"]
Allocation = _CLASSES["Allocation"]
Assignment = _CLASSES["Assignment"]
Computation = _CLASSES["Computation"]
Donors = _CLASSES["Donors"]
FrameIndex = _CLASSES["FrameIndex"]
HeapTrace = _CLASSES["HeapTrace"]
Instruction = _CLASSES["Instruction"]
Module = _CLASSES["Module"]
Schedule = _CLASSES["Schedule"]
Sequence = _CLASSES["Sequence"]
Shape = _CLASSES["Shape"]
