"""Make a lake, look whose it is, bring its schema up to date.

The table `imports` is made last and carries the revision: where it is, all others are.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Final, NamedTuple

from ingest.database.revision import HEAD, revisions
from ingest.database.tables import TABLES
from ingest.display import display
from ingest.errors import DatabaseError, DatabaseTooNew, NotADatabase
from ingest.lake.durable import LOG, sync_file, sync_log
from ingest.lake.layout import LAKE_TABLES, REVISION, delta_schema
from ingest.lake.store import Lake, in_words

if TYPE_CHECKING:
    from deltalake import DeltaTable, Field

_LAST: Final = "imports"
_IN_ORDER: Final = (*(name for name in LAKE_TABLES if name != _LAST), _LAST)
_PROBE: Final = "_probe"


def exists(lake: Lake) -> bool:
    """Return whether there is a lake, of whatever revision.

    Raises:
        DatabaseError: the store is away or refuses.
        NotADatabase: there is a Delta table of somebody else's.
    """
    with in_words(lake):
        if lake.is_table(lake.root):
            raise _foreign(lake, lake.root)
        if not lake.is_table(lake.url(_LAST)):
            return False
    _revision(lake, lake.table(_LAST))
    return True


def create_lake(lake: Lake) -> bool:
    """Make a lake where there is none; return whether this made it.

    Of two that make it at once, each finds what the other has made. A kill leaves tables without `imports`,
    with which the next one goes on.

    Raises:
        DatabaseError: the store is away, refuses, or keeps no promise that commits need.
        NotADatabase: something else lies there.
    """
    if exists(lake):
        return False
    _probe(lake)
    for name in _IN_ORDER:
        _make_table(lake, name)
        if missing_fields(name, lake.table(name)):
            raise _foreign(lake, lake.url(name))
    sync_file(lake, "")
    return True


def open_imports(lake: Lake) -> DeltaTable:
    """Open the table `imports` of a lake at head.

    Raises:
        DatabaseError: there is no lake, it is of an older or newer revision, or the store refuses.
    """
    table = _open_last(lake)
    require_head(lake, table)
    return table


def _open_last(lake: Lake) -> DeltaTable:
    if not exists(lake):
        raise DatabaseError(f"{lake}: there is no lake; make one: xbuf-ingest DIR --lake {lake}")
    return lake.table(_LAST)


def require_head(lake: Lake, imports: DeltaTable) -> None:
    """Refuse a lake whose revision is not that of this xbuf.

    Raises:
        DatabaseTooNew: it is newer.
        DatabaseError: it is older.
    """
    revision = _revision(lake, imports)
    if revision == HEAD:
        return
    if revision in revisions():
        raise DatabaseError(
            f"{lake}: its schema is {revision}, this xbuf needs {HEAD}; bring it up to date:"
            f" xbuf lake upgrade {lake}"
        )
    raise DatabaseTooNew(
        f"{lake}: its schema {revision} is newer than this xbuf, which knows {HEAD}; upgrade xbuf"
    )


class Upgraded(NamedTuple):
    """What an upgrade did.

    Attributes:
        before: revision that the lake was of.
        after: revision that it is of now.
        columns: columns added, as TABLE.COLUMN.
    """

    before: str
    after: str
    columns: tuple[str, ...]


def upgrade_lake(lake: Lake) -> Upgraded:
    """Add the tables and columns that a lake of an older revision lacks; no file is written anew.

    The revision is set last, so that a kill leaves a lake of the older one, with columns that it does not
    know; what was written before reads as NULL.

    Raises:
        DatabaseError: there is no lake, or it is newer, or the store refuses.
    """
    imports = _open_last(lake)
    before = _revision(lake, imports)
    if before == HEAD:
        return Upgraded(before, before, ())
    if before not in revisions():
        require_head(lake, imports)
    added: list[str] = []
    for name in _IN_ORDER:
        if _make_table(lake, name):
            continue
        table = lake.table(name)
        if missing := missing_fields(name, table):
            with in_words(lake, name):
                table.alter.add_columns(missing)
            sync_log(lake, name, 0)
            added += [f"{name}.{field.name}" for field in missing]
    with in_words(lake, _LAST):
        lake.table(_LAST).alter.set_table_properties({REVISION: HEAD}, raise_if_not_exists=False)
    sync_log(lake, _LAST, 0)
    return Upgraded(before, HEAD, tuple(added))


def _make_table(lake: Lake, name: str) -> bool:
    """Make a table where there is none; return whether this made it."""
    from deltalake import DeltaTable
    from deltalake.exceptions import CommitFailedError, DeltaError

    with in_words(lake, name):
        if lake.is_table(lake.url(name)):
            return False
        try:
            DeltaTable.create(
                lake.url(name),
                delta_schema(name),
                name=name,
                description=TABLES[name].comment,
                configuration={REVISION: HEAD} if name == _LAST else None,
                storage_options=lake.storage_options,
                raise_if_key_not_exists=False,
            )
        except (CommitFailedError, DeltaError):
            # Another process may have made it at this moment.
            if not lake.is_table(lake.url(name)):
                raise
            return False
    sync_log(lake, name, 0)
    for place in (f"{name}/{LOG}", name):
        sync_file(lake, place)
    return True


def _probe(lake: Lake) -> None:
    """Make sure that the store refuses to put an object that is there, and lists what was put.

    Raises:
        DatabaseError: it does not; commits of two writers would destroy each other.
    """
    key = f"{_PROBE}-{secrets.token_hex(8)}"
    lake.put_new(key, b"1")
    try:
        if lake.put_new(key, b"2"):
            raise DatabaseError(
                f"{lake}: the store overwrites what a conditional put (If-None-Match: *) must leave"
                " alone, so two writers would destroy each other's work; use a store that keeps to it"
                " (S3, Google Cloud Storage, Azure, SeaweedFS 4) or a folder"
            )
        if key not in lake.sizes(""):
            raise DatabaseError(
                f"{lake}: the store does not list an object that was put a moment ago; use another one"
            )
    finally:
        lake.remove(key)


def _revision(lake: Lake, imports: DeltaTable) -> str:
    with in_words(lake, _LAST):
        revision = imports.metadata().configuration.get(REVISION)
    if revision is None:
        raise _foreign(lake, lake.url(_LAST))
    return str(revision)


def missing_fields(name: str, table: DeltaTable) -> list[Field]:
    """Return the columns of one of our tables that an open one lacks."""
    has = {field.name for field in table.schema().fields}
    return [field for field in delta_schema(name).fields if field.name not in has]


def _foreign(lake: Lake, place: str) -> NotADatabase:
    return NotADatabase(
        f"{display(place)}: is a Delta table of something else; it is left untouched: name another place than"
        f" {lake}"
    )
