"""JAX itself: programs from its memory answer as their dumps, and `xbuf run` reports a training script."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import xbuf
from tests.python.conftest import CHECKOUT

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def jax() -> Any:
    """Of the extra `jax`."""
    return pytest.importorskip("jax")


def test_a_compiled_program_answers_as_what_it_dumps(jax: Any, tmp_path: Path) -> None:
    """Figures, buffers and source lines, with XLA_FLAGS that were read long ago."""
    x = jax.numpy.ones((256, 256))
    lowered = jax.jit(lambda x: (jax.numpy.tanh(x @ x) @ x).sum()).lower(x)
    run = xbuf.load(lowered.compile())
    lowered.compile(compiler_options={"xla_dump_to": str(tmp_path), "xla_dump_hlo_as_text": True})
    with xbuf.open(tmp_path, jobs=1) as dumps:
        [dumped] = dumps.runs
        assert run.module == dumped.module
        assert run.peak().live_bytes == dumped.peak().live_bytes
        assert run.peak().resident_bytes == dumped.peak().resident_bytes
        columns = "bytes, value, source, kind, shape"
        assert run.live_at_peak().relation().select(columns).fetchall() == (
            dumped.live_at_peak().relation().select(columns).fetchall()
        )


def test_a_capture_has_what_jax_compiles(jax: Any) -> None:
    """Also a program that is gone before the block ends, and not what was compiled before."""
    x = jax.numpy.ones((64, 64))
    warm = jax.jit(lambda x: x + 1)
    warm(x)
    with xbuf.capture() as captured:
        warm(x)

        def product(x: Any) -> Any:
            return x @ x

        jax.jit(product)(x)
    assert [program.name for program in captured.programs] == ["jit_product"]
    [run] = captured.runs
    assert run.peak().live_bytes == 2 * 64 * 64 * 4


def test_a_training_script_ends_with_the_line_that_holds_most_of_the_peak(jax: Any, tmp_path: Path) -> None:
    """`xbuf run -- python train.py`, with what the script prints on stdout."""
    script = "import sys; sys.argv[0] = 'xbuf'; from ingest.cli.entry import xbuf; xbuf()"
    train = CHECKOUT / "examples" / "train.py"
    done = subprocess.run(
        [sys.executable, "-c", script, "run", "--module", "train_step", "--", sys.executable, str(train)],
        cwd=tmp_path,
        env={**os.environ, "COLUMNS": "80", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("step 0: loss ")
    assert re.search(r"train\.py:\d+ holds most of the peak of jit_train_step: ", done.stderr), done.stderr
    assert [path.name for path in tmp_path.iterdir() if path.suffix == ".duckdb"] == ["xbuf.duckdb"]
