"""The law *columns*: with typed columns, as in users' jobs, each column of the changelog equals the reference's.

The operator has different options in each layout of columns, so a history's options identify the layout.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import count
from math import lcm
from typing import Any, NamedTuple, TypeAlias

from ....reference.core.history import CUT, ClockAdvance, History, Line
from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Record
from ....spark_impl.runtime.logic import DROPPED
from ...generators.cohorts import Cohort, clock_schedule, record_batches, with_clock_advances
from ...generators.coverage import keeps_null_keys
from ...generators.layouts import LAYOUTS, OTHER_OPTIONS, Layout, moved
from ...generators.values import FRACTIONS, OF_32_BITS, OF_64_BITS
from ...outcomes.outcomes import Outcome, differences
from ...registration.registration import Options, Registration, registration_of
from ...witnesses.run_options import Crash, RunOptions
from ...witnesses.spark.answers import Label
from ...witnesses.spark.typed import TypedAnswer, TypedSparkWitness, others_of
from ...witnesses.spark.witness import JobWitness, QueryWitness
from ..base import REFERENCE, BrokenCase, CannotRecheck, Comparison, Law, LawResult, violations
from ..causes import played_with_causes
from ..runs import Kind, Sample, TypedRun
from .labels import label_differences, labels_of

AROUND_1970_MS = 40
"""How long before 1970 histories start (ms), for operators that depend on the clock, which starts at 1970."""
LONG_AFTER_MS = 10**12
AHEAD_MS = 10_000
"""How far (ms) rows without a key are ahead of other rows, so that an effect of these rows on the clock shows."""
EMITTED, TWO_KEYS, NULL_KEYS, REORDERED = "change emitted", "two keys", "null key", "batch not in order of time"
MOVED = "clock moved by a record"
"""The prefix of a coverage goal about a record of an input."""
TODAY = "change emitted at a time of more than 32 bits"
NO_CLOCK = "null key that the clock must not follow"
FRACTION, WIDE = "fraction emitted", "number of more than 32 bits emitted"
STORED, REFUSED = "key read by read_state", "start refused with"
AGAIN_CHANGED, AGAIN_NULL, AGAIN_LATE = (
    f"{what} in a repeated batch" for what in ("change emitted", "null key", "late record")
)


class InLayout(NamedTuple):
    """A layout of columns, with an operator's options.

    Attributes:
        layout: The layout.
        profile: The layout's name in reports.
        options: The operator's options.
        kind: The name of the kind of values that are drawn.
    """

    layout: Layout
    profile: str
    options: Options
    kind: str


class InColumns(Law):
    """Compares the changelog in each layout with the reference's: every column, and the ordered changes of each key."""

    name = "columns"
    between = ("reference", "spark")
    kinds = (Kind.COLUMNS,)
    says = "in typed columns, whatever their types, each column of the changelog is as the reference has it"
    follows_changelog = True
    null_keys_alone = False

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why the law skips an operator, for example because the binding supports only a cohort's
        columns.
        """
        if registration.spark is not None and registration.spark.typed is not None:
            return None
        return "its binding names no columns of other types"

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the coverage goals of a layout."""
        asked: InLayout = sample.more
        return [f"{goal} ({asked.layout.name})" for goal in _goals(asked, sample.registration, sample.definition)]

    def judge(self, run: TypedRun, result: LawResult) -> Iterator[BrokenCase]:  # type: ignore[override]
        """Judge each history of a run in a layout."""
        asked: InLayout = run.sample.more
        result.judged += len(run.histories)
        comparisons = []
        for history, answer in zip(run.histories, run.answers, strict=True):
            ours = expected(asked.layout, history)
            met = _met(asked, history, ours, answer)
            result.covered.update(f"{goal} ({asked.layout.name})" for goal in {*met})
            comparisons.append(_compared(history, ours, answer))
        yield from violations(run.histories, comparisons)

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run a cohort again in the layout that has the cohort's options.

        Raises:
            CannotRecheck: No layout has these options, or the witness runs a user's job.
        """
        if isinstance(witness, JobWitness):
            raise CannotRecheck("the law 'columns' doesn't apply to a job, which has its own column names")
        asked = [one for one in layouts_of(registration_of(cohort.operator)) if one.options == dict(cohort.options)]
        if not asked:
            raise CannotRecheck(f"the columns in which {cohort.operator} ran under {dict(cohort.options)} are unknown")
        found: list[Comparison] = []
        for one in asked:
            histories = tuple(prepared(one.layout, history) for history in cohort.histories)
            answers = answers_in(one.layout, replace(cohort, histories=histories), witness)
            again = [
                _compared(
                    history, ours, ours if answer.failed == "together" else answer
                )  # a run that fails covers no goal
                for history, answer in zip(histories, answers, strict=True)
                for ours in [expected(one.layout, history)]
            ]
            found = [one if one.differences else other for one, other in zip(found or again, again, strict=True)]
        return found


def layouts_of(registration: Registration) -> list[InLayout]:
    """Return an operator's layouts of columns, each with options of the operator.

    The options come from profiles, unless the operator's binding to Spark lists options. The layout with a batch
    DataFrame has a profile that emits on close, because a batch query closes all windows. The layouts have different
    profiles, if the operator has enough profiles.
    """
    if registration.spark is None or registration.spark.typed is None:
        return []
    if registration.spark.asked:
        return [
            InLayout(
                _declarable(layout, registration.name, asked.options),
                layout.name,
                dict(asked.options),
                asked.kind or layout.kind,
            )
            for layout, asked in zip(LAYOUTS, registration.spark.asked, strict=True)
        ]
    profiles = [*registration.profiles]
    closing = [name for name in profiles if registration.profiles[name].get("emit") == "close"]
    for_batch = closing[0] if closing else profiles[2 % len(profiles)]
    others = [name for name in profiles if name != for_batch] or profiles
    chosen: list[InLayout] = []
    for layout in LAYOUTS:
        name = for_batch if layout.is_batch else others[len(chosen) % len(others)]
        options = dict(registration.profiles[name])
        layout = _declarable(layout, registration.name, options)
        chosen.append(InLayout(layout, f"{name}, {layout.name}", options, layout.kind))
    return chosen


def _declarable(layout: Layout, operator: str, options: Options) -> Layout:
    """Return a layout; if the operator has only one set of options, omit the restart with other options."""
    if any(others_of(operator, options)):
        return layout
    return replace(layout, starts_otherwise=[one for one in layout.starts_otherwise if one != OTHER_OPTIONS])


def in_turn(asked: InLayout, seed: int) -> InLayout:
    """Return a layout with only one of its changed declarations, chosen by the seed, because each restart costs a
    batch.
    """
    declared = asked.layout.starts_otherwise
    return asked._replace(layout=replace(asked.layout, starts_otherwise=declared and [declared[seed % len(declared)]]))


def answers_in(layout: Layout, cohort: Cohort, witness: QueryWitness) -> list[TypedAnswer]:
    """Run a cohort in a layout with a witness's logic; crash and restart the query if the layout says so."""
    registration = registration_of(cohort.operator)
    starts_at_ms = _starts_at_ms(layout, registration, registration.declare(cohort.options))
    run = RunOptions(
        crash_in=() if layout.crash_in is None else (Crash(layout.crash_in),),
        state_groups=layout.state_groups,
        partitions=layout.partitions,
    )
    return TypedSparkWitness(layout, starts_at_ms, witness).typed_answers(cohort, run.clipped(len(cohort.schedule)))


