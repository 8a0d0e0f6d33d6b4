"""`xbuf label`: labels of runs that are loaded."""

from __future__ import annotations

import click

from ingest.cli.references import RUN, all_runs
from ingest.cli.streams import echo
from ingest.cli.terminal import ANY_DATABASE_OPTION, LABEL, WAIT_OPTION, say_waiting
from ingest.display import counted
from ingest.errors import UsageError


@click.command()
@click.argument("words", nargs=-1, required=True, type=RUN, metavar="RUN... [KEY=VALUE]...")
@click.option("--remove", multiple=True, metavar="KEY", help="Take this label off.")
@ANY_DATABASE_OPTION
@WAIT_OPTION
def label(words: tuple[str, ...], remove: tuple[str, ...], database: str, wait: float) -> None:
    """Put labels on runs, or take them off.

    RUN is a number, latest, import:4, a module, module@key=value, or the end of a path. Each KEY=VALUE is
    put on all of them; a key has one value, and the old one goes.

    \b
    Example:
      xbuf label import:1 jax=0.10.2
    """
    from ingest.maintenance.label import label_runs

    def is_label(word: str) -> bool:
        key, equals, _ = word.partition("=")
        return bool(equals) and "@" not in key

    labels = [LABEL.convert(word, None, None) for word in words if is_label(word)]
    references = [word for word in words if not is_label(word)]
    if not references:
        raise UsageError("say which runs to label, e.g. latest; `xbuf runs` lists them")
    if not labels and not remove:
        raise UsageError("say which label to put on (KEY=VALUE) or to take off (--remove KEY)")
    runs = all_runs(database, references)
    changed = label_runs(database, runs, labels, remove, wait_seconds=wait, on_wait=say_waiting)
    echo(f"{counted(len(runs), 'run')}, {counted(changed, 'label')} changed")
