"""Damaged and hostile input through whole imports: loaded or rejected in order, in time, in bounded memory.

docs/hostile-input.md tells which test stands for which kind of damage.
"""

from __future__ import annotations

import functools
import gzip
import io
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pyarrow as pa
import pytest
from click.testing import CliRunner

from ingest import ImportSummary, import_dumps, open_database
from ingest.cli.ingest import ingest
from ingest.cli.xbuf import xbuf
from ingest.display import display
from ingest.dump.content import Content
from ingest.dump.find import discover
from ingest.dump.parse import parse_set
from ingest.events import Event, StagedApart
from ingest.staging import stage
from ingest.staging.task import Task
from tests.support.content import orphans, rows
from tests.support.dump_sets import DATA, PAST, PRIMARY, DumpSet, committed_sets
from tests.support.protobufs import field, varint
from tests.support.rights import as_ordinary_user

WHOLE = DATA / "dumps/jaxlib-0.7.2-cpu"
"""A set of one file with every section, 1.3 KB."""
SPLIT = DATA / "dumps/jaxlib-0.10.0-cpu"
"""A set of three files."""
TINY = b"BufferAssignment:\nallocation 0: size 4, thread-local:\n value: <0 a @0> (size=4,offset=0): f32[]\n"
HEADER = b"BufferAssignment:\nallocation 0: size 9000000000, maybe-live-out:\n"
MIB = 1 << 20


def the_set(base: Path) -> DumpSet:
    """Return the one committed set in a folder."""
    (dump_set,) = [one for one in committed_sets() if one.primary.parent == base]
    return dump_set


def text_of(base: Path = WHOLE) -> bytes:
    """Return the primary file of the one set in a folder."""
    return the_set(base).primary.read_bytes()


