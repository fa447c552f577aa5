from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from paths import ROOT

from benchmarks import plots

SVG = "{http://www.w3.org/2000/svg}"


def points_of(file: Path) -> tuple[dict[str, np.ndarray[Any, Any]], list[str]]:
    """Return the corners of each bar and line of an SVG, by its id, and all of its texts."""
    tree = ET.parse(file)
    found = {}
    for group in tree.iter(f"{SVG}g"):
        path = group.find(f"{SVG}path")
        if re.match(r"q\d+-", group.get("id", "")) and path is not None:
            numbers = re.findall(r"-?[\d.]+", path.get("d", ""))
            found[group.get("id", "")] = np.array(numbers, float).reshape(-1, 2)
    return found, [text.text or "" for text in tree.iter(f"{SVG}text")]


def differing(saved: Mapping[str, Any], folder: Path) -> list[str]:
    """Return the bars and lines of the plots in a folder that aren't those of the saved figures."""
    bars, texts = points_of(folder / "nexmark_records.svg")
    rates = {
        f"{query}-{form}": rate for query, of in saved["records a CPU second"].items() for form, rate in of.items()
    }
    wrong = sorted(bars.keys() ^ rates.keys())
    wrong += [name for name, rate in rates.items() if f"{rate:,.0f}" not in [text.strip() for text in texts]]
    widths = {name: np.ptp(corners[:, 0]) for name, corners in bars.items()}
    unit = max(widths.values()) / max(rates.values())
    wrong += [name for name, width in widths.items() if abs(width - unit * rates.get(name, 0)) > 0.01]

    lines, _ = points_of(folder / "nexmark_latency.svg")
    expected = {
        f"{query}-{form}-{percent}": {int(rate): of_rate[percent] for rate, of_rate in of_form.items()}
        for query, forms in saved["latency"].items()
        for form, of_form in forms.items()
        for percent in ("50", "95", "99")
    }
    wrong += sorted(lines.keys() ^ expected.keys())
    for query in saved["latency"]:
        points = [
            (name, rate, seconds, *at)
            for name, of_line in expected.items()
            if name.startswith(f"{query}-") and name in lines
            for (rate, seconds), at in zip(sorted(of_line.items()), lines[name], strict=False)
        ]
        names, ratio, seconds, x, y = zip(*points, strict=True)
        # A panel has one scale: most points are right.
        for values, places in ((np.log(ratio), x), (seconds, y)):
            slope, start = line_through(np.array(values), np.array(places))
            off = np.abs(start + slope * np.array(values) - places) > 0.01
            wrong += [name for name, is_off in zip(names, off, strict=True) if is_off]
        wrong += [name for name in expected if name in lines and len(expected[name]) != len(lines[name])]
    return list(dict.fromkeys(wrong))


def line_through(values: np.ndarray[Any, Any], places: np.ndarray[Any, Any]) -> tuple[float, float]:
    """Return the slope and the start of the line on which most points lie."""
    low = np.argsort(values)
    slopes = [
        (places[b] - places[a]) / (values[b] - values[a])
        for a, b in zip(low[: len(low) // 2], low[len(low) // 2 :], strict=False)
        if values[a] != values[b]
    ]
    slope = float(np.median(slopes))
    return slope, float(np.median(places - slope * values))


def saved() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8"))["nexmark"]
    return found


def test_the_plots_are_those_of_the_saved_figures() -> None:
    assert differing(saved(), ROOT / "docs" / "figures") == [], "run `python -m benchmarks plots`"


@pytest.mark.parametrize(
    ("path", "value", "name"),
    [
        ("records a CPU second/q7/operators", 9_999, "q7-operators"),
        ("records a CPU second/q7/spark", None, "q7-spark"),
        ("latency/q11/operators/20000/95", 9.9, "q11-operators-95"),
        ("latency/q20/spark/160000", {"50": 1.0, "95": 2.0, "99": 3.0}, "q20-spark-99"),
    ],
    ids=["another bar", "a bar less", "another latency", "one more rate"],
)
def test_a_plot_of_other_figures_differs(path: str, value: Any, name: str) -> None:
    figures = saved()
    *parents, last = path.split("/")
    place = reduce(getitem, parents, figures)
    place.pop(last, None)
    place.update({} if value is None else {last: value})
    assert name in differing(figures, ROOT / "docs" / "figures")


def test_figures_of_a_run_take_the_place_of_older_ones_and_are_drawn(
    tmp_path: Path, benchmarks: Callable[..., tuple[object, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("matplotlib", reason="the extra docs installs matplotlib")
    run = {
        "size": "full",
        "benchmarks": [
            {
                "figures": [
                    {"name": "q18: applyInPandasWithState", "unit": "records/CPU s", "median": 432.1},
                    {"name": "q18: Kafka Streams and its broker", "unit": "records/CPU s", "median": 5.0},
                    {"name": "q18, growth", "unit": "exponent", "median": 1.0},
                    {"name": "q7", "unit": "records/CPU s", "median": 50_000.4},
                    {"name": "q20 at 80,000 events/s: latency of 50 % at most", "unit": "seconds", "median": 20.12345},
                    {"name": "q20 at 80,000 events/s: latency of 95 % at most", "unit": "seconds", "median": 30.0},
                    {"name": "q20 at 80,000 events/s: latency of 99 % at most", "unit": "seconds", "median": 31.0},
                ]
            }
        ],
    }
    results, text = tmp_path / "results.json", (ROOT / "benchmarks" / "results.json").read_text(encoding="utf-8")
    results.write_text(text, encoding="utf-8")
    monkeypatch.setattr(plots, "RESULTS", results)
    monkeypatch.setattr(plots, "FOLDER", tmp_path / "figures")
    (tmp_path / "run.json").write_text(json.dumps(run))
    assert benchmarks("plots", str(tmp_path / "run.json"))[0] == 0
    before, after = json.loads(text), json.loads(results.read_text(encoding="utf-8"))
    before["nexmark"]["records a CPU second"]["q18"]["pandas"] = 432
    before["nexmark"]["records a CPU second"]["q7"]["operators"] = 50_000
    # Another run's rates are gone, those of another form stay.
    before["nexmark"]["latency"]["q20"]["operators"] = {"80000": {"50": 20.123, "95": 30.0, "99": 31.0}}
    assert after == before
    assert differing(after["nexmark"], tmp_path / "figures") == []

    run["size"] = "small"
    (tmp_path / "run.json").write_text(json.dumps(run))
    code, _, err = benchmarks("plots", str(tmp_path / "run.json"))
    assert (code, "its sizes are small" in err) == (3, True)
    code, _, err = benchmarks("plots", str(results))
    assert (code, "name a file that `--json` has written" in " ".join(err.split())) == (3, True)
