from __future__ import annotations

import numpy as np
import pytest

from benchmarks.production.large import Halves, figures_of
from benchmarks.production.large_run import inputs_of


def test_the_batches_of_an_operator_are_the_same_each_time_and_follow_each_other() -> None:
    for operator, names in (("session_windows", ["events"]), ("foreign_key_join", ["left", "right"])):
        batches = [inputs_of(operator, batch, 5_000, 1_000) for batch in (0, 1)]
        assert [inputs_of(operator, batch, 5_000, 1_000) for batch in (0, 1)] == batches
        for number, tables in enumerate(batches):
            assert list(tables) == names
            orders = np.concatenate([table["order"].to_numpy() for table in tables.values()])
            assert sorted(orders) == list(range(number * 5_000, (number + 1) * 5_000))
            times = np.concatenate([table["time"].to_numpy() for table in tables.values()])[np.argsort(orders)]
            behind = np.maximum.accumulate(times) - times
            assert 0 < (behind > 0).sum() < 5_000 // 5
            assert behind.max() < 30_000
    right = batches[0]["right"]
    assert 50 < right.num_rows < 200
    assert set(right["key"].to_pylist()) & set(batches[0]["left"]["refers"].to_pylist())


def test_the_first_batch_of_each_half_is_the_recovery_and_counts_in_no_other_figure() -> None:
    def half(first: int, last: int, start: float, to_first: float) -> list[dict[str, float]]:
        ends = [start + to_first + 2 * number for number in range(last - first + 1)]
        batches = [{"batch": first + place, "at": end, "cpu": 3 * (end - start)} for place, end in enumerate(ends)]
        return [{"started": start, "cpu": 0}, *batches]

    halves = Halves(half(0, 4, 100, 9), [*half(4, 7, 500, 7), {"ended": 600, "cpu": 0, "state": 5e6}])
    figures = {one.name.partition(": ")[2].partition(": ")[2]: one for one in figures_of("x", 2, halves, 8_000, 8)}
    assert figures["records a second"].median == pytest.approx(500)
    assert figures["records a CPU second"].median == pytest.approx(1_000 / 6)
    assert (figures["a batch"].median, figures["a batch"].runs) == (pytest.approx(2), 7)
    assert figures["growth of the CPU seconds"].median == pytest.approx(1)
    assert figures["from the restart to its first batch's end"].median == pytest.approx(7)
    assert figures["the same over a batch"].median == pytest.approx(3.5)
    assert figures["state at the end"].median == pytest.approx(5)
