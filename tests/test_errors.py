"""Errors that one process raises for another: a worker, or what reads a store."""

from __future__ import annotations

import pickle

import pytest

from ingest.errors import DatabaseLocked, DumpError, NotADatabase, XbufError


@pytest.mark.parametrize(
    "error",
    [
        DatabaseLocked("runs.duckdb", 17, "duckdb"),
        DatabaseLocked("runs.duckdb"),
        DumpError("sums", "do not add up", file="dump.txt", line=3, text="x"),
        NotADatabase("runs.duckdb: is text"),
    ],
)
def test_an_error_reads_alike_in_another_process(error: XbufError) -> None:
    """Its text and what it knows of the place."""
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there), vars(there)) == (type(error), str(error), vars(error))
