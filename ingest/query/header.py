"""Read a query file: a comment header that describes one DuckDB statement.

    -- title: Largest constants
    -- topic: arenas
    -- question: Which constants are embedded, and how big are they?
    -- needs: ranges
    -- reads: selected runs
    -- key: size_bytes, value
    -- note: a caveat that travels with the numbers
    -- example: --top 5
    -- parameter top BIGINT = 20: rows to show
    -- parameter by VARCHAR = 'size' in (size, name): order
    -- column size_bytes BIGINT [bytes] as size: size of the allocation
    PREPARE constants AS
    SELECT ... LIMIT $top;
    EXECUTE constants(top := 20, by := 'size', run := NULL, label := NULL, module := NULL);

A line that begins with `--` and three blanks continues the line above. The statement is plain DuckDB SQL
with native `$name` parameters. The lines PREPARE and EXECUTE around it are there because a DuckDB shell
binds `$name` in no other way: with them `.read FILE` runs the query with its defaults and leaves it
prepared for other values. A file may also hold the statement alone.

`key` names the columns that a narrow table shows first, the most important one in front; `as` is the head of
a column in tables.

The parameters run, label and module narrow a query to some runs; every query may use them without
declaring them. `reads: selected runs` promises that the answer depends on no other runs: where they are
few, the statement then sees no others, and need not look for them in a database of many. `reads: selected
runs, $runs highest peaks` promises that it depends on so many of them alone: those with the highest peaks,
the one with the least number first where peaks are equal.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from pathlib import Path

from ingest.errors import UsageError
from ingest.sql import literal

Value = str | int | float | bool | None
"""What a parameter can be."""

NEEDS = ("ranges", "uses")
"""Sections of a dump that `needs` can name."""

_READS = re.compile(r"selected runs(?:, \$(?P<highest>\w+) highest peaks)?")
"""What `reads` can state."""
_TAKEN = ("db", "format", "help", "output", "queries", "sql", "unsafe", "width")
"""Options of `xbuf query` itself."""
_PARAMETER_TYPES = ("BIGINT", "DOUBLE", "VARCHAR", "BOOLEAN")
_UNITS = ("bytes", "slots", "count", "percent", "share", "ratio")
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_FIELD = re.compile(
    r"--\s?(?:(title|topic|question|note|needs|reads|key|example):|(parameter|column)\s)\s*(.*)"
)
_PARAMETER = re.compile(
    r"(?P<name>\w+)\s+(?P<type>\w+)(?:\s+\[(?P<unit>\w+)\])?\s*=\s*(?P<default>'(?:[^']|'')*'|[^\s:]+)"
    r"(?:\s+in\s+\((?P<choices>[^)]*)\))?\s*:\s*(?P<text>.+)"
)
_COLUMN = re.compile(
    r"(?P<name>\w+)\s+(?P<type>[A-Z]+(?:\[\])*)(?:\s+\[(?P<unit>\w+)\])?"
    r"(?:\s+as\s+(?P<label>[^\s:]+(?: [^\s:]+)*))?\s*:\s*(?P<text>.+)"
)
_SUFFIX = re.compile("_(?:bytes|percent|id)$")
_PREPARE = re.compile(r"\s*PREPARE\s+(\w+)\s+AS\b[ \t]*\n?", re.IGNORECASE)
_EXECUTE = re.compile(
    r";(?:\s|--[^\n]*\n)*EXECUTE\s+(\w+)\s*(?:\((?P<arguments>.*)\))?\s*;?\s*\Z", re.IGNORECASE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Parameter:
    """A typed parameter with its default.

    Attributes:
        unit: bytes lets the command line accept 16MiB; None otherwise.
        choices: the texts allowed; empty for any.
    """

    name: str
    type: str
    default: Value
    text: str
    unit: str | None = None
    choices: tuple[str, ...] = ()

    @property
    def option(self) -> str:
        """What it is on the command line."""
        return f"--{self.name.replace('_', '-')}"

    @property
    def default_sql(self) -> str:
        """The default as a SQL literal."""
        return literal(self.default)


@dataclass(frozen=True, slots=True)
class Column:
    """A result column.

    Attributes:
        unit: bytes, slots, count, percent, share (percent of a whole), ratio or None.
        label: its name at the head of a table, where cells show their unit.
    """

    name: str
    type: str
    text: str
    unit: str | None = None
    label: str = ""


@dataclass(frozen=True, slots=True)
class SavedQuery:
    """A query file, parsed and checked as far as its text alone allows.

    Attributes:
        sql: the statement with `$name` parameters, without a semicolon.
        parameters: declared parameters, then those of run, label and module that the statement uses.
        needs: sections without which a run has no rows.
        reads_selected: the answer depends on the selected runs alone.
        highest: the parameter that says on how many of them, those with the highest peaks; empty for all.
        key: names of the columns that matter most, the first one most.
        topic: under which the list of queries shows it; empty for none.
    """

    name: str
    path: Path
    title: str
    question: str
    sql: str
    parameters: tuple[Parameter, ...]
    columns: tuple[Column, ...]
    needs: tuple[str, ...] = ()
    reads_selected: bool = False
    highest: str = ""
    key: tuple[str, ...] = ()
    topic: str = ""
    note: str = ""
    example: str = ""
    sha256: str = ""
    described: bool = field(default=True)
    """False for a file without any header: it runs, with its columns as they come."""

    def parameter(self, name: str) -> Parameter | None:
        """Find a parameter by name."""
        return next((parameter for parameter in self.parameters if parameter.name == name), None)


NARROWING = (
    Parameter("run", "VARCHAR", None, "only these runs: one run_id, or several as '3,7'"),
    Parameter("label", "VARCHAR", None, "only runs labelled key=value (value: a glob); several: 'a=1,b=2'"),
    Parameter("module", "VARCHAR", None, "only modules whose name matches this glob, e.g. 'jit_train*'"),
)
"""Parameters that narrow every query in the same way."""


def read_query(path: Path) -> SavedQuery:
    """Read a query file.

    Raises:
        UsageError: the file cannot be read or its header is wrong; one line with file and reason.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise UsageError(f"{path}: cannot be read: {reason}") from error
    return parse_query(text, path)


