"""Folders that are the importer's alone: what lies in them is trusted, loaded, and deleted by name.

Such a folder lies near the database, where others may be allowed to write. They could put a link to another
folder in its place, or a folder of their own with work that they forged; both are refused.
"""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING, Final

from ingest.database.refusals import explain
from ingest.errors import DatabaseError

if TYPE_CHECKING:
    from pathlib import Path

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_private_folder(path: str | os.PathLike[str]) -> None:
    """Make a folder that only this user can look into, or make sure that the one that is there is such.

    Raises:
        DatabaseError: it is a link, another user's, or open to others; or the file system refuses.
    """
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass
    except OSError as error:
        raise explain(os.fspath(path), error) from error
    require_private_folder(path)


def require_private_folder(path: str | os.PathLike[str]) -> bool:
    """Make sure that a folder is this user's alone; return whether there is one.

    Raises:
        DatabaseError: it is a link, another user's, or open to others.
    """
    shown = os.fspath(path)
    try:
        descriptor = os.open(path, _FLAGS)
    except FileNotFoundError:
        return False
    except OSError as error:
        try:
            is_link = stat.S_ISLNK(os.lstat(path).st_mode)
        except OSError:
            is_link = False
        if is_link:
            raise DatabaseError(
                f"{shown}: is a link, which an import does not follow; nothing behind it was touched: remove"
                " the link"
            ) from error
        if isinstance(error, NotADirectoryError):
            raise DatabaseError(f"{shown}: is no folder; move it away") from error
        raise explain(shown, error) from error
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if status.st_uid != os.geteuid():
        raise DatabaseError(
            f"{shown}: belongs to user {status.st_uid}, who could have put anything in there; run as that"
            " user, or move the folder away"
        )
    if status.st_mode & 0o077:
        raise DatabaseError(
            f"{shown}: others may look or write into it (mode {stat.S_IMODE(status.st_mode):04o}), so what it"
            f" holds is not trusted; remove it, or if nobody else was there: chmod 700 {shown}"
        )
    return True


def replace_text(path: Path, text: str) -> None:
    """Write a text file in the place of the one that is there: a kill leaves the old one or the new one.

    Raises:
        OSError: it cannot be written.
    """
    unnamed = path.with_name(f"{path.name}.tmp")
    unnamed.write_text(text, encoding="utf-8")
    unnamed.replace(path)


def is_own_folder(path: str | os.PathLike[str]) -> bool:
    """Return whether a path is a folder, no link, of this user alone: then it may be deleted."""
    try:
        return require_private_folder(path)
    except DatabaseError:
        return False
