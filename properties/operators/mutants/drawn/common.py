"""Bugs that mutants of several operators share: in values, in keys, and in the output.

A value is a drawn value or, in queries with typed columns, JSON text; a key in a shared query has its history's prefix.
The functions accept both forms of values and keys, so that a mutant has the same bug in any query.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from typing import Any

from .....spark_impl.foreign_keys.referring import ReferredLogic, ReferredState
from .....spark_impl.runtime.logic import TOMBSTONE, UPDATE, Arrived, Key, Logic, LogicOutput, dropped
from ..making import mixed

Bug = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Return a value, decoded from JSON text if it is JSON text."""
    if not isinstance(value, str):
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


def same(one: Any, two: Any) -> bool:
    """Return whether two values are equal in Python, like 1, 1.0 and true."""
    return bool(plain(one) == plain(two))


def is_falsy(value: Any) -> bool:
    """Return whether a non-null value is false, 0, or empty."""
    return value is not None and not plain(value)


def is_empty_text(value: Any) -> bool:
    """Return whether a value is the empty text."""
    return isinstance(value, str) and plain(value) == ""


def is_number(value: Any) -> bool:
    """Return whether a value is a number; booleans aren't."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_whole_number(value: Any) -> bool:
    """Return whether a value is a whole number; booleans aren't."""
    return isinstance(value, int) and not isinstance(value, bool)


def after_bug(value: Any, bug: Bug) -> Any:
    """Apply a bug to a value, and to the values in lists and objects; JSON text stays JSON text."""
    before = plain(value)
    after = _within(before, bug)
    if before is value or after is None:
        return after
    return json.dumps(after, sort_keys=True)


def _within(value: Any, bug: Bug) -> Any:
    if isinstance(value, dict) and value:
        return {name: _within(member, bug) for name, member in value.items()}
    if isinstance(value, list) and value:
        return [_within(member, bug) for member in value]
    return bug(value)


def falsy_to_null(value: Any) -> Any:
    """Treat false, 0 and empty values as null."""
    return value or None


def zero_to_null(value: Any) -> Any:
    """Treat 0 as null."""
    return None if is_number(value) and not value else value


def false_to_null(value: Any) -> Any:
    """Treat false as null."""
    return None if value is False else value


def empty_text_to_null(value: Any) -> Any:
    """Treat the empty text as null."""
    return None if value == "" else value


def through_float(value: Any) -> Any:
    """Convert a whole number to a floating-point number and back, which is exact up to 2^53."""
    return int(float(value)) if is_whole_number(value) else value


def as_32_bit(value: Any) -> Any:
    """Keep the lower 32 bits of a whole number."""
    return (value + 2**31) % 2**32 - 2**31 if is_whole_number(value) else value


def without_sign(value: Any) -> Any:
    """Drop the sign of a number."""
    return abs(value) if is_number(value) else value


def not_below_zero(value: Any) -> Any:
    """Treat a negative number as 0."""
    return type(value)(0) if is_number(value) and value < 0 else value


def without_fraction(value: Any) -> Any:
    """Truncate a number's fraction."""
    return float(int(value)) if isinstance(value, float) else value


def boolean_to_number(value: Any) -> Any:
    """Treat true as 1, and false as 0."""
    return int(value) if isinstance(value, bool) else value


def lower_case(value: Any) -> Any:
    """Convert a text to lower case."""
    return value.lower() if isinstance(value, str) else value


def stripped(value: Any) -> Any:
    """Strip the spaces around a text."""
    return value.strip() if isinstance(value, str) else value


def normalised(value: Any) -> Any:
    """Compose a text's decomposed characters (NFC)."""
    return unicodedata.normalize("NFC", value) if isinstance(value, str) else value


def ascii_only(value: Any) -> Any:
    """Replace characters that aren't ASCII with question marks."""
    return value.encode("ascii", "replace").decode("ascii") if isinstance(value, str) else value


