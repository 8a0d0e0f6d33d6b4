"""Which entry parameters share their memory with a result, and which could have.

A result that fits is of the parameter's element type and dimensions, size and memory space, and has an
allocation of its own. Each fits one parameter only: those whose donation is declared come first, then in
order of their numbers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple


class Held(NamedTuple):
    """An allocation that holds an array which is an entry parameter, or leaves the program, or both.

    Attributes:
        allocation: its number.
        size: bytes.
        color: memory space.
        parameter: number of the parameter; None for none.
        leaves: it holds something reachable from the entry result.
        declared: may, must or donor, as the module declares a donation of the parameter; None for none.
        value: id of the parameter's value, else of the one that leaves.
        type: equal where element type and dimensions of the value are.
    """

    allocation: int
    size: int
    color: int
    parameter: int | None
    leaves: bool
    declared: str | None
    value: int
    type: object


class Donation(NamedTuple):
    """What became of a parameter's donation, named as the columns of `allocations`.

    Attributes:
        donation: honoured, unused, missed or no fit.
        declared_donation: may, must or donor.
        fitting_value_id: the value that leaves and could have had its memory.
    """

    donation: str | None = None
    declared_donation: str | None = None
    fitting_value_id: int | None = None


NO_DONATION: Final = Donation()
"""Of an allocation without a parameter, and of one whose parameter is no array."""


def status_of(*, leaves: bool, is_declared: bool, fits: bool) -> str:
    """Return what became of the donation of a parameter."""
    if leaves:
        return "honoured"
    if is_declared:
        return "unused"
    return "missed" if fits else "no fit"


def donations(held: Iterable[Held]) -> Mapping[int, Donation]:
    """Return what became of the donation of each parameter, by the number of its allocation.

    Args:
        held: by ascending allocation.
    """
    parameters: list[Held] = []
    takers: defaultdict[tuple[int, int, object], list[tuple[bool, int, int]]] = defaultdict(list)
    results: defaultdict[tuple[int, int, object], list[int]] = defaultdict(list)
    for one in held:
        fit = (one.size, one.color, one.type)
        if one.parameter is None:
            results[fit].append(one.value)
            continue
        parameters.append(one)
        if not one.leaves:
            takers[fit].append((one.declared is None, one.parameter, one.allocation))
    fitting: dict[int, int] = {}
    for fit in takers.keys() & results.keys():
        for (_, _, allocation), value in zip(sorted(takers[fit]), results[fit], strict=False):
            fitting[allocation] = value
    found = {}
    for one in parameters:
        fits = one.allocation in fitting
        status = status_of(leaves=one.leaves, is_declared=one.declared is not None, fits=fits)
        found[one.allocation] = Donation(status, one.declared, fitting.get(one.allocation))
    return found
