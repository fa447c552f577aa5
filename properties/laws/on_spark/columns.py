"""The law *columns*: whatever the types of the columns, what is emitted is what the reference emits.

An operator is asked in each layout by a profile of its own, so that a history's options say in which one it ran.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import lcm
from typing import Any

from ....reference.core.history import CUT, ClockAdvance, History, Line
from ....reference.core.play import Entry, play
from ....reference.core.records import Change, Dropped
from ...generators.cohorts import Cohort, clock_schedule, cohorts_of, record_batches, with_clock_advances
from ...generators.layouts import LAYOUTS, Layout
from ...registration.registration import Registration, registration_of
from ...witnesses.base import RunOptions
from ...witnesses.outcomes import Outcome, differences
from ...witnesses.spark.typed import TypedSparkWitness
from ...witnesses.spark.witness import JobWitness, QueryWitness
from ..base import OWN, REFERENCE, CannotRecheck, Comparison, Law, LawResult, Violation, violations
from ..case import Case
from ..runs import Kind, Sample, TypedRun

AROUND_1970_MS = 40
"""So far before 1970 begin histories to whose operator the clock means something: it doesn't move before 1970."""
LONG_AFTER_MS = 10**12
EMITTED, TWO_KEYS, NULL_KEYS, REORDERED = "change emitted", "two keys", "null key", "batch not in order of time"


class InColumns(Law):
    """In each layout of columns the changelog is the reference's."""

    name = "columns"
    between = ("reference", "spark")
    says = "whatever the types of its columns, what is emitted is what the reference emits"
    follows_changelog = True

    def not_checked(self, registration: Registration) -> str | None:
        """Return why an operator isn't asked: its binding calls it by the columns of cohorts alone."""
        if registration.spark is not None and registration.spark.typed is not None:
            return None
        return "its binding names no columns of other types"

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.kind is Kind.COLUMNS

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return what must come in this layout."""
        layout: Layout = sample.more
        goals = [EMITTED, TWO_KEYS, *[NULL_KEYS] * layout.has_null_keys, *[REORDERED] * (layout.order is None)]
        return [f"{goal} ({layout.name})" for goal in goals]

    def judge(self, run: TypedRun, result: LawResult) -> Iterator[Violation]:  # type: ignore[override]
        """Judge each history of a run in a layout."""
        layout: Layout = run.sample.more
        result.judged += len(run.histories)
        for history in run.histories:
            result.covered.update(f"{goal} ({layout.name})" for goal in _met(history))
        yield from violations(run.histories, map(_compared(layout), run.histories, run.outcomes))

    def recheck(self, cases: Sequence[Case], witness: QueryWitness = OWN) -> list[Comparison]:
        """Ask again about each case, in the layout of its profile; those with null keys share queries too."""
        comparisons: dict[int, Comparison] = {}
        for cohort, indexes in cohorts_of([case.history for case in cases], null_keys_alone=False):
            comparisons |= zip(indexes, self.recheck_cohort(cohort, witness), strict=True)
        return [comparisons[index] for index in range(len(cases))]

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run a cohort again in the layout of its profile.

        Raises:
            CannotRecheck: No layout has a profile of such options, or a user's job is asked.
        """
        if isinstance(witness, JobWitness):
            raise CannotRecheck("the law 'columns' can't be asked of a job, which names its columns itself")
        registration = registration_of(cohort.operator)
        asked = [
            layout for layout, name in layouts_of(registration) if registration.profiles[name] == dict(cohort.options)
        ]
        if not asked:
            raise CannotRecheck(f"in which columns {cohort.operator} ran under {dict(cohort.options)} isn't known")
        found: list[Comparison] = []
        for layout in asked:
            histories = tuple(prepared(layout, history) for history in cohort.histories)
            again = list(
                map(_compared(layout), histories, outcomes_in(layout, replace(cohort, histories=histories), witness))
            )
            found = [one if one.differences else other for one, other in zip(found or again, again, strict=True)]
        return found


def layouts_of(registration: Registration) -> list[tuple[Layout, str]]:
    """Return the layouts in which an operator is asked, each with the name of its profile.

    A batch DataFrame takes one that emits when something closes, for there everything closes; none shares a profile
    while there are enough.
    """
    if registration.spark is None or registration.spark.typed is None:
        return []
    profiles = [*registration.profiles]
    closing = [name for name in profiles if registration.profiles[name].get("emit") == "close"]
    for_batch = closing[0] if closing else profiles[2 % len(profiles)]
    others = [name for name in profiles if name != for_batch] or profiles
    chosen: list[tuple[Layout, str]] = []
    for layout in LAYOUTS:
        if layout.is_batch:
            chosen.append((layout, for_batch))
        else:
            chosen.append((layout, others[len(chosen) % len(others)]))
    return chosen


