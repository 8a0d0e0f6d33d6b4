"""`xbuf query`, `xbuf sql` and `xbuf shell` on the command line."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import duckdb
import pytest
from click.testing import CliRunner

from ingest.cli.query import query, shell, sql
from ingest.cli.xbuf import xbuf
from ingest.errors import XbufError
from ingest.query.catalog import STARTERS, TOPICS, shipped
from tests.support.completion import complete
from tests.support.query_databases import one_of_each_parameter

pytestmark = pytest.mark.usefixtures("demonstration_kept_open")


class Answer(NamedTuple):
    """What a command gave."""

    code: int
    out: str
    err: str


Run = Callable[..., Answer]


@pytest.fixture
def run(own_demonstration: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run `xbuf ...` on the demonstration; errors of ours as the program shows them."""
    monkeypatch.setenv("XBUF_DB", str(own_demonstration))
    monkeypatch.setenv("COLUMNS", "80")

    def run_(*arguments: str, stdin: str = "") -> Answer:
        done = CliRunner().invoke(xbuf, list(arguments), input=stdin, prog_name="xbuf")
        if isinstance(done.exception, XbufError):
            return Answer(int(done.exception.exit_code), done.stdout, f"error: {done.exception}\n")
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Answer(done.exit_code, done.stdout, done.stderr)

    return run_


def test_alone_it_lists_the_queries(run: Run) -> None:
    """Five to start with, then one line for each query, with its title, below the line of its topic."""
    answer = run("query")
    assert answer.code == 0
    *lines, blank, last = answer.out.splitlines()
    assert (blank, last.split(";")[0]) == ("", "xbuf query NAME --help explains one")
    assert lines[0] == "to start with:"
    assert [line.split()[0] for line in lines[1 : 1 + len(STARTERS)]] == list(STARTERS)
    lines = lines[1 + len(STARTERS) :]
    assert sorted(line.split()[0] for line in lines if line.startswith("  ")) == list(shipped())
    assert [line for line in lines if not line.startswith("  ")] == [f"{topic}:" for topic in TOPICS]
    assert lines[lines.index("arenas:") + 1].startswith("  allocation_contents ")
    assert any(line.endswith("  Largest live-out buffers") for line in lines)
    assert max(len(line) for line in lines) <= 80


def test_the_example_question_is_one_line(run: Run) -> None:
    """The largest live-out buffers by TPU tiling."""
    answer = run("query", "largest_live_out", "--by", "tiling", "--top", "1", "--label", "set=devices")
    assert answer.code == 0
    assert "T(8,128)" in answer.out
    assert "16.00 GiB" in answer.out
    assert max(len(line) for line in answer.out.splitlines()) <= 80


@pytest.mark.parametrize("name", list(shipped()))
def test_help_tells_everything(run: Run, name: str) -> None:
    """Question, columns and parameters, then a command to paste."""
    answer = run("query", name, "--help")
    saved = shipped().load(name)
    text = " ".join(answer.out.split())
    assert saved.question in text
    for column in saved.columns:
        assert column.name in text
    for parameter in saved.parameters:
        assert f"--{parameter.name.replace('_', '-')} " in text
    assert answer.out.rstrip().splitlines()[-1].strip().startswith(f"xbuf query {name}")


@pytest.mark.parametrize("name", one_of_each_parameter())
def test_the_example_of_the_help_runs(run: Run, name: str) -> None:
    """It is the last line."""
    example = run("query", name, "--help").out.rstrip().splitlines()[-1].strip()
    done = run(*shlex.split(example)[1:])
    assert (done.code, done.out != "") == (0, True)


def test_a_slip_gets_a_suggestion(run: Run) -> None:
    """Unknown queries, options and choices are answered with what was meant."""
    assert "did you mean largest_live_out" in run("query", "largest_liveout").err
    assert run("query", "largest_liveout").code == 2
    assert (
        "--color" in run("query", "padding", "--tilling", "x").err
        or "--tiling" in run("query", "padding", "--tilling", "x").err
    )
    assert "did you mean color" in run("query", "largest_live_out", "--by", "colr").err
    assert "is no whole number" in run("query", "padding", "--top", "many").err
    assert "no run is 'jit_stpe'; did you mean jit_step" in run("query", "padding", "--run", "jit_stpe").err


