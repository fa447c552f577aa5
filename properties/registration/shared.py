"""How an operator's logic runs in a query that it shares with others: what it takes, and how its changes are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...reference.core.records import Key, Record, Value

if TYPE_CHECKING:
    from ...spark_impl.runtime.logic import Logic
    from ...spark_impl.runtime.processor import Hop

FAILED = "failed"
"""The change that says that a logic has raised; its reason is the error."""


class SharedChange(NamedTuple):
    """A change of a key of a history, as its logic emitted it; the other fields are those of `Emitted` (times in ms).

    Attributes:
        history: The number of its history.
        key: The key, a tuple of its parts.
    """

    history: int
    key: tuple[Any, ...]
    start: int | None
    end: int | None
    value: Any
    timestamp: int | None
    change: str
    reason: str | None
    cause: Any


class Content(NamedTuple):
    """What a record is in a shared query.

    Attributes:
        value: What the logic takes as its value.
        stage: The stage that takes it (from 0).
    """

    value: Any
    stage: int = 0


def _as_it_is(definition: Any, record: Record) -> Content:
    return Content(record.value)


def own_key(definition: Any, change: SharedChange) -> Key | None:
    """Return the key of a change whose key is one text."""
    return change.key[0]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Shared:
    """How an operator's logic runs in a shared query.

    Attributes:
        logic: Makes the operator's own logic of a definition: a `Logic`, or the named tuple of each stage's.
        content: Of a definition and a record: what the logic takes.
        decode: Of a definition and the value of a change: the value as the reference emits it.
        key: Of a definition and what was emitted: the key as the reference emits it.
        windowed: Whether the changes of a definition have their window beside the key and the value.
        hops: Of an operator in stages: makes what sends the messages of each stage but the last.
    """

    logic: Callable[[Any], Any]
    content: Callable[[Any, Record], Content] = _as_it_is
    decode: Callable[[Any, SharedChange], Value] = lambda definition, change: change.value
    key: Callable[[Any, SharedChange], Key | None] = own_key
    windowed: Callable[[Any], bool] = lambda definition: True
    hops: Callable[[], Sequence[Hop]] | None = None

    def stages(self, definition: Any, make: Callable[[Any], Any] | None = None) -> tuple[Logic[Any], ...]:
        """Make the logic of each stage: the operator's own, or another one."""
        from ...spark_impl.runtime.logic import Logic

        made = (make or self.logic)(definition)
        return (made,) if isinstance(made, Logic) else tuple(made)


def decode_sides(definition: Any, change: SharedChange) -> Value:
    """Return a joined value as the reference emits it."""
    return None if change.value is None else [change.value["left"], change.value["right"]]


def referring_content(definition: Any, record: Record) -> Content:
    """Return what a record of a join by foreign key is: a left row with its foreign key, or a right one as it is."""
    if record.input != "left":
        return Content(record.value, stage=1)
    return Content((record.value, definition.foreign_key_of(record.value)))
