"""The wrong answers seen in the wild are not given: each trap of the field is a test."""

from __future__ import annotations

import duckdb
import pytest

from ingest.query.blocks import create_temporary
from ingest.query.catalog import shipped
from tests.support.query_databases import ask


def test_an_arena_is_never_counted_by_summing_its_values(seeds: duckdb.DuckDBPyConnection) -> None:
    """Seed 004 packs 106,954,752 bytes of values in an arena of 90,177,536; only the latter is memory."""
    packed = seeds.execute(
        'SELECT sum(size_bytes) FROM "values" WHERE run_id = 5 AND allocation_index = 12'
    ).fetchone()
    assert packed == (106954752,)
    assert (1, 90177536) in ask(seeds, "memory_by_space", "color", "bytes", run="5")
    assert [(90177536,)] == ask(seeds, "peak_by_color", "peak_bytes", run="5", color=1)
    (temp,) = ask(seeds, "largest_modules", "temp_bytes", run="5")
    assert temp == (49184 + 8 + 90177536,)


def test_slot_maxima_are_never_summed(seeds: duckdb.DuckDBPyConnection) -> None:
    """The largest values of the four slots of 004's arena exceed what is ever live in it together."""
    (row,) = [r for r in ask(seeds, "fragmentation", "allocation_index", "peak_bytes", run="5") if r[0] == 12]
    assert row == (12, 58720256 + 16777216 + 14680064)


