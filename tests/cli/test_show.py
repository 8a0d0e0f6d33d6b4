"""`xbuf show` starts with the answer; one buffer has a screen of its own."""

from __future__ import annotations

import json
from collections.abc import Callable

import duckdb
import pytest
from click.testing import CliRunner, Result

from ingest.cli.show import show
from ingest.errors import UsageError

pytestmark = pytest.mark.usefixtures("macros")

Show = Callable[..., Result]


@pytest.fixture
def run(demonstration: duckdb.DuckDBPyConnection) -> Show:
    """Run `xbuf show` on the demonstration, in 80 columns."""
    [[name]] = demonstration.execute("SELECT path FROM duckdb_databases() WHERE path IS NOT NULL").fetchall()

    def run_(*words: object) -> Result:
        done = CliRunner().invoke(show, [*map(str, words), "--db", str(name), "--width", "80"])
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return done

    return run_


def number(demonstration: duckdb.DuckDBPyConnection, condition: str) -> int:
    """Return the first run for which a condition holds."""
    [[run_id], *_] = demonstration.execute(f"SELECT run_id FROM runs WHERE {condition} ORDER BY 1").fetchall()
    return int(run_id)


def test_a_run_starts_with_the_answer(run: Show, demonstration: duckdb.DuckDBPyConnection) -> None:
    """The three figures, then what fills the peak; names and files only with --all, at the end."""
    wide = number(demonstration, "module_name = 'jit_mlp_wide_train_step'")
    done = run(wide)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"run {wide}: jit_mlp_wide_train_step, tpu")
    assert [line.split("  ")[0] for line in lines[2:6]] == [
        "total",
        "resident peak",
        "live peak",
        "live bytes",
    ]
    headings = [line for line in lines if line.startswith(("What ", "The "))]
    assert headings[0] == "What fills the peak, by role"
    assert headings[2:4] == ["The largest buffers at the peak", "What is odd"]
    assert "run_id" not in done.stdout
    assert f"xbuf show {wide} --all" in done.stderr
    whole = run(wide, "--all").stdout
    assert whole.index("The largest buffers") < whole.index("run_id ") < whole.index("files ")


@pytest.mark.parametrize("every", [21, pytest.param(1, marks=pytest.mark.slow)])
def test_the_roles_add_up_to_the_peak(
    every: int, run: Show, demonstration: duckdb.DuckDBPyConnection
) -> None:
    """In JSON, with all that the text has."""
    with_peak = "SELECT run_id FROM runs WHERE peak_bytes > 0 ORDER BY run_id"
    for (run_id,) in demonstration.execute(with_peak).fetchall()[::every]:
        told = json.loads(run(run_id, "--format", "json", "--top", 0).stdout)
        assert sum(role["bytes"] for role in told["peak_by_role"]) == told["peak_bytes"]
        assert round(sum(role["percent"] for role in told["peak_by_role"]), 6) == 100
        [by] = {"peak_by_line", "peak_by_scope", "peak_by_opcode"} & told.keys()
        assert sum(owner["bytes"] for owner in told[by]) == told["peak_bytes"]
        assert sum(buffer["bytes"] for buffer in told["live_at_peak"]) == told["peak_bytes"]
        assert {"findings", "stacks", "labels", "notices", "files"} <= told.keys()


def test_what_is_odd_names_the_query_that_shows_more(
    run: Show, demonstration: duckdb.DuckDBPyConnection
) -> None:
    """A missed donation is counted as the query counts it."""
    offload = number(demonstration, "module_name = 'jit_act_offload_scan'")
    told = json.loads(run(offload, "--format", "json").stdout)
    [finding] = [one for one in told["findings"] if "could have been donated" in one["text"]]
    assert finding == {
        "text": "parameters that could have been donated and were not: 1, of 16.00 MiB",
        "ask": f"xbuf query donation --run {offload} --status missed",
    }


def test_a_run_without_live_ranges_shows_what_is_known(
    run: Show, demonstration: duckdb.DuckDBPyConnection
) -> None:
    """The total alone; no table that would be empty."""
    lacking = number(demonstration, "NOT has_ranges")
    done = run(lacking)
    assert done.exit_code == 0
    assert "live peak               -" in done.stdout
    assert "What fills the peak" not in done.stdout


def test_a_buffer_has_a_screen_of_its_own(run: Show, demonstration: duckdb.DuckDBPyConnection) -> None:
    """Size, place, live range, definition, who shares its bytes before, with and after it, and uses."""
    [[run_id, value_id, name, size, start, end]] = demonstration.execute(
        """
        SELECT v.run_id, v.value_id, value_name(v.instruction, v.shape_index), v.size_bytes,
            g.start_time, g.end_time
        FROM "values" AS v JOIN ranges AS g USING (run_id, value_id)
        JOIN uses AS u USING (run_id, value_id)
        WHERE EXISTS (FROM "values" AS w JOIN ranges AS h USING (run_id, value_id)
            WHERE w.run_id = v.run_id AND w.allocation_index = v.allocation_index
            AND w.offset_bytes = v.offset_bytes AND h.end_time < g.start_time AND w.size_bytes > 0)
        AND EXISTS (FROM "values" AS w JOIN ranges AS h USING (run_id, value_id)
            WHERE w.run_id = v.run_id AND w.allocation_index = v.allocation_index
            AND w.offset_bytes = v.offset_bytes AND h.start_time > g.end_time AND w.size_bytes > 0)
        AND v.size_bytes > 0 ORDER BY v.size_bytes DESC, v.run_id, v.value_id LIMIT 1
        """
    ).fetchall()
    told = json.loads(run(run_id, name, "--format", "json").stdout)
    assert (told["value_id"], told["size_bytes"]) == (value_id, size)
    relations = {(other["share_when"], other["end_time"] < start, other["start_time"] > end)
                 for other in told["sharing"]}  # fmt: skip
    assert {("before", True, False), ("after", False, True)} <= relations
    assert relations <= {("before", True, False), ("after", False, True), ("with it", False, False)}
    [[uses]] = demonstration.execute(
        "SELECT count(*) FROM uses WHERE run_id = ? AND value_id = ?", [run_id, value_id]
    ).fetchall()
    assert len(told["uses"]) == min(uses, 20) > 0
    text = run(run_id, name).stdout
    labels = [line.split("  ")[0] for line in text.splitlines()]
    assert [label for label in labels if label in ("size", "shape", "place", "live", "defined by")] == [
        "size", "shape", "place", "live", "defined by",
    ]  # fmt: skip
    assert f"slots {start} to {end}, " in text
    assert run(run_id, value_id).stdout == text


def test_a_slip_in_a_name_gets_a_suggestion(run: Show) -> None:
    """An unknown run, an unknown value and a name like it."""
    with pytest.raises(UsageError, match="there is no run 999; `xbuf runs` lists them"):
        run(999)
    with pytest.raises(UsageError, match="there is no run 999"):
        run(999, "copy.1")
    with pytest.raises(UsageError, match=r"run 5 has no value 'p4.1x'; did you mean p4.10"):
        run(5, "p4.1x")
