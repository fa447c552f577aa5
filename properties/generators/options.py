"""Draw sets of options for an operator, so that every value and every legal pair of values occurs.

Most bugs that depend on options depend on at most two options. A few dozen sets of options contain all pairs of values;
all combinations would need thousands of sets. A pair is legal if a legal set of options contains it.

Source of the greedy choice: Cohen, Dalal, Fredman, Patton: The AETG System, IEEE TSE 23(7), 1997.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields
from functools import lru_cache
from itertools import combinations, product
from typing import Any, NamedTuple, TypeAlias

from ...reference.core.errors import BadInput
from ...reference.core.operator import Operator
from ..registration.options import ABSENT, OptionSpace
from ..registration.registration import Options, Registration

CANDIDATES = 20
"""The number of legal combinations to try for each set of options; the one with the most new pairs is chosen."""
MOST = 50_000
"""The largest number of combinations of dependent options to search."""

_Item: TypeAlias = tuple[int, int]
"""An option and its value, by their indexes in the space."""


class _Searched(NamedTuple):
    """A space of options, with the legal combinations of values.

    Attributes:
        names: The options, with the dependent options (whose legal values depend on each other) first.
        values: The values of each option.
        cores: The legal combinations of the dependent options, as indexes of values.
        cores_with: The legal combinations (indexes into `cores`) that contain a value of a dependent option, or the
            values of two.
        defaults: The default of each option, if the default doesn't depend on other options; otherwise `ABSENT`.
        readings: The values of each option, in the form in which a definition stores the values.
    """

    names: list[str]
    values: list[Sequence[Any]]
    cores: list[tuple[int, ...]]
    cores_with: Mapping[tuple[_Item, ...], list[int]]
    defaults: list[Any]
    readings: list[list[Any]]

    @property
    def depending(self) -> int:
        """The number of dependent options."""
        return len(self.cores[0]) if self.cores else len(self.names)

    @property
    def defaults_drawn(self) -> list[_Item]:
        """The options that may be omitted in any combination, each with its default value."""
        return [
            (option, value)
            for option, value in self.items()
            if self.values[option][value] is not ABSENT
            and _same(self.readings[option][value], self.defaults[option])
            and self.is_legal((option, value))
        ]

    def is_legal(self, *items: _Item) -> bool:
        """Return whether some legal set of options contains an option's value, or the values of two options."""
        return tuple(item for item in items if item[0] < self.depending) in self.cores_with

    def items(self) -> list[_Item]:
        """Return all options with each of their values, including values that are never legal."""
        return [(option, value) for option, values in enumerate(self.values) for value in range(len(values))]

    def pairs(self) -> Iterator[tuple[_Item, _Item]]:
        """Yield the legal pairs of values of different options."""
        for one, other in combinations(self.items(), 2):
            if one[0] != other[0] and self.is_legal(one, other):
                yield one, other

    def text(self, item: _Item) -> str:
        """Return an option with its value as text for the name of a goal."""
        name, value = self.names[item[0]], self.values[item[0]][item[1]]
        return f"{name} left out" if value is ABSENT else f"{name}={_shown(value)}"


def draw_definitions(registration: Registration, count: int, seed: int) -> list[Options]:
    """Draw sets of options of an operator, as in a history file; the same arguments draw the same sets.

    The operator's profiles come first. Further sets follow until every value and every legal pair of values has
    occurred, and each option with a default has been omitted; then random sets. All returned sets are legal and
    different. If the operator has no space of options, return only the profiles.

    Args:
        registration: The operator.
        count: The minimum number of sets, if that many exist.
        seed: The seed of the draws.

    Raises:
        BadInput: The space contains no legal set of options, or too many dependent options; the message says which.
    """
    drawn: list[Options] = [dict(options) for options in registration.profiles.values()]
    if registration.space is None:
        return drawn
    searched, generator = _searched(registration.operator, registration.space), random.Random(seed)
    left = {*searched.pairs(), *((item, item) for item in searched.items() if searched.is_legal(item))}
    seen = {_canonical(options) for options in drawn}
    for options in drawn:
        left -= _met(registration, searched, options)
    targets = sorted(left)
    generator.shuffle(targets)
    while targets:
        target = targets.pop()
        if target in left:
            options = _written(searched, _completed(searched, target, left, generator), generator)
            left -= _met(registration, searched, options)
            seen.add(_canonical(options))
            drawn.append(options)
    for item in searched.defaults_drawn:
        name = searched.names[item[0]]
        if all(name in options for options in drawn):
            at_default = next(one for one in drawn if (item, item) in _met(registration, searched, one))
            options = {key: value for key, value in at_default.items() if key != name}
            seen.add(_canonical(options))
            drawn.append(options)
    for _ in range(10 * count):
        if len(drawn) >= count:
            break
        options = _written(searched, _at_random(searched, generator), generator)
        if _canonical(options) not in seen:
            seen.add(_canonical(options))
            drawn.append(options)
    return drawn