def parse_query(text: str, path: Path) -> SavedQuery:
    """Parse the text of a query file; its name is the name of the file.

    Raises:
        UsageError: the header is wrong; one line with file, line and reason.
    """
    name = path.stem
    header, body = _split(text)
    fields: dict[str, str] = {}
    parameters: list[Parameter] = []
    columns: list[Column] = []
    for line, key, value in _fields(header, path):
        where = f"{path}:{line}"
        if key == "parameter":
            parameters.append(_parameter(value, where))
        elif key == "column":
            columns.append(_column(value, where))
        elif key in fields:
            raise UsageError(f"{where}: a second '{key}'")
        elif not value:
            raise UsageError(f"{where}: '{key}' is empty")
        else:
            fields[key] = value
    columns = _labelled(columns)
    described = bool(fields or parameters or columns)
    if described:
        if not _NAME.fullmatch(name):
            raise UsageError(f"{path}: a query's file name is lower-case letters, digits, underscores")
        for key in ("title", "question"):
            if key not in fields:
                raise UsageError(f"{path}: the header has no '-- {key}: ...' line")
        if not columns:
            raise UsageError(f"{path}: the header has no '-- column NAME TYPE: ...' line")
    for kind, names in (("parameter", [p.name for p in parameters]), ("column", [c.name for c in columns])):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice:
            raise UsageError(f"{path}: {kind} '{twice}' is there twice")
    needs = _names(fields.get("needs", ""))
    keys = _names(fields.get("key", ""))
    for column_name in keys:
        if column_name not in {column.name for column in columns}:
            raise UsageError(f"{path}: key: '{column_name}' is no column of the header")
    unknown = next((need for need in needs if need not in NEEDS), None)
    if unknown:
        raise UsageError(f"{path}: needs: '{unknown}' is none of {', '.join(NEEDS)}")
    stated = fields.get("reads")
    reads = None if stated is None else _READS.fullmatch(stated)
    if stated is not None and reads is None:
        raise UsageError(
            f"{path}: reads: {stated!r} is neither 'selected runs' nor 'selected runs, $NAME highest peaks'"
        )
    highest = reads["highest"] or "" if reads else ""
    if highest and highest not in {parameter.name for parameter in parameters}:
        raise UsageError(f"{path}: reads: '${highest}' is no parameter of the header")
    sql, execute = _statement(body, path)
    used = placeholders(sql)
    standard = tuple(p for p in NARROWING if p.name in used and p.name not in {q.name for q in parameters})
    every = (*parameters, *standard)
    _check_parameters(path, described, every, used)
    if execute is not None:
        _check_execute(path, every, execute)
    return SavedQuery(
        name=name,
        path=path,
        title=fields.get("title", name),
        question=fields.get("question", ""),
        sql=sql,
        parameters=every,
        columns=tuple(columns),
        needs=needs,
        reads_selected=reads is not None,
        highest=highest,
        key=keys,
        topic=fields.get("topic", ""),
        note=fields.get("note", ""),
        example=fields.get("example", ""),
        sha256=hashlib.sha256(text.encode()).hexdigest(),
        described=described,
    )


