"""Makes the content of a report of checks of a user's jobs: reports that conform, failures, and what couldn't run."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import groupby, zip_longest
from pathlib import Path
from typing import TypeAlias

from ...reference.core.errors import BadInput, StreamproofError
from ..checking.jobs.reports import ConformanceReport, InvariantsReport, JobReport
from ..checking.jobs.verdicts import CouldNotRun, Inconclusive, Violated
from ..counterexamples.counterexample import Counterexample
from ..counterexamples.of_jobs import JobCounterexample
from ..counterexamples.text import versions
from ..generators.columns.model import microseconds
from ..generators.columns.shown import shown_row
from ..generators.columns.text import pasted, to_text
from ..laws.base import REFERENCE
from ..laws.expected.comparison import in_words
from ..laws.on_spark.changelog import Changelog
from ..registration.registration import registration_of
from ..system.arguments import checked, folder_at
from .content import Checked, Compared, Content, Found, LawCount, Step, Timeline, Verdict, Vote
from .of_checks import counterexample_found
from .writing import require_folder, write_content

JobOutcome: TypeAlias = (
    JobReport | InvariantsReport | ConformanceReport | Violated | Inconclusive | StreamproofError | CouldNotRun
)
"""What `check_job`, `invariants` and `conforms` return, or raise; or a check that couldn't run."""


@checked
def write_report(folder: str | Path, *outcomes: JobOutcome, ended: str = "") -> Path:
    """Write what checks of jobs returned, or raised, as a report: a page that stands alone, text, JSON and JUnit XML.

    Args:
        folder: The folder; a report that is there is replaced.
        outcomes: What `check_job`, `invariants` and `conforms` returned, or the `Violated`, `Inconclusive`, `BadInput`
            or other `StreamproofError` that they raised.
        ended: What ended the checks before they were done, in words; empty where nothing did.

    Returns:
        The path of the page.

    Raises:
        BadInput: The folder can't be written, or an outcome is none of these.
    """
    path = folder_at(folder)
    require_folder(path)
    return write_content(path, content(outcomes, ended=ended))


def content(outcomes: Sequence[JobOutcome], command: str = "", ended: str = "") -> Content:
    """Return what checks of jobs say together: *conforms* only if all of them do, and nothing ended them before.

    Args:
        outcomes: What they returned, or raised.
        command: The command that does the same again.
        ended: What ended the checks before they were done, in words; empty where nothing did.

    Raises:
        BadInput: An outcome is none of a check of a job.
    """
    checks = list(map(_checked, outcomes))
    checks += [Checked("the rest", "not checked", [], unfinished=ended)] * bool(ended)
    found = [_found(one) for one in outcomes if isinstance(one, Violated)]
    verdicts = {check.verdict for check in checks}
    verdict: Verdict = "violated" if "violated" in verdicts else "inconclusive"
    verdict = "conforms" if verdicts == {"conforms"} else verdict
    missing = [f"{check.name}: {check.unfinished}" for check in checks if check.unfinished]
    return Content(verdict, checks, found, (), versions(), command, missing)


