"""Results that a reader can work out on paper from the five seeds.

How to check one: runs 1 to 5 are the files 000 to 004 of `tests/data/seeds`. Sizes stand in the `value:`
and `allocation` lines, lifetimes under `BufferLiveRange`, the order under `InstructionSequence`. Live at a
slot is what has start <= slot <= end; in these files no two values that touch share an address except
`fusion.10` and `all-reduce.28{0}` of 004, which do not touch (9-11 and 12-15), so live bytes are plain sums.
004 at slot 9, its peak: p1.2, p2.4, p4.10 and copy-start{0} 58720256 each, p3.6 and copy-start.1{0} 16777216
each, fusion.10 and fusion.12 14680064 each, p0.1 512, copy-start{} 32, copy-start{2} 4: 297796132.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pytest

from ingest.query.catalog import shipped
from tests.support.query_databases import ask

MIB = 1024 * 1024
P = 58720256
"""f32[3584,4096]: 56 MiB."""
X = 16777216
"""f32[8,128,4096]: 16 MiB."""
H = 14680064
"""f32[8,128,3584]: 14 MiB."""
S = 663552
"""bf16[1152,288]."""

Case = tuple[tuple[str, ...], dict[str, Any], list[tuple[Any, ...]]]

CASES: dict[str, list[Case]] = {
    "agreement": [
        (
            ("run_id", "total_agrees", "printed_total_bytes", "total_bytes", "peak_agrees"),
            {},
            [
                (5, True, 299944008, 299944008, False),
                (1, True, 5308448, 5308448, True),
                (2, True, 41943040, 41943040, True),
                (3, True, 524320, 524320, True),
                (4, True, 52288, 52288, True),
            ],
        ),
        # 004 prints slot 11: copy-start.1{0} is gone, fusion (16 MiB) is there, and so are 36 bytes less.
        (
            ("printed_peak_time", "peak_time", "live_at_printed_bytes", "peak_bytes", "printed_peak_bytes"),
            {"run": "5"},
            [(11, 9, 297796132 - 36, 297796132, 4 * X - 2 * X + 3 * P + 2 * H + 24 + 4)],
        ),
    ],
    "allocation_contents": [
        (
            ("allocation_index", "value", "size_bytes", "offset_bytes", "start_time", "end_time"),
            {"allocation": 12},
            [
                (12, "copy-start{0}", P, 0, 1, 11),
                (12, "copy-start.1{0}", X, 73400320, 6, 9),
                (12, "fusion", X, 73400320, 11, 12),
                (12, "fusion.12", H, P, 7, 11),
            ],
        ),
        (("allocation_index", "allocation_bytes", "value"), {"allocation": 19}, [(19, 0, None)]),
    ],
    "buffer_changes": [
        (("change",), {"before": "1,3", "after": "2,4"}, []),  # no module name is in both
        (("change",), {"before": "1", "after": "1"}, []),  # nothing changed
    ],
    "diff": [
        (("change",), {"before": "1,3", "after": "2,4"}, []),  # no module name is in both
        (("change",), {"before": "1", "after": "1"}, []),  # nothing changed
    ],
    "collectives": [
        (
            ("run_id", "value", "size_bytes", "bytes_at_peak", "collective"),
            {},
            [(5, "all-reduce.28{0}", X, 0, "all-reduce"), (5, "all-reduce.28{1}", 512, 0, "all-reduce")],
        )
    ],
    "color_crossings": [(("value",), {}, [])],
    "constants": [(("value",), {}, [])],
    "donation": [
        # 004: p3.6 and the result all-reduce.28{0} are both f32[8,128,4096] of 16 MiB.
        (
            ("run_id", "name", "result", "size_bytes"),
            {"status": "missed"},
            [(5, "p3.6", "all-reduce.28{0}", X)],
        ),
        (("run_id",), {"status": "honoured"}, []),
        (("name", "status"), {"run": "2"}, [(f"args[{n}]", "no fit") for n in (0, 1, 2)]),
    ],
    "dump_formats": [
        (
            ("runs", "backend", "without_uses", "without_ranges", "example_run_id"),
            {},
            [(2, None, 0, 0, 1), (1, None, 0, 0, 3), (1, "tpu", 0, 0, 4), (1, "tpu", 0, 0, 5)],
        )
    ],
    "fits_in_memory": [
        # 004, color 0 without thread-local: 3 x 56 MiB + 2 x 16 MiB + 512 + 32 + 49184.
        (
            ("run_id", "needed_bytes", "fits", "headroom_bytes", "space"),
            {"gib": 0.125},
            [
                (5, 209764928, False, 134217728 - 209764928, "HBM"),
                (2, 41943040, True, 134217728 - 41943040, None),
                (1, 5308448, True, 134217728 - 5308448, None),
                (3, 524320, True, 134217728 - 524320, None),
                (4, 52288 - 12 * 4096, True, 134217728 - 3136, "HBM"),
            ],
        )
    ],
    "fragmentation": [
        # Allocation 10 of 004: at slot 12, all-reduce.28{} 32 and {1} 512 are live. {1} has range 12-12, so
        # half-open it never counts; then the two copy-start{} of 32 bytes at slots 6 to 8 are the most.
        (
            (
                "run_id",
                "allocation_index",
                "arena_bytes",
                "peak_bytes",
                "released_peak_bytes",
                "packed_values",
            ),
            {},
            [
                (5, 10, 49184, 544, 64, 4),
                (4, 18, 32, 32, 32, 1),
                (5, 11, 8, 8, 8, 2),
                (5, 12, P + X + H, P + X + H, P + X + H, 4),
            ],
        ),
        (
            ("unused_least_bytes", "unused_most_bytes"),
            {"color": 0, "run": "5"},
            [(49184 - 544, 49184 - 64)],
        ),
    ],
    "identical_shapes": [
        (
            ("run_id", "buffers", "bytes", "each_bytes", "opcodes"),
            {},
            [
                (5, 2, 2 * P, P, "parameter"),
                (2, 2, 4 * MIB, 2 * MIB, "parameter"),
                (1, 4, 4 * S, S, "fusion"),
                (3, 4, 4 * 65536, 65536, "slice"),
                (4, 4, 4 * 512, 512, "fusion"),
            ],
        )
    ],
    "in_place": [(("value",), {}, [])],
    "largest_live_out": [
        (
            ("run_id", "size_bytes", "color", "tiling", "value"),
            {"top": 3},
            [
                (2, 20 * MIB, 0, None, "concatenate_convert_fusion"),
                (5, X, 0, "T(8,128)", "all-reduce.28{0}"),
                (1, S, 0, None, "slice_convert_fusion.3"),
            ],
        ),
        (
            ("tiling", "size_bytes", "value"),
            {"top": 1, "by": "tiling"},
            [
                ("T(128)", 512, "slice_reduce_fusion{0}"),
                ("T(8,128)", X, "all-reduce.28{0}"),
                (None, 20 * MIB, "concatenate_convert_fusion"),
            ],
        ),
        (("run_id", "value"), {"tiling": "T(128)", "top": 1}, [(4, "slice_reduce_fusion{0}")]),
        (("run_id",), {"color": 1}, []),
    ],
    "largest_modules": [
        (
            (
                "run_id",
                "total_bytes",
                "peak_bytes",
                "argument_bytes",
                "result_bytes",
                "temp_bytes",
                "donated_bytes",
            ),
            {},
            [
                (5, 299944008, 297796132, 3 * P + X + 512, X + 32, 49184 + 8 + P + X + H, 0),
                (2, 40 * MIB, 40 * MIB, 20 * MIB, 20 * MIB, 0, 0),
                (1, 5308448, 5308448, 4 * S, 4 * S + 32, 0, 0),
                (3, 524320, 524320, 262144, 4 * 65536 + 32, 0, 0),
                (4, 52288, 1024 + 4 * 512 + 32, 1024, 4 * 512 + 32, 32, 0),
            ],
        ),
        (("run_id",), {"by": "temp", "top": 2}, [(5,), (4,)]),
    ],
    "live_at_peak": [
        (
            ("value", "bytes", "kind", "color"),
            {"run": "5"},
            [
                ("p4.10", P, "parameter", 0),
                ("p2.4", P, "parameter", 0),
                ("p1.2", P, "parameter", 0),
                ("copy-start{0}", P, "temp", 1),
                ("p3.6", X, "parameter", 0),
                ("copy-start.1{0}", X, "temp", 1),
                ("fusion.10", H, "output", 0),
                ("fusion.12", H, "temp", 1),
                ("p0.1", 512, "parameter", 0),
                ("copy-start", 32, "temp", 0),
                ("copy-start{2}", 4, "temp", 2),
            ],
        ),
        (
            ("value", "cumulative_bytes"),
            {"run": "2", "top": 2},
            [
                ("concatenate_convert_fusion", 20 * MIB),
                ("args_0_.1", 36 * MIB),
            ],
        ),
    ],
    "live_curve": [
        (
            ("time", "live_bytes", "local_peak", "instruction"),
            {"run": "5"},
            [
                (0, 3 * P + X + 512, False, "p1.2"),
                (1, 4 * P + X + 512 + 36, False, "copy-start"),
                (6, 4 * P + 2 * X + 512 + 72, False, "copy-start.1"),
                (7, 4 * P + 2 * X + H + 512 + 72, False, "fusion.12"),
                (9, 297796132, True, "fusion.10"),
                (10, 297796132 - X, False, "copy-done"),
                (11, 297796132 - 36, True, "fusion"),
                (12, 3 * P + 3 * X + 512 + 32 + 512, False, "all-reduce.28"),
                (13, 3 * P + 2 * X + 512 + 32, False, "get-tuple-element.29"),
                (16, 0, False, None),
            ],
        ),
        (("time",), {"run": "5", "peaks": True}, [(9,), (11,)]),
    ],
    "load_failures": [(("file",), {}, [])],
    "longest_lived": [
        (
            ("value", "size_bytes", "slots", "last_use", "live_out"),
            {"run": "5", "top": 4},
            [
                ("copy-start{0}", P, 11, "fusion", False),
                ("fusion.12", H, 5, "fusion", False),
                ("copy-start.1{0}", X, 4, "fusion.10", False),
                ("all-reduce.28{0}", X, 4, None, True),
            ],
        )
    ],
    "memory_by_dtype": [
        (
            ("run_id", "dtype", "bytes", "values"),
            {"run": "4,5"},
            [
                (5, "f32", 297796132 - 36, 9),
                (5, "tuple", 32, 1),
                (5, "u32", 4, 1),
                (4, "u32", 1024 + 4 * 512, 5),
                (4, "tuple", 32, 1),
            ],
        )
    ],
    "memory_by_opcode": [
        (
            ("opcode", "bytes", "values"),
            {"run": "5"},
            [("parameter", 3 * P + X + 512, 5), ("copy-start", P + X + 36, 4), ("fusion", 2 * H, 2)],
        )
    ],
    "memory_by_role": [
        (
            ("role", "bytes", "allocations"),
            {"run": "5"},
            [
                ("argument", 3 * P + X + 512, 5),
                ("temporary", 49184 + 8 + 90177536, 3),
                ("result", X + 32, 2),
                ("thread-local", 3 * 512, 3),
            ],
        )
    ],
    "memory_by_source": [
        # 004 has no metadata at all: NULL, not an empty text.
        (
            ("run_id", "owner", "bytes", "values"),
            {"run": "3,5"},
            [
                (5, None, 297796132, 11),
                (3, None, 262144 + 32, 2),
                (3, "/home/ubuntu/apjax/alpa/alpa/device_mesh.py:958", 4 * 65536, 4),
            ],
        ),
        (
            ("owner", "bytes"),
            {"run": "4", "by": "scope"},
            [("jit(_unstack)/jit(main)", 4 * 512 + 32), (None, 1024)],
        ),
    ],
    "memory_figures": [
        # 004, color 0: 209764928 without thread-local, less its arena of 49184, in which all-reduce.28{1} of
        # 512 is alone but for tables of 32: those of all-reduce.28 and of two copy-starts.
        (
            ("run_id", "total_bytes", "resident_peak_bytes", "peak_bytes", "main_bytes", "tuple_table_bytes"),
            {},
            [
                (5, 299944008, 209764928 - 49184 + 512, 297796132, 209764928 + 3 * 512, 3 * 32),
                (2, 41943040, 41943040, 41943040, 41943040, 0),
                (1, 5308448, 5308448, 5308448, 5308448, 0),
                (3, 524320, 524320, 524320, 524320, 0),
                (4, 52288, 52288 - 12 * 4096 - 32, 3104, 52288, 32),
            ],
        )
    ],
    "memory_by_space": [
        (
            ("run_id", "color", "space", "place", "bytes", "thread_local_bytes"),
            {"run": "4,5"},
            [
                (5, 0, "HBM", "device", 209764928, 3 * 512),
                (5, 1, "VMEM", "device", 90177536, 0),
                (5, 2, "sync flags", "device", 8, 0),
                (4, 0, "HBM", "device", 3136, 12 * 4096),
                (4, 1, "VMEM", "device", 0, 0),
            ],
        )
    ],
    "padding": [
        # u32[2] in T(128): 512 for 8 bytes, 4 of them; u32[4,2] in T(2,128): 1024 for 32; f32[] in T(128).
        (
            ("run_id", "tiling", "padding_bytes", "logical_bytes", "buffers", "padding_at_peak_bytes"),
            {},
            [
                (4, "T(128)", 504, 8, 4, 2016),
                (4, "T(2,128)", 992, 32, 1, 992),
                (5, "T(128)", 508, 4, 5, 508),
                (4, None, 4092, 4, 12, 0),
            ],
        )
    ],
    "peak_by_color": [
        # 004, color 0, slot 12: 3 x P, p3.6 and all-reduce.28{0}, p0.1 and {1}, all-reduce.28{}.
        (
            ("color", "peak_bytes", "peak_time", "allocated_bytes"),
            {"run": "5"},
            [(0, 3 * P + 2 * X + 1024 + 32, 12, 209764928), (1, P + X + H, 7, 90177536), (2, 8, 6, 8)],
        )
    ],
    "peak_growth": [
        (("module",), {}, []),
        (("change_bytes", "change_total_bytes"), {"before": "5", "after": "5"}, [(0, 0)]),
    ],
    "peak_trend": [(("module",), {}, [])],
    "prefetches": [
        (
            ("value", "source", "from_color", "to_color", "slots_in_flight", "first_use", "cross_program"),
            {},
            [
                ("copy-start{0}", "p1.2", 0, 1, 8, "fusion", True),
                ("copy-start.1{0}", "p3.6", 0, 1, 1, "fusion.10", False),
            ],
        )
    ],
    "printed_peak_tree": [
        (
            ("node", "total_bytes", "own_bytes"),
            {"run": "2"},
            [
                ("main.1", 40 * MIB, 0),
                ("  concatenate_convert_fusion", 20 * MIB, 20 * MIB),
                ("  args[0]", 16 * MIB, 16 * MIB),
                ("  args[1]", 2 * MIB, 2 * MIB),
                ("  args[2]", 2 * MIB, 2 * MIB),
            ],
        ),
        (("run_id",), {"depth": 0}, [(2,), (1,)]),
    ],
    "recent_runs": [
        (
            ("run_id", "buffers", "backend"),
            {},
            [(5, 21, "tpu"), (4, 19, "tpu"), (3, 6, None), (2, 4, None), (1, 6, None)],
        )
    ],
    "rematerialization": [
        # 004 tells no operation names, so that nothing is known of jax.checkpoint.
        (
            ("run_id", "xla_values", "checkpoint_values", "checkpoint_at_peak_bytes", "largest"),
            {"run": "4,5"},
            [(5, 0, None, None, None), (4, 0, 0, 0, None)],
        )
    ],
    "retraces": [
        (("module",), {}, []),
        (("modules", "contents", "sum_total_bytes"), {"min_modules": 1, "run": "5"}, [(1, 1, 299944008)]),
    ],
    "same_program": [
        (("runs",), {}, []),
        (("runs", "run_ids", "total_bytes"), {"min_runs": 1, "run": "2"}, [(1, "2", 40 * MIB)]),
    ],
    # 004 at slot 9 without copy-start, which waits from slot 1 to 10: slot 11, where it is live again, has 36
    # bytes less than the peak. Its result all-reduce.28{0} fits p3.6. 003 has 12 scalars of 4 KiB as scratch.
    "savings": [
        (
            ("run_id", "saves_bytes", "lowers", "advice", "owner", "buffers", "spare_bytes", "after_bytes"),
            {},
            [
                (5, X, "total", "donate", "p*.*", 1, X, 299944008 - X),
                (4, 12 * 4096, "total", "scratch", "thread-local", 12, 12 * 4096, 52288 - 12 * 4096),
                (5, 48640, "total", "pack", "allocation 10", 4, 48640, 299944008 - 48640),
                (5, 36, "peak", "recompute", "copy-start", 3, P + 36, 297796132 - 36),
                (5, 36, "peak", "recompute", "fusion.*", 2, H, 297796132 - 36),
            ],
        )
    ],
    "scaling": [(("module",), {}, [])],
    "shared_slots": [
        (
            ("slot_bytes", "values", "saved_bytes", "allocation_index", "offset_bytes", "names"),
            {},
            [
                (X, 2, X, 12, 73400320, "copy-start.1{0} fusion"),
                (X, 2, H, 4, 0, "fusion.10 all-reduce.28{0}"),
            ],
        )
    ],
    "temp_arena": [
        (
            ("run_id", "allocation_index", "value", "bytes", "offset_bytes", "fullest_time"),
            {},
            [
                (5, 12, "copy-start{0}", P, 0, 7),
                (5, 12, "copy-start.1{0}", X, 73400320, 7),
                (5, 12, "fusion.12", H, P, 7),
                (5, 10, "all-reduce.28{1}", 512, 16384, 12),
                (5, 10, "all-reduce.28", 32, 0, 12),
                (4, 18, "slice_reduce_fusion", 32, 0, 1),
                (5, 11, "copy-start{2}", 4, 0, 6),
                (5, 11, "copy-start.1{2}", 4, 4, 6),
            ],
        )
    ],
    "thread_local": [
        (("run_id", "thread_local_bytes", "allocations"), {}, [(4, 12 * 4096, 12), (5, 3 * 512, 3)])
    ],
    "users_of": [
        (
            ("value", "user", "operand_number", "operand_index", "time"),
            {"value": "p3.6"},
            [
                ("p3.6", "copy-start.1", 0, "{}", 6),
                ("p3.6", "fusion.12", 0, "{}", 7),
                ("p3.6", "copy-done.1", 0, "{1}", 8),
            ],
        ),
        (("user", "uses"), {"value": "tuple.31"}, [(None, 0)]),
    ],
    "vmem": [
        (
            ("value", "bytes", "fullest_time", "space"),
            {},
            [("copy-start{0}", P, 7, "VMEM"), ("copy-start.1{0}", X, 7, "VMEM"), ("fusion.12", H, 7, "VMEM")],
        )
    ],
    "whats_new": [(("run_id", "status", "change_bytes"), {"run": "5"}, [(5, "new", None)])],
}


@pytest.mark.parametrize(
    ("name", "columns", "values", "expected"),
    [(name, *case) for name, cases in CASES.items() for case in cases],
    ids=[f"{name}-{number}" for name, cases in CASES.items() for number, _ in enumerate(cases, 1)],
)
def test_result_equals_what_the_text_says(
    seeds: duckdb.DuckDBPyConnection,
    name: str,
    columns: tuple[str, ...],
    values: dict[str, Any],
    expected: list[tuple[Any, ...]],
) -> None:
    """A query over the seeds gives what a reader works out from their text."""
    assert expected == ask(seeds, name, *columns, **values)


def test_every_query_has_a_hand_checked_result() -> None:
    """No shipped query is without a case above."""
    assert set(shipped()) == set(CASES)
