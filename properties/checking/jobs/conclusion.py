"""The limits of a job's check: unmet coverage goals, unchecked behaviour, and notes on the job's plan."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence

from ....reference.spark.plans import Scan
from ...generators.columns.formatting import duration
from ...generators.columns.histories.constants import Compares, compares, unreached
from ...generators.columns.inputs import ResolvedInput, values_hint
from ...generators.columns.key_spaces import key_space
from ...generators.columns.model import JobHistory
from ...laws.expected.judging import Judge
from ...laws.variation import CHANGED, Variation
from ...system.progress import tell
from ...witnesses.job.plan.plans import delays_by_input
from ...witnesses.job.plan.skeletons import Skeleton
from ...witnesses.job.running import RESTORED
from ...witnesses.job.scripts.script import BATCHES_BY_CHECK
from ...witnesses.job.witness import RowsWitness
from ..fuzzing.divergences import sentences
from ..notes.playing import plain
from ..notes.rules import notes_of
from .draws import Draws
from .verdicts import CheckFailed, Inconclusive

MIN_HISTORIES = 10
"""A check of fewer histories is inconclusive."""
MIN_EXPECTING = 0.05
"""If fewer histories than this share have an expected row, the check is inconclusive."""
MAX_GOALS_SHOWN = 5
MAX_SIDES_SHOWN = 8
_VALUES = "perhaps the job filters out all drawn values: list values that pass, Input(…, {})"


def tell_of_few(histories: int | None) -> None:
    """Warn before a check if the requested number of histories is too small for the verdict *conforms*."""
    if histories is not None and histories < MIN_HISTORIES:
        tell(
            f"histories={histories}: fewer than {MIN_HISTORIES} are inconclusive, unless the job differs on one of them"
        )


def inconclusive(
    job: str, oracle: str, histories: int, missing: Sequence[str], more: str, seed: int, alone: str = ""
) -> Inconclusive:
    """Return the failure of a check that found no difference but left coverage goals unmet.

    Args:
        job: The job's name.
        oracle: The name of the oracle, with which the job agrees.
        histories: The number of histories.
        missing: The unmet coverage goals, the most important first.
        more: The advice on how to meet the goals.
        seed: The seed of the histories.
        alone: A sentence with the reason why each history ran in its own query.
    """
    rest = len(missing) - MAX_GOALS_SHOWN
    named = "; ".join([*missing[:MAX_GOALS_SHOWN], *[f"and {rest} more"] * (rest > 0)])
    return Inconclusive(
        f"inconclusive: {job} agrees with {oracle} on all {histories} histories, but they are too weak to judge. "
        f"Unmet coverage goals: {named}. Give {more}, or another seed than {seed}.{alone}",
        job=job,
    )


def unfinished(job: str, held: Mapping[str, int], unrun: Sequence[str]) -> Inconclusive:
    """Return the failure of an invariants check whose time limit ended before each invariant had been checked.

    Args:
        job: The job's name.
        held: The invariants that held, with the number of histories of each.
        unrun: The invariants that weren't checked.
    """
    done = "; ".join(f"{name} ({count} histories)" for name, count in held.items()) or "nothing was run"
    return Inconclusive(
        f"inconclusive: not run on {job}, for the time limit of the check was over: {'; '.join(unrun)}. "
        f"The output doesn't change with: {done}. --seconds says how long it may take",
        job=job,
    )


def unmet_goals(
    judge: Judge, draws: Draws, variation: Variation, histories: Sequence[JobHistory], expecting: int, least: int = 0
) -> list[str]:
    """Return the unmet coverage goals of a check, the most important first.

    Args:
        judge: The judge that compares the job with the oracle.
        draws: The object that draws the histories.
        variation: The run options of the job's queries.
        histories: The histories.
        expecting: The number of histories with an expected row.
        least: The smallest number of histories for a verdict, if larger than the default.
    """
    count, met = len(histories), judge.met
    missing = draws.unmet(histories)
    missing[:0] = _unmet_tables(judge.witness, histories)
    if count < (least := max(least, MIN_HISTORIES)):
        missing.insert(0, f"at least {least} histories")
    if expecting < MIN_EXPECTING * count:
        goal = f"expected rows in one of twenty histories (only {expecting} have expected rows)"
        hint = values_hint(draws.inputs, " ".join(column for one in _compares(judge) for column in one.term.columns))
        missing.insert(0, goal if expecting else f"{goal}; {_VALUES.format(hint)}")
    if _has_unknown_timers(judge, draws) and not variation.law:
        missing.insert(0, 'rows around the job\'s event-time timers (timeouts=["30 minutes"] gives their duration)')
    if other := _other_delays(judge):
        missing.insert(0, "the expected watermark delays {} (the job's delays are {})".format(*other))
    unmet = [goal for goal in variation.goals if goal not in met.covered]
    if judge.is_sink and not met.crashed:  # without a crash, no query restarted from a sink's checkpoint
        unmet = [goal for goal in unmet if goal == CHANGED]
    return [*(goal for goal in unmet if met.stateful or goal != RESTORED), *missing]


def _other_delays(judge: Judge) -> list[str]:
    """Return the expected watermark delays and the job's watermark delays as two texts; return an empty list if the
    delays are equal.
    """
    expected_us, plan = judge.oracle.watermark_delays_us, judge.declared.plan
    if expected_us is None or not plan.operators:
        return []
    by_input = delays_by_input(plan, judge.witness.sources)
    if by_input is not None and expected_us.keys() == by_input.keys():
        if expected_us == by_input:
            return []
        return [", ".join(f"{name} {duration(us)}" for name, us in each.items()) for each in (expected_us, by_input)]
    # The check moves all inputs' event times together, so only the largest of several delays matters.
    both = {*expected_us.values()}, {*plan.delays_us}
    if both[0] - {0} == both[1] - {0}:
        return []
    return [" and ".join(map(duration, sorted(each))) or "nothing" for each in both]


def _has_unknown_timers(judge: Judge, draws: Draws) -> bool:
    """Return whether a function uses event-time timers whose duration is unknown, because no plan shows a timer's
    duration.
    """
    by_event_time = judge.declared.plan.by_event_time or judge.met.plan.by_event_time
    return by_event_time and not (draws.options.timers_us or draws.options.timeouts_us or judge.oracle.distances_us)


def _unmet_tables(witness: RowsWitness, histories: Sequence[JobHistory]) -> list[str]:
    """Return a coverage goal for each static table whose keys no history contains."""
    if not witness.keyed:
        return []
    columns = key_space(witness.sources).columns
    drawn = {row[columns[name]] for history in histories for name, row in history.arrivals}
    remedy = f'Input(…, values={{"{next(iter(columns.values()))}": […]}}) lists values to draw'
    return [
        f"rows with a key of the table {name} ({remedy})"
        for name in sorted(witness.keyed)
        if not drawn & witness.keys_of(name)
    ]


def not_checked(judge: Judge, draws: Draws, histories: Sequence[JobHistory]) -> list[str]:
    """List the behaviours that the check didn't cover, each with a way to check the behaviour.

    Args:
        judge: The judge that compared the job with the oracle.
        draws: The object that draws the histories.
        histories: The executed histories.
    """
    left, met, out_of_order = [], judge.met, draws.options.out_of_order
    if not draws.takes_late:
        left.append(
            "late rows, because this oracle ignores lateness: a rule, such as windows(…) or stream_join(…), or "
            "a class checks them"
        )
        if out_of_order is None and draws.delay_us:
            left.append('the watermark\'s delay: out_of_order="10 minutes" says how late events may be')
        if out_of_order is None and judge.is_sink:
            left.append('rows that are late by whole batches: out_of_order="10 minutes" draws them')
    if judge.computed_keys and not judge.witness.alone:
        left.append(
            f"what the job computes with the key {' and '.join(judge.computed_keys)}, except for a few histories "
            "that ran alone: a shared query prefixes keys or changes numeric keys; keys=[…] or alone=True "
            "checks this"
        )
    thresholds = sorted(judge.declared.plan.thresholds | met.plan.thresholds)
    if undrawn := [f"{name} at {number}" for name, number in thresholds if not _are_given(name, draws.inputs)]:
        hint = values_hint(draws.inputs, " ".join(undrawn))
        left.append(
            f"values near the constants that the job compares with, {' and '.join(undrawn)}: Input(…, {hint}) "
            "draws some"
        )
    if sides := _unreached(judge, draws, histories):
        left.append(
            f"what the job does because of its own constants, where {'; '.join(sides)}: Input(…, "
            f"{values_hint(draws.inputs, '; '.join(sides))}) lists values to draw"
        )
    return [*left, *judge.oracle.unchecked, *_not_drawn(draws.inputs)]


def limits(judge: Judge) -> list[str]:
    """List the limits of a verdict, one sentence for each limit: Spark's divergences, columns, sinks, triggers and
    settings.
    """
    job, met = judge.witness.runner.job, judge.met
    columns = {
        ": without= leaves them out": sorted(judge.without),
        ", whose values differ between runs: they contain times of the clock, random values, files, partitions "
        "or offsets": (sorted(met.nondeterministic)),
        ": the oracle doesn't return them": met.extra,
        ": the oracle returns them, and the job's result lacks them": met.left_out,
    }
    found = [f"Not compared: the columns {', '.join(names)}{why}" for why, names in columns.items() if names]
    if judge.declared.columns and {*judge.declared.columns} <= met.nondeterministic | judge.without:
        found.insert(0, "Only the number of rows was compared, because no column has the same values in each run")
    found += [f"Not checked: {note}" for note in getattr(job, "notes", ())]
    found += [f"Not checked: the trigger {one}: {BATCHES_BY_CHECK}" for one in sorted(met.triggers)]
    script = getattr(getattr(job, "start", job), "script", job)
    settings = {**getattr(getattr(script, "found", None), "settings", {}), **judge.declared.settings, **met.settings}
    if settings:
        found.append(f"Set by the job: {', '.join(f'{name}={value}' for name, value in sorted(settings.items()))}")
    return [*sentences(judge.divergences), *found]


def notes_on(judge: Judge) -> list[str]:
    """Return the notes on a job's plan; return an empty list if the plan is unknown."""
    plan = judge.declared.plan if judge.declared.plan.operators else judge.met.plan
    if plan.skeleton is None:
        return []
    columns = {source.name: [*source.wire_schema.names] for source in judge.witness.sources}
    try:
        return [str(note) for note in notes_of(plan.skeleton, _named(plan.skeleton, columns))]
    except (LookupError, TypeError, ValueError) as error:  # notes are optional: the verdict stands without them
        return [f"No notes on what the plan drops, delays and keeps: {type(error).__name__}: {error}"]


