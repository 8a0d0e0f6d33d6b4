"""What lies beside a dump, as far as it was read: HLO text and protobuf.

A sibling never costs the dump: what cannot be read of it becomes a notice.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ingest.dump.records import Notice
from ingest.errors import DumpError

if TYPE_CHECKING:
    from ingest.hlo.provenance import Sources
    from ingest.hlo.records import HloText

ROLES: Final = ("hlo", "proto")


class Source(NamedTuple):
    """Where an instruction comes from; see `ingest.hlo.provenance`."""

    file: str | None
    line: int | None
    via: str | None
    frame_id: int | None


def _all_framework(_: str | None) -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Siblings:
    """What was read beside one dump.

    Attributes:
        module: the HLO module, from its text where that is there, else from the protobuf.
        located: source line of each instruction of the module.
        sources: the same by the instruction's name.
        is_framework: tells a framework's files from the user's.
        heap_events: rows of `heap_events`.
        peak_buffers: rows of `peak_buffers`.
        sha256: SHA-256 of each member read, by role.
        notices: what could not be read, and what differs.
    """

    module: HloText | None = None
    located: Sources | None = None
    sources: Mapping[str, Source] = field(default_factory=dict)
    is_framework: Callable[[str | None], bool] = _all_framework
    heap_events: Sequence[tuple[Any, ...]] = ()
    peak_buffers: Sequence[tuple[Any, ...]] = ()
    sha256: Mapping[str, str] = field(default_factory=dict)
    notices: Sequence[Notice] = ()


NO_SIBLINGS: Final = Siblings()


def read_siblings(directory: str, members: Mapping[str, str]) -> Siblings:
    """Read what lies beside a dump.

    Args:
        directory: where the set lies.
        members: file name of each member by role; those of other roles are passed over.
    """
    if "hlo" not in members:
        return NO_SIBLINGS
    from ingest.hlo.frames import FrameworkRule, Stacks
    from ingest.hlo.provenance import locate
    from ingest.hlo.text import read_hlo_text

    path = os.path.join(directory, members["hlo"])
    try:
        module = read_hlo_text(path)
    except DumpError as error:
        return Siblings(notices=(Notice(path, error.line, error.kind, error.message, error.text),))
    rule = FrameworkRule.from_environment()
    located = locate(module.instructions, Stacks(module.frames, rule))
    rows = map(Source, located.file, located.line, located.via, located.frame_id)
    return Siblings(
        module,
        located,
        dict(zip(module.instructions.instruction, rows, strict=True)),
        rule,
        sha256={"hlo": module.content_sha256},
        notices=module.problems,
    )
