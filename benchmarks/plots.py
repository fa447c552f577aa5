"""The plots in `docs/benchmarks.md`: Nexmark's saved figures in `benchmarks/results.json`, as SVG.

Each bar and line has an id in the SVG, such as `q7-operators` and `q11-operators-50`, so that a test can compare the
plot with the saved figures.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from streamproof.reference.core.errors import BadInput, import_extra

from .nexmark.nexmark import FORMS, named
from .nexmark.queries import QUERIES
from .nexmark.rates import PERCENTILES
from .nexmark.run import OPERATORS
from .production.production import UNIT
from .table import RESULTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FOLDER = Path(__file__).parents[1] / "docs" / "figures"
RECORDS, LATENCY = "nexmark_records.svg", "nexmark_latency.svg"
NEXMARK, RATES, LATENCIES = "nexmark", "records a CPU second", "latency"
NAMES: Mapping[str, str] = {**FORMS, OPERATORS: "streamproof's operators"}
COLOURS: Mapping[str, str] = dict(
    zip(FORMS, ("#3f51b5", "#e5731a", "#2e8b57", "#c9a400", "#8e44ad", "#222222", "#d8447c"), strict=True)
)
STYLES: Mapping[int, str] = dict(zip(PERCENTILES, ("-", "--", ":"), strict=True))
PLACE = {"svg.fonttype": "none", "svg.hashsalt": "streamproof", "font.size": 9}
"""Settings with which an SVG keeps texts as text, and has the same ids for the same figures."""


def write(files: Sequence[Path]) -> None:
    """Add Nexmark's figures from runs' JSON files to the saved figures, and draw the plots again.

    Raises:
        BadInput: A file isn't the output of `--json` at full size.
        MissingTool: matplotlib isn't installed.
    """
    import_extra("matplotlib", "docs", "python -m benchmarks plots")
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    for file in files:
        take(results.setdefault(NEXMARK, {RATES: {}, LATENCIES: {}}), _read(file))
    if files:
        RESULTS.write_text(json.dumps(results, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    draw(results[NEXMARK], FOLDER)


def _read(file: Path) -> Sequence[Mapping[str, Any]]:
    try:
        run = json.loads(file.read_text(encoding="utf-8"))
        found = [figure for benchmark in run["benchmarks"] for figure in benchmark["figures"]]
        size = run["size"]
    except (OSError, ValueError, KeyError, TypeError):
        raise BadInput(f"{file}: can't be read: name a file that `--json` has written") from None
    if size != "full":
        raise BadInput(f"{file}: its sizes are {size}, so its figures have no meaning: measure with --size full")
    return found


def take(saved: Mapping[str, Any], figures: Sequence[Mapping[str, Any]]) -> None:
    """Add a run's figures to the saved figures, replacing older ones.

    Args:
        saved: The records per CPU second by query and form, and the latencies (s) by query, form, rate and percentile.
        figures: What was measured.
    """
    forms = {named(query, form): (query, form) for query in QUERIES for form in FORMS}
    latencies: dict[tuple[str, str], dict[str, dict[str, float]]] = {}
    for figure in figures:
        at = re.fullmatch(r"(.*) at ([\d,]+) events/s: latency of (\d+) % at most", figure["name"])
        if at is not None and at[1] in forms:
            of_form = latencies.setdefault(forms[at[1]], {})
            of_form.setdefault(at[2].replace(",", ""), {})[at[3]] = round(figure["median"], 3)
        elif figure["unit"] == UNIT and figure["name"] in forms:
            query, form = forms[figure["name"]]
            saved[RATES].setdefault(query, {})[form] = round(figure["median"])
    # Replace all rates of a form, because one line must not connect points of two runs.
    for (query, form), of_form in latencies.items():
        saved[LATENCIES].setdefault(query, {})[form] = of_form


def draw(saved: Mapping[str, Any], folder: Path) -> None:
    """Draw the plots into a folder."""
    import matplotlib

    folder.mkdir(exist_ok=True)
    with matplotlib.rc_context(PLACE):
        for name, figure in ((RECORDS, _bars(saved[RATES])), (LATENCY, _lines(saved[LATENCIES]))):
            figure.savefig(folder / name, format="svg", metadata={"Date": None}, bbox_inches="tight")


def _figure(width: float, height: float, panels: int) -> tuple[Figure, Sequence[Axes]]:
    from matplotlib.figure import Figure

    figure = Figure((width, height), facecolor="white")
    axes: Sequence[Axes] = [*figure.subplots(1, panels, squeeze=False)[0]]
    for one in axes:
        one.spines[["top", "right"]].set_visible(False)
    return figure, axes


def _bars(rates: Mapping[str, Mapping[str, float]]) -> Figure:
    """Draw the records per CPU second of each query as bars, one bar per form."""
    queries = [query for query in QUERIES if query in rates]
    rows = [(query, form) for query in queries for form in FORMS if form in rates[query]]
    figure, (axes,) = _figure(7.5, 0.6 + 0.22 * len(rows) + 0.12 * len(queries), 1)
    middles = []
    place = 0.0
    for query in queries:
        of_query = [form for form in FORMS if form in rates[query]]
        middles.append(place + (len(of_query) - 1) / 2)
        for form in of_query:
            rate = rates[query][form]
            (bar,) = axes.barh(place, rate, 0.9, color=COLOURS[form], label=NAMES[form])
            bar.set_gid(f"{query}-{form}")
            axes.text(rate, place, f" {rate:,.0f}", va="center")
            place += 1
        place += 0.7
    axes.set_yticks(middles, queries)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("records a CPU second: longer is better")
    # The legend names each form once, by its first bar.
    bars, names = axes.get_legend_handles_labels()
    first = {name: bars[names.index(name)] for name in NAMES.values() if name in names}
    axes.legend([*first.values()], [*first], loc="lower center", bbox_to_anchor=(0.5, 1), ncols=3, frameon=False)
    return figure


def _lines(latencies: Mapping[str, Mapping[str, Mapping[str, Mapping[str, float]]]]) -> Figure:
    """Draw the latencies of each query over the rates, one line per form and percentile."""
    queries = [query for query in QUERIES if query in latencies]
    figure, panels = _figure(7.5, 3.2, len(queries))
    for axes, query in zip(panels, queries, strict=True):
        for form in (form for form in FORMS if form in latencies[query]):
            of_form = latencies[query][form]
            rates = sorted(of_form, key=int)
            for percent, style in STYLES.items():
                seconds = [of_form[rate][str(percent)] for rate in rates]
                name = f"{NAMES[form]}, {percent} %"
                (line,) = axes.plot([*map(int, rates)], seconds, style, marker=".", color=COLOURS[form], label=name)
                line.set_gid(f"{query}-{form}-{percent}")
        every = sorted({int(rate) for of_form in latencies[query].values() for rate in of_form})
        axes.set_xscale("log")
        axes.set_xticks(every, [f"{rate:,}" for rate in every])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set(title=query, xlabel="events a second", ylabel="latency (s): lower is better")
    panels[0].legend(frameon=False, fontsize=7)
    return figure
