"""One run: a compiled module, its figures and what it answers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cached_property
from html import escape as html_escape
from typing import TYPE_CHECKING, Any, TextIO

from ingest.query.cells import escape, human_bytes
from ingest.query.output import terminal_width
from xbuf.table import table_html

if TYPE_CHECKING:
    from ingest.query.header import Value
    from xbuf.database import Database
    from xbuf.table import Table

__all__ = ["Peak", "Run"]


@dataclass(frozen=True, slots=True)
class Peak:
    """The memory of a run, bytes; None is what its dump does not say.

    Attributes:
        live_bytes: most that is live at one slot, each byte once, in all memories.
        resident_bytes: most that the program keeps of the main memory, XProf's peak heap.
        total_bytes: what the program asks for, in all memories.
        slot: the slot at which `live_bytes` are live.
        slots: length of the schedule.
    """

    live_bytes: int | None
    resident_bytes: int | None
    total_bytes: int | None
    slot: int | None
    slots: int | None

    def __str__(self) -> str:
        figures = (("live", self.live_bytes), ("resident", self.resident_bytes), ("total", self.total_bytes))
        return ", ".join(f"{name} {human_bytes(size)}" for name, size in figures if size is not None)


class Run:
    """A run of a database; `Database.run`, `load` and captures give them.

    Attributes:
        id: its number in the database.
        database: where it is.
    """

    def __init__(self, database: Database, run_id: int) -> None:
        """Name a run that is there; it is read when it is asked."""
        self.id = run_id
        self.database = database

    @property
    def module(self) -> str:
        """Name of the module, or what its files are called."""
        name: str = self._facts["module_name"] or self._facts["stem"]
        return name

    @property
    def backend(self) -> str | None:
        """cpu, gpu or tpu; None where that is not known."""
        backend: str | None = self._facts["backend"]
        return backend

    @property
    def labels(self) -> dict[str, str]:
        """Its labels by key."""
        pairs = (label.partition("=") for label in self._facts["labels"])
        return {key: value for key, _, value in pairs}

    @cached_property
    def _facts(self) -> dict[str, Any]:
        from ingest.report.glance import read_facts

        return read_facts(self.database.connection, self.id)

    def peak(self) -> Peak:
        """Return the figures of its memory."""
        facts = self._facts
        return Peak(
            facts["peak_bytes"],
            facts["resident_peak_bytes"],
            facts["total_bytes"],
            facts["peak_time"],
            facts["schedule_length"],
        )

    def live_at_peak(self, *, top: int | None = None) -> Table:
        """Return the buffers that are live at the peak, largest first.

        Args:
            top: how many; None for all.
        """
        return self.query("live_at_peak", top=top)

    def advice(self, *, top: int | None = 10, least: int | str = "1MiB") -> Table:
        """Return what would lower the peak, the most helpful step first, each with the peak after it.

        Args:
            top: how many steps; None for all.
            least: bytes that a step must spare at the peak to be looked at.
        """
        return self.query("savings", top=top, least=least)

    def query(self, name: str, **parameters: Value) -> Table:
        """Answer a saved question about this run; raises as `Database.query` does."""
        return self.database.query(name, run=self, **parameters)

    def show(self, *, top: int | None = 10, file: TextIO | None = None) -> None:
        """Print the figures, what fills the peak by role, source line and buffer, and what is odd.

        Args:
            top: rows of each list; None for all.
            file: where to; None for stdout.
        """
        from ingest.report.curve import read_curve
        from ingest.report.glance import read_glance
        from ingest.report.text import Page

        connection = self.database.connection
        glance = read_glance(connection, self.id, top)
        Page(file or sys.stdout, terminal_width()).glance(self.id, glance, read_curve(connection, self.id))

    def __repr__(self) -> str:
        names = ", ".join(filter(None, [self.module, self.backend, *self._facts["labels"]]))
        return f"<xbuf.Run {self.id}: {names}: {self.peak()}>"

    def _repr_html_(self) -> str:
        """Return figures and what fills the peak, for notebooks; no text of a dump becomes markup."""
        from ingest.report.glance import read_glance
        from ingest.report.text import MINOR

        glance = read_glance(self.database.connection, self.id, 5)
        tables: Any = (
            ("What fills the peak, by role", glance.roles),
            (f"By source {glance.by}" if glance.by == "line" else f"By {glance.by}", glance.sources),
            ("The largest buffers at the peak", glance.buffers),
        )
        title = html_escape(escape(repr(self)[1:-1].removeprefix("xbuf.")))
        parts = [f"<p><b>{title}</b></p>"]
        for name, table in tables:
            if table.cells:
                parts.append(f"<p>{name}</p>{table_html(table.without(*MINOR))}")
        parts += [f"<p>{html_escape(escape(finding.text))}</p>" for finding in glance.findings]
        return "".join(parts)
