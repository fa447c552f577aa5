"""The logic of an operator, in pure Python: a `Logic` takes one row of one key at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from math import isnan
from operator import attrgetter
from typing import Any, Generic, Self, TypeVar

from msgspec import Struct, structs

END_OF_TIME = 2**62
BEFORE_ALL_TIMES = -END_OF_TIME
UPDATE, TOMBSTONE, DROPPED = "update", "tombstone", "dropped"

_by_arrival = attrgetter("order", "timestamp")

State = TypeVar("State")
Key = tuple[Any, ...]


class NotANumber(float):
    """NaN as Spark compares it: equal to itself, and after all other numbers; Python takes no two for equal."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """Make it."""
        return super().__new__(cls, "nan")

    def __eq__(self, other: object) -> bool:
        """Return whether the other is a NaN, too."""
        return isinstance(other, float) and isnan(other)

    def __ne__(self, other: object) -> bool:
        """Return whether the other is another value."""
        return not self == other

    def __gt__(self, other: float) -> bool:
        """Return whether the other is no NaN."""
        return self != other

    def __lt__(self, other: float) -> bool:
        """No number comes after NaN."""
        return False

    def __hash__(self) -> int:
        """Every NaN has the same hash."""
        return hash(NotANumber)


NAN = NotANumber()


def with_one_nan(value: Any) -> Any:
    """Return a decoded value in which each NaN, and each NaN within, is equal to itself."""
    if isinstance(value, list | tuple):
        return type(value)(map(with_one_nan, value))
    if isinstance(value, dict):
        return {name: with_one_nan(member) for name, member in value.items()}
    return NAN if value != value else value


def key_of(parts: Iterable[Any]) -> Key:
    """Make a key of its parts as they were decoded: a NaN in it is equal to itself."""
    key = tuple(parts)
    for part in key:
        if part != part:
            return with_one_nan(key)  # type: ignore[no-any-return]
    return key


class _Fields(Struct, array_like=True, gc=False):
    """A tuple with names, which costs a fifth of a NamedTuple."""

    def __iter__(self) -> Iterator[Any]:
        return iter(structs.astuple(self))

    def _replace(self, **fields: Any) -> Self:
        return structs.replace(self, **fields)


class Arrived(_Fields):
    """A row of one key, on one of the operator's inputs; its timestamp in ms."""

    timestamp: int | None
    order: Any
    value: Any
    side: str = ""


class LogicOutput(_Fields):
    """A change of one key, or a dropped row; `start` and `end` bound its window, if it has one (all ms)."""

    start: int | None
    end: int | None
    value: Any
    timestamp: int | None
    change: str
    reason: str | None
    cause: Any


def changed(row: Arrived, value: Any, timestamp: int | None, window: tuple[int, int] | None = None) -> LogicOutput:
    """Make the change that a row sets off.

    Args:
        row: The row.
        value: The new value; None makes a tombstone.
        timestamp: The change's timestamp (ms).
        window: `(start, end)` (ms), if the change has one.
    """
    start, end = window or (None, None)
    return LogicOutput(start, end, value, timestamp, TOMBSTONE if value is None else UPDATE, None, row.order)


def dropped(row: Arrived, reason: str) -> LogicOutput:
    """Make the output for a row that isn't accepted, with the reason, such as `late`."""
    return LogicOutput(None, None, None, row.timestamp, DROPPED, reason, row.order)


def joined(left: Any, right: Any) -> dict[str, Any]:
    """Make a joined value."""
    return {"left": left, "right": right}


def in_order_of(rows: list[Arrived], order: Callable[[Arrived], Any]) -> list[Arrived]:
    """Sort rows by `order`, field by field where it is a tuple, null before all else."""
    if len(rows) == 1:
        return rows
    try:
        return sorted(rows, key=order)
    except TypeError:
        # None can't be compared: such orders need the slower way.
        return sorted(rows, key=lambda row: _comparable(order(row)))


def _comparable(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (1, *map(_comparable, value)) if isinstance(value, tuple | list) else (1, value)


class Logic(Generic[State]):
    """The logic of a key, in pure Python: without Spark, and without a state of its own; it is given the key's."""

    keeps_null_keys = False

    def for_key(self, key: Key) -> Logic[State]:
        """Return the logic for this key: the same for all keys, unless several mutants share a query."""
        return self

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Sort the rows of a batch in order of arrival, which the shuffle has lost."""
        return in_order_of(rows, _by_arrival)

    def empty(self) -> State:
        """Make the state of a new key."""
        raise NotImplementedError

    def pack(self, state: State) -> tuple[Any, ...] | None:
        """Turn a key's state into the fields of its state type; None where there is nothing to store."""
        raise NotImplementedError

    def unpack(self, fields: tuple[Any, ...]) -> State:
        """Undo `pack`; tuples within the fields come back as lists."""
        raise NotImplementedError

    def take(self, key: Key, state: State, row: Arrived, clock: int) -> list[LogicOutput]:
        """Process one row: change the state in place, and return the changes to emit.

        Args:
            key: The key, a tuple of its columns.
            state: The key's state.
            row: The row; its key and timestamp aren't null, unless `keeps_null_keys`.
            clock: The largest event time of earlier batches (ms).
        """
        raise NotImplementedError

    def close(self, state: State, emitted: int, clock: int) -> list[LogicOutput]:
        """Return the changes to emit because the clock has closed something.

        Args:
            state: The key's state.
            emitted: The clock up to which closings have been emitted (ms).
            clock: The clock now (ms).
        """
        return []

    def keep(self, state: State, emitted: int, clock: int) -> State:
        """Return the state without anything that is emitted and out of retention; arguments as in `close`."""
        return state

    def due(self, state: State, clock: int) -> int | None:
        """Return the time (ms), after `clock`, at which `close` or `keep` is needed next; None: never."""
        return None
