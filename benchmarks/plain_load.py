"""What DuckDB alone needs for the finished rows: `python -m benchmarks.plain_load FOLDER DATABASE [tuned]`.

The rows of an import, every column of them, lie in one Parquet file a table; they go into a new database of
the same schema, in one transaction. `tuned` uses the settings of `ingest.pipeline.load`. Prints the seconds
from opening the database to its being closed.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import duckdb

from ingest.database.creation import create_at_head
from ingest.database.file import CONFIG
from ingest.pipeline.load import SETTINGS
from ingest.sql import literal


def export_rows(database: Path, folder: Path) -> int:
    """Write every table that has rows to FOLDER/TABLE.parquet; return the rows."""
    folder.mkdir(parents=True, exist_ok=True)
    total = 0
    with duckdb.connect(str(database), read_only=True, config=CONFIG) as connection:
        for (table,) in connection.execute(
            "SELECT table_name FROM duckdb_tables() WHERE table_name <> 'alembic_version'"
        ).fetchall():
            row = connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()
            if row and row[0]:
                total += int(row[0])
                place = literal(folder / f"{table}.parquet")
                connection.execute(f'COPY "{table}" TO {place} (FORMAT parquet, COMPRESSION lz4)')
    return total


def load_rows(folder: Path, database: Path, *, tuned: bool) -> float:
    """Load what `export_rows` wrote into a new database; return the seconds."""
    database.unlink(missing_ok=True)
    create_at_head(str(database))
    started = time.perf_counter()
    with duckdb.connect(str(database), config=CONFIG) as connection:
        for setting in SETTINGS if tuned else ():
            connection.execute(f"SET {setting}")
        connection.begin()
        for file in sorted(folder.glob("*.parquet")):
            connection.execute(
                f'INSERT INTO "{file.stem}" BY NAME SELECT * FROM read_parquet($file)', {"file": str(file)}
            )
        connection.commit()
    return time.perf_counter() - started


def main() -> None:
    """Load and print the seconds."""
    print(load_rows(Path(sys.argv[1]), Path(sys.argv[2]), tuned="tuned" in sys.argv[3:]))


if __name__ == "__main__":
    main()
