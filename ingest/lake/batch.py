"""A batch: the files of one load, and the object by which anybody can complete it.

    URL/_batches/17.json     the files of batch 17 and its line in the history; removed when it is complete

The object is put once and never changed. From that moment the batch is sure to come: whoever finds it
completes it (`ingest.lake.commit`). One that says `abandoned` keeps a writer out that slept for longer than
files are kept.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ingest.errors import DatabaseError
from ingest.lake.durable import sync_file
from ingest.lake.files import DataFile
from ingest.lake.layout import BATCHES
from ingest.lake.store import Lake

_ABANDONED: Final = "abandoned"


class Abandoned(DatabaseError):
    """A batch was given up by `xbuf lake vacuum`, because nothing was heard of its writer for long."""


@dataclass(frozen=True, slots=True)
class Batch:
    """One load into a lake.

    Attributes:
        number: of the batch.
        import_row: its row in `imports`, but for `loaded`; None where the import has one that says all.
        runs: file of its rows of `runs`, in the folder of that table, before it is known which are new.
        files: those of other tables, by name.
        replace: delete the older runs of the same places.
        token: by which the one who put the object knows it again.
    """

    number: int
    import_row: Mapping[str, Any] | None
    runs: DataFile | None = None
    files: Mapping[str, DataFile] = field(default_factory=dict)
    replace: bool = False
    token: str = field(default_factory=lambda: secrets.token_hex(8))


def publish(lake: Lake, batch: Batch) -> None:
    """Put the object of a batch.

    Raises:
        Abandoned: it was given up meanwhile.
        DatabaseError: the store refuses.
    """
    if not lake.put_new(_key(batch.number), json.dumps(asdict(batch)).encode()):
        # Perhaps by our own request, of which the answer was lost.
        there = read_batch(lake, batch.number)
        if there is None or there.token != batch.token:
            raise Abandoned(f"{lake}: batch {batch.number} was given up meanwhile by a vacuum; run again")
    sync_file(lake, _key(batch.number))


def abandon(lake: Lake, number: int) -> bool:
    """Give up a batch that has no object; return False where it has one.

    Raises:
        DatabaseError: the store refuses.
    """
    given_up = lake.put_new(_key(number), json.dumps(_ABANDONED).encode())
    return given_up or read_batch(lake, number) is None


def open_batches(lake: Lake) -> list[int]:
    """Return the numbers of batches that have an object, ascending, with those that were given up.

    Raises:
        DatabaseError: the store refuses.
    """
    names = (name.removesuffix(".json") for name in lake.sizes(BATCHES))
    return sorted(int(name) for name in names if name.isdigit())


def read_batch(lake: Lake, number: int) -> Batch | None:
    """Read a batch; None where it is complete, or was given up.

    Raises:
        DatabaseError: the store refuses, or the object is damaged.
    """
    data = lake.read(_key(number))
    if data is None:
        return None
    try:
        fields = json.loads(data)
        if fields == _ABANDONED:
            return None
        runs = fields["runs"]
        return Batch(
            **{
                **fields,
                "runs": None if runs is None else DataFile(**runs),
                "files": {name: DataFile(**one) for name, one in fields["files"].items()},
            }
        )
    except (ValueError, TypeError, KeyError):
        raise DatabaseError(
            f"{lake.url(_key(number))}: is damaged; its dumps can be imported again once it is removed"
        ) from None


def remove_batch(lake: Lake, number: int) -> None:
    """Remove the object of a batch that is complete; somebody else may have done it.

    Raises:
        DatabaseError: the store refuses.
    """
    lake.remove(_key(number))


def _key(number: int) -> str:
    return f"{BATCHES}/{number}.json"
