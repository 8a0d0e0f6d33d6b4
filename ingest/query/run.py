"""Run a saved query or a statement of the user's own, and say why a result is empty."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ingest.errors import UsageError
from ingest.query.blocks import create_temporary
from ingest.query.catalog import did_you_mean
from ingest.query.comparison import COUNTED, describe_comparison, is_comparison
from ingest.query.guard import check_reads_only
from ingest.query.header import TOKEN, Parameter, SavedQuery, Value, placeholders
from ingest.query.result import Result, ResultColumn
from ingest.sql import literal, one_number

if TYPE_CHECKING:
    import duckdb
    import pyarrow

_SIZE = re.compile(r"(-?\d+(?:\.\d+)?)\s*(?:([kmgtpe])(i?)b?|b)?", re.IGNORECASE)
_FETCH = 10_000
_COUNTING = 2.0
"""Seconds that a user may wait to hear how many rows a result would have."""
_SELECTED = "FROM selected_runs($run, $label, $module)"
_LACKING = {"ranges": ("NOT has_ranges", "live ranges"), "uses": ("NOT has_values", "positions and uses")}
_ORIGIN = {"ranges": "ranges_from", "uses": "uses_from"}


@dataclass(frozen=True, slots=True)
class _Cursor:
    """A result that DuckDB computes as it is read."""

    columns: tuple[ResultColumn, ...]
    _cursor: duckdb.DuckDBPyConnection

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Yield the rows as Python values.

        Raises:
            UsageError: the statement failed on the way; DuckDB computes the rows as they are read.
        """
        import duckdb  # 70 ms

        try:
            while rows := self._cursor.fetchmany(_FETCH):
                yield from rows
        except duckdb.Error as error:
            raise UsageError(_first_line(error)) from error

    def batches(self) -> Iterator[pyarrow.RecordBatch]:
        """Yield the rows as Arrow batches, at least one, which may be empty.

        Raises:
            UsageError: the statement failed on the way.
        """
        import duckdb  # 70 ms
        import pyarrow  # 110 ms

        try:
            reader = self._cursor.to_arrow_reader(100_000)
            yield pyarrow.RecordBatch.from_pylist([], schema=reader.schema)
            yield from reader
        except (duckdb.Error, pyarrow.ArrowException, OSError) as error:
            # DuckDB's errors come through Arrow's stream as OSError.
            raise UsageError(_first_line(error)) from error


@dataclass(frozen=True, slots=True)
class Section:
    """How many of the selected runs lack a section of the dump, or have it derived."""

    selected: int
    runs: int
    what: str
    approximate: int = 0
    """Of the runs that have it derived, those where that is approximate."""


def convert(parameter: Parameter, text: str) -> Value:
    """Read the value of a parameter from a text of the command line; without choices `null` is NULL.

    Raises:
        UsageError: the text is no value of the parameter's type, or none of its choices.
    """
    if text.lower() == "null" and not parameter.choices:
        return None
    option = parameter.option
    if parameter.choices and text not in parameter.choices:
        hint = did_you_mean(text, parameter.choices)
        raise UsageError(f"{option}: {text!r} is none of {', '.join(parameter.choices)}{hint}")
    if parameter.type == "VARCHAR":
        return text
    if parameter.type == "BOOLEAN":
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        raise UsageError(f"{option}: {text!r} is neither true nor false")
    if parameter.unit == "bytes":
        return read_size(text, option)
    try:
        number = int(text) if parameter.type == "BIGINT" else float(text)
    except ValueError:
        what = "whole number" if parameter.type == "BIGINT" else "number"
        raise UsageError(f"{option}: {text!r} is no {what}") from None
    if parameter.type == "BIGINT" and not -(2**63) <= number < 2**63:
        raise UsageError(f"{option}: {text} does not fit in 64 bits")
    if parameter.name == "top" and number < 0:
        raise UsageError(f"{option}: {text} is negative; 0 shows all rows")
    if parameter.name == "top" and number == 0:
        return None
    return number


def given_in(query: SavedQuery, words: Sequence[str]) -> dict[str, Value]:
    """Read the parameters in words of the command line, such as `--top 5`; raises as `convert`."""
    options = {parameter.option: parameter for parameter in query.parameters}
    return {
        options[option].name: convert(options[option], text)
        for option, text in zip(words[::2], words[1::2], strict=True)
    }


