"""Find which source line an instruction comes from, and the Python stack that led there.

A value's metadata names one frame of a table of frames; each frame names the one that called it. The line
that people want is the *innermost user frame*: the innermost one that is not within a framework's own
code. A frame is the framework's if its file

* lies in `site-packages` or `dist-packages` in the folder of a package of FRAMEWORK_PACKAGES,
* lies in Python's own library (`lib/python3.N/`, outside those two folders) or is `<frozen ...>`,
* or matches a pattern of the environment variable XBUF_FRAMEWORK_PATHS: shell patterns for the whole file
  name, parted by `:`; one without a wildcard is a folder. `/opt/ourlib:*/third_party/*` adds two.

Where all frames are the framework's, the innermost one stands.
"""

from __future__ import annotations

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Final, NamedTuple

from ingest.hlo.records import SourceFrame

ENVIRONMENT: Final = "XBUF_FRAMEWORK_PATHS"
"""Environment variable with further patterns of framework files."""

FRAMEWORK_PACKAGES: Final = (
    "jax",
    "jaxlib",
    "flax",
    "optax",
    "haiku",
    "equinox",
    "chex",
    "orbax",
    "tensorflow",
    "tensorflow_core",
    "tensorflow_probability",
    "keras",
    "torch",
    "torch_xla",
    "torchax",
    "numpy",
)
"""Packages whose files are the framework's, not the user's."""

ARROW: Final = " ← "
"""Stands between a frame and the one that called it; inner frames come first."""

_PACKAGE: Final = r"(?:^|/)(?:site|dist)-packages/(?:{})(?:/|\.py$)"
_OWN: Final = r"^<frozen |(?:^|/)lib/python3(?:\.[0-9]+)?/(?!(?:site|dist)-packages/)"


class SourceLine(NamedTuple):
    """Where something is written; None is what is not known."""

    file: str | None
    line: int | None


class FrameworkRule:
    """Separates the framework's files from the user's."""

    def __init__(self, packages: Iterable[str] = FRAMEWORK_PACKAGES, patterns: Iterable[str] = ()) -> None:
        """Make a rule of package names and of shell patterns for whole file names."""
        choices = [_PACKAGE.format("|".join(map(re.escape, packages))), _OWN]
        for pattern in patterns:
            if not any(mark in pattern for mark in "*?["):
                pattern = pattern.rstrip("/") + "/*"
            choices.append(fnmatch.translate(pattern))
        self._search = re.compile("|".join(choices)).search
        self._known: dict[str, bool] = {}

    @classmethod
    def from_environment(cls) -> FrameworkRule:
        """Make the default rule with the patterns of XBUF_FRAMEWORK_PATHS."""
        return cls(patterns=[part for part in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if part])

    def __call__(self, file: str | None) -> bool:
        """Return whether a file is the framework's; a frame without a file counts as such."""
        if file is None:
            return True
        known = self._known.get(file)
        if known is None:
            known = self._known[file] = self._search(file.replace("\\", "/")) is not None
        return known


class Stacks:
    """The Python stacks of a module, by the id of their innermost frame."""

    def __init__(self, frames: Iterable[SourceFrame], is_framework: FrameworkRule | None = None) -> None:
        """Take the frames of one module; the rule is that of the environment if none is given."""
        self._frames = {frame.frame_id: frame for frame in frames}
        self._is_framework = is_framework or FrameworkRule.from_environment()
        self._user_frames: dict[int, SourceFrame | None] = {}

    def stack(self, frame_id: int | None) -> tuple[SourceFrame, ...]:
        """Return a stack, innermost frame first (reversed it is outermost first); () for an unknown id.

        A frame that is its own caller (in a damaged table) ends the stack.
        """
        stack: dict[int, SourceFrame] = {}
        while frame_id is not None and frame_id not in stack and frame_id in self._frames:
            frame = stack[frame_id] = self._frames[frame_id]
            frame_id = frame.parent_frame_id
        return tuple(stack.values())

    def user_frame(self, frame_id: int | None) -> SourceFrame | None:
        """Return the innermost user frame of a stack, else its innermost frame; None for an unknown id.

        Each frame is looked at once, however many stacks lead through it.
        """
        path: list[int] = []
        found: SourceFrame | None = None
        at = frame_id
        while at is not None and at in self._frames:
            if at in self._user_frames:
                found = self._user_frames[at]
                break
            self._user_frames[at] = None  # a way that comes back here finds nothing more
            path.append(at)
            frame = self._frames[at]
            if not self._is_framework(frame.file):
                found = frame
                break
            at = frame.parent_frame_id
        for at in path:
            self._user_frames[at] = found
        return found or (None if frame_id is None else self._frames.get(frame_id))

    def source(self, frame_id: int | None, file: str | None = None, line: int | None = None) -> SourceLine:
        """Return the source line of an instruction from its frame, else from what its metadata prints."""
        frame = self.user_frame(frame_id)
        if frame is None or frame.file is None:
            return SourceLine(file, line)
        return SourceLine(frame.file, frame.line)

    def sources(
        self,
        frame_ids: Sequence[int | None],
        files: Sequence[str | None],
        lines: Sequence[int | None],
    ) -> tuple[list[str | None], list[int | None]]:
        """Return the source lines of many instructions as columns of files and lines."""
        keys = [*zip(frame_ids, files, lines, strict=True)]
        distinct = {key: self.source(*key) for key in dict.fromkeys(keys)}
        found = [*map(distinct.__getitem__, keys)]
        return [file for file, _ in found], [line for _, line in found]


def format_frame(frame: SourceFrame) -> str:
    """Return a frame for people: `attention() model.py:118`.

    Of a nested function `make.<locals>.attention` only the last name is shown, of a file its name.
    """
    function = (frame.function or "?").rpartition("<locals>.")[2]
    if not function.endswith((">", "?")):
        function += "()"
    file = (frame.file or "?").replace("\\", "/").rpartition("/")[2]
    return f"{function} {file}" if frame.line is None else f"{function} {file}:{frame.line}"


def format_stack(stack: Sequence[SourceFrame]) -> str:
    """Return a stack, innermost frame first, as one line.

    For example `attention() model.py:118 ← block() model.py:140 ← train_step() train.py:52`. Frames that read
    alike are shown once: JAX repeats the line of a loop for the loop, its body and what the body calls.
    """
    return ARROW.join(text for text, _ in groupby(map(format_frame, stack)))