def _checked(outcome: JobOutcome) -> Checked:
    match outcome:
        case JobReport():
            law = LawCount(
                outcome.oracle,
                in_words(outcome.comparing, outcome.equality),
                ("expected", "job"),
                "conforms",
                outcome.histories,
            )
            notes = [f"Rows were expected on {outcome.expecting:,} of them."]
            notes += [f"Each history ran in a query of its own: {outcome.alone}."] if outcome.alone else []
            notes += [f"Not checked: {one}." for one in outcome.not_checked]
            return Checked(outcome.job, "conforms", [law], outcome.histories, notes=notes)
        case InvariantsReport():
            held = [LawCount(name, "", ("job",), "conforms", count) for name, count in outcome.held.items()]
            notes = [f"Not checked: {one}." for one in outcome.not_checked]
            return Checked(outcome.job, "conforms", held, max(outcome.held.values(), default=0), notes=notes)
        case ConformanceReport():
            law = LawCount(
                Changelog.name, _changelog(outcome.operator), (REFERENCE, "the job"), "conforms", outcome.histories
            )
            notes = [f"Compared with {outcome.oracle}, options {json.dumps(dict(outcome.options))}."]
            seeds = f"seed {outcome.seed}"
            covered = dict(sorted(outcome.covered.items()))
            return Checked(outcome.job, "conforms", [law], outcome.histories, seeds=seeds, covered=covered, notes=notes)
        case Violated():
            one = outcome.counterexample
            if isinstance(one, Counterexample):
                sides = one.left[0], one.right[0]
                law = LawCount(one.law, _changelog(one.history.operator), sides, "violated", 1, 1)
            else:
                says = in_words(one.expected.comparing, one.equality)
                law = LawCount(one.oracle, says, ("expected", "job"), "violated", 1, 1)
            return Checked(outcome.name, "violated", [law], 1, seeds=f"seed {one.seed}")
        case Inconclusive():
            said = str(outcome)
            name = outcome.job or (said.splitlines()[0][:100] if said else "a job")
            return Checked(name, "inconclusive", [LawCount("coverage", "", (), "inconclusive", why=said)])
        case StreamproofError():
            return _checked(CouldNotRun("a check", outcome.message))
        case CouldNotRun():
            return Checked(outcome.check, "not checked", [], unfinished=f"could not run: {outcome.why}")
    raise BadInput(f"a {type(outcome).__name__} is no outcome of a job's check: give what check_job returned or raised")


def _changelog(operator: str) -> str:
    """Return the law that a check against an operator's reference asks, as a sentence."""
    return Changelog().sentence(registration_of(operator))


def _found(violated: Violated) -> Found:
    one = violated.counterexample
    path = "" if violated.path is None else str(violated.path)
    if isinstance(one, JobCounterexample):
        return _found_by_rows(one, path)
    return counterexample_found(one, violated.name, path, job=violated.job)


def _found_by_rows(one: JobCounterexample, path: str) -> Found:
    compared: list[Compared] = []
    for when, group in groupby(one.results, lambda row: row.when):
        sides: dict[str, list[str]] = defaultdict(list)
        for row in group:
            sides[row.side].append(shown_row(row.row))
        compared += [Compared(when, text, text, False) for text in sides["both"]]
        pairs = zip_longest(sides["only expected"], sides["only emitted"], fillvalue="")
        compared += [Compared(when, *pair, True) for pair in pairs]
    first = one.difference
    where = "at the end" if first is None or first.batch is None else f"batch {first.batch}"
    test = "\n".join(["check_job(", "    …,", *("    " + line for line in pasted(one.history, one.sources)), ")", ""])
    return Found(
        one.job,
        one.oracle,
        one.sentence,
        one.oracle,
        one.job,
        where,
        _timeline(one),
        compared,
        [Vote(one.oracle, "expects this", True), Vote(one.job, "differs", False)],
        to_text(one.history, one.sources),
        test=test,
        path=path,
        seed=one.seed,
    )


def _timeline(one: JobCounterexample) -> Timeline:
    """Return a history as it is drawn: with the watermarks where they are known, else with the event time reached."""
    watermarks, history = one.watermarks, one.history
    sources = {source.name: source for source in one.sources}
    steps: list[Step] = []
    reached: int | None = None
    for number, batch in enumerate(history.batches):
        before = watermarks[number].late_us if watermarks else reached
        for name, row in batch:
            source = sources[name]
            at = row.get(source.time)
            time = microseconds(at) if isinstance(at, datetime) else None
            others = {column: value for column, value in row.items() if column != source.time}
            text = f"{name}: {shown_row(others)}" if len(sources) > 1 else shown_row(others)
            late = watermarks and time is not None and before is not None and time <= before
            steps.append(Step(number, "record", text, time, before, "behind the watermark" if late else "", len(steps)))
            reached = time if reached is None else max(reached, time or reached)
        reached = history.clock[number] if history.clock else reached
    last = watermarks[-1].after_us if watermarks else reached
    marked = None if one.difference is None else one.difference.batch
    name = "watermark" if watermarks else "event time reached"
    return Timeline(steps, len(history.batches), name, last, marked, unit="us")
