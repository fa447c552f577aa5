"""The range aggregate on Spark with a retention: which rows are late, and how long others stay."""

from __future__ import annotations

import random

import pytest
from memory_runtime import Groups, Row, came, stage_of
from streamproof.reference.definitions.aggregates import LIST
from streamproof.reference.definitions.windows import RangeAggregate
from streamproof.spark_impl.range_aggregate import RangeLogic


@pytest.mark.parametrize(("preceding_ms", "retention_ms"), [(0, 0), (3, 0), (0, 4), (5, 2), (2, 6)])
def test_rows_up_to_the_retention_are_answered_as_without_one_and_stay_half_a_life_longer_at_most(
    preceding_ms: int, retention_ms: int
) -> None:
    bounded, free = (RangeLogic(RangeAggregate(preceding_ms, LIST)) for _ in range(2))
    bounded.retention_ms = retention_ms
    stages, groups = (stage_of(bounded), stage_of(free)), (Groups(1), Groups(1))
    generator, clock, life = random.Random(preceding_ms), 0, preceding_ms + retention_ms
    for batch in range(30):
        times = [max(0, clock + generator.randint(-retention_ms - 2, 3)) for _ in range(generator.randint(0, 2))]
        rows = [Row(("a",), time, [batch, at], f"{batch}.{at}") for at, time in enumerate(times)]
        taken = [row for row in rows if (row.timestamp or 0) >= clock - retention_ms]
        found = [one.emitted for one in came(groups[0].batch(stages[0], rows, clock))]
        expected = [one.emitted for one in came(groups[1].batch(stages[1], taken, 0))]
        assert [one.cause for one in found if one.reason == "late"] == [row.order for row in rows if row not in taken]
        assert [one.value for one in found if one.reason is None] == [one.value for one in expected]
        kept = [time for _, fields in groups[0].stored().values() for time, _ in fields[0]]
        assert all(time >= clock - life - max(life // 2, 1) for time in kept)
        clock = max([clock, *times]) + generator.randint(0, 2)
    groups[0].batch(stages[0], [], clock + 2 * life + 2)
    assert groups[0].stored() == {}
    assert not groups[0].memories[0].timers
