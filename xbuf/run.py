"""One run: a compiled module, its figures and what it answers."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from ingest.query.cells import human_bytes

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
        total_bytes: what the program asks for, in all memories; only the text of a dump has it.
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
    """A run of a database; made by `Database.run`, `load` and `capture`.

    Attributes:
        id: its number in the database.
        database: where it is.
        module: name of the module, or what its files are called.
        backend: cpu, gpu or tpu; None where that is not known.
        labels: its labels.
    """

    def __init__(self, database: Database, run_id: int) -> None:
        """Read the facts of a run.

        Raises:
            UsageError: there is no such run.
        """
        from ingest.report.glance import read_facts

        self._facts = read_facts(database.connection, run_id)
        self.id = run_id
        self.database = database
        self.module: str = self._facts["module_name"] or self._facts["stem"]
        self.backend: str | None = self._facts["backend"]
        pairs = (label.partition("=") for label in self._facts["labels"])
        self.labels: dict[str, str] = {key: value for key, _, value in pairs}

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

    def query(self, name: str, **parameters: Value) -> Table:
        """Answer a saved question about this run; raises as `Database.query` does."""
        return self.database.query(name, run=self, **parameters)

    def show(self, *, top: int | None = 10, file: TextIO | None = None) -> None:
        """Print the figures, what fills the peak by role, source line and buffer, and what is odd.

        Args:
            top: rows of each list; None for all.
            file: where to; None for stdout.
        """
        from ingest.query.output import terminal_width
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
        from html import escape as html_escape

        from ingest.query.cells import escape
        from ingest.report.glance import read_glance
        from ingest.report.text import MINOR, without
        from xbuf.table import table_html

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
                parts.append(f"<p>{name}</p>{table_html(without(table, *MINOR))}")
        parts += [f"<p>{html_escape(escape(finding.text))}</p>" for finding in glance.findings]
        return "".join(parts)