def bind(query: SavedQuery, given: Mapping[str, Value]) -> dict[str, Value]:
    """Fill in the defaults of the parameters that are not given.

    Raises:
        UsageError: the query has no such parameter, or the value is none of its choices.
    """
    for name, value in given.items():
        parameter = query.parameter(name)
        if parameter is None:
            hint = did_you_mean(name, [parameter.name for parameter in query.parameters])
            raise UsageError(f"query '{query.name}' has no parameter '{name}'{hint}")
        if parameter.choices and value not in parameter.choices:
            raise UsageError(f"{name}: {value!r} is none of {', '.join(parameter.choices)}")
    return {parameter.name: given.get(parameter.name, parameter.default) for parameter in query.parameters}


def sql_text(query: SavedQuery, values: Mapping[str, Value]) -> str:
    """Write the statement that would run, with the values in place of the parameters.

    It runs in any DuckDB shell on a database in which xbuf-ingest has installed its building blocks.
    """
    text = TOKEN.sub(lambda match: literal(values[match["name"]]) if match["name"] else match[0], query.sql)
    return text + ";"


def run_query(
    connection: duckdb.DuckDBPyConnection,
    query: SavedQuery,
    values: Mapping[str, Value],
    *,
    unsafe: bool = False,
) -> Result:
    """Run a saved query.

    The building blocks that it uses, and those of what is said about its result, are made for this connection
    first, in the version that the query was written for.

    Args:
        values: a value for each parameter, as `bind` makes it.
        unsafe: the statement may do more than read the database.

    Raises:
        UsageError: DuckDB or `check_reads_only` refuses the statement, or its columns are not those of the
            header.
    """
    import duckdb  # 70 ms

    about = (_SELECTED, COUNTED) if is_comparison(query) else (_SELECTED,)
    create_temporary(connection, query.sql, *about)
    where = query.path
    try:
        statements = connection.extract_statements(query.sql)
        if len(statements) != 1:
            raise UsageError(f"{where}: holds {len(statements)} statements; a query is one")
        if statements[0].named_parameters != placeholders(query.sql):
            raise UsageError(f"{where}: a parameter is $name, of letters, digits and underscores")
        if not unsafe:
            try:
                check_reads_only(connection, query.sql)
            except UsageError as error:
                raise UsageError(f"{where}: {error}") from error
        result = _open(connection, query.sql, dict(values))
    except duckdb.Error as error:
        raise UsageError(f"{where}: {_first_line(error)}") from error
    if not query.described:
        return result
    names = [column.name for column in result.columns]
    declared = [column.name for column in query.columns]
    if names != declared:
        raise UsageError(
            f"{where}: the header has columns {', '.join(declared)}; the statement gives {', '.join(names)}"
        )
    for column, stated in zip(result.columns, query.columns, strict=True):
        if column.type != stated.type:
            raise UsageError(f"{where}: column {stated.name} is {column.type}, the header says {stated.type}")
    ranks = {name: rank for rank, name in enumerate(query.key)}
    described = (ResultColumn(c.name, c.type, c.unit, c.label, ranks.get(c.name)) for c in query.columns)
    return _Cursor(tuple(described), result._cursor)


def run_sql(connection: duckdb.DuckDBPyConnection, sql: str, *, unsafe: bool = False) -> Result:
    """Run one statement of the user's own.

    A column whose name ends in `_bytes` is taken for bytes.

    Args:
        unsafe: the statement may do more than read the database.

    Raises:
        UsageError: DuckDB or `check_reads_only` refuses the statement, or there is not exactly one.
    """
    import duckdb  # 70 ms

    try:
        if not unsafe:
            check_reads_only(connection, sql)
        elif (count := len(connection.extract_statements(sql))) != 1:
            raise UsageError(f"{count} statements given; xbuf runs one at a time")
        return _open(connection, sql, {})
    except duckdb.Error as error:
        raise UsageError(_first_line(error)) from error


