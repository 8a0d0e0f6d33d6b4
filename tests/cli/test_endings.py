"""However a program ends: one line on stderr, a documented exit code, and what was loaded stays."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import duckdb
import pytest

from ingest import import_dumps
from tests.support.dump_sets import SEEDS

ROOT = Path(__file__).parents[2]
SLOW = pytest.mark.slow
INGEST = "from ingest.cli.entry import xbuf_ingest as main"
XBUF = "from ingest.cli.entry import xbuf as main"


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with one run of a module that no ASCII terminal can show."""
    folder = tmp_path_factory.mktemp("loaded")
    database = folder / "xbuf.duckdb"
    import_dumps([SEEDS[0]], database)
    with duckdb.connect(str(database)) as connection:
        connection.execute("UPDATE runs SET module_name = 'jit_é→😀'")
    return database


def program(
    main: str, *arguments: object, before: str = "", **options: object
) -> subprocess.CompletedProcess[Any]:
    """Run a program in a process of its own; `before` is run ahead of it."""
    code = f"{main}\n{dedent(before)}\nmain()"
    settings: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, check=False, **settings)


def strike_in(target: str, when: str = "before") -> str:
    """Return code that presses Ctrl-C as a function is called, or as it returns."""
    module, _, name = target.rpartition(".")
    owner = f"importlib.import_module({module!r})"
    if ":" in module:
        module, _, cls = module.partition(":")
        owner = f"importlib.import_module({module!r}).{cls}"
    return f"""
        import importlib, os, signal
        owner = {owner}
        real = getattr(owner, {name!r})
        def struck(*arguments, **options):
            if {when!r} == "after":
                result = real(*arguments, **options)
            os.kill(os.getpid(), signal.SIGINT)
            return result if {when!r} == "after" else real(*arguments, **options)
        setattr(owner, {name!r}, struck)
        """


@pytest.mark.parametrize(
    ("where", "when", "said"),
    [
        pytest.param("ingest.pipeline.importer.check_paths", "before", "nothing was loaded", marks=SLOW),
        pytest.param("ingest.pipeline.importer.read_tasks", "before", "nothing was loaded", marks=SLOW),
        pytest.param("ingest.pipeline.importer.read_tasks", "after", "1 dump was loaded", marks=SLOW),
        ("ingest.pipeline.loading.load_journal", "before", "1 dump is read and kept"),
        pytest.param("ingest.pipeline.loading.load_journal", "after", "1 dump is read and kept", marks=SLOW),
        pytest.param("ingest.pipeline.importer:_Import.load", "after", "1 dump was loaded", marks=SLOW),
        pytest.param("ingest.pipeline.importer:_Import.summary", "after", "1 dump was loaded", marks=SLOW),
        pytest.param("ingest.cli.ingest._as_text", "after", "1 dump was loaded", marks=SLOW),
        pytest.param("ingest.cli.ingest.flush_stdout", "after", "", marks=SLOW),
    ],
)
def test_ctrl_c_anywhere_in_an_import_ends_with_130_and_one_line(
    database: Path, where: str, when: str, said: str
) -> None:
    """The line says what was kept, and the next import has everything."""
    done = program(INGEST, SEEDS[0], "--db", database, before=strike_in(where, when))
    (line,) = done.stderr.splitlines()
    assert done.returncode == 130
    assert line.startswith("interrupted")
    assert said in line
    import_dumps([SEEDS[0]], database)
    with duckdb.connect(str(database), read_only=True) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]


@pytest.mark.parametrize(
    "statement",
    [
        pytest.param(
            "SELECT sum(hash(a.range * b.range)) FROM range(3_000_000) AS a, range(1_000_000) AS b",
            marks=SLOW,
        ),
        "SELECT * FROM range(3_000_000) AS a, range(1_000_000) AS b WHERE hash(a.range, b.range) = 0",
    ],
)
def test_ctrl_c_while_duckdb_works_is_an_interruption(loaded: Path, statement: str) -> None:
    """As it begins, where DuckDB makes a RuntimeError of it, and as it fetches, where it is deaf."""
    before = """
        import os, signal, threading
        import ingest.query.run as run
        real = run.run_sql
        def run_sql(*arguments, **options):
            threading.Timer(0.2, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            return real(*arguments, **options)
        run.run_sql = run_sql
        """
    done = program(XBUF, "sql", "--db", loaded, statement, before=before)
    assert (done.returncode, done.stderr) == (130, "interrupted\n")


