"""The output of a check on GitHub: a Markdown summary of the job, and an annotation for each violated law."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from ..checking.checked import MARKS
from ..system.visible import visible
from .content import Content, Found
from .drawing import shortened
from .page import shown_lines

MOST_FOUND = 10
"""The largest number of counterexamples in the summary, and of annotations; GitHub shows ten per step."""
MOST_LAWS = 400
"""The largest number of laws in the summary, which is limited to a megabyte."""
_MARKDOWN = re.compile(r"[^\w \-.,;:()/+='∅≠✓✗…?]")


def announce(content: Content, environment: Mapping[str, str] = os.environ) -> list[str]:
    """Append to the summary of the GitHub job, if there is one, and return the annotations to print.

    Args:
        content: The report.
        environment: The environment variables.

    Raises:
        OSError: The file of the summary isn't writable.
    """
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        with Path(path).open("a", encoding="utf-8") as file:
            file.write(summary(content))
    return list(commands(content)) if environment.get("GITHUB_ACTIONS") == "true" else []


def commands(content: Content) -> Iterator[str]:
    """Yield a workflow command for each counterexample, each inconclusive check and each missing check."""
    for found in content.found[:MOST_FOUND]:
        title = f"{found.subject} breaks {found.law}"
        yield _command("error", found.sentence, title, found.file or found.path, found.line)
    for chart in [one for one in content.charts if not one.is_expected][:MOST_FOUND]:
        yield _command("error", chart.sentence or chart.law, f"{chart.subject}: {chart.law}", "")
    shown = {*(found.subject for found in content.found), *(chart.subject for chart in content.charts)}
    for check in content.checks:
        if check.verdict == "violated" and check.name not in shown:
            broken = ", ".join(law.law for law in check.laws if law.verdict == "violated")
            yield _command("error", f"breaks {broken}", check.name, "")
        elif check.verdict == "inconclusive":
            why = f": {check.unfinished}" if check.unfinished else ""
            yield _command("warning", f"inconclusive{why}", check.name, "")


def _command(kind: str, message: str, title: str, path: str, line: int | None = None) -> str:
    named = {"file": path, "line": str(line or ""), "title": f"streamproof: {title}"}
    properties = ",".join(f"{name}={_escaped(value, ':,')}" for name, value in named.items() if value)
    return f"::{kind} {properties}::{_escaped(message)}"


def _escaped(text: str, more: str = "") -> str:
    """Escape a text as GitHub requires: percent signs first, then line breaks, and in properties `:` and `,`."""
    shown = visible(shortened(text, 2000), lines=True)
    for character in f"%\r\n{more}":
        shown = shown.replace(character, f"%{ord(character):02X}")
    return shown


def summary(content: Content) -> str:
    """Return the summary of a report, in Markdown."""
    lines = [f"## {MARKS[content.verdict]} streamproof: {content.verdict}: {content.counts}", ""]
    lines += [f"- missing: {_plain(one)}" for one in content.missing]
    lines += ["", "| checked | law | verdict | judged | violations |", "|---|---|---|--:|--:|"]
    laws = [(check, law) for check in content.checks for law in check.laws if law.verdict != "not checked"]
    for check, law in laws[:MOST_LAWS]:
        why = f": {law.why}" if law.why else ""
        cells = [check.name, law.law, f"{MARKS[law.verdict]} {law.verdict}{why}", f"{law.histories:,}"]
        lines.append(f"| {' | '.join(map(_plain, [*cells, f'{law.violations:,}']))} |")
    lines += [f"| … | {len(laws) - MOST_LAWS:,} more | | | |"] if len(laws) > MOST_LAWS else []
    for found in content.found[:MOST_FOUND]:
        lines += ["", *_shown(found)]
    if len(content.found) > MOST_FOUND:
        lines += ["", f"{len(content.found) - MOST_FOUND} more counterexamples are in the report."]
    for check in content.checks:
        lines += ["", f"{_plain(check.name)}: {check.verdict}; {_plain(check.counts)}"]
    return "\n".join([*lines, "", _plain(f"{content.versions}."), "", ""])


def _shown(found: Found) -> list[str]:
    lines = [f"### {_plain(f'{found.subject} breaks {found.law}')}", "", _plain(found.sentence), ""]
    _, rows, _ = shown_lines(found.compared)
    heads = ["", "when", f"expected by {found.expected_by}", f"came from {found.actual_by}"]
    lines += [f"| {' | '.join(map(_plain, heads))} |", "|---|---|---|---|"]
    for row in rows:
        cells = ["≠" if row.differ else "", row.when, row.expected, row.actual]
        lines.append(f"| {' | '.join(map(_plain, cells))} |")
    return lines


def _plain(text: str) -> str:
    """Return a text on one line without any Markdown or HTML markup."""
    return _MARKDOWN.sub(lambda found: f"&#{ord(found[0])};", visible(shortened(text, 1000)))
