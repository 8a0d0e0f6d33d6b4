"""docs/ci.md can be pasted: its rules are read, and the shell parts of its workflows are run here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from xml.etree import ElementTree

import pytest

from ingest.check.reports import FORMATS
from ingest.check.rules import KINDS
from tests.support.documents import block, install, install_commands

pytestmark = pytest.mark.usefixtures("macros")

ROOT = Path(__file__).parents[1]
DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
DUMPS = ROOT / "tests/golden/dumps"
RULES = """\
baseline = "memory.json"
[[growth]]
figure = "peak"
bytes = "64 KiB"
"""


class Job:
    """A checkout on a runner, whose `compile_model.py` leaves the dumps of one batch size."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.checkout, self.summary = folder / "checkout", folder / "summary.md"
        (folder / "bin").mkdir()
        self.checkout.mkdir()
        install_commands(folder / "bin")
        install(folder / "bin/pip", f'#!/bin/sh\necho "$@" >> "{folder}/pip.log"\n')
        install(
            folder / "bin/python",
            '#!/bin/sh\n[ "$1" = compile_model.py ] || exit 9\n'
            'folder="${XLA_FLAGS#--xla_dump_to=}"\n'
            f'mkdir -p "$folder" && cp "{DUMPS}/batch-$BATCH"/* "$folder"\n',
        )
        (self.checkout / "xbuf.toml").write_text(RULES)
        self.environment = {
            **os.environ,
            "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "XBUF": "xbuf-0.1.0-py3-none-any.whl",
            "RUNNER_TEMP": str(folder / "temp"),
            "GITHUB_STEP_SUMMARY": str(self.summary),
            "CI_PROJECT_DIR": str(self.checkout),
        }

    def run(self, script: str, batch: int) -> subprocess.CompletedProcess[str]:
        """Run a script as the runners do: it ends at the first command that fails."""
        return subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=self.checkout,
            env={**self.environment, "BATCH": str(batch)},
            capture_output=True,
            text=True,
            check=False,
        )

    def update(self) -> None:
        """Keep the baseline of the small batch, as the document says."""
        dumps = str(self.folder / "main")
        done = self.run(block(DOCUMENT, "update").replace("/tmp/dumps", dumps), 8)
        assert done.returncode == 0, done.stderr
        assert (self.checkout / "memory.json").is_file()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """A runner with a checkout."""
    return Job(tmp_path)


def steps(name: str) -> list[str]:
    """Return the shell parts of a workflow."""
    text = block(DOCUMENT, name)
    blocks = re.findall(r"^( +)run: \|\n((?:\1  .*\n)+)", text, re.MULTILINE)
    script = re.findall(r"^  script:\n((?:    - .*\n)+)", text, re.MULTILINE)
    return [re.sub(rf"^{indent}  ", "", body, flags=re.MULTILINE) for indent, body in blocks] + [
        re.sub(r"^    - ", "", body, flags=re.MULTILINE) for body in script
    ]


@pytest.mark.slow
def test_the_github_workflow_fails_at_the_line(job: Job) -> None:
    """Its second step fails with an error at the source line, after every report was written."""
    job.update()
    compile_step, check_step = steps("memory.yml")
    assert job.run(compile_step, 32).returncode == 0
    assert "xbuf-0.1.0-py3-none-any.whl" in (job.folder / "pip.log").read_text()
    done = job.run(check_step, 32)
    assert done.returncode == 1
    assert done.stdout.startswith(
        "::error file=/home/user/train/step.py,line=11,title=xbuf check%3A growth of peak"
    )
    assert "BROKEN  jit_step (cpu): peak grew by 384.0 KiB" in done.stderr
    assert "peak grew by 384.0 KiB" in job.summary.read_text()
    assert ElementTree.parse(job.checkout / "memory.xml").getroot().get("failures") == "1"
    shutil.rmtree(job.folder / "temp")
    assert job.run(compile_step, 8).returncode == 0
    assert job.run(check_step, 8).returncode == 0


@pytest.mark.slow
def test_the_gitlab_job_writes_its_report(job: Job) -> None:
    """It fails without a baseline with 4, with a broken rule with 1; the report is there each time."""
    (script,) = steps("gitlab-ci.yml")
    for code, counted in ((4, "errors"), (1, "failures")):
        done = job.run(script, 32)
        assert done.returncode == code, done.stderr
        assert ElementTree.parse(job.checkout / "memory.xml").getroot().get(counted) == "1"
        job.update()


@pytest.mark.slow
def test_labels_are_compared(job: Job) -> None:
    """Two commits in one database."""
    job.environment |= {"DUMPS": str(DUMPS / "batch-8"), "COMMIT": "a1", "BASE": "a1"}
    assert job.run(block(DOCUMENT, "labels"), 8).returncode == 0
    job.environment |= {"DUMPS": str(DUMPS / "batch-32"), "COMMIT": "b2"}
    done = job.run(block(DOCUMENT, "labels"), 32)
    assert done.returncode == 1
    assert "peak grew by 384.0 KiB" in done.stdout


@pytest.mark.slow
def test_the_rules_of_the_document_run(job: Job) -> None:
    """All kinds; none covers a module of another name than jit_train, and that is not green."""
    text = block(DOCUMENT, "xbuf.toml")
    (job.checkout / "xbuf.toml").write_text(text)
    assert set(tomllib.loads(text)) <= {"baseline", *KINDS}
    job.update()
    done = job.run(f'xbuf check "{DUMPS}/batch-8"', 8)
    assert done.returncode == 4, done.stderr
    words = [line.split()[0] for line in done.stdout.splitlines()[:-1]]
    assert sorted(words) == ["UNCHECKED", "UNCHECKED", "ok", "ok"]


def test_every_rule_and_format_is_documented() -> None:
    """The tables name each of them."""
    named = re.findall(r"^\| `([a-z]+)` \|", DOCUMENT, re.MULTILINE)
    assert set(named) == {*KINDS, *FORMATS}