def test_ctrl_c_before_anything_is_imported_is_one_line() -> None:
    """Also while click and the command are still being imported."""
    before = """
        import os, signal, sys
        class Strike:
            def find_spec(self, name, *rest):
                if name == "click":
                    os.kill(os.getpid(), signal.SIGINT)
        sys.meta_path.insert(0, Strike())
        """
    done = program(XBUF, "runs", before=before)
    assert (done.returncode, done.stderr) == (130, "interrupted; nothing was done yet\n")


@pytest.mark.slow
def test_a_second_ctrl_c_ends_at_once(database: Path) -> None:
    """A user who presses it again does not wait for the load of what was read."""
    before = strike_in("ingest.pipeline.importer.read_tasks") + strike_in(
        "ingest.pipeline.loading.open_writer"
    ).replace("real", "real_2").replace("struck", "struck_2")
    done = program(INGEST, SEEDS[0], "--db", database, before=before)
    assert done.returncode == 130
    assert done.stderr.startswith("interrupted again: ended at once")
    assert import_dumps([SEEDS[0]], database).found == 1


def test_a_worker_that_was_just_forked_leaves_ctrl_c_to_its_parent() -> None:
    """Until it ignores the signal it has its parent's handler."""
    code = """
        import os, signal
        from ingest.cli.interrupts import Interrupts
        interrupts = Interrupts()
        interrupts.watch()
        child = os.fork()
        if child == 0:
            os.kill(os.getpid(), signal.SIGINT)
            os._exit(7 if not interrupts.happened else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
        """
    subprocess.run([sys.executable, "-c", dedent(code)], check=True, cwd=ROOT)


# --- streams -------------------------------------------------------------------------------------------


_EACH = """
one = main
def main():
    import sys
    for words in {commands}:
        sys.argv[1:] = words
        try:
            one()
        except SystemExit as ended:
            assert not ended.code
        print(end="\\0", flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "cp1252:strict", "utf-8"])
def test_no_output_fails_for_its_encoding(loaded: Path, encoding: str, tmp_path: Path) -> None:
    """Tables, JSON, messages and file names; JSON stays JSON."""
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "XBUF_DB": str(loaded), "COLUMNS": "70"}
    codec = encoding.partition(":")[0]

    commands = (
        ["runs"],
        ["show", "1"],
        ["query", "largest_modules"],
        ["query"],
        ["forget", "--run", "1"],
        ["sql", "SELECT module_name FROM runs", "--format", "json"],
        ["show", "1", "--format", "json"],
    )
    # One after the other in one process, with a NUL behind the output of each.
    every = program(XBUF, before=_EACH.format(commands=commands), env=environment, text=False)
    assert (every.returncode, "Traceback" in every.stderr.decode(codec)) == (0, False)
    *outputs, rest = every.stdout.decode(codec).split("\0")
    assert ([bool(output) for output in outputs], rest) == ([True] * len(commands), "")
    assert json.loads(outputs[-2]) == [{"module_name": "jit_é→😀"}]
    assert "é→😀" in json.loads(outputs[-1])["module_name"]
    missing = tmp_path / "é→😀…"
    done = program(INGEST, missing, env=environment, text=False)
    assert done.returncode == 2
    said = done.stderr.decode(codec)
    assert "PATHS" in said or "no such" in said.lower()
    if codec == "ascii":
        assert "\\u2192\\ud83d\\ude00..." in said


def test_json_stays_json_in_ascii(loaded: Path) -> None:
    """What the encoding lacks is escaped as JSON escapes it."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "XBUF_DB": str(loaded)}
    asked = ("sql", "SELECT module_name FROM runs", "--format", "json")
    done = program(XBUF, *asked, env=environment, text=False)
    assert (done.returncode, done.stderr) == (0, b"")
    assert json.loads(done.stdout.decode("ascii")) == [{"module_name": "jit_é→😀"}]


