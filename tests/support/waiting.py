"""How long tests wait for what must come."""

from __future__ import annotations

import time
from collections.abc import Callable

HANGING_SECONDS = 600.0
"""Against hanging, not for speed: a machine with a dozen other things to do takes ten times as long.

Less than the `timeout` of a whole test in pyproject.toml, so that what is waited for is named.
"""


def wait_until(condition: Callable[[], object], what: str, *, pause: float = 0.02) -> None:
    """Look again and again, `pause` seconds apart, until a condition holds.

    Raises:
        AssertionError: it does not.
    """
    deadline = time.monotonic() + HANGING_SECONDS
    while not condition():
        assert time.monotonic() < deadline, f"{what} does not come"
        time.sleep(pause)
