"""What would lower a peak: `savings` and the blocks that it is made of."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pytest
from click.testing import CliRunner

from ingest.cli.xbuf import xbuf
from ingest.database.connect import open_database
from ingest.liveness.measure import Intervals
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import create_temporary
from ingest.report.advice import MEANINGS
from tests.support.live_bytes import union_at
from tests.support.made_rows import insert, insert_run, insert_value
from tests.support.query_databases import TESTS, ask

EXAMPLES = TESTS.parent / "examples" / "dumps"


@pytest.fixture(scope="module")
def example_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a database of four ways to compile one training step: step, step-donate, -parts, -remat."""
    path = tmp_path_factory.mktemp("examples") / "xbuf.duckdb"
    import_dumps([EXAMPLES], path, jobs=1)
    return path


@pytest.fixture(scope="module")
def examples(example_database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: `example_database`."""
    with open_database(example_database, read_only=True) as opened:
        create_temporary(opened)
        yield opened


def brute_force(connection: duckdb.DuckDBPyConnection, run: int) -> dict[tuple[str, str], int]:
    """Return the peak after each step: the greatest union of the addresses that stay, slot after slot."""
    values = connection.execute(
        'SELECT value_id, allocation_index, offset_bytes, size_bytes, start_time, end_time FROM "values" '
        "JOIN ranges USING (run_id, value_id) WHERE run_id = ? AND size_bytes > 0",
        [run],
    ).fetchall()
    spared: defaultdict[tuple[str, str], dict[int, tuple[int, int, int, int]]] = defaultdict(dict)
    for advice, owner, value, *place in connection.execute(
        "SELECT advice, owner, value_id, first_byte, end_byte, from_time, to_time FROM spare_bytes(?)", [run]
    ).fetchall():
        spared[advice, owner][value] = tuple(place)
    return {step: _peak(values, places) for step, places in spared.items()}


def _peak(values: list[Any], spared: Mapping[int, tuple[int, int, int, int]]) -> int:
    pieces = []
    for value, allocation, offset, size, start, end in values:
        first, last, since, until = spared.get(value, (offset, offset, start, start - 1))
        end_byte = offset + size
        for low, high, begin, stop in (
            (offset, first, start, end),
            (last, end_byte, start, end),
            (first, last, start, since - 1),
            (first, last, until + 1, end),
        ):
            if low < high and begin <= stop:
                pieces.append((allocation, low, high - low, begin, stop))
    intervals = Intervals(*map(list, zip(*pieces, strict=True)))
    return max(sum(union_at(time, intervals).values()) for time in set(intervals.start))


def test_each_peak_after_a_step_is_what_brute_force_finds(examples: duckdb.DuckDBPyConnection) -> None:
    """Real dumps, in-place updates and a loop among them; every step, down to a byte."""
    for run in (1, 3):
        expected = brute_force(examples, run)
        found = examples.execute(
            "SELECT advice, owner, after_bytes FROM saved_bytes(?) WHERE lowers = 'peak'", [run]
        ).fetchall()
        assert {(advice, owner): after for advice, owner, after in found} == {
            step: expected[step] for step in [(advice, owner) for advice, owner, _ in found]
        }
        assert len(found) > 5


def test_a_prepared_statement_on_saved_bytes_answers_twice(examples: duckdb.DuckDBPyConnection) -> None:
    """DuckDB 1.5.6 ends with a fatal error when a plan with an ASOF join is run a second time."""
    examples.execute("PREPARE again AS FROM saved_bytes('1') ORDER BY ALL")
    first = examples.execute("EXECUTE again").fetchall()
    assert first
    assert examples.execute("EXECUTE again").fetchall() == first


def test_halving_the_loss_saves_what_the_other_slots_leave(examples: duckdb.DuckDBPyConnection) -> None:
    """Line 52 of the example holds 384 MiB for 8 slots; the slots around it are nearly as full."""
    rows = ask(examples, "savings", "advice", "owner", "saves_bytes", "spare_bytes", run="1")
    by_line = {owner.rpartition(":")[2]: (advice, saves, spare) for advice, owner, saves, spare in rows[:2]}
    assert by_line["39"][0] == "recompute"
    advice, saves, spare = by_line["52"]
    assert (advice, spare) == ("in parts", 192 * 2**20)
    assert saves < spare


Rows = list[tuple[Any, ...]]
"""Advice, owner, spared and saved bytes of a run, what helps most first."""


@dataclass(frozen=True, slots=True)
class Program:
    """A made-up run: an arena of 4,000 bytes, and an instruction `i<slot>` for each of 100 slots."""

    connection: duckdb.DuckDBPyConnection
    run_id: int

    def insert(self, table: str, **columns: object) -> None:
        """Insert a row of this run."""
        insert(self.connection, table, run_id=self.run_id, **columns)

    def allocation(self, index: int, size: int, **columns: object) -> None:
        filled = {
            "is_constant": False, "is_thread_local": False, "maybe_live_out": False, "color": 0,
            "is_preallocated_temp": False, "placed_values": 1, "placed_bytes": size, "live_peak_bytes": size,
            "other_color_values": 0,
        } | columns  # fmt: skip
        self.insert("allocations", allocation_index=index, size_bytes=size, **filled)

    def value(
        self,
        value_id: int,
        start: int,
        end: int,
        *,
        size: int = 1000,
        used: tuple[int, ...] = (),
        gained: int | None = None,
        handover: int = 0,
        at_peak: int | None = None,
        **columns: object,
    ) -> None:
        """Insert a value `i<start>`, each at addresses of its own, with its range and uses."""
        instruction = str(columns.pop("instruction", f"i{start}"))
        filled: dict[str, Any] = {
            "offset_bytes": 1000 * value_id, "size_bytes": size, "logical_bytes": size, "opcode": "add",
            "dimensions": [size // 4],
        } | columns  # fmt: skip
        insert_value(self.connection, value_id, instruction, run_id=self.run_id, **filled)
        self.insert(
            "ranges", value_id=value_id, instruction=instruction, shape_index="{}",
            start_time=start, end_time=end, handover_bytes=handover,
            gained_bytes=size if gained is None else gained, peak_bytes=at_peak, value_bytes=size,
        )  # fmt: skip
        for position, slot in enumerate(used):
            self.insert(
                "uses", value_id=value_id, position=position, instruction=f"i{slot}", operand_number=0,
                operand_index="{}",
            )  # fmt: skip


Maker = Callable[[Program], None]
_PROGRAMS: dict[str, tuple[Maker, dict[str, Any]]] = {}


def program(name: str, **run: Any) -> Callable[[Maker], Maker]:
    """Make a program known to `advised`; its peak is at slot 50."""

    def keep(make: Maker) -> Maker:
        assert name not in _PROGRAMS
        _PROGRAMS[name] = (make, run)
        return make

    return keep


@pytest.fixture(scope="module")
def advised(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Rows]:
    """What `savings` says of each program: all at once, as planning the query takes 0.15 s."""
    with open_database(tmp_path_factory.mktemp("made") / "xbuf.duckdb") as connection:
        for run_id, (make, run) in enumerate(_PROGRAMS.values(), 1):
            insert_run(connection, run_id, has_ranges=True, schedule_length=100, peak_time=50, **run)
            connection.execute("INSERT INTO schedule SELECT ?, range, 'i' || range FROM range(100)", [run_id])
            made = Program(connection, run_id)
            made.allocation(0, 4000, kind="temp", is_preallocated_temp=True)
            make(made)
        found = ask(
            connection, "savings", "run_id", "advice", "owner", "spare_bytes", "saves_bytes",
            least=1, runs=len(_PROGRAMS),
        )  # fmt: skip
    return {name: [row[1:] for row in found if row[0] == run_id] for run_id, name in enumerate(_PROGRAMS, 1)}


@program("waiting", peak_bytes=2000)
def _(made: Program) -> None:
    made.value(0, 10, 85, used=(10, 80), at_peak=1000, op_name="jit(f)/net/mul")
    made.value(1, 50, 50, at_peak=1000)
    made.value(2, 82, 82, size=500)


def test_what_waits_is_computed_again_and_a_slot_that_is_as_full_is_not_forgotten(
    advised: dict[str, Rows],
) -> None:
    """The value waits from slot 11 to 79; at slot 85, where it is used, 1,500 bytes are live with it."""
    assert advised["waiting"] == [("recompute", "net", 1000, 500), ("in parts", "i*", 500, 500)]


@program("in a loop", peak_bytes=1000)
def _(made: Program) -> None:
    made.value(0, 10, 60, used=(41, 60), at_peak=1000)
    made.value(9, 60, 60, size=0, opcode="while")
    for position, (slot, computation, opcode) in enumerate(
        [(10, "main", "add"), (39, "main", "add"), (41, "body", "add"), (60, "main", "while")]
    ):
        made.insert(
            "instructions", position=position, computation=computation, instruction=f"i{slot}",
            opcode=opcode, shape="f32[]", is_root=False,
        )  # fmt: skip


def test_a_wait_within_a_loop_is_a_use(advised: dict[str, Rows]) -> None:
    """The loop of slots 40 to 60 uses the value in each turn, at slot 41; the peak is at slot 50."""
    assert advised["in a loop"] == []


@program("argument and output", peak_bytes=3000)
def _(made: Program) -> None:
    made.allocation(1, 1000, kind="parameter", parameter_number=0, parameter_shape_index="{}")
    made.allocation(2, 1000, kind="output", maybe_live_out=True)
    made.value(
        0, 0, 100, used=(90,), at_peak=1000, allocation_index=1, offset_bytes=0,
        opcode="parameter", op_name="state[1].mu['w']",
    )  # fmt: skip
    made.value(1, 10, 100, used=(20,), at_peak=1000, allocation_index=2, offset_bytes=0)
    made.value(2, 50, 50, at_peak=1000)


def test_an_argument_can_wait_elsewhere_and_an_output_may_not_be_wanted(advised: dict[str, Rows]) -> None:
    """A parameter first used at slot 90; a result of its own memory, read at slot 20 at last."""
    assert advised["argument and output"][:2] == [
        ("drop output", "i*", 1000, 1000),
        ("offload", "state[1]", 1000, 1000),
    ]


PADDED: tuple[tuple[dict[str, Any], tuple[str, int]], ...] = (
    # 1000 x 8 of bf16: rows and columns exchanged, 8 rows of 1024 columns instead of 1000 of 128.
    (
        {"dimensions": [1000, 8], "tiling": "T(8,128)(2,1)", "size": 256000, "logical_bytes": 16000},
        ("other layout", 256000 - 16384),
    ),
    # No order of 3 x 5 fills a tile.
    (
        {"dimensions": [3, 5], "tiling": "T(8,128)", "size": 4096, "logical_bytes": 60},
        ("other shape", 4096 - 60),
    ),
    ({"dimensions": [10], "tiling": "T(1024)", "size": 4096, "logical_bytes": 40}, ("other shape", 4056)),
)
for number, (columns, _expected) in enumerate(PADDED):

    @program(f"padded {number}", peak_bytes=columns["size"])
    def _(made: Program, columns: dict[str, Any] = columns) -> None:
        size = columns["size"]
        padding = size - columns["logical_bytes"]
        made.value(0, 40, 60, used=(50,), at_peak=size, padding_bytes=padding, **columns)


@pytest.mark.parametrize("number", range(len(PADDED)))
def test_padding_goes_with_a_layout_that_fills_the_tiles(advised: dict[str, Rows], number: int) -> None:
    """Another layout where one wins half of the padding or more, another shape where none does."""
    _, expected = PADDED[number]
    assert [(advice, spare) for advice, _, spare, _ in advised[f"padded {number}"]] == [expected]


COPIES = {
    "both stay as they are": (90, 0, 1000),
    "the original is overwritten while the copy is read": (55, 1000, 0),
    "the original ends where the copy begins": (40, 0, 0),
}
"""End and handover of an original that is copied at slot 40, and what sparing the copy saves, bytes."""
for name, (end, handover, _saved) in COPIES.items():

    @program(name, peak_bytes=1000 + 1000 * (end > 50))
    def _(made: Program, end: int = end, handover: int = handover) -> None:
        at_peak = 1000 if end > 50 else None
        made.value(0, 10, end, used=(40, 50), handover=handover, at_peak=at_peak)
        made.value(1, 40, 60, used=(50,), at_peak=1000, opcode="copy")


@pytest.mark.parametrize("name", list(COPIES))
def test_a_copy_is_spared_only_where_both_stay_as_they_are(advised: dict[str, Rows], name: str) -> None:
    """The copy lives from slot 40 to 60, the peak is at slot 50."""
    *_, saved = COPIES[name]
    found = [(spare, saves) for advice, _, spare, saves in advised[name] if advice == "copy"]
    assert found == ([(1000, saved)] if saved else [])


@program("three additions", peak_bytes=3000)
def _(made: Program) -> None:
    texts = (
        '%i10 = f32[250] add(%a, %b), metadata={op_name="x"}',
        '%i20 = f32[250] add(%a, %b), metadata={op_name="y"}',
        "%i30 = f32[250] add(%a, %c)",
    )
    for number, text in enumerate(texts):
        start = 10 * (number + 1)
        made.value(number, start, 70 + number, used=(50,), at_peak=1000, instruction_text=text)


def test_the_same_operation_on_the_same_operands_is_a_duplicate(advised: dict[str, Rows]) -> None:
    """Names and metadata do not count; random numbers and other operands do."""
    assert advised["three additions"] == [("duplicate", "i*", 1000, 1000)]


@program("converted", peak_bytes=1000)
def _(made: Program) -> None:
    made.value(0, 40, 60, used=(50,), at_peak=1000, shape_index="{1}", opcode="fusion", element_bits=32)
    for position, (name, computation, opcode, shape, operands, called, root) in enumerate(
        [
            ("i40", "main", "fusion", "(f32[2], f32[250])", ["p"], ["fused"], False),
            ("a", "fused", "add", "f32[2]", ["x"], [], False),
            ("narrow", "fused", "parameter", "bf16[250]{0}", [], [], False),
            ("c", "fused", "convert", "f32[250]", ["narrow"], [], False),
            ("t", "fused", "tuple", "(f32[2], f32[250])", ["a", "c"], [], True),
        ]
    ):
        made.insert(
            "instructions", position=position, computation=computation, instruction=name, opcode=opcode,
            shape=shape, operands=operands, called_computations=called, is_root=root,
        )  # fmt: skip


def test_floats_of_a_narrower_type_need_half(advised: dict[str, Rows]) -> None:
    """A fusion whose second result is converted from bf16."""
    assert advised["converted"] == [("narrower type", "i*", 500, 500)]


@program("holes and scratch", peak_bytes=3000, total_bytes=4500)
def _(made: Program) -> None:
    made.connection.execute("UPDATE allocations SET live_peak_bytes = 3000 WHERE run_id = ?", [made.run_id])
    made.allocation(1, 500, kind="thread-local", is_thread_local=True)


def test_the_total_has_holes_and_scratch_that_the_peak_has_not(advised: dict[str, Rows]) -> None:
    """An arena of which 1,000 bytes are never live with the rest, and thread-local scratch."""
    assert advised["holes and scratch"] == [
        ("pack", "allocation 0", 1000, 1000),
        ("scratch", "thread-local", 500, 500),
    ]


def test_every_advice_has_its_meaning() -> None:
    """The words of the blocks are those that `xbuf advise` explains, and the page lists all of them."""
    page = (TESTS.parent / "docs" / "advice.md").read_text(encoding="utf-8")
    assert [word for word in MEANINGS if f"| *{word}* |" not in page] == []
    blocks = "".join(path.read_text() for path in (TESTS.parent / "queries/blocks").glob("spare_*.sql"))
    assert [word for word in MEANINGS if f"'{word}'" not in blocks] == []


def test_advise_names_the_line_and_says_what_to_do(example_database: Path) -> None:
    """The most helpful step first, what its word means, and what cannot be known."""
    result = CliRunner().invoke(xbuf, ["advise", "1", "--db", str(example_database), "--width", "80"])
    assert result.exit_code == 0
    assert (
        " 1. 192.19 MiB less (26.0%): peak 546.11 MiB\n    recompute: /src/train.py:39, 9 buffers"
        in result.output
    )
    assert f"recompute  {MEANINGS['recompute'][:40]}" in result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
