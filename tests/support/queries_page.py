"""Write `docs/queries.md`: every saved query with its question, parameters, columns and a real result."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ingest.query.blocks import Block, read_blocks
from ingest.query.catalog import by_topic
from ingest.query.formats import write_text
from ingest.query.header import NARROWING, Column, Parameter, SavedQuery, Value
from ingest.query.install import call
from ingest.query.run import bind, given_in, run_query, why_empty

if TYPE_CHECKING:
    import duckdb

_WIDTH = 100

_INTRO = """# Saved queries

<!-- Generated from queries/*.sql by `python -m tests.regenerate`; edit the headers there. -->

`xbuf query NAME` answers a question on the command line, `FROM NAME(...)` the same one in any DuckDB
shell on a database that `xbuf-ingest` made (`FROM saved_queries` lists them), and `.read queries/NAME.sql`
runs the file itself with its defaults. File names, parameters and result columns are an API: a change of
one is in the change log.

Every query can be narrowed in the same way:

| command line | in SQL | meaning |
| --- | --- | --- |
| `--run 3 --run 7` | `run := '3,7'` | only these runs |
| `--label jax=0.10.*` | `label := 'jax=0.10.*'` | only runs with this label; the value may be a glob |
| `--module 'jit_train*'` | `module := 'jit_train*'` | only modules whose name matches |

`NULL` (shown as `-`) means that the dump does not say. Columns marked *bytes* hold bytes, shown as KiB,
MiB and GiB (powers of 1024) in tables only. `--top 0` (`top := NULL` in SQL) shows all rows. The results
below come from a small database of real and hand-made dumps (`tests/support/query_databases.py`), cut to
{width} columns.

A table fits the terminal: what all rows share is said once above it (it is part of the table, so it goes to
stdout with it; `csv` and the other formats for programs never have it), the key columns of the query get room
first, and a line on stderr names the columns that found none. `--width 0` shows all of them uncut,
`--format record` one field a line. Heads are the names of the columns without `_bytes`, `_percent` and `_id`,
or shorter ones, which the tables below give in brackets. On a terminal shares have colour and source lines
links (`--ansi never`, `NO_COLOR`), and what is longer than the screen goes to `XBUF_PAGER`, `PAGER` or less.

## In a DuckDB shell

```sql
-- duckdb -readonly xbuf.duckdb
FROM saved_queries;
SELECT column_name, data_type, unit, comment FROM query_columns WHERE query = 'donation';
FROM largest_live_out(top := 5, color := 0);
FROM run_summary ORDER BY peak_bytes DESC LIMIT 5;
SELECT shape, sum(bytes_at_peak) FROM values_at_peak WHERE run_id = 5 GROUP BY shape ORDER BY 2 DESC;
SELECT time, live_bytes FROM live_bytes WHERE run_id = 5 ORDER BY time;
```

A macro raises an error for an argument that the command line would refuse (a choice that it does not have, a
run that is no number), for a run that is not in the database and for a side of a comparison
that matches none; `saved_queries` lists the choices.

The building blocks of the queries are there as well; `DESCRIBE` and `duckdb_columns()` show the comment of
every column:

{blocks}

## Queries of your own

`--queries DIR` and `XBUF_QUERIES` (folders separated as in `PATH`) add a team's own files; `xbuf query
FILE.sql` runs one by its path. A file is a comment header and one statement with `$name` parameters:

```sql
-- title: Big copies
-- topic: copies
-- question: Which copies are larger than a limit?
-- parameter least BIGINT [bytes] = 1048576: smallest copy to show
-- column run_id BIGINT: number of the run
-- column instruction VARCHAR: the copy
-- column size_bytes BIGINT [bytes]: its size
SELECT v.run_id, v.instruction, v.size_bytes
FROM selected_runs($run, $label, $module) AS r
JOIN "values" AS v USING (run_id)
WHERE v.opcode = 'copy' AND v.size_bytes >= $least
ORDER BY v.size_bytes DESC
```

Types of parameters are BIGINT, DOUBLE, VARCHAR and BOOLEAN; `[bytes]` lets the command line take `16MiB`;
`= 'a' in (a, b)` lists the choices. Units of columns are bytes, slots, count, percent, share (of a whole,
drawn as a bar) and ratio; `as NAME` behind them is the head of the column in tables. `-- key: size_bytes,
value` names the columns that a narrow table shows first. `-- needs: ranges` (or uses) lets an empty result
say that the dumps lack that section, `-- note:` is a caveat that goes with the numbers, `-- example: --least
16MiB` ends the help text, and `xbuf query` lists it under its `-- topic:`. `-- reads: selected runs` promises
that the answer depends on no other runs: where they are few, no others are read. Between `PREPARE NAME
AS` and `; EXECUTE NAME(least := 1048576, run := NULL, ...);` the file also runs with `.read` in a shell, as
the shipped ones do. Header and statement are checked against each other.

## The queries
"""


def example_values(query: SavedQuery) -> dict[str, Value]:
    """Return the parameters of the query's example, the others at their defaults."""
    return bind(query, given_in(query, shlex.split(query.example)))


def reference(connection: duckdb.DuckDBPyConnection, queries: Sequence[SavedQuery]) -> str:
    """Write the page; the results come from the database of `connection`."""
    blocks = "\n".join(f"- `{_name(block)}`: {block.title}" for block in read_blocks())
    parts = [_INTRO.format(width=_WIDTH, blocks=blocks)]
    for topic, group in by_topic(queries):
        parts.append(f"\n**{topic}**\n")
        parts += [f"- [`{query.name}`](#{query.name}): {query.question}" for query in group]
    for query in queries:
        parts.append("\n" + _entry(connection, query))
    return "\n".join(parts) + "\n"


def _name(block: Block) -> str:
    """Name a view, or a macro with its parameters."""
    return block.name + (block.definition[: block.definition.index(")") + 1] if block.kind != "VIEW" else "")


def _entry(connection: duckdb.DuckDBPyConnection, query: SavedQuery) -> str:
    own = [parameter for parameter in query.parameters if parameter not in NARROWING]
    lines = [f"## {query.name}", "", f"**{query.question}**", ""]
    if query.note:
        lines += [query.note, ""]
    if own:
        lines += ["| parameter | default | meaning |", "| --- | --- | --- |"]
        lines += [f"| `{p.name}` {p.type} | `{p.default_sql}` | {_meaning(p)} |" for p in own]
        lines.append("")
    lines += ["| column | unit | meaning |", "| --- | --- | --- |"]
    lines += [
        f"| {_column(column)} {column.type} | {column.unit or ''} | {_cell(column)} |"
        for column in query.columns
    ]
    values = example_values(query)
    out = io.StringIO()
    written = write_text(run_query(connection, query, values), "table", out, _WIDTH)
    text = out.getvalue() if written.rows else f"({why_empty(connection, query, values)})\n"
    lines += [
        "",
        "```console",
        f"$ xbuf query {query.name} {query.example}".rstrip(),
        *text.rstrip("\n").split("\n"),
        "```",
        "",
        "```sql",
        call(query, shlex.split(query.example)),
        "```",
    ]
    return "\n".join(lines)


def _meaning(parameter: Parameter) -> str:
    text = parameter.text.replace("|", "\\|")
    return f"{text} ({', '.join(parameter.choices)})" if parameter.choices else text


def _column(column: Column) -> str:
    """Name a column, with its head in tables where that is another word."""
    short = "" if column.name.startswith(column.label) else f" ({column.label})"
    return f"`{column.name}`{short}"


def _cell(column: Column) -> str:
    return column.text.replace("|", "\\|")
