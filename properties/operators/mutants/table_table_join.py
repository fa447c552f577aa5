"""Mutants of the table-table join on Spark."""

from __future__ import annotations

import uuid
from typing import Any

from pyspark import TaskContext

from ....reference.definitions.joins import TableTableJoin
from ....spark_impl.runtime.logic import Arrived, Key, LogicOutput, changed, joined
from ....spark_impl.table_table_join import StoredSide, TableTableLogic
from ...registration.mutants import mutants_of
from ...system.work import own_folder
from .making import SharingState, logics_in, mixed, returning

Rows = dict[str, StoredSide]


class LatestTimestampStands(TableTableLogic):
    """Of a key's rows, the row with the largest timestamp counts, instead of the last arrival."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        old = state[row.side]
        return [] if old is not None and (row.timestamp or 0) < old[1] else super().take(key, state, row, clock)


class DeletionSilent(TableTableLogic):
    """A deletion isn't emitted, so the old result stays."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        return [] if row.value is None else emitted


NeedlessTombstones = returning(
    TableTableLogic,
    "A change without a row on the other side emits a tombstone, although there was no result",
    emits=lambda found: True,
)


class OwnTimestamp(TableTableLogic):
    """A result has only the timestamp of the changed row."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        return [emitted._replace(timestamp=row.timestamp) for emitted in super().take(key, state, row, clock)]


SidesSwapped = returning(
    TableTableLogic,
    "The joined value contains the right side first",
    result=lambda found: None if found is None else joined(found["right"], found["left"]),
)


class RightSilent(TableTableLogic):
    """A change of the right table isn't emitted, as in a stream-table join."""

    def emits(self, row: Arrived, old: StoredSide, other: StoredSide) -> bool:
        return row.side == "left" and super().emits(row, old, other)


class RepeatsDropped(TableTableLogic):
    """A repeated row with the same value isn't emitted (KIP-557, reverted in KAFKA-12508)."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        old = state[row.side]
        emitted = super().take(key, state, row, clock)
        return [] if old is not None and old[0] == row.value else emitted


EmittedTwice = returning(
    TableTableLogic,
    "Every change is emitted twice, which no table shows (bug museum: duplicate tombstones)",
    take=lambda found: found * 2,
)
ForgetsBetweenBatches = returning(TableTableLogic, "State is not saved between batches", pack=lambda found: None)
ShuffleOrder = returning(
    TableTableLogic, "A batch is processed in reverse order of arrival", in_order=lambda found: found[::-1]
)


class OuterMissesTheRight(TableTableLogic):
    """An outer join doesn't emit rows that the left table lacks."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        emitted = super().take(key, state, row, clock)
        return [changed(row, None, one.timestamp) if state["left"] is None else one for one in emitted]


class RepeatDeletes(TableTableLogic):
    """A repeated row with the same value is treated as its deletion."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        old = state[row.side]
        again = old is not None and old[0] == row.value
        return super().take(key, state, row._replace(value=None) if again else row, clock)


class ForgetsAtSecondRestart(TableTableLogic):
    """State is lost at the state's second restart.

    The fraction of a row's timestamp identifies the build of the query that stored the row, and counts the builds.
    """

    def __init__(self, join: TableTableJoin) -> None:
        super().__init__(join)
        self.build = uuid.uuid4().int % 100_000

    def pack(self, state: Rows) -> tuple[Any, ...] | None:
        _, restarts = state.get("restarts") or (None, 0)
        rows = {side: state[side] for side in ("left", "right")}
        tag = restarts * 100_000 + self.build
        return super().pack({side: row and (row[0], row[1] * 1_000_000 + tag) for side, row in rows.items()})

    def unpack(self, fields: tuple[Any, ...]) -> Rows:
        state, restarts = super().unpack(fields), 0
        for side, row in state.items():
            if row is not None:
                timestamp, tag = divmod(row[1], 1_000_000)
                restarts = tag // 100_000 + (tag % 100_000 != self.build)
                state[side] = row[0], timestamp
        return {**state, "restarts": (None, restarts)} if restarts < 2 else self.empty()


class TakesNoRowTwice(TableTableLogic):
    """Processed rows are remembered outside the state, so a replayed batch loses its rows.

    Each processed row becomes a file that any worker finds; the query keeps its name after restarts.
    """

    def __init__(self, join: TableTableJoin) -> None:
        super().__init__(join)
        self.folder = own_folder()

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        context = TaskContext.get()
        query = None if context is None else context.getLocalProperty("sql.streaming.queryId")
        try:
            (self.folder / f"taken-{query}-{row.order}").touch(exist_ok=False)
        except FileExistsError:
            return []
        return super().take(key, state, row, clock)


class ThirdPartitionLost(TableTableLogic):
    """Rows in the third and later partitions are lost."""

    def take(self, key: Key, state: Rows, row: Arrived, clock: int) -> list[LogicOutput]:
        context = TaskContext.get()
        lost = context is not None and context.partitionId() > 1
        return [] if lost else super().take(key, state, row, clock)


StateOfAnotherKey = mixed(TableTableLogic, SharingState)

MUTANTS = mutants_of("table_table_join", TableTableLogic, "outer", logics_in(globals(), TableTableLogic))
