"""Finding dump sets: by name, by content, through links, beside hostile files."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import time
import tracemalloc
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.display import display
from ingest.dump.find import discover
from ingest.dump.sets import Discovery, DumpSet
from ingest.errors import ExitCode, UsageError
from tests.support.rights import as_ordinary_user

_DUMP = b"BufferAssignment:\nallocation 0: size 4, thread-local:\n value: <0 a @0> (size=4,offset=0): f32[]\n"
# Any code point, surrogates too. st.text() sorts all of Unicode first: a second of CPU time.
_TEXT = st.lists(st.integers(0, sys.maxunicode).map(chr), max_size=30).map("".join)
_STEM = "module_0001.jit_f.cpu_after_optimizations"
_PRIMARY, _VALUES, _RANGE = "-buffer-assignment.txt", "-buffer-assignment-values.txt", "-live-range.txt"


def _write(folder: Path, *names: str, content: bytes = b"") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_bytes(content)


def _files(dump_set: DumpSet) -> dict[str, str]:
    return {member.role: member.file_name for member in dump_set.members}


def _stems(found: Discovery) -> list[str]:
    return [dump_set.stem for dump_set in found.sets]


def test_members_of_a_set_are_grouped_in_fixed_order(tmp_path: Path) -> None:
    """All roles of one stem are one set, with sizes and times; the neighbours are passed over."""
    endings = [".hlo.pb", ".txt", _RANGE, _VALUES, _PRIMARY]
    _write(tmp_path, *(_STEM + ending for ending in endings), content=b"12345")
    _write(
        tmp_path,
        f"{_STEM}-memory-usage-report.txt",
        f"{_STEM}_after_buffer_assignment.txt",
        "module_0001.x.ll",
    )
    os.utime(tmp_path / (_STEM + _PRIMARY), ns=(0, 1_700_000_000_123_456_789))
    found = discover([tmp_path])
    assert found.problems == ()
    (dump_set,) = found.sets
    assert (dump_set.directory, dump_set.stem) == (str(tmp_path.resolve()), _STEM)
    assert [member.role for member in dump_set.members] == ["primary", "values", "live_range", "hlo", "proto"]
    assert dump_set.members[0] == ("primary", _STEM + _PRIMARY, 5, 1_700_000_000_123_456_789, None)


def test_sets_are_found_at_any_depth_and_sorted(tmp_path: Path) -> None:
    """Order does not depend on what the file system lists first."""
    for folder in ("b", "a/z/y", "a", "."):
        _write(tmp_path / folder, "s2" + _PRIMARY, "s1" + _PRIMARY)
    found = discover([str(tmp_path)])
    places = [(dump_set.directory, dump_set.stem) for dump_set in found.sets]
    root = str(tmp_path.resolve())
    assert places == [
        (folder, stem)
        for folder in (root, f"{root}/a", f"{root}/a/z/y", f"{root}/b")
        for stem in ("s1", "s2")
    ]


def test_member_in_another_directory_is_another_set(tmp_path: Path) -> None:
    """A stem names a set within its directory only."""
    _write(tmp_path / "a", _STEM + _PRIMARY)
    _write(tmp_path / "b", _STEM + _PRIMARY, _STEM + _VALUES)
    found = discover([tmp_path])
    assert [len(dump_set.members) for dump_set in found.sets] == [1, 2]


def test_uncompressed_file_wins_over_its_compressed_copies(tmp_path: Path) -> None:
    """One file stands for a role; among copies that is the plain one, then gzip, then zstd."""
    _write(tmp_path, *(_STEM + _PRIMARY + ending for ending in ("", ".gz", ".zst")))
    _write(tmp_path, *(_STEM + _VALUES + ending for ending in (".zstd", ".zst", ".gz")))
    _write(tmp_path, _STEM + _RANGE + ".zst", _STEM + ".hlo.pb", _STEM + ".hlo.pb.gz")
    found = discover([tmp_path])
    assert found.problems == ()
    assert _files(found.sets[0]) == {
        "primary": _STEM + _PRIMARY,
        "values": _STEM + _VALUES + ".gz",
        "live_range": _STEM + _RANGE + ".zst",
        "proto": _STEM + ".hlo.pb",
    }


@pytest.mark.parametrize("ending", [_VALUES, _RANGE])
def test_sibling_without_its_primary_is_a_problem_with_a_remedy(tmp_path: Path, ending: str) -> None:
    """A set that lost its main file is told, not skipped in silence."""
    _write(tmp_path, _STEM + ending)
    found = discover([tmp_path])
    assert found.sets == ()
    (problem,) = found.problems
    assert problem.path == str(tmp_path / (_STEM + ending))
    assert f"lacks {_STEM}{_PRIMARY}" in problem.message
    assert "copy that next to it" in problem.message


def test_hlo_and_protobuf_without_primary_are_left_out(tmp_path: Path) -> None:
    """They are no dumps by themselves; a caller may ask for protobufs."""
    _write(tmp_path, _STEM + ".txt", _STEM + ".hlo.pb.gz", "module_0002.jit_g.cpu_after_optimizations.txt")
    assert discover([tmp_path]) == Discovery((), ())
    (dump_set,) = discover([tmp_path], proto_alone=True).sets
    assert _files(dump_set) == {"hlo": _STEM + ".txt", "proto": _STEM + ".hlo.pb.gz"}


@pytest.mark.parametrize(
    "content",
    [
        _DUMP,
        b"\xef\xbb\xbf" + _DUMP,
        _DUMP.replace(b"\n", b"\r\n"),
        b"BufferAssignment:",
        gzip.compress(_DUMP * 5000, mtime=0),
        gzip.compress(b"\xef\xbb\xbf" + _DUMP.replace(b"\n", b"\r\n"), mtime=0),
        pa.compress(_DUMP * 50_000, codec="zstd", asbytes=True),
        pa.compress(_DUMP, codec="zstd", asbytes=True),
    ],
    ids=["plain", "bom", "crlf", "no-newline", "gzip", "gzip-bom-crlf", "zstd", "zstd-small"],
)
@pytest.mark.parametrize("name", ["step 12.txt", "dump", "x.log", "odd.txt.gz", "odd.zst"])
def test_renamed_dump_is_recognised_by_its_content(tmp_path: Path, name: str, content: bytes) -> None:
    """Whatever its name and compression, the first line tells; in a directory and by name alike."""
    _write(tmp_path, name, content=content)
    found = discover([tmp_path])
    assert found.problems == ()
    (dump_set,) = found.sets
    assert _files(dump_set) == {"primary": name}
    assert dump_set.stem in ("step 12", "dump", "x.log", "odd")
    assert discover([tmp_path / name]) == found


@pytest.mark.parametrize(
    "content",
    [b"", b"\n", b"BufferAssignment", b"BufferAssignments:\n", b" BufferAssignment:\n", b"HloModule f\n",
     b"BufferAssignment: \n", b"\x1f\x8b", b"\x1f\x8b\x08\x00garbage", b"\x28\xb5\x2f\xfdgarbage",
     gzip.compress(b"x", mtime=0), pa.compress(b"no dump", codec="zstd", asbytes=True),
     b"\xff" * 600, b"\x00" * 600],
)  # fmt: skip
def test_other_file_is_passed_over_in_a_directory_and_told_by_name(tmp_path: Path, content: bytes) -> None:
    """A directory may hold anything; a file that was asked for and is no dump is a problem."""
    _write(tmp_path, "notes.txt", content=content)
    assert discover([tmp_path]) == Discovery((), ())
    (problem,) = discover([tmp_path / "notes.txt"]).problems
    assert problem.path == str(tmp_path / "notes.txt")
    assert "first line is not 'BufferAssignment:'" in problem.message


def test_xla_named_files_are_not_opened(tmp_path: Path) -> None:
    """Their names tell all: content that looks like a dump is not even read."""
    _write(
        tmp_path, f"{_STEM}-memory-usage-report.txt", f"{_STEM}_after_buffer_assignment.txt", content=_DUMP
    )
    assert discover([tmp_path]) == Discovery((), ())


def test_dump_under_a_name_of_xla_is_recognised_when_asked_for(tmp_path: Path) -> None:
    """A dump saved as the module's HLO text loads when it is named."""
    _write(tmp_path, _STEM + ".txt", "module_0002.notes", content=_DUMP)
    found = discover([tmp_path / (_STEM + ".txt"), tmp_path / "module_0002.notes"])
    assert found.problems == ()
    assert [(s.stem, _files(s)) for s in found.sets] == [
        (_STEM, {"primary": _STEM + ".txt"}),
        ("module_0002.notes", {"primary": "module_0002.notes"}),
    ]


