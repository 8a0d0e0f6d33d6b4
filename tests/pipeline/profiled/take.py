"""Take the profile and the dump of a folder: `python - FOLDER < take.py`, with `jax[cpu]` 0.10.2 installed.

Both are of one process, so that a test can find the same program in both. Read from stdin, so that the
module does not name a path of this machine.
"""

import os
import sys
from pathlib import Path

STEP = """
import jax.numpy as jnp

def step(weights, batch):
    hidden = jnp.tanh(batch @ weights)
    return jnp.sum(hidden @ weights.T, axis=1)
"""


def main() -> None:
    """Write `log` and `dump`, as JAX and XLA lay them out, without what no test needs."""
    here = Path(sys.argv[1]).absolute()
    os.environ["XLA_FLAGS"] = (
        f"--xla_dump_to={here / 'dump'} --xla_dump_hlo_as_text --xla_dump_hlo_as_proto"
        " --xla_dump_hlo_module_re=jit_step --xla_dump_hlo_pass_re="
    )
    import jax  # type: ignore[import-not-found,unused-ignore]
    import numpy as np

    scope: dict[str, object] = {}
    exec(compile(STEP, "/opt/xla/train.py", "exec"), scope)  # a path that is the same everywhere
    step = jax.jit(scope["step"])
    weights, batch = np.ones((64, 32), np.float32), np.ones((16, 64), np.float32)
    options = jax.profiler.ProfileOptions()
    options.host_tracer_level = options.python_tracer_level = 0
    with jax.profiler.trace(here / "log", profiler_options=options):
        step(weights, batch).block_until_ready()
    kept = (".cpu_after_optimizations.hlo.pb", ".xplane.pb")
    for path in [*(here / "dump").rglob("*"), *(here / "log").rglob("*")]:
        if path.is_file() and not path.name.endswith(kept):
            path.unlink()


if __name__ == "__main__":
    main()
