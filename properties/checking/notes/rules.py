"""Notes on rows that a plan drops, delays or keeps in state, each with the smallest history that shows the fact."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ....reference.spark.execution import Batch
from ....reference.spark.groups import Groups
from ....reference.spark.plans import Aggregation, Deduplication, Join, Node, Processing, Scan, pruned
from ...generators.columns.formatting import duration
from ...witnesses.job.plan.skeletons import Skeleton
from .playing import LONG_US, START_US, Batches, PlayedPlan, first_that, moment, origins, plain

FORGETS_NEVER = "never forgets"
DROPS_LATE = "drops late rows"
WAITS = "rows wait"
OUTER_AS_INNER = "outer join filtered"
TIME_IN_KEY = "event time among the keys"
LOST = "rows without a partner"
BY_ORDER = "order of rows"
NEVER = "never emitted"
UNTIMED = "no timeout"


@dataclass(frozen=True)
class Note:
    """A fact about a plan that may surprise the plan's author.

    Attributes:
        name: Its name.
        says: The fact in a sentence, without the full stop.
        history: The smallest history that shows the fact, one line for each batch; empty: the fact needs no history.
    """

    name: str
    says: str
    history: Sequence[str] = ()

    def __str__(self) -> str:
        return "\n".join([f"Note ({self.name}): {self.says}", *(f"    {line}" for line in self.history)])


def notes_of(skeleton: Skeleton, inputs: Mapping[str, str] | None = None) -> list[Note]:
    """Return the notes on a plan.

    Args:
        skeleton: The plan.
        inputs: The names of the inputs in messages, by their names in the plan; None: a message describes an input by
            its columns.
    """
    linter = _Linter(skeleton, inputs or {})
    found = [*linter.filtered(), *linter.lookups(), *linter.by_order(), *linter.untimed()]
    parts = [pruned(part) for part in skeleton.parts]  # each stage without unused columns, as Spark runs it
    for part in parts:
        for node in part.walk():
            if node.is_stateful and (stage := linter.stage(node)).is_known:
                found += [*linter.forgets(stage), *linter.keys(stage), *linter.unmatched(stage)]
        found += [*linter.late(part)]
    for whole in parts[-1:]:
        found += [*linter.waits(linter.stage(whole))]
    return [*dict.fromkeys(found)]


def scanned(plan: Node) -> set[str]:
    """Return the names of the inputs that a node reads."""
    return {node.name for node in plan.walk() if isinstance(node, Scan)}


class _Linter:
    def __init__(self, skeleton: Skeleton, inputs: Mapping[str, str]) -> None:
        self.skeleton, self.inputs = skeleton, inputs

    def stage(self, plan: Node) -> PlayedPlan:
        return PlayedPlan(plan, self.skeleton.types, self.skeleton.policy)

    def of(self, stage: PlayedPlan, source: str) -> str:
        """Return the phrase for a row of an input in messages."""
        times = sorted(map(plain, stage.times[source]))
        return f"row of {self.inputs.get(source) or ' and '.join(times) or 'the input'}"

    def forgets(self, stage: PlayedPlan) -> Iterator[Note]:
        """Report a stage that keeps a row in its state after the watermark has moved a year beyond the row."""
        node = stage.plan
        if isinstance(node, Processing) or (isinstance(node, Aggregation) and not self.keys_of(node)):
            return
        found: dict[str, Batches] = {}
        for source in stage.sources:
            for probe in stage.sources:
                if isinstance(node, Join) and len(stage.sources) > 1 and probe == source:
                    continue
                if (history := self.remembered(stage, source, probe)) is not None:
                    found.setdefault(source, history)
        if not found:
            return
        history = next(iter(found.values()))
        moves = "the watermark moves" if len(history) > 2 else ""
        ends = ["", *[moves] * (len(history) - 2), self.still(node)]
        lines = [self.line(stage, number, *pair) for number, pair in enumerate(zip(history, ends, strict=True), 1)]
        named = [self.inputs.get(one) for one in found]
        whose = f" of {' and '.join(filter(None, named))}" if len(found) < len(stage.sources) and all(named) else ""
        yield Note(FORGETS_NEVER, self.for_ever(node, whose), tuple(lines))

    def remembered(self, stage: PlayedPlan, source: str, probe: str) -> Batches | None:
        """Return a history in which a row is still in the state when a later row of `probe` arrives; None: the state
        has forgotten the row.
        """
        far_us = START_US + LONG_US
        moves = [stage.all_at(far_us)] if stage.watermarks else []
        row = stage.row(source, START_US)
        for time_us in (far_us + 60_000_000, START_US):
            last = {probe: [stage.row(probe, time_us)]}
            history = [{source: [row]}, *moves, last]
            since = len(history) - 1
            if stage.emitted(history, since) != stage.emitted([{}, *moves, last], since):
                return history
        return None

    def after_start(self, stage: PlayedPlan) -> list[int]:
        """Return the event times near which a stage's result may change, given a row at the start of the history."""
        return [START_US + one for one in stage.distances_us]

    def keys_of(self, node: Node) -> tuple[str, ...]:
        """Return the columns by which a node groups or joins rows."""
        if isinstance(node, Aggregation):
            return node.by.columns if isinstance(node.by, Groups) else (*node.by.keys, node.by.time)
        if isinstance(node, Deduplication):
            return node.by
        return (*node.by.keys[0], *node.by.keys[1]) if isinstance(node, Join) else ()

    def columns(self, stage: PlayedPlan) -> list[str]:
        """Return the input columns from which a node's grouping or joining columns are computed."""
        keys = self.keys_of(stage.plan)
        return [name for key in keys for one in stage.plan.inputs for _, name in origins(one, key)]

    def line(self, stage: PlayedPlan, number: int, batch: Batch, end: str) -> str:
        """Return a batch of a history as one line of text."""
        columns, several = self.columns(stage), len(stage.sources) > 1
        rows = [
            f"{self.inputs[name]}: {text}" if several and name in self.inputs else text
            for name, rows in batch.items()
            for text in (stage.shown(name, row, columns) for row in rows)
        ]
        return f"batch {number}: {'; '.join(rows)}{': ' * bool(end)}{end}"

    def named(self, keys: Sequence[str]) -> str:
        return ", ".join(dict.fromkeys(map(plain, keys))) or "no column"

    def for_ever(self, node: Node, whose: str) -> str:
        if isinstance(node, Join):
            return (
                f"this join never forgets a row{whose}, and its state grows forever; give both inputs a "
                "watermark, and bound one event time by the other in the join's condition"
            )
        if isinstance(node, Deduplication):
            return (
                f"the deduplication by {self.named(node.by)} remembers each row forever, and its state grows; "
                "dropDuplicatesWithinWatermark forgets rows"
            )
        mode = getattr(getattr(node, "by", None), "mode", "")
        why = (
            "complete mode keeps all groups"
            if mode == "complete"
            else "no event time with a watermark is among these columns"
        )
        return f"the groups by {self.named(self.keys_of(node))} are kept forever, and their state grows: {why}"

    def still(self, node: Node) -> str:
        if isinstance(node, Join):
            return "the first row is still joined"
        return "still dropped" if isinstance(node, Deduplication) else "the first row is still counted"

    def keys(self, stage: PlayedPlan) -> Iterator[Note]:
        """Report a deduplication that keeps two rows with different event times and otherwise equal columns."""
        node = stage.plan
        if not isinstance(node, Deduplication) or node.within_watermark:
            return
        times = [time.column for time in node.input.event_times if time.column in node.by]
        if not times or len(node.by) < 2:
            return
        for source, name in origins(node.input, times[0]):
            first, second = ({**stage.row(source, START_US), name: START_US + after_us} for after_us in (0, 1_000_000))
            rows = stage.emitted([{source: [first, second]}])
            if len(rows) == 2:
                others = self.named([one for one in node.by if one != times[0]])
                yield Note(
                    TIME_IN_KEY,
                    f"the deduplication has the event time {plain(times[0])} among its columns: it keeps both of "
                    f"two rows with the same {others} at {moment(first[name])} and {moment(second[name])}; if a "
                    "copy can have another time, use dropDuplicatesWithinWatermark",
                )
                return

    def unmatched(self, stage: PlayedPlan) -> Iterator[Note]:
        """Report an inner join, which never emits a row without a match."""
        node = stage.plan
        if not isinstance(node, Join) or node.by.join != "inner" or len(stage.sources) != 2 or not stage.watermarks:
            return
        yield Note(
            LOST,
            f"this inner join never emits a row without a partner of the same {self.named(node.by.keys[0])}; an "
            "outer join does",
        )

    def lookups(self) -> Iterator[Note]:
        """Report an inner join with a table, which drops rows whose key isn't in the table."""
        for lookup in self.skeleton.lookups:
            if lookup.is_inner:
                keys = self.named(lookup.keys)
                yield Note(
                    LOST,
                    f"this inner join with a table drops each row whose {keys} is null or not in the table; "
                    'how="left" keeps the row',
                )

    def by_order(self) -> Iterator[Note]:
        """Report an aggregate function whose result depends on the order of rows."""
        for function, column in dict.fromkeys(self.skeleton.by_order):
            yield Note(
                BY_ORDER,
                f"{function}({plain(column)}) depends on the order in which Spark reads the rows of a group; "
                "min_by and max_by, of a column that orders all rows, don't",
            )

    def untimed(self) -> Iterator[Note]:
        """Report a function with state, because Spark doesn't call the function for a key without rows."""
        if self.skeleton.untimed:
            yield Note(
                UNTIMED,
                "a function with state has neither a timeout nor timers: the state of a key without further rows is "
                "kept for ever, unless the function removed it before",
            )

    def filtered(self) -> Iterator[Note]:
        """Report a filter that drops the unmatched rows that an outer join keeps."""
        for join, kept, keys, columns in self.skeleton.filtered:
            by = self.named(columns)
            says = (
                f"a filter by {by} after the outer join drops every row of its {kept} side without a partner, as "
                f"an inner join does, because {by} is null there; filter the other side before the join"
            )
            history: list[str] = []
            if join is not None and (stage := self.stage(join)).is_known:
                history = self.dropped(stage, kept)
            elif keys:
                history = [f"batch 1: a row whose {self.named(keys)} has no partner: joined with nulls, and dropped"]
            yield Note(OUTER_AS_INNER, says, tuple(history))

    def dropped(self, stage: PlayedPlan, kept: str) -> list[str]:
        """Return the smallest history in which a join emits an unmatched row that the filter above drops."""
        join = stage.plan
        assert isinstance(join, Join)
        (source,) = scanned(join.inputs[kept == "right"])
        row = stage.row(source, START_US)

        def alone(time_us: int) -> bool:
            return stage.is_emitted([{source: [row]}, stage.all_at(time_us)], [{}, stage.all_at(time_us)])

        if not alone(START_US + LONG_US):
            return []
        until_us = first_that(alone, START_US, START_US + LONG_US, self.after_start(stage))
        end = "the join emits the first row with nulls, and the filter drops this row"
        return [
            self.line(stage, 1, {source: [row]}, ""),
            self.line(stage, 2, stage.all_at(until_us), end),
        ]

    def late(self, part: Node) -> Iterator[Note]:
        """Report an input whose late rows are dropped."""
        found: dict[str, tuple[int, str]] = {}
        for node in part.walk():
            if not node.is_stateful or not node.inputs or not (stage := self.stage(node)).is_known:
                continue
            for source, columns in stage.times.items():
                if columns and (dropped := self.dropped_late(stage, source)) is not None:
                    after_us, late_us = dropped
                    time, late = " and ".join(sorted(map(plain, columns))), (after_us - late_us) // 1_000 * 1_000
                    says = (
                        f"a {self.of(stage, source)} whose {time} is {duration(late)} or more behind the latest may be "
                        f"dropped: {moment(late_us)} after {moment(after_us)}, for example"
                    )
                    found[source] = min(found.get(source, (LONG_US, "")), (after_us - late_us, says))
        yield from (Note(DROPS_LATE, says) for _, says in found.values())

    def dropped_late(self, stage: PlayedPlan, source: str) -> tuple[int, int] | None:
        """Return the largest event time of the first batches, and the event time of a row that the next batch then
        drops as late; None: the plan drops no late row.
        """
        others = [name for name in stage.sources if name != source]

        def is_dropped(after_us: int, late_us: int) -> bool:
            partners = {name: [stage.row(name, late_us + self.apart_us(stage, source))] for name in others}
            # Two batches move the watermark: after the first, a join without time bounds runs no batch without data.
            before, flush = [partners, *[stage.all_at(after_us)] * 2], [stage.all_at(after_us + LONG_US)]
            late = {source: [stage.row(source, late_us)]}
            return stage.emitted([*before, late, *flush]) == stage.emitted([*before, {}, *flush])

        far_us = START_US + LONG_US
        if is_dropped(START_US, START_US) or not is_dropped(far_us, START_US):  # lateness doesn't depend on the time
            return None
        near = self.after_start(stage)
        after_us = first_that(lambda time_us: is_dropped(time_us, START_US), START_US, far_us, near)
        if is_dropped(after_us, after_us):
            return None
        near = [*near, *(after_us - one for one in stage.distances_us)]
        kept_us = first_that(lambda time_us: not is_dropped(after_us, time_us), START_US, after_us, near, 1)
        return after_us, kept_us - 1

    def apart_us(self, stage: PlayedPlan, source: str) -> int:
        """Return the time (µs) from a row to its nearest match on the other input; negative: the match is earlier."""
        join = stage.plan
        if not isinstance(join, Join):
            return 0
        low_us = -(LONG_US if join.by.before_us is None else join.by.before_us)
        high_us = LONG_US if join.by.after_us is None else join.by.after_us
        apart_us = min(max(0, low_us), high_us)
        of_left = scanned(join.inputs[0])
        return apart_us if source in of_left else -apart_us

    def waits(self, stage: PlayedPlan) -> Iterator[Note]:
        """Report rows that a stage emits only after later rows have moved the watermark."""
        if not stage.is_known:
            return
        far_us = START_US + LONG_US
        for source in stage.sources:
            row = stage.row(source, START_US)

            def is_emitted(time_us: int, *moved: str, row: object = row, source: str = source) -> bool:
                moves = stage.all_at(time_us, *moved)
                return stage.is_emitted([{source: [row]}, moves], [{}, moves])  # type: ignore[list-item]

            whose = self.of(stage, source) + " without a partner" * isinstance(self.joining(stage, source), Join)
            if stage.emitted([{source: [row]}]):
                continue
            if not is_emitted(far_us):
                yield from self.never(stage, source, whose)
                continue
            until_us = first_that(is_emitted, START_US, far_us, self.after_start(stage))
            if is_emitted(far_us, source):
                when = f"after a later row has moved the watermark: {moment(START_US)} waits for {moment(until_us)}"
            else:
                each = " and ".join(dict.fromkeys(self.inputs.get(one, "each input") for one in stage.sources))
                when = (
                    f"after later rows have arrived on {each}: {moment(START_US)} waits for {moment(until_us)} "
                    "on each; while one input has no rows, nothing is emitted"
                )
            yield Note(WAITS, f"a {whose} is emitted {when}")

    def joining(self, stage: PlayedPlan, source: str) -> Node | None:
        """Return the first stream-stream join that reads an input; None: no such join reads the input."""
        joins = (node for node in stage.plan.walk() if isinstance(node, Join))
        return next((node for node in joins if source in scanned(node)), None)

    def never(self, stage: PlayedPlan, source: str, whose: str) -> Iterator[Note]:
        """Report an outer join that keeps an unmatched row forever, because no watermark excludes a later match."""
        join = self.joining(stage, source)
        if not isinstance(join, Join) or join.by.join not in ("left", "right", "full"):
            return
        kept = {"left": join.inputs[:1], "right": join.inputs[1:]}.get(join.by.join, join.inputs)
        if not any(source in scanned(node) for node in kept):
            return
        yield Note(
            NEVER,
            f"a {whose} is never emitted, though the join is {join.by.join} outer: give each input a watermark, "
            "and the join a condition that bounds one event time by the other",
        )
