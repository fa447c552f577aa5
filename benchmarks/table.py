"""The saved figures of `benchmarks/results.json`, and the cells of `sinks.json`, as tables of the documentation.

`docs/benchmarks.md` shows the figures that have the field `main`. `docs/sinks.md` shows the results of `streamproof
sinks --json benchmarks/sinks.json`; all faults of a process share one column.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

RESULTS, SINKS = (Path(__file__).with_name(f"{name}.json") for name in ("results", "sinks"))
PAGE, SINKS_PAGE = (Path(__file__).parents[1] / "docs" / f"{name}.md" for name in ("benchmarks", "sinks"))
BEGIN, END = "<!-- begin: python -m benchmarks table -->\n", "<!-- end -->\n"
LETTERS = {"stuck": "S", "lost": "L", "doubled": "D", "torn": "T"}
FAULTS = {
    "zombie": ["zombie"],
    "two queries": ["two-queries"],
    "files removed": ["retention"],
    "old or no checkpoint": ["old-checkpoint", "deleted-checkpoint", "deleted-checkpoint-latest"],
}
"""The columns of faults for which no documentation guarantees a result."""
COLUMNS = ("figure", "measured", "target", "command")


def table(results: Mapping[str, Any], name: str = "main") -> str:
    """Return the figures that have the field `name` as a Markdown table; figures of older code are marked with †."""
    rows = [f"| {' | '.join(COLUMNS)} |", "|---" * len(COLUMNS) + "|"]
    for figure in results["figures"]:
        if name in figure:
            others = (figure[column] for column in COLUMNS[1:])
            rows.append(f"| {' | '.join(['† ' * figure['older'] + figure[name], *others])} |")
    return "\n".join([f"Machine: {results['machine']}.", "", *rows]) + "\n"


def every_figure() -> str:
    """Return the table of all saved figures."""
    return table(json.loads(RESULTS.read_text(encoding="utf-8")), "figure")


def sinks_table(content: Mapping[str, Any]) -> str:
    """Return the results of each sink as a Markdown table of letters; sinks with equal results share a row."""
    cells = {(cell["sink"], cell["fault"]): cell for cell in content["cells"]}
    of_process = dict.fromkeys(cell["fault"] for cell in content["cells"] if cell["of a process"])
    columns = {"a process dies": [*of_process], **FAULTS}
    rows: dict[str, list[str]] = {}
    for sink, said in content["sinks"].items():
        found = [{one for fault in faults for one in cells[sink, fault]["counts"]} for faults in columns.values()]
        letters = ["".join(letter for name, letter in LETTERS.items() if name in bad) for bad in found]
        rows.setdefault(" | ".join([said["promises"], *letters]), []).append(f"`{sink}`")
    head = [f"| sink | promises | {' | '.join(columns)} |", "|---" * (len(columns) + 2) + "|"]
    return "\n".join([*head, *(f"| {', '.join(sinks)} | {said} |" for said, sinks in rows.items())]) + "\n"


def page(text: str, made: str) -> str:
    """Return the text of a page with this table."""
    before, rest = text.split(BEGIN)
    after = rest.split(END, 1)[1]
    return f"{before}{BEGIN}\n{made}\n{END}{after}"


def pages() -> dict[Path, str]:
    """Return the updated text of each page that has a table."""
    results, sinks = (json.loads(path.read_text(encoding="utf-8")) for path in (RESULTS, SINKS))
    made = {PAGE: table(results), SINKS_PAGE: sinks_table(sinks)}
    return {path: page(path.read_text(encoding="utf-8"), one) for path, one in made.items()}


def write() -> None:
    """Update the pages."""
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
