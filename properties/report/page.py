"""Writes a report as one page of HTML that stands alone, and as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup

from ..checking.checked import Checked
from .content import MARKS, ComparedLine, Content, Found, sentence_of
from .drawing import drawn, shortened, time_text
from .rendering import rendered, safe

MOST = 40
"""So many counterexamples, and charts, are drawn, at the most."""
GOALS = 100
"""So many coverage goals that weren't met are named, at the most."""
LINES = 120
"""So many lines of a file are shown, at the most."""
COMPARED = 60
"""So many lines of what is expected and what came."""
RECORDS = 4
"""So many records are named above the drawing."""
ONE = {"histories": "history", "distinct states": "distinct state"}
WIDEST = 2000
"""So many characters of any one text."""


@dataclass(frozen=True)
class ShownLine:
    """A line of what is expected and what came, or how many are left out."""

    line: ComparedLine | None = None
    is_first: bool = False
    left_out: int = 0


def html(content: Content) -> str:
    """Return a report as a page of HTML, without a reference to any other file."""
    found = content.found[:MOST]
    return rendered(
        "report.html.jinja",
        content=content,
        sentence=sentence_of(content.verdict, content.checks).removeprefix(content.verdict).removeprefix(": "),
        marks=MARKS,
        MOST=MOST,
        GOALS=GOALS,
        drawings=[
            drawn(one.timeline, f"timeline-{number}", f"What arrives where {one.subject} breaks {one.law}")
            for number, one in enumerate(found, 1)
        ],
        compared=[shown_lines(one.compared) for one in found],
        records=list(map(records_of, found)),
        files=[_files(one) for one in found],
        charts=[Markup(one.svg) for one in content.charts[:MOST]],
        counts=list(map(counts_of, content.checks)),
        witnesses=[_witnesses(one) for one in content.checks],
        unmet=[list(dict.fromkeys(goal for law in one.laws for goal in law.not_met)) for one in content.checks],
        goals=[_goals(one) for one in content.checks],
    )


def text(content: Content) -> str:
    """Return a report as text."""
    lines = [f"streamproof report: {sentence_of(content.verdict, content.checks)}", ""]
    lines += [*(f"Missing: {one}" for one in content.missing), ""] if content.missing else []
    for check in content.checks:
        unfinished = f" ({check.unfinished})" if check.unfinished else ""
        lines += [f"{check.name}: {check.verdict}{unfinished}. {counts_of(check)}"]
        for law in check.laws:
            between = f" [{', '.join(law.witnesses)}]" if law.witnesses else ""
            broken = f", {law.violations:,} violations" if law.violations else ""
            lines.append(f"  {MARKS[law.verdict]} {law.verdict:12} {law.histories:>9,}  {law.law}{between}{broken}")
            why = f"{law.why}: {', '.join(law.not_met)}" if law.why and law.not_met else law.why
            lines += [f"    {'':12} {'':>9}  {why}"] if why else []
        met = ", ".join(f"{goal} {count:,}" for goal, count in _goals(check))
        lines += [f"  Coverage goals met: {met}."] if met else []
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
    shown = shown_lines(found.compared)
    width = max([len(found.expected_by), *(len(one.line.expected) for one in shown if one.line)])
    lines.append(f"    {'':10} {found.expected_by:{width}}   {found.actual_by}")
    for one in shown:
        if one.line is None:
            lines.append(f"    … {one.left_out:,} more lines, not shown")
            continue
        mark = "≠" if one.line.differ else " "
        end = "   <- first difference" if one.is_first else ""
        lines.append(f"  {mark} {one.line.when:10} {one.line.expected:{width}}   {one.line.actual}{end}".rstrip())
    lines += ["", *(f"  {vote.witness}: {vote.says}" for vote in found.votes)]
    for label, file in _files(found):
        lines += ["", f"{label}:", *("    " + line for line in file.splitlines())]
    lines += ["", f"Saved in {found.path}."] if found.path else []
    return [*lines, *([] if found.seed is None else [f"Seed {found.seed}."])]


def shown_lines(lines: Sequence[ComparedLine]) -> list[ShownLine]:
    """Return lines of what is expected and what came, those around the first difference where there are too many."""
    first = next((number for number, line in enumerate(lines) if line.differ), 0)
    start = 0 if len(lines) <= COMPARED else max(0, min(first - COMPARED // 2, len(lines) - COMPARED))
    shown = [
        ShownLine(
            ComparedLine(line.when, shortened(line.expected, WIDEST), shortened(line.actual, WIDEST), line.differ),
            line.differ and number == first,
        )
        for number, line in enumerate(lines[start : start + COMPARED], start)
    ]
    after = len(lines) - start - len(shown)
    return [*([ShownLine(left_out=start)] if start else []), *shown, *([ShownLine(left_out=after)] if after else [])]


def counts_of(check: Checked) -> str:
    """Return how much was checked, in words."""
    queries = f" in {check.queries:,} queries" if check.queries else ""
    counted = ONE[check.counted] if check.histories == 1 else check.counted
    took = f"{check.seconds:.0f} s" if check.seconds else ""
    said = [f"{check.histories:,} {counted}{queries}", took, check.seeds]
    return f"{', '.join(filter(None, said))}."


def records_of(found: Found) -> str:
    """Return the first records of a counterexample as text, and how many more there are."""
    timeline = found.timeline
    records = [step for step in timeline.steps if step.kind in ("record", "tombstone")]
    said = [
        shortened(step.text, 60) + ("" if step.time is None else f" at {time_text(step.time, timeline.unit)}")
        for step in records[:RECORDS]
    ]
    more = [f"{len(records) - RECORDS:,} more"] if len(records) > RECORDS else []
    return ", ".join([*said, *more]) or "none"


def _files(found: Found) -> list[tuple[str, str]]:
    """Return the files of a counterexample, long ones in part."""
    files = [
        ("The history, as a file", found.history),
        ("The history that it is a variant of", found.original),
        ("The test to paste", found.test),
    ]
    return [(label, _in_part(file)) for label, file in files if file]


def _in_part(file: str) -> str:
    lines = [shortened(line, WIDEST) for line in file.splitlines()]
    if len(lines) > LINES:
        left_out = f"… {len(lines) - LINES:,} more lines: report.json has them all"
        lines = [*lines[: LINES * 3 // 4], left_out, *lines[-LINES // 4 :]]
    return "\n".join(lines)


def _witnesses(check: Checked) -> list[str]:
    return list(dict.fromkeys(witness for law in check.laws for witness in law.witnesses))


def _goals(check: Checked) -> list[tuple[str, int]]:
    """Return the coverage goals that were met, with those of single laws."""
    met = dict(check.covered)
    for law in check.laws:
        for goal, count in law.met.items():
            met[goal] = max(met.get(goal, 0), count)
    return sorted(met.items())
