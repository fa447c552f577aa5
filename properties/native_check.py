"""The law of Spark's own operators: which histories it is asked about, and how an answer is judged.

Spark's join tests lateness otherwise than the reference; the reference is asked about the records that Spark takes.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..reference.histories import History
from ..reference.operators import operator_named
from ..reference.play import play
from ..reference.records import Change
from .cohorts import clock_schedule, with_heartbeats
from .coverage import Finish, draw_covering
from .draws import Shape, draw_histories
from .laws import LAWS, Law, record_batches
from .operator_situations import needed
from .outcomes import Difference, Outcome, differences
from .shapes import NATIVE_SHAPES, SCHEDULE
from .situations import situations_of

LATE_ON_SPARK = "late on Spark alone"
OWN = {
    "window_aggregate": "window gives what the reference tells, each key's changes in order",
    "stream_stream_join": "join gives what the reference tells of the records that it takes, as a bag for each batch",
    "stream_table_join": "join with a table that stands still gives what the reference tells, as a bag for each batch",
    "windowed_table": "window gives what the reference tells; a stream as a bag for each batch",
}
"""What is asked of Spark's own operators."""


def native_law(operator: str) -> Law:
    """Give the law, with the situations that must come up under each definition that Spark's operator is asked."""
    met = []
    for shape, options in NATIVE_SHAPES[operator].items():
        situations = [*needed(operator, operator_named(operator).declare(options))]
        situations += [LATE_ON_SPARK] if operator == "stream_stream_join" else []
        # A history with null keys travels in no cohort.
        met += [f"{situation} ({shape})" for situation in situations if "null key" not in situation]
    return replace(LAWS["native"], sentence=f"Spark's own {OWN[operator]}", needs=tuple(met))


def native_histories(
    operator: str, options: Mapping[str, Any], count: int, seed: int, finished: Finish | None = None
) -> list[History]:
    """Draw histories that Spark's own operator can serve; the table of a stream-table join stands still.

    `finished` makes of each history the one that is run, where that is another.
    """
    if operator == "stream_table_join":
        shape = Shape(options, (SCHEDULE[-1],) * len(SCHEDULE), operator=operator)
        return [_table_first(history) for history in draw_histories(shape, count, seed)]
    return draw_covering(operator, options, count, seed, finished=finished).histories


def _table_first(history: History) -> History:
    """The history with all changes of the table in its first batch, before the stream's records."""
    batches = record_batches(history)
    rows = [record for record in history.records if record.input == "right"]
    lefts = [[record for record in batch if record.input == "left"] for batch in batches]
    return replace(history, lines=with_heartbeats([[*rows, *lefts[0]], *lefts[1:]], clock_schedule(history)))


def taken_by_spark(history: History) -> History:
    """The history without the records that Spark drops as late where the reference need not.

    Spark's join drops a record at or behind the watermark, which is the clock of the earlier batches less the grace.
    """
    if history.operator != "stream_stream_join":
        return history
    grace_ms = operator_named(history.operator).declare(history.options).grace_ms
    schedule = clock_schedule(history)
    batches = record_batches(history)
    for number in range(1, len(batches)):
        edge = schedule[number - 1] - grace_ms
        batches[number] = [record for record in batches[number] if record.timestamp > edge]
    return replace(history, lines=with_heartbeats(batches, schedule))


def same_as_reference(history: History, outcome: Outcome) -> list[Difference]:
    """Judge what Spark's own operator told: of a table each key's changes in order, of a stream its bag per batch."""
    expected = Outcome.of_play(history.name, play(taken_by_spark(history)))
    if outcome.is_stream:
        expected, outcome = _without_order(expected), _without_order(outcome)
    return differences(expected, outcome)


def _without_order(outcome: Outcome) -> Outcome:
    def place(entry: Any) -> tuple[Any, ...]:
        output = entry.output
        return (output.timestamp, json.dumps(output.value, sort_keys=True)) if isinstance(output, Change) else (-1, "")

    return replace(outcome, entries=sorted(outcome.entries, key=place))


def native_situations(histories: Sequence[History], shape: str) -> Counter[str]:
    """Count the histories in which each situation came up, those of a record late on Spark alone among them."""
    found = situations_of(histories)
    for history in histories:
        taken = taken_by_spark(history)
        if taken != history:
            found[LATE_ON_SPARK] += len(play(taken).accepted) < len(play(history).accepted)
    return Counter({f"{situation} ({shape})": count for situation, count in found.items()})
