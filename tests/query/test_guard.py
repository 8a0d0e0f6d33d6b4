"""SQL without --unsafe reads the database and nothing else; a foreign file reaches nothing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest

from ingest.database.connect import create, open_database
from ingest.errors import NotADatabase, UsageError
from ingest.maintenance.export import export_database
from ingest.query.guard import REFUSED_FUNCTIONS, check_reads_only
from ingest.query.run import run_sql

READING = (
    "FROM runs",
    "TABLE runs",
    "VALUES (1)",
    "DESCRIBE runs",
    "SHOW TABLES",
    "SUMMARIZE runs",
    "PIVOT runs ON backend IN ('cpu') USING count(*)",
    "WITH r AS MATERIALIZED (FROM runs) SELECT count(*) FROM r",
    "EXPLAIN FROM runs",
    "explain analyze FROM runs",
    "-- first\nEXPLAIN (FORMAT json) FROM runs;",
    "EXPLAIN (SELECT 1)",
    "FROM runs AS a JOIN range(3) AS b ON a.run_id = b.range",
)
BY_STATEMENT_TYPE = {
    "ALTER": ("ALTER TABLE runs ADD COLUMN b INTEGER", "COMMENT ON TABLE runs IS 'a'"),
    "ATTACH": ("ATTACH '{file}' AS a", "ATTACH 'a.duckdb'"),
    "CALL": ("CALL checkpoint()", "CHECKPOINT", "FORCE CHECKPOINT", "CALL enable_logging()"),
    "COPY": (
        "COPY (SELECT 42) TO '{file}' (FORMAT csv, USE_TMP_FILE false)",
        "COPY runs TO 'a.csv'",
        "COPY runs FROM '{file}'",
        "EXPLAIN ANALYZE COPY (SELECT 42) TO '{file}' (FORMAT csv, USE_TMP_FILE false)",
        "EXPLAIN (ANALYZE, FORMAT json) COPY (SELECT 42) TO '{file}' (FORMAT csv, USE_TMP_FILE false)",
        "EXPLAIN /* ANALYZE */ ANALYZE COPY (SELECT 42) TO '{file}' (FORMAT csv, USE_TMP_FILE false)",
    ),
    "COPY_DATABASE": ("COPY FROM DATABASE xbuf TO temp",),
    "CREATE": (
        "CREATE TABLE a AS SELECT 1",
        "CREATE TEMP VIEW a AS SELECT 1",
        "CREATE OR REPLACE TEMP MACRO a() AS 1",
        "CREATE SECRET (TYPE s3)",
        "PIVOT runs ON backend USING count(*)",
    ),
    "DELETE": ("DELETE FROM runs", "TRUNCATE runs", "EXPLAIN ANALYZE DELETE FROM runs"),
    "DETACH": ("DETACH xbuf",),
    "DROP": ("DROP TABLE runs", "DEALLOCATE a"),
    "EXECUTE": ("EXECUTE a",),
    "EXPORT": ("EXPORT DATABASE 'a'",),
    "INSERT": ("INSERT INTO run_labels VALUES (1, 'a', 'b')",),
    "LOAD": ("LOAD httpfs", "INSTALL httpfs"),
    "MERGE_INTO": ("MERGE INTO runs USING runs AS r USING (run_id) WHEN MATCHED THEN DELETE",),
    "PRAGMA": ("PRAGMA enable_profiling", "PRAGMA table_info('runs')", "PRAGMA memory_limit = '1GB'"),
    "PREPARE": ("PREPARE a AS COPY (SELECT 42) TO '{file}'",),
    "SET": ("SET threads = 1", "RESET threads", "SET VARIABLE a = 1", "USE memory"),
    "TRANSACTION": ("BEGIN", "COMMIT", "ROLLBACK"),
    "UPDATE": ("UPDATE runs SET stem = ''",),
    "VACUUM": ("VACUUM", "ANALYZE"),
    # One of these is reported where nothing can be written so, as its own kind or at all.
    "ANALYZE": (),
    "CREATE_FUNC": (),
    "EXTENSION": ("IMPORT DATABASE 'a'", "UPDATE EXTENSIONS"),
    "INVALID": ("", ";", "-- nothing"),
    "LOGICAL_PLAN": (),
    "MULTI": ("SELECT 1; COPY (SELECT 42) TO '{file}'",),
    "RELATION": (),
    "VARIABLE_SET": (),
}
"""Statements that do more than read, by what DuckDB's parser calls them."""
CALLS = (
    "FROM read_blob('{file}')",
    "FROM main.read_text('{file}')",
    "FROM '{file}'",
    "DESCRIBE FROM '{file}'",
    'FROM "{file}" AS a',
    "SELECT (SELECT count(*) FROM READ_CSV('{file}'))",
    "WITH a AS (FROM query('FROM read_blob(''{file}'')')) FROM a",
    "FROM query_table('{file}')",
    "FROM json_execute_serialized_sql(json_serialize_sql('FROM runs'))",
    "FROM enable_logging(storage := 'file', storage_path := '{folder}')",
    "SELECT nextval('a')",
    "FROM runs WHERE run_id IN (SELECT 1 FROM checkpoint())",
)
HARMLESS = {
    "all_profiling_output", "collations", "database_list", "database_size", "disable_checkpoint_on_shutdown",
    "disable_object_cache", "disable_optimizer", "disable_print_progress_bar", "disable_progress_bar",
    "disable_verification", "disable_verify_external", "disable_verify_fetch_row",
    "disable_verify_parallelism", "disable_verify_serializer", "duckdb_approx_database_count",
    "duckdb_columns", "duckdb_connection_count", "duckdb_constraints", "duckdb_coordinate_systems",
    "duckdb_databases", "duckdb_dependencies", "duckdb_extensions", "duckdb_external_file_cache",
    "duckdb_functions", "duckdb_indexes", "duckdb_keywords", "duckdb_log_contexts", "duckdb_logs",
    "duckdb_memory", "duckdb_optimizers", "duckdb_prepared_statements", "duckdb_schemas",
    "duckdb_secret_types", "duckdb_secrets", "duckdb_sequences", "duckdb_settings", "duckdb_table_sample",
    "duckdb_tables", "duckdb_temporary_files", "duckdb_types", "duckdb_variables", "duckdb_views",
    "enable_checkpoint_on_shutdown", "enable_object_cache", "enable_optimizer", "enable_print_progress_bar",
    "enable_progress_bar", "enable_verification", "extension_versions", "functions", "generate_series",
    "icu_calendar_names", "json_each", "json_tree", "metadata_info", "pg_timezone_names", "platform",
    "pragma_collations", "pragma_database_size", "pragma_metadata_info", "pragma_platform", "pragma_show",
    "pragma_storage_info", "pragma_table_info", "pragma_user_agent", "pragma_version", "range", "repeat",
    "repeat_row", "seq_scan", "show", "show_databases", "show_tables", "show_tables_expanded",
    "storage_info", "summary", "table_info", "test_all_types", "test_vector_types", "unnest", "user_agent",
    "verify_external", "verify_fetch_row", "verify_parallelism", "verify_serializer", "version",
    "which_secret",
}  # fmt: skip
"""Table functions and pragmas that somebody looked at: they read the database or DuckDB's own state, or are
reached by PRAGMA alone."""


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database for the tests that must not change it."""
    path = tmp_path_factory.mktemp("guard") / "xbuf.duckdb"
    create(path, with_queries=True)
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _filled_in(statement: str, database: Path) -> str:
    return statement.replace("{file}", str(database)).replace("{folder}", str(database.parent))


@pytest.fixture(scope="module")
def reader(held: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: `held`."""
    with open_database(held, read_only=True) as connection:
        yield connection


