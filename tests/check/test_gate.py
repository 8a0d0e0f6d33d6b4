"""What the gate finds, in dumps of one model with two batch sizes and in a database of many releases."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from itertools import pairwise
from pathlib import Path

import duckdb
import pytest

from ingest.check.baseline import as_json, read_baseline
from ingest.check.causes import growth_between, kept
from ingest.check.config import rule_from_option
from ingest.check.findings import Cause, Finding, Outcome, Report
from ingest.check.gate import Gate, NothingMeasured, check, measure_baseline
from ingest.check.rules import NoRows, Rule
from ingest.compare.comparison import compare
from ingest.compare.text import headline
from ingest.database.connect import open_database
from ingest.errors import ExitCode, UsageError
from ingest.pipeline.importer import import_dumps
from tests.support.query_databases import ask

DUMPS = Path(__file__).parents[1] / "golden/dumps"
COMPARED = DUMPS.parent / "comparisons/dumps"
SMALL, LARGE = str(DUMPS / "batch-8"), str(DUMPS / "batch-32")
GROWN = 4_722_688 - 4_329_472
"""Bytes by which the peak of LARGE is more than that of SMALL."""


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Baseline file of SMALL."""
    path = tmp_path_factory.mktemp("baseline") / "memory.json"
    path.write_text(as_json(measure_baseline(Gate((SMALL,), "none.duckdb"))))
    return path


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Database with SMALL as run 1 and LARGE as run 2."""
    path = str(tmp_path_factory.mktemp("two") / "xbuf.duckdb")
    for folder, batch in ((SMALL, "8"), (LARGE, "32")):
        import_dumps([folder], path, labels={"batch": batch}, jobs=1)
    return path


def option(text: str) -> Rule:
    kind, _, given = text.partition(" ")
    return rule_from_option(kind, given)


def findings(report: Report) -> list[tuple[str, str]]:
    return [(finding.outcome.value, finding.sentence) for finding in report.findings]


def only(report: Report) -> Finding:
    (finding,) = report.findings
    return finding


@pytest.fixture(scope="module")
def two_runs(database: str) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: `database`."""
    with open_database(database, read_only=True) as connection:
        yield connection


def on(connection: duckdb.DuckDBPyConnection, what: tuple[str, ...], *rules: Rule) -> Report:
    """Hold runs of an open database to rules."""
    with connection.cursor() as cursor:
        return check(Gate(what, "open", rules), reading=lambda _: nullcontext(cursor))


@pytest.mark.parametrize("kind", ["file", pytest.param("directory", marks=pytest.mark.slow), "label"])
def test_growth_names_the_buffer_and_its_line(memory: Path, database: str, kind: str) -> None:
    """With whatever it is compared, and the changes of all buffers add up to the peak's."""
    rules = (option("growth figure=peak,bytes=64KiB"),)
    gate = {
        "file": Gate((LARGE,), database, rules, memory),
        "directory": Gate((LARGE,), database, rules, Path(SMALL)),
        "label": Gate((LARGE,), database, rules, baseline_label="batch=8"),
    }[kind]
    finding = only(report := check(gate))
    assert report.exit_code is ExitCode.BROKEN
    assert (finding.module, finding.backend, finding.outcome) == ("jit_step", "cpu", Outcome.BROKEN)
    assert (finding.bytes, finding.before_bytes) == (4_722_688, 4_329_472)
    assert "peak grew by 384.0 KiB (9.1 %) to 4.50 MiB, more than rule 'growth of peak'" in finding.sentence
    assert "what grew most is add.6 of /home/user/train/step.py:11 (" in finding.sentence
    assert finding.sentence.endswith("by 96.0 KiB")
    assert sum(cause.growth_bytes or 0 for cause in finding.causes) == GROWN
    assert finding.place is not None
    assert (finding.place.file, finding.place.line) == ("/home/user/train/step.py", 11)
    if kind != "file":  # which has no buffers, but sums of those with one name
        with open_database(database, read_only=True) as connection:
            (pair,) = compare(connection, [1], [2]).pairs
        _, cause = headline(pair).split("; ")
        assert finding.sentence.endswith(f"; {cause}")  # what `xbuf diff` says


@pytest.mark.slow
def test_a_file_and_the_runs_themselves_compare_alike(memory: Path, database: str) -> None:
    """Runs against a file and against a directory, as dumps against a file."""
    rules = (option("growth figure=total,bytes=1"), option("growth figure=resident,bytes=1,percent=50"))
    expected = findings(check(Gate((LARGE,), database, rules, memory)))
    assert [outcome for outcome, _ in expected] == ["broken", "passed"]
    for gate in (
        Gate(("2",), database, rules, memory),
        Gate(("2",), database, rules, Path(SMALL)),
    ):
        assert findings(check(gate)) == expected