def option_goals(registration: Registration) -> tuple[str, ...]:
    """Return the values and legal pairs of values of an operator's options, as names of coverage goals.

    Examples are `options late=own`, `options late=own with emit=close`, and for an option with a default `options late
    left out`. A value that no legal set of options contains is also a goal, which stays uncovered. An operator without
    a space of options has no such goals.

    Raises:
        BadInput: As for `draw_definitions`.
    """
    return () if registration.space is None else _goals_of(registration.operator, registration.space)


@lru_cache(maxsize=64)
def _goals_of(operator: Operator, space: OptionSpace) -> tuple[str, ...]:
    searched = _searched(operator, space)
    return (
        *(_goal(searched, item, item) for item in searched.items()),
        *(_goal(searched, *pair) for pair in searched.pairs()),
        *(_left_out(searched.names[option]) for option, _ in searched.defaults_drawn),
    )


def met_by(registration: Registration, options: Options) -> set[str]:
    """Return the goals of `option_goals` that a set of options covers.

    For an omitted option, the default value is covered, unless the default depends on other options.

    Raises:
        BadInput: The options are invalid, or the space is, as in `draw_definitions`.
    """
    if registration.space is None:
        return set()
    searched = _searched(registration.operator, registration.space)
    defaults = {searched.names[option] for option, _ in searched.defaults_drawn}
    left_out = {_left_out(name) for name in defaults - set(options)}
    return left_out | {_goal(searched, *pair) for pair in _met(registration, searched, options)}


def impossible_values(registration: Registration) -> list[str]:
    """Return the values in an operator's space that no legal set of options contains, such as `gap_ms=0`."""
    if registration.space is None:
        return []
    searched = _searched(registration.operator, registration.space)
    return [searched.text(item) for item in searched.items() if not searched.is_legal(item)]


def described(registration: Registration, options: Options) -> str:
    """Return the name of the profile with these options, or otherwise the options as text."""
    named = (name for name, own in registration.profiles.items() if own == options)
    return next(named, ", ".join(f"{name}={_shown(value)}" for name, value in options.items()) or "all defaults")


@lru_cache(maxsize=64)
def _searched(operator: Operator, space: OptionSpace) -> _Searched:
    """Find the legal combinations of dependent options; each independent option has its first value during the
    search.
    """
    names = [*(name for name in space.values if name not in space.independent), *space.independent]
    values = [space.values[name] for name in names]
    depending = len(names) - len(space.independent)
    size = 1
    for of_option in values[:depending]:
        size *= len(of_option)
    if size > MOST:
        raise BadInput(
            f"{operator.name}: its space of options has {size} combinations, more than {MOST}: declare the "
            "options that go with all others as independent, or give fewer values"
        )
    firsts = (0,) * len(space.independent)
    cores = []
    for core in product(*(range(len(of_option)) for of_option in values[:depending])):
        options = {name: chosen[at] for name, chosen, at in zip(names, values, core + firsts, strict=True)}
        if _is_legal(operator, space, {name: value for name, value in options.items() if value is not ABSENT}):
            cores.append(core)
    if not cores:
        raise BadInput(f"{operator.name}: no options of its space are legal: give values that its definition accepts")
    cores_with: dict[tuple[_Item, ...], list[int]] = defaultdict(list)
    cores_with[()] = [*range(len(cores))]
    for number, core in enumerate(cores):
        items = [*enumerate(core)]
        for item in items:
            cores_with[(item,)].append(number)
            cores_with[item, item].append(number)
        for pair in combinations(items, 2):
            cores_with[pair].append(number)
    known = {field.name.removesuffix("_"): field for field in fields(operator.definition)}
    readings, defaults = [], []
    for name, of_option in zip(names, values, strict=True):
        field = known.get(name)
        read = field.metadata.get("read") if field else None
        readings.append([value if value is ABSENT or read is None else read(value) for value in of_option])
        fixed = field is not None and field.default is not MISSING and ABSENT not in of_option
        defaults.append(field.default if field is not None and fixed else ABSENT)
    return _Searched(names, values, cores, dict(cores_with), defaults, readings)


