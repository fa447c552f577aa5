"""What random histories of an operator are about: the distances that matter to it, and what its records hold.

Draws are small integers; a domain turns them into keys and values, and tells where the edges lie that uniform
timestamps would hardly ever hit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ..reference.records import Key, Value

CHOICES = 12
"""A choice is an integer from 0 to 11: the larger it is, the less ordinary the record."""

FOREIGN_KEYS = ("r1", "r2", "r")
"""One is a prefix of the others, for a prefix scan that forgets the length."""


@dataclass(frozen=True)
class Domain:
    """What histories of an operator are about.

    Attributes:
        distances: Of a definition: the distances (ms) between records that matter.
        patience: Of a definition: how far (ms) behind the clock a record is late.
        value: Of a definition, an input, a small value and a choice: what a record holds.
        keys: Of an input and the shape's keys: the keys that a record may have.
    """

    distances: Callable[[Any], tuple[int, ...]]
    patience: Callable[[Any], int]
    value: Callable[[Any, str, int, int], Value] = lambda definition, side, value, choice: value
    keys: Callable[[str, tuple[Key, ...]], tuple[Key, ...]] = lambda side, keys: keys


def _row(definition: Any, side: str, value: int, choice: int) -> Value:
    return None if choice >= CHOICES - 3 else value


def _stream_value(definition: Any, side: str, value: int, choice: int) -> Value:
    return None if choice == CHOICES - 1 else value


def _looked_up(definition: Any, side: str, value: int, choice: int) -> Value:
    if side == "left":
        return _stream_value(definition, side, value, choice)
    return _row(definition, side, value, choice)


def _grouped(definition: Any, side: str, value: int, choice: int) -> Value:
    if choice >= CHOICES - 2:
        return None
    group = ("x", "y", "x", "y", "x", "z", "y", "x", "y", None)[choice]
    return {definition.group_by: group, **({} if definition.field is None else {definition.field: value})}


def _windowed(definition: Any, side: str, value: int, choice: int) -> Value:
    if side == "events" or definition.with_ == "windowed_table":
        return value
    if definition.with_ == "table":
        return _row(definition, side, value, choice)
    if choice >= CHOICES - 2:
        return None
    start = None if choice == CHOICES - 3 else choice * definition.step_ms
    return {definition.window_start: start, "value": value}


def _referring(definition: Any, side: str, value: int, choice: int) -> Value:
    if side == "right":
        return _row(definition, side, value, choice)
    if choice >= CHOICES - 2:
        return None
    foreign_key = (*FOREIGN_KEYS, *FOREIGN_KEYS, "r1", "r1", None, None)[choice]
    return {definition.foreign_key: foreign_key, "value": value % 2}


def _referred(side: str, keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return FOREIGN_KEYS if side == "right" else keys


def _nothing(definition: Any) -> int:
    return 0


def _some(definition: Any) -> tuple[int, ...]:
    return (10,)


_TABLES = Domain(_some, _nothing, _row)
_REFERRING = Domain(_some, _nothing, _referring, _referred)

DOMAINS: Mapping[str, Domain] = {
    "session_windows": Domain(lambda windows: (windows.gap_ms,), lambda windows: windows.gap_ms + windows.grace_ms),
    "window_aggregate": Domain(
        lambda windows: (windows.size, windows.step) if windows.unit == "ms" else (5,),
        lambda windows: windows.late_ms + (windows.size if windows.unit == "ms" else 0),
    ),
    "range_aggregate": Domain(lambda ranges: (ranges.preceding_ms,), lambda ranges: ranges.preceding_ms),
    "stream_stream_join": Domain(
        lambda join: (join.before_ms, join.after_ms),
        lambda join: join.after_ms + join.grace_ms,
        _stream_value,
    ),
    "stream_table_join": Domain(_some, _nothing, _looked_up),
    "table_table_join": _TABLES,
    "table_aggregate": Domain(_some, _nothing, _grouped),
    "windowed_table": Domain(
        lambda table: (table.size_ms, table.step_ms),
        lambda table: table.size_ms + table.grace_ms,
        _windowed,
    ),
    "foreign_key_join": _REFERRING,
    "one_to_many_join": _REFERRING,
}
