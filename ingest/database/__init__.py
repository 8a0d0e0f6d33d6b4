"""The database file: what its tables are."""
