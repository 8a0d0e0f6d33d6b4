"""What a database holds, whatever place its dumps were read from."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import duckdb

_NOT_COMPARED = {
    "run_id",
    "import_id",
    "ingested_at",
    "dump_dir",
    "mtime_ns",
    "etag",
}
_NOT_CONTENT = {"alembic_version", "saved_queries", "imports", "rejects"}


def content_of(database: Path, root: str) -> dict[str, Counter[str]]:
    """Return the rows of all tables as texts; places are those below `root`, runs known by place and stem."""
    with duckdb.connect(str(database), read_only=True) as connection:
        connection.execute("SET VARIABLE root = $root", {"root": root})
        tables: dict[str, list[str]] = {}
        for table, column in connection.execute(
            "SELECT table_name, column_name FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal"
            " AND table_name IN (SELECT table_name FROM duckdb_tables())"
        ).fetchall():
            tables.setdefault(table, []).append(column)
        found = {}
        for table, columns in tables.items():
            if table in _NOT_CONTENT:
                continue
            kept = ", ".join(f't."{column}"' for column in columns if column not in _NOT_COMPARED)
            rows = connection.execute(
                f"SELECT replace(r.dump_dir, getvariable('root'), '') || ' ' || r.stem || ' ' ||"
                f" replace(row({kept})::VARCHAR, getvariable('root'), '')"
                f' FROM "{table}" AS t JOIN runs AS r USING (run_id)'
                if table != "runs"
                else "SELECT replace(r.dump_dir, getvariable('root'), '') || ' ' || r.stem || ' ' ||"
                f" row({kept.replace('t.', 'r.')})::VARCHAR FROM runs AS r"
            ).fetchall()
            found[table] = Counter(text for (text,) in rows)
        return found
