"""Names of runs, as every command takes them.

| reference | runs |
| --- | --- |
| `17`, `17,21` | these numbers |
| `latest`, `latest~1` | those of the last import that loaded any; of the one before it |
| `import:4` | those of import 4 |
| `jax=0.10.2` | those with this label; the value may be a glob; several: `jax=0.10.2,rank=0` |
| `jit_step` | the newest one of this module |
| `jit_step@jax=0.10.2` | the newest one of this module among those that the rest names |
| `night/module_0003.jit_step.cpu_after_optimizations` | a dump, by the end of its path |
| `night` | all dumps of a directory, by the end of its path |

Numbers, `latest`, imports and labels are understood first, then modules, then paths. Of a path, the newest
run of each dump counts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from ingest.display import counted, display
from ingest.errors import UsageError
from ingest.query.blocks import create_temporary
from ingest.query.catalog import did_you_mean
from ingest.source.address import place_of
from ingest.source.kinds import without_secrets

if TYPE_CHECKING:
    import duckdb

FORMS: Final = (
    "a number, latest, latest~1, import:4, key=value, a module, module@key=value, or the end of a path"
)
"""What a reference can be, for messages and help."""

_NUMBERS = re.compile(r"\s*\d+\s*(,\s*\d+\s*)*")
_LATEST = re.compile(r"latest(?:~(\d+))?")
_IMPORT = re.compile(r"import:(\d+)")
_SHOWN = 5

_BY_LABEL = "SELECT run_id FROM selected_runs(label := $label) ORDER BY 1"
_BY_PATH = """
SELECT max(r.run_id)
FROM runs AS r
LEFT JOIN run_files AS f USING (run_id)
WHERE r.dump_dir = $whole OR r.dump_dir || '/' || r.stem = $whole OR r.dump_dir || '/' || f.file_name = $whole
   OR ends_with(r.dump_dir, $end) OR ends_with(r.dump_dir || '/' || r.stem, $end)
   OR ends_with(r.dump_dir || '/' || f.file_name, $end)
   OR starts_with(r.dump_dir, $below)
GROUP BY r.dump_dir, r.stem
ORDER BY ALL
"""


def is_number(text: str) -> bool:
    """Return whether a reference is the number of a run, or several with commas."""
    return bool(_NUMBERS.fullmatch(text))


def is_selection(text: str) -> bool:
    """Return whether a reference is no name: numbers, latest, an import or a label."""
    return bool(
        _NUMBERS.fullmatch(text) or _LATEST.fullmatch(text) or _IMPORT.fullmatch(text) or _is_label(text)
    )


def names_runs(text: str) -> bool:
    """Return whether a reference must be looked up before a query can have it.

    Queries understand numbers; for a side of a comparison also labels and globs on the dump directory.
    """
    return not (_NUMBERS.fullmatch(text) or _is_label(text) or any(char in text for char in "*?["))


def resolve(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[int, ...]:
    """Return the runs that a reference names, ascending, at least one.

    Args:
        connection: a database at head.

    Raises:
        UsageError: it names none.
    """
    if _NUMBERS.fullmatch(text):
        return _numbers(connection, text)
    if found := _LATEST.fullmatch(text):
        return _latest(connection, text, int(found[1] or 0))
    if found := _IMPORT.fullmatch(text):
        return _some(
            connection, text, "SELECT run_id FROM runs WHERE import_id = $n ORDER BY 1", n=int(found[1])
        )
    if _is_label(text):
        create_temporary(connection, _BY_LABEL)
        return _some(connection, text, _BY_LABEL, label=text)
    by_module = "SELECT max(run_id) FROM runs WHERE coalesce(module_name, stem) = $name HAVING count(*) > 0"
    if named := _ids(connection, by_module, name=text):
        return named
    name, at, rest = text.partition("@")
    if at and name and rest:
        among = list(resolve(connection, rest))
        where = "SELECT max(run_id) FROM runs WHERE coalesce(module_name, stem) = $name AND run_id IN $among"
        return _some(connection, text, f"{where} HAVING count(*) > 0", name=name, among=among)
    whole = display(place_of(text))
    end = "/" + text.strip("/")
    return _some(connection, text, _BY_PATH, whole=whole, end=end, below=whole.rstrip("/") + "/")


def resolve_one(connection: duckdb.DuckDBPyConnection, text: str) -> int:
    """Return the one run that a reference names.

    Raises:
        UsageError: it names none, or several.
    """
    runs = resolve(connection, text)
    if len(runs) == 1:
        return runs[0]
    rows = connection.execute(
        "SELECT run_id || ' ' || coalesce(module_name, stem) FROM runs WHERE run_id IN $runs"
        " ORDER BY run_id LIMIT $n",
        {"runs": list(runs), "n": _SHOWN},
    ).fetchall()
    more = f" and {len(runs) - _SHOWN:,} more" if len(runs) > _SHOWN else ""
    named = without_secrets(text)
    raise UsageError(
        f"{named!r} names {len(runs):,} runs, and one is wanted: {', '.join(name for (name,) in rows)}{more};"
        f" write a number, or MODULE@{named}"
    )


def _is_label(text: str) -> bool:
    key, equals, _ = text.partition("=")
    return bool(equals and key) and "@" not in key and "/" not in key


def _numbers(connection: duckdb.DuckDBPyConnection, text: str) -> tuple[int, ...]:
    wanted = sorted({int(number) for number in text.split(",")})
    found = _ids(connection, "SELECT run_id FROM runs WHERE run_id IN $runs ORDER BY 1", runs=wanted)
    missing = [str(number) for number in wanted if number not in found]
    if missing:
        raise UsageError(f"there is no run {', '.join(missing)}; `xbuf runs` lists them")
    return found


def _latest(connection: duckdb.DuckDBPyConnection, text: str, back: int) -> tuple[int, ...]:
    imports = "SELECT DISTINCT import_id FROM runs ORDER BY import_id DESC LIMIT 1 OFFSET $back"
    [known] = _ids(connection, "SELECT count(DISTINCT import_id) FROM runs")
    if 0 < known <= back:
        raise UsageError(
            f"no run is {text!r}: {counted(known, 'import')} brought runs; `xbuf imports` lists them"
        )
    return _some(
        connection, text, f"SELECT run_id FROM runs WHERE import_id = ({imports}) ORDER BY 1", back=back
    )


def _some(connection: duckdb.DuckDBPyConnection, text: str, sql: str, **values: Any) -> tuple[int, ...]:
    runs = _ids(connection, sql, **values)
    if runs:
        return runs
    names = connection.execute(
        "SELECT DISTINCT coalesce(module_name, stem) FROM runs"
        " UNION ALL SELECT DISTINCT key || '=' || value FROM run_labels"
    ).fetchall()
    if not names:
        raise UsageError(
            f"{without_secrets(text)!r}: the database holds no runs yet; load dumps with `xbuf-ingest DIR`"
        )
    hint = did_you_mean(text, [name for (name,) in names]) or f"; a run is {FORMS}"
    raise UsageError(f"no run is {without_secrets(text)!r}{hint}")


def _ids(connection: duckdb.DuckDBPyConnection, sql: str, **values: Any) -> tuple[int, ...]:
    return tuple(int(run) for (run,) in connection.execute(sql, values).fetchall())
