"""What random histories of an operator are about: the distances that matter to it, and what its records hold.

Draws are small integers; a domain turns them into keys and values, and says where the edges lie that uniform
timestamps would hardly ever hit. All times scale with them: a gap of 30 days is drawn over months.

A domain also says which numbers of a declaration shape what comes out. The neighbours of a declaration have one of
them larger or smaller by one; a cohort of histories that emits the same under a neighbour could pass a job that is off
by 1 ms, and so shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ..reference.records import Key, Value

SMALLEST_REACH = 10
"""Smaller declarations are drawn over as much time as one of 10 ms, so that what is far apart is."""

CHOICES = 12
"""A choice is an integer from 0 to 11: the larger it is, the less ordinary the record."""

FOREIGN_KEYS = ("r1", "r2", "r")
"""One is a prefix of the others, for a prefix scan that forgets the length."""


class Aligned(NamedTuple):
    """Edges of the clock that do not depend on records: `offset`, `offset + step`, `offset + 2 * step`, … (ms)."""

    step: int
    offset: int


class Number(NamedTuple):
    """A number of a declaration that shapes what comes out.

    Attributes:
        option: The option's name; of a number inside an option (`early`), its own name.
        value: What is declared, defaults included.
        changed: Of another value: the options that then differ.
        apart: How far its neighbours lie.
    """

    option: str
    value: int
    changed: Callable[[int], Mapping[str, Any]]
    apart: int = 1


@dataclass(frozen=True)
class Domain:
    """What histories of an operator are about.

    Attributes:
        distances: Of a definition: the distances (ms) between records that matter.
        edges: Of a definition: how far (ms) behind the clock something is late or closed; none where nothing ever is.
        value: Of a definition, an input, a small value, a choice, and a time (ms) at which something lies: what a
            record holds.
        keys: Of an input and the shape's keys: the keys that a record may have.
        aligned: Of a definition: the edges of the clock that no record moves.
        numbers: Of a definition: the numbers of it that shape what comes out.
        silent: The numbers that an operator takes and that shape nothing, each with the reason.
        by_clock: Of a definition: whether the clock decides what comes out.
    """

    distances: Callable[[Any], tuple[int, ...]]
    edges: Callable[[Any], tuple[int, ...]]
    value: Callable[[Any, str, int, int, int], Value] = lambda definition, side, value, choice, near: value
    keys: Callable[[str, tuple[Key, ...]], tuple[Key, ...]] = lambda side, keys: keys
    aligned: Callable[[Any], tuple[Aligned, ...]] = lambda definition: ()
    numbers: Callable[[Any], Iterator[Number]] = lambda definition: iter(())
    silent: Mapping[str, str] = field(default_factory=dict)
    by_clock: Callable[[Any], bool] = lambda definition: False

    def patience(self, definition: Any) -> int:
        """How far (ms) behind the clock nothing is open any more."""
        return max(self.edges(definition), default=0)

    def reach(self, definition: Any) -> int:
        """The largest time (ms) of a declaration, by which all times of its histories scale; 10 at the least."""
        return max(SMALLEST_REACH, *self.distances(definition), *self.edges(definition))


def _row(definition: Any, side: str, value: int, choice: int, near: int) -> Value:
    return None if choice >= CHOICES - 3 else value


def _stream_value(definition: Any, side: str, value: int, choice: int, near: int) -> Value:
    return None if choice == CHOICES - 1 else value


def _looked_up(definition: Any, side: str, value: int, choice: int, near: int) -> Value:
    if side == "left":
        return _stream_value(definition, side, value, choice, near)
    return _row(definition, side, value, choice, near)


def _grouped(definition: Any, side: str, value: int, choice: int, near: int) -> Value:
    if choice >= CHOICES - 2:
        return None
    group = ("x", "y", "x", "y", "x", "z", "y", "x", "y", None)[choice]
    return {definition.group_by: group, **({} if definition.field is None else {definition.field: value})}


def _windowed(definition: Any, side: str, value: int, choice: int, near: int) -> Value:
    if side == "events" or definition.with_ == "windowed_table":
        return value
    if definition.with_ == "table":
        return _row(definition, side, value, choice, near)
    if choice >= CHOICES - 2:
        return None
    # Windows from 0 on, and those around a time at which something lies; no window starts 1 ms later than another.
    around = max(0, near // definition.step_ms - choice % 3)
    start = None if choice == CHOICES - 3 else (choice if choice % 2 else around) * definition.step_ms
    start = around * definition.step_ms + 1 if choice == CHOICES - 6 else start
    return {definition.window_start: start, "value": value}


def _referring(definition: Any, side: str, value: int, choice: int, near: int) -> Value:
    if side == "right":
        return _row(definition, side, value, choice, near)
    if choice >= CHOICES - 2:
        return None
    foreign_key = (*FOREIGN_KEYS, *FOREIGN_KEYS, "r1", "r1", None, None)[choice]
    return {definition.foreign_key: foreign_key, "value": value % 2}


def _referred(side: str, keys: tuple[Key, ...]) -> tuple[Key, ...]:
    return FOREIGN_KEYS if side == "right" else keys


def _nothing(definition: Any) -> tuple[int, ...]:
    return ()


def _some(definition: Any) -> tuple[int, ...]:
    return (10,)


def _number(definition: Any, option: str, also: Mapping[str, Any] = MappingProxyType({}), apart: int = 1) -> Number:
    return Number(option, getattr(definition, option), lambda value: {option: value, **also}, apart)


def _session_numbers(windows: Any) -> Iterator[Number]:
    for option in ("gap_ms", "grace_ms"):
        # The retention may be no less than both together, and shapes nothing.
        yield _number(windows, option, {"retention_ms": windows.retention_ms + 1})


def _window_distances(windows: Any) -> tuple[int, ...]:
    if windows.unit == "tuple":
        return (5,)
    ticks = () if windows.early is None or windows.early.every_ms is None else (windows.early.every_ms,)
    return (windows.size, windows.step, *ticks)


def _window_edges(windows: Any) -> tuple[int, ...]:
    if windows.unit == "tuple":
        return ()
    # A window of which a record is the last, or the first; and the same for the windows that still take late ones.
    latest = windows.late_ms
    return (windows.size, windows.size + latest, latest) if latest else (windows.size,)


def _window_ends(windows: Any) -> tuple[Aligned, ...]:
    if windows.unit == "tuple":
        return ()
    early = windows.early
    ticks = () if early is None or early.every_ms is None else (Aligned(early.every_ms, 0),)
    if windows.type == "session":
        return ticks
    late = (Aligned(windows.step, windows.size + windows.late_ms),) if windows.late_ms else ()
    return (Aligned(windows.step, windows.size), *late, *ticks)


def _window_numbers(windows: Any) -> Iterator[Number]:
    yield _number(windows, "size", {} if windows.type == "session" else {"step": windows.step})
    if windows.type == "fixed":
        yield _number(windows, "step")
    if windows.late == "update" and windows.unit == "ms":
        yield _number(windows, "retention_ms")
    if windows.early is not None:
        ((option, every),) = ((name, every) for name, every in vars(windows.early).items() if every is not None)
        yield Number(option, every, lambda value: {"early": {option: value}})


def _join_numbers(join: Any) -> Iterator[Number]:
    yield from (_number(join, option) for option in ("before_ms", "after_ms", "grace_ms"))


def _windowed_numbers(table: Any) -> Iterator[Number]:
    yield _number(table, "size_ms", {"step_ms": table.step_ms})
    yield from (_number(table, option) for option in ("step_ms", "grace_ms"))
    if table.with_ == "windowed_table":
        yield _number(table, "shift_ms", apart=table.step_ms)  # no window starts in between


_TABLES = Domain(_some, _nothing, _row)
_REFERRING = Domain(_some, _nothing, _referring, _referred)

DOMAINS: Mapping[str, Domain] = {
    "session_windows": Domain(
        lambda windows: (windows.gap_ms,),
        lambda windows: (windows.gap_ms + windows.grace_ms,),
        numbers=_session_numbers,
        by_clock=lambda windows: True,
        silent={"retention_ms": "a session is closed for good before it is forgotten"},
    ),
    "window_aggregate": Domain(
        _window_distances,
        _window_edges,
        aligned=_window_ends,
        numbers=_window_numbers,
        by_clock=lambda windows: windows.unit == "ms",
        silent={"retention_ms": "with late drop, and with tuples, a complete window takes nothing, however long kept"},
    ),
    "range_aggregate": Domain(
        lambda ranges: (ranges.preceding_ms,),
        lambda ranges: (ranges.preceding_ms,),
        numbers=lambda ranges: iter([_number(ranges, "preceding_ms")]),
    ),
    "stream_stream_join": Domain(
        lambda join: (join.before_ms, join.after_ms),
        lambda join: (join.after_ms + join.grace_ms, join.before_ms + join.grace_ms),
        _stream_value,
        numbers=_join_numbers,
        by_clock=lambda join: True,
    ),
    "stream_table_join": Domain(_some, _nothing, _looked_up),
    "table_table_join": _TABLES,
    "table_aggregate": Domain(_some, _nothing, _grouped),
    "windowed_table": Domain(
        lambda table: (table.size_ms, table.step_ms, abs(table.shift_ms)),
        lambda table: (table.size_ms + table.grace_ms, table.grace_ms),
        _windowed,
        aligned=lambda table: (Aligned(table.step_ms, table.size_ms + table.grace_ms),),
        numbers=_windowed_numbers,
    ),
    "foreign_key_join": _REFERRING,
    "one_to_many_join": _REFERRING,
}