def test_file_by_name_brings_the_rest_of_its_set_and_nothing_else(tmp_path: Path) -> None:
    """Any member stands for its set."""
    _write(tmp_path, *(_STEM + ending for ending in (_PRIMARY, _VALUES, _RANGE)), "other" + _PRIMARY)
    _write(tmp_path, "lost" + _RANGE, "renamed.txt", content=_DUMP)
    for ending in (_PRIMARY, _VALUES, _RANGE):
        found = discover([tmp_path / (_STEM + ending)])
        assert found.problems == ()
        assert _stems(found) == [_STEM]
        assert len(found.sets[0].members) == 3


def test_shell_pattern_over_a_dump_directory_is_no_problem(tmp_path: Path) -> None:
    """What XLA writes beside dumps may be named along with them; alone it is told."""
    endings = [_PRIMARY, "-memory-usage-report.txt", ".txt", ".ir.ll"]
    _write(tmp_path, *(_STEM + ending for ending in endings), "module_0002.jit_g.cpu_after_optimizations.txt")
    found = discover(sorted(tmp_path.iterdir()))
    assert (_stems(found), found.problems) == ([_STEM], ())
    for name in (_STEM + "-memory-usage-report.txt", "module_0002.jit_g.cpu_after_optimizations.txt"):
        alone = discover([tmp_path / name])
        assert alone.sets == ()
        assert [problem.path for problem in alone.problems] == [str(tmp_path / name)]