def test_a_donated_parameter_is_counted_once(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The roles of a run add up to its total although a donated parameter is argument and result."""
    roles = ask(demonstration, "memory_by_role", "run_id", "role", "bytes")
    donated = {run_id for run_id, role, _ in roles if role == "donated argument"}
    assert donated
    totals = dict(ask(demonstration, "largest_modules", "run_id", "total_bytes"))
    for run_id, total in totals.items():
        assert total == sum(size for run, _, size in roles if run == run_id)
    parts = ask(
        demonstration, "largest_modules", "total_bytes", "argument_bytes", "donated_bytes", "result_bytes",
        "temp_bytes", "constant_bytes", "run_id",
    )  # fmt: skip
    scratch = dict(ask(demonstration, "thread_local", "run_id", "thread_local_bytes"))
    for total, *sizes, run_id in parts:
        assert total == sum(sizes) + scratch.get(run_id, 0)


def test_a_donated_parameter_is_one_live_out_buffer(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The state of jit_step is parameter and result: one row, under the value that leaves."""
    rows = ask(
        demonstration, "largest_live_out", "value", "kind", "size_bytes", module="jit_step", label="batch=8"
    )
    assert rows == [
        ("dynamic-update-slice.8", "parameter+output", 32768),
        ("copy.9", "output", 32768),
        ("tuple.10", "output", 16),
    ]


def test_bytes_shared_at_the_peak_are_counted_once(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The values live at a peak add up to that peak, for every run that has one."""
    peaks = demonstration.execute("SELECT run_id, peak_bytes FROM runs WHERE peak_bytes > 0").fetchall()
    sums: dict[int, int] = {}
    for run_id, size in ask(demonstration, "live_at_peak", "run_id", "bytes"):
        sums[run_id] = sums.get(run_id, 0) + size
    assert dict(peaks) == sums


@pytest.mark.parametrize("query", ["memory_by_dtype", "memory_by_opcode", "memory_by_source"])
def test_a_breakdown_of_the_peak_adds_up_to_the_peak(
    demonstration: duckdb.DuckDBPyConnection, query: str
) -> None:
    """However the memory at the peak is parted, the parts are the whole."""
    peaks = demonstration.execute("SELECT run_id, peak_bytes FROM runs WHERE peak_bytes > 0").fetchall()
    sums: dict[int, int] = {}
    for run_id, size in ask(demonstration, query, "run_id", "bytes"):
        sums[run_id] = sums.get(run_id, 0) + size
    assert dict(peaks) == sums


def test_runs_are_compared_without_value_ids_and_suffixes(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The same program under another numbering shows no changed buffers."""
    before, after = ask(demonstration, "same_program", "run_ids")[0][0].split(",")
    names = demonstration.execute(
        "SELECT count(DISTINCT module_name) FROM runs WHERE run_id IN (?, ?)", [before, after]
    ).fetchone()
    assert names == (2,)
    # jaxlib 0.6.2 and 0.10.0 number the values of jit_cd differently, and print the same buffers.
    ids = demonstration.execute(
        "SELECT count(DISTINCT ids) FROM (SELECT list((value_id, instruction) ORDER BY value_id) AS ids "
        "FROM values WHERE run_id IN (SELECT run_id FROM run_labels WHERE value IN ('0.6.2', '0.10.0')) "
        "GROUP BY run_id)"
    ).fetchone()
    assert ids == (2,)
    changes = ask(demonstration, "buffer_changes", "change_bytes", before="jax=0.6.2", after="jax=0.10.0")
    assert sum(change for (change,) in changes) == 0


def test_unknown_is_null_and_never_zero(demonstration: duckdb.DuckDBPyConnection) -> None:
    """A dump without live ranges has no peak, no padding at the peak, no figure of recomputed bytes there."""
    (run_id,) = demonstration.execute("SELECT min(run_id) FROM runs WHERE NOT has_ranges").fetchone() or (
        None,
    )
    run = str(run_id)
    assert ask(demonstration, "largest_modules", "peak_bytes", run=run) == [(None,)]
    assert ask(demonstration, "agreement", "peak_agrees", "peak_bytes", "live_at_printed_bytes", run=run) == [
        (None, None, None)
    ]
    assert ask(demonstration, "rematerialization", "xla_at_peak_bytes", run=run) == [(None,)]
    assert {at_peak for (at_peak,) in ask(demonstration, "padding", "padding_at_peak_bytes", run=run)} <= {
        None
    }


def test_an_unknown_backend_names_no_memory_space(seeds: duckdb.DuckDBPyConnection) -> None:
    """Color 0 of a dump that does not tell its backend is neither host nor device."""
    assert ask(seeds, "memory_by_space", "space", "place", run="1") == [(None, None)]
    about = "SELECT device_bytes, host_bytes FROM run_summary WHERE run_id = 1"
    create_temporary(seeds, about)
    assert seeds.execute(about).fetchone() == (None, None)


def test_the_printed_peak_is_not_quoted_as_the_peak(seeds: duckdb.DuckDBPyConnection) -> None:
    """Seed 004 prints slot 11 and 239,075,356 unpadded bytes; the true peak is at slot 9."""
    assert ask(seeds, "live_at_peak", "peak_time", run="5", top=1) == [(9,)]
    assert ask(seeds, "agreement", "printed_peak_time", "peak_time", "peak_bytes", run="5") == [
        (11, 9, 297796132)
    ]


def test_bytes_are_bytes(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Every column of sizes is whole bytes, told so by its unit, and no unit of bytes is on anything else."""
    for query in shipped().load_all():
        for column in query.columns:
            is_size = column.name.endswith("_bytes") or column.name in ("bytes", "bytes_at_peak")
            if is_size or column.unit == "bytes":
                name = column.name
                assert (column.unit, column.type) == ("bytes", "BIGINT") or name == "bytes_per_unit", (
                    query.name
                )


def test_fragmentation_is_a_bracket(demonstration: duckdb.DuckDBPyConnection) -> None:
    """The lower bound is never negative and never above the upper one."""
    rows = ask(demonstration, "fragmentation", "unused_least_bytes", "unused_most_bytes", "arena_bytes")
    assert len(rows) > 10
    assert all(0 <= least <= most <= arena for least, most, arena in rows)
    assert any(least < most for least, most, _ in rows)


def test_the_stack_of_a_value_begins_with_the_outermost_call(connection: duckdb.DuckDBPyConnection) -> None:
    """stack_of() walks from the frame of a value to its callers, also where the frames go in circles."""
    create_temporary(connection)
    connection.execute(
        "INSERT INTO source_frames (run_id, frame_id, parent_frame_id, function, file, line, is_framework) "
        "VALUES (1, 1, NULL, 'main', 'train.py', 9, false), (1, 2, 1, 'step', 'train.py', 5, false), "
        "(1, 3, 2, 'dot', 'numpy.py', 1, true), (1, 4, 4, 'circle', 'x.py', 1, false)"
    )
    for value_id, frame_id in ((7, 3), (8, 4), (9, None)):
        connection.execute(
            'INSERT INTO "values" (run_id, value_id, allocation_index, instruction, shape_index, is_phi, '
            "offset_bytes, size_bytes, shape, stack_frame_id) "
            "VALUES (1, ?, 0, 'x', '{}', false, 0, 0, '', ?)",
            [value_id, frame_id],
        )
    assert connection.execute("FROM stack_of(1, 7)").fetchall() == [
        (0, "main", "train.py", 9, False),
        (1, "step", "train.py", 5, False),
        (2, "dot", "numpy.py", 1, True),
    ]
    assert len(connection.execute("FROM stack_of(1, 8)").fetchall()) == 1001
    assert connection.execute("FROM stack_of(1, 9)").fetchall() == []


def test_what_no_release_printed_is_not_denied(demonstration: duckdb.DuckDBPyConnection) -> None:
    """TF 1.14 marks no value as one that merges others, not even the results of its loops."""
    printed = demonstration.execute(
        "SELECT list_contains(format, 'logical_buffers'), bool_and(is_phi IS NULL), bool_or(is_phi IS NULL)"
        ' FROM "values" JOIN runs USING (run_id) GROUP BY 1 ORDER BY 1'
    ).fetchall()
    assert printed == [(False, False, False), (True, True, True)]
