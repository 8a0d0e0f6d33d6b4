"""Find the HLO modules in a profile (`*.xplane.pb`), as JAX, TensorFlow and PyTorch/XLA take them.

A profile is an XSpace of planes. The plane `/host:metadata` has an HloProto for every module that ran, in a
stat `Hlo Proto` of its event metadata; releases before 2021 have it in stats of the plane itself. Device
planes hold the events, gigabytes maybe: these are stepped over unread, so memory and time do not grow with
them. Of each module only its place in the file is kept; `ingest.hlo.proto` reads it from there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import IO, Final, NamedTuple

from ingest.errors import DumpError
from ingest.hlo.budget import Budget
from ingest.hlo.wire import BYTES, VARINT, Field, Wire

KIND: Final = "profile"
"""Kind of the errors of this reader."""

# XSpace
_PLANES: Final = 1
_HOSTS: Final = 4
# XPlane
_NAME: Final = 2
_EVENTS: Final = 4
_STAT_NAMES: Final = 5
_STATS: Final = 6
# XEventMetadata, XStatMetadata: `_NAME` too
_EVENT_STATS: Final = 5
# XStat
_STAT_ID: Final = 1
_UNSIGNED: Final = 3
_SIGNED: Final = 4
_TEXT: Final = 5
_DATA: Final = 6
_REFERENCE: Final = 7
# A map's entry
_KEY: Final = 1
_VALUE: Final = 2

_METADATA: Final = "/host:metadata"
_ENVIRONMENT: Final = "Task Environment"
_DEVICE: Final = "/device:"
_HLO: Final = "hlo proto"
_LONGEST_NAME: Final = 64 << 10
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = 2**62
"""Nanoseconds since 1970 that a time has at most: the year 2116."""


class ProfiledModule(NamedTuple):
    """A module that ran, and where its HloProto lies in the uncompressed profile, bytes."""

    title: str
    """Name with the program's id as the profile has it: jit_step(6). Unique in the profile."""
    module_name: str
    offset: int
    length: int
    copied_to: int | None = None
    """Where it lies in the file of copies; None where none was made."""


class Profile(NamedTuple):
    """What a profile says of the modules that ran."""

    modules: tuple[ProfiledModule, ...]
    host: str | None
    """Name of the machine; None where the profile has none or several."""
    started: datetime | None
    """UTC, without time zone."""
    device_type: str | None
    """As the profiler names it, e.g. TPU v4."""
    backend: str | None
    """cpu, gpu or tpu: of the devices that were traced."""


class _Stat(NamedTuple):
    """A stat whose name is known only at the end of its plane."""

    id: int
    number: int | None
    text: str | None
    reference: int | None
    data: tuple[int, int] | None
    """Offset and length of bytes."""
    module_name: str | None
    """What these bytes name as an HloProto's module."""
    copied_to: int | None


def read_profile(path: str | os.PathLike[str], copies: Callable[[], IO[bytes]] | None = None) -> Profile:
    """Find the modules of a profile, plain or gzip.

    Args:
        path: the profile.
        copies: opens a file, at the end of which the modules are put as they pass by, where to read them
            again costs more: of a compressed profile, and of one that is in no folder. Else it is not called.

    Raises:
        DumpError: it cannot be read, is no profile, is cut off, or holds no HLO modules.
    """
    name = os.fspath(path)
    wire = Wire(name, Budget(), sys.maxsize, skips_unread=True)
    try:
        return _Reader(wire, None if copies is None or wire.rereads_ranges else copies()).read()
    except DumpError as error:
        raise DumpError(
            KIND, error.message, file=error.file, byte_offset=error.byte_offset
        ) from error.__cause__
    finally:
        wire.close()


