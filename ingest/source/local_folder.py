"""List one folder of this machine for a search, under the rules for links."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import Final, Protocol

from ingest.display import display
from ingest.source.local import FILE_FLAGS, open_regular, version_of
from ingest.source.source import Status

_OUTSIDE: Final = "outside of the directories given; give that one too, or use --follow-symlinks"


class Reports(Protocol):
    """Takes what a search could not look at."""

    def problem(self, path: str, message: str) -> None:
        """Take what keeps a dump out."""

    def leave_out(self, path: str, message: str) -> None:
        """Take a directory that is not entered."""


class LocalFolder:
    """A folder that is open: its files, those that links lead to among them.

    Attributes:
        path: absolute, without links.
        folders: the folders in it, known once its files were listed.
        links: where the files lead that are links: paths without links.
    """

    source = None

    def __init__(
        self,
        path: str,
        descriptor: int,
        may_follow: Callable[[str], bool],
        matters: Callable[[str], bool],
        reports: Reports,
    ) -> None:
        """Take an open folder; it stays the caller's to close.

        Args:
            path: absolute, without links.
            descriptor: the folder.
            may_follow: says whether a link may be followed that leads to a path without links.
            matters: says of a name whether a problem with that file is worth a report.
            reports: takes problems.
        """
        self.path = path
        self.folders: list[str] = []
        self.links: dict[str, str] = {}
        self._descriptor = descriptor
        self._may_follow = may_follow
        self._matters = matters
        self._reports = reports

    def files(self) -> list[os.DirEntry[str]]:
        """Return regular files, and links to such that may be followed.

        Raises:
            OSError: the folder cannot be listed.
        """
        with os.scandir(self._descriptor) as entries:
            return [
                entry
                for entry in entries
                if entry.is_file(follow_symlinks=False) or self._leads_to_file(entry)
            ]

    def path_of(self, name: str) -> str:
        """Return where a file can be opened."""
        return self.links.get(name) or os.path.join(self.path, name)

    def status(self, entry: os.DirEntry[str]) -> Status | None:
        """Look at a file; None where it is gone, or something else took its place since the listing.

        Raises:
            PermissionError: the folder refuses, for all its files.
            OSError: it cannot be looked at.
        """
        try:
            if self.links and (link := self.links.get(entry.name)):
                status = os.stat(link, follow_symlinks=False)
            else:
                status = entry.stat(follow_symlinks=False)
        except FileNotFoundError:
            return None
        return version_of(status)

    def start(self, name: str, size: int) -> bytes | None:
        """Return the first bytes of a file as they lie there; None where it is gone, or no file any more.

        Raises:
            OSError: it cannot be opened, or read.
        """
        try:
            if name in self.links:
                descriptor, _ = open_regular(self.links[name])
            else:
                descriptor = os.open(name, FILE_FLAGS, dir_fd=self._descriptor)
        except FileNotFoundError:
            return None
        try:
            return os.read(descriptor, size) if stat.S_ISREG(os.fstat(descriptor).st_mode) else None
        finally:
            os.close(descriptor)

    def _leads_to_file(self, entry: os.DirEntry[str]) -> bool:
        """Sort out what is no regular file; say whether it is a link to one that may be followed."""
        if entry.is_dir(follow_symlinks=False):
            self.folders.append(os.path.join(self.path, entry.name))
            return False
        if not entry.is_symlink():
            return False
        path = os.path.join(self.path, entry.name)
        try:
            real = os.path.realpath(path, strict=True)
            mode = os.stat(real, follow_symlinks=False).st_mode
        except PermissionError:
            self._reports.problem(path, "is a link to a place that must not be looked at")
            return False
        except OSError as error:
            if self._matters(entry.name):
                self._reports.problem(path, f"is a link that leads nowhere: {error.strerror}")
            return False
        may_follow = self._may_follow(real)
        if stat.S_ISDIR(mode):
            if may_follow:
                # By its own path, so that a set's directory does not depend on which way is walked first.
                self.folders.append(real)
            else:
                self._reports.leave_out(path, f"is a link to {display(real)}, {_OUTSIDE}")
            return False
        if not stat.S_ISREG(mode):
            return False
        if not may_follow:
            if self._matters(entry.name):
                self._reports.problem(path, f"is a link to {display(real)}, {_OUTSIDE}")
            return False
        self.links[entry.name] = real
        return True
