"""Compiled programs without JAX: what it would hand out of a dumped module."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import xbuf
from ingest.hlo.budget import Budget
from ingest.hlo.wire import Wire

CHECKOUT = Path(__file__).parents[2]
DUMP = CHECKOUT / "tests" / "data" / "hlo" / "jaxlib-0.10.2-cpu"
PROTO = DUMP / "module_0004.jit_cd.cpu_after_optimizations.hlo.pb"
HOSTILE = "<script>alert(1)</script>\x1b[31m"


@dataclass
class Module:
    """As `jaxlib.HloModule`."""

    name: str
    proto: bytes

    def as_serialized_hlo_module_proto(self) -> bytes:
        return self.proto


@dataclass
class Client:
    """As `jaxlib.Client`."""

    platform: str = "cpu"


@dataclass
class Stats:
    """As `jaxlib.CompiledMemoryStats` since 0.5."""

    serialized_buffer_assignment_proto: bytes


@dataclass
class OlderStats:
    """As `jaxlib.CompiledMemoryStats` until 0.4."""

    serialized_hlo_proto: bytes


@dataclass
class Executable:
    """As `jaxlib.LoadedExecutable`."""

    module: Module
    stats: Stats | OlderStats
    client: Client = field(default_factory=Client)

    def hlo_modules(self) -> list[Module]:
        return [self.module]

    def get_compiled_memory_stats(self) -> Stats | OlderStats:
        return self.stats


@dataclass
class Compiled:
    """As `jax.stages.Compiled`."""

    executable: Executable

    def runtime_executable(self) -> Executable:
        return self.executable


@pytest.fixture(scope="session")
def dumped() -> Iterator[xbuf.Database]:
    """What xbuf makes of `PROTO`, with a label that would like to be markup."""
    with xbuf.open(PROTO, labels={"name": HOSTILE}) as opened:
        yield opened


@pytest.fixture
def compiled() -> Compiled:
    """The program that left `PROTO` behind."""
    parts: dict[int, bytes] = {}
    wire = Wire(str(PROTO), Budget())
    for one in wire.fields():
        parts[one.number] = wire.take(one.value)
    wire.close()
    return Compiled(Executable(Module("jit_cd", parts[1]), Stats(parts[3])))
