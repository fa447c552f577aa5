"""The kinds of values and the sets of keys that are drawn for histories of operators.

A kind of values converts the drawn integers 0 to 3 to values, the simplest first. A set of keys contains three keys,
the first of which is drawn most often. The choice of a kind or set changes the values or keys of a history's records,
but not the timestamps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import islice, permutations
from typing import Any

from ...reference.core.errors import BadInput
from ...reference.core.records import Key, Value
from ...reference.definitions.aggregates import Aggregate

SMALL, EQUAL = "small integers", "all equal"
"""The default kind of values, and the kind that reveals the fewest bugs."""
PLAIN = "plain"
"""The default set of keys."""


@dataclass(frozen=True)
class ValueKind:
    """A kind of values, such as text or fractions.

    Attributes:
        of: The function that returns the value for an integer from 0 to 3 and the arrival's index in its history.
    """

    of: Callable[[int, int], Value]

    @property
    def examples(self) -> list[Value]:
        """Return eight example values: the values of the first eight arrivals."""
        return [self.of(small, 4 * turn + small) for turn in range(2) for small in range(4)]


def _four(*values: Value) -> ValueKind:
    return ValueKind(lambda small, arrival: values[small % 4])


VALUE_KINDS: Mapping[str, ValueKind] = {
    SMALL: ValueKind(lambda small, arrival: small),
    "negative integers": _four(0, -1, -2, -3),
    "integers that cancel": _four(0, 1, -1, -2),
    # The sum of 40 values is below 2^63, and a history has 20. Doubles aren't exact above 2^53.
    "large integers": _four(2**31, -(2**31) - 1, 2**53 + 1, -(2**57) - 1),
    # Fractions are dyadic, so that sums are exact in any order; 0.0 is a whole number as a float, and -3 is an int.
    "fractions": _four(0.0, 0.5, -1.25, -3),
    EQUAL: _four(1, 1, 1, 1),
    "all different": ValueKind(lambda small, arrival: -arrival - 1 if small % 2 else arrival + 1),
    "text": _four("", "a", "B", "a "),
    # Two texts that look the same, and two characters that UTF-16 sorts differently from code points.
    "text of all scripts": _four("é", "e\u0301", "\uff61", "\U0001f600"),
    "text like other values": _four("0", "null", "1.0", "True"),
    "text with separators": _four('"', "|,\t", "\\", "\n\r"),
    "truth values": _four(False, True, False, True),
    "values that are false": _four(0, False, "", []),
    "values like one": _four(1, True, "1", [1]),
    "lists and objects": _four([], {}, ["é", [None, -0.5]], {"b": 2**53 + 1, "a": {"": ""}}),
    "null among others": _four(None, 0, "null", [None]),
}
"""The kinds of values, by name."""

OF_32_BITS, OF_64_BITS, FRACTIONS = "integers of 32 bits", "large integers", "fractions"
COLUMN_KINDS: Mapping[str, tuple[ValueKind, str]] = {
    # Each value fits an int column, but the sum of two values doesn't.
    OF_32_BITS: (_four(2**31 - 1, -(2**31), 2**31 - 2, 1 - 2**31), OF_64_BITS),
}
"""The kinds for typed columns only, each with a kind of `VALUE_KINDS` that the same operators accept."""

KEY_SETS: Mapping[str, tuple[Key, Key, Key]] = {
    PLAIN: ("a", "b", "c"),
    "prefixes of a cohort": ("00001|a", "a", "|"),
    "reserved": ("~clock", "~clock@0", "~"),
    "windows": ("a@5", "a", "a@5@10"),
    "empty": ("", " ", "\t"),
    "all scripts": ("é", "e\u0301", "\U0001f600"),
    "numbers": ("1", "01", "1.0"),
    "case and spaces": ("a", "A", "a "),
    "JSON": ('["a", "b"]', '"', "null"),
    "long": ("a" * 300, "a" * 299 + "b", "a" * 299),
}
"""The sets of keys, by name: keys with separators of streamproof, of paths and of JSON, and similar keys."""


@cache
def kinds_taken(aggregate: Aggregate) -> tuple[str, ...]:
    """Return the names of the kinds of values that an aggregate accepts in any order."""

    def takes(kind: ValueKind) -> bool:
        try:
            for value in kind.examples:
                aggregate.check(value)
            for values in islice(permutations(kind.examples[:4]), 24):
                aggregate.of("", values)
        except (BadInput, TypeError):  # for example, a user's aggregate compares text with numbers
            return False
        return True

    return tuple(name for name, kind in VALUE_KINDS.items() if takes(kind))


def any_kind(definition: Any, side: str) -> tuple[str, ...]:
    """Return the names of all kinds of values, because the operator doesn't compute with the values of the input."""
    return tuple(VALUE_KINDS)


def kinds_of_aggregate(definition: Any, side: str) -> tuple[str, ...]:
    """Return the names of the kinds of values that a definition's aggregate accepts."""
    return kinds_taken(definition.aggregate)


def kind_named(name: str) -> ValueKind:
    """Return a kind of values by its name.

    Raises:
        BadInput: No kind has this name; the message lists the known names.
    """
    if name in COLUMN_KINDS:
        return COLUMN_KINDS[name][0]
    if name not in VALUE_KINDS:
        raise BadInput(f"unknown kind of values {name!r}: use one of {', '.join(VALUE_KINDS)}")
    return VALUE_KINDS[name]


def taken_like(name: str) -> str:
    """Return the kind of `VALUE_KINDS` that the same operators accept as the given kind: the kind itself, except for
    `COLUMN_KINDS`.
    """
    return COLUMN_KINDS[name][1] if name in COLUMN_KINDS else name


def keys_named(name: str) -> tuple[Key, Key, Key]:
    """Return a set of keys by its name.

    Raises:
        BadInput: No set has this name; the message lists the known names.
    """
    if name not in KEY_SETS:
        raise BadInput(f"unknown set of keys {name!r}: use one of {', '.join(KEY_SETS)}")
    return KEY_SETS[name]