class _Reader:
    """One pass over a profile."""

    def __init__(self, wire: Wire, copies: IO[bytes] | None) -> None:
        self._wire = wire
        self._copies = copies
        self._modules: dict[str, ProfiledModule] = {}
        self._hosts: list[str] = []
        self._started: datetime | None = None
        self._device_type: str | None = None
        self._backends: set[str] = set()

    def read(self) -> Profile:
        wire = self._wire
        planes = 0
        for field in wire.fields():
            if field.number == _PLANES and field.wire_type == BYTES:
                planes += self._plane(field)
            elif field.number == _HOSTS and field.wire_type == BYTES:
                self._hosts.append(self._text(field))
        if not planes:
            raise wire.error("the file is no profile: it has no planes")
        if not self._modules:
            raise wire.error(
                "the profile holds no HLO modules; take it while a compiled function runs, with"
                " enable_hlo_proto, which is on unless the profiler's options turn it off"
            )
        return Profile(
            tuple(self._modules.values()),
            self._hosts[0] if len(self._hosts) == 1 else None,
            self._started,
            self._device_type,
            next(iter(self._backends)) if len(self._backends) == 1 else None,
        )

    def _plane(self, plane: Field) -> bool:
        """Read a plane as far as it matters; say whether it is one: it has a name."""
        wire = self._wire
        name = ""
        stats: list[_Stat] = []
        of_events: list[tuple[str, _Stat]] = []
        names: dict[int, str] = {}
        for field in wire.fields(plane.value):
            if field.number == _NAME and field.wire_type == BYTES:
                name = self._text(field)
                if not name.startswith((_METADATA, _ENVIRONMENT, _DEVICE)):
                    return True
            elif field.wire_type != BYTES:
                continue
            elif field.number == _STAT_NAMES:
                id_, text = self._stat_name(field)
                names[id_] = text
            elif field.number == _STATS:
                stats.append(self._stat(field))
            elif field.number == _EVENTS and name == _METADATA:
                of_events += self._event(field)
        if name == _METADATA:
            self._add_modules(of_events + [("", stat) for stat in stats], names)
        elif name == _ENVIRONMENT:
            self._add_start(stats, names)
        elif name.startswith(_DEVICE):
            self._add_device(name, stats, names)
        for stat in stats:
            # JAX names the platform that it runs on in a stat such as `cpu_version`.
            platform, _, rest = names.get(stat.id, "").partition("_")
            if name == _METADATA and rest == "version" and platform in ("cpu", "gpu", "tpu"):
                self._backends.add(platform)
        return bool(name)

    def _event(self, entry: Field) -> list[tuple[str, _Stat]]:
        """Return the stats of an event's metadata, each with the event's name."""
        title = ""
        stats: list[_Stat] = []
        for part in self._wire.fields(entry.value):
            if part.number != _VALUE or part.wire_type != BYTES:
                continue
            for field in self._wire.fields(part.value):
                if field.number == _NAME and field.wire_type == BYTES:
                    title = self._text(field)
                elif field.number == _EVENT_STATS and field.wire_type == BYTES:
                    stats.append(self._stat(field))
        return [(title, stat) for stat in stats]

    def _stat(self, stat: Field) -> _Stat:
        wire = self._wire
        wire.count()
        found = _Stat(0, None, None, None, None, None, None)
        for field in wire.fields(stat.value):
            if field.wire_type == VARINT:
                if field.number == _STAT_ID:
                    found = found._replace(id=field.value)
                elif field.number in (_UNSIGNED, _SIGNED):
                    found = found._replace(number=field.value)
                elif field.number == _REFERENCE:
                    found = found._replace(reference=field.value)
            elif field.wire_type == BYTES and field.number == _TEXT:
                found = found._replace(text=self._text(field))
            elif field.wire_type == BYTES and field.number == _DATA:
                found = found._replace(data=(wire.position, field.value))
                name, copied_to = self._copied(field)
                found = found._replace(module_name=name, copied_to=copied_to)
        return found

    def _copied(self, data: Field) -> tuple[str | None, int | None]:
        """Return the name of bytes that may be an HloProto, and where a copy of them was put."""
        wire, copies = self._wire, self._copies
        if copies is None:
            return self._module_name(data), None
        start, end = copies.tell(), wire.position + data.value
        wire.begin_copy(copies)
        name = self._module_name(data)
        if name is not None:
            wire.step_to(end)
        wire.end_copy()
        if name is None:
            copies.seek(start)
            return None, None
        return name, start

    def _module_name(self, data: Field) -> str | None:
        """Return what some bytes name as an HloProto's module; None if they cannot be one."""
        wire = self._wire
        try:
            for field in wire.fields(data.value):
                if field.number != 1 or field.wire_type != BYTES:
                    return None
                for part in wire.fields(field.value):
                    is_name = part.number == 1 and part.wire_type == BYTES
                    return self._text(part) if is_name and part.value <= _LONGEST_NAME else None
        except DumpError:
            pass  # other bytes than an HloProto; where the file ends in them, stepping over them says so
        return None

    def _stat_name(self, entry: Field) -> tuple[int, str]:
        id_, name = 0, ""
        for part in self._wire.fields(entry.value):
            if part.number == _KEY and part.wire_type == VARINT:
                id_ = part.value
            elif part.number == _VALUE and part.wire_type == BYTES:
                for field in self._wire.fields(part.value):
                    if field.number == _NAME and field.wire_type == BYTES:
                        name = self._text(field)
        return id_, name

    def _add_modules(self, stats: list[tuple[str, _Stat]], names: dict[int, str]) -> None:
        for event, stat in stats:
            if names.get(stat.id, "").lower().replace("_", " ") != _HLO or not stat.module_name:
                continue
            assert stat.data is not None  # the name was found in it
            title = named = event or stat.module_name
            number = 1
            while title in self._modules:
                number += 1
                title = f"{named}.{number}"
            self._modules[title] = ProfiledModule(title, stat.module_name, *stat.data, stat.copied_to)

    def _add_start(self, stats: list[_Stat], names: dict[int, str]) -> None:
        for stat in stats:
            if names.get(stat.id) == "profile_start_time" and 0 < (stat.number or 0) < _LATEST:
                time = _EPOCH + timedelta(microseconds=(stat.number or 0) // 1000)
                self._started = time.replace(tzinfo=None)

    def _add_device(self, name: str, stats: list[_Stat], names: dict[int, str]) -> None:
        backend = name.removeprefix(_DEVICE).partition(":")[0].lower()
        if backend in ("gpu", "tpu"):
            self._backends.add(backend)
        for stat in stats:
            if names.get(stat.id) == "device_type_string":
                text = stat.text if stat.reference is None else names.get(stat.reference)
                self._device_type = self._device_type or text

    def _text(self, field: Field) -> str:
        wire = self._wire
        if field.value > _LONGEST_NAME:
            raise wire.error(f"a name of {field.value:,} bytes is longer than any that a profiler writes")
        wire.count(0, field.value)
        return wire.take(field.value).decode(errors="replace")
