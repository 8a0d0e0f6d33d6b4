"""`xbuf.capture`: what is compiled in a block, and only that."""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from types import ModuleType

import pytest

import xbuf
from tests.python.conftest import Compiled, Executable, Stats

COMPILED = "/jax/core/compile/backend_compile_duration"


@dataclass
class Jax:
    """What JAX has loaded, newest first, and who hears of it."""

    loaded: list[Executable] = field(default_factory=list)
    listeners: list[Callable[..., None]] = field(default_factory=list)

    def live_executables(self) -> list[Executable]:
        return list(self.loaded)

    def compile(self, program: Executable, event: str | None = COMPILED) -> Executable:
        """Load a program, and say so."""
        made = deepcopy(program)
        self.loaded.insert(0, made)
        if event is not None:
            for listener in self.listeners:
                listener(event, 0.1, fun_name="f")
        return made


@pytest.fixture
def jax(monkeypatch: pytest.MonkeyPatch) -> Jax:
    """A stand-in for as much of JAX as is used."""
    fake = Jax()
    names = ("jax", "jax.monitoring", "jax.extend", "jax.extend.backend")
    modules = {name: ModuleType(name) for name in names}
    modules["jax"].monitoring = modules["jax.monitoring"]  # type: ignore[attr-defined]
    modules["jax.monitoring"].register_event_duration_secs_listener = (  # type: ignore[attr-defined]
        fake.listeners.append
    )
    modules["jax.extend.backend"].backends = lambda: {"cpu": fake}  # type: ignore[attr-defined]
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("xbuf.capturing._is_listening", False)
    return fake


def names(captured: xbuf.Capture) -> list[str]:
    """Return the names of the programs."""
    return [program.name for program in captured.programs]


@pytest.fixture
def program(compiled: Compiled) -> Executable:
    """A program."""
    return compiled.executable


def named(program: Executable, name: str) -> Executable:
    """Return it under another name."""
    other = deepcopy(program)
    other.module.name = name
    return other


def test_what_is_compiled_in_the_block_is_captured(jax: Jax, program: Executable) -> None:
    """Also what is gone at its end, and what nobody spoke of; nothing from before or after."""
    jax.compile(named(program, "before"))
    with xbuf.capture() as captured:
        assert names(captured) == []
        gone = jax.compile(named(program, "gone"))
        jax.loaded.remove(gone)
        jax.compile(named(program, "stays"))
        jax.compile(named(program, "silent"), event=None)
        assert names(captured) == ["gone", "stays"]
    jax.compile(named(program, "after"))
    assert names(captured) == ["gone", "stays", "silent"]
    with xbuf.capture() as nothing:
        pass
    assert (nothing.runs, repr(nothing)) == ([], "<xbuf.capture: 0 programs>")
    with pytest.raises(xbuf.UsageError, match="nothing was compiled"):
        _ = nothing.database
    assert len(jax.listeners) == 1


def test_a_function_is_captured_over_all_its_calls(jax: Jax, program: Executable) -> None:
    """It calls itself, it fails, and another capture is going on."""
    memory = xbuf.capture()

    @memory
    def work(depth: int) -> None:
        jax.compile(named(program, f"f{depth}"))
        if not depth:
            raise ValueError("out of memory")
        work(depth - 1)

    with xbuf.capture() as outer:
        for depth in (1, 0):
            with pytest.raises(ValueError, match="out of memory"):
                work(depth)
        jax.compile(named(program, "g"))
    assert names(memory) == ["f1", "f0", "f0"]
    assert names(outer) == ["f1", "f0", "f0", "g"]


def test_a_program_that_cannot_be_captured_is_warned_of(jax: Jax, program: Executable) -> None:
    """Its compilation goes on, whatever is wrong with it."""
    bare = deepcopy(program)
    bare.stats = Stats(b"")
    broken = deepcopy(program)
    broken.client = None  # type: ignore[assignment]
    captured = xbuf.capture()

    @captured
    def compile_all() -> None:
        for one in (bare, broken, program):
            jax.compile(one)

    with pytest.warns(xbuf.RejectedWarning, match=r"not captured: jit_cd: the cpu backend .*, and 1 more"):
        compile_all()
    assert names(captured) == ["jit_cd"]


def test_captured_programs_are_runs(
    jax: Jax, program: Executable, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In one database, with labels, so that they can be compared."""
    monkeypatch.setenv("COLUMNS", "80")
    with xbuf.capture(labels={"variant": "a"}) as captured:
        jax.compile(program)
        jax.compile(named(program, "jit_other"))
    first, second = captured.runs
    assert (first.module, second.module, first.labels) == ("jit_cd", "jit_other", {"variant": "a"})
    assert captured.database is first.database is captured.runs[1].database
    captured.show(top=1)
    shown = capsys.readouterr().out
    assert "jit_cd" in shown
    assert "and 1 smaller module" in shown
    assert "jit_other" in captured._repr_html_()


def test_without_jax_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Importing xbuf does not need it."""
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(xbuf.UsageError, match=r"needs JAX, 0\.4\.38 or newer"), xbuf.capture():
        pass