def write(folder: Path, files: Mapping[str, bytes]) -> Path:
    """Write files with a time long past, as finished dumps have; return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_bytes(content)
        os.utime(folder / name, (PAST, PAST))
    return folder


def variants(folder: Path, texts: Iterator[bytes]) -> int:
    """Write dumps, each a set of its own; return how many."""
    count = 0
    for count, text in enumerate(texts, 1):
        write(folder, {f"module_{count:04d}.jit_f.cpu_after_optimizations{PRIMARY}": text})
    return count


def assert_accounted(database: Path, summary: ImportSummary, found: int) -> None:
    """Every set is a run or a reject with a reason; no row is without its run; every row can be read."""
    assert (summary.found, summary.loaded + summary.rejected) == (found, found)
    assert summary.unfinished == 0
    assert rows(database, "SELECT count(*) FROM runs") == [(summary.loaded,)]
    rejects = rows(database, "SELECT DISTINCT file FROM rejects WHERE kind <> 'internal' AND message <> ''")
    assert len(rejects) == summary.rejected
    assert orphans(database) == {}
    with open_database(database, read_only=True) as connection:
        for (table,) in connection.execute("SELECT table_name FROM duckdb_tables()").fetchall():
            connection.execute(f'SELECT * FROM "{table}"').fetchall()


class Told(NamedTuple):
    """What a command came to."""

    code: int
    out: str
    err: str


class Done(NamedTuple):
    """What a process came to."""

    code: int
    out: str
    err: str
    cpu_seconds: float
    most_memory: int
    """Bytes, of the largest of its processes."""


def ingest_here(*arguments: str | Path, database: Path) -> Told:
    """Run the command in this process, with one job; no control character may come out."""
    told = CliRunner(env={"XBUF_DB": str(database)}).invoke(
        ingest, ["--jobs", "1", *map(str, arguments)], standalone_mode=False, catch_exceptions=False
    )
    assert_printable(told.output)
    return Told(int(told.return_value), told.stdout, told.stderr)


def assert_printable(text: str) -> None:
    assert all(character.isprintable() or character == "\n" for character in text)


def xbuf_ingest(*arguments: str | Path, database: Path, before: Callable[[], None] | None = None) -> Done:
    """Run the command in a process, with one job; no traceback and no control character may come out.

    `before` is called in the new process before the command starts.
    """
    code = "from ingest.cli.entry import xbuf_ingest; xbuf_ingest()"
    measured = (
        "import resource, subprocess, sys\n"
        "code = subprocess.run(sys.argv[1:]).returncode\n"
        "used = resource.getrusage(resource.RUSAGE_CHILDREN)\n"
        "print(used.ru_maxrss << 10, used.ru_utime + used.ru_stime, file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            measured,
            sys.executable,
            "-c",
            code,
            "--jobs",
            "1",
            *map(str, arguments),
        ],
        capture_output=True,
        env={**os.environ, "XBUF_DB": str(database)},
        preexec_fn=before,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    *told, used = err.splitlines()
    memory, seconds = used.split()
    assert "Traceback" not in out + err
    assert_printable(out + err)
    return Done(done.returncode, out, "\n".join(told), float(seconds), int(memory))


# -- damage in the text ------------------------------------------------------------------------------


def cuts() -> Iterator[bytes]:
    """Cut at every line and at every seventh byte."""
    text = text_of()
    places = {at + 1 for at, byte in enumerate(text) if byte == 0x0A} | set(range(0, len(text), 7))
    yield from (text[:at] for at in sorted(places - {len(text)}))


def flips() -> Iterator[bytes]:
    """Flip one bit of a byte, in many places."""
    text, chance = text_of(), random.Random(5)
    for at in range(0, len(text), 5):
        yield text[:at] + bytes((text[at] ^ (1 << chance.randrange(8)),)) + text[at + 1 :]


def moved_lines() -> Iterator[bytes]:
    """Remove, repeat and swap each line."""
    lines = text_of().splitlines(keepends=True)
    for at in range(len(lines)):
        yield b"".join(lines[:at] + lines[at + 1 :])
        yield b"".join([*lines[:at], lines[at], *lines[at:]])
        yield b"".join(lines[:at] + lines[at + 1 : at + 2] + [lines[at]] + lines[at + 2 :])


DAMAGE: Mapping[str, tuple[Callable[[], Iterator[bytes]], float]] = {
    "cuts": (cuts, 0.02),
    "flips": (flips, 0.5),
    "lines": (moved_lines, 0.5),
}
"""Ways to damage a dump, and the share of the results that may load: with a notice, or as another dump."""


@pytest.mark.slow
@pytest.mark.parametrize("name", DAMAGE)
def test_damaged_dumps_are_loaded_or_rejected_one_by_one(name: str, tmp_path: Path, database: Path) -> None:
    """Hundreds of damaged dumps at once: each is a run or a reject, and only harmless damage loads."""
    make, may_load = DAMAGE[name]
    count = variants(tmp_path / "dumps", make())
    write(tmp_path / "dumps", {f"whole{PRIMARY}": text_of()})
    summary = import_dumps([tmp_path / "dumps"], database, jobs=1)
    assert_accounted(database, summary, count + 1)
    assert 1 <= summary.loaded <= 1 + may_load * count
    kinds = dict(rows(database, "SELECT kind, count(*) FROM rejects GROUP BY ALL"))
    assert set(kinds) >= ({"truncated"} if name == "cuts" else {"bad-line", "value-mismatch"})
    # What loads has the numbers of the dump, but for those that the damage made others of.
    printed = "list_contains(format, 'total')"
    assert rows(database, f"SELECT count(*) FROM runs WHERE {printed} AND total_bytes <> 240") == [(0,)]


@pytest.mark.slow
def test_numbers_beyond_64_bits_reject_the_dump(tmp_path: Path, database: Path) -> None:
    """Each number of a dump, replaced by 2^63: it is refused, or was text and nothing else."""
    text = text_of()
    places = [(at, at + 1) for at, byte in enumerate(text) if chr(byte).isdigit()]
    starts = [at for at, _ in places if at == 0 or not chr(text[at - 1]).isdigit()]
    changed = []
    for start in starts:
        end = next(at for at in range(start, len(text)) if not chr(text[at]).isdigit())
        changed.append(text[:start] + b"9223372036854775808" + text[end:])
    count = variants(tmp_path / "dumps", iter(changed))
    summary = import_dumps([tmp_path / "dumps"], database, jobs=1)
    assert_accounted(database, summary, count)
    kinds = {kind for (kind,) in rows(database, "SELECT DISTINCT kind FROM rejects")}
    assert {"number-too-large", "out-of-bounds", "total-mismatch", "allocation-index"} <= kinds
    assert rows(database, "SELECT DISTINCT total_bytes FROM runs") == [(240,)]
    # A number at the end of a name may make it another one.
    assert rows(
        database, "SELECT DISTINCT kind FROM runs JOIN notices USING (run_id) WHERE peak_bytes <> 240"
    )


def test_what_a_copy_does_to_bytes_is_mended_and_told(tmp_path: Path, database: Path) -> None:
    """A byte order mark, CR LF, bytes that are no UTF-8: the dump loads with a notice and its figures."""
    text = text_of()
    changed = {
        "bom": (b"\xef\xbb\xbf" + text, "byte-order-mark"),
        "crlf": (text.replace(b"\n", b"\r\n"), "line-ends"),
        "no-utf-8": (text.replace(b'op_name="x"', b'op_name="\xff\xfe"'), "encoding"),
        "nul": (text.replace(b'op_name="x"', b'op_name="a\x00b"'), None),
        "surrogate": (text.replace(b'op_name="x"', b'op_name="\xed\xa0\x80"'), "encoding"),
    }
    assert len({text, *(one for one, _ in changed.values())}) == 1 + len(changed)
    write(tmp_path / "dumps", {f"{name}{PRIMARY}": one for name, (one, _) in changed.items()})
    done = ingest_here(tmp_path / "dumps", database=database)
    assert (done.code, done.err) == (0, "")
    found = rows(
        database,
        "SELECT stem, total_bytes, peak_bytes, kind FROM runs LEFT JOIN notices USING (run_id) ORDER BY ALL",
    )
    assert found == [(name, 240, 240, notice) for name, (_, notice) in changed.items()]


def test_a_nul_among_the_names_is_kept(tmp_path: Path, database: Path) -> None:
    """Names with NUL, escapes and right-to-left marks load as they are, and are shown escaped."""
    name = "a\x00\x1b[31m\u202eb"
    text = text_of().replace(b"x.1", name.encode())
    write(tmp_path / "dumps", {f"x{PRIMARY}": text})
    assert ingest_here(tmp_path / "dumps", database=database).code == 0
    assert rows(database, 'SELECT count(*) FROM "values" WHERE instruction = ' + sql_text(name)) == [(1,)]
    query = ["query", "live_at_peak", "--run", "1", "--db", os.fspath(database)]
    shown = CliRunner().invoke(xbuf, query, catch_exceptions=False).stdout
    assert r"a\x00" in shown
    assert not set(shown) & {"\x00", "\x1b", "\u202e"}


def sql_text(text: str) -> str:
    """Return an SQL expression for a text with control characters."""
    return " || ".join(f"chr({ord(character)})" for character in text)


def test_deep_tuples_neither_recurse_nor_stall(tmp_path: Path, database: Path) -> None:
    """A shape of tuples in tuples in tuples is kept as it is."""
    shapes = [b"(" * depth + b"f32[]" + b")" * depth for depth in (10, 1000, 20_000)]
    for number, shape in enumerate(shapes):
        text = b"BufferAssignment:\nallocation 0: size 8, output shape is |%s|, maybe-live-out:\n" % shape
        text += b" value: <0 t{} @0> (size=8,offset=0): %s\n" % shape
        write(tmp_path / "dumps", {f"{number}{PRIMARY}": text})
    started = time.process_time()
    assert import_dumps([tmp_path / "dumps"], database, jobs=1).loaded == 3
    assert time.process_time() - started < 10
    assert rows(database, 'SELECT length(shape) FROM "values" ORDER BY run_id') == [
        (len(shape),) for shape in shapes
    ]


# -- too much ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_line_of_200_mb_is_refused_in_bounded_memory(tmp_path: Path, database: Path) -> None:
    """A single line of 200 MB rejects the dump, whether lines stand before it or not."""
    folder = tmp_path / "dumps"
    write(folder, {f"ok{PRIMARY}": TINY})
    for name, start in (("first", b"BufferAssignment:"), ("later", TINY + b" value: <1 ")):
        with open(folder / f"{name}{PRIMARY}", "wb") as file:
            file.write(start)
            for _ in range(200):
                file.write(b"x" * 1_000_000)
            file.write(b"\n")
        os.utime(folder / f"{name}{PRIMARY}", (PAST, PAST))
    done = xbuf_ingest(folder, "--format", "json", database=database)
    assert (done.code, json.loads(done.out)["loaded"], json.loads(done.out)["rejected"]) == (1, 1, 2)
    assert rows(database, "SELECT DISTINCT kind FROM rejects") == [("line-too-long",)]
    assert done.most_memory < 600 * MIB
    assert done.cpu_seconds < 30


def bombs() -> Iterator[tuple[str, bytes, bytes]]:
    """Yield a name, the start and the text that goes on and on."""
    yield "one-line", b"BufferAssignment:\n", b"x" * 1000
    yield "unknown-lines", TINY, b"what a line of no meaning at all this is, and so on and on\n" * 20
    yield "same-value", HEADER, b" value: <7 a.7 @0> (size=4,offset=0): f32[]\n" * 20


@pytest.mark.slow
@pytest.mark.parametrize(
    ("compress", "expected"),
    [
        ("gzip", {"one-line": "line-too-long"}),
        # Between two records may stand 64 MiB of what means nothing.
        (
            "zstd",
            {"one-line": "line-too-long", "unknown-lines": "line-too-long", "same-value": "duplicate-value"},
        ),
    ],
    ids=["gzip", "zstd"],
)
def test_a_bomb_is_refused_in_bounded_memory(
    compress: str, expected: dict[str, str], tmp_path: Path, database: Path
) -> None:
    """Some KB that stand for 80 MB of text are read piece by piece, and take neither memory nor for ever."""
    folder = write(tmp_path / "dumps", {f"ok{PRIMARY}": TINY})
    for name, start, text in bombs():
        if name not in expected:
            continue
        bomb = start + text * (80_000_000 // len(text))
        path = folder / f"{name}{PRIMARY}.{'gz' if compress == 'gzip' else 'zst'}"
        if compress == "gzip":
            path.write_bytes(gzip.compress(bomb, 1))
        else:
            path.write_bytes(pa.compress(bomb, codec="zstd", asbytes=True))
        assert path.stat().st_size < 2 * MIB
        os.utime(path, (PAST, PAST))
    del bomb
    done = xbuf_ingest(folder, database=database)
    assert done.code == 1
    kinds = dict(rows(database, "SELECT parse_filename(file), kind FROM rejects"))
    told = {name.split(PRIMARY)[0]: kind for name, kind in kinds.items()}
    assert told == expected
    assert done.most_memory < 600 * MIB
    assert done.cpu_seconds < 60


@pytest.mark.slow
def test_a_tuple_of_many_parts_stays_within_the_memory(tmp_path: Path, database: Path) -> None:
    """Each of its 100,000 elements is a parameter, a value and two positions; the protobuf has 7 MB."""
    parts = 100_000
    array = field(2, 11) + field(3, varint(8))
    shapes = field(2, 13) + field(4, array) * parts

    def instruction(id_: int, opcode: str, shape: bytes, operands: bytes = b"") -> bytes:
        return field(2, field(1, f"i{id_}") + field(2, opcode) + field(3, shape) + field(35, id_) + operands)

    ids = range(1, parts + 2)
    operands = b"".join(field(36, id_) for id_ in ids[:-1])
    body = field(1, "main") + b"".join(instruction(id_, "parameter", array) for id_ in ids[:-1])
    body += instruction(ids[-1], "tuple", shapes, operands) + field(5, 1) + field(6, ids[-1])
    values = b"".join(field(1, field(1, id_) + field(2, 32) + field(3, field(4, id_))) for id_ in ids)
    assigned = b"".join(field(9, field(1, id_) + field(2, 32 * id_) + field(3, 32)) for id_ in ids)
    allocation = field(3, field(1, 0) + field(2, 32 * (parts + 2)) + assigned)
    module = field(1, "m") + field(3, body) + field(6, 1)
    write(
        tmp_path / "dumps",
        {
            "module_0001.jit_f.cpu_after_optimizations.hlo.pb": field(1, module)
            + field(3, values + allocation)
        },
    )
    done = xbuf_ingest(tmp_path / "dumps", database=database)
    assert done.code == 0
    counts = "SELECT (SELECT count(*) FROM values), (SELECT count(*) FROM positions)"
    assert rows(database, counts) == [(parts + 1, 2 * parts + 1)]
    assert done.most_memory < 600 * MIB


def test_a_bomb_of_many_runs_is_refused(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is a dump to the end, and too much of one for its size on disk, is refused with the remedy."""
    monkeypatch.setattr("ingest.dump.content.BOMB_BYTES", 100_000)
    monkeypatch.setattr("ingest.dump.content.BOMB_TIMES", 5)
    text = b"BufferAssignment:\n" + b"".join(b"allocation %d: size 0, constant:\n" % n for n in range(10_000))
    write(tmp_path / "dumps", {f"x{PRIMARY}.gz": gzip.compress(text), f"plain{PRIMARY}": text})
    assert import_dumps([tmp_path / "dumps"], database, jobs=1).loaded == 1
    [(kind, message)] = rows(database, "SELECT kind, message FROM rejects")
    assert kind == "unreadable"
    assert "decompress it first" in message


