"""Put results into the document: `python -m benchmarks.report`.

The results of `python -m benchmarks --json docs/performance.json` and of `python -m benchmarks.capacity` go
between the marks of docs/performance.md and docs/scale-out.md and into the chart, so that no figure is copied
by hand.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

from benchmarks.data import CHECKOUT
from benchmarks.table import table

RESULTS: Final = CHECKOUT / "docs" / "performance.json"
DOCUMENTS: Final = (CHECKOUT / "docs" / "performance.md", CHECKOUT / "docs" / "scale-out.md")
CHART: Final = CHECKOUT / "docs" / "performance.svg"
_MARK: Final = re.compile(r"(<!-- results: ([\w-]+) -->\n).*?(<!-- end -->)", re.S)
_COMPARED: Final = {
    "import": "xbuf-ingest",
    "rough": "rough pipeline",
    "by line": "line by line",
    "analyzer": "analyzer, no database",
}


def main() -> None:
    """Write the documents and the chart."""
    results = read_results(RESULTS)
    for document in DOCUMENTS:
        document.write_text(filled(document.read_text(encoding="utf-8"), results), encoding="utf-8")
    CHART.write_text(chart(results), encoding="utf-8")


def read_results(path: Path) -> dict[str, dict[str, Any]]:
    """Return the tables of a results file by name."""
    results: dict[str, dict[str, Any]] = json.loads(path.read_text(encoding="utf-8"))
    return results


def filled(text: str, results: dict[str, dict[str, Any]]) -> str:
    """Return the document with the tables between its marks.

    Raises:
        KeyError: a mark names a table that was not measured.
    """

    def fill(mark: re.Match[str]) -> str:
        one = results[mark[2]]
        return f"{mark[1]}{table(one['title'], one['head'], one['rows'])}\n*{one['machine']}*\n{mark[3]}"

    return _MARK.sub(fill, text)


def chart(results: dict[str, dict[str, Any]]) -> str:
    """Draw the comparisons and the growth."""
    from benchmarks.chart import Points, draw  # matplotlib takes 0.5 s, which the documents do without

    throughput = results["throughput"]
    groups: dict[str, dict[str, float]] = {}
    for row in throughput["rows"]:
        cells = dict(zip(throughput["head"], row, strict=True))
        groups[str(cells["data"])] = {
            words: cells[f"{name} s"] for name, words in _COMPARED.items() if cells[f"{name} s"]
        }
    growth = [
        Points(words, tuple((row[1], row[2]) for row in results[name]["rows"]))
        for name, words in (("scaling_one", "one dump"), ("scaling_many", "many dumps"))
    ]
    return draw(groups, growth)


if __name__ == "__main__":
    main()