def prepared(layout: Layout, history: History) -> History:
    """Return a history whose output in a layout is unambiguous: without an order column, keep one record for each
    timestamp in a batch.
    """
    if layout.order is not None:
        return history
    batches = []
    for batch in record_batches(history):
        by_time: dict[int, Record] = {}
        for record in batch:
            by_time.setdefault(record.timestamp, record)
        batches.append([*by_time.values()])
    return replace(history, lines=with_clock_advances(batches, clock_schedule(history)))


def with_null_keys_ahead(history: History) -> History:
    """Return a history in which every second record without a key has a timestamp far ahead, if the operator drops
    records without a key.
    """
    if keeps_null_keys(registration_of(history.operator).declare(history.options)):
        return history
    lines: list[Line] = []
    is_ahead = False
    for line in history.lines:
        if isinstance(line, Record) and line.key is None:
            is_ahead = not is_ahead
            line = line._replace(timestamp=line.timestamp + AHEAD_MS * is_ahead)
        lines.append(line)
    return history.with_lines(lines)


def expected(layout: Layout, history: History) -> TypedAnswer:
    """Return the reference's output for a history in a layout, by batch, and the expected labels of each change."""
    registration = registration_of(history.operator)
    definition = registration.declare(history.options)
    starts_at_ms = _starts_at_ms(layout, registration, definition)
    count_up = count()
    numbered = [[(next(count_up), record) for record in batch] for batch in record_batches(history)]
    schedule = clock_schedule(history)
    if layout.order is None:
        numbered = [sorted(batch, key=lambda one: one[1].timestamp) for batch in numbered]
    early: list[tuple[Entry, Label]] = []
    shift_ms = 0
    if starts_at_ms > 0 or registration.domain.aligned(definition):
        shift_ms = starts_at_ms
        numbered, early = _in_times_of_spark(layout, numbered, shift_ms)
        schedule = tuple(max(0, clock + shift_ms) for clock in schedule)
    batches = [[one for _, one in batch] for batch in numbered]
    lines: list[Line] = [] if layout.is_batch else list(with_clock_advances(batches, schedule))
    first = 0
    if layout.is_batch:
        lines = [*(record for batch in batches for record in batch), ClockAdvance(schedule[-1] + LONG_AFTER_MS)]
    elif registration.by_clock(definition) and not shift_ms:
        # Start the clock at 1970, as Spark's watermark does.
        lines, first = [ClockAdvance(-starts_at_ms), CUT, *lines], 1
    as_played = history.with_lines(lines)
    played, causes = played_with_causes(as_played)
    numbers = [number for batch in numbered for number, _ in batch]
    times = {number: one.timestamp for number, one in enumerate(history.records)}
    windows_too = getattr(definition, "unit", None) != "tuple"
    entries = [(_shifted(entry, first, shift_ms, windows_too)) for entry in played.entries]
    labels = [
        label._replace(
            batch=max(0, label.batch - first),
            cause=None if label.cause is None else numbers[label.cause],
            timestamp=None if label.cause is None or label.timestamp is None else times[numbers[label.cause]],
        )
        for label in labels_of(as_played, played, causes)
    ]
    entries += [entry for entry, _ in early]
    labels += [label for _, label in early]
    if not layout.reports_dropped:
        entries = [entry for entry in entries if not isinstance(entry.output, Dropped)]
        labels = [label for label in labels if label.change != DROPPED]
    if early:  # records dropped before 1970 come in their order of arrival
        labels.sort(key=lambda label: (label.cause or 0) if label.change == DROPPED else -1)
    if layout.order is None:
        labels = [label._replace(cause=None) for label in labels]
    return TypedAnswer(replace(Outcome.of_play(history.name, played), entries=entries), labels)


