"""Create the content of a report of checks: of operators' references, of operators on Spark, and of users' jobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any, TypeAlias

from ...reference.core.errors import BadInput, StreamproofError
from ...reference.core.history import History
from ..checking.checked import Checked
from ..checking.jobs.reports import JobReport
from ..checking.jobs.verdicts import CheckFailed, NotFinished, Violated
from ..checking.report import Report
from ..counterexamples.counterexample import ALONE, Counterexample
from ..counterexamples.text import ComparedLine, compared_rows, test_to_paste
from ..generators.columns.formatting import shown_row
from ..generators.columns.histories.text import json_row, pasted
from ..generators.columns.model import JobHistory
from ..laws.base import REFERENCE
from ..outcomes.outcomes import Grain, Outcome, differences
from ..system.arguments import checked, folder_at
from ..system.visible import visible
from ..witnesses.by_name import WITNESSES, witness_named
from .content import Content, Found, Vote, content_of, place_of
from .timelines import MOST_LINES, timeline_of, timeline_of_job
from .writing import require_folder, write_content

JobOutcome: TypeAlias = JobReport | CheckFailed | StreamproofError | NotFinished
"""The values that checks of jobs, such as `check_job`, return or raise; or an unfinished check."""
ASKED = ("reference", "duckdb", "protocol")
"""The witnesses that vote while a report is written; all other witnesses need a JVM."""
NAMES = {"the reference": "reference", "Spark": "spark", "Spark's own operator": "spark-native", "DuckDB": "duckdb"}
"""The names of witnesses on the command line, for those with another name in counterexamples."""


@checked
def write_report(folder: str | Path, *outcomes: JobOutcome, ended: str = "") -> Path:
    """Write the outcomes of checks of jobs as a report: a self-contained page, text, JSON, JUnit XML and SARIF.

    Args:
        folder: The folder to write to; an existing report is replaced.
        outcomes: The results of `check_job`, `invariants`, `upgrade` and `replay`, or the `Violated`, `UpgradeRefused`,
            `Inconclusive`, `BadInput` or other `StreamproofError` that they raised.
        ended: A sentence with the reason why the checks ended early; empty if all checks ended normally.

    Returns:
        The path of the page.

    Raises:
        BadInput: The folder isn't writable, or an outcome has another type.
    """
    path = folder_at(folder)
    require_folder(path)
    return write_content(path, content([*outcomes, *the_rest(ended)]))


def the_rest(ended: str) -> list[JobOutcome]:
    """Return a single outcome for all checks that didn't run, with the reason; empty if all checks ran."""
    return [NotFinished("the rest", ended)] if ended else []


def content(outcomes: Sequence[Report | JobOutcome], command: str = "", ended: str = "") -> Content:
    """Create the content of a report from the outcomes of checks.

    Args:
        outcomes: Complete or partial reports of operators' checks, and results or errors of jobs' checks.
        command: The command that repeats the checks.
        ended: A sentence with the reason why the checks ended early; empty if all checks ended normally.

    Raises:
        BadInput: An outcome has another type.
    """
    checks, found = [], []
    for outcome in outcomes:
        if isinstance(outcome, StreamproofError):
            outcome = NotFinished("a check", f"could not run: {outcome.message}")
        check = getattr(outcome, "checked", None)
        if not isinstance(check, Checked):
            kind = type(outcome).__name__
            raise BadInput(f"a {kind} isn't an outcome of a job's check: give the result or the error of check_job")
        checks.append(check)
        name = check.name
        if isinstance(outcome, Report):
            found += [counterexample_found(one, name, str(path), not ended) for one, path in outcome.found]
        elif isinstance(outcome, Violated):
            path = "" if outcome.path is None else str(outcome.path)
            found.append(counterexample_found(outcome.counterexample, name, path))
            found += [counterexample_found(one, name) for one in (outcome.as_found,) if one is not None]
    return content_of(checks, found, command=command, ended=ended)


