"""Texts of a dump whose primary file is missing: put on what the protobuf says of the same module.

The protobuf has the allocations and the values; `-buffer-assignment-values.txt` adds positions, uses and
instruction texts as XLA printed them, `-live-range.txt` the schedule, the live ranges and the peak. A text
that is damaged, or of another compilation than the protobuf, is left out with a notice; the rest loads.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import fields
from typing import Final

from ingest.dump.content import TooMuchText, is_unreachable
from ingest.dump.driver import Driver
from ingest.dump.lists import Lists
from ingest.dump.locate import locate
from ingest.dump.names import ROLES, TEXT_ROLES
from ingest.dump.notices import note
from ingest.dump.parsed import ParsedDump
from ingest.dump.records import Notice
from ingest.errors import DumpError
from ingest.hlo.assignment import HloProto

MAX_BYTES: Final = 48 << 20
"""Text of a file that is used; parsed whole it takes ten times as much memory."""


def add_lone_texts(dump: ParsedDump, proto: HloProto, paths: Mapping[str, str]) -> None:
    """Add to a dump that was made of a protobuf what the texts next to it say, and a notice.

    Args:
        dump: as `ingest.staging.sidecars.dump_of_proto` makes it.
        proto: the protobuf.
        paths: where each member lies, by role.
    """
    texts = [role for role in TEXT_ROLES if role in paths]
    if not texts:
        return
    named = " and ".join(os.path.basename(paths[role]) for role in texts)
    message = f"loaded from the protobuf, as *{ROLES['primary'][0]} is missing next to {named}; copy it there"
    note(dump.notices, [Notice(paths["proto"], None, "no-primary", message)])
    for role in texts:
        file = paths[role]
        # On a copy, whose lists are its own: of a text that turns out to be damaged nothing may be kept.
        whole = copy(dump)
        whole.features, whole.sections = set(dump.features), set(dump.sections)
        whole.notices, whole.sha256 = deepcopy(dump.notices), dict(dump.sha256)
        try:
            _add(whole, proto, role, file, paths["proto"])
        except DumpError as error:
            if is_unreachable(error):
                raise
            locate(error, [file])
            reason = f"is left out, and the protobuf is loaded without it: {error.message}"
            note(dump.notices, [Notice(error.file, error.line, error.kind, reason, error.text)])
        except TooMuchText:
            reason = f"has more than {MAX_BYTES >> 20} MiB, and is left out without its primary file"
            note(dump.notices, [Notice(file, None, "too-much-text", reason)])
        else:
            for one in fields(dump):
                setattr(dump, one.name, getattr(whole, one.name))


def _add(dump: ParsedDump, proto: HloProto, role: str, file: str, proto_file: str) -> None:
    """Scan and check one text.

    Raises:
        DumpError: it is damaged, or of another compilation.
        TooMuchText: it is too large.
    """
    files = {"primary": proto_file, role: file}
    Driver(files, Lists(dump), dump, max_bytes=dump.text_bytes + MAX_BYTES).read_onto(role)
    if role == "live_range":
        _check_same_module(dump, proto, file)


def _check_same_module(dump: ParsedDump, proto: HloProto, file: str) -> None:
    """Require the instructions of schedule and live ranges to be instructions of the protobuf's module."""
    known = set(proto.instructions.instruction)
    ranged = [name for name, *_ in dump.ranges or ()]
    for section, names in (("sequence", dump.schedule or ()), ("ranges", ranged)):
        for name in names:
            if name not in known:
                message = f"the protobuf's module has no instruction {name}; is one of another compilation?"
                raise DumpError("value-mismatch", message, file=file, section=section)