def test_same_set_through_several_arguments_counts_once(tmp_path: Path) -> None:
    """Overlapping directories, files within them, links and relative paths lead to the same sets."""
    _write(tmp_path / "a/b", _STEM + _PRIMARY, _STEM + _VALUES)
    _write(tmp_path / "a/b", "renamed", content=_DUMP)
    (tmp_path / "link").symlink_to("a/b")
    once = discover([tmp_path])
    assert len(once.sets) == 2
    many: list[str | os.PathLike[str]] = [
        tmp_path / "link",
        tmp_path / "a/b" / (_STEM + _VALUES),
        tmp_path / "a",
        tmp_path / "link" / (_STEM + _PRIMARY),
        tmp_path / "link/../b/renamed",
        tmp_path,
        os.path.relpath(tmp_path / "a"),
    ]
    assert discover(many) == once
    assert discover(list(reversed(many))) == once


def test_file_in_the_working_directory_needs_no_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bare name and `.` mean the working directory."""
    _write(tmp_path, "renamed.txt", content=_DUMP)
    monkeypatch.chdir(tmp_path)
    assert discover(["renamed.txt"]) == discover(["."])
    assert discover(["."]).sets[0].directory == str(tmp_path.resolve())


def test_links_to_directories_are_followed_once_under_their_own_path(tmp_path: Path) -> None:
    """Loops end, and a set's directory is the same whichever way leads to it."""
    _write(tmp_path / "outside/deep", "s" + _PRIMARY)
    _write(tmp_path / "root/real", "r" + _PRIMARY)
    (tmp_path / "root/a-link").symlink_to(tmp_path / "outside")
    (tmp_path / "root/z-link").symlink_to(tmp_path / "outside/deep")
    (tmp_path / "root/again").symlink_to("real")
    (tmp_path / "outside/deep/loop").symlink_to("../..")
    (tmp_path / "root/self").symlink_to(".")
    found = discover([tmp_path / "root"], follow_symlinks=True)
    assert found.problems == ()
    root = tmp_path.resolve()
    assert [(s.directory, s.stem) for s in found.sets] == [
        (f"{root}/outside/deep", "s"),
        (f"{root}/root/real", "r"),
    ]


