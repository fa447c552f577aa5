"""The domain of an operator's random histories: the relevant distances between times, and the values of its records.

Random draws are small integers. A domain converts these integers to keys and values, and lists the distances and edges
(times at which a record becomes late or a window closes) that uniformly random timestamps would rarely hit. All times
scale with the edges: a gap of 30 days is drawn over months.

A domain also lists the operator's numeric options that affect its output. A neighbour of a declaration differs by
one in one of these numbers. If the output of all drawn histories is the same under a neighbour, they don't detect a job
that is off by 1 ms.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from types import MappingProxyType
from typing import Any, NamedTuple

from ...reference.core.records import Key, Record, Value

SMALLEST_REACH = 10
"""The smallest time range (ms) of drawn histories: declarations below 10 ms get the range of a declaration of 10 ms."""

CHOICES = 12
"""The number of choices, integers from 0 to 11; larger choices mean more unusual records."""


class Aligned(NamedTuple):
    """Edges, the times at which the clock closes something, that do not depend on records: `offset`, `offset + step`, …
    (ms).

    Attributes:
        step: The distance between edges (ms).
        offset: The first edge (ms).
        of: The name of these edges in coverage goals; each kind of edge of a definition has a different name.
    """

    step: int
    offset: int
    of: str = "the end of a window"


class Number(NamedTuple):
    """A number of a declaration that affects the output.

    Attributes:
        option: The option's name, or a name for a number within an option (`early`).
        value: The declared value, including defaults.
        changed: Returns the options that change if the number has another value.
        apart: The distance to the neighbouring values.
    """

    option: str
    value: int
    changed: Callable[[int], Mapping[str, Any]]
    apart: int = 1


@dataclass(frozen=True)
class Domain:
    """The domain of the histories drawn for an operator.

    Attributes:
        distances: Returns the distances (ms) between records that matter to a definition.
        edges: Returns the distances (ms) behind the clock at which a record is late, or a window closes; empty if that
            never happens.
        value: Returns the value of a record, given a definition, an input, a value of a kind (a small integer, if there
            are no `kinds`), a choice, and the time (ms) of an event.
        kinds: Returns the names of the kinds of values for `value` (see `properties.generators.values`), given a
            definition and an input; the default kind comes first.
        variety: The number of different values of a kind, by input, if it is below four because equal values matter.
        keys: Returns the possible keys of a record, given its input and all keys of the history's settings.
        named: The keys to which a record's value may refer, such as foreign keys.
        renamed: Returns a value with renamed keys, given the definition, the value, and a function that renames a key.
        aligned: Returns the edges of a definition that no record moves.
        numbers: Returns the numeric options of a definition that affect the output.
        silent: The numeric options that do not affect the output, each with the reason.
        by_clock: Returns whether the clock affects the output of a definition, so that a clock 1 ms off must be
            detected.
        is_plain: Whether a record is drawn without input and choice, because neither has an effect.
        agreed: Takes a definition and the records of a history; returns the records with values that the operator
            accepts together. None if the operator accepts all values together.
        takes_until_forgotten: Whether a closed window accepts late records until the window is forgotten. If so, some
            records are drawn near the oldest window that isn't forgotten.
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
        """Return the lateness horizon: how far (ms) behind the clock every window is closed."""
        return max(self.edges(definition), default=0)

    def reach(self, definition: Any) -> int:
        """Return the largest time (ms) of a declaration, at least 10; all times of its histories scale with it."""
        return max(SMALLEST_REACH, *self.distances(definition), *self.edges(definition))


def number_of(definition: Any, option: str, also: Mapping[str, Any] = MappingProxyType({}), apart: int = 1) -> Number:
    """Return an option of a definition as a number that affects the output.

    Args:
        definition: The definition.
        option: The option's name.
        also: Further options that change in the neighbours, so that the operator accepts the neighbours.
        apart: The distance to the neighbouring values.
    """
    return Number(option, getattr(definition, option), lambda value: {option: value, **also}, apart)


def domain_of_duration(option: str, by_clock: bool = True) -> Domain:
    """Return the domain of an operator with one duration, its only relevant distance, edge and number.

    Args:
        option: The option's name.
        by_clock: Whether the clock affects the output, so that a clock 1 ms off must be detected; if not, there is no
            edge.
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
    """Return the durations of definitions (options that end in `_ms`) that a domain ignores."""
    known = {number.option for definition in definitions for number in domain.numbers(definition)} | {*domain.silent}
    names = dict.fromkeys(option.name for definition in definitions for option in fields(definition))
    return [name for name in names if name.endswith("_ms") and name not in known]


def field_renamed(option: str) -> Callable[[Any, Value, Callable[[Key], Key]], Value]:
    """Return a `Domain.renamed` for value objects in which one field, named by an option, contains a key."""

    def renamed(definition: Any, value: Value, renaming: Callable[[Key], Key]) -> Value:
        name = getattr(definition, option)
        if not isinstance(value, Mapping) or value.get(name) is None:
            return value
        return {**value, name: renaming(value[name])}

    return renamed


def table_row(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    """Return a table's row; a quarter of the draws are tombstones."""
    return None if choice >= CHOICES - 3 else value


def stream_value(definition: Any, side: str, value: Value, choice: int, near: int) -> Value:
    """Return the value of a stream's record, which is rarely null."""
    return None if choice == CHOICES - 1 else value