def before_separator(value: Any) -> Any:
    """Cut a text at the first `@`, which separates a key from its window."""
    return value.split("@", 1)[0] if isinstance(value, str) else value


def own_part(part: Any) -> tuple[str, Any]:
    """Split a part of a key into the prefix that a shared query adds, and the history's own part."""
    if isinstance(part, str):
        prefix, separator, own = part.partition("|")
        if separator and prefix.isdigit():
            return prefix + separator, own
    return "", part


def key_after_bug(key: Key, bug: Bug) -> Key:
    """Return a key after a bug has changed the history's own part."""
    return tuple(prefix + bug(own) if isinstance(own, str) else own for prefix, own in map(own_part, key))


def is_empty_key(key: Key) -> bool:
    """Return whether a part of a key is the empty text."""
    return any(own_part(part)[1] == "" for part in key)


def altering(logic: type, sentence: str, bug: Bug) -> type:
    """Return a subclass of an operator's logic in which a bug changes the value of every row before the row is
    processed.

    Args:
        logic: The correct logic.
        sentence: The bug, in one sentence.
        bug: The function that returns the changed value.
    """
    return mixed(logic, _Altering, sentence, bug=staticmethod(bug))


class _Altering(Logic[Any]):
    bug: Bug

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        return super().take(key, state, row._replace(value=after_bug(row.value, self.bug)), clock)


def mistaking_keys(logic: type, sentence: str, bug: Bug) -> type:
    """Return a subclass of an operator's logic with a bug that makes keys equal: such keys share the state of the
    batch's first such key.

    Args:
        logic: The correct logic.
        sentence: The bug, in one sentence.
        bug: The function that returns the changed text of a key.
    """
    return mixed(logic, _MistakingKeys, sentence, bug=staticmethod(bug))


class _MistakingKeys(Logic[Any]):
    bug: Bug
    states: dict[Key, Any] | None = None

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        self.states = {} if self.states is None else self.states
        return super().take(key, self.states.setdefault(key_after_bug(key, self.bug), state), row, clock)


class DroppingEmptyKeys(Logic[Any]):
    """The empty key is treated as null."""

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        return [dropped(row, "null key")] if is_empty_key(key) else super().take(key, state, row, clock)


class MistakingCauses(Logic[Any]):
    """A change names the previous row as its cause.

    The named cause is the previous row of the same key in the batch.
    """

    causes: dict[Key, Any] | None = None

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        self.causes = {} if self.causes is None else self.causes
        cause = self.causes.get(key, row.order)
        self.causes[key] = row.order
        return [emitted._replace(cause=cause) for emitted in super().take(key, state, row, clock)]


class MislabellingTombstones(Logic[Any]):
    """A tombstone is labelled an update."""

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        return [
            emitted._replace(change=UPDATE if emitted.change == TOMBSTONE else emitted.change)
            for emitted in super().take(key, state, row, clock)
        ]


class DeletingFalsyRights(ReferredLogic):
    """A right row that becomes false, 0 or empty is treated as deleted."""

    def change(self, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        return super().change(state, row._replace(value=None) if is_falsy(row.value) else row)


class RoundingRights(ReferredLogic):
    """Whole numbers of a right row aren't exact beyond 2^53."""

    def change(self, state: ReferredState, row: Arrived) -> list[LogicOutput]:
        return super().change(state, row._replace(value=after_bug(row.value, through_float)))


class LosingFalsyRights(ReferredLogic):
    """A right row that is false, 0 or empty isn't saved between batches."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        falsy = state.right is not None and is_falsy(state.right.value)
        return super().pack(ReferredState(None, state.lefts) if falsy else state)


class LosingLeftsWithoutRight(ReferredLogic):
    """Left rows that refer to a missing right row aren't saved between batches."""

    def pack(self, state: ReferredState) -> tuple[Any, ...] | None:
        return None if state.right is None else super().pack(state)
