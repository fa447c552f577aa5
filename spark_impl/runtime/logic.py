"""The logic of an operator, in pure Python: a `Logic` processes one row of one key at a time."""

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
    """A NaN that compares like Spark's: equal to itself (unlike Python's), and greater than all other numbers."""

    __slots__ = ()

    def __new__(cls) -> Self:
        """Make it."""
        return super().__new__(cls, "nan")

    def __eq__(self, other: object) -> bool:
        """Return whether the other value is also a NaN."""
        return isinstance(other, float) and isnan(other)

    def __ne__(self, other: object) -> bool:
        """Return whether the other value differs."""
        return not self == other

    def __gt__(self, other: float) -> bool:
        """Return whether the other value isn't a NaN."""
        return self != other

    def __lt__(self, other: float) -> bool:
        """Return false: no number is greater than NaN."""
        return False

    def __hash__(self) -> int:
        """Return the same hash for every NaN."""
        return hash(NotANumber)


NAN = NotANumber()


def with_one_nan(value: Any) -> Any:
    """Return a decoded value in which each NaN, also within structures, is equal to itself."""
    if isinstance(value, list | tuple):
        return type(value)(map(with_one_nan, value))
    if isinstance(value, dict):
        return {name: with_one_nan(member) for name, member in value.items()}
    return NAN if value != value else value


def key_of(parts: Iterable[Any]) -> Key:
    """Make a key from its decoded columns; a NaN in the key is equal to itself."""
    key = tuple(parts)
    for part in key:
        if part != part:
            return with_one_nan(key)  # type: ignore[no-any-return]
    return key


class _Fields(Struct, array_like=True, gc=False):
    """A tuple with names, at a fifth of the cost of a NamedTuple."""

    def __iter__(self) -> Iterator[Any]:
        return iter(structs.astuple(self))

    def _replace(self, **fields: Any) -> Self:
        return structs.replace(self, **fields)


class Arrived(_Fields):
    """A row of one key, on one of the operator's inputs; its timestamp is in ms."""

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
    """Make a change caused by a row.

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
    """Sort rows by `order`, field by field for tuples; null comes first."""
    if len(rows) == 1:
        return rows
    try:
        return sorted(rows, key=order)
    except TypeError:
        # An order contains None, which `<` refuses, so sort by a key that puts None first, which is slower.
        return sorted(rows, key=lambda row: _comparable(order(row)))


def _comparable(value: Any) -> tuple[Any, ...]:
    if value is None:
        return (0,)
    return (1, *map(_comparable, value)) if isinstance(value, tuple | list) else (1, value)


class Logic(Generic[State]):
    """The logic of a key, in pure Python without Spark; the caller passes the key's state to each method."""

    keeps_null_keys = False

    def for_key(self, key: Key) -> Logic[State]:
        """Return the logic for a key: this logic for all keys, except if several mutants share a query."""
        return self

    def in_order(self, rows: list[Arrived]) -> list[Arrived]:
        """Sort the rows of a batch in order of arrival, which a shuffle loses."""
        return in_order_of(rows, _by_arrival)

    def empty(self) -> State:
        """Return the state of a new key."""
        raise NotImplementedError

    def pack(self, state: State) -> tuple[Any, ...] | None:
        """Convert a key's state to the fields of its state type; None if there is nothing to store."""
        raise NotImplementedError

    def unpack(self, fields: tuple[Any, ...]) -> State:
        """Undo `pack`; tuples within the fields are read as lists."""
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
        """Return the changes that the clock has closed since the last call.

        Args:
            state: The key's state.
            emitted: The clock (ms) up to which closed results have been emitted.
            clock: The current clock (ms).
        """
        return []

    def keep(self, state: State, emitted: int, clock: int) -> State:
        """Return the state without parts that are emitted and past their retention; arguments as in `close`."""
        return state

    def due(self, state: State, clock: int) -> int | None:
        """Return the time (ms), after `clock`, of the next call of `close` or `keep`; None if no call is needed."""
        return None
