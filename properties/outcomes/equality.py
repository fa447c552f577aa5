"""When values count as equal: one notion, for outcomes of operators, rows of jobs and data sets.

Values are compared by value, not by type: 1, 1.0 and Decimal("1.00") are equal, as are 0.0 and -0.0. True and false are
no numbers, text is none, and NaN is equal to itself. Times with and without a zone are compared in UTC. How near two
floating-point numbers must be is an argument, for the order in which numbers are added up isn't fixed everywhere.
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

Number: TypeAlias = int | float | Decimal
MOST_DIGITS = 15
"""A double has so many decimal digits; only *exactly* asks for more."""


@dataclass(frozen=True)
class Equality:
    """When two values count as equal.

    Attributes:
        digits: Two numbers, of which one is a floating-point number, are equal where they differ by no more than
            10^-digits of the larger, or than 10^-digits; None: where they are the same number. Integers and decimals
            are always compared exactly.
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
        """Tell whether two values are equal."""
        (shape, numbers), (other_shape, others) = comparable(one), comparable(other)
        return shape == other_shape and self._near(numbers, others)

    def unmatched(self, left: Sequence[Any], right: Sequence[Any]) -> tuple[list[int], list[int]]:
        """Return the indices of the values that are left over where as many equal ones as possible are paired.

        Values within a tolerance of each other can't be told apart by rounding them: two that are nearly the same may
        lie on either side of where it goes up and down. So values of one shape are paired by their differences.

        Args:
            left: A bag of values.
            right: Another one.
        """
        groups: dict[Hashable, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
        numbers: tuple[list[tuple[Number, ...]], list[tuple[Number, ...]]] = ([], [])
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

    def _paired(self, left: Sequence[tuple[Number, ...]], right: Sequence[tuple[Number, ...]]) -> dict[int, int]:
        """Return a largest pairing of numbers, from the left index to the right one: first those that are the same."""
        waiting: dict[tuple[Number, ...], list[int]] = defaultdict(list)
        for index, numbers in enumerate(left):
            waiting[numbers].append(index)
        owner_of = {index: waiting[numbers].pop() for index, numbers in enumerate(right) if waiting[numbers]}
        paired = {ours: theirs for theirs, ours in owner_of.items()}
        if self.digits is None or not (left and left[0]):
            return paired
        for start in range(len(left)):
            if start in paired or len(paired) == len(right):
                continue
            asked: dict[int, int] = {}  # by each right index that was tried the left one that would take it
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
            while free is not None:  # each takes it, and leaves what it had to the one before
                owner_of[free] = taker = asked[free]
                paired[taker], free = free, paired.get(taker)
        return paired

    def _near(self, numbers: Sequence[Number], others: Sequence[Number]) -> bool:
        return all(map(self._near_number, numbers, others))

    def _near_number(self, one: Number, other: Number) -> bool:
        if one == other:
            return True
        if self.digits is None or not (isinstance(one, float) or isinstance(other, float)):
            return False
        tolerance = 10.0**-self.digits
        try:
            return isclose(one, other, rel_tol=tolerance, abs_tol=tolerance)
        except OverflowError:  # an integer beyond what a double holds
            return False


EXACT = Equality(None)
TWELVE_DIGITS = Equality(12)


def comparable(value: Any) -> tuple[Hashable, tuple[Number, ...]]:
    """Return all of a value but its numbers, which is compared exactly, and its numbers in order.

    Two values are the same number by number where both are equal; so the pair is a key for values that are the same.
    """
    numbers: list[Number] = []
    return _shape(value, numbers), tuple(numbers)


def _shape(value: Any, numbers: list[Number]) -> Hashable:
    """Return all of a value but its numbers, which are added to a list."""
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
        # In the order of their names, so that numbers meet those of the same field.
        named = sorted(((repr(comparable(name)), member) for name, member in value.items()), key=lambda pair: pair[0])
        return "fields", tuple((name, _shape(member, numbers)) for name, member in named)
    if isinstance(value, list | tuple):
        return "list", tuple(_shape(member, numbers) for member in value)
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes", bytes(value)
    return type(value).__name__, value


@dataclass(frozen=True, slots=True)
class Truth:
    """True or false as a value that is compared by `==`: other than 1 and 0, which Python takes for equal to them."""

    value: bool

    def __repr__(self) -> str:
        return repr(self.value)


def typed(value: Any) -> Any:
    """Return a value of a history that is equal by `==` to those that are equal exactly, for where that must be fast.

    1 and 1.0 are equal, for JSON has one type of number: a column of type double makes 1.0 of the 1 of a history, and
    is right.
    """
    kind = type(value)
    if kind is int or kind is str:
        return value  # most are
    if isinstance(value, bool):
        return Truth(value)
    if isinstance(value, list):
        return [typed(member) for member in value]
    if isinstance(value, dict):
        return {name: typed(member) for name, member in value.items()}
    return nan if isinstance(value, float) and isnan(value) else value
