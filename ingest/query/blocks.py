"""The building blocks of the saved queries: commented views and macros in `queries/blocks/`.

A block is one CREATE OR REPLACE statement below the same kind of header as a query has. The importer
installs the blocks in the database. `xbuf query` makes its own temporary ones, which hide those of the
database, so that a query never meets the blocks of another version.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.errors import XbufError
from ingest.resources import queries_dir
from ingest.sql import literal

if TYPE_CHECKING:
    import duckdb

_CREATE = re.compile(r"^CREATE OR REPLACE (VIEW|MACRO) (\w+)(.*?);?\s*\Z", re.DOTALL | re.MULTILINE)
_COLUMN = re.compile(r"^-- column (\w+) [^:]*: (.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A view or macro that saved queries and users share.

    Attributes:
        kind: VIEW, TABLE MACRO (rows) or MACRO (one value).
        definition: what follows the name in the CREATE statement.
    """

    name: str
    kind: str
    title: str
    columns: tuple[tuple[str, str], ...]
    definition: str
    text: str

    def create(self, *, temporary: bool = False) -> str:
        """Write the CREATE statement."""
        what = self.kind.removeprefix("TABLE ")
        words = ["CREATE OR REPLACE", *(["TEMP"] if temporary else []), what]
        return f"{' '.join(words)} {self.name}{self.definition}"

    def comments(self, marker: str) -> list[str]:
        """Write the COMMENT statements; `marker` goes before the title."""
        what = "MACRO TABLE" if self.kind == "TABLE MACRO" else self.kind
        statements = [f"COMMENT ON {what} {self.name} IS {literal(marker + self.title)}"]
        if self.kind == "VIEW":
            statements += [
                f'COMMENT ON COLUMN {self.name}."{column}" IS {literal(text)}'
                for column, text in self.columns
            ]
        return statements


@cache
def read_blocks() -> tuple[Block, ...]:
    """Read the building blocks, each behind those that it uses."""
    blocks = {path.stem: _parse(path.read_text(encoding="utf-8"), path.stem) for path in _paths()}
    ordered: dict[str, Block] = {}

    def place(name: str) -> None:
        if name not in ordered:
            for word in sorted(set(re.findall(r"\w+", blocks[name].definition)) & blocks.keys() - {name}):
                place(word)
            ordered[name] = blocks[name]

    for name in sorted(blocks):
        place(name)
    return tuple(ordered.values())


def create_temporary(connection: duckdb.DuckDBPyConnection, *statements: str) -> None:
    """Create blocks for this connection only; works on a read-only database.

    Args:
        statements: SQL; the blocks whose names they hold are created, and those that these use. Without any
            all are, which takes twenty times as long as two of them.
    """
    blocks = blocks_of(*statements) if statements else read_blocks()
    # Each on lines of its own: a definition may end with a comment.
    connection.execute("\n;\n".join(block.create(temporary=True) for block in blocks))


def execute_with_blocks(
    connection: duckdb.DuckDBPyConnection, sql: str, values: object = None
) -> duckdb.DuckDBPyConnection:
    """Run a statement on the blocks of this version, as `connection.execute` does."""
    create_temporary(connection, sql)
    return connection.execute(sql, values)


def blocks_of(*statements: str) -> list[Block]:
    """Return the blocks that statements use, and those that these use, each behind what it uses."""
    words, called = words_of(*statements), _called_in(*statements)
    used: list[Block] = []
    for block in reversed(read_blocks()):  # those that use it came before it
        # A column may have the name of a macro.
        if block.name in (words if block.kind == "VIEW" else called):
            used.append(block)
            words |= words_of(block.definition)
            called |= _called_in(block.definition)
    return used[::-1]


def words_of(*texts: str) -> set[str]:
    """Return the words of SQL in small letters: each name in it is one of them."""
    return set().union(*map(_words, texts))


def _called_in(*texts: str) -> set[str]:
    """Return the words of SQL in small letters that arguments follow."""
    return set().union(*map(_calls, texts))


# An installation asks for the words of each block once for each query that uses it.
@lru_cache(512)
def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


@lru_cache(512)
def _calls(text: str) -> frozenset[str]:
    return frozenset(re.findall(r'\b(\w++)"?\s*\(', text.lower()))


def _paths() -> list[Path]:
    return sorted((queries_dir() / "blocks").glob("*.sql"))


def _parse(text: str, name: str) -> Block:
    create = _CREATE.search(text)
    title = re.search(r"^-- title: (.*)$", text, re.MULTILINE)
    if not create or create[2] != name or not title:
        raise XbufError(f"{name}.sql: a block has a title and one CREATE OR REPLACE of its own name")
    gives_rows = create[1] == "MACRO" and re.match(r"\([^)]*\)\s+AS\s+TABLE\b", create[3])
    kind = "TABLE MACRO" if gives_rows else create[1]
    return Block(name, kind, title[1], tuple(_COLUMN.findall(text)), create[3], text)
