"""Saved queries: their files, how they run, what they print, and how a database carries them."""
