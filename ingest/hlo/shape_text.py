"""Print a ShapeProto as XLA prints shapes with layout (FORMAT 6)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from types import MappingProxyType
from typing import Any, Final

PRIMITIVE_TYPES: Final = MappingProxyType(
    {
        1: "pred", 2: "s8", 3: "s16", 4: "s32", 5: "s64", 6: "u8", 7: "u16", 8: "u32", 9: "u64",
        10: "f16", 11: "f32", 12: "f64", 13: "tuple", 14: "opaque", 15: "c64", 16: "bf16", 17: "token",
        18: "c128", 19: "f8e5m2", 20: "f8e4m3fn", 21: "s4", 22: "u4", 23: "f8e4m3b11fnuz",
        24: "f8e5m2fnuz", 25: "f8e4m3fnuz", 26: "s2", 27: "u2", 28: "f8e4m3", 29: "f8e3m4", 30: "s1",
        31: "u1", 32: "f4e2m1fn", 33: "f8e8m0fnu", 34: "buffer", 35: "f6e3m2fn", 36: "f6e2m3fn",
    }
)  # fmt: skip
"""Names by the numbers of PrimitiveType in `xla/xla_data.proto` (read from jaxlib 0.10.2)."""

_TUPLE, _OPAQUE, _TOKEN, _BUFFER = 13, 14, 17, 34
_UNBOUNDED: Final = -(2**63)
"""Size of a dimension without bound, and of a tile's entry that combines dimensions."""

_LEVELS: Final = "DCSH"
"""Dense, compressed, singleton, loose-compressed: DimLevelType 0 to 3."""


def dtype_of(number: int) -> str | None:
    """Return the name of a PrimitiveType; None for 0, `type_99` for a number that is not known yet."""
    return PRIMITIVE_TYPES.get(number, f"type_{number}") if number else None


def part_of(shape: Any, index: Sequence[int]) -> Any | None:
    """Return the part of a ShapeProto at a ShapeIndex; None if it has no such part."""
    for at in index:
        if not 0 <= at < len(shape.tuple_shapes):
            return None
        shape = shape.tuple_shapes[at]
    return shape


def shape_indexes(shape: Any, index: tuple[int, ...] = ()) -> Iterator[tuple[int, ...]]:
    """Yield the ShapeIndex of a ShapeProto and of all its parts, parents before their parts."""
    yield index
    for at, part in enumerate(shape.tuple_shapes):
        yield from shape_indexes(part, (*index, at))


def shape_text(shape: Any, *, layout: bool = True) -> str:
    """Return the text of a ShapeProto, with `/*index=5*/` in tuples as since TF 2.5.

    Nesting is bounded by the runtime, which refuses messages more than 100 deep.
    """
    type_ = shape.element_type
    if type_ == _TUPLE:
        return tuple_text(shape_text(part, layout=layout) for part in shape.tuple_shapes)
    if type_ == _BUFFER:
        inner = "".join(shape_text(part, layout=layout) for part in shape.tuple_shapes)
        return f"b({inner})"
    dimensions = shape.dimensions
    if any(shape.is_dynamic_dimension):
        sizes = [_dimension(shape, at) for at in range(len(dimensions))]
    else:
        sizes = [str(size) for size in dimensions]
    text = f"{dtype_of(type_) or 'invalid'}[{','.join(sizes)}]"
    if not layout or type_ in (_TOKEN, _OPAQUE) or not shape.HasField("layout"):
        return text
    attributes = _attributes(shape.layout)
    if not dimensions and not attributes:
        return text
    order = ",".join(map(str, shape.layout.minor_to_major))
    return f"{text}{{{order}:{attributes}}}" if attributes else f"{text}{{{order}}}"


def tuple_text(parts: Iterable[str]) -> str:
    """Return the text of a tuple of shapes; every fifth element has its number before it."""
    numbered = (f"/*index={at}*/{part}" if at and at % 5 == 0 else part for at, part in enumerate(parts))
    return f"({', '.join(numbered)})"


def _dimension(shape: Any, at: int) -> str:
    size, dynamic = shape.dimensions[at], shape.is_dynamic_dimension
    if at >= len(dynamic) or not dynamic[at]:
        return str(size)
    return "?" if size == _UNBOUNDED else f"<={size}"


def _attributes(layout: Any) -> str:
    """Return what stands after the colon of a layout, in XLA's order."""
    text = ""
    if layout.dim_level_types:
        text += f"D({','.join(_levels(layout))})"
    if layout.tiles:
        text += "T" + "".join(f"({','.join(map(_tile_size, tile.dimensions))})" for tile in layout.tiles)
    if layout.tail_padding_alignment_in_elements not in (0, 1):
        text += f"L({layout.tail_padding_alignment_in_elements})"
    for mark, type_ in (("#", layout.index_primitive_type), ("*", layout.pointer_primitive_type)):
        if type_:
            text += f"{mark}({dtype_of(type_)})"
    if layout.element_size_in_bits:
        text += f"E({layout.element_size_in_bits})"
    if layout.memory_space:
        text += f"S({layout.memory_space})"
    if layout.split_configs:
        text += "SC" + "".join(
            f"({split.dimension}:{','.join(map(str, split.split_indices))})" for split in layout.split_configs
        )
    if layout.HasField("physical_shape"):
        text += f"P({shape_text(layout.physical_shape)})"
    if layout.dynamic_shape_metadata_prefix_bytes:
        text += f"M({layout.dynamic_shape_metadata_prefix_bytes})"
    return text


def _levels(layout: Any) -> Iterable[str]:
    for at, level in enumerate(layout.dim_level_types):
        text = _LEVELS[level] if 0 <= level < len(_LEVELS) else "?"
        if at < len(layout.dim_unique) and not layout.dim_unique[at]:
            text += "+"
        if at < len(layout.dim_ordered) and not layout.dim_ordered[at]:
            text += "~"
        yield text


def _tile_size(size: int) -> str:
    return "*" if size == _UNBOUNDED else str(size)
