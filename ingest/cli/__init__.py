"""Commands: thin skins over the library."""