def _named(skeleton: Skeleton, columns: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the inputs' names by their names in the plan; inputs with the same columns are left out, because the plan
    doesn't tell them apart.
    """
    sources = {node.name: node for part in skeleton.parts for node in part.walk() if isinstance(node, Scan)}
    named = {}
    for number, source in sources.items():
        # A scan node lists the input's own columns first, then the columns that Spark computes from them.
        names = [plain(column) for column in source.columns]
        alike = [name for name, own in columns.items() if names[: len(own)] == own]
        if len(alike) == 1:
            named[number] = alike[0]
    return named if len({*named.values()}) == len(named) else {}


@contextlib.contextmanager
def noting(judge: Judge) -> Iterator[None]:
    """If the check in the block fails, add the notes on the job's plan to the failure."""
    __tracebackhide__ = True
    try:
        yield
    except CheckFailed as failed:
        failed.notes = [*failed.notes, *notes_on(judge)]
        raise


def _unreached(judge: Judge, draws: Draws, histories: Sequence[JobHistory]) -> list[str]:
    """Return the results (true or false) of the job's comparisons with constants that no drawn row produces, as
    texts.
    """
    sides = unreached(_compares(judge), draws.inputs, histories, keys=judge.witness.alone)
    rest = len(sides) - MAX_SIDES_SHOWN
    return [*sides[:MAX_SIDES_SHOWN], *[f"and {rest} more"] * (rest > 0)]


def _compares(judge: Judge) -> list[Compares]:
    """Return the comparisons of input columns with constants in the job's plan."""
    plan = judge.declared.plan if judge.declared.plan.operators else judge.met.plan
    return compares(plan.comparisons, judge.witness.sources)


def _are_given(column: str, inputs: Sequence[ResolvedInput]) -> bool:
    """Return whether the user lists a column's values, or the column is an event time, which is drawn near edges such
    as window ends.
    """
    return any(column in (*one.pools, one.source.time) for one in inputs)


def _not_drawn(inputs: Sequence[ResolvedInput]) -> list[str]:
    """List the kinds of rows, such as rows without an event time, that histories lack because the `Input` sets no share
    for them.
    """
    left = []
    may_be_null = [one for one in inputs if not one.null_times and one.source.schema.field(one.source.time).nullable]
    if may_be_null:
        named = " and ".join(f"{one.source.time} of {one.name}" for one in may_be_null)
        left.append(f"null event times, in {named}: Input(…, null_times=0.05) draws some")
    whole = [one.name for one in inputs if one.source.has_payload and not one.malformed]
    if whole:
        left.append(
            f"payloads that can't be parsed as rows, on {' and '.join(whole)}: Input(…, malformed=0.05) draws some"
        )
    return left
