"""`xbuf check`: a gate for continuous integration."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.check.config import FILE, Config, read_config, rule_from_option
from ingest.check.reports import FORMATS, write_report
from ingest.check.rules import NoRows, Rule
from ingest.cli.interrupts import reading
from ingest.cli.references import SIDE
from ingest.cli.streams import abandon_stdout, echo, flush_stdout, say
from ingest.cli.terminal import ANY_DATABASE_OPTION, FOLLOW_OPTION, JOBS_OPTION, format_option
from ingest.display import counted
from ingest.errors import UsageError

if TYPE_CHECKING:
    from ingest.check.gate import Gate


class _Output(click.ParamType[tuple[str, Path]]):
    name = "format=file"

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, Path]:
        format_, equals, file = str(value).partition("=")
        if not equals or not file or format_ not in FORMATS:
            self.fail(f"{value!r} is not FORMAT=FILE with a format of {', '.join(FORMATS)}", param, ctx)
        return format_, Path(file)


@click.command(
    epilog="Exit codes: 0 every rule was checked and holds, 1 a rule is broken, 2 wrong usage or bad rules,"
    " 3 database or output not usable, 4 no rule is broken, but not all could be checked (a rule covers no"
    " module, there is no baseline, a dump lacks what it needs or was rejected), 130 interrupted."
)
@click.argument("what", nargs=-1, required=True, type=SIDE)
@ANY_DATABASE_OPTION
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help=f"Rules and baseline in TOML.  [default: {FILE}, if it is there]",
)
@click.option(
    "--limit",
    multiple=True,
    metavar="RULE",
    help="A figure may be at most so large: figure=peak|resident|total,at_most=SIZE.",
)
@click.option(
    "--growth",
    multiple=True,
    metavar="RULE",
    help="A figure may not grow over the baseline by more than percent (1) if that is bytes (1MiB) or more:"
    " figure=peak.",
)
@click.option(
    "--padding", multiple=True, metavar="RULE", help="So much of the peak may be padding: at_most=SIZE."
)
@click.option(
    "--donation", multiple=True, metavar="RULE", help="Missed donations may have so many bytes: at_most=0."
)
@click.option(
    "--no-rows",
    multiple=True,
    metavar="QUERY",
    help="A saved query, a query file or a SELECT over checked_runs must have no rows.",
)
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Earlier figures, or a directory of dumps.",
)
@click.option("--baseline-label", metavar="KEY=VALUE", help="Runs of the database that are the earlier ones.")
@JOBS_OPTION
@FOLLOW_OPTION
@click.option("--update-baseline", is_flag=True, help="Write the figures to the baseline; check nothing.")
@format_option(*FORMATS)
@click.option(
    "--output",
    "-o",
    "outputs",
    type=_Output(),
    multiple=True,
    metavar="FORMAT=FILE",
    help="Write the report to a file too, e.g. junit=report.xml.",
)
def check(
    what: tuple[str, ...],
    database: str,
    config: Path | None,
    limit: tuple[str, ...],
    growth: tuple[str, ...],
    padding: tuple[str, ...],
    donation: tuple[str, ...],
    no_rows: tuple[str, ...],
    baseline: Path | None,
    baseline_label: str | None,
    jobs: int | None,
    follow_symlinks: bool,
    update_baseline: bool,
    format_: str,
    outputs: tuple[tuple[str, Path], ...],
) -> int:
    """Hold compilations to rules about memory, and fail where one is broken.

    WHAT are dumps, as xbuf-ingest takes them, or runs of the database: a number, latest, import:4, KEY=VALUE,
    a module, the end of a path. Rules of options join those of the file; each takes module=GLOB,
    backend=cpu|gpu|tpu and name=TEXT too. docs/ci.md has workflows.

    \b
    Example:
      xbuf check tests/golden/dumps/batch-32 --limit figure=peak,at_most=8MiB
    """
    from ingest.check.gate import Gate
    from ingest.check.gate import check as run_gate

    given = {"limit": limit, "growth": growth, "padding": padding, "donation": donation}
    options = [rule_from_option(kind, text) for kind, texts in given.items() for text in texts]
    options += map(_no_rows, no_rows)
    settings = _config(config)
    if baseline is not None and baseline_label is not None:
        raise UsageError("--baseline and --baseline-label are two baselines; name one")
    if baseline is None and baseline_label is None:
        baseline, baseline_label = settings.baseline, settings.baseline_label
    gate = Gate(
        what,
        database,
        (*settings.rules, *options),
        baseline,
        baseline_label,
        jobs=jobs,
        follow_symlinks=follow_symlinks,
    )
    if update_baseline:
        return _update(gate)
    if not gate.rules:
        raise UsageError(
            f"there is no rule; write some to {FILE}, or give one: --limit figure=peak,at_most=14GiB"
        )
    report = run_gate(gate, reading=reading)
    for name, path in outputs:
        _write(write_report(report, name), path, database)
    try:
        echo(write_report(report, format_).removesuffix("\n"))
        flush_stdout()
    except BrokenPipeError:
        abandon_stdout()  # the reader has what it wants; the gate stays as it is
    if format_ != "text":
        say(report.conclusion)
    return report.exit_code


def _config(path: Path | None) -> Config:
    if path is None:
        path = Path(FILE)
        if not path.exists():
            return Config()
    return read_config(path)


def _no_rows(text: str) -> Rule:
    is_name = text.endswith(".sql") or not any(map(str.isspace, text.strip()))
    return NoRows(query=text) if is_name else NoRows(sql=text)


def _update(gate: Gate) -> int:
    if gate.baseline is None or gate.baseline.is_dir():
        raise UsageError(
            "--update-baseline writes a file: name it with --baseline, e.g. --baseline memory.json"
        )
    from ingest.check.baseline import as_json
    from ingest.check.gate import measure_baseline

    baseline = measure_baseline(gate, reading=reading)
    _write(as_json(baseline), gate.baseline, gate.database)
    say(f"{counted(len(baseline.entries), 'module')} -> {gate.baseline}")
    return 0


def _write(text: str, path: Path, database: str) -> None:
    from ingest.query.output import write_bytes

    write_bytes(text.encode(), path, database=database)
