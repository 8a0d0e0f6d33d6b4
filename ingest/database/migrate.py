"""Running the migrations: the one place that imports SQLAlchemy and Alembic.

They cost about a third of a second to import, so `ingest.database.connect` comes here only for a database
whose schema is not at head.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike, fspath
from typing import Final

import duckdb
import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.pool import NullPool

from ingest.database.ddl import version_comments
from ingest.database.file import CONFIG, NEW_FILE, STORAGE_VERSION
from ingest.resources import migrations_dir
from ingest.sql import literal

_FIRST: Final = "0001_tables"


def alembic_config() -> Config:
    """Return Alembic's configuration; no alembic.ini is read."""
    config = Config()
    # ConfigParser expands %, which a directory may well have in its name.
    config.set_main_option("script_location", str(migrations_dir()).replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    return config


@contextmanager
def open_engine(path: str | PathLike[str]) -> Iterator[sa.Engine]:
    """Open the file for SQLAlchemy; a new file gets our storage version and block size.

    NullPool, because a pooled connection holds DuckDB's file lock after close(). It closes what is returned,
    so there is nothing to reset; after a full disk that would only log a traceback.
    """
    engine = sa.create_engine(
        sa.URL.create("duckdb", database=fspath(path)),
        poolclass=NullPool,
        pool_reset_on_return=None,
        connect_args={"config": NEW_FILE},
    )
    try:
        yield engine
    finally:
        engine.dispose()


def apply_migrations(path: str | PathLike[str], revision: str = "head") -> None:
    """Bring the file to a revision, creating it where it is missing, and checkpoint it.

    Every revision is one transaction. Raises duckdb.Error; the revisions completed before it stay.
    """
    config = alembic_config()
    if os.path.exists(path):
        _lift_storage(path)
    try:
        with open_engine(path) as engine:
            with engine.connect() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, revision)
            with engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.exec_driver_sql(version_comments())
                connection.exec_driver_sql("CHECKPOINT")
    except sa.exc.DBAPIError as error:
        if isinstance(error.orig, duckdb.Error):
            raise error.orig from error
        raise


def _lift_storage(path: str | PathLike[str]) -> None:
    """Lift a file that a plain shell created to our storage version; others stay as they are.

    The version given to connect() counts for new files alone. ATTACH lifts an old one, at the first
    checkpoint that has something to write.
    """
    with duckdb.connect(config=CONFIG) as connection:
        try:
            connection.execute(
                f"ATTACH {literal(path)} AS file (TYPE duckdb, STORAGE_VERSION '{STORAGE_VERSION}')"
            )
        except duckdb.InvalidInputException as error:
            if "cannot be lowered" in str(error):
                return
            raise
        # One transaction: a kill must not leave the table.
        connection.execute("BEGIN; CREATE TABLE file.main.xbuf_storage (i INTEGER)")
        connection.execute("DROP TABLE file.main.xbuf_storage; COMMIT")
        connection.execute("CHECKPOINT file")


def write_first_revision() -> None:
    """Write the first revision anew, with every table as it is now: for as long as no release has it."""
    place = migrations_dir() / "versions" / f"{_FIRST}.py"
    place.unlink(missing_ok=True)
    config = Config(migrations_dir() / "alembic.ini")
    with (
        tempfile.TemporaryDirectory() as folder,
        open_engine(f"{folder}/empty.duckdb") as engine,
        engine.connect() as connection,
    ):
        config.attributes["connection"] = connection
        command.revision(config, "Every table of version 0.1.0", autogenerate=True, rev_id=_FIRST)


if __name__ == "__main__":
    write_first_revision()
