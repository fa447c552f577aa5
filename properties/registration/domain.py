"""The domain of an operator's random histories: the distances that matter to it, and the values of its records.

Draws are small integers; a domain turns them into keys and values, and gives the edges that uniform timestamps would
hardly ever hit. All times scale with the edges: a gap of 30 days is drawn over months.

A domain also lists the numbers of a declaration that affect the output. The neighbours of a declaration have one of
them larger or smaller by one; a cohort of histories that emits the same under a neighbour could pass a job that is off
by 1 ms, and so shows nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

from ...reference.core.records import Key, Record, Value

SMALLEST_REACH = 10
"""The least reach (ms) of drawn histories: smaller declarations have as much time as a declaration of 10 ms."""

CHOICES = 12
"""The number of choices, integers from 0 to 11: the larger it is, the less ordinary the record."""


class Aligned(NamedTuple):
    """Edges of the clock that do not depend on records: `offset`, `offset + step`, `offset + 2 * step`, … (ms).

    Attributes:
        step: From one edge to the next (ms).
        offset: The first edge (ms).
        of: The name of these edges in coverage goals; each kind of edges of a definition has its own name.
    """

    step: int
    offset: int
    of: str = "the end of a window"


class Number(NamedTuple):
    """A number of a declaration that affects the output.

    Attributes:
        option: The option's name; for a number inside an option (`early`), its own name.
        value: The declared value, defaults included.
        changed: Takes another value; returns the options that then differ.
        apart: The distance to its neighbours.
    """

    option: str
    value: int
    changed: Callable[[int], Mapping[str, Any]]
    apart: int = 1


@dataclass(frozen=True)
class Domain:
    """The domain that histories of an operator are drawn from.

    Attributes:
        distances: Takes a definition; returns the distances (ms) between records that matter.
        edges: Takes a definition; returns how far (ms) behind the clock something is late or closed; none where nothing
            ever is.
        value: Takes a definition, an input, a value of a kind (a small integer, if there are no `kinds`), a choice, and
            a time (ms) at which something lies; returns the value of a record.
        kinds: Takes a definition and an input; returns the names of the kinds of values that `value` may be given, as
            in `properties.generators.values`, the default kind first.
        variety: The number of values of a kind that are drawn, by input, where it is fewer than four because equal
            values matter.
        keys: Takes an input and the profile's keys; returns the keys that a record may have.
        named: The keys that a record's value may name, such as foreign keys.
        renamed: Takes a definition, a value and a function that renames keys; returns the value, with the keys that it
            names renamed.
        aligned: Takes a definition; returns the edges of the clock that no record moves.
        numbers: Takes a definition; returns its numbers that affect the output.
        silent: The operator's numbers that do not affect the output, each with the reason.
        by_clock: Takes a definition; returns whether the clock affects the output, so that a clock 1 ms off must show.
        is_plain: Whether a record is drawn without input and choice, because neither makes a difference.
        agreed: Takes a definition and the records of a history; returns them with such values that the operator refuses
            none beside the others. None: it refuses none.
        takes_until_forgotten: Whether what is closed takes late records until it is forgotten. Then some records are
            drawn beside the oldest that isn't forgotten.
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
    agreed: Callable[[Any, Sequence[Record]], Sequence[Record]] | None = None
    takes_until_forgotten: bool = False

    def lateness_horizon(self, definition: Any) -> int:
        """Return the lateness horizon: how far (ms) behind the clock nothing is open any more."""
        return max(self.edges(definition), default=0)

    def reach(self, definition: Any) -> int:
        """Return the largest time (ms) of a declaration, by which all times of its histories scale; at least 10."""
        return max(SMALLEST_REACH, *self.distances(definition), *self.edges(definition))


def number_of(definition: Any, option: str, also: Mapping[str, Any] = MappingProxyType({}), apart: int = 1) -> Number:
    """Return an option of a definition as a number that affects the output.

    Args:
        definition: The definition.
        option: The option's name.
        also: Further options that differ in its neighbours, so that they are not refused.
        apart: The distance to its neighbours.
    """
    return Number(option, getattr(definition, option), lambda value: {option: value, **also}, apart)


def domain_of_duration(option: str, by_clock: bool = True) -> Domain:
    """Return the domain of an operator with one duration: its only distance, edge and number.

    Args:
        option: The option's name.
        by_clock: Whether the clock affects the output, so that a clock 1 ms off must show; without it there is no edge.
    """

    def duration(definition: Any) -> tuple[int, ...]:
        return (getattr(definition, option),)

    return Domain(
        duration,
        duration if by_clock else lambda definition: (),
        numbers=lambda definition: iter([number_of(definition, option)]),
        by_clock=lambda definition: by_clock,
    )


def durations_not_drawn(definitions: Sequence[Any], domain: Domain) -> list[str]:
    """Return the durations of definitions, options that end in `_ms`, around which a domain draws nothing."""
    known = {number.option for definition in definitions for number in domain.numbers(definition)} | {*domain.silent}
    names = dict.fromkeys(option.name for definition in definitions for option in fields(definition))
    return [name for name in names if name.endswith("_ms") and name not in known]


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
