"""Find the dump sets below directories and next to files, without reading them.

Named members are known by their names alone; only a file under a name that is neither a member's nor XLA's
is opened, for its first line. A directory of 100,000 members costs its listing, one stat per member and
under 2 µs of work each.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Container, Sequence
from operator import attrgetter, itemgetter
from typing import TYPE_CHECKING

from ingest.arguments import Paths, as_paths
from ingest.display import display
from ingest.dump.grouping import Grouping
from ingest.dump.names import split_member
from ingest.dump.sets import Discovery, DumpSet, Problem
from ingest.errors import UsageError
from ingest.source.address import parse_url
from ingest.source.kinds import is_elsewhere, is_url
from ingest.source.local import is_of_kernel, open_folder
from ingest.source.local_folder import LocalFolder
from ingest.source.source import APART, Terms

if TYPE_CHECKING:
    from ingest.dump.elsewhere import Listings


def discover(
    paths: Paths,
    *,
    known: Container[tuple[str, str]] = frozenset(),
    proto_alone: bool = False,
    follow_symlinks: bool = False,
    listings: Listings | None = None,
    terms: Terms = APART,
) -> Discovery:
    """Find the dump sets in directories, at any depth, of files given by name, in archives and at URLs.

    A file given by name brings the other members of its set. A directory may be given by a link; links in it
    are followed where they lead to below one of the directories given (those of the files given included),
    others with `follow_symlinks` only. Each directory is entered once. What is no regular file, or lies on a
    file system of the kernel such as /proc, is never opened.

    Args:
        paths: directories and files, one or several; what they have in common counts once.
        known: (directory, file name), both as `display` shows them, of files that were primary files
            before; they are not opened to look at their first line.
        proto_alone: also return sets of a protobuf without a primary file (those of other texts without one
            are problems), and each profile as a set with one member, of the role `profile`.
        follow_symlinks: follow links wherever they lead.
        listings: what is known of archives; takes what is found out.
        terms: on which URLs are read.

    Raises:
        TypeError: `paths` are no paths.
        UsageError: a path does not exist.
        SourceError: what a URL names cannot be read.
    """
    roots: list[str] = []
    named: dict[str, set[str]] = {}
    problems: list[Problem] = []
    elsewhere: list[str] = []
    for text in as_paths(paths):
        if is_elsewhere(text):
            elsewhere.append(text)
            continue
        mode = _mode(text)
        if stat.S_ISDIR(mode):
            roots.append(os.path.realpath(text))
        elif stat.S_ISREG(mode):
            directory, name = os.path.split(text)
            named.setdefault(os.path.realpath(directory or os.curdir), set()).add(name)
        else:
            problems.append(Problem(display(text), "is no regular file; save its content to a file first"))
    search = _Search(known, proto_alone, None if follow_symlinks else (*roots, *named))
    search.problems += problems
    search.walk(roots, named)
    for directory in sorted(named):
        if directory not in search.entered_paths:
            search.enter(directory, named[directory], only_named=True)
    if elsewhere:
        # Imported here: what reads archives takes longer to import than most searches take.
        from ingest.dump.elsewhere import Elsewhere
        from ingest.dump.elsewhere import Listings as NoListings

        far = Elsewhere(listings or NoListings(), terms)
        far.add(elsewhere)
        far.find(known, proto_alone)
        search.sets += far.sets
        search.problems += far.problems
    by_path = attrgetter("path")
    return Discovery(
        tuple(sorted(search.sets)),
        tuple(sorted(search.problems, key=by_path)),
        tuple(sorted(search.left_out, key=by_path)),
    )


def check_paths(paths: Sequence[str]) -> None:
    """Raise UsageError, as `discover` does, when a path does not exist, or a URL is none."""
    for path in paths:
        if is_url(path):
            parse_url(path)
        else:
            _mode(path)


def _mode(path: str) -> int:
    """Return the mode of a path given on the command line."""
    try:
        return os.stat(path).st_mode
    except FileNotFoundError:
        raise UsageError(f"{display(path) or repr(path)}: no such file or directory") from None
    except OSError as error:
        raise UsageError(f"{display(path)}: cannot be looked at: {error.strerror}") from error
    except ValueError as error:
        raise UsageError(f"{display(path)}: is no path: {error}") from error


class _Search:
    """What a search has found so far."""

    def __init__(
        self, known: Container[tuple[str, str]], proto_alone: bool, trees: Sequence[str] | None
    ) -> None:
        self.sets: list[DumpSet] = []
        self.problems: list[Problem] = []
        self.left_out: list[Problem] = []
        self._trees = trees
        """Where links may lead; None for everywhere."""
        self.entered_paths: set[str] = set()
        self._entered: set[tuple[int, int]] = set()
        self._known = known
        self._proto_alone = proto_alone

    def problem(self, path: str, message: str) -> None:
        self.problems.append(Problem(display(path), message))

    def leave_out(self, path: str, message: str) -> None:
        self.left_out.append(Problem(display(path), message))

    def may_follow(self, path: str) -> bool:
        """Say whether a link may be followed that leads to this path, which holds no link itself."""
        trees = self._trees
        return trees is None or any(path == tree or path.startswith(os.path.join(tree, "")) for tree in trees)

    def walk(self, roots: Sequence[str], named: dict[str, set[str]]) -> None:
        """Enter directories and all below them."""
        waiting = list(reversed(roots))
        while waiting:
            directory = waiting.pop()
            waiting += self.enter(directory, named.get(directory, frozenset()), only_named=False)

    def enter(self, directory: str, named: Collection[str], *, only_named: bool) -> list[str]:
        """Collect the sets of one directory and return the directories in it.

        `named` are files given by name; with `only_named` just their sets are collected.
        """
        try:
            descriptor = open_folder(directory)
        except OSError as error:
            self._cannot_enter(directory, error)
            return []
        try:
            status = os.fstat(descriptor)
            if is_of_kernel(status.st_dev):
                self.leave_out(directory, "lies on a file system of the kernel, which holds no files")
                return []
            identity = (status.st_dev, status.st_ino)
            if identity in self._entered and not only_named:
                return []
            self._entered.add(identity)
            self.entered_paths.add(directory)
            folder = LocalFolder(
                directory,
                descriptor,
                self.may_follow,
                lambda name: name in named or split_member(name) is not None,
                self,
            )
            grouping = Grouping(folder, named, self.problem)
            grouping.read()
            # By plain strings here, so that the search finds them in order: to sort tuples takes 0.15 s of
            # 100,000 sets. Not before each file is looked at: in the directory's order that is faster.
            found = grouping.sets(self._known, self._proto_alone, only_named)
            self.sets += sorted(found, key=itemgetter(1))
            return [] if only_named else folder.folders
        except OSError as error:
            self._cannot_enter(directory, error)
            return []
        finally:
            os.close(descriptor)

    def _cannot_enter(self, directory: str, error: OSError) -> None:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            self.problem(directory, "vanished while it was searched; import it again")
        else:
            self.problem(
                directory, f"cannot be searched: {error.strerror}; change its permissions or leave it out"
            )
