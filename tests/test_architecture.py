"""The house that docs/architecture.md draws is the one that stands."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
PAGE = (CHECKOUT / "docs" / "architecture.md").read_text(encoding="utf-8")


def test_the_page_draws_every_room_in_the_order_of_the_layers() -> None:
    """Rooms of one layer may stand in any order."""
    [contract] = tomllib.loads((CHECKOUT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "importlinter"
    ]["contracts"]
    layers = [{name.removeprefix("ingest.") for name in layer.split(" | ")} for layer in contract["layers"]]
    folders = {path.parent.name for path in (CHECKOUT / "ingest").glob("*/__init__.py")}
    assert folders <= set().union(*layers)
    assert "ignore_imports" not in contract
    drawn = [name for name in re.findall(r"^ (\w+)  ", PAGE, re.M) if name in folders]
    assert sorted(drawn) == sorted(folders)
    depth = {name: number for number, layer in enumerate(layers) for name in layer}
    assert [depth[name] for name in drawn] == sorted(depth[name] for name in drawn)


def test_no_room_is_over_a_quarter_of_the_code() -> None:
    """A room that grows beyond that wants a door in the middle."""
    lines = Counter[str]()
    for path in (CHECKOUT / "ingest").rglob("*.py"):
        lines[path.relative_to(CHECKOUT / "ingest").parts[0]] += path.read_text(encoding="utf-8").count("\n")
    room, most = lines.most_common(1)[0]
    assert most <= lines.total() / 4, f"ingest/{room} has {most} of {lines.total()} lines"


def test_every_path_on_the_page_is_there() -> None:
    """The walks lead to files that stand."""
    named = set(re.findall(r"`((?:ingest|queries|tests|docs|migrations)/[\w./-]*)`", PAGE))
    assert len(named) > 20
    assert {name for name in named if "NAME" not in name and not (CHECKOUT / name).exists()} == set()
