"""What two compilations have in common: names without the release, pairs of runs, pairs of buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import duckdb
import pytest

from benchmarks.matching import measure, shared
from ingest.database.connect import open_database
from ingest.dump.entry import digest, without_layouts
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import create_temporary, read_blocks
from tests.support.once import made_once
from tests.support.query_databases import ask

MIRRORED = {
    "new": "gone",
    "gone": "new",
    "now live": "no longer live",
    "no longer live": "now live",
    "resized": "resized",
    "shared": "shared",
    "replaced": "replaced",
}


@pytest.fixture(scope="module")
def names() -> Iterator[duckdb.DuckDBPyConnection]:
    """The macros that need no table."""
    with duckdb.connect() as connection:
        for block in read_blocks():
            if block.name in ("plain_op_name", "folded_name", "shapes_only"):
                connection.execute(block.create())
        yield connection


def call(connection: duckdb.DuckDBPyConnection, macro: str, text: str | None) -> Any:
    (row,) = connection.execute(f"SELECT {macro}(?)", [text]).fetchall()
    return row[0]


@pytest.mark.parametrize(
    ("printed", "plain"),
    [
        ("jit(step)/jit(main)/h0/attn/dot_general", "h0/attn/dot_general"),
        ("jit(step)/h0/attn/dot_general", "h0/attn/dot_general"),
        ("jit(f)/jit(main)/sort[dimension=0 is_stable=True]", "sort"),
        ("jit(f)/jit(main)/callback[in_tree=(*,)\nsharding=None]", "callback"),
        ("jit(f)/remat/mul", "checkpoint/mul"),
        ("jit(f)/transpose(jvp(checkpoint))/rematted_computation/mul", "transpose(jvp())/checkpoint/mul"),
        ("jit(f)/transpose(jvp(jvp()))/checkpoint/mul", "transpose(jvp())/checkpoint/mul"),
        ("jit(f)/jit(main)/vmap(vmap(jit(_lu_solve)))/gather", "vmap(vmap())/jit(_lu_solve)/gather"),
        ("jit(f)/vmap(vmap())/jit(_lu_solve)/gather", "vmap(vmap())/jit(_lu_solve)/gather"),
        ("jit(f)/transpose(jvp(jit(g)))/jvp(jit(g))/mul", "transpose(jvp())/jit(g)/mul"),
        ("jit(f)/while/body/closed_call/add", "while/body/add"),
        ("jit(f)/jit(main)/transpose(jvp(while))/body/add", "transpose(jvp())/while/body/add"),
        ("jit(f)/jit(main)/jvp(while)/body/add", "jvp()/while/body/add"),
        ("jit(f)/transpose(jvp(block))/jvp(block)/add", "transpose(jvp(block))/add"),
        ("jit(f)/(jvp()/mul:transpose(jvp())/dot_general)", "jvp()/mul"),
        ("(jit(f)/a:jit(f)/b)", "a"),
        ("params['layers'][0]['w']", "params['layers'][0]['w']"),
        ("jit(g)/transpose(jvp(a=b, {c}, [d]:e|f))/dot", "transpose(jvp(a=b, {c}, [d]:e|f))/dot"),
        ("while/MatMul", "while/MatMul"),
        (None, None),
    ],
)
def test_what_a_release_prints_is_taken_off(
    names: duckdb.DuckDBPyConnection, printed: str | None, plain: str | None
) -> None:
    """One operation has one name, whatever release compiled it."""
    assert plain == call(names, "plain_op_name", printed)


@pytest.mark.parametrize(
    ("name", "folded"),
    [
        ("h47/attn/dot_general", "h*/attn/dot_general"),
        ("params['layers'][12]['w']", "params['layers'][*]['w']"),
        ("fusion.123{0}", "fusion.*{0}"),
        ("layer_3/conv2d", "layer_*/conv2d"),
        ("conv_general_dilated", "conv_general_dilated"),
    ],
)
def test_numbers_of_layers_are_a_star(names: duckdb.DuckDBPyConnection, name: str, folded: str) -> None:
    """Layers fold into one name; a number inside of a word stays."""
    assert folded == call(names, "folded_name", name)


def test_layouts_are_not_part_of_a_signature(names: duckdb.DuckDBPyConnection) -> None:
    """Tilings differ between chips, shapes do not."""
    text = "(f32[8,4]{1,0:T(8,128)S(1)}, /*index=5*/s32[])->(f32[<=8]{0}, pred[])"
    assert call(names, "shapes_only", text) == "(f32[8,4], s32[])->(f32[<=8], pred[])"


@cache
def differences(connection: duckdb.DuckDBPyConnection, before: int, after: int) -> list[dict[str, Any]]:
    columns = ("change", "change_bytes", "buffers", "confidence", "before_shape", "after_shape",
               "before_bytes", "after_bytes")  # fmt: skip
    rows = ask(connection, "diff", *columns, before=str(before), after=str(after))
    return [dict(zip(columns, row, strict=True)) for row in rows]


@pytest.fixture(scope="module")
def peaks(demonstration: duckdb.DuckDBPyConnection) -> dict[int, int]:
    """Peak of each run that has one, bytes."""
    rows = demonstration.execute("SELECT run_id, peak_bytes FROM runs WHERE peak_bytes IS NOT NULL")
    return dict(rows.fetchall())


def neighbours(peaks: dict[int, int]) -> list[tuple[int, int]]:
    """Pair each run with the next, and the last with the first."""
    runs = sorted(peaks)
    return list(zip(runs, [*runs[1:], runs[0]], strict=True))


FEW = pytest.param(8, id="some")
HALF = pytest.param(2, marks=pytest.mark.slow, id="half")
ALL = pytest.param(1, marks=pytest.mark.long, id="all")


@pytest.mark.parametrize("step", [FEW, HALF, ALL])
def test_rows_add_up_whatever_is_compared(
    demonstration: duckdb.DuckDBPyConnection, peaks: dict[int, int], step: int
) -> None:
    """Between any two runs, of one module or of two, the rows are exactly the change of the peak."""
    pairs = neighbours(peaks)
    assert len(pairs) > 20
    for before, after in pairs[::step]:
        rows = differences(demonstration, before, after)
        assert sum(row["change_bytes"] for row in rows) == peaks[after] - peaks[before]
        assert all(row["change_bytes"] == row["after_bytes"] - row["before_bytes"] != 0 for row in rows)


@pytest.mark.parametrize("step", [FEW, HALF, ALL])
def test_the_way_back_is_the_mirror(
    demonstration: duckdb.DuckDBPyConnection, peaks: dict[int, int], step: int
) -> None:
    """What is new from A to B is gone from B to A, with equal bytes and equal confidence."""

    def forward(row: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(row.values())

    def back(row: dict[str, Any]) -> tuple[Any, ...]:
        return (
            MIRRORED[row["change"]], -row["change_bytes"], row["buffers"], row["confidence"],
            row["after_shape"], row["before_shape"], row["after_bytes"], row["before_bytes"],
        )  # fmt: skip

    for before, after in neighbours(peaks)[:: 2 * step]:
        there = Counter(map(forward, differences(demonstration, before, after)))
        assert there == Counter(map(back, differences(demonstration, after, before)))


def test_a_run_is_equal_to_itself(demonstration: duckdb.DuckDBPyConnection, peaks: dict[int, int]) -> None:
    """There is nothing to say about a run and itself, nor about two runs of one text."""
    largest = max(peaks, key=lambda run: peaks[run])
    assert differences(demonstration, largest, largest) == []
    ((again, first),) = demonstration.execute(
        "SELECT max(run_id), min(run_id) FROM runs WHERE content_sha256 IN"
        " (SELECT content_sha256 FROM runs GROUP BY ALL HAVING count(*) > 1)"
    ).fetchall()
    assert differences(demonstration, first, again) == []


def test_another_batch_resizes_the_same_buffers(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Each buffer of the small batch is found again in the large one; none is new and none gone."""
    rows = ask(
        demonstration, "diff", "change", "op_name", "before_shape", "after_shape",
        before="batch=8", after="batch=32",
    )  # fmt: skip
    assert {change for change, *_ in rows} == {"resized"}
    assert {op_name for _, op_name, *_ in rows} == {"batch", "state", "layer/add", "layer/dot_general"}
    assert {(before, after) for *_, before, after in rows} == {("f32[8,1024]{1,0}", "f32[32,1024]{1,0}")}


