"""Makes the content of a report of what the gate found: the check of an operator's reference, or on Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress

from ...reference.core.clocks import make_clock
from ...reference.core.errors import BadInput, StreamproofError
from ...reference.core.history import ClockAdvance, Cut, Delivery, History, Line
from ...reference.core.play import Entry, play
from ...reference.core.records import Dropped, Record
from ..checking.report import Report
from ..counterexamples.counterexample import ALONE, Counterexample
from ..counterexamples.text import compared_rows, test_to_paste, versions
from ..laws.base import REFERENCE, LawResult, worst
from ..outcomes.outcomes import Grain, Outcome, differences
from ..system.visible import visible
from ..witnesses.by_name import WITNESSES, witness_named
from .content import (
    Checked,
    Compared,
    Content,
    Found,
    Kind,
    LawCount,
    Step,
    Timeline,
    Verdict,
    Vote,
    missing,
)

ASKED = ("reference", "duckdb", "protocol")
"""The witnesses that answer in the moment that a report is written; any other one costs a JVM."""
LONGEST = 200
"""So many lines has a history about which a witness is asked, at the most: DuckDB takes seconds for more."""
NAMES = {"the reference": "reference", "Spark": "spark", "Spark's own operator": "spark-native", "DuckDB": "duckdb"}
"""How a counterexample calls witnesses that have another name on the command line."""


def content(reports: Sequence[Report], command: str = "", ended: str = "") -> Content:
    """Return what reports of the gate say together.

    Args:
        reports: The reports, whole or as far as they came.
        command: The command that does the same again.
        ended: What ended the check before it was done, in words; empty where nothing did.
    """
    checks = [checked(report, bool(ended)) for report in reports]
    counterexamples = [one for report in reports for one in found(report, not ended)]
    verdict: Verdict = worst(report.verdict for report in reports).value
    return Content(verdict, checks, counterexamples, (), versions(), command, missing(checks, ended))


def checked(report: Report, ended: bool = False) -> Checked:
    """Return what a report of the gate says.

    Args:
        report: The report, whole or as far as it came.
        ended: Whether something ended the check before it was done.
    """
    is_cut_short = ended and not report.is_whole
    notes = []
    if report.divergences:
        named = ", ".join(f"{name} {count:,}" for name, count in report.divergences.most_common())
        notes.append(f"Named divergences of Kafka Streams, in how many histories: {named}.")
    left_out = [LawCount(law, "", (), "not checked", why=reason) for law, reason in sorted(report.not_checked.items())]
    return Checked(
        f"{report.operator}, {report.subject}",
        report.verdict.value,
        [*map(_law, report.results), *left_out],
        report.histories,
        report.queries,
        report.seconds,
        report.seeds,
        dict(sorted(report.covered.items())),
        notes,
        ("not finished" if report.results else "not begun") if is_cut_short else "",
    )


def _law(result: LawResult) -> LawCount:
    law = result.law
    if result.skipped:
        return LawCount(law.name, result.sentence, law.between, "not checked", why=result.skipped)
    why = ""
    if result.verdict == "inconclusive":
        why = (
            "not finished" if result.unfinished else "coverage goals not met" if result.judged else "no history judged"
        )
    return LawCount(
        law.name,
        result.sentence,
        law.between,
        result.verdict.value,
        result.judged,
        len(result.violations),
        why,
        {goal: result.covered[goal] for goal in result.goals if result.covered[goal]},
        result.missing,
    )


def found(report: Report, ask: bool = True) -> list[Found]:
    """Return the counterexamples of a report of the gate.

    Args:
        report: The report.
        ask: Whether witnesses that took no part are asked for their answers.
    """
    subject = f"{report.operator}, {report.subject}"
    return [counterexample_found(one, subject, str(path), ask) for one, path in report.found]


def counterexample_found(
    counterexample: Counterexample, subject: str, path: str = "", ask: bool = True, job: object = None
) -> Found:
    """Return a counterexample as a report shows it; as `found`, with the user's job that was checked, if one was."""
    (expected_by, expected), (actual_by, actual) = counterexample.left, counterexample.right
    if counterexample.mutant is not None:
        actual_by = f"{actual_by}, the mutant {counterexample.mutant}"
    # Of a variant the original's may be expected, whose arrivals are others.
    of_history = expected if expected_by == REFERENCE and counterexample.original is None else None
    first = counterexample.differences[0] if counterexample.differences else None
    keys = {difference.key for difference in counterexample.differences}
    compared = compared_rows(expected, actual, keys)
    by_arrival = Grain.BATCH not in (expected.grain, actual.grain)
    at_end = first is None or first.when is None
    step = "at the end" if at_end or first is None else f"{'arrival' if by_arrival else 'batch'} {first.when}"
    where = step if first is None or first.key is None else f"key {first.key}, {step}"
    return Found(
        subject,
        counterexample.law,
        counterexample.sentence,
        expected_by,
        actual_by,
        where,
        timeline_of(counterexample.history, None if at_end or first is None else first.when, by_arrival, of_history),
        [Compared(row.when, row.expected, row.actual, row.differ) for row in compared],
        votes(counterexample, ask),
        counterexample.history.to_text(),
        "" if counterexample.original is None else counterexample.original.to_text(),
        test_to_paste(counterexample, job) or "",
        "" if counterexample.confirmed else counterexample.unconfirmed or ALONE,
        path,
        counterexample.seed,
    )


