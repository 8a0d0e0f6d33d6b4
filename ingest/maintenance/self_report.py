"""What a report of a fault should say of an installation and its database, without anybody's names.

Counts, kinds and versions only: no path, no module, no label, unless they are asked for.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import duckdb

from ingest.database.connect import open_database
from ingest.database.revision import HEAD
from ingest.database.tables import TABLES
from ingest.errors import DatabaseError
from ingest.maintenance.doctor import Finding
from ingest.version import VERSION

_TABLES = {
    "Formats": """
        SELECT count(*) AS runs, backend, uses_from, ranges_from,
            array_to_string(list_sort(format), ' ') AS features
        FROM runs GROUP BY ALL ORDER BY ALL DESC
    """,
    "Files": "SELECT role, count(*) AS files FROM run_files GROUP BY ALL ORDER BY ALL",
    "Imports": "SELECT tool_version, status, count(*) AS imports FROM imports GROUP BY ALL ORDER BY ALL",
    "Rejects": "SELECT kind, section, count(*) AS rejects FROM rejects GROUP BY ALL ORDER BY ALL",
    "Notices": "SELECT kind, count(*) AS notices FROM notices GROUP BY ALL ORDER BY ALL",
}
_NAMED = {
    "Latest rejects": "SELECT file, line, message FROM rejects ORDER BY import_id DESC, file, line LIMIT 5",
    "Latest notices": "SELECT file, line, message FROM notices ORDER BY run_id DESC, file, line LIMIT 5",
}


def self_report(database: str, findings: Sequence[Finding], *, with_names: bool = False) -> str:
    """Return the report, in Markdown.

    Args:
        database: may be missing or damaged; the report then says so.
        findings: of `examine` on it.
        with_names: also what findings, rejects and notices say, with the paths of files.
    """
    return "\n".join(_lines(database, findings, with_names)) + "\n"


def _lines(database: str, findings: Sequence[Finding], with_names: bool) -> Iterator[str]:
    yield f"**xbuf {VERSION}**, schema {HEAD}"
    yield f"{platform.python_implementation()} {platform.python_version()}; {_packages()}"
    yield f"{platform.system()} {platform.release()} {platform.machine()}, {_memory()}\n"
    yield from _table(
        "Checks",
        ("check", "result", *(("text",) if with_names else ())),
        ((one.check, one.level, *((one.text,) if with_names else ())) for one in findings),
    )
    try:
        with open_database(database, read_only=True) as connection:
            yield from _contents(connection, {**_TABLES, **(_NAMED if with_names else {})})
    except DatabaseError as error:
        yield str(error) if with_names else f"The database cannot be opened ({type(error).__name__})."


def _contents(connection: duckdb.DuckDBPyConnection, queries: Mapping[str, str]) -> Iterator[str]:
    counts = " UNION ALL ".join(
        f'SELECT {number} AS number, \'{name}\' AS "table", count(*) AS rows FROM "{name}"'
        for number, name in enumerate(TABLES)
    )
    rows = f'SELECT "table", rows FROM ({counts}) WHERE rows > 0 ORDER BY number'
    for title, query in {"Rows": rows, **queries}.items():
        try:
            result = connection.execute(query)
            heads = [column[0] for column in result.description or ()]
            yield from _table(title, heads, result.fetchall())
        except duckdb.Error as error:  # a damaged block, a table that somebody altered
            yield f"{title}: cannot be read ({type(error).__name__}).\n"


def _packages() -> str:
    """Name the packages that xbuf stands on, as they are installed."""
    try:
        needed = requires("xbuf") or []
    except PackageNotFoundError:  # run from a checkout that is not installed
        return "not installed as a package"
    names = [re.split(r"[^\w.-]", one, maxsplit=1)[0] for one in needed if "extra ==" not in one]
    return ", ".join(f"{name} {version(name)}" for name in sorted(names))


def _memory() -> str:
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    system = ""
    release = Path("/etc/os-release")
    if release.is_file():
        found = re.search(r'^PRETTY_NAME="?([^"\n]*)', release.read_text(encoding="utf-8"), re.MULTILINE)
        system = f"{found[1]}, " if found else ""
    return f"{system}{os.cpu_count()} cores, {size / 2**30:.0f} GiB"


def _table(title: str, heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Iterator[str]:
    cells = [["" if cell is None else str(cell).replace("|", "\\|") for cell in row] for row in rows]
    if cells:
        yield f"{title}:\n"
        yield f"| {' | '.join(heads)} |"
        yield f"|{' --- |' * len(heads)}"
        yield from (f"| {' | '.join(row)} |" for row in cells)
        yield ""
