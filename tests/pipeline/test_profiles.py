"""Profiles: each module that ran is a run."""

from __future__ import annotations

import gzip
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from ingest import ImportSummary, import_dumps
from ingest.dump.content import Content
from ingest.errors import DumpError
from ingest.hlo.profile import read_profile
from ingest.maintenance.doctor import examine
from ingest.maintenance.export import export_database, import_export
from tests.support.content import rows
from tests.support.dump_sets import DATA, PAST
from tests.support.extras import require_library
from tests.support.protobufs import field, varint
from tests.support.web import web_server

FOLDER = Path(__file__).parent / "profiled"
[PROFILE] = (FOLDER / "log").rglob("*.xplane.pb")
[PROTO] = (FOLDER / "dump").glob("*.hlo.pb")
OTHER_PROTO = DATA / "hlo/jaxlib-0.10.2-cpu/module_0004.jit_cd.cpu_after_optimizations.hlo.pb"


def plane(name: str, *more: bytes, stats: Iterable[tuple[str, int, int | bytes | str]] = ()) -> bytes:
    """Write a plane; stats are (name, number of the field, value)."""
    numbered = list(enumerate(stats, 1))
    values = [field(6, field(1, number) + field(kind, value)) for number, (_, kind, value) in numbered]
    names = [
        field(5, field(1, number) + field(2, field(1, number) + field(2, name)))
        for number, (name, *_) in numbered
    ]
    return field(1, field(2, name) + b"".join((*more, *names, *values)))


def metadata(*modules: tuple[str, bytes], stat: str = "Hlo Proto") -> bytes:
    """Write the plane of modules, as (title, HloProto)."""
    events = [
        field(4, field(1, number) + field(2, field(2, title) + field(5, field(1, 77) + field(6, proto))))
        for number, (title, proto) in enumerate(modules)
    ]
    return plane("/host:metadata", *events, field(5, field(1, 77) + field(2, field(2, stat))))


def write(folder: Path, content: bytes, name: str = "host.xplane.pb") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(content)
    os.utime(path, (PAST, PAST))
    return path


def load(database: Path, *paths: Path, **options: Any) -> ImportSummary:
    return import_dumps(list(paths), database, jobs=1, **options)


def test_a_module_of_a_profile_is_a_run_with_its_facts(database: Path) -> None:
    """A profile that JAX took, in the folders that it makes."""
    assert load(database, FOLDER / "log").loaded == 1
    assert rows(
        database, "SELECT stem, module_name, backend, profile_host, dump_time, ranges_from FROM runs"
    ) == [("vm.jit_step(0)", "jit_step", "cpu", "vm", datetime(2026, 11, 21, 21, 21, 46, 29149), "hlo")]
    assert rows(database, "SELECT dump_dir FROM runs") == [(str(PROFILE.parent),)]
    assert load(database, FOLDER / "log").unchanged == 1


def test_the_same_program_is_recognised_in_a_dump_and_a_profile(database: Path) -> None:
    """And its figures are the same."""
    assert load(database, FOLDER).loaded == 2
    [(programs, runs, peaks)] = rows(
        database,
        "SELECT count(DISTINCT program_sha256), count(DISTINCT run_id), count(DISTINCT peak_bytes)"
        " FROM runs JOIN hlo_modules USING (run_id)",
    )
    assert (programs, runs, peaks) == (1, 2, 1)


def test_a_compressed_profile_is_read_too(database: Path, tmp_path: Path) -> None:
    """Its modules lie at the same places of the uncompressed bytes."""
    proto, other = PROTO.read_bytes(), OTHER_PROTO.read_bytes()
    content = plane("/host:CPU", field(3, b"x" * 300_000)) + metadata(("a(1)", proto), ("b(2)", other))
    plain, packed = tmp_path / "plain", tmp_path / "packed"
    write(plain, content)
    write(packed, gzip.compress(content), "host.xplane.pb.gz")
    assert load(database, plain, packed).loaded == 4
    [(runs,)] = rows(database, "SELECT list(DISTINCT (stem, content_sha256, peak_bytes)).len() FROM runs")
    assert runs == 2
    assert load(database, packed).unchanged == 2