def test_links_to_files_are_members_under_their_own_names(tmp_path: Path) -> None:
    """A linked dump belongs to the directory where the link is, with the target's size."""
    _write(tmp_path / "store", "blob", content=_DUMP)
    (tmp_path / "dumps").mkdir()
    (tmp_path / "dumps" / (_STEM + _PRIMARY)).symlink_to("../store/blob")
    (tmp_path / "dumps/renamed").symlink_to("../store/blob")
    found = discover([tmp_path / "dumps"], follow_symlinks=True)
    assert [(s.stem, s.members[0].size) for s in found.sets] == [(_STEM, len(_DUMP)), ("renamed", len(_DUMP))]


def test_links_that_lead_nowhere_are_told_if_a_member_is_missing(tmp_path: Path) -> None:
    """A dangling or circular member is a problem; other such links are not ours."""
    (tmp_path / (_STEM + _PRIMARY)).symlink_to("gone")
    (tmp_path / ("x" + _PRIMARY)).symlink_to("x" + _PRIMARY)
    (tmp_path / "foreign").symlink_to("gone")
    (tmp_path / "circle").symlink_to("circle")
    found = discover([tmp_path])
    assert found.sets == ()
    assert [os.path.basename(problem.path) for problem in found.problems] == [
        _STEM + _PRIMARY,
        "x" + _PRIMARY,
    ]
    assert all("leads nowhere" in problem.message for problem in found.problems)


def test_what_is_no_regular_file_is_never_opened(tmp_path: Path) -> None:
    """FIFOs and sockets under any name neither block nor fail the search."""
    os.mkfifo(tmp_path / (_STEM + _PRIMARY))
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link-to-pipe").symlink_to("pipe")
    (tmp_path / ("folder" + _PRIMARY)).mkdir()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
        _write(tmp_path, "renamed", content=_DUMP)
        found = discover([tmp_path])
        assert (_stems(found), found.problems) == (["renamed"], ())
        for name in ("pipe", "socket", _STEM + _PRIMARY):
            (problem,) = discover([tmp_path / name]).problems
            assert "is no regular file" in problem.message


def test_hostile_names_stay_usable_for_opening(tmp_path: Path) -> None:
    """Newlines, quotes, escapes and bytes that are no UTF-8 survive as the file system has them."""
    raw = b"a\nb\x1b[31m'\"\xff;DROP TABLE runs;--"
    folder = os.path.join(os.fsencode(tmp_path), b"dir\xfe\n")
    os.mkdir(folder)
    for name in (raw + b"-buffer-assignment.txt", b"renamed\xff\n"):
        with open(os.path.join(folder, name), "wb") as file:
            file.write(_DUMP)
    found = discover([tmp_path])
    assert found.problems == ()
    assert sorted(_stems(found)) == sorted([os.fsdecode(raw), os.fsdecode(b"renamed\xff\n")])
    for dump_set in found.sets:
        path = os.path.join(dump_set.directory, dump_set.members[0].file_name)
        assert os.stat(path).st_size == dump_set.members[0].size
    assert display(found.sets[0].directory).endswith(r"dir\xfe\n")
    by_name = discover([os.path.join(os.fsdecode(folder), os.fsdecode(b"renamed\xff\n"))])
    assert by_name.sets[0] in found.sets