_Numbered: TypeAlias = list[list[tuple[int, Record]]]
"""The records of each batch, with their indexes in the history."""


def _in_times_of_spark(
    layout: Layout, numbered: _Numbered, shift_ms: int
) -> tuple[_Numbered, list[tuple[Entry, Label]]]:
    """Return records with the timestamps that Spark receives, and the outputs of records that are dropped because they
    are before 1970.
    """
    kept: _Numbered = [[] for _ in numbered]
    early: list[tuple[Entry, Label]] = []
    for batch, of_batch in enumerate(numbered):
        at = 0 if layout.is_batch else batch
        for number, record in of_batch:
            timestamp = record.timestamp + shift_ms
            if record.key is None or timestamp >= 0:
                kept[batch].append((number, record._replace(timestamp=max(0, timestamp))))
            else:
                label = Label(at, record.key, DROPPED, number, record.timestamp)
                early.append((Entry(-1, at, Dropped(record.key, "late")), label))
    return kept, early


def _shifted(entry: Entry, first: int, by_ms: int, windows_too: bool) -> Entry:
    output: Any = entry.output
    if isinstance(output, Change):
        window = output.window
        if window is not None and windows_too:
            window = moved(window, -by_ms)
        output = output._replace(window=window, timestamp=output.timestamp - by_ms)
    return entry._replace(batch=max(0, entry.batch - first), output=output)


