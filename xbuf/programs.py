"""Compiled programs of JAX, from memory: their HLO module and buffer assignment, as XLA would dump them."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from ingest.arguments import Labels
from ingest.display import display
from ingest.errors import DatabaseError, DumpError
from xbuf.database import Database, check_loaded
from xbuf.run import Run

__all__ = ["Program", "import_programs", "load", "read_program"]

_BACKENDS: Final = {"cpu": "cpu", "gpu": "gpu", "cuda": "gpu", "rocm": "gpu", "tpu": "tpu"}
"""What dumps call the platforms of JAX."""
_NOT_IN_NAMES: Final = re.compile(r"[^\w.-]", re.ASCII)
_NAME_BYTES: Final = 180
"""Of a module's name in that of its file, which may have 255."""
_SHARED_MEMORY: Final = "/dev/shm"
_ROOM: Final = 64 << 20
"""What a new database, its copy and the rows of a program take at most, besides ten times its protobuf."""
_REMEDY: Final = (
    "let it dump: `xbuf run -- python ...`, or .compile(compiler_options={'xla_dump_to': DIR,"
    " 'xla_dump_hlo_as_text': True}) and xbuf.open(DIR)"
)


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled program.

    Attributes:
        name: of its HLO module.
        platform: cpu, gpu, tpu ..., as JAX has it.
        proto: its HloProto, serialized.
    """

    name: str
    platform: str
    proto: bytes

    def file_name(self, number: int) -> str:
        """Return what XLA would call the protobuf of the program, as module `number` of a process."""
        name = _NOT_IN_NAMES.sub("_", self.name)[:_NAME_BYTES]
        backend = _BACKENDS.get(self.platform)
        stage = f"{backend}_after_optimizations" if backend else "after_optimizations"
        return f"module_{number:04}.{name}.{stage}.hlo.pb"


def load(compiled: Any, *, database: str | os.PathLike[str] | None = None, labels: Labels = ()) -> Run:
    """Load a compiled JAX program, which need not have been dumped.

    What dumps say and the protobuf does not, positions, uses and live ranges, is derived from the module.

    Args:
        compiled: what `jax.jit(f).lower(...).compile()` returns.
        database: a database to keep it in; by default a temporary one, which goes with the run.
        labels: put on the run.

    Raises:
        TypeError: it is no compiled program.
        DumpError: its backend does not hand out where buffers lie (GPU and TPU, mostly), or its protobuf is
            rejected.
        DatabaseError: the database cannot be used.
    """
    [run] = import_programs([read_program(compiled)], database=database, labels=labels)
    return run


def read_program(compiled: Any) -> Program:
    """Take the HLO module and the buffer assignment of a compiled program.

    Args:
        compiled: a `jax.stages.Compiled`, or the executable in it.

    Raises:
        TypeError, DumpError: as `load`.
    """
    executable = compiled.runtime_executable() if hasattr(compiled, "runtime_executable") else compiled
    if not (hasattr(executable, "hlo_modules") and hasattr(executable, "get_compiled_memory_stats")):
        raise TypeError(
            f"a compiled program is wanted, what jax.jit(f).lower(...).compile() returns, not {compiled!r}"
        )
    platform = str(executable.client.platform)
    try:
        modules, stats = executable.hlo_modules(), executable.get_compiled_memory_stats()
    except RuntimeError as error:  # jaxlib's: the backend does not implement one of them
        raise DumpError(
            "no-assignment", f"the {platform} backend hands out nothing of a program: {error}; {_REMEDY}"
        ) from error
    if len(modules) != 1:
        names = ", ".join(module.name for module in modules) or "none"
        raise DumpError("no-module", f"a program of one HLO module is wanted; this one has {names}")
    [module] = modules
    # Until jaxlib 0.4.38, at least: module and assignment in one.
    whole = getattr(stats, "serialized_hlo_proto", b"")
    if whole:
        return Program(module.name, platform, bytes(whole))
    assignment = bytes(getattr(stats, "serialized_buffer_assignment_proto", b""))
    if not assignment:
        raise DumpError(
            "no-assignment",
            f"{module.name}: the {platform} backend does not hand out where its buffers lie; {_REMEDY}",
        )
    proto = module.as_serialized_hlo_module_proto()
    return Program(module.name, platform, _message(1, proto) + _message(3, assignment))


def import_programs(
    programs: Sequence[Program],
    *,
    database: str | os.PathLike[str] | None = None,
    labels: Labels = (),
) -> list[Run]:
    """Import programs as what they would have dumped, in their order.

    The files are private and go at once: they are kept in memory where there is room in /dev/shm.

    Args:
        programs: at least one.
        database: where to; by default a temporary one, which is removed when it is closed.

    Raises:
        DumpError: not one could be loaded.
        DatabaseError: the database cannot be used.
    """
    from ingest.pipeline.importer import import_dumps

    folder = _folder(sum(len(program.proto) for program in programs))
    try:
        dumps = os.path.join(os.path.realpath(folder), "dumps")
        os.mkdir(dumps)
        for number, program in enumerate(programs):
            with open(os.path.join(dumps, program.file_name(number)), "xb") as out:
                out.write(program.proto)
        path = os.path.join(folder, "xbuf.duckdb") if database is None else database
        # Without workers: JAX has threads, and a process that has them must not be forked.
        check_loaded(import_dumps(dumps, path, labels=labels, jobs=0), [dumps])
        shutil.rmtree(dumps)
        loaded = Database(path, folder=folder if database is None else None)
        runs = loaded.connection.execute(
            "SELECT run_id FROM runs WHERE dump_dir = ? ORDER BY stem", [display(dumps)]
        ).fetchall()
        if not runs:
            loaded.close()
            raise DatabaseError(
                f"{os.fspath(path)}: is open in this process as it was before; what was loaded is in it, and"
                " is seen once all that is open is closed and opened again"
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    if database is not None:
        shutil.rmtree(folder, ignore_errors=True)
    return [Run(loaded, int(run_id)) for (run_id,) in runs]


def _message(number: int, content: bytes) -> bytes:
    """Write a field of a protobuf that is a message."""
    length, head = len(content), bytearray([number << 3 | 2])
    while length > 0x7F:
        head.append(length & 0x7F | 0x80)
        length >>= 7
    head.append(length)
    return bytes(head) + content


def _folder(proto_bytes: int) -> str:
    """Make a folder that only its owner can enter: in memory where there is room, else where TMPDIR says."""
    root = None
    if os.access(_SHARED_MEMORY, os.W_OK) and shutil.disk_usage(_SHARED_MEMORY).free > (
        _ROOM + 10 * proto_bytes
    ):
        root = _SHARED_MEMORY
    return tempfile.mkdtemp(prefix="xbuf-", dir=root)