@pytest.mark.slow
def test_dumps_and_runs_are_matched_whichever_side_they_are(tmp_path: Path) -> None:
    """A release that names all else anew grows as `xbuf diff` says, over a label as over a directory."""
    before, after = str(COMPARED / "jax-0.4.38"), str(COMPARED / "jax-0.10.2-batch-16")
    database = str(tmp_path / "xbuf.duckdb")
    for folder, jax in ((after, "0.10.2"), (before, "0.4.38")):  # the older one has the greater number
        import_dumps([folder], database, labels={"jax": jax}, jobs=1)
    rules = (option("growth figure=peak"),)
    gates = [
        Gate((after,), database, rules, Path(before)),
        Gate((after,), database, rules, baseline_label="jax=0.4.38"),
        Gate(("jax=0.10.2",), database, rules, baseline_label="jax=0.4.38"),
        Gate(("jax=0.10.2",), database, rules, Path(before)),
    ]
    first, *others = [only(check(gate)) for gate in gates]
    assert "what grew most is" in first.sentence
    assert "of /home/user/train/model.py:" in first.sentence
    for other in others:
        assert (other.sentence, other.causes) == (first.sentence, first.causes)
    assert others[-1].run_id == 1
    with open_database(database, read_only=True) as connection:
        (pair,) = compare(connection, [2], [1]).pairs
    _, cause = headline(pair).split("; ")
    assert first.sentence.endswith(f"; {cause}")


def test_dumps_that_are_their_own_baseline_have_not_grown() -> None:
    folder = Path(SMALL)
    report = check(Gate((SMALL,), "none.duckdb", (option("growth figure=peak,percent=0,bytes=0"),), folder))
    assert (report.runs, only(report).outcome) == (1, Outcome.PASSED)
    assert only(report).sentence.endswith("peak is as before, 4.13 MiB")


def test_growth_passes_below_either_bound_and_when_it_shrinks(memory: Path, database: str) -> None:
    """The defaults let 384 KiB pass, 10 % let 9.1 % pass, and the other way round it shrinks."""
    rules = (option("growth figure=peak"), option("growth figure=peak,bytes=0,percent=10"))
    report = check(Gate(("2",), database, rules, memory))
    assert report.exit_code == ExitCode.OK
    assert [finding.outcome for finding in report.findings] == [Outcome.PASSED] * 2
    shrinks = (option("growth figure=peak,bytes=0,percent=0"),)
    shrunk = check(Gate(("1",), database, shrinks, baseline_label="batch=32"))
    assert only(shrunk).sentence == "jit_step (cpu): peak changed by -384.0 KiB, 4.13 MiB"


def test_all_other_buffers_are_summed_up() -> None:
    """Of more changes than a finding keeps, the rest has a row; the sum stays."""
    causes = [Cause(f"v{i}", None, None, None, None, 1, i, 0, i) for i in (*range(1, 9), *range(-4, 0))]
    chosen = kept(causes, sum(range(1, 9)) - sum(range(1, 5)))
    assert [cause.value for cause in chosen] == [
        "v8",
        "v7",
        "v6",
        "v5",
        "v4",
        "v-4",
        "v-3",
        "v-2",
        "all else",
    ]
    assert sum(cause.growth_bytes or 0 for cause in chosen) == 26
    assert chosen[-1].number == 4


