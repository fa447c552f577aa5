"""The simpler forms of an operator's records."""

from __future__ import annotations

import pytest
from streamproof.properties.checking.shrinking import _simpler
from streamproof.reference.core.records import Record


@pytest.mark.parametrize(("timestamp", "earlier"), [(4, [0, 1, 2]), (5, [1, 2]), (7, [])])
def test_a_record_moves_to_each_earlier_batch_whose_clock_has_reached_its_time(
    timestamp: int, earlier: list[int]
) -> None:
    record = Record("events", "a", 0, timestamp)
    assert [number for number, one in _simpler(3, record, (4, 5, 6, 9)) if one == record] == earlier
