"""Simplify values and keys: the steps by which shrinking replaces a value or key by a simpler one.

The simplest number is 0, the simplest text and list are empty, the simplest truth value is false, and the simplest key
is `a`. An object keeps its fields, because an operator may read the fields. Null isn't replaced, because null is a
tombstone on a table's input.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, isfinite
from string import ascii_lowercase

from ...reference.core.records import Key, Value

FEW = 8
"""The longest list whose members are omitted and simplified one by one; a longer list is only halved."""


def value_size(value: Value) -> int:
    """Return the size of a value; a simpler value is smaller."""
    match value:
        case None:
            return 1
        case int():  # including truth values
            return 2 * abs(value) + (value < 0)
        case float():
            return 2 * ceil(abs(value)) + 1 + (value < 0) if isfinite(value) else 1 << 1100
        case str():
            return sum(1 if letter == "a" else 2 if " " < letter <= "~" else 3 for letter in value)
        case list():
            return 1 + sum(1 + value_size(member) for member in value)
        case dict():
            # Count the empty text as 2, because the key "a", which a field may contain, is simpler than the empty key.
            return 1 + sum(2 if member == "" else value_size(member) for member in value.values())
    return 1


def key_size(key: Key | None) -> int:
    """Return the size of a key; the simplest keys are no key, then single letters, then any other text."""
    if key is None or (len(key) == 1 and key in ascii_lowercase):
        return 0 if key is None else 1 + ascii_lowercase.index(key)
    return 1 + len(ascii_lowercase) + value_size(key)


def simplest_value(value: Value) -> Value:
    """Return the simplest value of the same type as a value."""
    match value:
        case bool():
            return False
        case int() | float():
            return 0
        case str():
            return ""
        case list():
            return []
        case dict():
            return {name: simplest_value(member) for name, member in value.items()}
    return value


def simpler_values(value: Value) -> Iterator[Value]:
    """Yield simpler values of the same type, the simplest first; nothing for the simplest value."""
    simplest, size = simplest_value(value), value_size(value)
    candidates = (simplest, *_steps(value))
    yield from (candidate for candidate in candidates if value_size(candidate) < size)


def _steps(value: Value) -> Iterator[Value]:
    match value:
        case bool() | None:
            return
        case int():
            half = abs(value) // 2
            yield from (abs(value), half, -half, abs(value) - 1, 1 - abs(value))
        case float() if isfinite(value):
            yield from (int(value), abs(value), value / 2)
        case str():
            yield from (value[: len(value) // 2], value[len(value) // 2 :], value[:-1], value[1:], "a" * len(value))
        case list():
            half = len(value) // 2
            yield from (value[:half], value[half:])
            if len(value) <= FEW:
                yield from (value[:index] + value[index + 1 :] for index in range(len(value)))
                for index, member in enumerate(value):
                    for simpler in simpler_values(member):
                        yield [*value[:index], simpler, *value[index + 1 :]]
        case dict():
            for name, member in value.items():
                for simpler in simpler_values(member):
                    yield {**value, name: simpler}


def simpler_keys(key: Key) -> Iterator[Key]:
    """Yield simpler keys, single letters first."""
    size = key_size(key)
    candidates = (*ascii_lowercase[:3], *_steps(key))
    yield from (candidate for candidate in candidates if key_size(candidate) < size)
