"""The examples of docs/python.md run and print what is shown."""

from __future__ import annotations

import doctest

import pytest

from tests.python.conftest import CHECKOUT

pytestmark = pytest.mark.slow


def test_the_page_prints_what_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a clone, in 80 columns."""
    pytest.importorskip("pandas")
    monkeypatch.chdir(CHECKOUT)
    monkeypatch.setenv("COLUMNS", "80")
    failed, tried = doctest.testfile(str(CHECKOUT / "docs" / "python.md"), module_relative=False)
    assert tried > 10
    assert failed == 0
