"""Answers of single queries, on the smallest database that shows each."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pytest
from click.testing import CliRunner

from ingest.cli.xbuf import xbuf
from ingest.database.connect import open_database
from ingest.pipeline.importer import import_dumps
from ingest.query.blocks import execute_with_blocks
from tests.support.made_rows import insert, insert_run, insert_value
from tests.support.query_databases import DATA, ask


@pytest.fixture(scope="module")
def hlo_database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Path of a database of six real dumps with HLO text or protobuf as sidecar files."""
    path = tmp_path_factory.mktemp("hlo") / "xbuf.duckdb"
    import_dumps([DATA / "hlo"], path, jobs=1)
    return path


@pytest.fixture(scope="module")
def with_hlo(hlo_database: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """Open read-only: `hlo_database`."""
    with open_database(hlo_database, read_only=True) as opened:
        yield opened


@pytest.mark.parametrize(
    ("op_name", "scope"),
    [
        ("jit(f)/jit(main)/dot_general", "jit(f)/jit(main)"),
        ("o[0].nu['net/~/block_3']", None),
        ("""a/b["w 'q'"]['layer/0']""", "a"),
        ("jit(f)/transpose(jvp(net/block))/dot", "jit(f)/transpose(jvp(net/block))"),
        ("jit(f)/reduce[axes=(0, 1) name='/)']", "jit(f)"),
        ("jit(f)/don't/mul", "jit(f)/don't"),
        ("f/a[(((((((((((x/y)))))))))))]", "f"),
        ("new\nline/inner", "new\nline"),
        ("f(/g/[a/b]", "f(/g"),
        ("mul", None),
        ("", None),
        (None, None),
    ],
)
def test_a_scope_ends_at_a_slash_outside_of_brackets_and_quotes(
    demonstration: duckdb.DuckDBPyConnection, op_name: str | None, scope: str | None
) -> None:
    """A key of a dictionary may hold a slash; where quotes do not close, what closes is the last part."""
    assert execute_with_blocks(demonstration, "SELECT scope_of(?)", [op_name]).fetchone() == (scope,)


def test_a_key_with_a_slash_is_no_scope(connection: duckdb.DuckDBPyConnection) -> None:
    """memory_by_source --by scope does not cut a parameter's name inside its quotes."""
    insert_run(connection, has_ranges=True, peak_time=0, peak_bytes=16, schedule_length=1)
    for value_id, op_name in enumerate(("o[0].nu['net/~/block_3']", "jit(f)/net/mul")):
        insert_value(connection, value_id, f"v{value_id}", op_name=op_name, offset_bytes=8 * value_id)
        insert(
            connection, "ranges", run_id=1, value_id=value_id, instruction=f"v{value_id}", shape_index="{}",
            start_time=0, end_time=1, handover_bytes=0, gained_bytes=8, peak_bytes=8,
        )  # fmt: skip
    assert ask(connection, "memory_by_source", "owner", "bytes", by="scope") == [
        ("jit(f)/net", 8),
        (None, 8),
    ]


def test_an_inherited_source_line_is_marked(with_hlo: duckdb.DuckDBPyConnection) -> None:
    """jit_cd: the fusions name their line, the parameters have that of what uses them."""
    rows = ask(with_hlo, "live_at_peak", "value", "source", run="1")
    how = execute_with_blocks(with_hlo, 'SELECT "value", source_via FROM values_at_peak WHERE run_id = 1')
    via = dict(how.fetchall())
    assert set(via.values()) == {"own", "operand", "user"}
    line = "/opt/xla/jx.py:24"
    assert rows == [(value, line if via[value] == "own" else f"{line} ({via[value]})") for value, _ in rows]


def test_show_marks_inherited_lines(hlo_database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stacks below the report of a run say which ones are not the value's own."""
    monkeypatch.setattr("ingest.report.glance._findings", lambda *_: [])  # five queries, which others try
    lines = CliRunner().invoke(xbuf, ["show", "1", "--db", str(hlo_database)]).output.splitlines()
    marked = {line.split(",")[0]: line.rpartition(" ")[2] for line in lines if "jx.py:24" in line}
    assert marked["x.5"] == "(user)"
    assert marked["tuple.4"] == "(operand)"
    assert marked["wrapped_cosine"] == "jx.py:85"


def test_memory_by_source_can_leave_inherited_lines_out(with_hlo: duckdb.DuckDBPyConnection) -> None:
    """The sums by way of inheritance are shown; without inherited lines the rest has no owner."""
    columns = ("owner", "bytes", "own_bytes", "fused_bytes", "operand_bytes", "user_bytes", "caller_bytes")
    line = "/opt/xla/jx.py:24"
    assert ask(with_hlo, "memory_by_source", *columns, run="1") == [(line, 12317, 8196, 0, 16, 4105, 0)]
    assert ask(with_hlo, "memory_by_source", *columns, run="1", inherited=False) == [
        (line, 8196, 8196, 0, 0, 0, 0),
        (None, 4121, 0, 0, 16, 4105, 0),
    ]


def test_a_fusion_that_calls_a_collective_is_one(connection: duckdb.DuckDBPyConnection) -> None:
    """As in a TPU module: of a fusion that computes while it gathers, only the gathered element counts."""
    insert_run(connection)
    rows = [
        ("fused.46", "param_0", "parameter", [], [], False),
        ("fused.46", "all-gather.13", "all-gather", ["param_0"], [], False),
        ("fused.46", "custom-call.1", "custom-call", ["all-gather.13"], [], True),
        ("inner", "all-reduce.1", "all-reduce", ["param.9"], [], True),
        ("fused.55", "convolution.8", "convolution", ["param_9"], [], False),
        ("fused.55", "all-gather.15", "all-gather", ["param_1"], [], False),
        ("fused.55", "fusion.7", "fusion", ["param_2"], ["inner"], False),
        ("fused.55", "bitcast.3", "bitcast", ["fusion.7"], [], False),
        ("fused.55", "tuple.4", "tuple", ["convolution.8", "all-gather.15", "bitcast.3"], [], True),
        ("main", "async-collective-start", "fusion", ["copy"], ["fused.46"], False),
        ("main", "fusion.55", "fusion", ["copy"], ["fused.55"], False),
        ("main", "all-reduce-fusion", "fusion", ["copy"], ["bare"], False),
        ("main", "while.1", "while", ["copy"], ["fused.46"], True),
        ("bare", "add.1", "add", ["param"], [], True),
    ]
    for position, (computation, name, opcode, operands, called, is_root) in enumerate(rows):
        insert(
            connection, "instructions", run_id=1, position=position, computation=computation,
            instruction=name, opcode=opcode, shape="f32[2]{0}", operands=operands,
            called_computations=called, is_root=is_root,
        )  # fmt: skip
    values = [
        ("async-collective-start", "{0}"), ("async-collective-start", "{1}"), ("fusion.55", "{0}"),
        ("fusion.55", "{1}"), ("fusion.55", "{2}"), ("all-reduce-fusion", "{}"), ("while.1", "{}"),
    ]  # fmt: skip
    for value_id, (name, shape_index) in enumerate(values):
        insert_value(connection, value_id, name, shape_index=shape_index, opcode="fusion")
    insert_value(connection, 20, "all-to-all.2", opcode="all-to-all")
    columns = ("value", "collective", "decided_by")
    assert ask(connection, "collectives", *columns) == [
        ("async-collective-start{0}", "all-gather", "called"),
        ("async-collective-start{1}", "all-gather", "called"),
        ("fusion.55{1}", "all-gather", "called"),
        ("fusion.55{2}", "all-reduce", "called"),
        ("all-to-all.2", "all-to-all", "opcode"),
    ]
    connection.execute("DELETE FROM instructions")
    assert ask(connection, "collectives", *columns) == [
        ("async-collective-start{0}", None, "name"),
        ("async-collective-start{1}", None, "name"),
        ("all-reduce-fusion", "all-reduce", "name"),
        ("all-to-all.2", "all-to-all", "opcode"),
    ]


def insert_allocation(connection: duckdb.DuckDBPyConnection, index: int, **columns: object) -> None:
    """Insert an allocation of run 1: 8 bytes that are no result, in color 0 unless told otherwise."""
    filled = {
        "size_bytes": 8, "color": 0, "is_constant": False, "is_thread_local": False, "maybe_live_out": False,
        "is_preallocated_temp": False, "kind": "temp", "placed_values": 1, "placed_bytes": 8,
        "other_color_values": 0,
    } | columns  # fmt: skip
    insert(connection, "allocations", allocation_index=index, **{"run_id": 1} | filled)


def test_donations_are_shown_by_what_became_of_them(connection: duckdb.DuckDBPyConnection) -> None:
    """What could be gained comes first; the result is the value that shares the memory, or that could."""
    insert_run(connection)
    insert(connection, "hlo_modules", run_id=1, is_scheduled=True, read_from="text")
    stored = [("missed", None, 6), ("honoured", "may", None), ("no fit", None, None), ("unused", "may", 5)]
    for index, (donation, declared, fitting) in enumerate(stored):
        insert_allocation(
            connection, index, parameter_number=index, parameter_shape_index="{}", kind="parameter",
            parameter_value_id=index, maybe_live_out=donation == "honoured",
            live_out_value_id=index if donation == "honoured" else None, donation=donation,
            declared_donation=declared, fitting_value_id=fitting,
        )  # fmt: skip
        insert_value(connection, index, f"p{index}", allocation_index=index, opcode="parameter")
    for index in (5, 6):
        insert_allocation(connection, index, maybe_live_out=True, kind="output", live_out_value_id=index)
        insert_value(connection, index, f"out{index}", allocation_index=index)
    columns = ("name", "status", "declared", "result")
    expected = [
        ("p3", "unused", "may", "out5"),
        ("p0", "missed", "none", "out6"),
        ("p1", "honoured", "may", "p1"),
        ("p2", "no fit", "none", None),
    ]
    assert ask(connection, "donation", *columns) == expected
    for status in ("unused", "missed", "honoured", "no fit"):
        one = [row for row in expected if row[1] == status]
        assert ask(connection, "donation", *columns, status=status, top=1) == one
    connection.execute("DELETE FROM hlo_modules")
    assert ask(connection, "donation", "declared", status="missed") == [(None,)]


def insert_live(
    connection: duckdb.DuckDBPyConnection,
    value_id: int,
    instruction: str,
    live: tuple[int, int],
    *,
    handover_bytes: int = 0,
    role: str = "result",
    **columns: object,
) -> None:
    """Insert a value with its live range, both slots included."""
    insert_value(connection, value_id, instruction, **columns)
    insert(
        connection, "ranges", run_id=1, value_id=value_id, instruction=instruction,
        shape_index=columns.get("shape_index", "{}"), start_time=live[0], end_time=live[1],
        handover_bytes=handover_bytes, value_bytes=columns.get("size_bytes", 8), role=role,
    )  # fmt: skip


def test_what_crosses_colors_is_known_by_its_color_or_as_printed(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """One that prints no color, one of the color of its allocation and a reuse line, one of another color."""
    insert_run(connection)
    insert_allocation(connection, 0, color=0, other_color_values=1)
    insert_allocation(connection, 1, color=1)
    for value_id, index, color in ((0, 0, None), (1, 0, 1), (2, 0, 0), (3, 1, None), (4, 1, 1)):
        insert_value(
            connection, value_id, f"i{value_id}", allocation_index=index, color=color, size_bytes=9 - value_id
        )
    insert(connection, "color_reuse", run_id=1, allocation_index=1, value_id=3, color=7)
    columns = ("value", "value_color", "allocation_color", "printed")
    assert ask(connection, "color_crossings", *columns) == [("i1", 1, 0, False), ("i3", 7, 1, True)]


def test_aliases_of_an_address_are_no_turns(connection: duckdb.DuckDBPyConnection) -> None:
    """Six values of 44 bytes take three turns of 20 in a slot of 8; nothing is known without live ranges."""
    insert_run(connection, has_ranges=True)
    insert_allocation(connection, 0, placed_values=6)
    for value_id in range(6):
        insert_value(connection, value_id, f"i{value_id}", size_bytes=8 if value_id < 5 else 4)
    address = {"run_id": 1, "allocation_index": 0, "offset_bytes": 0, "placed_values": 6, "slot_bytes": 8}
    insert(connection, "shared_addresses", **address, placed_bytes=44, turns=3, turn_bytes=20)
    columns = ("values", "turns", "saved_bytes", "slot_bytes", "alias_bytes", "reuse")
    assert ask(connection, "shared_slots", *columns) == [(6, 3, 12, 8, 24, 2.5)]
    connection.execute("UPDATE shared_addresses SET turns = NULL, turn_bytes = NULL")
    assert ask(connection, "shared_slots", *columns) == [(6, None, None, 8, None, None)]


def test_two_loops_at_one_address_are_two_turns(demonstration: duckdb.DuckDBPyConnection) -> None:
    """jit_act_offload_scan: while.12{1} of 8 MiB, then while.18{2} of 16 MiB, five values each."""
    columns = ("allocation_index", "offset_bytes", "values", "turns", "saved_bytes", "alias_bytes")
    rows = ask(demonstration, "shared_slots", *columns, module="jit_act_offload_scan")
    assert (0, 0, 10, 2, 8 << 20, 96 << 20) in rows


def test_slices_that_run_asynchronously_are_prefetches(demonstration: duckdb.DuckDBPyConnection) -> None:
    """jit_mlp_wide_train_step: slice.15 is made in what slice-start calls, and element 1 of its result."""
    columns = (
        "value",
        "source",
        "from_color",
        "to_color",
        "start_time",
        "done_time",
        "first_use",
        "held_slots",
    )
    rows = ask(demonstration, "prefetches", *columns, module="jit_mlp_wide_train_step", top=None)
    assert ("slice.15", "a_0___layer_2____w__.1", 0, 1, 46, 60, "custom-call.2", 21) in rows
    starts = demonstration.execute(
        "SELECT count(*) FROM schedule AS s JOIN runs AS r USING (run_id)"
        " WHERE r.module_name = 'jit_mlp_wide_train_step' AND s.instruction SIMILAR TO '(copy|slice)-start.*'"
    ).fetchone()
    assert starts == (len(rows),)


def test_a_slice_in_a_fusion_that_runs_asynchronously_is_a_prefetch(
    demonstration: duckdb.DuckDBPyConnection,
) -> None:
    """jit_act_offload_scan on a GPU: dynamic-slice-start is the fusion-start of wrapped_dynamic-slice."""
    columns = ("value", "from_color", "to_color", "start_time", "first_use", "slots_in_flight", "held_slots")
    rows = ask(demonstration, "prefetches", *columns, module="jit_act_offload_scan", top=None)
    assert ("wrapped_dynamic-slice", 5, 0, 54, "bitcast.3.0", 4, 28) in rows


def test_donated_results_can_be_asked_for(connection: duckdb.DuckDBPyConnection) -> None:
    """longest_lived leaves out what lies in the memory of a donated parameter unless told otherwise."""
    insert_run(connection, has_ranges=True, schedule_length=10)
    insert_allocation(connection, 0, parameter_number=0, maybe_live_out=True)
    insert_live(connection, 0, "p0", (0, 3), opcode="parameter", role="parameter")
    insert_live(connection, 1, "updated", (3, 10), opcode="add", role="donated")
    assert ask(connection, "longest_lived", "value") == []
    assert ask(connection, "longest_lived", "value", "slots", donated=True) == [("updated", 8)]


@pytest.mark.parametrize(
    ("shape", "tiling", "size"),
    [
        ("f32[<=128,64]{1,0}", None, 8),
        ("s32[<=3]{0}", None, 4),
        ("s32[<=3]{0:T(128)M(1024)}", "T(128)", 1024),
        ("s32[<=3]{0:T(128)}", "T(128)", 0),
        ("f32[128,64]{1,0}", None, 0),
    ],
)
def test_sizes_of_a_dynamic_shape_are_no_padding(
    connection: duckdb.DuckDBPyConnection, shape: str, tiling: str | None, size: int
) -> None:
    """XLA keeps the actual sizes of a bounded dynamic shape with its data."""
    insert_run(connection)
    insert_value(connection, 0, "x", shape=shape, tiling=tiling, padding_bytes=2000)
    assert ask(connection, "padding", "dynamic_size_bytes", "padding_bytes") == [(size, 2000 - size)]


def test_a_donor_that_the_compiler_did_not_use_is_unused(tmp_path: Path) -> None:
    """jit_cd with its parameter x given away for any result: cond.3{0} would have fitted."""
    (primary,) = DATA.glob("hlo/jaxlib-0.10.2-cpu/*jit_cd*-buffer-assignment.txt")
    for path in primary.parent.glob("*jit_cd*.txt"):
        shutil.copy(path, tmp_path)
    hlo = tmp_path / primary.name.replace("-buffer-assignment", "")
    text = hlo.read_text()
    assert ", is_scheduled=true" in text
    hlo.write_text(text.replace(", is_scheduled=true", ", is_scheduled=true, buffer_donor={ (1, {}) }", 1))
    for path in tmp_path.iterdir():
        os.utime(path, (0, 0))
    import_dumps([tmp_path], tmp_path / "xbuf.duckdb", jobs=1)
    with open_database(tmp_path / "xbuf.duckdb", read_only=True) as connection:
        assert ask(connection, "donation", "name", "status", "declared", "result") == [
            ("x", "unused", "donor", "cond.3{0}"),
            ("p", "no fit", "none", None),
        ]


def test_the_content_of_a_dump_in_three_files_is_that_of_all_three(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """What an instruction does is in the second file; a set dumped again has all files again."""
    for run_id, values in enumerate(("sine", "cosine", "cosine"), 1):
        insert_run(connection, run_id, import_id=run_id, module_name="m", content_sha256="a", dump_digest=1)
        insert_allocation(connection, 0, run_id=run_id)
        for role, content in (("primary", "a"), ("values", values), ("hlo", f"text {run_id}")):
            named = {"run_id": run_id, "role": role, "file_name": role, "content_sha256": content}
            insert(connection, "run_files", **named, file_bytes=1, mtime_ns=1)
    assert ask(connection, "retraces", "modules", "contents") == [(3, 2)]
    assert ask(connection, "same_program", "runs", "contents") == [(3, 2)]
    assert ask(connection, "whats_new", "status", since=2, run="1,2") == [("changed",)]
    assert ask(connection, "whats_new", "status", since=3) == [("again",)]


def test_of_a_scatter_of_several_arrays_each_result_has_its_operand(
    connection: duckdb.DuckDBPyConnection,
) -> None:
    """The first array is changed in place, the second one copied."""
    insert_run(connection)
    for number, result_at in enumerate((0, 32)):
        insert_value(connection, number, f"x{number}", offset_bytes=8 * number)
        made = {"shape_index": f"{{{number}}}", "offset_bytes": result_at, "opcode": "scatter"}
        insert_value(connection, 2 + number, "s", **made)
        used = {"instruction": "s", "operand_number": number, "operand_index": "{}"}
        insert(connection, "uses", run_id=1, value_id=number, position=0, **used)
    columns = ("value", "operand", "verdict")
    assert ask(connection, "in_place", *columns) == [("s{0}", "x0", "in place"), ("s{1}", "x1", "copied")]


@pytest.mark.parametrize(
    ("name", "is_update"),
    [
        ("slice_scatter_fusion", True),
        ("wrapped_scatter", True),
        ("loop_dynamic_update_slice_fusion", True),
        ("reduce-scatter.3", False),
        ("select_and_scatter_fusion", False),
        ("add_fusion", False),
    ],
)
def test_a_fusion_is_an_update_by_its_name(
    connection: duckdb.DuckDBPyConnection, name: str, is_update: bool
) -> None:
    """A reduce-scatter moves data between devices, and a select-and-scatter changes no operand."""
    insert_run(connection)
    insert_value(connection, 0, name, opcode="fusion")
    assert ask(connection, "in_place", "value") == [(name,)] * is_update
