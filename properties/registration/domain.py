"""What random histories of an operator are about: the distances that matter to it, and what its records hold.

Draws are small integers; a domain turns them into keys and values, and says where the edges lie that uniform
timestamps would hardly ever hit. All times scale with them: a gap of 30 days is drawn over months.

A domain also says which numbers of a declaration affect the output. The neighbours of a declaration have one of
them larger or smaller by one; a cohort of histories that emits the same under a neighbour could pass a job that is off
by 1 ms, and so shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, NamedTuple

from ...reference.core.records import Key, Value

SMALLEST_REACH = 10
"""Smaller declarations are drawn over as much time as one of 10 ms, so that what is far apart is."""

CHOICES = 12
"""A choice is an integer from 0 to 11: the larger it is, the less ordinary the record."""


class Aligned(NamedTuple):
    """Edges of the clock that do not depend on records: `offset`, `offset + step`, `offset + 2 * step`, … (ms).

    Attributes:
        step: From one edge to the next (ms).
        offset: The first edge (ms).
        of: What lies there, as coverage goals say it; each kind of edges of a definition has a name of its own.
    """

    step: int
    offset: int
    of: str = "the end of a window"


class Number(NamedTuple):
    """A number of a declaration that affects the output.

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
        value: Of a definition, an input, a value of a kind (a small integer, where it says no kinds), a choice, and a
            time (ms) at which something lies: what a record holds.
        kinds: Of a definition and an input: the names of the kinds of values that `value` may be given, as in
            `properties.generators.values`, the one first that is drawn where none is asked for.
        variety: By input: how many values of a kind are drawn, where it is fewer than four, for equal ones matter.
        keys: Of an input and the profile's keys: the keys that a record may have.
        named: The keys that a record's value may name, such as foreign keys.
        renamed: Of a definition, a value and what renames keys: the value, with the keys that it names renamed.
        aligned: Of a definition: the edges of the clock that no record moves.
        numbers: Of a definition: the numbers of it that affect the output.
        silent: The numbers that an operator takes and that do not affect the output, each with the reason.
        by_clock: Of a definition: whether the clock affects the output, so that a clock 1 ms off must show.
        is_plain: Whether a record is drawn without input and choice, for neither makes a difference.
    """

    distances: Callable[[Any], tuple[int, ...]] = lambda definition: (SMALLEST_REACH,)
    edges: Callable[[Any], tuple[int, ...]] = lambda definition: ()
    value: Callable[[Any, str, Any, int, int], Value] = lambda definition, side, value, choice, near: value
    kinds: Callable[[Any, str], tuple[str, ...]] = lambda definition, side: ("small integers",)
    variety: Mapping[str, int] = field(default_factory=dict)
    keys: Callable[[str, tuple[Key, ...]], tuple[Key, ...]] = lambda side, keys: keys
    named: tuple[Key, ...] = ()
    renamed: Callable[[Any, Value, Callable[[Key], Key]], Value] = lambda definition, value, renaming: value
    aligned: Callable[[Any], tuple[Aligned, ...]] = lambda definition: ()
    numbers: Callable[[Any], Iterator[Number]] = lambda definition: iter(())
    silent: Mapping[str, str] = field(default_factory=dict)
    by_clock: Callable[[Any], bool] = lambda definition: False
    is_plain: bool = False

    def lateness_horizon(self, definition: Any) -> int:
        """Return how far (ms) behind the clock nothing is open any more."""
        return max(self.edges(definition), default=0)

    def reach(self, definition: Any) -> int:
        """Return the largest time (ms) of a declaration, by which all times of its histories scale; at least 10."""
        return max(SMALLEST_REACH, *self.distances(definition), *self.edges(definition))


def number_of(definition: Any, option: str, also: Mapping[str, Any] = MappingProxyType({}), apart: int = 1) -> Number:
    """Return an option of a definition as a number that affects the output.

    Args:
        definition: The definition.
        option: The option's name.
        also: What else differs in its neighbours, so that they are not refused.
        apart: How far its neighbours lie.
    """
    return Number(option, getattr(definition, option), lambda value: {option: value, **also}, apart)


def domain_of_duration(option: str) -> Domain:
    """Return the domain of an operator that one duration decides: what is near, what is late, and what is 1 ms off."""

    def duration(definition: Any) -> tuple[int, ...]:
        return (getattr(definition, option),)

    return Domain(
        duration,
        duration,
        numbers=lambda definition: iter([number_of(definition, option)]),
        by_clock=lambda definition: True,
    )


def field_renamed(option: str) -> Callable[[Any, Value, Callable[[Key], Key]], Value]:
    """Return `Domain.renamed` of an operator whose values are objects, with a key in the field that an option names."""

    def renamed(definition: Any, value: Value, renaming: Callable[[Key], Key]) -> Value:
        name = getattr(definition, option)
        if not isinstance(value, Mapping) or value.get(name) is None:
            return value
        return {**value, name: renaming(value[name])}

    return renamed


def table_row(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    """Return a table's row: a tombstone in a quarter of the draws."""
    return None if choice >= CHOICES - 3 else value


def stream_value(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    """Return the value of a stream's record, which is seldom null."""
    return None if choice == CHOICES - 1 else value
