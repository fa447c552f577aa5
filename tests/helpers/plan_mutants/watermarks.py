"""Bugs planted in the micro-batches of the reference, in their watermarks, and in what becomes of an event time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from streamproof.reference.spark.execution import Batch, ExecutedBatch, Execution
from streamproof.reference.spark.plans import (
    Aggregation,
    Deduplication,
    EventTime,
    Explode,
    Filter,
    Join,
    Node,
    Processing,
    Project,
    Stateful,
    Union,
    WithWatermark,
    rebuilt,
)
from streamproof.reference.spark.stream_join import LEFT_FIRST

from .making import Method, Mutant, returning


def _started(says: str, change: Callable[[Execution], None]) -> Mutant:
    """Return a mutant whose executions are changed before they run."""

    def wrong(right: Method) -> Method:
        def init(self: Execution, *given: Any, **options: Any) -> None:
            right(self, *given, **options)
            change(self)

        return init

    return Mutant(says, Execution, "__init__", wrong)


def _stepping(says: str, change: Callable[[int, int], tuple[int, int]]) -> Mutant:
    """Return a mutant whose operators are given other watermarks for late rows and for eviction."""

    def changed(execution: Execution) -> None:
        execution.steps = [step and _with(step) for step in execution.steps]

    def _with(step: Method) -> Method:
        return lambda rows, late_ms, eviction_ms: step(rows, *change(late_ms, eviction_ms))

    return _started(says, changed)


def _planning(says: str, change: Callable[[Node], Node]) -> Mutant:
    """Return a mutant that runs another plan."""
    return Mutant(
        says,
        Execution,
        "__init__",
        lambda right: lambda self, plan, **options: right(self, rebuilt(plan, change), **options),
    )


def _before_each(says: str, change: Callable[[Execution], None]) -> Mutant:
    """Return a mutant whose executions are changed before each micro-batch."""

    def wrong(right: Method) -> Method:
        def micro_batch(self: Execution, *given: Any) -> Any:
            change(self)
            return right(self, *given)

        return micro_batch

    return Mutant(says, Execution, "micro_batch", wrong)


def _set(**values: Any) -> Callable[[Execution], None]:
    return lambda execution: vars(execution).update(values)


def _filter_below_watermark(node: Node) -> Node:
    if isinstance(node, Filter) and isinstance(node.input, WithWatermark):
        return replace(node.input, inputs=(replace(node, inputs=node.input.inputs),))
    return node


def _at_the_end_alone(right: Method) -> Method:
    def run(self: Execution, batches: Iterable[Batch]) -> list[ExecutedBatch]:
        given, without_data = [*batches], self.without_data
        self.without_data = False
        done: list[ExecutedBatch] = right(self, given)
        while without_data and self.asks_for_batch_without_data():
            done.append(self.micro_batch(len(given) - 1, None))
        return done

    return run


def _by_sides(choose: Callable[..., int], semi: int = 1) -> Callable[[Method], Method]:
    """Return the watermark of a join's output by another choice among the watermarks of its sides' state."""

    def wrong(right: Method) -> Method:
        def watermark_ms(self: Join, of_input_ms: int) -> int:
            sides = LEFT_FIRST[:semi] if self.by.join == "left_semi" else LEFT_FIRST
            kept = (self.model.state_watermark_ms(side, of_input_ms) for side in sides)
            return choose([each for each in kept if each is not None] or [of_input_ms])

        return watermark_ms

    return wrong


def _is_unbounded(node: Node) -> bool:
    return isinstance(node, Join) and node.by.before_us is None and node.by.after_us is None


def _makes_of_event_time(node: Node) -> bool:
    times = {time.column for one in node.inputs for time in one.event_times}
    return isinstance(node, Project) and any(times & made.columns for _, made in node.made if made.function != "column")


OF_WATERMARKS = (
    _stepping("rows are late by the watermark of their own micro-batch", lambda late, eviction: (eviction, eviction)),
    _stepping("state is evicted by the watermark of the micro-batch before", lambda late, eviction: (late, late)),
    _started("the query's watermark is the largest of several", _set(choose=max)),
    _started("the query's watermark is the least of several under any policy", _set(choose=min)),
    _before_each(
        "a watermark forgets the times of earlier batches",
        lambda execution: execution.largest_ms.update(dict.fromkeys(execution.largest_ms, 0)),
    ),
    _planning(
        "the delay of a watermark is left out",
        lambda node: replace(node, delay_us=0) if isinstance(node, WithWatermark) else node,
    ),
    _planning("a filter above a watermark is moved below it", _filter_below_watermark),
    Mutant(
        "an operator's watermark is the largest of its inputs'",
        Execution,
        "least_ms",
        lambda right: lambda self, ms: max((each for each in ms if each is not None), default=None),
    ),
    Mutant(
        "an operator's watermark is its first input's",
        Execution,
        "least_ms",
        lambda right: lambda self, ms: next((each for each in ms if each is not None), None),
    ),
    Mutant(
        "an input without a watermark holds an operator's at 1970",
        Execution,
        "least_ms",
        lambda right: lambda self, ms: min((each or 0 for each in ms), default=None),
    ),
    Mutant("the output of a join has its inputs' watermark", Join, "watermark_ms", lambda right: lambda self, ms: ms),
    Mutant("the output of a join goes by its left side", Join, "watermark_ms", _by_sides(lambda kept: kept[0])),
    Mutant("the output of a join goes by its right side", Join, "watermark_ms", _by_sides(lambda kept: kept[-1])),
    Mutant("the output of a join goes by its later side", Join, "watermark_ms", _by_sides(max)),
    Mutant("the output of a semi join goes by both sides", Join, "watermark_ms", _by_sides(min, semi=2)),
)
OF_BATCHES_WITHOUT_DATA = (
    _started("no batch without data runs", _set(without_data=False)),
    _started("batches without data run though they are off", _set(without_data=True)),
    Mutant("batches without data follow the last batch alone", Execution, "run", _at_the_end_alone),
    Mutant(
        "a batch without data follows wherever the query's watermark moves",
        Execution,
        "asks_for_batch_without_data",
        lambda right: lambda self: self.watermark_ms > self.before_ms,
        _is_unbounded,
    ),
    Mutant(
        "a join without bounds asks for a batch without data",
        Join,
        "asks_for_batch_without_data",
        lambda right: lambda self: True,
        _is_unbounded,
    ),
    returning("a join asks for no batch without data", Join, "asks_for_batch_without_data", lambda asks: False),
    returning(
        "an aggregation asks for no batch without data", Aggregation, "asks_for_batch_without_data", lambda asks: False
    ),
    returning(
        "a deduplication asks for no batch without data",
        Deduplication,
        "asks_for_batch_without_data",
        lambda asks: False,
    ),
    returning(
        "a processor asks for no batch without data", Processing, "asks_for_batch_without_data", lambda asks: False
    ),
)
OF_EVENT_TIMES = (
    Mutant(
        "an alias of the event time is none",
        Project,
        "event_times",
        lambda right: lambda self: tuple(one for one in right(self) if one in self.input.event_times),
    ),
    Mutant(
        "an expression of the event time is an event time",
        Project,
        "event_times",
        lambda right: (
            lambda self: tuple(
                EventTime(name, time.delay_us)
                for name, made in self.made
                for time in self.input.event_times
                if time.column in made.columns
            )
        ),
        _makes_of_event_time,
    ),
    Mutant(
        "a union has its second side's event time",
        Union,
        "event_times",
        lambda right: lambda self: self.inputs[1].event_times,
    ),
    Mutant(
        "a union has the event time of either side",
        Union,
        "event_times",
        lambda right: lambda self: self.inputs[0].event_times or self.inputs[1].event_times,
    ),
    Mutant("explode loses the event time", Explode, "event_times", lambda right: lambda self: ()),
    returning("the time of a window has no watermark", Aggregation, "event_times", lambda times: ()),
    Mutant(
        "rows are late to an operator without an event time",
        Stateful,
        "timed",
        lambda right: lambda self, batch: lambda rows, late_ms, eviction_ms: batch(rows[0], late_ms, eviction_ms),
    ),
)
OF_EXECUTION = (*OF_WATERMARKS, *OF_BATCHES_WITHOUT_DATA, *OF_EVENT_TIMES)
"""The mutants of micro-batches, of watermarks and their propagation, and of event times."""
