"""The verdict on a run: rows that cannot be judged, and rows that are wrong, in which batch and how often."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import CLICKS, RUN, Batches, MemoryRunner, copy, options
from streamproof import BadInput, Inconclusive, Input, Violated
from streamproof.properties.checking.jobs import conclusion
from streamproof.properties.checking.jobs.arguments import oracle_of
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.checking.jobs.production import narrowing, verdict
from streamproof.properties.checking.jobs.production.judging import Judging
from streamproof.properties.checking.jobs.production.run import ProductionRun
from streamproof.properties.checking.jobs.production.verdict import _pair, report_of
from streamproof.properties.checking.jobs.replay import _judged, _readings
from streamproof.properties.generators.columns.forms.rows import Row
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.laws.expected.judging import Met
from streamproof.properties.laws.expected.oracles import JobOracle
from streamproof.properties.laws.variation import Variation
from streamproof.properties.outcomes.equality import TWELVE_DIGITS
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.production.output import Written
from streamproof.properties.witnesses.production.reading import Reading
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions


def reported(written: int = 6, not_checked: Sequence[str] = (), unreadable: int = 0) -> str:
    """Return the report on a run of ten batches that wrote a row an hour."""
    rows = [{"user": "a", "at": datetime.fromtimestamp(hour * 3600, UTC)} for hour in range(written)]
    run = SimpleNamespace(
        checkpoint=SimpleNamespace(batches=[SimpleNamespace(number=9)]),
        history=SimpleNamespace(arrivals=[]),
        unreadable=unreadable,
    )
    judge = SimpleNamespace(
        name="totals",
        oracle=SimpleNamespace(name="the rule"),
        witness=SimpleNamespace(runner=SimpleNamespace(job=copy)),
        **{"without": (), "met": Met(), "declared": Declared(), "divergences": ()},
    )
    of_run = SimpleNamespace(run=run, judge=judge, options=SimpleNamespace(equality=TWELVE_DIGITS), by_batch=True)
    judging = SimpleNamespace(**vars(of_run), not_checked=not_checked, unsure_keys=not_checked, mode="append")
    return str(report_of(judging, rows))  # type: ignore[arg-type]


def test_a_run_of_which_no_row_can_be_judged_is_inconclusive() -> None:
    said = reported(1, ["2 keys with late rows"])
    assert "wrote the rows that the rule expects, in batches 0 to 9" in said
    assert "Not checked: 2 keys with late rows." in said.splitlines()
    with pytest.raises(Inconclusive, match="none of the rows that the run of totals wrote can be judged: 2 keys with"):
        reported(0, ["2 keys with late rows"])
    with pytest.raises(Inconclusive, match="has no output, and none is expected"):
        reported(0)


@pytest.mark.parametrize(
    ("unreadable", "said"),
    [
        (0, ""),
        (1, "1 record with a payload that can't be parsed, which the job should skip"),
        (1_200, "1,200 records with a payload that can't be parsed, which the job should skip"),
    ],
)
def test_records_that_are_no_rows_are_counted_among_what_is_not_checked(unreadable: int, said: str) -> None:
    assert (f"Not checked: {said}." in reported(unreadable=unreadable).splitlines()) == bool(said)


def test_a_key_of_too_many_rows_is_not_looked_at_closer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(narrowing, "MOST_ROWS_OF_PART", 4)
    many = [[{"user": "a", "at": datetime(2026, 1, 1, tzinfo=UTC), "amount": number}] for number in range(6)]
    said = told(lambda read: read[1:], read=many)
    assert "The run read 6 rows that may have caused the wrong row, too many to shrink: name the key" in str(said)


BOUGHT = Input("user string, item int, at timestamp, amount bigint", key=["user", "item"], name="clicks")
READ = [[{"user": "a", "at": datetime(2026, 1, day, tzinfo=UTC), "amount": day}] for day in range(1, 6)]


def judging_of(
    written: Callable[[list[Row]], list[Row]],
    job: Any = copy,
    read: list[list[Row]] = READ,
    clicks: Input = CLICKS,
    by_batch: bool = False,
    runner: type[MemoryRunner] = MemoryRunner,
) -> Judging:
    """Return the judging of a run whose batches from 4 on have read rows, and which has written other rows."""
    history = JobHistory((*(tuple(Arrival("clicks", row) for row in rows) for rows in read), ()))
    numbers = range(4, 4 + len(read))
    batches = [SimpleNamespace(number=number) for number in numbers]
    checkpoint: Any = SimpleNamespace(batches=batches, is_whole=True, running=None)
    rows = written([row for rows in read for row in rows])
    of_batch = {row["at"]: number for number, rows in zip(numbers, read, strict=True) for row in rows}
    output = Written(rows, [of_batch[row["at"]] if by_batch else None for row in rows])
    given = options(job, runner, clicks)
    oracle = JobOracle() if by_batch else oracle_of(lambda clicks: clicks)
    check = JobCheck(given, oracle, Variation(RUN))
    return Judging(check, given, ProductionRun(checkpoint, history, numbers, [0] * (len(read) + 1), output, 0))


def told(*given: Any, **more: Any) -> Violated:
    """Return what is said of a run that has written other rows."""
    with pytest.raises(Violated) as found:
        _judged(judging_of(*given, **more))
    return found.value


def sentence(said: Violated) -> str:
    return str(said).splitlines()[0]


def shown(said: Violated) -> str:
    """Return the batch of the only row that is shown to arrive, after which no batch is shown."""
    table = str(said).partition("What arrives:\n")[2].partition("\n\n")[0].splitlines()[1:]
    (row,) = [line for line in table if "no rows" not in line]
    assert table[-1] == row
    return " ".join(row.split()[:2])


def test_a_row_that_a_run_wrote_twice_is_expected_once_and_its_batch_has_the_run_s_number() -> None:
    said = told(lambda read: [*read, read[2]])
    assert re.search(r"wrote .* amount 3 twice, and the function <lambda> expects it once\.$", sentence(said))
    assert str(said).count("  both  ") == 1
    assert str(said).count("≠ only emitted") == 1
    assert shown(said) == "batch 6"
    assert " 3 times, and the function <lambda> expects it once." in sentence(
        told(lambda read: [*read, read[2], read[2]])
    )


@pytest.mark.parametrize("by_batch", [True, False])
def test_a_row_of_another_value_is_shown_beside_the_row_that_is_expected_in_its_place(by_batch: bool) -> None:
    def other(read: list[Row]) -> list[Row]:
        return [{**row, "amount": 9} if row["amount"] in (3, 5) else row for row in read]

    said = told(other, by_batch=by_batch)
    assert re.search(r"wrote .* amount 9, and .* expects .* amount 3\.$", sentence(said))
    assert "4 rows differ" in str(said)


@pytest.mark.parametrize(("about", "by_batch"), [(True, True), (False, True), (True, False)])
def test_where_a_wrong_row_was_written_is_said_as_far_as_the_sink_s_log_tells(about: bool, by_batch: bool) -> None:
    one = judging_of(lambda read: read[:2] + read[3:], by_batch=by_batch)
    one.run = replace(one.run, written=replace(one.run.written, about=about))
    with pytest.raises(Violated) as found:
        _judged(one)
    where = "in batch 6" + " or a batch next to it" * about if by_batch else "at the end"
    assert sentence(found.value).startswith(f"violated: {where} the run of copy")


def test_a_run_that_has_read_nothing_shows_nothing() -> None:
    with pytest.raises(Inconclusive, match=r"inconclusive: the run of copy .* read no rows$"):
        _judged(judging_of(lambda read: [], read=[[], []]))


def test_a_row_that_a_run_lost_is_shown_with_the_row_that_it_read_in_its_batch() -> None:
    said = told(lambda read: read[:2] + read[3:])
    assert "wrote no such row, and the function <lambda> expects" in sentence(said)
    assert shown(said) == "batch 6"


def test_the_watermarks_of_the_fewest_rows_are_their_own() -> None:
    judging = judging_of(lambda read: read[:2] + read[3:])
    judging.delays_us = {"clicks": 5_000_000}
    with pytest.raises(Violated) as found:
        _judged(judging)
    one = found.value.counterexample
    assert len(one.history.arrivals) == 1
    assert one.watermarks == judging.watermarks(one.history) != []


@pytest.mark.parametrize("day", range(1, 6))
def test_a_job_that_is_wrong_here_too_is_shown_by_the_row_of_the_run_in_batches_of_its_own(day: int) -> None:
    """It is wrong about the other rows as well, of which the run has written what is expected."""

    def lost(batches: Batches) -> Batches:
        return [[] for _ in batches]

    said = told(lambda read: read[: day - 1] + read[day:], lost)
    assert "Here batches are numbered from 0." in str(said)
    assert shown(said) == f"batch {day - 1}"
    assert f"2026-01-0{day}" in str(said).partition("What arrives:")[2]


def test_the_first_key_of_the_first_batch_is_shown_with_its_own_rows_and_the_batches_around_them() -> None:
    def bought(day: int, item: int) -> Row:
        return {"user": "a", "item": item, "at": datetime(2026, 1, day, tzinfo=UTC), "amount": day}

    read = [[bought(day, item) for item in (3, 2) if item == 3 or day == 5] for day in range(1, 9)]
    for by_batch in (True, False):
        said = told(lambda rows: rows[:4] + rows[7:], read=read, clicks=BOUGHT, by_batch=by_batch)
        other = [
            {**row, "amount": 9} if row == bought(5, 3) else row for day in read for row in day if row["item"] == 3
        ]
        assert "wrote no such row" in sentence(told(lambda rows: other, read=read, clicks=BOUGHT, by_batch=by_batch))  # noqa: B023
        history = said.counterexample.history  # type: ignore[union-attr]
        assert [one.row for one in history.arrivals] == [bought(5, 2)]
        assert "3 rows differ, of 2 keys" in str(said)
        if by_batch:
            assert said.counterexample.history.numbers == (6, 7, 8, 11, 12)  # type: ignore[union-attr]
            assert sentence(said).startswith("violated: in batch 8 the run of copy")
            assert "3 rows differ, of 2 keys, in batches 8 to 9;" in str(said)


@pytest.mark.parametrize(
    ("reads", "found"),
    [
        ({"clicks": "json"}, {"clicks": Reading("json")}),
        ({"clicks": {"format": "csv", "header": "true"}}, {"clicks": Reading("csv", {"header": "true"})}),
        ({"clicks": {"header": "true"}}, {"clicks": Reading(None, {"header": "true"})}),
        ({"views": "json"}, "reads has 'views', and the inputs are clicks: name one of them"),
        ({"clicks": 5}, "reads has 5 for 'clicks': give a format"),
        ({"clicks": {"header": True}}, r"reads has \{'header': True\} for 'clicks': give a format"),
        ({"clicks": {"format": "csv", "header": True}}, "for 'clicks': give a format"),
    ],
)
def test_how_an_input_is_read_is_said_by_a_format_or_by_it_and_options(reads: dict[str, Any], found: Any) -> None:
    if not isinstance(found, str):
        assert _readings(reads, options(copy)) == found
        return
    with pytest.raises(BadInput, match=found):
        _readings(reads, options(copy))


@pytest.mark.parametrize("by_batch", [True, False])
def test_columns_that_nothing_is_expected_of_and_those_of_other_values_in_each_run_are_told(by_batch: bool) -> None:
    class Stamping(MemoryRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=Plan(nondeterministic=frozenset({"id"}), of_clock=frozenset({"seen_at"})))

    def stamped(rows: list[Row], job: bool = False) -> list[Row]:
        more = {"id": 1, "seen_at": datetime(2026, 1, 1, tzinfo=UTC)} if job else {"id": 2, "seen_at": None, "more": 1}
        return [{**row, **more} for row in rows]

    def job(batches: Batches) -> Batches:
        return [[{**row} for row in stamped([*rows], job=True)] for rows in batches]

    report = _judged(judging_of(stamped, job, by_batch=by_batch, runner=Stamping))
    assert report.limits == [
        "Not compared: the columns id, seen_at, whose values differ between runs: they contain times of the clock, "
        "random values, files, partitions or offsets",
        "Not compared: the columns more: the oracle doesn't return them",
    ]
    assert str(report).splitlines()[1:3] == [f"{one}." for one in report.limits]
    assert [*report.checked.notes[:2]] == [f"{one}." for one in report.limits]
    assert "wrote no such row" in sentence(
        told(lambda rows: stamped(rows[1:]), job, by_batch=by_batch, runner=Stamping)
    )


def test_a_run_has_the_notes_on_the_plan_of_its_job(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (verdict, conclusion):
        monkeypatch.setattr(module, "notes_on", lambda judge: ["Note (rows wait): x"])
    assert _judged(judging_of(lambda rows: rows, copy)).notes == ["Note (rows wait): x"]
    with pytest.raises(Violated) as raised:
        _judged(judging_of(lambda rows: rows[1:], copy))
    assert raised.value.notes == ["Note (rows wait): x"]


@pytest.mark.parametrize(
    ("missing", "surplus", "pair"),
    [
        ([1], [], ([1], [])),
        ([], [2, 1], ([], [2])),
        ([1, 2], [2, 3], ([2], [2])),
        ([1, 2], [3, 4], ([1], [])),
    ],
)
def test_a_written_row_stands_beside_the_expected_row_of_its_own_times_alone(
    missing: list[int], surplus: list[int], pair: Any
) -> None:
    def row(day: int, n: int) -> Row:
        return {"at": datetime(2026, 1, day, tzinfo=UTC), "n": n}

    wrong = [Difference(None, [row(day, 0)], []) for day in missing]
    wrong += [Difference(None, [], [row(day, 9)]) for day in surplus]
    assert _pair(wrong) == ([row(day, 0) for day in pair[0]], [row(day, 9) for day in pair[1]])
