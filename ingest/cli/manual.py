"""What `--help` says of every command, as Markdown for the documentation and as manual pages (man(7)).

Nothing is written twice: text, options and exit codes are those of the click commands.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import click

from ingest.cli.ingest import ingest
from ingest.cli.xbuf import xbuf
from ingest.query.catalog import by_topic, shipped
from ingest.version import VERSION


@dataclass(frozen=True, slots=True)
class Page:
    """What is to be known of one command.

    Attributes:
        name: with the commands around it: `xbuf db status`.
        title: one line.
        usage: what stands behind the name.
        paragraphs: of the description, each one line.
        example: command lines, empty where the help has none.
        options: how each is written, and what it does.
        sections: lists of other commands or queries by title: name and one line.
        notes: exit codes and what else stands below the options.
    """

    name: str
    title: str
    usage: str
    paragraphs: tuple[str, ...]
    example: str
    options: tuple[tuple[str, str], ...]
    sections: tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
    notes: str

    @property
    def file_name(self) -> str:
        """Name of its manual page."""
        return f"{self.name.replace(' ', '-')}.1"


def pages() -> Iterator[Page]:
    """Yield a page for each program and command, those of a group behind it."""
    for command in (ingest, xbuf):
        assert command.name is not None
        yield from _pages(command, None, command.name)


def _pages(command: click.Command, parent: click.Context | None, name: str) -> Iterator[Page]:
    with click.Context(command, parent=parent, info_name=name, **command.context_settings) as context:
        records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
        paragraphs, example = _described(command.help or "")
        queries = name == "query"
        inner = (
            [(one, command.get_command(context, one)) for one in command.list_commands(context)]
            if isinstance(command, click.Group) and not queries
            else []
        )
        listed = tuple((one, made.get_short_help_str(200)) for one, made in inner if made is not None)
        yield Page(
            context.command_path,
            command.get_short_help_str(200),
            " ".join(command.collect_usage_pieces(context)),
            paragraphs,
            example,
            tuple(record for record in records if record is not None and record[1]),
            _queries() if queries else (("Commands", listed),) if listed else (),
            " ".join(inspect.cleandoc(command.epilog or "").split()),
        )
        for one, made in inner:
            if made is not None:
                yield from _pages(made, context, one)


def _queries() -> tuple[tuple[str, tuple[tuple[str, str], ...]], ...]:
    return tuple(
        (f"Queries: {topic}", tuple((query.name, query.question) for query in queries))
        for topic, queries in by_topic(shipped().load_all())
    )


def _described(text: str) -> tuple[tuple[str, ...], str]:
    """Part a help text into its paragraphs and its example."""
    paragraphs, example = [], ""
    for paragraph in inspect.cleandoc(text).split("\n\n"):
        kept, _, verbatim = paragraph.partition("\b\n")
        if verbatim:
            example = inspect.cleandoc(verbatim.partition("\n")[2])
        elif kept:
            paragraphs.append(" ".join(kept.split()))
    return tuple(paragraphs), example


def as_markdown(all_pages: Sequence[Page]) -> str:
    """Return all commands as one page of Markdown."""
    return "\n".join(line for page in all_pages for line in _markdown(page))


def _markdown(page: Page) -> Iterator[str]:
    yield f"## {page.name}\n"
    yield f"```text\n{page.name} {page.usage}\n```\n"
    yield from (f"{_plain(paragraph)}\n" for paragraph in page.paragraphs)
    if page.example:
        yield f"```console\n{re.sub('^', '$ ', page.example, flags=re.MULTILINE)}\n```\n"
    for title, rows in (("Options", page.options), *page.sections):
        if rows:
            yield f"**{title}**\n"
            yield "| | |\n| --- | --- |"
            yield from (f"| `{_cell(name)}` | {_cell(_plain(text))} |" for name, text in rows)
            yield ""
    if page.notes:
        yield f"{_plain(page.notes)}\n"


def _plain(text: str) -> str:
    """Keep Markdown from reading the stars, angles and underscores of a text as its own; code stays code."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if number % 2 else re.sub(r"([\\*_<>\[\]$])", r"\\\1", part) for number, part in enumerate(parts)
    )


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def as_man(page: Page) -> str:
    """Return a command as a manual page."""
    lines = [
        f'.TH "{page.file_name.removesuffix(".1").upper()}" 1 "" "xbuf {VERSION}" "xbuf"',
        ".SH NAME",
        f"{_roff(page.name.replace(' ', '-'))} \\- {_roff(page.title)}",
        ".SH SYNOPSIS",
        f".B {_roff(page.name)}",
        _roff(page.usage),
        ".SH DESCRIPTION",
    ]
    for paragraph in page.paragraphs:
        lines += [".PP", _roff(paragraph)]
    for title, rows in (("OPTIONS", page.options), *page.sections):
        if rows:
            lines.append(f'.SH "{_roff(title.upper())}"')
            for name, text in rows:
                lines += [".TP", f".B {_roff(name)}", _roff(" ".join(text.split()))]
    if page.notes:
        lines += [".SH NOTES", _roff(page.notes)]
    if page.example:
        lines += [".SH EXAMPLE", ".nf", *map(_roff, page.example.split("\n")), ".fi"]
    return "\n".join(lines) + "\n"


def _roff(text: str) -> str:
    """Keep roff from reading backslashes, hyphens and leading dots of a text as its own."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return re.sub(r"^([.'])", r"\\&\1", escaped)
