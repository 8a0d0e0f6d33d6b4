"""An import, or another change, that kills itself at one of its steps or tells of it: run by `kills.py`.

Python tells an audit hook about every file that is opened, renamed, made or removed and every process that
is started. The steps that concern the database's folder are counted; at the chosen one the process kills
itself with SIGKILL, before the step is done. What DuckDB does inside one of its calls is not seen here:
the kills from outside, at random moments, are for that.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

# Small chunks and transactions: many places to be killed at with few dumps.
CHUNK_SETS = 8
LOAD_ROWS = 1500

_KINDS = ("open", "os.", "shutil.", "subprocess.", "tempfile.")


def _forget(_: str, database: str) -> None:
    from ingest.maintenance.forget import Selection, forget_runs

    forget_runs(database, Selection(import_id=1), wait_seconds=20)


def _compact(_: str, database: str) -> None:
    from ingest.maintenance.compact import compact_database

    compact_database(database, wait_seconds=20)


def _restore(directory: str, database: str) -> None:
    from ingest.maintenance.export import import_export

    import_export(directory, database, wait_seconds=20)


_CHANGES = {"forget": _forget, "compact": _compact, "restore": _restore}


def main() -> int:
    """Import as the command line would, and say how many steps it took."""
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
    arguments = parser.parse_args()

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
                wait_seconds=20,
            )
    except XbufError as error:
        print(error, file=sys.stderr)
        return int(error.exit_code)
    print(len(steps))
    return 0


def _count_steps(folder: str, arguments: argparse.Namespace) -> list[str]:
    """Count the steps of this process, not of its workers, and kill it at one of them."""
    steps: list[str] = []
    parent = os.getpid()

    def hook(event: str, values: tuple[object, ...]) -> None:
        if not event.startswith(_KINDS) or os.getpid() != parent:
            return
        text = f"{event} {values}"
        # Files are removed by names within their folder.
        if (folder in text or event in ("os.remove", "subprocess.Popen")) and arguments.kill_when in text:
            steps.append(text)
            if len(steps) == arguments.tell_at:
                print("here", flush=True)
            if len(steps) == arguments.kill_at:
                print(text[:300], file=sys.stderr, flush=True)
                os.kill(parent, signal.SIGKILL)

    sys.addaudithook(hook)
    return steps


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
    sys.exit(main())