@pytest.mark.slow
def test_profiles_in_archives_and_at_urls_are_read_as_in_folders(database: Path, tmp_path: Path) -> None:
    """Once, and when they are unchanged not at all; each of their modules is a run of that place."""
    require_library("obstore")
    content = metadata(("a(1)", PROTO.read_bytes()), ("b(2)", OTHER_PROTO.read_bytes()))
    name, log = "host.xplane.pb", tmp_path / "log"
    local = write(tmp_path / "folder", content)
    write(tmp_path / "served", content)
    write(tmp_path / "served", gzip.compress(content), f"other.{name}.gz")
    with tarfile.open(tmp_path / "served" / "run.tar.gz", "w:gz") as archive:
        archive.add(local, f"run/{name}")
        archive.add(local, f"run/more.{name}")
    shutil.copy(tmp_path / "served" / "run.tar.gz", tmp_path / "run.tar.gz")
    with web_server(tmp_path / "served", "ok", log) as url:
        names = (name, f"other.{name}.gz", "run.tar.gz")
        paths = [str(local), str(tmp_path / "run.tar.gz"), *(f"{url}/{one}" for one in names)]
        summary = import_dumps(paths, database, jobs=1)
        assert (summary.loaded, summary.rejects) == (2 * 7, ())
        log.write_text("")
        assert import_dumps(paths, database, jobs=1).unchanged == 2 * 7
    assert {line.split()[0] for line in log.read_text().splitlines()} == {"HEAD"}
    [(digests, places)] = rows(
        database,
        "SELECT list(DISTINCT (content_sha256, peak_bytes)).len(), count(DISTINCT dump_dir) FROM runs",
    )
    assert (digests, places) == (2, 4)
    assert not list(tmp_path.rglob("profiles.copies"))


@pytest.fixture
def decompressed(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """How many bytes of each compressed file this process has decompressed."""
    counts: dict[str, int] = {}
    whole = Content._read

    def counted(self: Content, size: int) -> bytes:
        data = whole(self, size)
        if not getattr(self, "is_plain", True):
            name = os.path.basename(self.path)
            counts[name] = counts.get(name, 0) + len(data)
        return data

    monkeypatch.setattr(Content, "_read", counted)
    return counts


def many_modules(folder: Path, count: int = 12) -> Path:
    """Write a compressed profile of modules with events between them."""
    protos = [PROTO.read_bytes(), OTHER_PROTO.read_bytes()]
    events = plane("/host:CPU", field(3, os.urandom(100_000)))
    modules = [metadata((f"m({number})", protos[number % 2])) for number in range(count)]
    return write(folder, gzip.compress(events.join(modules)), "host.xplane.pb.gz")


def test_a_compressed_profile_is_decompressed_once(
    database: Path, tmp_path: Path, decompressed: dict[str, int]
) -> None:
    """However many modules it holds; not at all while it is unchanged."""
    path = many_modules(tmp_path / "log")
    size = len(gzip.decompress(path.read_bytes()))
    assert load(database, path).loaded == 12
    assert decompressed == {path.name: size}
    assert load(database, path).unchanged == 12
    assert decompressed == {path.name: size}
    staging = database.with_name(f"{database.name}.staging")
    assert not list(staging.glob("*.copies*"))


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["database", "index"])
def test_what_is_kept_of_profiles_is_no_truth(
    lost: str, database: Path, tmp_path: Path, decompressed: dict[str, int]
) -> None:
    """Where the database is gone or the index damaged, the profile is read again, once."""
    path = many_modules(tmp_path / "log", 2)
    size = len(gzip.decompress(path.read_bytes()))
    load(database, path)
    index = database.with_name(f"{database.name}.staging") / "profiles.json"
    if lost == "database":
        database.unlink()
    else:
        index.write_text(index.read_text().replace('"m(1)"', "1"))
    summary = load(database, path)
    assert (summary.loaded, summary.unchanged) == ((2, 0) if lost == "database" else (0, 2))
    assert decompressed == {path.name: 2 * size}


