"""Features that a dump's text can show; `runs.format` lists them.

XLA stamps no version on a dump, so readers go by features (FORMAT eras E0 to E9d). Each name is an API.
"""

from __future__ import annotations

from typing import Final

POINTER: Final = "pointer"
"""Allocation headers print a heap address (TF <= 2.10)."""
LOGICAL_BUFFERS: Final = "logical_buffers"
"""Values are printed as `name[index](#id @color) [offset,size]: shape` (TF <= 1.14)."""
EMBEDDED_VALUES: Final = "embedded_values"
"""Values are multi-line blocks with positions and uses inside the allocation (TF 1.15)."""
PAGE: Final = "page"
"""Allocation headers print a page (jaxlib >= 0.11.1)."""
PARAMETER_SHAPE: Final = "parameter_shape"
"""Allocation headers print the shape of the parameter (TF >= 2.2)."""
COLOR_REUSE: Final = "color_reuse"
"""An allocation is reused by buffers of a different color (jaxlib >= 0.11.0)."""
TOTAL: Final = "total"
"""'Total bytes used' is printed."""
HUMAN_TOTAL: Final = "human_total"
"""... with its size for people in parentheses (TF >= 2.7)."""
USED_VALUES: Final = "used_values"
"""The section `Used values:` is there."""
USES_NONE: Final = "uses_none"
"""An empty `uses:` is printed as `(none)` (jaxlib >= 0.10.2)."""
FROM_INSTRUCTION: Final = "from_instruction"
"""` from instruction:` is printed (TF >= 2.7)."""
FROM_INSTRUCTION_BLANK: Final = "from_instruction_blank"
"""... with a blank after the colon (jaxlib >= 0.4.24)."""
GLUED_NEWLINE: Final = "glued_newline"
"""... without the newline that should end it (jaxlib 0.4.24 to 0.4.35)."""
MULTILINE_INSTRUCTION: Final = "multiline_instruction"
"""An instruction text holds raw line breaks."""
LIVE_RANGE: Final = "live_range"
"""The section `HloLiveRange` is there (TF >= 2.6)."""
LIVE_RANGE_UNAVAILABLE: Final = "live_range_unavailable"
"""XLA wrote `HloLiveRange not available` instead."""
PEAK: Final = "peak"
"""A peak list is printed."""
PEAK_UNBOUNDED: Final = "peak_unbounded"
"""XLA could not compute the peak: unbounded dynamic shape."""
PEAK_INDEX: Final = "peak_index"
"""The peak list prints shape indices (jaxlib >= 0.6.0)."""
PEAK_CUMULATIVE: Final = "peak_cumulative"
"""The peak list prints cumulative sizes (jaxlib >= 0.6.2)."""
STACK_TREE: Final = "stack_tree"
"""A stack-trace tree of the peak is printed (jaxlib >= 0.7.2)."""
SPLIT_FILES: Final = "split_files"
"""The set is split in files (jaxlib >= 0.10.0)."""


def without(feature: str) -> str:
    """Return the mark that some part of a dump lacks a feature which is a release's habit.

    Scanners set it with the feature; where both are set, the dump is not of one piece. It is no feature
    and goes no further (`ingest.dump.check.note_mixed`).
    """
    return f"-{feature}"


PROTOBUF_ALONE: Final = "protobuf_alone"
"""There was no text: allocations and values come from the protobuf."""
