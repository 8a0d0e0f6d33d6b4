"""`xbuf forget`: delete runs with all their rows."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING

import click

from ingest.cli.references import RUN, all_runs
from ingest.cli.streams import echo, say
from ingest.cli.terminal import ANY_DATABASE_OPTION, WAIT_OPTION, label_option, say_waiting
from ingest.display import counted
from ingest.query.cells import escape, human_bytes

if TYPE_CHECKING:
    from ingest.maintenance.forget import Forgotten

_UNITS = {"h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


class _Age(click.ParamType[timedelta]):
    name = "age"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> timedelta:
        found = re.fullmatch(r"(\d{1,6})([hdw])", str(value))
        if found is None:
            self.fail(f"{value!r} is no age, e.g. 12h, 30d or 8w", param, ctx)
        return int(found[1]) * _UNITS[found[2]]


@click.command()
@ANY_DATABASE_OPTION
@click.option(
    "--run",
    "references",
    type=RUN,
    multiple=True,
    metavar="RUN",
    help="This run, or these: a number, latest, import:4, a module, module@key=value, the end of a path.",
)
@click.option("--import", "import_id", type=click.IntRange(1), metavar="N", help="Runs of this import.")
@click.option("--dir", "directory", type=click.Path(), metavar="PATH", help="Runs dumped into or below it.")
@label_option("Runs with this label.")
@click.option("--older-than", type=_Age(), metavar="AGE", help="Runs loaded longer ago: 12h, 30d, 8w.")
@click.option("--yes", is_flag=True, help="Delete; without it, only list what would be deleted.")
@WAIT_OPTION
def forget(
    database: str,
    references: tuple[str, ...],
    import_id: int | None,
    directory: str | None,
    labels: tuple[tuple[str, str], ...],
    older_than: timedelta | None,
    yes: bool,
    wait: float,
) -> None:
    """Delete the runs that meet every condition given, with all their rows.

    The history of imports stays; by age or import alone, their rejects go too. The space is used again by
    later imports; `xbuf db compact` gives it back, of a lake `xbuf lake compact` and `vacuum`.

    \b
    Example:
      xbuf forget --older-than 30d
    """
    from ingest.maintenance.forget import Selection, forget_runs, plan_forget

    runs = all_runs(database, references) if references else ()
    selection = Selection(runs, import_id, directory, labels, older_than)
    if yes:
        echo(f"forgot {_counted(forget_runs(database, selection, wait_seconds=wait, on_wait=say_waiting))}")
        return
    plan = plan_forget(database, selection, wait_seconds=wait)
    echo(f"would forget {_counted(plan)}")
    for example in plan.examples:
        echo(f"  {escape(example)}")
    if plan.runs > len(plan.examples):
        echo(f"  … and {plan.runs - len(plan.examples):,} more")
    if plan.on_disk:
        say(
            f"{plan.on_disk:,} of these dumps are still on disk: the next import of their directory loads"
            " them again"
        )
    if plan.at_urls:
        say(
            f"{plan.at_urls:,} of these dumps were read from URLs, which are not asked whether they are still"
            " there: the next import of those that are loads them again"
        )
    if plan.runs or plan.rejects:
        say("nothing was deleted; add --yes to delete")


def _counted(plan: Forgotten) -> str:
    text = f"{counted(plan.runs, 'run')} ({human_bytes(plan.file_bytes)} of dumps"
    if plan.first and plan.last:
        text += f", loaded {plan.first:%Y-%m-%d} to {plan.last:%Y-%m-%d}"
    return text + ")" + (f" and {counted(plan.rejects, 'reject')}" if plan.rejects else "")
