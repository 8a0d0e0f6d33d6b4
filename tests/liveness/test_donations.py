"""What became of the donation of each parameter, as an import stores it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.database.connect import open_database
from ingest.liveness.donation_columns import HeldColumns, fitting_values
from ingest.liveness.donations import Donation, Held, donations
from ingest.liveness.occupancy_columns import ABSENT
from ingest.pipeline.importer import import_dumps
from tests.support.dump_sets import DATA


def parameter(
    number: int, *, size: int = 64, color: int = 0, leaves: bool = False, declared: str | None = None
) -> Held:
    """Return a parameter whose allocation and value have its number."""
    return Held(number, size, color, number, leaves, declared, number, "f32[2]")


def result(index: int, *, size: int = 64, color: int = 0, type_: str = "f32[2]") -> Held:
    """Return a result in an allocation of its own, whose value has its index."""
    return Held(index, size, color, None, True, None, index, type_)


@st.composite
def allocations(draw: st.DrawFn) -> list[Held]:
    """Few sizes, colors and types, so that many fit; numbers of parameters in any order."""
    count = draw(st.integers(0, 8))
    numbers = draw(st.permutations(range(count)))
    held = []
    for index in range(count):
        is_parameter = draw(st.booleans())
        declared = draw(st.sampled_from([None, None, "may", "donor"])) if is_parameter else None
        held.append(
            Held(
                index,
                draw(st.sampled_from([8, 16])),
                draw(st.sampled_from([0, 5])),
                numbers[index] if is_parameter else None,
                draw(st.booleans()) if is_parameter else True,
                declared,
                100 - index,
                draw(st.sampled_from(["f32[2]", "s32[2]"])),
            )
        )
    return held


def by_brute_force(held: Sequence[Held]) -> dict[int, Donation]:
    """Offer each result, in order, to the first parameter that it fits and that has none yet."""
    given_to: dict[int, int] = {}
    offers = sorted(
        (one for one in held if one.parameter is not None and not one.leaves),
        key=lambda one: (one.declared is None, one.parameter),
    )
    for out in (one for one in held if one.parameter is None):
        for taker in offers:
            if taker.allocation not in given_to and taker[1:3] == out[1:3] and taker.type == out.type:
                given_to[taker.allocation] = out.value
                break
    found = {}
    for one in held:
        if one.parameter is not None:
            value = given_to.get(one.allocation)
            status = "no fit" if value is None else "missed"
            status = "honoured" if one.leaves else "unused" if one.declared else status
            found[one.allocation] = Donation(status, one.declared, value)
    return found


@given(allocations())
def test_every_donation_is_what_brute_force_finds(held: list[Held]) -> None:
    """One by one as in columns, which large dumps have."""
    expected = by_brute_force(held)
    assert donations(held) == expected
    types = {"f32[2]": 0, "s32[2]": 1}
    columns = HeldColumns(
        np.array([one.allocation for one in held], np.int64),
        np.array([one.size for one in held], np.int64),
        np.array([one.color for one in held], np.int64),
        np.array([ABSENT if one.parameter is None else one.parameter for one in held], np.int64),
        np.array([one.leaves for one in held], np.bool_),
        np.array([one.declared is not None for one in held], np.bool_),
        np.array([one.value for one in held], np.int64),
        np.array([types[str(one.type)] for one in held], np.int64),
    )
    fitting = fitting_values(len(held), columns).tolist()
    wanted = {index: one.fitting_value_id for index, one in expected.items()}
    assert fitting == [ABSENT if wanted.get(at) is None else wanted[at] for at in range(len(held))]


def test_a_result_in_another_memory_space_fits_no_parameter() -> None:
    """The host parameter 0 cannot share with the result on the device; parameter 1, of equal type, can."""
    assert donations([parameter(0, color=5), parameter(1), result(2)]) == {
        0: Donation("no fit"),
        1: Donation("missed", None, 2),
    }


def test_four_fates_of_a_donation() -> None:
    """A result that fits two parameters goes with the one that is declared, whatever their order."""
    held = [
        parameter(0),
        parameter(1, leaves=True, declared="may"),
        parameter(2),
        parameter(3, declared="may"),
        parameter(4, size=8),
        result(5),
        result(6),
        result(7, size=8, type_="s32[2]"),
    ]
    assert donations(held) == {
        0: Donation("missed", None, 6),
        1: Donation("honoured", "may"),
        2: Donation("no fit"),
        3: Donation("unused", "may", 5),
        4: Donation("no fit"),
    }


def test_a_token_has_no_memory_to_give(tmp_path: Path) -> None:
    """jit_io_callback_loop: a token parameter, and another token that leaves; both of no bytes."""
    (dump,) = DATA.glob("dumps/jaxlib-0.10.2-cpu/*jit_io_callback_loop*-buffer-assignment.txt")
    import_dumps([dump], tmp_path / "xbuf.duckdb", jobs=1)
    with open_database(tmp_path / "xbuf.duckdb", read_only=True) as connection:
        query = (
            'SELECT a.donation, a.fitting_value_id FROM allocations AS a JOIN "values" AS v USING (run_id)'
            " WHERE v.value_id = a.parameter_value_id AND v.dtype = 'token'"
        )
        assert connection.execute(query).fetchall() == [(None, None)]


def test_what_is_stored_is_what_the_rows_give(demonstration: duckdb.DuckDBPyConnection) -> None:
    """Parameters that are arrays have a status; what fits is of equal type, size and space, and fits once."""
    differing = demonstration.execute(
        """
        SELECT a.run_id, a.allocation_index
        FROM allocations AS a
        LEFT JOIN "values" AS p ON p.run_id = a.run_id AND p.value_id = a.parameter_value_id
        LEFT JOIN "values" AS f ON f.run_id = a.run_id AND f.value_id = a.fitting_value_id
        LEFT JOIN allocations AS o ON o.run_id = a.run_id AND o.live_out_value_id = a.fitting_value_id
        WHERE (a.donation IS NULL) <> (p.dimensions IS NULL OR p.dtype = 'token')
           OR (a.donation = 'honoured') <> (a.donation IS NOT NULL AND a.maybe_live_out)
           OR (a.donation = 'missed' AND a.fitting_value_id IS NULL)
           OR (a.fitting_value_id IS NOT NULL AND (a.size_bytes, a.color, p.dtype, p.dimensions)
               IS DISTINCT FROM (o.size_bytes, o.color, f.dtype, f.dimensions))
        """
    ).fetchall()
    assert differing == []
    twice = demonstration.execute(
        "SELECT run_id, fitting_value_id FROM allocations WHERE fitting_value_id IS NOT NULL"
        " GROUP BY ALL HAVING count(*) > 1"
    ).fetchall()
    assert twice == []
    statuses = demonstration.execute("SELECT DISTINCT donation FROM allocations").fetchall()
    assert {"honoured", "missed", "no fit"} <= {status for (status,) in statuses}


@pytest.mark.parametrize("kinds", [("must", "may", "donor"), ("donor", "may", "must")])
def test_of_several_declarations_the_weakest_alias_counts(kinds: tuple[str, ...]) -> None:
    """may before must, and either before a donor, whatever their order in the module's head."""
    from types import SimpleNamespace

    from ingest.hlo.records import Alias, Donor
    from ingest.staging.sidecars import Sidecars

    aliases = [Alias("{}", 3, "{}", kind) for kind in kinds if kind in ("may", "must")]  # type: ignore[arg-type]
    header = SimpleNamespace(aliases=aliases, donors=[Donor(3, "{}"), Donor(4, "{1}")])
    sidecars = Sidecars(module=SimpleNamespace(header=header))  # type: ignore[arg-type]
    assert sidecars.declared_donations() == {(3, "{}"): "may", (4, "{1}"): "donor"}