def run_pairs(connection: duckdb.DuckDBPyConnection, *sides: str) -> list[tuple[Any, ...]]:
    create_temporary(connection)
    return connection.execute(
        "SELECT b.stem, a.stem, p.paired_by FROM run_pairs(?, ?) AS p"
        " LEFT JOIN runs AS b ON b.run_id = p.before_run_id LEFT JOIN runs AS a ON a.run_id = p.after_run_id"
        " ORDER BY ALL",
        sides,
    ).fetchall()


def add_run(
    connection: duckdb.DuckDBPyConnection,
    run: int,
    batch: int,
    parameter: str,
    *,
    stem: str = "",
    name: str = "jit_f",
) -> None:
    connection.execute(
        "INSERT INTO runs (run_id, import_id, dump_dir, stem, module_name, backend, ingested_at, has_values,"
        " has_ranges, parameters_digest) VALUES (?, ?, '/dumps', ?, ?, 'cpu', now(), true, true, ?)",
        [run, batch, stem or f"s{run}", name, digest(without_layouts(parameter))],
    )


def test_modules_are_paired_by_signature_then_by_name(connection: duckdb.DuckDBPyConnection) -> None:
    """Not by number: a retrace with another shape in between moves nobody's partner."""
    add_run(connection, 1, 1, "f32[8]{0}")
    add_run(connection, 2, 1, "f32[16]{0}")
    add_run(connection, 3, 2, "f32[32]{0:T(128)}")
    add_run(connection, 4, 2, "f32[16]{0:T(128)}")
    add_run(connection, 5, 2, "f32[8]{0:T(128)}")
    assert [("s1", "s5", "parameters"), ("s2", "s4", "parameters"), (None, "s3", None)] == run_pairs(
        connection, "1,2", "3,4,5"
    )
    assert [("s1", "s3", "name")] == run_pairs(connection, "1", "3")


