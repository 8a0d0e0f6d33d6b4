"""Libraries that a test needs in other processes than its own."""

from importlib.util import find_spec

import pytest


def require_library(name: str) -> None:
    """Skip the test where a library is not installed, without importing it.

    A process that has imported obstore or deltalake forks no workers any more: `ingest.source.apart`.
    """
    if find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
