"""Which write of a function for `foreachBatch` fails, and that the function dies there whatever it catches."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job.dying import writes as module
from streamproof.properties.witnesses.job.dying.writes import CUTS, Writes
from streamproof.properties.witnesses.spark.failures import PlannedCrash


class Frame:
    """A frame whose partitions are lists; where it fails, it is at one of the `CUTS`."""

    def __init__(self, written: list[Any], cut: int | None = None) -> None:
        self.written, self.cut = written, cut

    @property
    def write(self) -> Frame:
        return self

    def writeTo(self, table: str) -> Frame:
        return self

    def save(self, name: str) -> None:
        if self.cut is not None:
            self.written.append((name, CUTS[self.cut]))
            raise ValueError("[USER_RAISED_EXCEPTION] PlannedCrash")
        self.written.append(name)

    def foreachPartition(self, function: Callable[[Iterable[Any]], Any]) -> None:
        if self.cut is not None:
            raise ValueError("PlannedCrash")
        for rows in ([1, 2], [3]):
            function(iter(rows))

    def foreach(self, function: Callable[[Any], Any]) -> None:
        raise AssertionError("Writes calls foreachPartition for it")


@pytest.fixture(autouse=True)
def frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module.connect, "classes", lambda: SimpleNamespace(frame=Frame))
    monkeypatch.setattr(module, "failing", lambda frame, cut: frame if cut is None else Frame(frame.written, cut))


def two_writes(frame: Frame) -> None:
    frame.write.save("a")
    frame.writeTo("table").save("b")


def until(last: int | None, function: Callable[[Frame], None] = two_writes) -> tuple[list[Any], Writes]:
    frame, writes = Frame([]), Writes(last)
    try:
        writes.run(function, frame)
    except PlannedCrash:
        frame.written.append("dead")
    return frame.written, writes


def test_each_write_fails_at_each_of_its_places_in_turn() -> None:
    died = [until(last)[0] for last in range(1, 7)]
    assert died == [[("a", cut), "dead"] for cut in CUTS] + [["a", ("b", cut), "dead"] for cut in CUTS]
    assert "within a write, after its first partition, in line" in until(1)[1].place


def test_a_function_whose_writes_all_succeed_runs_whole_and_says_how_many_places_they_have() -> None:
    for last in (None, 7):
        written, writes = until(last)
        assert (written, writes.reached, writes.place) == (["a", "b"], 2 * len(CUTS), "")


def test_a_function_that_catches_what_a_write_raises_dies_all_the_same_and_does_not_write_again() -> None:
    def stubborn(frame: Frame) -> None:
        for _ in range(2):
            try:
                frame.write.save("a")
            except Exception:
                frame.written.append("caught")

    assert until(1, stubborn)[0] == [("a", CUTS[0]), "dead"]


def test_a_library_may_raise_another_error_for_that_of_the_write(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrapping(frame: Frame) -> None:
        try:
            frame.write.save("a")
        except ValueError as error:
            raise KeyError("of a library") from error

    monkeypatch.setattr(module, "is_users", lambda path: False)
    written, writes = until(2, wrapping)
    assert (written[-1], writes.place) == ("dead", "within a write, before its first partition, and after the others")


def test_a_failure_of_its_own_is_no_death() -> None:
    def wrong(frame: Frame) -> None:
        raise KeyError("of the user")

    with pytest.raises(KeyError, match="of the user"):
        until(1, wrong)


@pytest.mark.parametrize("of_rows", [False, True])
def test_a_function_of_a_partition_dies_before_its_second_row(of_rows: bool) -> None:
    def by_partition(frame: Frame) -> None:
        if of_rows:
            frame.foreach(frame.written.append)
        else:
            frame.foreachPartition(lambda rows: frame.written.extend(rows))

    assert until(None, by_partition)[0] == [1, 2, 3]
    assert until(3, by_partition)[0] == [1, "dead"]
    assert until(1, by_partition)[0] == ["dead"]
