"""Counterexamples as text, and as a pytest test to paste."""

from __future__ import annotations

import platform
from collections import defaultdict
from collections.abc import Container
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

from ...reference.core.history import History
from ...reference.core.records import Change, Dropped, Output
from ..generators.columns.model import JobHistory
from ..outcomes.notation import both_shown
from ..outcomes.outcomes import Grain, Outcome, are_same, row_order, sorted_rows
from ..system.installed.requirements import installed
from ..system.visible import visible
from ..witnesses.run_options import RunOptions
from .counterexample import ALONE, Counterexample
from .tables import arrivals_table, results_table
from .timeline import timeline


@cache  # cached, because reading five packages' versions is slow
def versions() -> str:
    """Return the versions of streamproof, its libraries and Python, as text."""
    packages = ", ".join(
        f"{name} {installed(name)}" for name in ("pyspark", "duckdb", "hypothesis", "pandas", "pyarrow")
    )
    return f"streamproof {version('streamproof')}, {packages}, Python {platform.python_version()}"


def counterexample_text(counterexample: Counterexample[Any]) -> str:
    """Return a counterexample as text: the verdict, the history, both outcomes side by side, seed and versions."""
    if counterexample.subject == "job":
        return visible("\n".join([counterexample.sentence, *_of_job(counterexample)]), lines=True)
    return "\n".join([counterexample.sentence, *_of_operator(counterexample), ""])


def _of_operator(one: Counterexample[History]) -> list[str]:
    lines = [""]
    if not one.confirmed:
        lines += [f"not confirmed: {one.unconfirmed or ALONE}. A test would prove nothing, so there is none.", ""]
    if one.original is not None:
        lines += ["Original:", *("    " + line for line in one.original.to_text().splitlines()), ""]
    lines += ["History:", *("    " + line for line in one.history.to_text().splitlines()), ""]
    lines += side_by_side(one.expected, one.actual, {difference.key for difference in one.differences})
    return [*lines, "", f"Seed {one.seed}; {versions()}."]


def _of_job(one: Counterexample[JobHistory]) -> list[str]:
    run = one.way or RunOptions()
    history = one.history.first(one.history.used) if one.is_of_run else one.history
    drawn = timeline(history, one.sources, one.watermarks)
    arrives = arrivals_table(history, one.sources, one.watermarks, processing_time=run.processing_time)
    compared = "content of the sink at the end" if run.is_sink else f"mode {run.mode}"
    lines = ["", f"Expected by {one.expected[0]}, and emitted by {one.actual[0]}:", *results_table(one.rows)]
    lines += ["", "What arrives:", *arrives, "", *drawn, *[""] * bool(drawn)]
    return [*lines, f"Seed {one.seed}, {compared}, trigger {run.trigger}; {versions()}."]


def side_by_side(left: tuple[str, Outcome], right: tuple[str, Outcome], keys: Container[str | None]) -> list[str]:
    """Return two outcomes in two columns, by batch (or arrival) and key; differing lines are marked.

    In each batch or arrival, changes come before dropped records. A difference in dropped records is marked only if
    both witnesses report dropped records.

    Args:
        left: The name of a witness, and its outcome.
        right: The name of another witness, and its outcome.
        keys: The keys to display.
    """
    rows = compared_rows(left[1], right[1], keys)
    by_step = Grain.END not in (left[1].grain, right[1].grain)
    width = max([len(left[0]), *(len(row.expected) for row in rows)])
    lines = [f"    {'':10} {left[0]:{width}}   {right[0]}"]
    before: tuple[str, str | None] | None = None
    for row in rows:
        head = "" if by_step and (row.when, row.key) == before else row.when
        lines.append(f"  {'≠' if row.differ else ' '} {head:10} {row.expected:{width}}   {row.actual}")
        before = row.when, row.key
    return [line.rstrip() for line in lines]


@dataclass(frozen=True)
class ComparedLine:
    """A line of two outcomes side by side.

    Attributes:
        when: The batch or the arrival, as `batch 0`; or `at the end`.
        expected: The first outcome, as text; empty for nothing.
        actual: The other outcome, as text.
        differ: Whether `expected` and `actual` differ.
        key: The emitted key, for an operator.
    """

    when: str
    expected: str
    actual: str
    differ: bool
    key: str | None = None


def compared_rows(left: Outcome, right: Outcome, keys: Container[str | None]) -> list[ComparedLine]:
    """Return the lines of `side_by_side`.

    Args:
        left: An outcome.
        right: Another outcome.
        keys: The keys to display.
    """
    rows: list[ComparedLine] = []
    outcomes = (left, right)
    if Grain.END in (left.grain, right.grain):
        results = [dict(sorted_rows(outcome.result)) for outcome in outcomes]
        for at in sorted((at for at in results[0].keys() | results[1].keys() if at[0] in keys), key=row_order):
            rows_there = [result.get(at, []) for result in results]
            differ = not all(are_same(*pair) for pair in zip_longest(*rows_there))
            rows.append(
                ComparedLine("at the end", *both_shown(rows_there[0], rows_there[1], nothing=""), differ, at[0])
            )
    else:
        by_arrival = Grain.BATCH not in (left.grain, right.grain)
        sides: list[dict[tuple[int, str | None, type], list[Output]]] = [defaultdict(list), defaultdict(list)]
        for side, outcome in zip(sides, outcomes, strict=True):
            for arrival, batch, output in outcome.entries:
                if output.key in keys:
                    side[arrival if by_arrival else batch, output.key, type(output)].append(output)
        emitted_of = {(number, key) for side in sides for number, key, _ in side}
        # Sort None before every key, even before the empty text.
        for number, key in sorted(emitted_of, key=lambda step: (step[0], step[1] is not None, step[1] or "")):
            when = f"{'arrival' if by_arrival else 'batch'} {number}"
            for kind, compared in ((Change, True), (Dropped, all(outcome.knows_dropped for outcome in outcomes))):
                ours, theirs = (side.get((number, key, kind), []) for side in sides)
                for pair in zip_longest(ours, theirs):
                    differ = compared and not are_same(*pair)
                    rows.append(ComparedLine(when, *both_shown(*pair, nothing=""), differ, key))
    return rows


def test_to_paste(counterexample: Counterexample[History]) -> str | None:
    """Return a pytest test that fails while the history breaks the law; None if the counterexample isn't confirmed."""
    if not counterexample.confirmed:
        return None
    arguments = [repr(counterexample.law), "HISTORY"]
    texts = {"HISTORY": counterexample.history.to_text()}
    if counterexample.original is not None:
        texts["ORIGINAL"] = counterexample.original.to_text()
        arguments.append("original=ORIGINAL")
    if counterexample.subject != "spark":
        arguments.append(f"subject={counterexample.subject!r}")
    if counterexample.mutant is not None:
        arguments.append(f"mutant={counterexample.mutant!r}")
    if counterexample.way is not None:
        arguments.append(f"way={counterexample.way.to_json()!r}")
    # A raw string with three quotes can hold any history: its text is ASCII, and JSON never has three quotes in a row.
    written = "".join(f'{name} = r"""\n{text}"""\n\n' for name, text in texts.items())
    return (
        "from streamproof import assert_holds\n\n"
        f"{written}\n"
        f"def test_{counterexample.name.replace('-', '_')}() -> None:\n"
        f"    assert_holds({', '.join(arguments)})\n"
    )