def placeholders(sql: str) -> frozenset[str]:
    """Find the `$name` parameters of a statement outside of strings, quoted names and comments."""
    return frozenset(match["name"] for match in TOKEN.finditer(sql) if match["name"])


TOKEN = re.compile(
    r"""--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|"(?:[^"]|"")*"|\$\$.*?\$\$|\$(?P<name>[A-Za-z_]\w*)""", re.DOTALL
)
"""What a scan for parameters must step over, and the parameter itself."""


def _names(text: str) -> tuple[str, ...]:
    """Read a list of names with commas between them."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _split(text: str) -> tuple[list[str], str]:
    """Part the leading comment lines from the rest."""
    lines = text.split("\n")
    count = 0
    while count < len(lines) and (lines[count].startswith("--") or not lines[count].strip()):
        count += 1
    return lines[:count], "\n".join(lines[count:])


def _fields(lines: list[str], path: Path) -> list[tuple[int, str, str]]:
    """Gather the fields of a header with their line numbers, continuation lines joined."""
    found: list[tuple[int, str, str]] = []
    for number, line in enumerate(lines, 1):
        match = _FIELD.fullmatch(line.rstrip())
        if match:
            found.append((number, match[1] or match[2], match[3].strip()))
        elif line.startswith("--   ") and found:
            first, key, value = found[-1]
            found[-1] = (first, key, f"{value} {line[2:].strip()}".strip())
        elif found and line.strip() not in ("", "--"):
            raise UsageError(
                f"{path}:{number}: not a header line: {line.strip()!r}; one begins with '-- title:', "
                "'-- topic:', '-- question:', '-- needs:', '-- reads:', '-- key:', '-- note:', '-- example:',"
                " '-- parameter' or '-- column'"
            )
    return found


def _parameter(value: str, where: str) -> Parameter:
    """Parse `NAME TYPE [UNIT] = DEFAULT in (A, B): TEXT`."""
    match = _PARAMETER.fullmatch(value)
    if not match:
        raise UsageError(f"{where}: a parameter is 'NAME TYPE = DEFAULT: what it does', not {value!r}")
    name, type_ = match["name"], match["type"].upper()
    if not _NAME.fullmatch(name):
        raise UsageError(f"{where}: '{name}': a parameter's name is lower-case letters, digits, underscores")
    if name in {parameter.name for parameter in NARROWING}:
        raise UsageError(f"{where}: '{name}' is a parameter of every query; use it without declaring it")
    if name in _TAKEN:
        raise UsageError(f"{where}: '{name}' is an option of xbuf query; name the parameter otherwise")
    if type_ not in _PARAMETER_TYPES:
        raise UsageError(f"{where}: type {type_} is none of {', '.join(_PARAMETER_TYPES)}")
    choices = tuple(part.strip() for part in (match["choices"] or "").split(",") if part.strip())
    if match["unit"] not in (None, "bytes"):
        raise UsageError(f"{where}: the unit of a parameter can be [bytes] only")
    default = _literal(match["default"], type_, where)
    if choices and (type_ != "VARCHAR" or (default is not None and default not in choices)):
        raise UsageError(f"{where}: choices are for VARCHAR, and the default must be one of them")
    return Parameter(name, type_, default, match["text"].strip(), match["unit"], choices)


def _column(value: str, where: str) -> Column:
    """Parse `NAME TYPE [UNIT] as LABEL: TEXT`."""
    match = _COLUMN.fullmatch(value)
    if not match:
        raise UsageError(f"{where}: a column is 'NAME TYPE [unit] as LABEL: what it says', not {value!r}")
    if match["unit"] not in (None, *_UNITS):
        raise UsageError(f"{where}: unit [{match['unit']}] is none of {', '.join(_UNITS)}")
    return Column(match["name"], match["type"], match["text"].strip(), match["unit"], match["label"] or "")


def _labelled(columns: list[Column]) -> list[Column]:
    """Label the columns that have none with their names, without what the cells say: run_id is run."""
    short = [column.label or _SUFFIX.sub("", column.name) for column in columns]
    return [
        Column(one.name, one.type, one.text, one.unit, label if short.count(label) == 1 else one.name)
        for one, label in zip(columns, short, strict=True)
    ]


def _literal(text: str, type_: str, where: str) -> Value:
    """Read a SQL literal of a parameter type."""
    if text.upper() == "NULL":
        return None
    try:
        if type_ == "VARCHAR" and re.fullmatch(r"'(?:[^']|'')*'", text):
            return text[1:-1].replace("''", "'")
        if type_ == "BOOLEAN" and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if type_ == "BIGINT":
            return int(text)
        if type_ == "DOUBLE":
            return float(text)
    except ValueError:
        pass
    raise UsageError(f"{where}: {text} is no {type_} literal")


def _statement(body: str, path: Path) -> tuple[str, tuple[str, str] | None]:
    """Take the statement out of the body; the second part is the name and arguments of EXECUTE."""
    prepare = _PREPARE.match(body)
    if not prepare:
        sql = body.strip().rstrip(";").rstrip()
        if not sql:
            raise UsageError(f"{path}: there is no statement below the header")
        return sql, None
    execute = _EXECUTE.search(body)
    if not execute:
        raise UsageError(f"{path}: PREPARE without 'EXECUTE {prepare[1]}(...);' at the end")
    for word, name in (("PREPARE", prepare[1]), ("EXECUTE", execute[1])):
        if name != path.stem:
            raise UsageError(f"{path}: {word} names '{name}', the file '{path.stem}'")
    sql = body[prepare.end() : execute.start()].strip()
    if not sql:
        raise UsageError(f"{path}: there is no statement after PREPARE")
    return sql, (execute[1], execute["arguments"] or "")


def _check_parameters(
    path: Path, described: bool, parameters: tuple[Parameter, ...], used: frozenset[str]
) -> None:
    """Refuse a statement whose parameters are not those of the header."""
    declared = {parameter.name for parameter in parameters}
    undeclared = sorted(used - declared)
    if undeclared:
        what = "the header does not declare it" if described else "a file without header can use none"
        raise UsageError(f"{path}: the statement uses ${undeclared[0]}, {what}")
    unused = sorted(declared - used)
    if unused:
        raise UsageError(f"{path}: the statement does not use parameter '{unused[0]}' of the header")


def _check_execute(path: Path, parameters: tuple[Parameter, ...], execute: tuple[str, str]) -> None:
    """Refuse an EXECUTE whose arguments are not the defaults of the header."""
    wanted = ", ".join(f"{parameter.name} := {parameter.default_sql}" for parameter in parameters)
    if " ".join(execute[1].split()) != wanted:
        line = f"EXECUTE {execute[0]}({wanted});" if wanted else f"EXECUTE {execute[0]};"
        raise UsageError(f"{path}: the last line must be: {line}")
