"""The equality of values, for outcomes of operators, rows of jobs, and data sets alike.

Values are compared by value, not by type: 1, 1.0 and Decimal("1.00") are equal, and so are 0.0 and -0.0. Booleans and
text aren't numbers, and NaN is equal to itself. Times with and without a zone are compared in UTC. The tolerance for
floating-point numbers is an argument, because the order of addition isn't always fixed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from math import isclose, isnan, nan
from typing import Any, TypeAlias

from ...reference.core.errors import BadInput
from ..system.arguments import short

Numeric: TypeAlias = int | float | Decimal
MOST_DIGITS = 15
"""The decimal digits of a double, and the largest `digits` of an `Equality`."""


@dataclass(frozen=True)
class Equality:
    """The rules of equality of two values.

    Attributes:
        digits: Two numbers, at least one of which is floating-point, are equal if they differ by at most 10^-digits,
            absolutely or relative to the larger number. None requires exact equality. Integers and decimals are always
            compared exactly.
    """

    digits: int | None

    def __post_init__(self) -> None:
        if self.digits is not None and (type(self.digits) is not int or not 1 <= self.digits <= MOST_DIGITS):
            raise BadInput(
                f"digits is {short(self.digits)}: give a whole number from 1 to {MOST_DIGITS}, or None to compare "
                "floating-point numbers exactly"
            )

    def __str__(self) -> str:
        return "numbers exactly" if self.digits is None else f"floating-point numbers to {self.digits} digits"

    def same(self, one: Any, other: Any) -> bool:
        """Return whether two values are equal."""
        (shape, numbers), (other_shape, others) = comparable(one), comparable(other)
        return shape == other_shape and self._near(numbers, others)

    def unmatched(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Pair as many equal values as possible, and return the indexes of the remaining values.

        Rounding can't test a tolerance, because two nearly equal values may be rounded in different directions. Values
        of the same shape are therefore paired by their differences.

        Args:
            left: A bag of values.
            right: Another bag.
        """
        groups: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        numbers: tuple[list[tuple[Numeric, ...]], list[tuple[Numeric, ...]]] = ([], [])
        for side, values in enumerate((left, right)):
            for index, value in enumerate(values):
                shape, found = comparable(value)
                numbers[side].append(found)
                groups[shape][side].append(index)
        rest: tuple[list[int], list[int]] = ([], [])
        for ours, theirs in groups.values():
            paired = self._paired([numbers[0][index] for index in ours], [numbers[1][index] for index in theirs])
            rest[0].extend(index for at, index in enumerate(ours) if at not in paired)
            partners = {*paired.values()}
            rest[1].extend(index for at, index in enumerate(theirs) if at not in partners)
        return sorted(rest[0]), sorted(rest[1])

    def _paired(self, left: Sequence[tuple[Numeric, ...]], right: Sequence[tuple[Numeric, ...]]) -> dict[int, int]:
        """Pair as many near-equal numbers as possible, equal ones first; return the right index for each paired left
        index.
        """
        waiting: dict[tuple[Numeric, ...], list[int]] = defaultdict(list)
        for index, numbers in enumerate(left):
            waiting[numbers].append(index)
        owner_of = {index: waiting[numbers].pop() for index, numbers in enumerate(right) if waiting[numbers]}
        paired = {ours: theirs for theirs, ours in owner_of.items()}
        if self.digits is None or not (left and left[0]):
            return paired
        for start in range(len(left)):
            if start in paired or len(paired) == len(right):
                continue
            asked: dict[int, int] = {}  # right index -> left index whose numbers are near the right numbers
            queue = [start]
            free: int | None = None
            for ours in queue:
                for theirs, numbers in enumerate(right):
                    if theirs in asked or not self._near(left[ours], numbers):
                        continue
                    asked[theirs] = ours
                    if theirs not in owner_of:
                        free = theirs
                        break
                    queue.append(owner_of[theirs])
                if free is not None:
                    break
            while free is not None:  # give each on the path its new partner
                owner_of[free] = taker = asked[free]
                paired[taker], free = free, paired.get(taker)
        return paired

    def _near(self, numbers: Sequence[Numeric], others: Sequence[Numeric]) -> bool:
        return all(map(self._near_number, numbers, others))

    def _near_number(self, one: Numeric, other: Numeric) -> bool:
        if one == other:
            return True
        if self.digits is None or not (isinstance(one, float) or isinstance(other, float)):
            return False
        tolerance = 10.0**-self.digits
        try:
            return isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
        except OverflowError:  # the integer is too large for a double, so it isn't near any double
            return False


EXACT = Equality(None)
TWELVE_DIGITS = Equality(12)


def comparable(value: Any) -> tuple[Hashable, tuple[Numeric, ...]]:
    """Return a value's shape (everything except its numbers), and its numbers in order.

    Two values are identical if and only if their shapes and numbers are equal, so the pair is a key for identical
    values.
    """
    numbers: list[Numeric] = []
    return _shape(value, numbers), tuple(numbers)


def _shape(value: Any, numbers: list[Numeric]) -> Hashable:
    """Return a value's shape (everything except its numbers), and add its numbers to a list."""
    if isinstance(value, bool):
        return "truth", value
    if isinstance(value, int | float | Decimal):
        if not isinstance(value, int) and isnan(value):
            return "number", "NaN"
        numbers.append(value)
        return "number"
    if isinstance(value, datetime):
        in_utc = value.astimezone(UTC) if value.tzinfo else value
        return "time", in_utc.replace(tzinfo=None, fold=0).isoformat()
    if isinstance(value, Mapping):
        # Sort by name, so that the numbers of the same field are compared with each other.
        named = sorted(((repr(comparable(name)), member) for name, member in value.items()), key=lambda pair: pair[0])
        return "fields", tuple((name, _shape(member, numbers)) for name, member in named)
    if isinstance(value, list | tuple):
        return "list", tuple(_shape(member, numbers) for member in value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes", bytes(value)
    return type(value).__name__, value


@dataclass(frozen=True, slots=True)
class Truth:
    """A boolean that isn't equal to 1 or 0, unlike Python's."""

    value: bool

    def __repr__(self) -> str:
        return repr(self.value)


def typed(value: Any) -> Any:
    """Convert a value of a history so that `==` means exact equality, for fast comparisons.

    1 and 1.0 are equal, because JSON has one type of number: a column of type double correctly converts 1 to 1.0.
    """
    kind = type(value)
    if kind is int or kind is str:
        return value  # the common case
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, list):
        return [typed(member) for member in value]
    if isinstance(value, dict):
        return {name: typed(member) for name, member in value.items()}
    return nan if isinstance(value, float) and isnan(value) else value
