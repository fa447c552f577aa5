"""Folding a changelog at every cut: what differs is found after the first batch in which it does."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamproof.properties.laws.folding import by_batch, folded_differences
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change, Record

LINES = (
    *(Record("events", "a", 1, 0), Record("events", "b", 1, 3), CUT),
    *(CUT, Record("events", "a", 2, 20), CUT),
    Record("events", "b", 3, 21),
)
SUMS = History("session_windows", {"gap_ms": 5, "aggregate": "sum", "grace_ms": 50}, LINES, "batch")
RANGES = History("range_aggregate", {"preceding_ms": 5, "aggregate": "sum"}, LINES, "batch")


def found(history: History, wrong: Callable[[list[Entry]], list[Entry]]) -> list[Difference]:
    played = play(history)
    return folded_differences(history, played, by_batch(wrong(list(played.entries)), len(played.steps)))


@pytest.mark.parametrize("history", [SUMS, RANGES], ids=["table", "stream"])
@pytest.mark.parametrize("number", range(4))
def test_a_missing_change_is_found_after_its_own_batch(history: History, number: int) -> None:
    batch = play(history).entries[number].batch
    differences = found(history, lambda entries: entries[:number] + entries[number + 1 :])
    assert [one.when for one in differences] == [batch]


@pytest.mark.parametrize("history", [SUMS, RANGES], ids=["table", "stream"])
def test_true_is_not_1(history: History) -> None:
    def true_for_1(entries: list[Entry]) -> list[Entry]:
        first = entries[0].output
        assert isinstance(first, Change)
        assert first.value == 1
        return [entries[0]._replace(output=first._replace(value=True)), *entries[1:]]

    assert [one.when for one in found(history, true_for_1)] == [0]


@pytest.mark.parametrize("batch", range(4))
def test_a_change_too_many_is_found_in_any_batch_also_in_one_without_records(batch: int) -> None:
    more = Entry(-1, batch, Change("c", (0, 0), 1, 0))
    assert [(one.key, one.when) for one in found(SUMS, lambda entries: [*entries, more])] == [("c", batch)]


def test_a_row_that_is_wrong_for_one_batch_alone_is_found() -> None:
    own = Change("c", (0, 0), 1, 0)
    passing = [Entry(-1, 1, own), Entry(-1, 2, own._replace(value=None))]
    assert [(one.key, one.when) for one in found(SUMS, lambda entries: [*entries, *passing])] == [("c", 1)]