def test_the_changes_between_any_two_runs_add_up(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Buffers that are new, gone, larger, smaller, and the rest; to the last byte."""
    runs = demonstration.execute(
        "SELECT run_id, peak_bytes FROM runs WHERE peak_bytes > 0 ORDER BY run_id LIMIT 3"
    ).fetchall()
    assert len(runs) == 3
    for (before, earlier), (after, now) in pairwise(runs):
        causes = kept(growth_between(demonstration, before, after), now - earlier)
        assert sum(cause.growth_bytes or 0 for cause in causes) == now - earlier


def test_a_limit_names_the_figure_and_the_largest_buffer(two_runs: duckdb.DuckDBPyConnection) -> None:
    figures = ("peak", "resident", "total")
    report = on(two_runs, ("2",), *(option(f"limit figure={name},at_most=4722688") for name in figures))
    peak, resident, total = report.findings
    assert peak.outcome is Outcome.PASSED
    assert (resident.bytes, total.bytes) == (4_853_776, 4_853_776)
    assert resident.sentence == (
        "jit_step (cpu): resident of 4.63 MiB is 128.0 KiB more than rule 'limit of resident' allows"
        " (at most 4.50 MiB); the largest at the peak is weights.2 (weights, f32[1024,1024]{1,0}) of 4.00 MiB"
    )
    assert report.exit_code == ExitCode.BROKEN


def test_rules_cover_modules_by_name_and_backend(demonstration: duckdb.DuckDBPyConnection) -> None:
    runs = demonstration.execute(
        "SELECT run_id FROM runs WHERE backend = 'tpu' AND peak_bytes > 0"
    ).fetchall()
    report = on(demonstration, ("set=devices",), option("limit figure=peak,at_most=0,backend=tpu"))
    assert {finding.run_id for finding in report.of(Outcome.BROKEN)} <= {run_id for (run_id,) in runs}
    assert {finding.backend for finding in report.findings} == {"tpu"}
    nothing = on(demonstration, ("set=devices",), option("limit figure=peak,at_most=0,module=jit_nothing*"))
    assert nothing.exit_code is ExitCode.UNCHECKED
    assert "covers no module: none matches jit_nothing*; checked are " in only(nothing).sentence


def test_padding_and_donations_are_those_of_the_saved_queries(seeds: duckdb.DuckDBPyConnection) -> None:
    """Each run's figure is the sum of what `padding` and `donation` list."""
    padding = on(seeds, ("1", "2", "3", "4", "5"), option("padding at_most=0"))
    listed: dict[int, int] = {}
    for run_id, size in ask(seeds, "padding", "run_id", "padding_at_peak_bytes"):
        listed[run_id] = listed.get(run_id, 0) + (size or 0)
    assert {one.run_id: one.bytes for one in padding.of(Outcome.BROKEN)} == {
        k: v for k, v in listed.items() if v
    }
    donation = on(seeds, ("5",), option("donation at_most=1MiB"))
    assert only(donation).bytes == sum(
        size for (size,) in ask(seeds, "donation", "size_bytes", run=5, status="missed")
    )
    assert "the largest is parameter 3 p3.6 (" in only(donation).sentence
    assert "which result all-reduce.28{0} fits" in only(donation).sentence


@pytest.mark.parametrize("figure", ["peak", "resident"])
def test_what_a_dump_does_not_say_is_not_taken_for_good(
    demonstration: duckdb.DuckDBPyConnection, figure: str
) -> None:
    """A run without live ranges: neither passed nor broken, for each figure that needs them."""
    column = {"peak": "peak_bytes", "resident": "resident_peak_bytes"}[figure]
    rows = demonstration.execute(f"SELECT run_id FROM runs WHERE {column} IS NULL").fetchall()
    assert rows
    what = tuple(str(run_id) for (run_id,) in rows)
    report = on(demonstration, what, option(f"limit figure={figure},at_most=1PiB"))
    assert {finding.outcome for finding in report.findings} == {Outcome.UNCHECKED}
    assert report.exit_code == ExitCode.UNCHECKED
    if figure == "peak":
        lacking = on(demonstration, what, option("padding at_most=1PiB"), NoRows(query="live_at_peak"))
        assert {finding.outcome for finding in lacking.findings} == {Outcome.UNCHECKED}


def test_a_query_must_have_no_rows(two_runs: duckdb.DuckDBPyConnection) -> None:
    """A saved query is narrowed to the runs that the rule covers; a SELECT finds them in checked_runs."""
    rules = (
        NoRows(query="live_at_peak", parameters=(("top", "1"),)),
        NoRows(
            name="small",
            sql="SELECT * FROM runs JOIN checked_runs USING (run_id) WHERE total_bytes < 4500000",
        ),
        NoRows(sql='SELECT source_file, source_line FROM "values" WHERE source_line = 11'),
        NoRows(query="collectives", module="jit_st*"),
    )
    live, small, source, collectives = on(two_runs, ("2",), *rules).findings
    assert live.outcome is Outcome.BROKEN
    assert live.sentence.startswith(
        "rule 'no rows of live_at_peak' wants no row and has 1 row: run_id 2, bytes 4.00 MiB"
    )
    assert (small.outcome, small.sentence) == (Outcome.PASSED, "rule 'small' holds: no row")
    assert source.place is not None
    assert (source.place.file, source.place.line) == ("/home/user/train/step.py", 11)
    assert collectives.outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        (NoRows(query="pading"), "did you mean padding"),
        (NoRows(query="padding", parameters=(("topp", "1"),)), "has no parameter 'topp'; did you mean top"),
        (NoRows(query="padding", parameters=(("top", "many"),)), "'many' is no whole number"),
        (NoRows(query="padding", parameters=(("run", "1"),)), "is what the gate narrows"),
        (NoRows(sql="SELECT * FROM read_csv('/etc/passwd')"), r"a SELECT': read_csv\(\) does more"),
        (NoRows(sql="COPY runs TO '/tmp/runs.csv'"), "does more than read"),
        (NoRows(sql="DROP TABLE runs"), "does more than read"),
        (NoRows(sql="SELECT nothing FROM runs"), "rule 'no rows of a SELECT': .*nothing"),
    ],
)  # fmt: skip
def test_a_query_that_cannot_run_is_wrong_usage(
    two_runs: duckdb.DuckDBPyConnection, rule: Rule, message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        on(two_runs, ("1",), rule)


def test_no_baseline_is_never_green(memory: Path, database: str, tmp_path: Path) -> None:
    """None named, a file that is not there, a label that no run has."""
    rules = (option("growth figure=peak"),)
    for gate, reason in (
        (Gate(("2",), database, rules), "none is named"),
        (Gate(("2",), database, rules, tmp_path / "none.json"), "none.json does not exist; write it with"),
        (Gate(("2",), database, rules, baseline_label="batch=9"), "has label batch=9"),
        (Gate((LARGE,), database, rules, baseline_label="batch=9"), "has label batch=9"),
    ):
        report = check(gate)
        assert report.exit_code == ExitCode.UNCHECKED
        assert "rule 'growth of peak' has no baseline: " in only(report).sentence
        assert reason in only(report).sentence


def test_modules_that_came_or_went_ask_for_a_new_baseline(memory: Path, tmp_path: Path) -> None:
    """Unless they are too small to break the rule, whatever they were before."""
    other = tmp_path / "dumps"
    other.mkdir()
    dump = next(Path(LARGE).iterdir())
    shutil.copy(dump, other / dump.name.replace("jit_step", "jit_other"))
    new, gone = check(Gate((str(other),), "none.duckdb", (option("growth figure=peak"),), memory)).findings
    assert (new.outcome, gone.outcome) == (Outcome.UNCHECKED, Outcome.UNCHECKED)
    assert "memory.json lacks this module (peak 4.50 MiB); run --update-baseline" in new.sentence
    assert "jit_step (cpu): is in " in gone.sentence
    database = str(tmp_path / "xbuf.duckdb")
    import_dumps([other], database, jobs=1)
    report = check(Gate(("1",), database, (option("growth figure=peak,bytes=16MiB"),), memory))
    assert only(report).outcome is Outcome.PASSED
    narrowed = check(Gate(("1",), database, (option("growth figure=peak,module=jit_other,bytes=1"),), memory))
    assert only(narrowed).module == "jit_other"


def test_retraces_are_paired_by_signature_then_in_order(tmp_path: Path) -> None:
    """Two runs of one module: each finds the one that was called alike, wherever it stands."""
    for folder, order in (("before", (SMALL, LARGE)), ("after", (LARGE, SMALL))):
        (tmp_path / folder).mkdir()
        for number, source in enumerate(order):
            dump = next(Path(source).iterdir())
            shutil.copy(dump, tmp_path / folder / dump.name.replace("0001", f"000{number + 2}"))
    report = check(
        Gate(
            (str(tmp_path / "after"),),
            "none.duckdb",
            (option("growth figure=peak,bytes=0,percent=0"),),
            tmp_path / "before",
        )
    )
    assert [
        (finding.outcome.value, finding.bytes == finding.before_bytes) for finding in report.findings
    ] == [
        ("passed", True),
        ("passed", True),
    ]


def test_a_dump_that_is_rejected_keeps_the_gate_shut(tmp_path: Path) -> None:
    """The others are checked; a baseline is not made of half."""
    dump = next(Path(SMALL).iterdir())
    shutil.copy(dump, tmp_path)
    broken = tmp_path / dump.name.replace("jit_step", "jit_broken")
    broken.write_text(dump.read_text().replace("Total bytes used: ", "Total bytes used: 1"))
    os.utime(broken, (0, 0))
    report = check(Gate((str(tmp_path),), "none.duckdb", (option("limit figure=peak,at_most=1GiB"),)))
    assert [finding.outcome for finding in report.findings] == [Outcome.UNCHECKED, Outcome.PASSED]
    assert f"{broken}:" in report.findings[0].sentence
    assert report.exit_code == ExitCode.UNCHECKED
    with pytest.raises(NothingMeasured, match=r"rejected: .*; the baseline stays as it is"):
        measure_baseline(Gate((str(tmp_path),), "none.duckdb"))
    with pytest.raises(UsageError, match=r"rejected: .*; a baseline must be whole"):
        check(Gate((SMALL,), "none.duckdb", (option("growth figure=peak"),), tmp_path))


def test_a_directory_without_dumps_is_not_green(tmp_path: Path) -> None:
    report = check(Gate((str(tmp_path),), "none.duckdb", (option("limit figure=peak,at_most=1GiB"),)))
    assert only(report).sentence.endswith("none matches *; no run was checked")
    assert report.exit_code == ExitCode.UNCHECKED
    with pytest.raises(NothingMeasured, match="no run to keep"):
        measure_baseline(Gate((str(tmp_path),), "none.duckdb"))


@pytest.mark.parametrize(
    ("what", "runs"),
    [(("1",), 1), (("1,2",), 2), (("batch=*",), 2), (("latest",), 1), (("jit_step", "batch=8"), 2)],
)
def test_runs_are_named_by_reference(
    two_runs: duckdb.DuckDBPyConnection, what: tuple[str, ...], runs: int
) -> None:
    assert on(two_runs, what, option("limit figure=peak,at_most=1GiB")).runs == runs


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (("9",), "there is no run 9"),
        (("nowhere",), "no run is 'nowhere'; a run is a number, latest"),
        ((SMALL, "1"), "is a path and 1 is none; check dumps, or runs"),
    ],
)
def test_what_is_neither_run_nor_dump_is_refused(
    two_runs: duckdb.DuckDBPyConnection, what: tuple[str, ...], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        on(two_runs, what, option("donation at_most=0"))


def test_a_baseline_is_the_same_wherever_it_is_written(memory: Path, tmp_path: Path, database: str) -> None:
    """Of copied dumps, of the database's runs, and of what was read back."""
    shutil.copytree(SMALL, tmp_path / "copy")
    for gate in (Gate((str(tmp_path / "copy"),), database), Gate(("1",), database)):
        assert as_json(measure_baseline(gate)) == memory.read_text()
    assert as_json(read_baseline(memory)) == memory.read_text()


def test_a_baseline_leaves_out_small_buffers_and_says_how_small(memory: Path) -> None:
    """The constant of 4 KiB is below a thousandth of the peak."""
    (module,) = json.loads(memory.read_text())["modules"]
    assert module["left_out"] == 4096
    assert "constant" not in module["at_peak"]
    assert module["at_peak"]["temp"] == {"layer/add": 32768, "layer/dot_general": 32768}


@pytest.fixture
def damaged(memory: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(memory, tmp_path / "memory.json"))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{\n", "{\n,", "memory.json:2: is no JSON"),
        ('"xbuf_baseline": 1', '"xbuf_baseline": 2', "is a baseline of format 2, this xbuf reads 1"),
        ('"xbuf_baseline": 1', '"x": 1', "is no baseline"),
        ('"peak": ', '"peak": -', "damaged"),
        ('"peak"', '"peek"', "damaged"),
        ('"module": "jit_step"', '"module": 3', "damaged"),
        ('"temp": {', '"temp": {"x": 1.5,', "damaged"),
    ],
)
def test_a_damaged_baseline_is_refused(damaged: Path, old: str, new: str, message: str) -> None:
    """With the remedy, and before dumps are imported."""
    text = damaged.read_text()
    assert old in text
    damaged.write_text(text.replace(old, new, 1))
    with pytest.raises(UsageError, match=rf"{message}.*; write it anew with `xbuf check --update-baseline`"):
        check(Gate(("/nowhere/at/all",), "none.duckdb", (option("growth figure=peak"),), damaged))


def test_the_database_is_only_read(database: str) -> None:
    """Tables that a rule needs are temporary."""
    before = Path(database).read_bytes()
    check(Gate(("1",), database, (NoRows(sql="SELECT * FROM checked_runs"),)))
    assert Path(database).read_bytes() == before
    with open_database(database, read_only=True) as connection:
        assert (
            connection.execute("SELECT 1 FROM duckdb_tables() WHERE table_name = 'checked_runs'").fetchall()
            == []
        )
