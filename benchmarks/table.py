"""The saved figures of `benchmarks/results.json` as a table; `docs/benchmarks.md` has those with a name in `main`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results.json")
PAGE = Path(__file__).parents[1] / "docs" / "benchmarks.md"
BEGIN, END = "<!-- begin: python -m benchmarks table -->\n", "<!-- end -->\n"
COLUMNS = ("figure", "measured", "target", "command")


def table(results: Mapping[str, Any], name: str = "main") -> str:
    """Return the figures that have this name as a Markdown table, those older than the present code marked with †."""
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for figure in results["figures"]:
        if name in figure:
            others = (figure[column] for column in COLUMNS[1:])
            rows.append(f"| {' | '.join(['† ' * figure['older'] + figure[name], *others])} |")
    return "\n".join([f"Machine: {results['machine']}.", "", *rows]) + "\n"


def every_figure() -> str:
    """Return the table of all saved figures."""
    return table(json.loads(RESULTS.read_text(encoding="utf-8")), "figure")


def page(text: str, results: Mapping[str, Any]) -> str:
    """Return the text of the page with the table of these results."""
    before, rest = text.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n{table(results)}\n{END}{after}"


def write() -> None:
    """Bring the page up to date."""
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), results), encoding="utf-8")