def test_the_newest_import_stands_for_a_module(connection: duckdb.DuckDBPyConnection) -> None:
    """An older run of one signature is not left over to be somebody else's partner."""
    add_run(connection, 1, 1, "f32[8]{0}")
    add_run(connection, 2, 2, "f32[8]{0}")
    add_run(connection, 3, 3, "f32[8]{0}")
    add_run(connection, 4, 3, "f32[9]{0}")
    assert [("s2", "s3", "parameters"), (None, "s4", None)] == run_pairs(connection, "1,2", "3,4")


def test_two_runs_given_by_number_are_a_pair(connection: duckdb.DuckDBPyConnection) -> None:
    """A renamed function can be compared; where a side has several runs, names must agree."""
    add_run(connection, 1, 1, "f32[8]{0}", name="jit_old")
    add_run(connection, 2, 2, "f32[8]{0}", name="jit_new")
    add_run(connection, 3, 2, "f32[8]{0}", name="jit_other")
    assert [("s1", "s2", "only run")] == run_pairs(connection, "1", "2")
    assert [("s1", None, None), (None, "s2", None), (None, "s3", None)] == run_pairs(connection, "1", "2,3")


def test_a_release_does_not_hide_a_buffer(demonstration: duckdb.DuckDBPyConnection) -> None:
    """jaxlib 0.4.13 and 0.6.2 number and name all else anew; nearly every byte finds its partner."""
    create_temporary(demonstration)
    ((matched, total),) = demonstration.execute(
        "SELECT sum(before_peak_bytes + after_peak_bytes) FILTER (matched_by IS NOT NULL),"
        " sum(before_peak_bytes + after_peak_bytes)"
        " FROM matched_buffers('jax=0.4.13', 'jax=0.6.2', NULL, NULL, 'jit_cd')"
    ).fetchall()
    assert matched / total > 0.95


