"""The version of xbuf; the build reads it from here."""

from __future__ import annotations

VERSION = "0.1.0"
