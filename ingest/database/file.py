"""What every database file has in common: settings of its connections, of a new one, and sync to disk."""

from __future__ import annotations

import os
from typing import Final

Config = dict[str, str | bool | int | float | list[str]]

STORAGE_VERSION: Final = "v1.4.0"
"""Storage version of new files: the oldest with ZSTD and with a WAL that knows its database."""

BLOCK_BYTES: Final = 64 << 10
"""Block size of new files. DuckDB's own, 256 KiB, leaves blocks half empty: the 1,173 runs of 337 dumps take
7.1 MB for 3.9, 278 MB of text 14.2 for 10.3. Loads and queries take the same time. In blocks of 32 KiB DuckDB
leaves integers uncompressed: 5,900 small dumps take 14.8 MB for 7.4."""

CONFIG: Final[Config] = {
    # Without these DuckDB takes a SQLite file for its own and downloads an extension to read it.
    "autoinstall_known_extensions": False,
    "autoload_known_extensions": False,
}
"""Configuration of every connection. DuckDB refuses a second, different one in the same process."""

NEW_FILE: Final[Config] = {
    **CONFIG,
    "storage_compatibility_version": STORAGE_VERSION,
    "default_block_size": str(BLOCK_BYTES),
    # A macro of 3 kB gives a second thread nothing to do, and waking it 270 times takes 30 ms of CPU.
    "threads": 1,
    # The commit writes the file, not a log of what the file then gets: 12 ms.
    "checkpoint_threshold": "1B",
}
"""Configuration of the connection that creates a file; later ones do not change what it sets."""

UNBORN: Final = ".xbuf-new-"
"""Start of the name of the folder that a new database is made in."""


def sync(path: str) -> None:
    """Make the system write a file, or the names in a folder, to disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
