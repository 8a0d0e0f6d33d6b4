"""XLA_FLAGS is read as XLA reads it, and what is added wins."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.errors import UsageError
from ingest.launch.flags import dump_directory, flags_in, with_dump_flags


@pytest.mark.parametrize(
    ("flags", "directory"),
    [
        ("", None),
        ("--xla_cpu_enable_fast_math=false", None),
        ("--xla_dump_to=/a/b", "/a/b"),
        ("--xla_dump_to=/a --xla_dump_to=/b\t--xla_x", "/b"),
        ("--xla_dump_to='/with space'", "/with space"),
        (r"--xla_dump_to='/a\b'", r"/a\b"),
        (r'--xla_dump_to="/a \"b\" \\c" --xla_x', r'/a "b" \c'),
        ('--xla_dump_to="/not closed', "/not closed"),
        ("--xla_x='--xla_dump_to=/quoted'", None),
        ("--xla_dump_to=", None),
        ("--xla_dump_to_other=/a", None),
    ],
)
def test_the_directory_is_the_one_that_xla_takes(flags: str, directory: str | None) -> None:
    """Of two alike the later one; quotes and backslashes as in XLA's parse_flags_from_env."""
    assert dump_directory(flags) == directory


@pytest.mark.parametrize("place", ["-", "sponge"])
def test_what_is_no_directory_is_refused(place: str) -> None:
    """Nothing could be imported from stdout."""
    with pytest.raises(UsageError, match="is no directory"):
        dump_directory(f"--xla_dump_to={place}")


@pytest.mark.parametrize("directory", ["/plain", "/with space", '/"a" b', "/back\\slash x", "'quoted'"])
def test_an_added_directory_is_read_back(directory: str) -> None:
    """Whatever its name."""
    flags = with_dump_flags("--xla_x=1", directory)
    assert flags.startswith("--xla_x=1 ")
    assert dump_directory(flags) == directory


def test_flags_of_the_user_stay() -> None:
    """Text, protobuf and the choice of modules are added behind them."""
    assert with_dump_flags("--xla_dump_to=mine", "mine", "train .*") == (
        "--xla_dump_to=mine --xla_dump_hlo_as_text=true --xla_dump_hlo_as_proto=true"
        ' --xla_dump_hlo_module_re="train .*"'
    )


def test_a_file_of_flags_is_read(tmp_path: Path) -> None:
    """XLA takes a text that begins with no dash for its name."""
    file = tmp_path / "flags"
    file.write_text("--xla_x=1\n--xla_dump_to=/a\n")
    assert dump_directory(flags_in(str(file))) == "/a"
    assert flags_in("  --xla_x=1 ") == "--xla_x=1"
    assert flags_in(None) == ""
    with pytest.raises(UsageError, match="takes it for a file of flags"):
        flags_in(str(tmp_path / "missing"))