def counterexample_found(
    counterexample: Counterexample[Any],
    subject: str,
    path: str = "",
    ask: bool = True,
) -> Found:
    """Convert a counterexample to a counterexample of a report.

    Args:
        counterexample: The counterexample.
        subject: The subject of the check.
        path: The path of the saved counterexample; empty if not saved.
        ask: Whether to run the history on other witnesses too, for their votes.
    """
    (expected_by, expected), (actual_by, actual) = counterexample.expected, counterexample.actual
    first, history = counterexample.difference, counterexample.history_text
    when = None if first is None else first.when
    if counterexample.subject == "job":
        examples = ("    " + line for line in pasted(counterexample.history, counterexample.sources))
        file, line = place_of(actual_by)
        return Found(
            subject,
            expected_by,
            counterexample.sentence,
            expected_by,
            actual_by,
            "at the end" if when is None else f"batch {when}",
            timeline_of_job(counterexample),
            _rows_compared(counterexample),
            _sides(expected_by, actual_by),
            history,
            test="\n".join(["check_job(", "    …,", *examples, ")", ""]),
            path=path,
            seed=counterexample.seed,
            file=file,
            line=line,
            arrivals=_arrivals(history),
            rows=[replace(one, row=json_row(one.row)) for one in counterexample.rows],
        )
    # Not for a variant, whose expected outcome may have the arrivals of the original.
    of_history = expected if expected_by == REFERENCE and counterexample.original is None else None
    by_arrival = Grain.BATCH not in (expected.grain, actual.grain)
    step = "at the end" if when is None else f"{'arrival' if by_arrival else 'batch'} {when}"
    return Found(
        subject,
        counterexample.law,
        counterexample.sentence,
        expected_by,
        actual_by if counterexample.mutant is None else f"{actual_by}, the mutant {counterexample.mutant}",
        step if first is None or first.key is None else f"key {first.key}, {step}",
        timeline_of(counterexample.history, when, by_arrival, of_history),
        compared_rows(expected, actual, {difference.key for difference in counterexample.differences}),
        [*_sides(expected_by, actual_by), *_votes(counterexample, ask)],
        history,
        counterexample.original_text or "",
        test_to_paste(counterexample) or "",
        "" if counterexample.confirmed else counterexample.unconfirmed or ALONE,
        path,
        counterexample.seed,
        arrivals=_arrivals(history),
    )


def _arrivals(history: str) -> list[dict[str, Any]]:
    """Return the lines of a history file after its header."""
    return [json.loads(line) for line in history.splitlines()[1:]]


def _sides(expected_by: str, actual_by: str) -> list[Vote]:
    return [Vote(expected_by, "expects this", True), Vote(actual_by, "differs", False)]


def _rows_compared(counterexample: Counterexample[JobHistory]) -> list[ComparedLine]:
    """Return the rows of each batch, side by side: first rows that are expected and emitted, then all other rows."""
    compared: list[ComparedLine] = []
    for when, group in groupby(counterexample.rows, lambda row: row.when):
        rows = [(row.side, shown_row(row.row)) for row in group]
        both, missing, surplus = (
            [text for side, text in rows if side == wanted] for wanted in ("both", "only expected", "only emitted")
        )
        compared += [ComparedLine(when, text, text, False) for text in both]
        compared += [ComparedLine(when, *pair, True) for pair in zip_longest(missing, surplus, fillvalue="")]
    return compared


def _votes(counterexample: Counterexample[History], ask: bool) -> list[Vote]:
    """Return the votes of the other witnesses; if `ask`, witnesses without a JVM run the history now."""
    (expected_by, expected), (actual_by, actual) = counterexample.expected, counterexample.actual
    taken = {NAMES.get(name, name) for name in (expected_by, actual_by)}
    # Don't ask a broker, because it plays only one operator, and its output is random.
    taken |= {"kafka-broker", *(["spark"] if "the job" in taken else [])}
    said = []
    for name in WITNESSES:
        if name in taken:
            continue
        if name not in ASKED:
            said.append(Vote(name, f"not run: run `streamproof run history.jsonl --on {name}`", None))
        elif not ask:
            said.append(Vote(name, "not run: the check ended early", None))
        else:
            said.append(_vote(name, counterexample.history, expected, actual))
    return said


def _vote(name: str, history: History, expected: Outcome, actual: Outcome) -> Vote:
    if len(history.lines) > MOST_LINES:
        return Vote(name, f"not run: the history has {len(history.lines):,} lines, more than {MOST_LINES}", None)
    witness = witness_named(name)
    try:
        reason = witness.refuses(history)
        if reason is not None:
            return Vote(name, f"not run: {visible(reason)}", None)
        (answer,) = witness.evaluate([history])
    except StreamproofError as error:
        return Vote(name, f"not run: {error.message}", None)
    agrees = [not differences(one, answer) for one in (expected, actual)]
    if all(agrees):
        at_end = ": it only reports the final result, which is equal" if answer.grain is Grain.END else ""
        return Vote(name, f"agrees with both{at_end}", None)
    if agrees[0]:
        return Vote(name, "agrees with the expected outcome", True)
    return Vote(name, "agrees with the actual outcome" if agrees[1] else "agrees with neither outcome", False)