def test_problem_shows_hostile_names_escaped(tmp_path: Path) -> None:
    """No problem carries a line break or an escape sequence to a terminal."""
    _write(tmp_path, "x\n\x1b[2J" + _VALUES)
    (problem,) = discover([tmp_path]).problems
    assert problem.path.isprintable()
    assert problem.message.isprintable()
    assert r"x\n\x1b[2J" in problem.message


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("plain name-1.é中.txt", "plain name-1.é中.txt"),
        ("back\\slash", "back\\slash"),
        ("a\nb\tc\rd", r"a\nb\tc\rd"),
        ("\x1b[31m\x00\x7f", r"\x1b[31m\x00\x7f"),
        ("\udcff\udc80", r"\xff\x80"),
        ("\x85\u202e\u2028\ud800", r"\u0085\u202e\u2028\ud800"),
        ("\U000e0001", r"\U000e0001"),
        ("", ""),
    ],
)
def test_display_escapes_what_does_not_print(name: str, shown: str) -> None:
    """Control characters, direction marks and undecodable bytes are shown by their codes."""
    assert display(name) == shown


@given(st.binary(max_size=30).map(os.fsdecode) | _TEXT)
def test_display_is_printable_and_settled(name: str) -> None:
    """What is displayed can be encoded and printed, and displaying it again changes nothing."""
    shown = display(name)
    shown.encode()
    assert shown.isprintable()
    assert display(shown) == shown


@pytest.mark.parametrize("path", ["", "missing", "missing/dump.txt", "nul\0byte", "x" * 5000])
def test_path_that_does_not_exist_is_a_usage_error(tmp_path: Path, path: str) -> None:
    """A typing mistake on the command line ends the search before it starts."""
    with pytest.raises(UsageError) as caught:
        discover([tmp_path, path and os.path.join(tmp_path, path)])
    assert caught.value.exit_code is ExitCode.USAGE
    assert str(caught.value).isprintable()


def test_file_as_a_directory_is_a_usage_error(tmp_path: Path) -> None:
    """The reason is told."""
    _write(tmp_path, "file")
    with pytest.raises(UsageError, match="Not a directory"):
        discover([tmp_path / "file" / "x"])


def test_unreadable_directory_and_file_are_problems(tmp_path: Path) -> None:
    """What could not be looked at is told; the rest is found."""
    _write(tmp_path / "closed", "s" + _PRIMARY)
    _write(tmp_path / "listed", "s" + _PRIMARY, "t" + _PRIMARY)
    _write(tmp_path / "open", "s" + _PRIMARY, "secret")
    (tmp_path / "open/secret").chmod(0)
    (tmp_path / "closed").chmod(0)
    (tmp_path / "listed").chmod(0o400)
    code = (
        "import json, os, sys; from ingest.dump.find import discover; found = discover(sys.argv[1:])\n"
        "print(json.dumps([[os.path.basename(s.directory) for s in found.sets],"
        " [(os.path.basename(p.path), p.message) for p in found.problems]]))"
    )
    try:
        done = subprocess.run(
            [sys.executable, "-c", code, tmp_path],
            preexec_fn=as_ordinary_user, stdout=subprocess.PIPE, check=True,
        )  # fmt: skip
    finally:
        (tmp_path / "closed").chmod(0o700)
        (tmp_path / "listed").chmod(0o700)
    sets, problems = json.loads(done.stdout)
    assert sets == ["open"]
    assert [name for name, _ in problems] == ["closed", "listed", "secret"]
    assert all("permissions" in message for _, message in problems)


def test_vanished_directory_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory that goes away between its parent's listing and its own is told, the rest is found."""
    _write(tmp_path / "gone", "s" + _PRIMARY)
    _write(tmp_path / "there", "s" + _PRIMARY)
    real_open = os.open

    def open_later(path: str, *args: int, **kwargs: int) -> int:
        if path == "gone":
            os.rename(tmp_path / path, tmp_path.parent / f"{tmp_path.name}-gone")
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", open_later)
    found = discover([tmp_path])
    assert [os.path.basename(s.directory) for s in found.sets] == ["there"]
    (problem,) = found.problems
    assert problem.path == str(tmp_path.resolve() / "gone")
    assert "vanished" in problem.message