def timeline_of(history: History, when: int | None, by_arrival: bool, expected: Outcome | None = None) -> Timeline:
    """Return a history as it is drawn.

    Args:
        history: The history.
        when: The batch, or arrival, at which the outcomes differ first; None: at the end.
        by_arrival: Whether that is an arrival.
        expected: What is expected of it, by arrival: which records are dropped. Without, the reference is asked.
    """
    dropped = {
        arrival: f"dropped: {output.reason}"
        for arrival, _, output in _by_arrival(history, expected)
        if isinstance(output, Dropped)
    }
    clock = make_clock(history.clock)
    steps: list[Step] = []
    batch = 0
    for line in history.lines:
        if isinstance(line, Cut):
            batch += 1
            clock.cut()
            continue
        number = len(steps)
        remark = dropped.get(number, "")
        if isinstance(line, ClockAdvance | Record) and _moves(line, history, remark):
            clock.observe(line.timestamp)
        kind, text = _drawn(line)
        time = None if isinstance(line, Delivery) else line.timestamp
        steps.append(Step(batch, kind, text, time, clock.now, remark, number))
    clock.cut()
    marked = steps[when].batch if by_arrival and when is not None and when < len(steps) else when
    name = "watermark" if history.clock == "batch" else "stream time"
    return Timeline(steps, batch + 1, name, clock.now, marked, when if by_arrival else None)


def _by_arrival(history: History, expected: Outcome | None) -> Sequence[Entry]:
    """Return what the reference emits of a history, as far as that is known or soon found."""
    if expected is not None and expected.grain is Grain.ARRIVAL and expected.knows_dropped:
        return expected.entries
    with suppress(StreamproofError):  # one that it refuses, or would take long for, is drawn without
        _require_short(history)
        return play(history).entries
    return ()


def _moves(line: ClockAdvance | Record, history: History, remark: str) -> bool:
    """Whether a line moves the clock: a record that is dropped unseen, as one without a key, doesn't."""
    if isinstance(line, ClockAdvance):
        return True
    return remark != "dropped: filtered" and (line.key is not None or history.options.get("null_key") == "keep")


def _drawn(line: Line) -> tuple[Kind, str]:
    """Return what a line is, and what is written beside it."""
    match line:
        case Record():
            of = "" if line.input == "events" else f"{line.input}: "
            key = "no key" if line.key is None else line.key
            if line.value is None:
                return "tombstone", f"{of}∅ {key}"
            return "record", f"{of}{key}={json.dumps(line.value, ensure_ascii=False)}"
        case ClockAdvance():
            return "advance", "clock advance"
        case Delivery():
            return "delivery", f"delivers a {line.channel}, {', '.join(map(str, filter(None, line[1:])))}"
    raise AssertionError(line)


def votes(counterexample: Counterexample, ask: bool = True) -> list[Vote]:
    """Return what each witness says of a counterexample's history.

    Those that took part have said it. Of others those that need no JVM are asked now.

    Args:
        counterexample: The counterexample.
        ask: Whether any is asked now.
    """
    sides = (counterexample.left, counterexample.right)
    said = [Vote(sides[0][0], "expects this", True), Vote(sides[1][0], "differs", False)]
    taken = {NAMES.get(name, name) for name, _ in sides}
    for name in WITNESSES:
        # On a broker other operators than one aren't played, and what comes out of that one is a matter of chance.
        if name in taken or (name == "spark" and "the job" in taken) or name == "kafka-broker":
            continue
        if name not in ASKED:
            said.append(Vote(name, f"not asked: `streamproof run history.jsonl --on {name}` does", None))
        elif not ask:
            said.append(Vote(name, "not asked: the check was ended", None))
        else:
            said.append(_vote(name, counterexample.history, counterexample.left[1], counterexample.right[1]))
    return said


def _require_short(history: History) -> None:
    """Refuse a history about which witnesses would think for long.

    Raises:
        StreamproofError: It is long.
    """
    if len(history.lines) > LONGEST:
        raise StreamproofError(f"the history has {len(history.lines):,} lines, more than {LONGEST}")


def _vote(name: str, history: History, expected: Outcome, actual: Outcome) -> Vote:
    witness = witness_named(name)
    try:
        _require_short(history)
        reason = witness.refuses(history)
        if reason is not None:
            return Vote(name, f"not asked: {visible(reason)}", None)
        (answer,) = witness.evaluate([history])
    except (BadInput, StreamproofError) as error:
        return Vote(name, f"not asked: {error.message}", None)
    agrees = [not differences(one, answer) for one in (expected, actual)]
    if all(agrees):
        return Vote(name, f"says the same as both{AT_END if answer.grain is Grain.END else ''}", None)
    if agrees[0]:
        return Vote(name, "says what is expected", True)
    return Vote(name, "says what came" if agrees[1] else "says something else than both", False)


AT_END = ": it knows the result at the end alone, and that is equal"
