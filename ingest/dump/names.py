"""Read what the file names of a dump say: which files belong together, and what was compiled.

XLA names a file `[timestamp.]module_NNNN[.module name][.cl_number].[target_]stage` plus an ending that
says what it holds (FORMAT 7). Module names and targets hold dots; a module name that would make the file
name longer than 255 characters is left out by XLA.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import Final, NamedTuple

CACHED_PROTO: Final = ".hlo_proto.pb"
"""Ending of a module that XProf keeps of a profile, in the profile's folder."""

ROLES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "primary": ("-buffer-assignment.txt",),
        "values": ("-buffer-assignment-values.txt",),
        "live_range": ("-live-range.txt",),
        "hlo": (".txt",),
        "proto": (".hlo.pb", ".hlo.pb.gz", CACHED_PROTO),
    }
)
"""Roles of a set's files in their fixed order, with the endings that distinguish them.

A text may carry one of `TEXT_COMPRESSIONS` after its ending. `.txt` is `hlo` only after a stem of XLA's
own naming: any text file ends so.
"""

TEXT_ROLES: Final = ("primary", "values", "live_range")
"""Roles of the files that hold the dump's own text; the others are of the module that it belongs to."""

PROFILES: Final = (".xplane.pb", ".xplane.pb.gz")
"""Endings of profiles, each of which may hold the protobufs of many modules."""

TEXT_COMPRESSIONS: Final = (".gz", ".zst", ".zstd")
"""Endings of compressed texts; XLA writes none, people who keep dumps do."""

_PRIMARY, _VALUES, _LIVE_RANGE, _HLO = (ROLES[role][0] for role in ("primary", "values", "live_range", "hlo"))
_PROTOS: Final = ROLES["proto"]

_MAX_ID: Final = 2**63 - 1
_EPOCH: Final = datetime(1970, 1, 1)
# XLA is younger than 2000, and a number of microseconds beyond 2200 is no time.
_FIRST_TIME, _LAST_TIME = datetime(2000, 1, 1), datetime(2200, 1, 1)

_XLA_NAME: Final = re.compile(r"(?:\d+\.)?module_\d{4,}\.", re.ASCII)
_XLA_HLO: Final = re.compile(
    r"(?:\d+\.)?module_\d{4,}\..*(?<![^._])after_optimizations\.txt", re.ASCII | re.DOTALL
)
_STEM: Final = re.compile(
    r"""
    (?: (?P<time>\d+) \. )?
    module_(?P<id>\d{4,})
    # Lazy: a name is there only if the rest is no target and stage by itself (`module_0063.sm_9.0a_gpu_...`).
    (?: \. (?P<name>.*?) )??
    \. (?: (?P<target> (?:sm_\d+\.\d+[a-z]*_ | [^.]*_)?? (?P<backend>cpu|gpu|tpu) )_ )?
    (?P<stage> (?:after|before)_optimizations )
    """,
    re.ASCII | re.DOTALL | re.VERBOSE,
)
_NUMBERED: Final = re.compile(r"(?:(?P<time>\d+)\.)?module_(?P<id>\d{4,})(?:\.|$)", re.ASCII)
_CL_TARGET: Final = re.compile(r"(?:(.*)\.)?(cl_\d+)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class DumpName:
    """What the stem of a dump set says; None is what it does not say."""

    module_id: int | None = None
    module_name: str | None = None
    target: str | None = None
    """cpu, gpu, sm_9.0a_gpu, gfx90a_gpu or cl_933746096."""
    backend: str | None = None
    """cpu, gpu or tpu; None also for TensorFlow <= 2.5 and old TPU releases, whose names are alike."""
    stage: str | None = None
    dump_time: datetime | None = None
    """UTC, without time zone."""


class MemberName(NamedTuple):
    """A file name cut in two."""

    stem: str
    role: str


def parse_stem(stem: str) -> DumpName:
    """Return what the stem of a dump set says.

    A stem that only starts as XLA's naming gives its number and time; any other gives nothing.
    """
    match = _STEM.fullmatch(stem)
    if match is None:
        match = _NUMBERED.match(stem)
        if match is None:
            return DumpName()
        return DumpName(module_id=_module_id(match["id"]), dump_time=_time(match["time"]))
    name, target, backend = match["name"], match["target"], match["backend"]
    if target is None and name and (cl := _CL_TARGET.fullmatch(name)):
        name, target, backend = cl[1], cl[2], "tpu"
    return DumpName(
        _module_id(match["id"]), name or None, target, backend, match["stage"], _time(match["time"])
    )


def split_member(file_name: str) -> MemberName | None:
    """Cut a file name into its set's stem and its role; None when its name has no role.

    `..._after_buffer_assignment.txt`, `-memory-usage-report.txt` and the like have no role.
    """
    text = file_name
    if not file_name.endswith(".txt"):
        if file_name.endswith(_PROTOS):
            stem = next(file_name.removesuffix(one) for one in _PROTOS if file_name.endswith(one))
            return MemberName(stem, "proto") if stem else None
        text = without_compression(file_name)
        if not text.endswith(".txt") or text is file_name:
            return None
    if text.endswith(_PRIMARY):
        member = MemberName(text[: -len(_PRIMARY)], "primary")
    elif text.endswith(_VALUES):
        member = MemberName(text[: -len(_VALUES)], "values")
    elif text.endswith(_LIVE_RANGE):
        member = MemberName(text[: -len(_LIVE_RANGE)], "live_range")
    elif text.endswith("after_optimizations.txt") and _XLA_HLO.fullmatch(text):
        member = MemberName(text[: -len(_HLO)], "hlo")
    else:
        return None
    return member if member.stem else None


def without_compression(file_name: str) -> str:
    """Return a file name without the ending of its compression."""
    for ending in TEXT_COMPRESSIONS:
        if file_name.endswith(ending):
            return file_name[: -len(ending)]
    return file_name


def is_xla_named(file_name: str) -> bool:
    """Return whether a file carries XLA's own naming, so that its name alone decides its role."""
    return _XLA_NAME.match(file_name) is not None


def _module_id(digits: str) -> int | None:
    """Return the number unless BIGINT cannot hold it."""
    if len(digits) > 19:
        return None
    number = int(digits)
    return number if number <= _MAX_ID else None


def _time(digits: str | None) -> datetime | None:
    """Return the time of a prefix in microseconds; None for a number that is no time."""
    if digits is None or len(digits) > 16:
        return None
    time = _EPOCH + timedelta(microseconds=int(digits))
    return time if _FIRST_TIME <= time < _LAST_TIME else None