@pytest.mark.slow
def test_a_profile_that_changed_is_read_again(database: Path, tmp_path: Path) -> None:
    """What it held before stays; a dry run keeps nothing."""
    path = many_modules(tmp_path / "log", 2)
    assert load(database, path, dry_run=True).found == 2
    assert not database.with_name(f"{database.name}.staging").exists()
    assert load(database, path).loaded == 2
    path.write_bytes(gzip.compress(metadata(("m(5)", PROTO.read_bytes()))))
    os.utime(path, (PAST + 1, PAST + 1))
    assert load(database, path).loaded == 1
    assert rows(database, "SELECT count(*) FROM runs") == [(3,)]


def test_devices_and_times_are_facts(tmp_path: Path) -> None:
    """TPU and GPU have planes of their own; a name may be a reference to the name of a stat."""
    content = (
        metadata(("jit_f(7)", PROTO.read_bytes()))
        + plane("/device:TPU:0", stats=[("device_type_string", 7, 2), ("TPU v4", 3, 1)])
        + plane("Task Environment", stats=[("profile_start_time", 3, 1_700_000_000_123_456_789)])
        + field(4, "worker-3")
    )
    profile = read_profile(write(tmp_path, content))
    assert profile[1:] == ("worker-3", datetime(2023, 11, 14, 22, 13, 20, 123456), "TPU v4", "tpu")


@pytest.mark.parametrize("stat", ["hlo_proto", "HLO Proto", "Hlo Proto"])
def test_the_stat_has_had_several_names(stat: str, tmp_path: Path) -> None:
    """Other bytes are no module, whatever they hold."""
    proto = PROTO.read_bytes()
    content = metadata(("a(1)", proto), ("b(2)", b"\x07\x07"), ("a(1)", proto), stat=stat)
    found = read_profile(write(tmp_path, content + metadata(("c(3)", proto), stat="else"))).modules
    assert [(one.title, one.module_name) for one in found] == [("a(1)", "jit_step"), ("a(1).2", "jit_step")]
    assert content[found[1].offset :][: found[1].length] == proto


def test_stats_of_the_plane_itself_hold_modules_too(database: Path, tmp_path: Path) -> None:
    """So TensorFlow wrote it until 2020."""
    write(tmp_path, plane("/host:metadata", stats=[("hlo_proto", 6, PROTO.read_bytes())]))
    assert load(database, tmp_path).loaded == 1
    assert rows(database, "SELECT stem FROM runs") == [("host.jit_step",)]


