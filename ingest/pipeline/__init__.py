"""One import from end to end: find, plan, read, load, record.

Nothing is imported here: `--help` must not pay for DuckDB and Arrow.
"""
