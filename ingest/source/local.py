"""Open files of others without being led elsewhere: no link is followed in any part of a path.

Who can write where dumps lie can put a link in the place of a file, or of a folder on the way to it, between
the search and the reading. Paths are resolved once, where links are to be followed; then they hold none.
"""

from __future__ import annotations

import io
import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Final

from ingest.source.source import APART, OpenFile, PathIn, Source, Status, found_of

FILE_FLAGS: Final = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC | os.O_NOFOLLOW
"""O_NONBLOCK: a FIFO that took a file's place must not block us."""
FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW
# Passing through a folder needs no right to list it.
_STEP_FLAGS: Final = (
    getattr(os, "O_PATH", getattr(os, "O_SEARCH", os.O_RDONLY))
    | os.O_DIRECTORY
    | os.O_CLOEXEC
    | os.O_NOFOLLOW
)
_KERNEL_TYPES: Final = frozenset(
    (
        "binfmt_misc",
        "bpf",
        "cgroup",
        "cgroup2",
        "configfs",
        "debugfs",
        "devpts",
        "efivarfs",
        "fusectl",
        "mqueue",
        "nfsd",
        "nsfs",
        "proc",
        "pstore",
        "rpc_pipefs",
        "securityfs",
        "selinuxfs",
        "smackfs",
        "sysfs",
        "tracefs",
    )
)
"""File systems whose files are no files: reading one asks the kernel, about the reader for instance."""

_LATEST: Final = 2**63 - 1
_START_BYTES: Final = 16 << 10
"""Read at once when a file is opened: all of most, whose first bytes are looked at before."""


class _Kept(threading.local):
    """The folder that this thread keeps open, if any."""

    is_wanted = False
    path = ""
    """Empty while none is open."""
    descriptor = -1

    def step(self, path: str) -> int:
        """Return a folder that stays open until another one is wanted."""
        if path != self.path:
            self.drop()
            self.descriptor, self.path = open_folder(path, _STEP_FLAGS), path
        return self.descriptor

    def drop(self) -> None:
        if self.path:
            os.close(self.descriptor)
            self.path = ""


_kept: Final = _Kept()


@contextmanager
def keeping_folder() -> Iterator[None]:
    """Keep the folder of the file opened last open for the next one, for as long as the block lasts.

    To go to a folder part by part takes two calls of the system for each, more than to open and read a small
    file. A folder that is replaced meanwhile is read on: who then asks for the versions of its files, by
    their paths, finds others.
    """
    _kept.is_wanted = True
    try:
        yield
    finally:
        _kept.is_wanted = False
        _kept.drop()


class LocalFiles:
    """The files of this machine; a path is absolute, or relative to the working directory."""

    terms = APART
    is_far = is_remote = False
    rereads_ranges = True

    def open(self, path: str, found: Status | None = None) -> OpenFile:
        """Open a regular file. Its version is compared after it was read: see `status_of`.

        Raises:
            OSError: as `open_regular`.
            ValueError: the path holds a NUL.
        """
        descriptor, status = open_regular(path)
        return OpenFile(io.BufferedReader(io.FileIO(descriptor), _START_BYTES), status.st_size)

    def status(self, path: str) -> Status | None:
        """Look at what lies at a path; None where that is no regular file.

        Raises:
            OSError: there is nothing, or it must not be looked at.
        """
        return version_of(os.stat(path, follow_symlinks=False))

    def read_range(self, path: str, offset: int, length: int) -> bytes:
        """Return some bytes of a file, without reading those before.

        Raises:
            OSError: as `open_regular`.
        """
        descriptor, _ = open_regular(path)
        try:
            return os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)


_LOCAL: Final = LocalFiles()


def source_of(path: str) -> Source:
    """Return the source that opens a file."""
    return path.source if isinstance(path, PathIn) else _LOCAL


def open_found(path: str) -> OpenFile:
    """Open a file, wherever it lies, of the version that was found.

    Raises what `ingest.source.source.Source.open` raises.
    """
    return source_of(path).open(path, found_of(path))


def status_of(path: str) -> Status | None:
    """Look a file up, wherever it lies; None where it is gone, or what lies there is none.

    Raises:
        OSError: it must not be looked at.
        SourceError: its source is of no use any more.
    """
    try:
        return source_of(path).status(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def version_of(status: os.stat_result) -> Status | None:
    """Return size and time of a regular file; what no BIGINT holds (after 2262) as its last time."""
    if not stat.S_ISREG(status.st_mode):
        return None
    time = status.st_mtime_ns
    if not -_LATEST <= time <= _LATEST:
        time = max(-_LATEST, min(time, _LATEST))
    return Status(status.st_size, time)


def open_regular(path: str) -> tuple[int, os.stat_result]:
    """Open a regular file for reading; return its descriptor and status.

    Raises:
        OSError: it cannot be opened, a part of its path is a link (ELOOP, or ENOTDIR), it is no regular file
            or lies on a file system of the kernel (no errno).
        ValueError: the path holds a NUL.
    """
    folder, separator, name = path.rpartition(os.sep)
    folder += separator
    if _kept.is_wanted and path.startswith(os.sep):
        descriptor = os.open(name, FILE_FLAGS, dir_fd=_kept.step(folder))
    else:
        step = open_folder(folder, _STEP_FLAGS)
        try:
            descriptor = os.open(name, FILE_FLAGS, dir_fd=step)
        finally:
            os.close(step)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError("is no regular file")
        if is_of_kernel(status.st_dev):
            raise OSError("lies on a file system of the kernel")
    except OSError:
        os.close(descriptor)
        raise
    return descriptor, status


def open_folder(path: str, flags: int = FOLDER_FLAGS) -> int:
    """Open a folder, by default to list it; the path may hold `.` and `..`, and no link.

    Raises:
        OSError: as `open_regular`.
        ValueError: the path holds a NUL.
    """
    *steps, last = [part for part in path.split(os.sep) if part] or [os.curdir]
    descriptor = os.open(os.sep if path.startswith(os.sep) else os.curdir, _STEP_FLAGS)
    for part, of_part in (*((step, _STEP_FLAGS) for step in steps), (last, flags)):
        try:
            following = os.open(part, of_part, dir_fd=descriptor)
        finally:
            os.close(descriptor)
        descriptor = following
    return descriptor


def without_links(path: str) -> str:
    """Return a path as it is if no part of it is a link, else where it leads."""
    real = os.path.realpath(path)
    return path if real == os.path.abspath(path) else real


def is_of_kernel(device: int) -> bool:
    """Say whether a device (`st_dev`) is a file system by which the kernel answers, such as /proc."""
    return device in _kernel_devices()


@cache
def _kernel_devices() -> frozenset[int]:
    """Return the devices of all such file systems; none where the system does not list them (no Linux)."""
    try:
        with open("/proc/self/mountinfo", encoding="utf-8", errors="surrogateescape") as mounts:
            lines = mounts.read().splitlines()
    except OSError:
        return frozenset()
    devices = set()
    for line in lines:
        # "36 35 98:0 /root /mount options [tags ...] - type source options" (proc(5))
        mount, _, rest = line.partition(" - ")
        major, _, minor = mount.split(" ")[2].partition(":")
        if rest.partition(" ")[0] in _KERNEL_TYPES:
            devices.add(os.makedev(int(major), int(minor)))
    return frozenset(devices)
