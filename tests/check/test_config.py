"""Rules of xbuf.toml and of options: what is read, and what is refused with its line and a remedy."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from ingest.check.config import Config, read_config, rule_from_option
from ingest.check.rules import Donation, Figure, Growth, Limit, NoRows, Padding
from ingest.errors import UsageError

WHOLE = """\
baseline = "memory.json"

[[limit]]
name = "fits the chip"
module = "jit_train*"
backend = "tpu"
figure = "resident"
at_most = "14 GiB"

[[limit]]
figure = "total"
at_most = 1_000

[[growth]]
figure = "peak"

[[growth]]
figure = "peak"
percent = 0.1
bytes = "64KiB"

[[padding]]
at_most = 0

[[donation]]

[[query]]
query = "padding"
parameters = { top = 5, tiling = "T(8,128)" }

[[query]]
sql = "SELECT 1"
"""


def config(tmp_path: Path, text: str) -> Config:
    path = tmp_path / "xbuf.toml"
    path.write_text(text)
    return read_config(path)


def test_every_kind_of_rule_is_read(tmp_path: Path) -> None:
    """Sizes are texts or numbers, percentages stay exact, a baseline lies beside the file."""
    read = config(tmp_path, WHOLE)
    assert read.baseline == tmp_path / "memory.json"
    assert read.rules == (
        Limit(
            name="fits the chip", module="jit_train*", backend="tpu", figure=Figure.RESIDENT, at_most=14 << 30
        ),
        Limit(figure=Figure.TOTAL, at_most=1000),
        Growth(figure=Figure.PEAK, percent=Decimal(1), bytes=1 << 20),
        Growth(figure=Figure.PEAK, percent=Decimal("0.1"), bytes=64 << 10),
        Padding(at_most=0),
        Donation(at_most=0),
        NoRows(query="padding", parameters=(("top", "5"), ("tiling", "T(8,128)"))),
        NoRows(sql="SELECT 1"),
    )


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[[limit]]\nfigure = peak\n", 2, "is no TOML"),
        ('x = "\n', 1, "is no TOML"),
        ("\nbasline = 'a'\n", 2, "'basline' is unknown; .* did you mean baseline"),
        ("[[grwoth]]\n", 1, "did you mean growth"),
        ("[growth]\nfigure = 'peak'\n", 1, r"write \[\[growth\]\]"),
        ("baseline = 3\n", 1, "baseline is a text"),
        ("baseline = 'a'\nbaseline_label = 'b=c'\n", 2, "keep one"),
        ("[[growth]]\nfigure='peak'\n[[growth]]\nfigure = 'peak'\n percnt = 2\n", 5, "did you mean percent"),
        ("[[growth]]\nfigure='peak'\n\n[[growth]]\nfigure = 'max'\n", 5, "one of peak, resident, total"),
        ("[[padding]]\nat_most = 1\n# [[limit]]\n[[limit]]\nfigure = 'peak'\n", 4, "limit needs at_most"),
        ("limit = [{figure = 'peak', at_most = 'much'}]\n", 1, "'much' is no size"),
        ("[[limit]]\nfigure = 'peak'\nat_most = -1\n", 3, "at_most is a size"),
        ("[[limit]]\nfigure = 'peak'\nat_most = true\n", 3, "at_most is a size"),
        ("[[growth]]\nfigure = 'peak'\npercent = nan\n", 3, "percent is a number"),
        ("[[growth]]\nfigure = 'peak'\npercent = true\n", 3, "percent is a number"),
        ("[[donation]]\nbackend = 'npu'\n", 2, "backend is one of cpu, gpu, tpu"),
        ("[[query]]\nname = 'x'\n", 1, "name a saved query"),
        ("[[query]]\nquery = 'a'\nsql = 'b'\n", 1, "one of both"),
        ("[[query]]\nsql = 'a'\nparameters = {top = 1}\n", 3, "only a saved query has parameters"),
        ("[[query]]\nquery = 'a'\n[query.parameters]\ntop = []\n", 3, "top is a text"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_line(tmp_path: Path, text: str, line: int, message: str) -> None:
    with pytest.raises(UsageError, match=rf"xbuf\.toml:{line}: .*{message}"):
        config(tmp_path, text)


def test_a_file_that_is_no_utf8_is_refused(tmp_path: Path) -> None:
    (tmp_path / "xbuf.toml").write_bytes(b"# ok\n# \xff\n")
    with pytest.raises(UsageError, match=r"xbuf\.toml:2: TOML is UTF-8"):
        read_config(tmp_path / "xbuf.toml")
    with pytest.raises(UsageError, match=r"none\.toml: cannot be read"):
        read_config(tmp_path / "none.toml")


def test_an_option_has_the_keys_of_the_file() -> None:
    assert rule_from_option("limit", "figure=peak, at_most=1.5MiB, module=jit_*") == Limit(
        figure=Figure.PEAK, at_most=3 << 19, module="jit_*"
    )
    assert rule_from_option("growth", "figure=total,percent=2.5%,bytes=0") == Growth(
        figure=Figure.TOTAL, percent=Decimal("2.5"), bytes=0
    )
    with pytest.raises(UsageError, match="--limit: 'peak' is not KEY=VALUE, "):
        rule_from_option("limit", "peak")
    with pytest.raises(UsageError, match="--growth: growth has no key 'most'"):
        rule_from_option("growth", "most=1")


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        (1000, 1010, False),  # one per cent exactly is not more than one per cent
        (1000, 1011, True),
        (100, 109, False),  # 9 %, but fewer bytes than the least
        (100, 110, True),
        (0, 10, True),
        (1000, 900, False),
    ],
)
def test_growth_is_more_than_a_percentage_and_no_less_than_some_bytes(
    before: int, after: int, broken: bool
) -> None:
    assert Growth(figure=Figure.PEAK, bytes=10).is_broken(before, after) is broken
