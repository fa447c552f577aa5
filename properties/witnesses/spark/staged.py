"""The witness that runs the foreign-key join as three queries on Spark, and delivers each message as the history says.

With manual delivery a history decides when each message is delivered. All histories take each step at the same time:
the witness passes the step's rows and the named messages to the three queries, and waits until all three queries are
done. So a race takes one step per history line, for any number of histories.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.core.history import Cut, Delivery, History, Line
from ....reference.core.operator import operator_named
from ....reference.core.play import Entry
from ....reference.core.records import Change, Dropped, Key, Output, Record
from ....reference.definitions.joins import ForeignKeyJoin
from ....reference.foreign_key_protocol import Route
from ....spark_impl.decoupled_foreign_key_join import decoupled_foreign_key_join
from ....spark_impl.foreign_keys.stages import ForeignKeyStages, foreign_key_stages
from ....spark_impl.inputs import table
from ....spark_impl.topics import FileTopic, Topics
from ...outcomes.outcomes import Grain, Outcome
from ...registration.bindings import (
    FOREIGN_KEY,
    KEY,
    ORDER,
    TIMESTAMP,
    VALUE,
    from_json,
    pair_from_json,
    referring_fields,
)
from ...registration.key_space import owner, prefixed_key
from ...registration.mutants import LogicByHistory
from ..messages import Staged, Waiting, WaitingMessage
from .decode import entries_of
from .engine import hand_over, schema_of_file
from .failures import in_own_folder, reported_failures
from .platform.callbacks import Callbacks
from .query import StreamOutput
from .session import spark_session

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql import types as T
    from pyspark.sql.streaming import StreamingQuery

SIDES = ("left", "right")
MakeStages: TypeAlias = Callable[[ForeignKeyJoin], ForeignKeyStages]


def play_staged(
    histories: Sequence[History], logics: Sequence[MakeStages] | None = None, strict: bool = True
) -> list[Staged]:
    """Run histories of the foreign-key join with manual delivery, in three queries that exchange messages by topics.

    Args:
        histories: The histories; their options may differ. A history with a null key runs in its own queries.
        logics: The logic of each history's stages, such as a mutant's; by default the operator's own logic.
        strict: Whether a delivery from an empty route is refused. Mutants may send other messages than a history names;
            the witness then ignores the delivery.

    Raises:
        BadInput: A history delivers from a route without waiting messages.
        StreamproofError: A query failed, or Spark didn't start.
    """
    chosen = logics or [foreign_key_stages] * len(histories)
    alone = [any(record.key is None for record in history.records) for history in histories]
    together = [number for number, is_alone in enumerate(alone) if not is_alone]
    groups = [together] * bool(together) + [[number] for number, is_alone in enumerate(alone) if is_alone]
    staged: dict[int, Staged] = {}
    for indexes in groups:
        own, logic = [histories[number] for number in indexes], [chosen[number] for number in indexes]
        staged |= zip(indexes, in_own_folder(partial(_play, own, logic, strict)), strict=True)
    return [staged[number] for number in range(len(histories))]


def _play(histories: Sequence[History], logics: Sequence[MakeStages], strict: bool, folder: Path) -> list[Staged]:
    return _Stage(histories, logics, folder).play(strict)


class StagedTopic:
    """A topic whose messages wait in this process until they are delivered; messages without a route don't wait."""

    def __init__(self, folder: Path, route_of: Callable[[Mapping[str, Any]], Route | None]) -> None:
        self.folder, self.route_of = folder, route_of
        self.waiting: dict[Route, deque[dict[str, Any]]] = {}
        self.going: list[dict[str, Any]] = []
        self.schema: pa.Schema | None = None

    def read(self, spark: SparkSession, schema: T.StructType) -> DataFrame:
        """Return the delivered messages."""
        return FileTopic(self.folder).read(spark, schema)

    def append(self, messages: DataFrame, keys: Sequence[str], producer: str, batch: int) -> None:
        """Store the messages of a batch until their delivery."""
        table = messages.toArrow()
        self.schema = table.schema
        for message in sorted(table.to_pylist(), key=lambda one: one["ordinal"]):
            route = self.route_of(message)
            if route is None:
                self.going.append(message)
            else:
                self.waiting.setdefault(route, deque()).append(message)

    def hand_on(self, route: Route) -> bool:
        """Deliver the oldest message of a route; return False if none waits."""
        messages = self.waiting.get(route)
        if not messages:
            return False
        self.going.append(messages.popleft())
        if not messages:
            del self.waiting[route]
        return True

    def flush(self, step: int) -> bool:
        """Write the delivered messages to the topic's folder; return False if there are none."""
        found, self.going = self.going, []
        if found:
            hand_over(pa.Table.from_pylist(found, self.schema), step, self.folder)
        return bool(found)


