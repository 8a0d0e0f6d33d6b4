"""The database file: its tables, making, opening and upgrading it, locks, the writer, snapshots.

Nothing is imported here: `--help` must not pay for DuckDB and SQLAlchemy.
"""
