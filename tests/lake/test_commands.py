"""`xbuf lake`: what its commands print."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ingest.cli.lake import lake as lake_command
from ingest.database.revision import HEAD
from ingest.lake.store import Lake
from tests.support.lakes import in_process, load


@pytest.mark.slow
def test_a_lake_from_its_creation_to_its_checks(part: str, tmp_path: Path) -> None:
    """Lines for people, JSON for programs."""
    root = f"{tmp_path}/lake"

    def run(*words: str) -> str:
        result = CliRunner().invoke(lake_command, [words[0], root, *words[1:]], standalone_mode=False)
        assert result.exception is None
        return result.stdout

    def work() -> list[str]:
        made = [run("create"), run("create"), run("upgrade")]
        load(Lake(root, True), part)
        load(Lake(root, True), part)
        return [
            *made,
            run("compact", "--format", "json"),
            run("vacuum", "--dry-run", "--keep-hours", "0"),
            run("verify", "--format", "json"),
        ]

    made, there, upgraded, compacted, vacuumed, verified = in_process(work)
    assert made == f"{root}: made\n"
    assert there == f"{root}: is there\n"
    assert upgraded == f"{root}: {HEAD}, nothing to do\n"
    done = json.loads(compacted)
    assert done["lake"] == root
    assert done["files_before"] == done["files_after"] + 1  # two imports have a file each
    assert vacuumed.startswith(f"{root}: 2 files, ")
    assert vacuumed.endswith(" would go\n")
    assert {(one["kind"], one["table"]) for one in json.loads(verified)["findings"]} == {
        ("notice", "imports")
    }