def outcomes_in(layout: Layout, cohort: Cohort, witness: QueryWitness) -> list[Outcome]:
    """Run a cohort in a layout, with the logic of a witness."""
    registration = registration_of(cohort.operator)
    before_1970_ms = _before_1970_ms(layout, registration, registration.declare(cohort.options))
    run = RunOptions(state_groups=layout.state_groups, partitions=layout.partitions)
    return TypedSparkWitness(layout, before_1970_ms, witness).run(cohort, run)[0]


def prepared(layout: Layout, history: History) -> History:
    """Return a history that has one answer in a layout: without an order, no two records of a batch are of one time."""
    if layout.order is not None:
        return history
    batches = []
    for batch in record_batches(history):
        times: set[int] = set()
        batches.append([one for one in batch if one.timestamp not in times and not times.add(one.timestamp)])  # type: ignore[func-returns-value]
    return replace(history, lines=with_clock_advances(batches, clock_schedule(history)))


def expected(layout: Layout, history: History) -> Outcome:
    """Return what the reference emits of a history in a layout, by batch."""
    registration = registration_of(history.operator)
    definition = registration.declare(history.options)
    before_1970_ms = _before_1970_ms(layout, registration, definition)
    batches, schedule = record_batches(history), clock_schedule(history)
    if layout.order is None:
        batches = [sorted(batch, key=lambda record: record.timestamp) for batch in batches]
    dropped: list[Entry] = []
    shift_ms = 0
    if _starts_in_1970(registration, definition):
        # Windows start from 1970 on, so that a record before that is in none: it is played without, in Spark's times.
        shift_ms = before_1970_ms
        for number, batch in enumerate(batches):
            early = [one for one in batch if one.key is not None and one.timestamp < shift_ms]
            dropped += [Entry(-1, 0 if layout.is_batch else number, Dropped(one.key, "late")) for one in early]
            batches[number] = [
                one._replace(timestamp=max(0, one.timestamp - shift_ms)) for one in batch if one not in early
            ]
        schedule = tuple(max(0, clock - shift_ms) for clock in schedule)
    lines: list[Line] = [] if layout.is_batch else list(with_clock_advances(batches, schedule))
    first = 0
    if layout.is_batch:
        lines = [*(record for batch in batches for record in batch), ClockAdvance(schedule[-1] + LONG_AFTER_MS)]
    elif registration.by_clock(definition) and not shift_ms:
        # Spark's watermark begins at 1970: so does the clock.
        lines, first = [ClockAdvance(before_1970_ms), CUT, *lines], 1
    played = play(history.with_lines(lines))
    outcome = Outcome.of_play(history.name, played)
    entries = [_shifted(entry, first, shift_ms) for entry in [*outcome.entries, *dropped]]
    if not layout.reports_dropped:
        entries = [entry for entry in entries if not isinstance(entry.output, Dropped)]
    return replace(outcome, entries=entries)


def _shifted(entry: Entry, first: int, by_ms: int) -> Entry:
    output: Any = entry.output
    if isinstance(output, Change):
        window = output.window and (output.window[0] + by_ms, output.window[1] + by_ms)
        output = output._replace(window=window, timestamp=output.timestamp + by_ms)
    return entry._replace(batch=max(0, entry.batch - first), output=output)


def _starts_in_1970(registration: Registration, definition: Any) -> bool:
    """Whether windows start at multiples of a step since 1970."""
    return bool(registration.domain.aligned(definition))


def _before_1970_ms(layout: Layout, registration: Registration, definition: Any) -> int:
    """Return how far before 1970 histories begin."""
    aligned = registration.domain.aligned(definition)
    if aligned:
        step = lcm(*(one.step for one in aligned))
        return step * max(1, AROUND_1970_MS // 2 // step)
    by_clock = registration.by_clock(definition)
    return AROUND_1970_MS if by_clock and not layout.is_batch else layout.before_1970_ms


def _compared(layout: Layout) -> Any:
    def compared(history: History, outcome: Outcome) -> Comparison:
        ours, outcome = _without_order_of_null_keys(expected(layout, history)), _without_order_of_null_keys(outcome)
        return Comparison((REFERENCE, ours), ("Spark", outcome), differences(ours, outcome))

    return compared


def _without_order_of_null_keys(outcome: Outcome) -> Outcome:
    """Return an outcome with what is emitted of null keys in one order: of different null parts there is none."""
    null = [entry for entry in outcome.entries if entry.output.key is None]
    others = [entry for entry in outcome.entries if entry.output.key is not None]
    return replace(outcome, entries=[*others, *sorted(null, key=lambda one: (one.batch, repr(one.output)))])


def _met(history: History) -> Iterator[str]:
    if any(isinstance(entry.output, Change) for entry in play(history).entries):
        yield EMITTED
    if len({record.key for record in history.records} - {None}) > 1:
        yield TWO_KEYS
    if any(record.key is None for record in history.records):
        yield NULL_KEYS
    for batch in record_batches(history):
        times = [record.timestamp for record in batch]
        if times != sorted(times):
            yield REORDERED
            return