def test_rubbish_of_many_lines_has_a_thousand_notices(tmp_path: Path, database: Path) -> None:
    """Lines that mean nothing are legal, in any number; no more than 1,000 are told."""
    write(tmp_path / "dumps", {f"x{PRIMARY}": TINY + b"what is this?\n" * 10_000})
    assert import_dumps([tmp_path / "dumps"], database, jobs=1).loaded == 1
    assert rows(database, "SELECT kind, count(*) FROM notices GROUP BY ALL ORDER BY ALL") == [
        ("too-many-notices", 1),
        ("unknown-line", 1000),
    ]


@pytest.mark.parametrize(
    "compress", [gzip.compress, functools.partial(pa.compress, codec="zstd", asbytes=True)]
)
def test_truncated_compressed_files_are_refused(
    compress: Callable[[bytes], bytes], tmp_path: Path, database: Path
) -> None:
    """A compressed dump that is cut off anywhere is unreadable; one whose bytes are spoilt too."""
    whole = compress(text_of())
    ending = "gz" if whole.startswith(b"\x1f\x8b") else "zst"
    spoilt = whole[:60] + bytes(byte ^ 0xFF for byte in whole[60:70]) + whole[70:]
    damaged = [whole[:size] for size in (5, 20, len(whole) // 2, len(whole) - 1)] + [spoilt]
    files = {f"{number}{PRIMARY}.{ending}": content for number, content in enumerate(damaged)}
    write(tmp_path / "dumps", {**files, f"whole{PRIMARY}.{ending}": whole})
    done = ingest_here(tmp_path / "dumps", "--format", "json", database=database)
    assert (done.code, json.loads(done.out)["loaded"], json.loads(done.out)["rejected"]) == (1, 1, 5)
    assert {kind for (kind,) in rows(database, "SELECT kind FROM rejects")} <= {"unreadable", "truncated"}


# -- files that are none -------------------------------------------------------------------------------


def test_odd_file_names_load_and_are_shown_escaped(tmp_path: Path, database: Path) -> None:
    """Newlines, quotes, escapes and bytes that are no UTF-8 in names of files and folders."""
    folder = os.path.join(os.fsencode(tmp_path), b"dumps\xff\n'")
    os.mkdir(folder)
    names = [
        b"a\nb",
        b"quote'\"",
        b"\xff\xfe",
        b"\x1b[31mred",
        b"'; DROP TABLE runs; --",
        b"$(touch x)",
        b"-v",
    ]
    for name in names:
        with open(os.path.join(folder, name + PRIMARY.encode()), "wb") as file:
            file.write(TINY)
    bad = os.path.join(folder, b"bad\n\x1b" + PRIMARY.encode())
    with open(bad, "wb") as file:
        file.write(TINY[:-9])
    os.utime(bad, (PAST, PAST))
    done = ingest_here(os.fsdecode(folder), database=database)
    assert done.code == 1
    assert display(os.fsdecode(bad)) in done.err
    stems = {stem for (stem,) in rows(database, "SELECT stem FROM runs")}
    assert stems == {display(os.fsdecode(name)) for name in names}
    assert rows(database, "SELECT file FROM rejects") == [(display(os.fsdecode(bad)),)]
    again = ingest_here(os.fsdecode(folder), "--format", "json", database=database)
    assert (again.code, json.loads(again.out)["unchanged"]) == (1, len(names))


def test_loops_and_what_is_no_file_are_passed_over(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links in circles, FIFOs, sockets, folders named like dumps: no hang, and the dumps beside them load."""
    folder = write(tmp_path / "dumps", {f"ok{PRIMARY}": TINY})
    (folder / "loop").symlink_to(folder)
    (folder / "up").symlink_to("..")
    (folder / f"self{PRIMARY}").symlink_to(f"self{PRIMARY}")
    (folder / f"folder{PRIMARY}").mkdir()
    os.mkfifo(folder / f"pipe{PRIMARY}")
    os.mkfifo(folder / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        # A socket's path has at most 108 bytes.
        monkeypatch.chdir(folder)
        server.bind(f"socket{PRIMARY}")
        monkeypatch.undo()
        done = ingest_here(folder, "--format", "json", database=database)
    told = json.loads(done.out)
    assert (told["found"], told["loaded"], told["rejected"]) == (2, 1, 1)
    assert f"self{PRIMARY}: is a link that leads nowhere" in done.err
    assert done.code == 1


def test_a_fifo_in_the_place_of_a_sibling_does_not_stall(tmp_path: Path, database: Path) -> None:
    """A set of which a file turned into a FIFO after it was found is rejected at once."""
    folder = copy_of(SPLIT, tmp_path / "dumps")
    (values,) = folder.glob("*-values.txt")

    def replace() -> None:
        values.unlink()
        os.mkfifo(values)

    summary = import_after(replace, folder, database)
    assert (summary.loaded, summary.rejected) == (0, 1)
    assert rows(database, "SELECT kind, file FROM rejects") == [("unreadable", str(values))]


def test_files_whose_bytes_cannot_be_had_are_told(tmp_path: Path, database: Path) -> None:
    """A read that fails is rejected with its reason, also for root."""
    folder = write(tmp_path / "dumps", {f"ok{PRIMARY}": TINY, f"bad{PRIMARY}": TINY, "renamed": TINY})
    bad = {(folder / name).stat().st_ino for name in ("renamed", f"bad{PRIMARY}")}
    read = os.read

    def fail_of_bad(descriptor: int) -> None:
        if os.fstat(descriptor).st_ino in bad:
            raise OSError(5, "Input/output error")

    def read_or_fail(descriptor: int, size: int) -> bytes:
        fail_of_bad(descriptor)
        return read(descriptor, size)

    class Disk(io.FileIO):
        def readinto(self, buffer: Any) -> int | None:
            fail_of_bad(self.fileno())
            return super().readinto(buffer)

        def read(self, size: int | None = -1) -> bytes:
            fail_of_bad(self.fileno())
            return super().read(-1 if size is None else size)

        def readall(self) -> bytes:
            fail_of_bad(self.fileno())
            return super().readall()

    with patch("os.read", read_or_fail), patch("io.FileIO", Disk):
        summary = import_dumps(folder, database, jobs=1)
    assert (summary.loaded, summary.rejected, summary.unfinished) == (1, 2, 0)
    assert [(one.file, one.kind) for one in summary.rejects] == [
        (str(folder / name), "unreadable") for name in ("renamed", f"bad{PRIMARY}")
    ]
    assert all("Input/output error" in one.message for one in summary.rejects)
    assert rows(database, "SELECT stem FROM runs") == [("ok",)]


@pytest.mark.slow
def test_files_without_the_right_to_read_are_told(tmp_path: Path, database: Path) -> None:
    """What may not be read is rejected or a problem; the rest loads."""
    folder = write(tmp_path / "dumps", {f"ok{PRIMARY}": TINY, f"secret{PRIMARY}": TINY})
    (folder / f"secret{PRIMARY}").chmod(0)
    (folder / "closed").mkdir(mode=0)
    done = xbuf_ingest(folder, database=database, before=as_ordinary_user)
    assert done.code == 1
    assert "closed: cannot be searched" in done.err
    assert rows(database, "SELECT parse_filename(file), kind FROM rejects ORDER BY file") == [
        ("closed", "unreadable"),
        (f"secret{PRIMARY}", "unreadable"),
    ]
    assert rows(database, "SELECT stem FROM runs") == [("ok",)]


# -- what changes under the import -----------------------------------------------------------------------


def copy_of(base: Path, folder: Path) -> Path:
    """Copy the one set of a folder, long finished."""
    return write(folder, {path.name: path.read_bytes() for path in the_set(base).files.values()})


def import_after(change: Callable[[], None], folder: Path, database: Path) -> ImportSummary:
    """Import a folder that changes when its sets have been found and none has been read."""

    def then_change(*arguments: Any, **options: Any) -> Any:
        found = discover(*arguments, **options)
        change()
        return found

    with patch("ingest.pipeline.plan.discover", then_change):
        return import_dumps([folder], database, jobs=1)


def test_a_folder_that_vanishes_is_told(tmp_path: Path, database: Path) -> None:
    """Sets that are gone when they are to be read are rejected as unreadable; those elsewhere load."""
    folder = write(tmp_path / "dumps", {f"ok{PRIMARY}": TINY})
    gone = write(folder / "gone", {f"{number}{PRIMARY}": TINY for number in range(20)})
    summary = import_after(lambda: shutil.rmtree(gone), folder, database)
    assert (summary.found, summary.loaded, summary.rejected, summary.unfinished) == (21, 1, 20, 0)
    assert rows(database, "SELECT DISTINCT kind FROM rejects") == [("unreadable",)]


def test_a_file_that_shrinks_or_grows_is_read_again(tmp_path: Path, database: Path) -> None:
    """A set that has another size than when it was found is looked at again, and loaded as it is then."""
    folder = write(tmp_path / "dumps", {f"grows{PRIMARY}": TINY, f"shrinks{PRIMARY}": TINY * 2})
    more = TINY + b"allocation 1: size 0, thread-local:\n"

    def change() -> None:
        (folder / f"grows{PRIMARY}").write_bytes(more)
        (folder / f"shrinks{PRIMARY}").write_bytes(TINY)

    summary = import_after(change, folder, database)
    assert (summary.loaded, summary.rejected, summary.unfinished) == (2, 0, 0)
    assert rows(database, "SELECT stem, file_bytes FROM runs ORDER BY ALL") == [
        ("grows", len(more)),
        ("shrinks", len(TINY)),
    ]


def test_a_file_that_grows_without_end_is_read_to_where_it_ended(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody who writes as fast as the import reads does not keep it."""
    log = write(tmp_path / "dumps", {f"log{PRIMARY}": TINY}) / f"log{PRIMARY}"
    read = Content._read

    def read_and_grow(content: Content, size: int) -> bytes:
        with log.open("ab") as file:
            file.write(b"allocation 1: size 0, thread-local:\n" * 1000)
        assert log.stat().st_size < 20 * MIB, "it is read on and on"
        return read(content, size)

    monkeypatch.setattr(Content, "_read", read_and_grow)
    summary = import_dumps([log.parent], database, jobs=1)
    assert (summary.loaded, summary.rejected + summary.unfinished) == (0, 1)


@pytest.mark.slow
def test_damaged_siblings_cost_notices_only(tmp_path: Path, database: Path) -> None:
    """HLO text and protobuf cut off at many places: every dump loads, and what was not read is told."""
    (base,) = {path.parent for path in (DATA / "hlo").rglob("module_0010*.pb")}
    stem = "module_0010.jit_dn.cpu_after_optimizations"
    members = {path.name.removeprefix(stem): path.read_bytes() for path in base.glob(f"{stem}*")}
    folder = tmp_path / "dumps"
    damaged = Counter[str]()
    for ending in (".txt", ".hlo.pb"):
        content = members[ending]
        for at in range(1, len(content), len(content) // 60):
            set_stem = f"module_{sum(damaged.values()):04d}.jit_dn.cpu_after_optimizations"
            changed = {**members, ending: content[:at]}
            write(folder, {f"{set_stem}{one}": text for one, text in changed.items()})
            damaged[ending] += 1
    summary = import_dumps([folder], database, jobs=1)
    assert (summary.loaded, summary.rejected) == (damaged.total(), 0)
    told = rows(database, "SELECT count(DISTINCT run_id) FROM notices")
    assert told == [(damaged.total(),)]
    assert rows(database, "SELECT count(DISTINCT (total_bytes, peak_bytes)) FROM runs") == [(1,)]


# -- xbuf's own failures ---------------------------------------------------------------------------------


def test_what_xbuf_fails_on_is_rejected_alone(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of xbuf's own costs the set it is about, and asks to report it."""
    folder = write(tmp_path / "dumps", {f"{name}{PRIMARY}": TINY for name in "abc"})

    def fail_on_b(files: Mapping[str, str], *arguments: Any) -> Any:
        if "b-buffer" in files["primary"]:
            raise RecursionError("too deep")
        return parse_set(files, *arguments)

    monkeypatch.setattr("ingest.staging.stage.parse_set", fail_on_b)
    summary = import_dumps([folder], database, jobs=1)
    assert (summary.loaded, summary.rejected) == (2, 1)
    [(file, kind, message)] = rows(database, "SELECT file, kind, message FROM rejects")
    assert (file, kind) == (str(folder / f"b{PRIMARY}"), "internal")
    assert "RecursionError: too deep" in message
    assert "please report it" in message


def test_what_fails_together_is_taken_one_by_one_and_reported(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is lost, and the time that it takes has a reason in the log."""
    folder = write(tmp_path / "dumps", {f"{name}{PRIMARY}": TINY for name in "abc"})
    together = stage._stage_together

    def fail_together(tasks: Sequence[Task], *arguments: Any) -> Any:
        if len(tasks) > 1:
            raise AttributeError("no such thing")
        return together(tasks, *arguments)

    monkeypatch.setattr(stage, "_stage_together", fail_together)
    events: list[Event] = []
    assert import_dumps([folder], database, jobs=1, on_event=events.append).loaded == 3
    [event] = [event for event in events if isinstance(event, StagedApart)]
    assert event.dumps == 3
    assert event.message.startswith("AttributeError: no such thing (test_hostile_input.py:")


def test_a_failure_beside_a_dump_is_a_notice(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where xbuf fails on HLO text or protobuf, the dump loads without them."""

    def fail(*_: Any, **__: Any) -> Any:
        raise MemoryError("no room")

    monkeypatch.setattr("ingest.staging.sidecars.read_sidecars", fail)
    write(tmp_path / "dumps", {f"x{PRIMARY}": TINY, "x.txt": b"HloModule x\n"})
    assert import_dumps([tmp_path / "dumps"], database, jobs=1).loaded == 1
    [(kind, message)] = rows(database, "SELECT kind, message FROM notices")
    assert kind == "internal"
    assert "MemoryError: no room" in message