@pytest.mark.parametrize("statement", READING)
def test_statements_that_read_run(reader: duckdb.DuckDBPyConnection, statement: str) -> None:
    """SELECT in all its forms, and EXPLAIN of one."""
    list(run_sql(reader, statement).rows())


@pytest.mark.parametrize("kind", sorted(BY_STATEMENT_TYPE))
def test_no_statement_of_another_kind_runs(
    held: Path, kind: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Each is refused before it runs; the database keeps its bytes and nothing is written beside it."""
    monkeypatch.chdir(tmp_path)
    before = _sha256(held), os.listdir(held.parent)
    with open_database(held, read_only=True) as connection:
        for statement in BY_STATEMENT_TYPE[kind]:
            with pytest.raises(UsageError):
                run_sql(connection, _filled_in(statement, held))
    assert (_sha256(held), os.listdir(held.parent)) == before
    assert os.listdir(tmp_path) == []


def test_every_statement_type_of_duckdb_is_tried() -> None:
    """A DuckDB that knows another kind of statement fails here, until somebody has looked at it."""
    assert BY_STATEMENT_TYPE.keys() | {"SELECT", "EXPLAIN"} == duckdb.StatementType.__members__.keys()


@pytest.mark.parametrize("statement", CALLS)
def test_functions_that_do_more_than_read_the_database_are_refused(held: Path, statement: str) -> None:
    """Wherever in a SELECT they stand, and also for the file that is attached."""
    before = _sha256(held), os.listdir(held.parent)
    with (
        open_database(held, read_only=True) as connection,
        pytest.raises(UsageError, match=r"--unsafe lets SQL"),
    ):
        run_sql(connection, _filled_in(statement, held))
    assert (_sha256(held), os.listdir(held.parent)) == before


def test_every_table_function_of_duckdb_is_known() -> None:
    """A DuckDB with another table function fails here, until somebody has looked at it."""
    with duckdb.connect() as connection:
        found = {
            name
            for (name,) in connection.execute(
                "SELECT DISTINCT function_name FROM duckdb_functions()"
                " WHERE function_type IN ('table', 'pragma') AND internal"
            ).fetchall()
        }
    assert found - HARMLESS <= REFUSED_FUNCTIONS
    assert not HARMLESS & REFUSED_FUNCTIONS


def test_a_table_with_a_dot_in_its_name_is_read(database: Path) -> None:
    """What looks like a file's name may be a table of the user's own."""
    with open_database(database) as connection:
        connection.execute('CREATE TABLE "my.table" AS SELECT 7 AS a')
    with open_database(database, read_only=True) as connection:
        check_reads_only(connection, 'FROM "my.table"')


@pytest.mark.parametrize(("table", "view"), [("runs", "runs"), ("alembic_version", "Alembic_Version")])
def test_a_view_in_the_place_of_a_table_is_refused(
    database: Path, tmp_path: Path, table: str, view: str
) -> None:
    """A view could read the files of whoever looks at the database, however its name is written."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"DROP TABLE {table}")
        connection.execute(f"CREATE VIEW {view} AS SELECT content AS version_num FROM read_text('{secret}')")
    with pytest.raises(NotADatabase, match=rf"{table}: a view in the place of a table"):
        open_database(database, read_only=True)


def test_views_and_macros_of_a_foreign_file_reach_no_other_file(database: Path, tmp_path: Path) -> None:
    """Neither by a name of their own nor by one of DuckDB's functions."""
    secret = tmp_path / "secret"
    secret.write_text("s3cret")
    with duckdb.connect(str(database)) as connection:
        connection.execute(f"CREATE VIEW mine AS FROM read_text('{secret}')")
        connection.execute(f"CREATE MACRO round(x) AS (SELECT content FROM read_text('{secret}'))")
        connection.execute(f"CREATE MACRO duckdb_databases() AS TABLE FROM read_text('{secret}')")
    with open_database(database, read_only=True) as connection:
        for statement in ("FROM mine", "SELECT round(1.5)", "FROM duckdb_databases()"):
            with pytest.raises(duckdb.PermissionException):
                connection.execute(statement)
        with pytest.raises(duckdb.Error, match="locked"):
            connection.execute("SET enable_external_access = true")


def test_unsafe_leaves_files_within_reach(database: Path, tmp_path: Path) -> None:
    """For the connection of a user who asks for it."""
    (tmp_path / "a.csv").write_text("a\n7\n")
    with open_database(database, read_only=True, unsafe=True) as connection:
        rows = run_sql(connection, f"FROM '{tmp_path / 'a.csv'}'", unsafe=True).rows()
        assert list(rows) == [(7,)]


def test_an_export_needs_no_external_access(database: Path, tmp_path: Path) -> None:
    """Also while the same process reads the database."""
    with open_database(database, read_only=True):
        done = export_database(str(database), str(tmp_path / "export"))
    assert dict(done.rows)["runs"] == 0
