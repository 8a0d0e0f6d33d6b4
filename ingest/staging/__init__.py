"""From a dump set to rows in Parquet files, by workers, with no database open."""
