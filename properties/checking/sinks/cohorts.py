"""The histories that share a query: the smallest histories, then random histories; each row contains its history's
number.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import pyarrow as pa

from .places import PER_BATCH

BATCHES = 4
KEYS = "ab"
FILLING = -1
"""The number of the history whose rows fill a disk; this history isn't judged."""
_FILLING_ROWS = 400
MOST_ROWS = 3
"""The largest number of rows in a batch of a random history."""
SCHEMA = pa.schema([("history", pa.int64()), ("key", pa.string()), ("amount", pa.int64()), ("id", pa.int64())])


@dataclass(frozen=True)
class Payments:
    """A history of payments: the keys of the rows in each batch; each row's amount is 1."""

    batches: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(f"batch {number}: {' '.join(keys)}" for number, keys in enumerate(self.batches) if keys)

    def rows(self, batch: int) -> Iterator[tuple[str, int]]:
        """Yield the key and the number of each row of a batch."""
        yield from ((key, batch * PER_BATCH + index) for index, key in enumerate(self.batches[batch]))


def payments(count: int, seed: int) -> list[Payments]:
    """Return histories: all histories with one or two rows, the smallest first, then random histories."""
    places = [(batch, key) for batch in range(BATCHES) for key in KEYS]
    small = [(place,) for place in places[:: len(KEYS)]]
    found = [_with(rows) for rows in [*small, *itertools.combinations(places, 2)]]
    generator = Random(seed)
    while len(found) < count:
        drawn = ("".join(generator.choices(KEYS, k=generator.randint(0, MOST_ROWS))) for _ in range(BATCHES))
        found.append(Payments(tuple(drawn)))
    return found[:count]


def _with(rows: Sequence[tuple[int, str]]) -> Payments:
    return Payments(tuple("".join(key for at, key in rows if at == batch) for batch in range(BATCHES)))


@dataclass(frozen=True)
class SinkCohort:
    """Histories that share a query, and their expected rows.

    Attributes:
        histories: The histories.
        totals: Whether the sink writes a total for each key, instead of each row.
        seconds: Whether a second query writes the same rows, with other keys and numbers, to the same target.
    """

    histories: Sequence[Payments]
    totals: bool = False

    def table(self, batch: int, second: bool = False, filling: bool = False) -> pa.Table:
        """Return the cohort's rows in a batch.

        Args:
            batch: The batch.
            second: Whether to return the rows of a second query: the same rows, with other keys and numbers.
            filling: Whether to add enough rows to fill the simulated disk.
        """
        rows = [
            (number, key.upper() if second else key, 1, row + PER_BATCH * BATCHES * second)
            for number, history in enumerate(self.histories)
            for key, row in history.rows(batch)
        ]
        if filling:
            rows += [(FILLING, KEYS[i % 2] + str(i), i * i, batch * PER_BATCH) for i in range(_FILLING_ROWS)]
        return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)

    def expected(self, number: int, batches: Sequence[int], second: bool = False) -> Counter[str]:
        """Return the expected result of a history in some batches: the number of copies of each row, or each key's
        total.
        """
        rows = [row for batch in batches for row in self.histories[number].rows(batch)]
        if second:
            rows += [(key.upper(), row + PER_BATCH * BATCHES) for key, row in rows]
        return Counter(key if self.totals else str(row) for key, row in rows)
