"""What a gate writes: every format of the same findings, and nothing of a dump that is taken for markup."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from ingest.check.findings import Cause, Finding, Outcome, Report
from ingest.check.reports import FORMATS, write_report
from ingest.cli.check import check
from ingest.errors import ExitCode, UsageError
from ingest.pipeline.importer import import_dumps

DUMPS = Path(__file__).parents[1] / "golden/dumps"
SMALL, LARGE = str(DUMPS / "batch-8"), str(DUMPS / "batch-32")
HOSTILE = "a<b>&\"'|`*_[x](https://e.invalid)]]>::error::%0A##[x],:\\"


def report(*outcomes: Outcome, text: str = "broke") -> Report:
    cause = Cause(text, "f32[8]", text, f"src/{text}.py", 7, 2, 4096, 1024, 3072)
    findings = [
        Finding(f"rule {text}", "growth", outcome, f"{text} {number}", text, "cpu", number, 5, 4, 4, (cause,))
        for number, outcome in enumerate(outcomes)
    ]
    return Report(tuple(findings), (text,), text, 3)


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ((), ExitCode.UNCHECKED),
        ((Outcome.PASSED,), ExitCode.OK),
        ((Outcome.PASSED, Outcome.UNCHECKED), ExitCode.UNCHECKED),
        ((Outcome.UNCHECKED, Outcome.BROKEN), ExitCode.BROKEN),
    ],
)
def test_the_worst_finding_decides(outcomes: tuple[Outcome, ...], code: ExitCode) -> None:
    assert report(*outcomes).exit_code is code


def test_github_shows_at_most_ten_errors() -> None:
    """Of more, the last one says how many there are; escapes are undone to what was written."""
    lines = write_report(report(*[Outcome.BROKEN] * 10, text="x"), "github").splitlines()
    assert [line.startswith("::error ") for line in lines] == [True] * 10 + [False]
    lines = write_report(report(*[Outcome.BROKEN] * 12, text=HOSTILE), "github").splitlines()
    assert [line.startswith("::error ") for line in lines] == [True] * 10 + [False]
    assert lines[9] == "::error title=xbuf check::3 more, see the whole report"
    assert lines[10].startswith("::notice ")
    found = re.fullmatch(r"::error file=([^,:]*),line=7,title=([^,:]*)::(.*)", lines[0])
    assert found is not None
    file, title, message = (
        part.replace("%2C", ",").replace("%3A", ":").replace("%0A", "\n").replace("%25", "%")
        for part in found.groups()
    )
    assert (file, title, message) == (
        f"src/{HOSTILE}.py",
        f"xbuf check: rule {HOSTILE} broken",
        f"{HOSTILE} 0",
    )


def test_markdown_holds_no_markup_of_a_dump() -> None:
    text = write_report(report(Outcome.BROKEN, Outcome.PASSED, text=HOSTILE), "markdown")
    unescaped = re.sub(r"\\[^A-Za-z0-9\s]|\*\*broken\*\*", "", text)
    assert not re.search(r"<(?!/?(details|summary)>)|https:|[`\\*_]|(?<!&)#\w|\]\(|@", unescaped)
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 3
    assert {row.count("|") for row in rows} == {8}
    assert "+3.0 KiB" in rows[2]


def test_junit_counts_failures_and_errors() -> None:
    """Whatever the texts hold, it is read back."""
    written = write_report(report(*Outcome, text=HOSTILE), "junit")
    root = ElementTree.fromstring(written)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("3", "1", "1")
    passed, broken, unchecked = root.iter("testcase")
    assert list(passed) == []
    assert [child.tag for child in (*broken, *unchecked)] == ["failure", "error"]
    assert broken[0].get("message") == broken[0].text == f"{HOSTILE} 1"
    assert broken.get("file") == f"src/{HOSTILE}.py"


def test_text_puts_trouble_first() -> None:
    text = write_report(report(Outcome.PASSED, Outcome.UNCHECKED, Outcome.BROKEN), "text")
    assert text.splitlines() == [
        "BROKEN     broke 2",
        "UNCHECKED  broke 1",
        "ok         broke 0",
        "3 runs: 1 check broken, 1 check unchecked, 1 check passed",
    ]


def test_json_has_every_field() -> None:
    document = json.loads(write_report(report(Outcome.BROKEN), "json"))
    assert (document["exit_code"], document["runs"], document["baseline"]) == (1, 3, "broke")
    (finding,) = document["findings"]
    assert finding["causes"][0]["growth_bytes"] == 3072
    assert finding["outcome"] == "broken"


@pytest.fixture(scope="module")
def baseline(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Baseline of SMALL, which the command wrote."""
    folder = tmp_path_factory.mktemp("baseline")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        done = run(SMALL, "--baseline", "memory.json", "--update-baseline")
    assert (done.exit_code, done.stdout, done.stderr) == (0, "", "1 module -> memory.json\n")
    return folder / "memory.json"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with SMALL and LARGE as runs 1 and 2."""
    path = tmp_path_factory.mktemp("runs") / "xbuf.duckdb"
    for folder in (SMALL, LARGE):
        import_dumps([folder], path, jobs=1)
    return path


@pytest.fixture
def folder(baseline: Path, runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory of the commands, with the baseline of SMALL; they check runs of `runs`, or dumps."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XBUF_DB", str(runs))
    shutil.copy(baseline, tmp_path)
    return tmp_path


def run(*arguments: str) -> Result:
    return CliRunner().invoke(check, arguments, standalone_mode=False)


def code_of(result: Result) -> object:
    """Exit code that the program would have."""
    return result.return_value if result.exception is None else getattr(result.exception, "exit_code", None)


def test_reports_of_several_formats_are_written_before_the_gate_fails(folder: Path) -> None:
    outputs = [word for name in FORMATS for word in ("--output", f"{name}=report.{name}")]
    rule = ("--growth", "figure=peak,bytes=64KiB", "--baseline", "memory.json")
    done = run(LARGE, *rule, *outputs, "--format", "json")
    assert code_of(done) == 1
    assert done.stderr == "1 run: 1 check broken\n"
    for name in FORMATS:
        assert "peak grew by 384.0 KiB" in (folder / f"report.{name}").read_text()
    assert (folder / "report.json").read_text() == done.stdout


def test_rules_of_the_file_and_of_options_are_joined(folder: Path) -> None:
    """The file of the working directory is read without being named."""
    (folder / "xbuf.toml").write_text('baseline = "memory.json"\n[[growth]]\nfigure = "peak"\n')
    done = run(
        "2", "--limit", "figure=peak,at_most=1MiB", "--no-rows", "SELECT * FROM checked_runs WHERE false"
    )
    assert code_of(done) == 1
    assert [line.split()[0] for line in done.stdout.splitlines()] == ["BROKEN", "ok", "ok", "1"]
    other = folder / "other"
    other.mkdir()
    (other / "rules.toml").write_text('baseline = "../memory.json"\n[[growth]]\nfigure = "peak"\n')
    (folder / "xbuf.toml").unlink()
    assert code_of(run("2", "--config", "other/rules.toml")) == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "there is no rule; write some to xbuf.toml"),
        (("--growth", "figure=peak", "--baseline", "a", "--baseline-label", "b=c"), "two baselines"),
        (("--update-baseline",), "name it with --baseline"),
        (("--update-baseline", "--baseline", SMALL), "writes a file"),
        (("--config", "none.toml"), "none.toml: cannot be read"),
        (("--limit", "figure=peak,at_most=1", "--output", "junit=nowhere/report.xml"), "cannot be written"),
        (("--padding", "at_most=many"), "--padding: at_most: 'many' is no size"),
    ],
)
def test_wrong_usage_is_refused(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    done = run("1", *arguments)
    assert isinstance(done.exception, UsageError)
    assert message in str(done.exception)
    assert code_of(done) == 2


def test_an_unknown_format_is_refused(folder: Path) -> None:
    done = CliRunner().invoke(check, [SMALL, "--output", "xml=report.xml"])
    assert done.exit_code == 2
    assert (
        "'xml=report.xml' is not FORMAT=FILE with a format of text, markdown, github, junit, json"
        in done.stderr
    )


def test_source_files_are_named_as_the_checkout_has_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file below the working directory is relative to it."""
    monkeypatch.setattr(os, "getcwd", lambda: "/home/user")
    done = run(
        "2",
        "--growth",
        "figure=peak,bytes=1",
        "--baseline",
        str(folder / "memory.json"),
        "--format",
        "github",
    )
    assert done.stdout.startswith("::error file=train/step.py,line=11,")
