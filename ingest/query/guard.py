"""Which SQL may run: statements that read the database, and nothing else.

A read-only connection without external access is not enough: DuckDB lets SQL open the attached file itself,
so that `COPY ... TO 'xbuf.duckdb'` empties it and `read_blob('xbuf.duckdb')` ends the lock on it. What a
statement is comes from DuckDB's own parser: its type, and the tree of a SELECT.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from ingest.errors import UsageError

if TYPE_CHECKING:
    import duckdb

REFUSED_FUNCTIONS: Final = frozenset({
    # Files.
    "arrow_scan", "arrow_scan_dumb", "glob", "pandas_scan", "parquet_bloom_probe", "parquet_file_metadata",
    "parquet_full_metadata", "parquet_kv_metadata", "parquet_metadata", "parquet_scan", "parquet_schema",
    "python_map_function", "read_blob", "read_csv", "read_csv_auto", "read_duckdb", "read_json",
    "read_json_auto", "read_json_objects", "read_json_objects_auto", "read_ndjson", "read_ndjson_auto",
    "read_ndjson_objects", "read_parquet", "read_text", "sniff_csv",
    # SQL in a text, which no parser has seen yet.
    "json_execute_serialized_sql", "query", "query_table",
    # State of the process or of the file.
    "add_parquet_key", "checkpoint", "copy_database", "disable_logging", "disable_profile",
    "disable_profiling", "enable_logging", "enable_profile", "enable_profiling", "force_checkpoint", "getenv",
    "import_database", "nextval", "truncate_duckdb_logs", "write_log",
})  # fmt: skip
"""Functions that a SELECT must not call."""

_EXPLAIN: Final = re.compile(
    r"(?:\s|--[^\n]*\n|/\*.*?\*/)*EXPLAIN\b\s*(?:ANALYZE\b\s*)?(?:\(\s*(?:ANALYZE|FORMAT)\b[^()]*\))?",
    re.IGNORECASE | re.DOTALL,
)
_HINT: Final = "xbuf runs SELECT, FROM, DESCRIBE, SHOW, SUMMARIZE and EXPLAIN; --unsafe runs everything else"


def check_reads_only(connection: duckdb.DuckDBPyConnection, sql: str) -> None:
    """Make sure that a statement only reads the database.

    Views and macros of the database are not looked into: a connection without external access keeps them from
    files.

    Raises:
        UsageError: it is not one statement, or it could do something else.
        duckdb.Error: it cannot be parsed.
    """
    statements = connection.extract_statements(sql)
    if len(statements) != 1:
        raise UsageError(f"{len(statements)} statements given; xbuf runs one at a time")
    kind = statements[0].type.name
    if kind == "EXPLAIN":
        explained = _EXPLAIN.sub("", sql, count=1)
        if explained == sql:
            raise UsageError(f"this EXPLAIN cannot be checked; {_HINT}")
        check_reads_only(connection, explained)
        return
    if kind != "SELECT":
        raise UsageError(f"{kind.replace('_', ' ')} does more than read; {_HINT}")
    row = connection.execute("SELECT system.main.json_serialize_sql($1::VARCHAR)", [sql]).fetchone()
    tree = json.loads(row[0]) if row else {"error": True}
    if tree["error"]:
        # Of its own, DuckDB writes PRAGMA as SELECT.
        raise UsageError(f"this statement does more than read, or cannot be checked; {_HINT}")
    for node in _nodes(tree):
        name = str(node.get("function_name", "")).lower()
        if name in REFUSED_FUNCTIONS:
            raise UsageError(f"{name}() does more than read the database; --unsafe lets SQL call it")
        table = str(node.get("table_name", "")) if node.get("type") == "BASE_TABLE" else ""
        if re.search(r"[./\\]", table) and not _is_table(connection, table):
            raise UsageError(f"{table!r} would be a file; --unsafe lets SQL read files")


def _is_table(connection: duckdb.DuckDBPyConnection, name: str) -> bool:
    found = connection.execute(
        "SELECT 1 FROM system.main.duckdb_tables() WHERE table_name = $1"
        " UNION ALL SELECT 1 FROM system.main.duckdb_views() WHERE view_name = $1 LIMIT 1",
        [name],
    ).fetchone()
    return found is not None


def _nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """Yield every object of a tree, without recursion: SQL nests as deep as its author likes."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, dict):
            yield node
            waiting += node.values()
        elif isinstance(node, list):
            waiting += node