class _Stage:
    def __init__(self, histories: Sequence[History], logics: Sequence[MakeStages], folder: Path) -> None:
        self.histories, self.folder = histories, folder
        self.definitions: list[ForeignKeyJoin] = [
            operator_named(history.operator).declare(history.options) for history in histories
        ]
        self.lines = [_arrivals(history) for history in histories]
        self.subscriptions = StagedTopic(folder / "subscriptions", _subscription_route)
        self.responses = StagedTopic(folder / "responses", _response_route)
        self.fields = [referring_fields(join) for join in self.definitions]
        self.input_schema = pa.schema(
            [
                (KEY, pa.string()),
                (TIMESTAMP, pa.int64()),
                (ORDER, pa.int64()),
                *((one.name, one.type) for one in self.fields[0]),
            ]
        )
        self.order = 0
        self.emitted: list[tuple[int, pa.Table]] = []
        self.logics, self.callbacks = logics, Callbacks()
        for topic in (self.subscriptions, self.responses):
            topic.append = self.callbacks.noted(topic.append)  # type: ignore[method-assign]

    def play(self, strict: bool) -> list[Staged]:
        spark = spark_session()
        waiting: list[list[Waiting]] = [[] for _ in self.histories]
        with self.running(spark) as (sender, right, receiver):
            for step in range(max(map(len, self.lines), default=0)):
                self.step, rows = step, self.arrive(step, strict)
                for side in SIDES:
                    if rows[side]:
                        hand_over(pa.Table.from_pylist(rows[side], self.input_schema), step, self.folder / side)
                with reported_failures():
                    if rows["left"]:
                        sender.processAllAvailable()
                    if self.subscriptions.flush(step) or rows["right"]:
                        right.processAllAvailable()
                    if self.responses.flush(step):
                        receiver.processAllAvailable()
                self.watch(step, waiting)
        return [Staged(outcome, after) for outcome, after in zip(self.outcomes(), waiting, strict=True)]

    @contextmanager
    def running(self, spark: SparkSession) -> Iterator[list[StreamingQuery]]:
        """Start the three queries, and stop them at the end."""
        schema = schema_of_file(spark, self.input_schema, self.folder / "schema.parquet")
        for side in SIDES:
            (self.folder / side).mkdir()
        streams = (spark.readStream.schema(schema).parquet(str(self.folder / side)) for side in SIDES)
        left, right = (table(frame, key=KEY, timestamp=TIMESTAMP, value=VALUE, order=ORDER) for frame in streams)
        join = decoupled_foreign_key_join(
            left,
            right,
            Topics(self.subscriptions, self.responses),
            foreign_key=FOREIGN_KEY,
            report_dropped=True,
            state_groups=None if len(self.histories) < 50 else 64,
            logic=lambda declared: self.stages(),
        )

        def write(frame: DataFrame, batch: int) -> None:
            self.emitted.append((self.step, frame.toArrow()))

        checkpoints = self.folder / "checkpoints"
        changelog = join.changelog.writeStream.foreachBatch(self.callbacks.noted(write))
        queries: list[StreamingQuery] = []
        try:
            for query in (join.sender, join.right):
                queries.append(query.start(str(checkpoints / query.name)))
            queries.append(changelog.option("checkpointLocation", str(checkpoints / "receiver")).start())
            yield queries
        finally:
            for running in queries:
                running.stop()
            self.callbacks.close()

    def stages(self) -> ForeignKeyStages:
        """Return the logic of the stages for each history, by its own definition."""
        made = [logic(join) for logic, join in zip(self.logics, self.definitions, strict=True)]
        indexes = range(len(made))
        sender, right, receiver = (
            LogicByHistory(made[0][stage], [of_history[stage] for of_history in made], indexes) for stage in range(3)
        )
        return made[0]._replace(sender=sender, right=right, receiver=receiver)  # type: ignore[arg-type]

    def arrive(self, step: int, strict: bool) -> dict[str, list[dict[str, Any]]]:
        """Deliver the messages that the histories name at a step, and return the arriving rows."""
        rows: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
        for number, lines in enumerate(self.lines):
            index, line = lines[step] if step < len(lines) else (-1, None)
            if isinstance(line, Record):
                prefixed = partial(prefixed_key, number)
                key = None if line.key is None else prefixed(line.key)
                row = {KEY: key, TIMESTAMP: line.timestamp, ORDER: self.order}
                self.order += 1
                rows[line.input].append(row | {one.name: one.of(line, prefixed) for one in self.fields[number]})
            elif isinstance(line, Delivery):
                foreign_key = prefixed_key(number, line.foreign_key)
                key = None if line.key is None else prefixed_key(number, line.key)
                topic = self.subscriptions if line.channel == "subscription" else self.responses
                if not topic.hand_on((line.channel, foreign_key, key)) and strict:
                    raise BadInput(
                        f"{self.histories[number].location(index)}: no message waits on {line.channel} "
                        f"{line.foreign_key}{' ' + line.key if line.key else ''}: deliver from a route with messages"
                    )
        return rows

    def watch(self, step: int, waiting: list[list[Waiting]]) -> None:
        """Record the waiting messages of each history after a step."""
        routes: list[dict[Route, tuple[WaitingMessage, ...]]] = [{} for _ in self.histories]
        for topic, content in ((self.subscriptions, "instruction"), (self.responses, "right")):
            for (channel, foreign_key, key), messages in topic.waiting.items():
                number, own = _owned(foreign_key)
                emitted = tuple(
                    WaitingMessage(_owned(one["key_0"])[1], _content(channel, one[content]), one["timestamp"])
                    for one in messages
                )
                routes[number][channel, own, None if key is None else _owned(key)[1]] = emitted
        for number, of_history in enumerate(routes):
            if step < len(self.lines[number]):
                waiting[number].append(of_history)

    def outcomes(self) -> list[Outcome]:
        """Return the receiver's output for each history."""
        batches: list[dict[int, int]] = []
        for history in self.histories:
            arrivals = enumerate(batch for batch, lines in enumerate(history.batches) for _ in lines)
            batches.append(dict(arrivals))
        found: dict[int, list[Entry]] = defaultdict(list)
        # An output counts as caused by the arrival of the step in which a query wrote the output.
        for _, arrival, output in entries_of(StreamOutput(self.emitted), pair_from_json):
            number, own = (0, None) if output.key is None else _owned(output.key)
            mine: Output = Dropped(own, output.reason) if isinstance(output, Dropped) else Change(own, *output[1:])
            found[number].append(Entry(arrival, batches[number][arrival], mine))
        return [Outcome(history.name, Grain.ARRIVAL, found[number]) for number, history in enumerate(self.histories)]


def _arrivals(history: History) -> list[tuple[int, Line]]:
    return [(index, line) for index, line in enumerate(history.lines) if not isinstance(line, Cut)]


def _owned(key: Key) -> tuple[int, Key]:
    owned = owner(key)
    assert owned is not None
    return owned


def _content(channel: str, content: Any) -> Any:
    return content if channel == "subscription" else from_json(content)


def _subscription_route(message: Mapping[str, Any]) -> Route:
    return "subscription", message["to_0"], None


def _response_route(message: Mapping[str, Any]) -> Route | None:
    return ("response", message["to_0"], message["key_0"]) if message["answers"] else None