def _is_legal(operator: Operator, space: OptionSpace, options: Options) -> bool:
    try:
        operator.declare(options)
    except BadInput:
        return False
    return space.legal(options)


def _met(registration: Registration, searched: _Searched, options: Options) -> set[tuple[_Item, _Item]]:
    """Return the pairs of option values in a set of options; each value is also paired with itself."""
    definition = registration.declare(options)
    items = []
    for number, (name, readings) in enumerate(zip(searched.names, searched.readings, strict=True)):
        held = getattr(definition, name, getattr(definition, f"{name}_", options.get(name, ABSENT)))
        if name not in options and ABSENT in readings:
            held = ABSENT
        items += [(number, index) for index, reading in enumerate(readings) if _same(reading, held)]
    return {*combinations(items, 2), *((item, item) for item in items)}


def _same(one: Any, other: Any) -> bool:
    return bool(type(one) is type(other) and one == other)  # compare types too, because in Python 1 == True


def _completed(
    searched: _Searched, target: tuple[_Item, _Item], left: set[tuple[_Item, _Item]], generator: random.Random
) -> tuple[int, ...]:
    """Return a legal set of options that contains the target pair, and as many other pairs of `left` as a greedy choice
    finds.
    """
    core_items = tuple(dict.fromkeys(item for item in target if item[0] < searched.depending))
    able = searched.cores_with[core_items]
    tried = [searched.cores[number] for number in generator.sample(able, min(CANDIDATES, len(able)))]
    chosen = dict(
        enumerate(max(tried, key=lambda core: sum(pair in left for pair in combinations(enumerate(core), 2))))
    )
    chosen |= {option: value for option, value in target if option >= searched.depending}
    others = [option for option in range(searched.depending, len(searched.names)) if option not in chosen]
    generator.shuffle(others)
    for option in others:
        values = [*range(len(searched.values[option]))]
        generator.shuffle(values)
        new = [sum(tuple(sorted(((option, value), item))) in left for item in chosen.items()) for value in values]
        chosen[option] = values[new.index(max(new))]
    return tuple(chosen[option] for option in range(len(searched.names)))


def _at_random(searched: _Searched, generator: random.Random) -> tuple[int, ...]:
    independent = [generator.randrange(len(values)) for values in searched.values[searched.depending :]]
    return (*generator.choice(searched.cores), *independent)


def _written(searched: _Searched, chosen: tuple[int, ...], generator: random.Random) -> Options:
    """Return a set of options as in a history file; half of the options with default values are omitted."""
    options = {}
    for option, value in enumerate(chosen):
        is_default = _same(searched.readings[option][value], searched.defaults[option])
        if searched.values[option][value] is not ABSENT and not (is_default and generator.random() < 0.5):
            options[searched.names[option]] = searched.values[option][value]
    return options


def _goal(searched: _Searched, one: _Item, other: _Item) -> str:
    return f"options {searched.text(one)}" + ("" if one == other else f" with {searched.text(other)}")


def _left_out(name: str) -> str:
    return f"options {name} left out"


def _shown(value: Any) -> str:
    return "none" if value is None else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _canonical(options: Options) -> str:
    return json.dumps(options, sort_keys=True)
