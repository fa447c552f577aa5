"""Coverage goals for the variety of drawn records: without such variety, some bugs don't change the output."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ...reference.core.history import History
from ...reference.core.records import Record, Value
from ..registration.domain import Domain
from .cohorts import record_batches
from .values import FRACTIONS, OF_64_BITS, SMALL, kind_named

UNORDERED, REPEATED, DIFFERENT = "out of order in a batch", "record repeated", "different values"
WIDE, FRACTION = "value beyond 2^31", "value with a fraction"


def variety_goals(domain: Domain, definition: Any) -> Iterator[str]:
    """Yield the names of the goals for a definition's histories that don't depend on the kinds of drawn values."""
    yield from (UNORDERED, REPEATED)
    if any(_is_carried(domain, definition, side) for side in definition.inputs):
        yield DIFFERENT


def kind_goals(domain: Domain, definition: Any) -> Iterator[str]:
    """Yield the names of the goals for a definition's values, if all accepted kinds of values are drawn."""
    carried = [side for side in definition.inputs if _is_carried(domain, definition, side)]
    kinds = {name for side in carried for name in domain.kinds(definition, side)}
    if OF_64_BITS in kinds:
        yield WIDE
    if FRACTIONS in kinds:
        yield FRACTION


def variety_met(domain: Domain, definition: Any, history: History) -> Iterator[str]:
    """Yield the names of the goals that a history of a definition covers; records without a key don't count."""
    batches = [[record for record in batch if record.key is not None] for batch in record_batches(history)]
    records = [record for batch in batches for record in batch]
    unordered = any(later.timestamp < earlier.timestamp for batch in batches for earlier, later in pairwise(batch))
    if unordered and history.clock == "batch":  # a history under stream time has no batches
        yield UNORDERED
    if len({repr(record) for record in records}) < len(records):
        yield REPEATED
    values = {
        side: [value for value in _values(domain, definition, side, records) if value is not None]
        for side in definition.inputs
        if _is_carried(domain, definition, side)
    }
    if values and all(len({*map(repr, of_side)}) > 1 for of_side in values.values()):
        yield DIFFERENT
    numbers = [value for of_side in values.values() for value in of_side if isinstance(value, int | float)]
    if any(abs(number) >= 2**31 for number in numbers):
        yield WIDE
    if any(isinstance(number, float) and not number.is_integer() for number in numbers):
        yield FRACTION


def _is_carried(domain: Domain, definition: Any, side: str) -> bool:
    """Return whether the records of an input contain drawn values, rather than only names of keys."""
    first, second = _two_values(domain, definition, side)
    return bool(first != second)


def _values(domain: Domain, definition: Any, side: str, records: list[Record]) -> list[Value]:
    """Return the drawn values of an input's records; in an object, the drawn value is a field."""
    own = [record.value for record in records if record.input == side and record.value is not None]
    first, second = _two_values(domain, definition, side)
    if not isinstance(first, Mapping):
        return own
    names = [name for name in first if first[name] != second[name]]
    return [value.get(name) for value in own for name in names]


def _two_values(domain: Domain, definition: Any, side: str) -> tuple[Value, Value]:
    """Return two different record values that an input accepts."""
    kinds = domain.kinds(definition, side)
    # Use fixed values, because two drawn values could be equal, which would make the goal impossible.
    one, other = (0, 1) if SMALL in kinds else kind_named(kinds[0]).examples[:2]
    return domain.value(definition, side, one, 0, 0), domain.value(definition, side, other, 0, 0)
