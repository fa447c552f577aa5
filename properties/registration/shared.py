"""How an operator's logic runs in a query that it shares with others: what it takes, and how its changes are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...reference.core.records import Key, Record, Value

if TYPE_CHECKING:
    from ...spark_impl.runtime.shared import Hop, PackedChange, SharedLogic

MESSAGES = "messages"


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


def own_key(definition: Any, change: PackedChange) -> Key | None:
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
        hops: Of an operator in stages: between two stages, where a message goes and its content.
    """

    logic: Callable[[Any], Any]
    content: Callable[[Any, Record], Content] = _as_it_is
    decode: Callable[[Any, PackedChange], Value] = lambda definition, change: change.value
    key: Callable[[Any, PackedChange], Key | None] = own_key
    windowed: Callable[[Any], bool] = lambda definition: True
    hops: Sequence[Hop] = ()

    def packed(self, definition: Any, make: Callable[[Any], Any] | None = None) -> SharedLogic:
        """Return what decides for a history: the operator's own logic, or another one."""
        from ...spark_impl.runtime.keyed import Logic
        from ...spark_impl.runtime.shared import SharedLogic

        made = (make or self.logic)(definition)
        return SharedLogic((made,) if isinstance(made, Logic) else tuple(made), self.hops)


def decode_sides(definition: Any, change: PackedChange) -> Value:
    """Return a joined value as the reference emits it."""
    return None if change.value is None else [change.value["left"], change.value["right"]]


def referring_content(definition: Any, record: Record) -> Content:
    """Return what a record of a join by foreign key is: a left row with its foreign key, or a right one as it is."""
    if record.input != "left":
        return Content(record.value, stage=1)
    return Content({"left": record.value, "to_0": definition.foreign_key_of(record.value)})
