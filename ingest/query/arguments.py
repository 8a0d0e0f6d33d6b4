"""Check the arguments of a query's table macro in SQL, as the command line checks its options.

In a DuckDB shell a wrong argument has no other way to be reported than DuckDB's `error()`.
"""

from __future__ import annotations

from ingest.query.comparison import SIDES, is_comparison
from ingest.query.header import Parameter, SavedQuery
from ingest.sql import literal

_RUN_IDS = r"\s*\d+\s*(,\s*\d+\s*)*"


def argument_check(query: SavedQuery) -> str:
    """Write an expression over the macro's parameters that is true or raises an error; empty without any.

    The error names query, argument and value, and what the argument can be.
    """
    cases = [case for parameter in query.parameters for case in _cases(query, parameter)]
    return f"CASE {' '.join(cases)} ELSE true END" if cases else ""


def _cases(query: SavedQuery, parameter: Parameter) -> list[str]:
    name = f'"{parameter.name}"'
    if parameter.choices:
        known = ", ".join(map(literal, parameter.choices))
        return [_error(query, parameter, f"{name} IS NULL OR {name} NOT IN ({known})", f"is none of {known}")]
    if parameter.name == "run":
        wrong = f"NOT regexp_full_match({name}::VARCHAR, {literal(_RUN_IDS)})"
        # Bounded, so that of many runs the row group is read in which it would be.
        missing = (
            f"{name} IS NOT NULL AND NOT EXISTS (FROM runs AS r WHERE may_be_run(r.run_id, {name})"
            f" AND r.run_id IN (SELECT unnest(TRY_CAST(string_split({name}::VARCHAR, ',') AS BIGINT[]))))"
        )
        return [
            _error(query, parameter, wrong, "is no run_id, nor several as '3,7'; FROM runs lists them"),
            _error(query, parameter, missing, "is no run of this database; FROM runs lists them"),
        ]
    if is_comparison(query) and parameter.name in SIDES:
        arguments = ", ".join(f'"{p}"' for p in (*SIDES, "run", "label", "module"))
        runs = f"FROM compared_runs({arguments})"
        wrong = f"EXISTS ({runs}) AND NOT EXISTS ({runs} WHERE is_{parameter.name})"
        return [_error(query, parameter, wrong, SIDES[parameter.name])]
    return []


def _error(query: SavedQuery, parameter: Parameter, wrong: str, reason: str) -> str:
    """Write a branch of a CASE that raises an error where `wrong` holds."""
    name = f'"{parameter.name}"'
    value = f"CASE WHEN {name} IS NULL THEN 'NULL' ELSE concat('''', {name}::VARCHAR, '''') END"
    begin, end = literal(f"{query.name}: {parameter.name} := "), literal(f" {reason}")
    return f"WHEN {wrong} THEN error(concat({begin}, {value}, {end}))::BOOLEAN"
