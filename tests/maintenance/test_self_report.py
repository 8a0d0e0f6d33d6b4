"""`xbuf doctor --report`: what helps those who help, and no names."""

from __future__ import annotations

import shutil
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner, Result

from ingest.cli.xbuf import xbuf
from ingest.maintenance.doctor import Finding
from ingest.maintenance.self_report import self_report
from ingest.version import VERSION

FINDINGS = [Finding("peaks", "ok", "no runs"), Finding("log", "note", "/secret/xbuf.duckdb.wal: 5 bytes")]


def doctor(database: Path, *options: str) -> Result:
    return CliRunner().invoke(
        xbuf, ["doctor", "--db", str(database), "--report", *options], standalone_mode=False
    )


@pytest.fixture
def known(demonstration_file: Path, tmp_path: Path) -> Path:
    """A database whose runs, files and labels have names that can be searched for."""
    copy = Path(shutil.copy(demonstration_file, tmp_path / "copy.duckdb"))
    with duckdb.connect(str(copy)) as connection:
        connection.execute("UPDATE runs SET dump_dir = '/secret/' || dump_dir, module_name = 'jit_secret'")
        connection.execute("UPDATE rejects SET file = '/secret/' || file, message = 'secret ' || message")
        connection.execute("UPDATE run_labels SET value = 'secret'")
    return copy


def test_the_report_has_versions_formats_and_counts_and_no_names(known: Path) -> None:
    """Numbers and kinds; what was rejected is counted, not named."""
    text = self_report(str(known), FINDINGS)
    assert text.startswith(f"**xbuf {VERSION}**")
    assert f"duckdb {duckdb.__version__}" in text
    assert "| check | result |\n| --- | --- |\n| peaks | ok |\n| log | note |\n" in text
    for line in ("| primary |", "| cpu | dump | dump |", "| total-mismatch | total | 1 |"):
        assert line in text
    assert "secret" not in text
    assert str(known.parent) not in text


def test_names_are_there_when_they_are_asked_for(known: Path) -> None:
    """The file that was rejected, with the message, and all of what the checks say."""
    text = self_report(str(known), FINDINGS, with_names=True)
    assert "| /secret/more/module_0002.jit_broken" in text
    assert "| log | note | /secret/xbuf.duckdb.wal: 5 bytes |" in text


def test_a_report_is_written_of_what_cannot_be_opened(tmp_path: Path) -> None:
    """It says so, with the checks that need no database; the exit code is the doctor's."""
    broken = tmp_path / "broken.duckdb"
    broken.write_bytes(b"no database")
    result = doctor(broken)
    assert "| database | trouble |" in result.stdout
    assert "The database cannot be opened (NotADatabase)." in result.stdout
    assert result.return_value == 3
    assert str(tmp_path) in doctor(broken, "--names").stdout


def test_a_table_that_cannot_be_read_leaves_the_others(known: Path) -> None:
    """Somebody has taken a column away."""
    with duckdb.connect(str(known)) as connection:
        connection.execute("ALTER TABLE notices RENAME COLUMN kind TO sort")
    text = self_report(str(known), FINDINGS)
    assert "Notices: cannot be read (BinderException)." in text
    assert "Rejects:" in text