@pytest.fixture(scope="module")
def corpus(
    shared_corpus: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: every set of the corpus, labelled with its folder."""

    def make(folder: Path) -> Path:
        path = folder / "corpus.duckdb"
        sets = sorted(one for part in ("eras", "models") for one in (shared_corpus / part).iterdir())
        import_dumps(sets, path)  # at once: `benchmarks.matching.load` takes an import for each
        with open_database(path) as writer:
            for one in sets:
                writer.execute(
                    "INSERT INTO run_labels SELECT run_id, 'set', $1 FROM runs"
                    " WHERE starts_with(dump_dir || '/', $2)",
                    [one.name, f"{one}/"],
                )
        return path

    with open_database(made_once(tmp_path_factory, "matching", make), read_only=True) as connection:
        create_temporary(connection)
        yield connection


def sums_are_exact(connection: duckdb.DuckDBPyConnection, pairs: Iterable[tuple[str, str]]) -> int:
    """Require exact sums of every module of pairs of sets; return how many modules there were."""
    peaks = dict(connection.execute("SELECT run_id, peak_bytes FROM runs").fetchall())
    compared = 0
    for one in measure(connection, pairs):
        before, after = one.runs
        assert (one.before_bytes, one.after_bytes) == (peaks[before], peaks[after])
        assert one.change_bytes == one.after_bytes - one.before_bytes
        compared += 1
    return compared


@pytest.mark.slow
def test_neighbours_of_the_corpus_add_up(corpus: duckdb.DuckDBPyConnection) -> None:
    """Every second set and the next that shares a module, some and the furthest: exact sums."""
    pairs = shared(corpus)
    next_ones, furthest = dict(reversed(pairs)), dict(pairs)
    chosen = {*list(next_ones.items())[::2], *list(furthest.items())[::10]}
    assert len(chosen) > 10
    assert sums_are_exact(corpus, sorted(chosen)) > 60


@pytest.mark.long
def test_the_corpus_adds_up(corpus: duckdb.DuckDBPyConnection) -> None:
    """Every two sets that share a module, releases and chips alike: exact sums for every pair of modules."""
    assert sums_are_exact(corpus, shared(corpus)) > 400


@pytest.mark.slow
def test_nothing_of_the_corpus_differs_from_itself(corpus: duckdb.DuckDBPyConnection) -> None:
    """No run of a set has a row against itself."""
    paired = 0
    names = corpus.execute("SELECT DISTINCT value FROM run_labels WHERE key = 'set' ORDER BY 1").fetchall()
    for (name,) in names[::2]:
        side = f"set={name}"
        assert corpus.execute("FROM changed_buffers($1, $1)", [side]).fetchall() == []
        own = corpus.execute(
            "SELECT count(*) FROM run_pairs($1, $1) WHERE before_run_id = after_run_id", [side]
        )
        paired += own.fetchall()[0][0]
    runs = "SELECT count(*) FROM run_labels WHERE key = 'set' AND list_contains($1, value)"
    assert corpus.execute(runs, [[name for (name,) in names[::2]]]).fetchall() == [(paired,)]
    assert paired > 100


@pytest.mark.slow
def test_the_models_of_the_corpus_are_mirrored(corpus: duckdb.DuckDBPyConnection) -> None:
    """From one release to the other and back, each buffer has the opposite row."""
    there = (
        "SELECT change, confidence, before_peak_bytes, after_peak_bytes, before_look, after_look"
        " FROM changed_buffers($before, $after)"
    )
    tpu, cpu = ("tpu-v5e-jax0.8.3-libtpu0.0.32.1", "tpu-v5e-jax0.10.2"), ("cpu-jax0.4.38", "cpu-jax0.10.2")
    for sides in (tpu, cpu):
        before, after = (f"set={name}" for name in sides)
        forward = corpus.execute(there, {"before": before, "after": after}).fetchall()
        back = corpus.execute(there, {"before": after, "after": before}).fetchall()
        mirrored = [(MIRRORED[c], sure, a, b, look_a, look_b) for c, sure, b, a, look_b, look_a in back]
        assert len(forward) > 10
        assert sorted(map(repr, forward)) == sorted(map(repr, mirrored))
