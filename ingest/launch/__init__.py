"""A program run so that XLA dumps: its flags, the process, and what it compiled."""
