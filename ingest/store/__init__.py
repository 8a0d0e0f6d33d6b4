"""The database: its schema, opening and upgrading it, staging rows and loading them.

Nothing is imported here: `--help` must not pay for DuckDB, SQLAlchemy and Arrow.
"""
