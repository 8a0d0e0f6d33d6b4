"""The digest of what a dump prints is equal where two dumps print the same program, and only there."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from ingest.dump.headers import HEADER_LINE, read_header
from ingest.staging.program_digest import Prints, placed, placed_many, signed
from ingest.staging.use_columns import first_operand_table, prints_with_uses

Use = tuple[str, str, str]
Value = tuple[str, str, str, str | None, int, int, list[Use]]
"""Name, index, shape, opcode, first slot, last slot and uses."""

_USES = st.lists(
    st.tuples(
        st.sampled_from(["add.1", "mul.2", "add.22"]),
        st.sampled_from(["0", "1", str(2**63 - 1)]),
        st.sampled_from(["", "{1}"]),
    ),
    max_size=2,
)
_VALUES = st.lists(
    st.tuples(
        st.sampled_from(["p", "a.1", "a.12", "b"]),
        st.sampled_from(["", "{}", "{0}"]),
        st.sampled_from(["f32[2]", "f32[4]"]),
        st.sampled_from([None, "add", "parameter"]),
        st.integers(-1, 2),
        st.integers(-1, 2),
        _USES,
    ),
    max_size=4,
)


def use_table(uses: list[Use]) -> pa.Table:
    """Return uses as rows of the table `uses`, each of a value of its own."""
    names, operands, indices = zip(*uses, strict=True)
    columns = {
        "value_id": range(len(uses)),
        "instruction": names,
        "operand_number": map(int, operands),
        "operand_index": [index or "{}" for index in indices],
    }
    return pa.table({name: pa.array(column) for name, column in columns.items()})


def digest(values: list[Value]) -> int:
    """Return the digest of values as the import makes it, in columns as one by one."""
    names, indices, shapes, opcodes, starts, ends, uses = zip(*values, strict=True) if values else ((),) * 7
    every, counts = [use for some in uses for use in some], list(map(len, uses))
    prints = Prints().of_values(names, indices, shapes, opcodes, every, counts)
    if every:
        without = Prints().of_values(names, indices, shapes, opcodes)
        assert prints_with_uses(without, counts, use_table(every)) == prints
    found = placed(prints, starts, ends)
    assert placed_many(prints, np.array(starts, np.int64), np.array(ends, np.int64)) == found
    return found


def by_brute_force(values: list[Value]) -> list[Counter[object]]:
    """Count the values, and the values with each of their uses: nothing is hashed."""

    def stem(name: str) -> str:
        return "".join(letter for letter in name if letter not in "0123456789.")

    kinds: Counter[object] = Counter()
    uses: Counter[object] = Counter()
    for name, index, shape, opcode, start, end, used in values:
        kind = (shape, index or "{}", opcode, "" if opcode == "parameter" else stem(name), start, end)
        kinds[kind] += 1
        uses.update((kind, stem(user), operand, place or "{}") for user, operand, place in used)
    return [kinds, uses]


@given(_VALUES, _VALUES)
def test_digests_are_equal_where_values_and_uses_are(one: list[Value], other: list[Value]) -> None:
    assert (digest(one) == digest(other)) == (by_brute_force(one) == by_brute_force(other))


@given(_VALUES)
def test_order_and_numbers_do_not_matter(values: list[Value]) -> None:
    other: list[Value] = [(f"{value[0]}.7", value[1] or "{}", *value[2:]) for value in reversed(values)]
    assert digest(other) == digest(values)


def test_use_of_another_value_is_another_program() -> None:
    """Two parameters of one shape, one of them read twice, or both once."""
    twice: list[Value] = [
        ("p", "", "f32[2]", "parameter", 0, 9, [("add", "0", ""), ("add", "1", "")]),
        ("q", "", "f32[4]", "parameter", 0, 9, []),
    ]
    once: list[Value] = [(*value[:6], [use]) for value, use in zip(twice, twice[0][6], strict=True)]
    assert digest(twice) != digest(once)


def test_allocations_count_by_size_color_and_kind() -> None:
    lines = [
        "allocation 0: size 8, parameter 0, shape |f32[2]| at ShapeIndex {}:",
        "allocation 1: size 8, maybe-live-out:",
        "allocation 2: size 16, color 1, preallocated-temp:",
    ]
    matches = [HEADER_LINE.match(line + "\n") for line in lines]
    headers = [read_header(match, 0) for match in matches if match]
    assert len(headers) == 3
    whole = Prints().of_allocations(headers)
    assert Prints().of_allocations(headers[::-1]) == whole
    assert sum(Prints().of_allocations([header]) for header in headers) % 2**64 == whole
    changed = [headers[0]._replace(size=16), headers[1], headers[2]._replace(size=8)]
    assert Prints().of_allocations(changed) != whole


def test_digest_fits_a_bigint() -> None:
    assert [signed(number) for number in (0, 2**63 - 1, 2**63, 2**64 - 1, 2**64 + 5)] == [
        0, 2**63 - 1, -(2**63), -1, 5,
    ]  # fmt: skip


def test_first_operands_of_chosen_instructions() -> None:
    uses: list[Use] = [
        ("add.1", "0", ""), ("add.1", "1", ""), ("while.2", "0", "{1}"), ("while.3", "0", "{1}")
    ]  # fmt: skip
    table = use_table(uses)
    assert first_operand_table(table, {"while.2", "add.1"}).to_pylist() == [
        {"name": "add.1", "index": "{}", "id": 0},
        {"name": "while.2", "index": "{1}", "id": 2},
    ]
    assert first_operand_table(table, None)["id"].to_pylist() == [0, 2, 3]