def test_narrowing_options_may_be_repeated(run: Run) -> None:
    """--run adds runs, --label adds conditions."""
    answer = run("query", "recent_runs", "--run", "9", "--run", "10", "--format", "csv")
    assert [line.split(",")[0] for line in answer.out.splitlines()[1:]] == ["10", "9"]
    answer = run("query", "recent_runs", "--label", "batch=8", "--label", "jax=0.6.2")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err == "no run matches --label batch=8,jax=0.6.2\n"


def test_reasons_for_nothing_go_to_stderr(run: Run) -> None:
    """No match is no error: words on stderr, nothing on stdout, exit code 0."""
    answer = run("query", "largest_live_out", "--color", "77")
    assert answer == Answer(0, "", "no row matches\n")
    answer = run("query", "live_at_peak", "--module", "jit_stpe")
    assert (answer.code, answer.out) == (0, "")
    assert answer.err.startswith("no run matches --module jit_stpe; did you mean jit_step")


def test_an_empty_database_is_told(run: Run, database: Path) -> None:
    """Before the first import every query says how to load dumps."""
    answer = run("query", "padding", "--db", str(database))
    assert answer == Answer(0, "", "the database holds no runs yet; load dumps with `xbuf-ingest DIR`\n")


def test_runs_without_the_section_are_counted(run: Run) -> None:
    """When some of the selected dumps lack live ranges, that is said beside the result."""
    answer = run("query", "live_at_peak")
    assert answer.out
    assert "selected runs have no live ranges and are left out" in answer.err


def test_sql_is_printed_and_runs(run: Run) -> None:
    """--sql prints the statement instead of running it; `xbuf sql -` takes it."""
    printed = run("query", "largest_modules", "--top", "2", "--sql")
    assert "LIMIT 2" in printed.out
    expected = run("query", "largest_modules", "--top", "2", "--format", "csv").out
    assert run("sql", "-", "--format", "csv", stdin=printed.out).out == expected


def test_a_file_of_ones_own_runs(run: Run, tmp_path: Path) -> None:
    """A path runs a query file, with its own options."""
    path = tmp_path / "mine.sql"
    path.write_text(
        "-- title: Mine\n-- question: How many?\n-- parameter least BIGINT [bytes] = 0: smallest\n"
        "-- column runs BIGINT [count]: runs\n"
        "SELECT count(*) AS runs FROM selected_runs($run, $label, $module) WHERE total_bytes >= $least\n"
    )
    every = int(run("query", str(path), "--format", "csv").out.splitlines()[1])
    some = int(run("query", str(path), "--least", "1MiB", "--format", "csv").out.splitlines()[1])
    assert 0 < some < every
    assert "How many?" in run("query", str(path), "--help").out
    path.write_text("-- title: Mine\n" + path.read_text())
    answer = run("query", str(path))
    assert (answer.code, answer.err) == (2, f"error: {path}:2: a second 'title'\n")


@pytest.mark.parametrize("place", ["before", "after", "variable"])
def test_folders_of_ones_own_are_found(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """--queries stands before or behind the name; XBUF_QUERIES does the same."""
    (tmp_path / "mine.sql").write_text(
        "-- title: My own\n-- question: Q?\n-- column one INTEGER: one\nSELECT 1 AS one"
    )
    arguments = ["query", "mine", "--format", "csv"]
    if place == "before":
        arguments[1:1] = ["--queries", str(tmp_path)]
    elif place == "after":
        arguments += [f"--queries={tmp_path}"]
    else:
        monkeypatch.setenv("XBUF_QUERIES", str(tmp_path))
    assert run(*arguments).out == "one\n1\n"
    if place == "before":
        assert "My own" in run("query", "--queries", str(tmp_path)).out


def test_sql_of_ones_own(run: Run) -> None:
    """xbuf sql runs one SELECT and knows the macros."""
    assert run("sql", "SELECT 5308448 AS total_bytes, 1 AS n").out.splitlines()[-1].split() == [
        "5.06",
        "MiB",
        "1",
    ]
    assert (
        run("sql", "SELECT count(*) AS n FROM saved_queries", "--format", "csv").out
        == f"n\n{len(list(shipped()))}\n"
    )
    answer = run("sql", "SELECT 1 WHERE false")
    assert (answer.out, answer.err) == ("", "no row\n")
    answer = run("sql", "SELEC 1")
    assert (answer.code, answer.err) == (2, 'error: Parser Error: syntax error at or near "SELEC"\n')


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT * FROM read_text('/etc/hostname')",
        "COPY (SELECT 1) TO '{folder}/x.csv'",
        "ATTACH '{folder}/y.duckdb' AS y",
        "INSTALL httpfs",
        "LOAD httpfs",
        "SET enable_external_access = true",
        "DELETE FROM runs",
    ],
)
def test_sql_reaches_nothing_but_the_database(run: Run, tmp_path: Path, statement: str) -> None:
    """No file is read or written, nothing is loaded, attached or changed."""
    answer = run("sql", statement.format(folder=tmp_path))
    assert answer.code == 2
    assert answer.err.startswith("error: ")
    assert list(tmp_path.iterdir()) == []


