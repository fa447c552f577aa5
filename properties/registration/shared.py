"""How an operator's logic runs in a query shared with other operators: its input, and the decoding of its changes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ...reference.core.records import Key, Record, Value

if TYPE_CHECKING:
    from ...spark_impl.runtime.logic import Logic
    from ...spark_impl.runtime.processor import Hop

FAILED = "failed"
"""The kind of change for an error that a logic has raised; its reason is the error."""


class SharedOutput(NamedTuple):
    """A change that a logic emits for a key of a history; the other fields are those of `LogicOutput` (times in ms).

    Attributes:
        history: The number of the history.
        key: The key, a tuple of its columns.
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


class StageValue(NamedTuple):
    """A record in a shared query.

    Attributes:
        value: The value that the logic processes.
        stage: The stage that processes the record (from 0).
    """

    value: Any
    stage: int = 0


def _as_it_is(definition: Any, record: Record) -> StageValue:
    return StageValue(record.value)


def own_key(definition: Any, change: SharedOutput) -> Key | None:
    """Return the key of a change whose key is one string."""
    return change.key[0]  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Shared:
    """How an operator's logic runs in a shared query.

    Attributes:
        logic: Returns the operator's own logic for a definition: a `Logic`, or the named tuple of each stage's logic.
        content: Returns the logic's input for a record, given a definition and the record.
        decode: Returns a change's value as the reference emits it, given a definition and the change.
        key: Returns a change's key as the reference emits it, given a definition and the change.
        windowed: Whether a definition's changes have their window beside the key and the value.
        hops: For an operator in stages: returns, for each stage except the last, the function that addresses messages
            to the next stage.
    """

    logic: Callable[[Any], Any]
    content: Callable[[Any, Record], StageValue] = _as_it_is
    decode: Callable[[Any, SharedOutput], Value] = lambda definition, change: change.value
    key: Callable[[Any, SharedOutput], Key | None] = own_key
    windowed: Callable[[Any], bool] = lambda definition: True
    hops: Callable[[], Sequence[Hop]] | None = None

    def stages(self, definition: Any, make: Callable[[Any], Any] | None = None) -> tuple[Logic[Any], ...]:
        """Return the logic of each stage: the operator's own, or another logic."""
        from ...spark_impl.runtime.logic import Logic

        made = (make or self.logic)(definition)
        return (made,) if isinstance(made, Logic) else tuple(made)


def decode_sides(definition: Any, change: SharedOutput) -> Value:
    """Return a joined value as the reference emits it."""
    return None if change.value is None else [change.value["left"], change.value["right"]]


def referring_content(definition: Any, record: Record) -> StageValue:
    """Return the content of a record of a foreign-key join: a left row with its foreign key, or a right row."""
    if record.input != "left":
        return StageValue(record.value, stage=1)
    return StageValue((record.value, definition.foreign_key_of(record.value)))
