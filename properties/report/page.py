"""Write a report as a self-contained page of HTML, and as text."""

from __future__ import annotations

from collections.abc import Sequence

from ..checking.checked import MARKS
from ..counterexamples.text import ComparedLine
from .content import Content, Found
from .drawing import drawn, shortened, time_text
from .rendering import rendered, safe

MOST_DRAWN = 40
"""The largest number of counterexamples on the page, and of charts."""
MOST_GOALS = 100
"""The largest number of unmet coverage goals on the page."""
MOST_LINES = 120
"""The largest number of shown lines of a file."""
MOST_COMPARED = 60
"""The largest number of shown lines of a counterexample's comparison."""
MOST_RECORDS = 4
"""The largest number of records above a drawing."""
MOST_CHARACTERS = 2000
"""The largest number of shown characters of a line."""


def html(content: Content) -> str:
    """Return a report as a page of HTML, without references to other files."""
    return rendered(
        "report.html.jinja",
        content=content,
        marks=MARKS,
        MOST_DRAWN=MOST_DRAWN,
        MOST_GOALS=MOST_GOALS,
        MOST_CHARACTERS=MOST_CHARACTERS,
        drawn=drawn,
        shortened=shortened,
        shown_lines=shown_lines,
        records_of=records_of,
        files_of=_files,
    )


def text(content: Content) -> str:
    """Return a report as text."""
    lines = [f"streamproof report: {content.verdict}: {content.counts}", ""]
    lines += [*(f"Missing: {one}" for one in content.missing), ""] if content.missing else []
    for check in content.checks:
        met = ", ".join(f"{goal} {count:,}" for goal, count in check.met)
        lines += [*check.lines, *[f"  Coverage goals met: {met}."] * bool(met)]
        lines += [*(f"  {note}" for note in check.notes), ""]
    for one in content.found:
        lines += [*_found_as_text(one), ""]
    for chart in content.charts:
        lines += [f"{chart.subject}: {chart.law}. {chart.sentence}", *(f"  {step}" for step in chart.steps), ""]
    lines += [f"The same again: {content.command}"] if content.command else []
    lines += [f"{content.versions}."]
    return safe("\n".join(lines)) + "\n"


def _found_as_text(found: Found) -> list[str]:
    lines = [f"{found.subject} breaks {found.law}", found.sentence, ""]
    lines += [f"not confirmed: {found.unconfirmed}", ""] if found.unconfirmed else []
    before, shown, after = shown_lines(found.compared)
    rows = [(line, shortened(line.expected, MOST_CHARACTERS)) for line in shown]
    width = max([len(found.expected_by), *(len(expected) for _, expected in rows)])
    lines.append(f"    {'':10} {found.expected_by:{width}}   {found.actual_by}")
    lines += [f"    … {before:,} more lines, not shown"] * bool(before)
    for line, expected in rows:
        mark = "≠" if line.differ else " "
        end = "   <- first difference" if line is found.first else ""
        actual = shortened(line.actual, MOST_CHARACTERS)
        lines.append(f"  {mark} {line.when:10} {expected:{width}}   {actual}{end}".rstrip())
    lines += [f"    … {after:,} more lines, not shown"] * bool(after)
    lines += ["", *(f"  {vote.witness}: {vote.says}" for vote in found.votes)]
    for label, file in _files(found):
        lines += ["", f"{label}:", *("    " + line for line in file.splitlines())]
    lines += ["", f"Saved in {found.path}."] if found.path else []
    return [*lines, *([] if found.seed is None else [f"Seed {found.seed}."])]


def shown_lines(lines: Sequence[ComparedLine]) -> tuple[int, Sequence[ComparedLine], int]:
    """Return the lines to show, around the first difference, and the numbers of omitted lines before and after."""
    first = next((number for number, line in enumerate(lines) if line.differ), 0)
    start = max(0, min(first - MOST_COMPARED // 2, len(lines) - MOST_COMPARED))
    shown = lines[start : start + MOST_COMPARED]
    return start, shown, len(lines) - start - len(shown)


def records_of(found: Found) -> str:
    """Return the first records of a counterexample as text, and the number of further records."""
    timeline = found.timeline
    records = [step for step in timeline.steps if step.kind in ("record", "tombstone")]
    said = [
        shortened(step.text, 60) + ("" if step.time is None else f" at {time_text(step.time, timeline.unit)}")
        for step in records[:MOST_RECORDS]
    ]
    more = [f"{len(records) - MOST_RECORDS:,} more"] if len(records) > MOST_RECORDS else []
    return ", ".join([*said, *more]) or "none"


def _files(found: Found) -> list[tuple[str, str]]:
    """Return the title and the text of each file of a counterexample; long texts are shortened."""
    files = [
        ("The history, as a file", found.history),
        ("The original history of this variant", found.original),
        ("The test to paste", found.test),
    ]
    return [(label, _in_part(file)) for label, file in files if file]


def _in_part(file: str) -> str:
    lines = [shortened(line, MOST_CHARACTERS) for line in file.splitlines()]
    if len(lines) > MOST_LINES:
        left_out = f"… {len(lines) - MOST_LINES:,} more lines: report.json contains all lines"
        lines = [*lines[: MOST_LINES * 3 // 4], left_out, *lines[-MOST_LINES // 4 :]]
    return "\n".join(lines)