def test_events_are_stepped_over_unread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of four gigabytes of events hardly a byte is read."""
    events, read = 4 << 30, 0
    proto = metadata(("a(1)", PROTO.read_bytes()))
    head = varint(3 << 3 | 2) + varint(events)
    name = field(2, "/device:TPU:0")
    path = tmp_path / "host.xplane.pb"
    with path.open("wb") as file:
        file.write(varint(1 << 3 | 2) + varint(len(name) + len(head) + events) + name + head)
        file.seek(events, os.SEEK_CUR)
        file.write(proto)
    whole = Content.read

    def counted(self: Content, size: int) -> bytes:
        nonlocal read
        data = whole(self, size)
        read += len(data)
        return data

    monkeypatch.setattr(Content, "read", counted)
    [module] = read_profile(path).modules
    assert module.offset > events
    assert read < 1 << 20


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "no planes"),
        (plane("/host:CPU", field(3, b"...")), "enable_hlo_proto"),
        (metadata(("a(1)", PROTO.read_bytes()))[:-30], "cut off"),
        (metadata(("a(1)", PROTO.read_bytes()))[:2000], "cut off"),
        (plane("/device:TPU:0", field(3, b"x" * 900_000))[:500_000], "cut off"),
        (b"\x0f" * 99, "wire type"),
    ],
)
def test_what_is_no_profile_of_modules_is_an_error_in_one_line(
    content: bytes, words: str, tmp_path: Path
) -> None:
    """It says what is missing and how to get it."""
    write(tmp_path, content)
    with pytest.raises(DumpError, match=words) as caught:
        read_profile(tmp_path / "host.xplane.pb")
    assert "\n" not in str(caught.value)


def test_what_lies_beside_no_profile_loads(database: Path, tmp_path: Path) -> None:
    """The import rejects the one file, and again the next time."""
    write(tmp_path, b"")
    shutil.copy(PROTO, tmp_path)
    summary = load(database, tmp_path)
    assert (summary.found, summary.loaded, summary.rejected) == (2, 1, 1)
    [reject] = summary.rejects
    assert "no planes" in reject.message
    assert reject.file == str(tmp_path / "host.xplane.pb")
    assert load(database, tmp_path).rejected == 1


def test_a_module_without_buffer_assignment_is_rejected_alone(database: Path, tmp_path: Path) -> None:
    """The others of the profile load."""
    proto = PROTO.read_bytes()
    without = next(
        head + proto[len(head) :][:size]
        for size in range(1, len(proto))
        if proto.startswith(head := varint(1 << 3 | 2) + varint(size))
    )
    write(tmp_path, metadata(("a(1)", proto), ("b(2)", without)))
    summary = load(database, tmp_path)
    assert (summary.loaded, summary.rejected) == (1, 1)
    assert "host.b(2): the protobuf holds no buffer assignment" in summary.rejects[0].message


def test_what_xprof_keeps_beside_a_profile_counts_once(database: Path, tmp_path: Path) -> None:
    """Alone it is a protobuf like any other."""
    write(tmp_path, metadata(("jit_step(1)", PROTO.read_bytes())))
    write(tmp_path, PROTO.read_bytes(), "jit_step(1).hlo_proto.pb")
    write(tmp_path, OTHER_PROTO.read_bytes(), "jit_cd(2).hlo_proto.pb")
    assert load(database, tmp_path).loaded == 2
    assert rows(database, "SELECT stem FROM runs ORDER BY ALL") == [
        ("host.jit_step(1)",),
        ("jit_cd(2)",),
    ]


def test_profiles_are_left_alone_with_the_protobufs(database: Path) -> None:
    """--no-hlo reads texts only."""
    assert load(database, FOLDER, read_hlo=False).found == 0


@pytest.mark.slow
def test_hosts_of_one_program_are_kept_apart(database: Path, tmp_path: Path) -> None:
    """Each host of a job writes a profile of its own into the same folder."""
    for host in ("one", "two"):
        write(tmp_path, metadata(("jit_step(1)", PROTO.read_bytes())), f"{host}.xplane.pb")
    assert load(database, tmp_path).loaded == 2
    assert rows(database, "SELECT profile_host FROM runs ORDER BY ALL") == [("one",), ("two",)]
    assert load(database, tmp_path).unchanged == 2
    assert load(database, tmp_path / "one.xplane.pb").unchanged == 1


def test_a_profile_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    """As any other file."""
    with pytest.raises(DumpError, match="cannot be read"):
        read_profile(tmp_path / "missing.xplane.pb")


@pytest.mark.slow
def test_what_has_no_text_is_sound_and_survives_an_export(database: Path, tmp_path: Path) -> None:
    """Runs of profiles and protobufs have no primary file."""
    load(database, FOLDER)
    assert [one.text for one in examine(str(database)) if one.level == "trouble"] == []
    restored = tmp_path / "restored.duckdb"
    export_database(str(database), str(tmp_path / "exported"))
    import_export(str(tmp_path / "exported"), str(restored))
    for table in ("runs", "ranges", "uses"):
        every = f"FROM {table} ORDER BY ALL"
        assert rows(restored, every) == rows(database, every)


@pytest.mark.slow
def test_a_profile_taken_now_answers(database: Path, tmp_path: Path) -> None:
    """With the JAX that is installed, if there is one."""
    pytest.importorskip("jax")
    subprocess.run(
        [sys.executable, "-", str(tmp_path)],
        input=(FOLDER / "take.py").read_bytes(),
        check=True,
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
    )
    assert load(database, tmp_path).loaded == 2
    assert rows(database, "SELECT count(DISTINCT peak_bytes), count(peak_bytes) FROM runs") == [(1, 2)]
