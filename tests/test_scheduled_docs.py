"""docs/scheduled-imports.md can be pasted: its scripts, timers and statements are run here."""

from __future__ import annotations

import configparser
import json
import os
import re
import shlex
import shutil
import stat
import subprocess
from pathlib import Path
from typing import get_args

import duckdb
import pytest

from ingest.cli.ingest import ingest
from ingest.events import Event
from tests.support.documents import block, install, install_commands
from tests.support.dump_sets import PAST, SEEDS

pytestmark = pytest.mark.slow  # hours of a day: each test runs the scripts, in processes of their own

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "scheduled-imports.md").read_text(encoding="utf-8")
SCRIPT = "/usr/local/bin/xbuf-hourly"


class Host:
    """A machine as the document has it, below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.dumps, self.data, bin_ = folder / "dumps", folder / "data", folder / "bin"
        spill = folder / "spill"
        for directory in (self.dumps, self.data, bin_, spill):
            directory.mkdir()
        install_commands(bin_)
        install(bin_ / "logger", f'#!/bin/sh\necho "$@" >> "{folder}/system.log"\n')
        self.script = folder / "xbuf-hourly"
        install(self.script, block(DOCUMENT, "xbuf-hourly"))
        self.environment = {
            **os.environ,
            "PATH": f"{bin_}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(spill),  # elsewhere there may be what killed processes left, which doctor reports
            "DUMPS": str(self.dumps),
            "XBUF_DB": str(self.data / "xbuf.duckdb"),
            "SNAPSHOT": str(self.data / "team.duckdb"),
            "BACKUP": str(folder / "backup"),
        }

    def grow(self, *numbers: int) -> None:
        for number in numbers:
            shutil.copy(SEEDS[number], self.dumps)
            os.utime(self.dumps / SEEDS[number].name, (PAST, PAST))

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command as sh does."""
        return subprocess.run(
            ["sh", "-c", command],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
            cwd=self.folder,
        )

    def runs(self, name: str) -> int:
        with duckdb.connect(str(self.data / name), read_only=True) as connection:
            row = connection.execute("SELECT count(*) FROM runs").fetchone()
        assert row is not None
        return int(row[0])


@pytest.fixture
def host(tmp_path: Path) -> Host:
    """A machine with two dumps."""
    host = Host(tmp_path)
    host.grow(0, 1)
    return host


def test_the_script_imports_and_publishes(host: Host) -> None:
    """Twice, with a new dump in between; its log is JSON, its output empty."""
    for runs in (2, 3):
        done = host.run(str(host.script))
        assert (done.returncode, done.stdout) == (0, ""), done.stderr
        events = [json.loads(line) for line in done.stderr.splitlines()]
        assert [event["event"] for event in events][-2:] == ["published", "import-finished"]
        assert host.runs("xbuf.duckdb") == host.runs("team.duckdb") == runs
        assert stat.S_IMODE((host.data / "team.duckdb").stat().st_mode) == 0o444
        host.grow(2)


def test_the_service_starts_the_script(host: Host) -> None:
    """The unit is one that systemd takes, and starts what the document calls the script."""
    service = configparser.ConfigParser(interpolation=None)
    service.optionxform = str  # type: ignore[assignment,method-assign]
    service.read_string(block(DOCUMENT, "xbuf.service"))
    assert service["Service"]["ExecStart"] == SCRIPT
    timer = configparser.ConfigParser(interpolation=None)
    timer.read_string(block(DOCUMENT, "xbuf.timer"))
    assert timer["Timer"]["oncalendar"] == "hourly"
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not here; the units were read as ini files")
    for name in ("xbuf.service", "xbuf.timer"):
        (host.folder / name).write_text(block(DOCUMENT, name).replace(SCRIPT, str(host.script)))
    done = host.run("systemd-analyze verify --man=no ./xbuf.service ./xbuf.timer")
    # Where systemd does not run it cannot load what the units stand on; their own faults it tells by line.
    assert not re.search(r"xbuf\.(service|timer):\d+:", done.stderr), done.stderr


def test_the_cron_line_runs_and_tells_a_failure(host: Host) -> None:
    """The log goes to a file; a failure goes to the system's log with its exit code."""
    line = block(DOCUMENT, "cron").strip()
    schedule, command = re.fullmatch(r"((?:\S+ ){5})xbuf (.*)", line).groups()  # type: ignore[union-attr]
    assert schedule == "17 * * * * "
    assert "%" not in command  # cron takes it for a line break
    log = host.folder / "xbuf.jsonl"
    command = command.replace(SCRIPT, str(host.script)).replace("/var/log/xbuf.jsonl", str(log))
    assert host.run(command).returncode == 0
    assert json.loads(log.read_text().splitlines()[-1])["event"] == "import-finished"
    shutil.rmtree(host.dumps)
    host.run(command)
    assert (host.folder / "system.log").read_text() == "-t xbuf import failed with 2\n"
    assert json.loads(log.read_text().splitlines()[-1])["event"] == "import-failed"


def test_the_cronjob_runs(host: Host) -> None:
    """The container's command imports from one mount into the other."""
    text = block(DOCUMENT, "cronjob.yaml")
    command = json.loads(re.search(r"command: (\[.*\])", text).group(1))  # type: ignore[union-attr]
    mounts = re.findall(r"mountPath: (\S+?)[,}]", text)
    assert mounts == ["/dumps", "/data"]
    places = {"/dumps": str(host.dumps), "/data": str(host.data)}
    words = [re.sub(r"^/(dumps|data)", lambda match: places[match[0]], word) for word in command]
    assert host.run(" ".join(words)).returncode == 0
    assert host.runs("team.duckdb") == 2


def test_the_statements_show_the_new_runs(host: Host) -> None:
    """In a connection that is open all the time, and whose queries work before and after."""
    published = str(host.data / "team.duckdb")
    statements = block(DOCUMENT, "refresh.sql").replace("/srv/xbuf/team.duckdb", published)
    with duckdb.connect() as shell:
        for number in (2, 3, 4):
            assert host.run(str(host.script)).returncode == 0
            shell.execute(statements)
            assert shell.execute("SELECT count(*) FROM runs").fetchall() == [(number,)]
            assert shell.execute("SELECT count(*) FROM largest_live_out()").fetchall() != [(0,)]
            if number < 4:
                host.grow(number)


def test_the_watch_is_spelled_as_the_command_takes_it(host: Host) -> None:
    """The line asks for a watch; what one does is in tests/pipeline/test_watch.py."""
    name, *arguments = shlex.split(block(DOCUMENT, "watch").replace("$DUMPS", str(host.dumps)))
    with ingest.make_context(name, arguments) as context:
        assert context.params["watch"]
        assert context.params["paths"] == (str(host.dumps),)


def test_the_commands_of_care_run(host: Host) -> None:
    """Each line alone, on a database with two imports."""
    assert host.run(str(host.script)).returncode == 0
    said = []
    for line in block(DOCUMENT, "care").splitlines():
        done = host.run(line)
        assert done.returncode == 0, done.stderr
        said.append(done.stdout)
    assert said[0].startswith("last good import: ")
    assert said[1] == ""
    assert said[2].startswith("would forget 0 runs")
    assert said[4].startswith("2 runs, ")


def test_every_event_is_documented() -> None:
    """Each kind of event has its line in the table, with all its fields."""
    rows = dict(re.findall(r"^\| `([a-z-]+)` \| (.*) \|$", DOCUMENT, re.MULTILINE))
    for kind in get_args(Event):
        name = re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()
        assert set(kind._fields) <= set(re.findall(r"`(\w+)`", rows[name])), name