def _starts_at_ms(layout: Layout, registration: Registration, definition: Any) -> int:
    """Return the timestamp at which histories start (ms since 1970)."""
    aligned = registration.domain.aligned(definition)
    if not (aligned if layout.is_batch else registration.by_clock(definition)):
        return layout.starts_at_ms
    if layout.starts_at_ms_by_clock is not None:
        return layout.starts_at_ms_by_clock
    step = lcm(*(one.step for one in aligned))
    return -step * max(1, AROUND_1970_MS // 2 // step) if aligned else -AROUND_1970_MS


def _compared(history: History, ours: TypedAnswer, theirs: TypedAnswer) -> Comparison:
    outcome, other = (_without_order_of_null_keys(one.outcome) for one in (ours, theirs))
    labels, others = (_labels_without_order_of_null_keys(one.labels) for one in (ours, theirs))
    found = [*differences(outcome, other), *label_differences(history, labels, others), *theirs.wrong]
    return Comparison((REFERENCE, outcome), ("Spark", other), found)


def _without_order_of_null_keys(outcome: Outcome) -> Outcome:
    """Return an outcome with the output of null keys sorted: the order between keys with different null columns isn't
    defined.
    """
    null = [entry for entry in outcome.entries if entry.output.key is None]
    others = [entry for entry in outcome.entries if entry.output.key is not None]
    return replace(outcome, entries=[*others, *sorted(null, key=lambda one: (one.batch, repr(one.output)))])


def _labels_without_order_of_null_keys(labels: Sequence[Label]) -> list[Label]:
    null = [label for label in labels if label.key is None]
    return [*(label for label in labels if label.key is not None), *sorted(null, key=repr)]


def _goals(asked: InLayout, registration: Registration, definition: Any) -> Iterator[str]:
    layout = asked.layout
    yield from (EMITTED, TWO_KEYS)
    by_clock = registration.by_clock(definition)
    drops_null_keys = layout.has_null_keys and not keeps_null_keys(definition)
    if layout.has_null_keys:
        yield NULL_KEYS
    if layout.order is None:
        yield REORDERED
    if not _fits(_starts_at_ms(layout, registration, definition)):
        yield TODAY
    if by_clock and drops_null_keys and not layout.is_batch:
        yield NO_CLOCK
    if by_clock and not layout.is_batch:
        yield from (f"{MOVED} (of {side})" for side in definition.inputs)
    if layout.crash_in is not None:
        yield AGAIN_CHANGED
        if drops_null_keys:
            yield AGAIN_NULL
        if by_clock:
            yield AGAIN_LATE
    if layout.reads_state:
        yield STORED
    yield from (f"{REFUSED} {declared}" for declared in layout.starts_otherwise)
    yield from _goals_of_values(asked, definition)


def _goals_of_values(asked: InLayout, definition: Any) -> Iterator[str]:
    """Return the names of the coverage goals for aggregates of numbers."""
    name = getattr(getattr(definition, "aggregate", None), "name", None)
    if getattr(definition, "storage", None) == "full":
        return
    if asked.kind == FRACTIONS and name in ("sum", "average", "min", "max"):
        yield FRACTION
    if (asked.kind == OF_32_BITS and name == "sum") or (asked.kind == OF_64_BITS and name in ("sum", "min", "max")):
        yield WIDE


def _met(asked: InLayout, history: History, ours: TypedAnswer, answer: TypedAnswer) -> Iterator[str]:
    """Return the names of the coverage goals that a history met; `ours` is the history's expected outcome."""
    layout, registration = asked.layout, registration_of(history.operator)
    starts_at_ms = _starts_at_ms(layout, registration, registration.declare(history.options))
    changes = [entry.output for entry in ours.outcome.entries if isinstance(entry.output, Change)]
    if changes:
        yield EMITTED
    if any(not _fits(change.timestamp + starts_at_ms) for change in changes):
        yield TODAY
    numbers = [*_numbers(change.value for change in changes)]
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        yield FRACTION
    if any(not _fits(number) for number in numbers):
        yield WIDE
    if len({record.key for record in history.records} - {None}) > 1:
        yield TWO_KEYS
    if any(record.key is None for record in history.records):
        yield NULL_KEYS
        if expected(layout, _followed_by_the_clock(history)).outcome.entries != ours.outcome.entries:
            yield NO_CLOCK
    for batch, clock in zip(record_batches(history), clock_schedule(history), strict=True):
        if [*batch] != sorted(batch, key=lambda record: record.timestamp):
            yield REORDERED
        yield from (f"{MOVED} (of {one.input})" for one in batch if one.key is not None and one.timestamp == clock)
    if answer.stored:
        yield STORED
    yield from (f"{REFUSED} {declared}" for declared in answer.refused)
    if answer.repeated and layout.crash_in is not None:
        again = [label for label in ours.labels if label.batch == layout.crash_in]
        if any(label.change != DROPPED for label in again):
            yield AGAIN_CHANGED
        if any(label.change == DROPPED and label.key is None for label in again):
            yield AGAIN_NULL
        if any(label.change == DROPPED and label.key is not None for label in again):
            yield AGAIN_LATE


def _followed_by_the_clock(history: History) -> History:
    """Return a history whose clock also follows the records without a key."""
    lines: list[Line] = []
    for line in history.lines:
        lines.append(line)
        if isinstance(line, Record) and line.key is None:
            lines.append(ClockAdvance(line.timestamp))
    return history.with_lines(lines)


def _numbers(values: Iterable[Any]) -> Iterator[int | float]:
    for value in values:
        if isinstance(value, list):
            yield from _numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield value


def _fits(number: float) -> bool:
    return -(2**31) <= number < 2**31
