"""What a build adds: manual pages made of the commands, and the address of the repository."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface


class ManualPages(BuildHookInterface):  # type: ignore[type-arg]
    """Writes the pages before a wheel is built, and removes them after."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the pages; an editable install has none."""
        if version == "editable":
            return
        sys.path.insert(0, self.root)
        try:
            from ingest.cli.manual import as_man, pages
        finally:
            sys.path.remove(self.root)
        self._folder = tempfile.TemporaryDirectory()
        for page in pages():
            path = Path(self._folder.name, page.file_name)
            path.write_text(as_man(page), encoding="utf-8")
            build_data["shared_data"][str(path)] = f"share/man/man1/{page.file_name}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was written."""
        if version != "editable":
            self._folder.cleanup()


class ProjectAddress(MetadataHookInterface):
    """Names the repository in XBUF_URL; a build without it names none, so that a fork names itself."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Put in the URLs."""
        address = os.environ.get("XBUF_URL", "").rstrip("/")
        if address:
            metadata["urls"] = {"Source": address, "Issues": f"{address}/issues"}