def why_empty(connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value]) -> str:
    """Say in a sentence why a query has no rows."""
    if not one_number(connection, "SELECT count(*) FROM runs"):
        return "the database holds no runs yet; load dumps with `xbuf-ingest DIR`"
    narrowing = _narrowing(values)
    if one_number(connection, f"SELECT count(*) {_SELECTED}", dict(narrowing)) == 0:
        return _no_run(connection, narrowing)
    lacking = count_lacking(connection, query, values)
    if lacking is not None and lacking.runs == lacking.selected:
        return f"none of the {lacking.selected} selected runs has {lacking.what}: their dumps lack them"
    compared = describe_comparison(connection, query, values)
    return "no row matches" if compared is None else f"no row: {compared}"


def count_lacking(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value]
) -> Section | None:
    """Count the selected runs that lack a section without which the query has no rows for them."""
    for need in query.needs:
        condition, what = _LACKING[need]
        row = connection.execute(
            f"SELECT count(*), count(*) FILTER ({condition}) {_SELECTED}", _narrowing(values)
        ).fetchone()
        if row and row[1]:
            return Section(int(row[0]), int(row[1]), what)
    return None


def count_derived(
    connection: duckdb.DuckDBPyConnection, query: SavedQuery, values: Mapping[str, Value]
) -> Section | None:
    """Count the selected runs for which a section that the query needs was derived from the HLO module."""
    for need in query.needs:
        origin = _ORIGIN[need]
        row = connection.execute(
            f"SELECT count(*), count(*) FILTER ({origin} <> 'dump'),"
            f" count(*) FILTER ({origin} = 'approximate') {_SELECTED}",
            _narrowing(values),
        ).fetchone()
        if row and row[1]:
            return Section(int(row[0]), int(row[1]), _LACKING[need][1], int(row[2]))
    return None


def count_rows(
    connection: duckdb.DuckDBPyConnection,
    query: SavedQuery,
    values: Mapping[str, Value],
) -> int | None:
    """Count the rows of a query that has run already; None where that takes too long."""
    import duckdb  # 70 ms

    timer = threading.Timer(_COUNTING, connection.interrupt)
    timer.start()
    try:
        return one_number(connection, f"SELECT count(*) FROM ({query.sql}\n)", dict(values) or None)
    except duckdb.InterruptException:
        return None
    finally:
        timer.cancel()
        timer.join()


def _narrowing(values: Mapping[str, Value]) -> dict[str, Value]:
    return {name: values.get(name) for name in ("run", "label", "module")}


def _no_run(connection: duckdb.DuckDBPyConnection, narrowing: Mapping[str, Value]) -> str:
    given = ", ".join(f"--{name} {value}" for name, value in narrowing.items() if value is not None)
    hint = ""
    if narrowing["module"] is not None:
        known = connection.execute("SELECT DISTINCT coalesce(module_name, stem) FROM runs").fetchall()
        hint = did_you_mean(str(narrowing["module"]), [name for (name,) in known])
    elif narrowing["label"] is not None and "," not in str(narrowing["label"]):
        pairs = connection.execute("SELECT DISTINCT key || '=' || value FROM run_labels").fetchall()
        hint = did_you_mean(str(narrowing["label"]), [pair for (pair,) in pairs]) or (
            "; no run has a label" if not pairs else ""
        )
    return f"no run matches {given}{hint}"


def _open(connection: duckdb.DuckDBPyConnection, sql: str, values: dict[str, Value]) -> _Cursor:
    cursor = connection.execute(sql, values or None)
    description = cursor.description or []
    return _Cursor(
        tuple(
            ResultColumn(str(name), _type_name(type_), "bytes" if str(name).endswith("_bytes") else None)
            for name, type_, *_ in description
        ),
        cursor,
    )


def _type_name(type_: object) -> str:
    return str(type_)


def read_size(text: str, option: str) -> int:
    """Read a number of bytes: 4096, 16KiB, 1.5GiB; kB, MB ... are decimal."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{option}: {text!r} is no size; write 4096, 16KiB or 1.5GiB")
    power = "kmgtpe".index(match[2].lower()) + 1 if match[2] else 0
    return int(float(match[1]) * (1024 if match[3] else 1000) ** power) if power else int(float(match[1]))


def _first_line(error: Exception) -> str:
    """Shorten DuckDB's message to one line: without its picture of the statement and its wrapping."""
    text = " ".join(str(error).split("\n\n")[0].split())
    return text.rpartition("pending query result Error: ")[2]