def test_known_files_are_not_opened_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Named members and files that were dumps before cost no opening; keys are as displayed."""
    odd = os.fsdecode(b"odd\xff\n")
    _write(tmp_path, _STEM + _PRIMARY, _STEM + _VALUES)
    _write(tmp_path, "renamed.txt", odd, content=_DUMP)
    before = discover([tmp_path])
    known = {(display(s.directory), display(m.file_name)) for s in before.sets for m in s.members}
    opened: list[str] = []
    real_open = os.open

    def recording_open(path: str, *args: int, **kwargs: int) -> int:
        opened.append(path)
        return real_open(path, *args, **kwargs)

    monkeypatch.setattr(os, "open", recording_open)
    assert discover([tmp_path], known=known) == before
    assert opened == list(tmp_path.resolve().parts)


def test_renamed_dumps_that_share_a_stem_stay_apart(tmp_path: Path) -> None:
    """`y`, `y.txt` and a set of stem y are three dumps; a compressed copy is none."""
    _write(tmp_path, "x" + _PRIMARY, "x.txt", "y", "y.txt", content=_DUMP)
    _write(tmp_path, "x.txt.gz", "z.txt.gz", "z.txt.zst", content=gzip.compress(_DUMP))
    found = discover([tmp_path])
    assert found.problems == ()
    assert [(s.stem, s.members[0].file_name) for s in found.sets] == [
        ("x", "x" + _PRIMARY),
        ("x.txt", "x.txt"),
        ("y", "y"),
        ("y.txt", "y.txt"),
        ("z", "z.txt.gz"),
    ]
    for dump_set in found.sets:
        assert discover([tmp_path / dump_set.members[0].file_name]).sets == (dump_set,)
    assert discover([tmp_path / "x.txt.gz"]).sets == (found.sets[1],)


def test_renamed_dump_without_a_stem_of_its_own_is_a_problem(tmp_path: Path) -> None:
    """A dump `x` beside `x-buffer-assignment.txt` is told, not dropped."""
    _write(tmp_path, "x" + _PRIMARY, "x", content=_DUMP)
    found = discover([tmp_path])
    assert _stems(found) == ["x"]
    assert found.sets[0].members[0].file_name == "x" + _PRIMARY
    (problem,) = found.problems
    assert "rename one of them" in problem.message


@pytest.mark.slow
def test_search_is_near_the_speed_of_a_listing(tmp_path: Path) -> None:
    """2,000 sets of four files take a fraction of a second: the same as listing and one stat per file."""
    for number in range(2000):
        stem = tmp_path / f"module_{number:04d}.jit_step.cpu_after_optimizations"
        for ending in (_PRIMARY, _VALUES, _RANGE, "-memory-usage-report.txt"):
            os.close(os.open(f"{stem}{ending}", os.O_CREAT | os.O_WRONLY))

    def listing() -> float:
        started = time.process_time()
        with os.scandir(tmp_path) as entries:
            for entry in entries:
                entry.stat()
        return time.process_time() - started

    def search() -> float:
        started = time.process_time()
        assert len(discover([tmp_path]).sets) == 2000
        return time.process_time() - started

    # 2 to 3 times measured.
    assert min(search() for _ in range(3)) < 8 * min(listing() for _ in range(3))


def test_every_set_of_the_corpus_is_found(shared_corpus: Path, shared_seeds: Path) -> None:
    """337 sets by name, 5 by content, with every sibling and without a problem."""
    found = discover([shared_corpus, shared_seeds])
    assert found.problems == ()
    assert Counter(member.role for dump_set in found.sets for member in dump_set.members) == {
        "primary": 342, "values": 136, "live_range": 136, "hlo": 329, "proto": 206,
    }  # fmt: skip


def test_a_search_holds_little_besides_what_it_finds(tmp_path: Path) -> None:
    """Entries of the directory kept until all sets were made took twice as much memory as the sets."""
    _write(
        tmp_path, *(f"module_{number:04d}.jit_f.cpu_after_optimizations{_PRIMARY}" for number in range(1000))
    )
    discover([tmp_path])
    tracemalloc.start()
    found = discover([tmp_path])
    held, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert found.found == 1000
    assert most < 1.5 * held