def test_unsafe_sql_reads_files(
    run: Run, demonstration_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--unsafe lets SQL read files; the database stays read-only."""
    # What is open already keeps to the settings that it was opened with.
    monkeypatch.setenv("XBUF_DB", str(shutil.copy(demonstration_file, tmp_path / "own.duckdb")))
    (tmp_path / "x.csv").write_text("a\n7\n")
    statement = f"FROM read_csv('{tmp_path}/x.csv')"
    assert run("sql", "--unsafe", statement, "--format", "csv").out == "a\n7\n"
    assert run("sql", "--unsafe", "DELETE FROM runs").code == 2


def test_output_goes_to_a_file(run: Run, tmp_path: Path) -> None:
    """-o names file and format; a table in a file is not cut."""
    path = tmp_path / "x.json"
    assert run("query", "padding", "-o", str(path)) == Answer(
        0, "", run("query", "padding", "-o", str(path)).err
    )
    assert len(json.loads(path.read_text())) == 20
    table = tmp_path / "x.txt"
    run("query", "padding", "-o", str(table))
    assert max(len(line) for line in table.read_text().splitlines()) > 120
    answer = run("query", "padding", "--format", "parquet")
    assert (answer.code, answer.err) == (2, "error: --format parquet is binary: name a file with -o FILE\n")


def test_what_has_no_room_is_named(run: Run) -> None:
    """Columns that do not fit are told on stderr; --width 0 shows them."""
    answer = run("query", "largest_live_out", "--top", "1")
    [line] = [line for line in answer.err.splitlines() if line.startswith("no room for: ")]
    assert "module" in line
    assert line.endswith("(--width 0 or --format record shows them)")
    wide = run("query", "largest_live_out", "--top", "1", "--width", "0")
    assert "no room" not in wide.err
    assert "module" in wide.out


@pytest.mark.parametrize(
    "words", [("query", "padding"), pytest.param(("sql", "SELECT 1"), marks=pytest.mark.slow)]
)
def test_a_result_never_replaces_the_database(
    words: tuple[str, ...], run: Run, own_demonstration: Path, tmp_path: Path
) -> None:
    """By whatever name the file of -o leads to it."""
    before = own_demonstration.read_bytes()
    (tmp_path / "link").symlink_to(own_demonstration)
    (tmp_path / "log").symlink_to(f"{own_demonstration}.wal")
    os.link(own_demonstration, tmp_path / "hard")
    for name in (own_demonstration, tmp_path / "link", tmp_path / "hard", tmp_path / "log"):
        answer = run(*words, "--format", "csv", "-o", str(name))
        assert answer.code == 2
        assert "is the database itself" in answer.err
    os.unlink(tmp_path / "hard")
    assert own_demonstration.read_bytes() == before


def test_completion(run: Run) -> None:
    """Queries, options, choices, modules, labels and runs are completed."""
    assert complete("query", "largest") == ["largest_live_out", "largest_modules"]
    assert "--tiling" in complete("query", "largest_live_out", "--t")
    assert complete("query", "largest_live_out", "--by", "") == ["all", "color", "tiling"]
    assert "jit_step" in complete("query", "padding", "--module", "jit_s")
    assert complete("query", "padding", "--label", "batch=1") == ["batch=16"]
    assert "9" in complete("query", "padding", "--run", "")
    assert complete("query", "live_curve", "--peaks", "") == ["true", "false"]


def test_names_that_a_shell_would_run_are_not_offered(
    monkeypatch: pytest.MonkeyPatch, database: Path, tmp_path: Path
) -> None:
    """bash writes a completion on the command line as it stands, and runs what is in it."""
    plain = ["jit_step.1", "jit__lambda_", "module_0001.a-b"]
    risky = [
        "aa$(touch${IFS}PWNED)",
        "a`id`",
        "a;b",
        "a b",
        "a'b",
        'a"b',
        "a&b",
        "a>b",
        "a\nb",
        "--db=x",
        "a*",
    ]
    with duckdb.connect(str(database)) as connection:
        connection.execute("DROP TABLE runs")
        connection.execute(
            "CREATE TABLE runs AS SELECT unnest(?) AS module_name, NULL::VARCHAR AS stem", [plain + risky]
        )
    monkeypatch.setenv("XBUF_DB", str(database))
    assert complete("query", "padding", "--module", "") == sorted(plain)
    (tmp_path / "queries").mkdir()
    for name in ("mine", "its$(id)"):
        (tmp_path / "queries" / f"{name}.sql").write_text("SELECT 1")
    monkeypatch.setenv("XBUF_QUERIES", str(tmp_path / "queries"))
    assert complete("query", "mi") == ["mine"]
    assert complete("query", "its") == []
    assert "--queries" in complete("query", "--")


def test_completion_without_a_database_is_silent(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing database completes nothing and says nothing."""
    monkeypatch.setenv("XBUF_DB", str(tmp_path / "gone.duckdb"))
    assert complete("query", "padding", "--module", "") == []


@pytest.mark.slow
def test_the_shell_opens_read_only(own_demonstration: Path, tmp_path: Path) -> None:
    """xbuf shell starts duckdb on the database; writing needs --write."""
    copy = shutil.copy(own_demonstration, tmp_path / "copy.duckdb")

    def shell_(*arguments: str) -> subprocess.CompletedProcess[str]:
        code = "from ingest.cli.entry import xbuf; xbuf()"
        return subprocess.run(
            [sys.executable, "-c", code, "shell", "--db", str(copy), *arguments],
            capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL,
            env={**os.environ, "HOME": str(tmp_path)}, cwd=Path(__file__).parents[2],
        )  # fmt: skip

    assert "largest_live_out" in shell_("-csv", "-c", "FROM saved_queries").stdout
    assert "read-only" in shell_("-c", "DELETE FROM runs").stderr
    assert shell_("--write", "-c", "DELETE FROM run_labels").stderr == ""


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        ("/srv/xbuf", "'{0}/a b/python' -m pip install duckdb-cli"),
        ("/home/u/.local/share/pipx/venvs/xbuf", "pipx inject xbuf duckdb-cli"),
        ("/home/u/.local/share/uv/tools/xbuf", "uv tool install --with duckdb-cli xbuf"),
    ],
)
def test_a_missing_shell_is_named_with_the_line_that_installs_it(
    prefix: str, line: str, run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """To be pasted as it is: into the environment that xbuf runs in, by the tool that made it."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "a b" / "python"))
    monkeypatch.setattr(sys, "prefix", prefix)
    answer = run("shell")
    assert answer.code == 2
    assert f"`{line.format(tmp_path)}` brings it" in answer.err


def test_commands_end_their_help_with_an_example() -> None:
    """query, sql and shell each show a command to paste."""
    for command in (query, sql, shell):
        assert "Example:" in CliRunner().invoke(command, ["--help"]).output


def test_the_query_file_of_the_reference_runs(run: Run, tmp_path: Path) -> None:
    """The example of a file of one's own in docs/queries.md is right."""
    text = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
    example = text.split("## Queries of your own")[1].split("```sql\n")[1].split("```")[0]
    path = tmp_path / "big_copies.sql"
    path.write_text(example)
    answer = run("query", str(path), "--least", "1KiB")
    assert answer.code == 0
    assert "copy" in answer.out


def test_the_shell_tour_of_the_reference_runs(run: Run) -> None:
    """The statements that docs/queries.md proposes for a shell give rows."""
    text = (Path(__file__).parents[2] / "docs" / "queries.md").read_text(encoding="utf-8")
    tour = text.split("## In a DuckDB shell")[1].split("```sql\n")[1].split("```")[0]
    statements = [line for line in tour.splitlines() if line and not line.startswith("--")]
    assert len(statements) == 6
    for statement in statements:
        answer = run("sql", statement)
        assert (answer.code, answer.out != "") == (0, True), statement
