"""`xbuf.load`: a compiled program answers as its dump does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import xbuf
from ingest.dump.names import parse_stem, split_member
from tests.python.conftest import PROTO, Compiled, OlderStats, Stats
from xbuf.programs import Program, read_program


def test_a_compiled_program_answers_as_its_dump(
    compiled: Compiled, dumped: xbuf.Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Same module, same buffers, same peak; when it is forgotten, nothing is left."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    run, expected = xbuf.load(compiled, labels={"variant": "a"}), dumped.run("jit_cd")
    assert (run.module, run.backend, run.labels) == ("jit_cd", "cpu", {"variant": "a"})
    assert run.peak() == expected.peak()
    columns = "value, bytes, kind, source"
    assert run.live_at_peak().relation().select(columns).fetchall() == (
        expected.live_at_peak().relation().select(columns).fetchall()
    )
    folder = os.path.dirname(run.database.path)
    assert not os.path.exists(os.path.join(folder, "dumps"))
    assert oct(os.stat(folder).st_mode & 0o777) == "0o700"
    del run
    assert list(tmp_path.iterdir()) == []
    after = set(os.listdir("/dev/shm")) if os.path.isdir("/dev/shm") else set()
    assert os.path.basename(folder) not in after - before


def test_a_program_of_an_older_release_has_both_in_one(compiled: Compiled) -> None:
    """jaxlib 0.4 hands out an HloProto."""
    compiled.executable.stats = OlderStats(PROTO.read_bytes())
    assert read_program(compiled).proto == PROTO.read_bytes()


def test_a_program_is_kept_in_a_database(compiled: Compiled, database: Path) -> None:
    """With its labels; where the database is open in this process, it says why the run is not seen."""
    with (
        xbuf.open(database),
        pytest.raises(xbuf.DatabaseError, match="is open in this process as it was before"),
    ):
        xbuf.load(compiled, database=database, labels={"variant": "a"})
    with xbuf.open(database) as opened:
        assert opened.run("jit_cd").labels == {"variant": "a"}


def test_a_file_is_named_after_the_module() -> None:
    """As XLA would; its names of modules may hold anything."""
    name = Program("jit_../x[1]" + "x" * 500, "cuda", b"").file_name(7)
    assert split_member(name) == (f"module_0007.jit_.._x_1_{'x' * 169}.gpu_after_optimizations", "proto")
    assert parse_stem(Program("jit_f", "metal", b"").file_name(7)).module_id == 7


def test_what_is_no_compiled_program_is_refused(compiled: Compiled) -> None:
    """A function, and a program whose backend keeps its buffers to itself."""
    with pytest.raises(TypeError, match=r"lower\(\.\.\.\)\.compile\(\)"):
        xbuf.load(len)
    compiled.executable.client.platform = "cuda"
    compiled.executable.stats = Stats(b"")
    with pytest.raises(xbuf.DumpError, match=r"jit_cd: the cuda backend .* `xbuf run -- python"):
        xbuf.load(compiled)

    def refuse() -> Stats:
        raise RuntimeError("UNIMPLEMENTED")

    compiled.executable.get_compiled_memory_stats = refuse  # type: ignore[method-assign]
    with pytest.raises(xbuf.DumpError, match=r"hands out nothing of a program: UNIMPLEMENTED; let it dump"):
        xbuf.load(compiled)