def test_sql_from_stdin_is_utf_8_whatever_the_locale(loaded: Path) -> None:
    """Not the locale's encoding, and bytes that are none are named."""
    environment = {**os.environ, "PYTHONIOENCODING": "ascii", "XBUF_DB": str(loaded)}

    def sql(text: bytes) -> subprocess.CompletedProcess[bytes]:
        return program(XBUF, "sql", "-", "--format", "csv", input=text, text=False, env=environment)

    assert sql("SELECT length('é→') AS n".encode()).stdout == b"n\n2\n"
    wrong = sql(b"SELECT '\xff'")
    assert (wrong.returncode, wrong.stderr) == (2, b"error: stdin: SQL is UTF-8, and byte 8 is not\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words",
    [
        ["sql", "FROM runs"],
        *(
            pytest.param(words, marks=SLOW)
            for words in (["runs"], ["show", "1"], ["db", "status"], ["query"])
        ),
    ],
)
def test_a_full_stdout_is_one_line_and_exit_code_3(loaded: Path, words: list[str]) -> None:
    """Nothing of the interpreter's own comes after it."""
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = program(XBUF, *words, stdout=full, env={**os.environ, "XBUF_DB": str(loaded)})
    assert done.returncode == 3
    assert done.stderr == "error: stdout cannot be written: No space left on device\n"


@pytest.mark.slow
def test_an_import_whose_summary_cannot_be_printed_says_that_it_is_complete(database: Path) -> None:
    """Also where stdout is closed; and the rows are there."""
    done = program("import os; os.close(1)\n" + INGEST, SEEDS[0], "--db", database)
    assert done.returncode == 3
    assert done.stderr.startswith("error: stdout cannot be written: ")
    assert done.stderr.endswith("; the import itself is complete: 1 loaded\n")
    assert import_dumps([SEEDS[0]], database).unchanged == 1


def test_a_reader_that_leaves_early_is_no_error(loaded: Path) -> None:
    """`xbuf sql ... | head -1`."""
    read, write = os.pipe()
    os.close(read)
    try:
        done = program(XBUF, "sql", "FROM range(100000)", "--format", "csv", "--db", loaded, stdout=write)
    finally:
        os.close(write)
    assert (done.returncode, done.stderr) == (0, "")


def fail_with(error: str) -> str:
    """Return code that lets every import fail as it is about to load."""
    return f"""
        import ingest.pipeline.loading as loading
        def fail(*arguments, **options):
            raise {error}
        loading.open_writer = fail
        """


@pytest.mark.parametrize(
    ("error", "line"),
    [
        pytest.param(
            "OSError(24, 'Too many open files', '/x')",
            "error: /x: Too many open files; nothing that was loaded",
            marks=SLOW,
        ),
        pytest.param(
            "OSError(37, 'No locks available')",
            "error: the system: No locks available; nothing that was loaded",
            marks=SLOW,
        ),
        pytest.param("MemoryError()", "error: out of memory; nothing that was loaded is lost", marks=SLOW),
        ("ValueError('odd\\nmore')", "error: internal: ValueError: odd (ingest.py:"),
    ],
)
def test_an_error_that_nobody_expected_is_one_line_and_exit_code_3(
    database: Path, error: str, line: str
) -> None:
    """With what was kept, which the next import loads."""
    done = program(INGEST, SEEDS[0], "--db", database, before=fail_with(error))
    kept, said = done.stderr.splitlines()
    assert done.returncode == 3
    assert kept == "1 dump is read and kept: the next import loads what was read"
    assert said.startswith(line.replace("(ingest.py:", "("))
    assert import_dumps([SEEDS[0]], database).resumed >= 1


@pytest.mark.slow
def test_the_traceback_is_there_for_whoever_asks(database: Path) -> None:
    """Only then: see above."""
    environment = {**os.environ, "XBUF_TRACEBACK": "1"}
    before = fail_with("ValueError('odd')")
    traced = program(INGEST, SEEDS[0], "--db", database, before=before, env=environment)
    assert "Traceback" in traced.stderr
    assert traced.returncode == 3


def test_ctrl_c_is_left_alone_in_a_program_that_uses_the_library(tmp_path: Path) -> None:
    """Importing the package and importing dumps changes no signal handler."""
    before = signal.getsignal(signal.SIGINT)
    import_dumps([SEEDS[0]], tmp_path / "xbuf.duckdb")
    assert signal.getsignal(signal.SIGINT) is before
