"""An import, or another change, that kills itself at one of its steps or reports it: run by `kills.py`.

Python tells an audit hook about every file that is opened, renamed, made or removed and every process that
is started. The steps that concern the database's folder are counted; at the chosen one the process kills
itself with SIGKILL, before the step is done. What DuckDB does inside one of its calls is not seen here:
the kills from outside, at random moments, are for that.

With `--serve` it forks such a process for each request that comes through the socket at its standard input:
it has imported all modules already, which takes most of the CPU time of a small import.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import signal
import socket
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

# Small chunks and transactions: many places to be killed at with few dumps.
CHUNK_SETS = 8
LOAD_ROWS = 1500

_KINDS = ("open", "os.", "shutil.", "subprocess.", "tempfile.")


def _forget(_: str, database: str) -> None:
    from ingest.maintenance.forget import Selection, forget_runs

    forget_runs(database, Selection(import_id=1), wait_seconds=600)


def _compact(_: str, database: str) -> None:
    from ingest.maintenance.compact import compact_database

    compact_database(database, wait_seconds=600)


def _restore(directory: str, database: str) -> None:
    from ingest.maintenance.export import import_export

    import_export(directory, database, wait_seconds=600)


_CHANGES = {"forget": _forget, "compact": _compact, "restore": _restore}


class Step(NamedTuple):
    """Something that was done in the database's folder.

    Attributes:
        text: event and its arguments.
        kind: the same without what differs between two imports, or two files of a folder; empty where it only
            looks, so that a kill at it finds what a kill at the next one finds.
    """

    text: str
    kind: str


def main(words: Sequence[str] | None = None) -> int:
    """Import as the command line would, and print how many steps it took and the first of each kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("dumps")
    parser.add_argument("database")
    parser.add_argument(
        "--change", choices=tuple(_CHANGES), help="do this instead; `dumps` is the export to restore"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--publish")
    parser.add_argument("--kill-at", type=int, default=0, help="number of the step; 0: never")
    parser.add_argument("--tell-at", type=int, default=0, help="say when this step has come; 0: never")
    parser.add_argument("--kill-when", default="", help="count only steps that this text occurs in")
    parser.add_argument("--kill-kind", help="kill at the first step of this kind")
    parser.add_argument("--file-bytes", type=int, help="no file can grow beyond this")
    arguments = parser.parse_args(words)
    if arguments.file_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (arguments.file_bytes, arguments.file_bytes))

    import ingest.pipeline.history
    import ingest.pipeline.importer
    import ingest.staging.workers
    from ingest.errors import XbufError

    ingest.staging.workers.CHUNK_SETS = CHUNK_SETS  # type: ignore[misc]
    ingest.staging.workers.INLINE_BYTES = 0  # type: ignore[misc]
    ingest.pipeline.history.LOAD_ROWS = LOAD_ROWS  # type: ignore[misc]
    steps = _count_steps(os.path.dirname(os.path.abspath(arguments.database)), arguments)
    try:
        if arguments.change:
            _CHANGES[arguments.change](arguments.dumps, arguments.database)
        else:
            ingest.pipeline.importer.import_dumps(
                [arguments.dumps],
                arguments.database,
                jobs=arguments.jobs,
                publish=arguments.publish,
                wait_seconds=600,
            )
    except XbufError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    print(len(steps))
    print(json.dumps(list(dict.fromkeys(step.kind for step in steps if step.kind))))
    return 0


def _count_steps(folder: str, arguments: argparse.Namespace) -> list[Step]:
    """Count the steps of this process, not of its workers, and kill it at one of them."""
    steps: list[Step] = []
    parts: list[str] = []
    parent = os.getpid()

    def hook(event: str, values: tuple[object, ...]) -> None:
        if not event.startswith(_KINDS) or os.getpid() != parent:
            return
        text = f"{event} {values}"
        # Files are removed by names within their folder.
        if (folder in text or event in ("os.remove", "subprocess.Popen")) and arguments.kill_when in text:
            steps.append(Step(text, _kind(event, values, folder, parts)))
            if len(steps) == arguments.tell_at:
                print("here", flush=True)
            if len(steps) == arguments.kill_at or (steps[-1].kind and steps[-1].kind == arguments.kill_kind):
                print(text[:300], file=sys.stderr, flush=True)
                os.kill(parent, signal.SIGKILL)

    sys.addaudithook(hook)
    return steps


def _kind(event: str, values: tuple[object, ...], folder: str, parts: list[str]) -> str:
    """Return the kind of a step; `parts` are those looked at before, one after the other."""
    if event == "subprocess.Popen":
        return event
    opened_to_read = event == "open" and (values[1] == "r" or (not values[1] and not int(str(values[2])) & 3))
    if event == "os.listdir":
        # A part's folder is listed when it is found, and again when it is loaded: DuckDB works in between.
        part = str(values[0])
        if not re.search(r"/part-[^.]*$", part):
            return ""
        if parts[-1:] != [part]:
            parts.append(part)
        return f"loading: look {len(parts)}"
    if opened_to_read or event in ("os.scandir", "os.listxattr"):
        return ""
    named = " ".join(str(value) for value in values[:2] if isinstance(value, str | os.PathLike))
    named = named.replace(folder, "")
    named = re.sub(r"(?<=staging/)(removed-)?2[^/ ]*", r"\1import", named)
    named = re.sub(r"part-[^/. ]*", "part", named)
    named = re.sub(r"\b(copy|publish)-\w+", r"\1", named)
    named = re.sub(r"\b[a-z_]+[.]parquet", "parquet", named)
    return f"{event} {named}"


def _serve() -> None:
    """Fork a process for each request, one after the other, until the socket is closed.

    A request is the JSON list of arguments, with the ends that take its output and its errors; it is answered
    with the process id, and when the process has ended with its exit code, in four bytes each.
    """
    import ingest.cli.entry  # keeps pandas out, as for the programs: half of the CPU time of a small import
    import ingest.maintenance.compact
    import ingest.maintenance.export
    import ingest.maintenance.forget
    import ingest.pipeline.importer  # noqa: F401

    control = socket.socket(fileno=0)
    while True:
        request, ends, _, _ = socket.recv_fds(control, 1 << 16, 2)
        if not request:
            return
        pid = os.fork()
        if pid == 0:
            nothing = os.open(os.devnull, os.O_RDONLY)
            for here, there in zip((nothing, *ends), (0, 1, 2), strict=True):
                os.dup2(here, there)
                os.close(here)
            os.setsid()
            code = 1
            try:
                code = main(json.loads(request))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(code)
        for end in ends:
            os.close(end)
        control.sendall(pid.to_bytes(4, "big"))
        _, status = os.waitpid(pid, 0)
        control.sendall(os.waitstatus_to_exitcode(status).to_bytes(4, "big", signed=True))


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    if sys.argv[1:] == ["--serve"]:
        _serve()
    else:
        sys.exit(main())
