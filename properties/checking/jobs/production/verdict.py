"""The verdict on a run in production: a report, or the failure on the first wrong row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ....counterexamples.of_jobs import sides_in_words
from ....generators.columns.forms.rows import Row
from ....generators.columns.model import Expected
from ....outcomes.equality import comparable
from ....outcomes.outcomes import Difference
from ..conclusion import limits, notes_on
from ..reports import JobReport
from ..verdicts import Inconclusive, Violated
from .judging import Judging, place_of, wrong_row
from .narrowing import Narrowing


def report_of(judging: Judging, written: Sequence[Row]) -> JobReport:
    """Return the report of a run in production without a wrong row.

    Args:
        judging: The object that compared the run with the oracle.
        written: The written rows that were judged.

    Raises:
        Inconclusive: No row was judged.
    """
    __tracebackhide__ = True
    judge, run, not_checked = judging.judge, judging.run, [*judging.not_checked]
    if not written:
        why = f"the run of {judge.name} has no output, and none is expected"
        if judging.unsure_keys:
            why = f"none of the rows that the run of {judge.name} wrote can be judged: {not_checked[0]}"
        raise Inconclusive(f"inconclusive: {why}", job=judge.name)
    if run.unreadable:
        count = run.unreadable
        not_checked.append(
            f"{count:,} record{'s' * (count != 1)} with a payload that can't be parsed, which the job should skip"
        )
    if not judging.by_batch and judging.mode == "append":
        why = (
            "the sink's log doesn't say the batch of each row" if judging.exact else "the rows are compared at the end"
        )
        not_checked.append(f"in which batch each row was written: {why}")
    oracle, last = judge.oracle.name, run.checkpoint.batches[-1].number
    return JobReport(
        job=f"the run of {judge.name}",
        says=f"The run of {judge.name} wrote the rows that {oracle} expects, in batches 0 to {last:,}: "
        f"{_rows(len(run.history.arrivals))} read, {_rows(len(written))} written.",
        laws={oracle: 1},
        comparing="batches" if judging.by_batch else "end",
        not_checked=not_checked,
        equality=judging.options.equality,
        limits=limits(judge),
        notes=notes_on(judge),
        between=("expected", "the run"),
    )


def _rows(count: int) -> str:
    return f"{count:,} row{'s' * (count != 1)}"


def violated(judging: Judging, found: Sequence[Difference], written: Sequence[Row]) -> Violated:
    """Return the failure on the first wrong batch and key, with the smallest part of the run that shows a wrong row.

    Args:
        judging: The object that compared the run with the oracle.
        found: The rows that are certainly missing or surplus.
        written: The rows that the run wrote.
    """
    judge, first, narrowing = judging.judge, found[0], Narrowing(judging)
    columns = judging.key_columns(wrong_row(first))

    def key_of(one: Difference) -> Any:
        return comparable([wrong_row(one).get(name) for name in columns])

    alike = [one for one in found if key_of(one) == key_of(first)] if columns else []
    # Without a comparison by batch, the batch of an expected row is only an estimate, so rows of any batch may match.
    alike = [one for one in alike if one.when == first.when or not judging.by_batch] or [first]
    missing, surplus = _pair(alike)
    where = "at the end" if first.when is None else f"in batch {first.when:,}"
    where += " or a batch next to it" if judging.run.written.about and first.when is not None else ""
    difference = Difference(None, missing, surplus)
    both, more = (
        ([], 0) if missing and surplus else _alike(judging, [*surplus, *missing][0], first.when, found, written)
    )
    wanted, came = sides_in_words(difference, len(both), more, actual_first=True)
    counterexample = judging.counterexample(
        job=f"the run of {judge.name}",
        history=narrowing.rows_of(key_of(first) if columns else None),
        expected=Expected("end", [[*both, *missing]]),
        emitted=[[*both, *surplus]],
        difference=difference,
        run=replace(judging.options.run, mode="append"),
        says=f"violated: {where} the run of {judge.name} wrote {came}, and {judge.oracle.name} expects {wanted}.",
    )
    counterexample, here = narrowing.closer(counterexample)
    keys = {*map(key_of, found)} if columns else set()
    numbers = sorted({one.when for one in found if one.when is not None})
    differ = f"{len(found):,} row{'s' * (len(found) > 1)} differ{'s' * (len(found) == 1)}"
    differ += f", of {len(keys):,} keys" * (len(keys) > 1)
    differ += f", in batches {numbers[0]:,} to {numbers[-1]:,}" if len(numbers) > 1 else ""
    running = judging.run.checkpoint.running
    if running is not None and not judging.run.written.has_batches:
        here += f" Batch {running:,} is running, and its rows may be in the output: stop the query."
    message, path = judging.store.violation(counterexample, f"{differ}; the check judged {len(written):,} rows. {here}")
    return Violated(message, counterexample, path=path)


def _alike(
    judging: Judging, row: Row, batch: int | None, found: Sequence[Difference], written: Sequence[Row]
) -> tuple[list[Row], int]:
    """Return the written and the expected rows that are equal to a wrong row, and the number of wrong rows among them.

    If the check compares rows by batch, only rows of the same batch count.
    """

    def is_alike(one: Row, of: int | None) -> bool:
        return (of == batch or not judging.by_batch) and comparable(one) == comparable(row)

    same = [one for one, of in zip(written, judging.run.written.batches, strict=True) if is_alike(one, of)]
    wrong = [one for one in found if is_alike(wrong_row(one), one.when)]
    return same[sum(bool(one.actual) for one in wrong) :], len(wrong)


def _pair(wrong: Sequence[Difference]) -> tuple[list[Row], list[Row]]:
    """Return a missing row and, if one has the same times, a surplus row; if no row is missing, return a
    surplus row.
    """
    missing, surplus = [row for one in wrong for row in one.expected], [row for one in wrong for row in one.actual]
    if not (missing and surplus):
        return missing[:1], surplus[:1]

    for row in missing:
        alike = [one for one in surplus if place_of({name: one.get(name) for name in row}) == place_of(row)]
        if alike:
            return [row], alike[:1]
    return missing[:1], []
