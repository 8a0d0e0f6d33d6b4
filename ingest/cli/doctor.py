"""`xbuf doctor`: examine a database and the files next to it."""

from __future__ import annotations

import json
from dataclasses import asdict

import click

from ingest.cli.streams import echo
from ingest.cli.terminal import DATABASE_OPTION, format_option
from ingest.errors import ExitCode

_MARKS = {"ok": "ok     ", "note": "note   ", "trouble": "TROUBLE"}


@click.command()
@DATABASE_OPTION
@format_option("text", "json")
@click.option("--full", is_flag=True, help="Also read every block of the file and prove its checksum.")
@click.option("--quiet", "-q", is_flag=True, help="Only what is not ok.")
@click.option("--report", is_flag=True, help="Write what a report of a fault should say, as Markdown.")
@click.option("--names", is_flag=True, help="With --report: also the paths and messages that it leaves out.")
def doctor(database: str, format_: str, full: bool, quiet: bool, report: bool, names: bool) -> int:
    """Examine a database: versions, locks, schema, every row's owner, sums, peaks, space, leftovers.

    --report sums it up for those who are to help: versions, formats, counts and kinds, without a path, a name
    of a module or a label.

    Removes what killed queries left in the temporary folder, and changes nothing else. Exits with 1 when
    there is trouble, with 3 when the database cannot be opened.

    \b
    Example:
      xbuf doctor --db xbuf.duckdb
    """
    from ingest.maintenance.doctor import examine
    from ingest.query.cells import escape

    if names and not report:
        raise click.UsageError("--names says what --report has; give both")
    code = ExitCode.OK
    findings = []
    for finding in examine(database, full=full):
        if finding.level == "trouble":
            code = ExitCode.DATABASE if finding.check == "database" else max(code, ExitCode.REJECTS)
        findings.append(finding)
        if report:
            continue
        if quiet and finding.level == "ok":
            continue
        if format_ == "json":
            echo(json.dumps(asdict(finding)))
        else:
            echo(f"{_MARKS[finding.level]}  {finding.check:<12} {escape(finding.text)}")
    if report:
        from ingest.maintenance.self_report import self_report

        echo("\n".join(map(escape, self_report(database, findings, with_names=names).splitlines())))
    return code
