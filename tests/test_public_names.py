"""The names of `from ingest import …`, in every order of imports."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from typing import get_type_hints

import pytest

import ingest
import ingest.errors
import xbuf

_EVERY_ORDER = """
import importlib, os, pkgutil
import ingest

submodules = [one.name for one in pkgutil.walk_packages(ingest.__path__, "ingest.")]
first = {name: getattr(ingest, name) for name in ingest.__all__} if {names_first} else {}
for submodule in submodules:
    importlib.import_module(submodule)
    for name in ingest.__all__:
        found = getattr(ingest, name)
        assert found is first.setdefault(name, found), f"{name} is another after import {submodule}"
for name, found in first.items():
    assert found.__module__.startswith("ingest.") and found.__name__ == name, (name, found)
print(len(submodules), len(first))
"""


@pytest.mark.slow
@pytest.mark.parametrize("names_first", [True, False])
def test_a_public_name_is_the_same_after_every_submodule(names_first: bool) -> None:
    """In a fresh interpreter, whether the names or the submodules are imported first."""
    script = _EVERY_ORDER.replace("{names_first}", str(names_first))
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    submodules, names = map(int, done.stdout.split())
    assert submodules > 50
    assert names == len(ingest.__all__)


def test_every_public_name_is_what_it_is_called() -> None:
    """From a module of the package, whichever was imported first in this process."""
    for name in ingest.__all__:
        found = getattr(ingest, name)
        assert (found.__name__, found.__module__.split(".")[0]) == (name, "ingest")


def test_every_error_of_an_import_is_public() -> None:
    """By its own name in both packages; what cannot be written is the commands' alone."""
    errors = set(ingest.errors.__all__) - {"ExitCode", "OutputError"}
    assert errors <= set(ingest.__all__)
    assert errors <= set(xbuf.__all__)


def test_no_public_name_is_a_submodule() -> None:
    """Importing a submodule would put it in the place of the name."""
    assert [name for name in ingest.__all__ if find_spec(f"ingest.{name}")] == []
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = ingest.nothing


def test_what_the_importer_parses_into_is_not_public() -> None:
    """`parse_dump` gives records; the columns of the importer may change with any release."""
    for name in ("ParsedDump", "parse_set"):
        assert name not in ingest.__all__
        with pytest.raises(AttributeError, match=f"no attribute '{name}'"):
            getattr(ingest, name)


def test_public_records_hold_no_rows_to_be_read_by_number() -> None:
    """Fields are plain values, records, or any number of them: no tuples of fixed length."""
    checked = 0
    for name in ingest.__all__:
        record = getattr(ingest, name)
        if isinstance(record, type) and not issubclass(record, Exception):
            for field, kind in get_type_hints(record).items():
                assert "..." in str(kind) or "tuple" not in str(kind), f"{name}.{field}: {kind}"
                assert "tuple[tuple" not in str(kind), f"{name}.{field}: {kind}"
                checked += 1
    assert checked > 100
