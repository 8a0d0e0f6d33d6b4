"""The staging folder beside the database is trusted only where nobody else can have touched it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest import import_dumps
from ingest.database.publish import publish_snapshot
from ingest.database.writer import finish_replacements
from ingest.errors import DatabaseError
from ingest.maintenance.doctor import examine
from ingest.maintenance.forget import Selection, forget_runs
from ingest.pipeline.journal import staging_folder
from tests.support.dump_sets import DATA

SEED = sorted((DATA / "seeds").iterdir())[0]


@pytest.fixture
def dumps(tmp_path: Path) -> Path:
    folder = tmp_path / "dumps"
    folder.mkdir()
    os.utime(shutil.copy(SEED, folder), (1_700_000_000, 1_700_000_000))
    return folder


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A folder with names that an import would delete or write if it took it for its own."""
    folder = tmp_path / "victim"
    for name in ("copy-mine", "removed-mine", "20261120T190412.113820-1f0c9a3e"):
        (folder / name).mkdir(parents=True)
        (folder / name / "precious").write_text("precious")
    (folder / "manifest.duckdb").write_text("precious")
    folder.chmod(0o700)
    return folder


def content(folder: Path) -> list[tuple[str, bytes | None]]:
    return sorted(
        (str(path.relative_to(folder)), path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    )


def as_link(staging: Path, victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging.symlink_to(victim)


def as_foreign(staging: Path, victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim.rename(staging)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)


def as_open(staging: Path, victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    victim.rename(staging)
    staging.chmod(0o770)


def as_file(staging: Path, victim: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    staging.write_text("precious")


@pytest.mark.parametrize(
    ("plant", "words"),
    [
        (as_link, "is a link"),
        (as_foreign, "belongs to user"),
        (as_open, "others may look or write into it"),
        (as_file, "is no folder"),
    ],
)
@pytest.mark.parametrize("new", [True, False], ids=["new database", "existing database"])
def test_a_planted_staging_folder_is_refused(
    plant: Callable[[Path, Path, pytest.MonkeyPatch], None],
    words: str,
    new: bool,
    dumps: Path,
    victim: Path,
    tmp_path: Path,
    database: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The import ends with path and remedy; nothing behind it is deleted, written or loaded."""
    if new:
        database = tmp_path / "new.duckdb"
    staging = staging_folder(str(database))
    plant(staging, victim, monkeypatch)
    before = content(tmp_path)
    with pytest.raises(DatabaseError, match=words) as caught:
        import_dumps([dumps], database)
    assert str(staging) in str(caught.value)
    after = [one for one in content(tmp_path) if not one[0].endswith(".lock")]
    assert after == before


def test_maintenance_refuses_it_too(
    dumps: Path, victim: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import_dumps([dumps], database)
    shutil.rmtree(staging_folder(str(database)))
    as_link(staging_folder(str(database)), victim, monkeypatch)
    before = content(victim)
    with pytest.raises(DatabaseError, match="is a link"):
        forget_runs(str(database), Selection(runs=(1,)))
    findings = {finding.check: finding for finding in examine(str(database))}
    assert findings["staging"].level == "trouble"
    assert "is a link" in findings["staging"].text
    assert content(victim) == before


def test_only_folders_of_its_own_are_tidied_up(dumps: Path, victim: Path, database: Path) -> None:
    """Links and open folders under the names of left-overs stay; a left-over of this user goes."""
    import_dumps([dumps], database)
    folder = database.parent
    snapshot = folder / "team.duckdb"
    (folder / ".xbuf-new-link").symlink_to(victim)
    (folder / ".team.duckdb.publish-link").symlink_to(victim)
    for name in (".xbuf-new-open", ".xbuf-new-old", ".team.duckdb.publish-open", ".team.duckdb.publish-old"):
        (folder / name).mkdir(mode=0o700)
        if name.endswith("open"):
            (folder / name).chmod(0o755)
        os.utime(folder / name, (1_700_000_000, 1_700_000_000))
    before = content(victim)
    finish_replacements(str(database), str(staging_folder(str(database))))
    publish_snapshot(str(database), str(snapshot))
    left = {path.name for path in folder.iterdir() if path.name.startswith(".")}
    assert left == {
        ".xbuf-new-link",
        ".team.duckdb.publish-link",
        ".xbuf-new-open",
        ".team.duckdb.publish-open",
    }
    assert content(victim) == before
