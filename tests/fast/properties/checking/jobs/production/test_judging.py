"""The comparison of a run's rows with those that are expected: in each mode, by each kind of oracle, a row of each."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput, Inconclusive
from streamproof.properties.checking.jobs.production.judging import Judging, place_of
from streamproof.properties.checking.jobs.production.run import ProductionRun
from streamproof.properties.generators.columns.forms.rows import Row
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory
from streamproof.properties.laws.expected.oracles import JobOracle, ModelOracle, SqlOracle
from streamproof.properties.outcomes.equality import TWELVE_DIGITS, comparable
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.production.output import Written

NUMBERS = [3, 4, 5]
"""The micro-batches of the run; what is expected has one more, which may not have run."""


def row(at: int, user: str = "a", n: int = 1) -> Row:
    return {"user": user, "at": datetime(2024, 7, 15, tzinfo=UTC) + timedelta(minutes=at), "n": n}


BATCHES = [[row(10 * batch + at) for at in range(2)] for batch in range(4)]


def judging(mode: str, oracle: type[Any], with_batches: bool, unique: Sequence[str] | None = None) -> Judging:
    found = object.__new__(Judging)
    found.options = SimpleNamespace(equality=TWELVE_DIGITS)  # type: ignore[assignment]
    found.run = SimpleNamespace(numbers=NUMBERS)  # type: ignore[assignment]
    found.judge = SimpleNamespace(oracle=object.__new__(oracle), unique_columns=unique)  # type: ignore[assignment]
    found.sources = [SimpleNamespace(key=("user",))]  # type: ignore[list-item]
    found.mode = mode  # type: ignore[assignment]
    found.exact = found.by_batch = with_batches
    return found


def wrong(judge: Judging, expected: Expected, written: Sequence[tuple[int | None, Row]]) -> list[Difference]:
    judge.run.written = SimpleNamespace(batches=[number for number, _ in written])  # type: ignore[misc, assignment]
    return judge.differing(expected, [one for _, one in written])


def numbered(batches: Sequence[Sequence[Row]], numbers: Sequence[int | None]) -> list[tuple[int | None, Row]]:
    return [(number, one) for number, rows in zip(numbers, batches, strict=True) for one in rows]


def test_rows_of_known_batches_are_compared_in_each_of_them() -> None:
    judge, expected = judging("append", JobOracle, True), Expected("batches", BATCHES)
    right = numbered(BATCHES[:3], NUMBERS)
    assert wrong(judge, expected, right) == []
    for at, (number, one) in enumerate(right):
        rest = right[:at] + right[at + 1 :]
        other = NUMBERS[(NUMBERS.index(number or 0) + 1) % 3]
        assert wrong(judge, expected, rest) == [Difference(number, [one], [])]
        assert wrong(judge, expected, [*right, right[at]]) == [Difference(number, [], [one])]
        moved = wrong(judge, expected, [*rest, (other, one)])
        assert sorted(moved) == sorted(
            [Difference(number, [one], []), Difference(other, [], [one])], key=lambda one: one.when
        )


@pytest.mark.parametrize(
    ("oracle", "comparing", "must", "may"),
    [
        # A model closes in a batch what Spark closes in the next, so the last batch's rows needn't be there.
        (ModelOracle, "batches", BATCHES[:2], BATCHES[:3]),
        (JobOracle, "batches", BATCHES[:3], BATCHES[:3]),
        (SqlOracle, "cuts", BATCHES[:2], BATCHES[:3]),
    ],
    ids=["a model", "a job", "a statement after each cut"],
)
def test_of_unknown_batches_rows_must_or_may_be_written(
    oracle: type[Any], comparing: Any, must: list[list[Row]], may: list[list[Row]]
) -> None:
    rows = BATCHES if comparing == "batches" else [[*chain(*BATCHES[: cut + 1])] for cut in range(len(BATCHES))]
    judge, expected = judging("append", oracle, False), Expected(comparing, rows)
    needed, allowed, beyond = ([*chain(*one)] for one in (must, may, BATCHES[len(may) :]))
    assert wrong(judge, expected, [(None, one) for one in allowed]) == []
    assert wrong(judge, expected, [(None, one) for one in needed]) == []
    for one in needed:
        found = wrong(judge, expected, [(None, other) for other in allowed if other is not one])
        assert [(each.expected, each.actual) for each in found] == [([one], [])]
    for one in [*beyond, row(99), *allowed]:
        assert wrong(judge, expected, [*((None, other) for other in allowed), (None, one)]) == [
            Difference(None, [], [one])
        ]


@pytest.mark.parametrize("mode", ["update", "complete"])
def test_a_table_is_compared_as_it_is_after_the_last_batch_that_has_run(mode: str) -> None:
    batches = [[row(0, n=1)], [row(0, n=2), row(1)], [row(2)], [row(0, n=9)]]
    if mode == "complete":
        batches = [[row(0, n=1)], [row(0, n=2), row(1)], [row(0, n=2), row(1), row(2)], [row(9)]]
    judge, expected = judging(mode, JobOracle, False, ["user", "at"]), Expected("batches", batches)
    table = [row(0, n=2), row(1), row(2)]
    assert wrong(judge, expected, [(None, one) for one in table]) == []
    for at in range(3):
        found = wrong(judge, expected, [(None, one) for one in table[:at] + table[at + 1 :]])
        assert [(one.expected, one.actual) for one in found] == [([table[at]], [])]
    assert wrong(judge, expected, [(None, one) for one in [*table, row(9)]]) == [Difference(None, [], [row(9)])]


def test_wrong_rows_come_by_batch_then_by_key_and_those_of_no_batch_last() -> None:
    judge = judging("append", JobOracle, False)
    written = [(4, row(9, "b")), (None, row(9, "a")), (4, row(9, "a")), (3, row(9, "c"))]
    found = wrong(judge, Expected("batches", [[]] * 4), written)
    assert [(one.when, one.actual[0]["user"]) for one in found] == [(3, "c"), (4, "a"), (4, "b"), (None, "a")]


def test_a_missing_row_is_named_with_the_batch_that_must_have_written_it() -> None:
    for oracle, later in ((JobOracle, 0), (ModelOracle, 1)):
        found = wrong(judging("append", oracle, False), Expected("batches", BATCHES), [])
        expected = numbered(BATCHES[: 3 - later], NUMBERS[later:])
        assert [(one.when, *one.expected) for one in found] == expected


@pytest.mark.parametrize("cuts", [2, 3, 4])
def test_what_the_batch_before_the_last_had_closed_must_be_written_however_few_there_are(cuts: int) -> None:
    rows = [[*chain(*BATCHES[: cut + 1])] for cut in range(cuts)]
    found = wrong(judging("append", SqlOracle, False), Expected("cuts", rows), [])
    assert [one.expected[0] for one in found] == (rows[cuts - 3] if cuts > 2 else [])


@pytest.mark.parametrize(("delays", "durations", "must"), [((), (), 6), ((1,), (), 3), ((0,), (60_000_000,), 2)])
def test_rows_whose_times_the_watermark_has_not_passed_may_be_missing(
    delays: tuple[int, ...], durations: tuple[int, ...], must: int
) -> None:
    judge = judging("append", SqlOracle, False)
    judge.declared = SimpleNamespace(plan=SimpleNamespace(delays_us=delays, durations_us=durations))  # type: ignore[assignment]
    rows = [row(at) for at in range(6)]
    judge.run.watermarks_ms = [0, int(rows[3]["at"].timestamp() * 1_000)]
    judge.not_checked = []
    expected = Expected("end", [rows])
    for count in range(7):
        found = wrong(judge, expected, [(None, one) for one in rows[count:]])
        assert [(one.expected, one.actual) for one in found] == [([one], []) for one in rows[: min(count, must)]]
    assert bool(judge.not_checked) == (must < 6)
    assert all(note.startswith(f"{6 - must} expected rows whose times") for note in judge.not_checked)


def test_rows_have_the_key_of_all_inputs_if_they_have_its_columns() -> None:
    judge = judging("append", JobOracle, False)
    assert judge.key_columns(row(0)) == ("user",)
    assert judge.key_columns({"n": 1}) == ()
    judge.sources = [SimpleNamespace(key=("user", "n"))]  # type: ignore[list-item]
    assert judge.key_columns(row(0)) == ("user", "n")
    assert [judge.key_columns({name: 1}) for name in ("user", "n")] == [(), ()]
    judge.sources = [SimpleNamespace(key=("user",))]  # type: ignore[list-item]
    judge.sources = [*judge.sources, SimpleNamespace(key=("n",))]  # type: ignore[list-item]
    assert judge.key_columns(row(0)) == ()


def late_run(oracle: type[Any], logs: bool, delays: tuple[int, ...] = (1,)) -> Judging:
    """Return the judging of two batches of the users a to e, whose rows are a minute apart, under two watermarks."""
    judge = judging("append", oracle, False)
    batches = [[row(minute, user) for minute, user in enumerate(users)] for users in ("abc", "cdeab")]
    judge.exact, judge.by_batches, judge.not_checked = logs and oracle is JobOracle, oracle is not SqlOracle, []
    judge.declared = SimpleNamespace(plan=SimpleNamespace(delays_us=delays))  # type: ignore[assignment]
    source = SimpleNamespace(
        name="clicks", key=("user",), key_of=lambda one: (one["user"],), time_us_of=lambda one: us(one["at"])
    )
    judge.sources = [source]  # type: ignore[list-item]
    history = JobHistory(tuple(tuple(Arrival("clicks", one) for one in rows) for rows in batches))
    watermarks_ms, checkpoint = [us(row(at)["at"]) // 1_000 for at in (0, 2)], SimpleNamespace(is_whole=logs)
    judge.run = ProductionRun(checkpoint, history, [4, 5], watermarks_ms, Written([], []), 0)  # type: ignore[arg-type]
    judge.unsure_keys = judge._keys_with_late_rows()
    return judge


def us(at: datetime) -> int:
    return int(at.timestamp() * 1_000_000)


@pytest.mark.parametrize(
    ("oracle", "logs", "keys"),
    [
        (JobOracle, True, ""),
        # A batch without data may have run between the two, by the second watermark.
        (JobOracle, False, "ade"),
        (ModelOracle, True, "ade"),
        (SqlOracle, True, "acde"),
    ],
    ids=["a job", "a job without logs", "a model", "SQL"],
)
def test_keys_are_unsure_whose_rows_the_oracle_may_take_where_spark_drops_them(
    oracle: type[Any], logs: bool, keys: str
) -> None:
    assert late_run(oracle, logs).unsure_keys == {comparable([user]) for user in keys}
    assert not late_run(oracle, logs, delays=()).unsure_keys  # without a watermark nothing is late


def emitted(judge: Judging, *rows: Row) -> tuple[Expected, list[Row]]:
    judge.judge.name, judge.judge.met = "totals", SimpleNamespace()  # type: ignore[misc, assignment]
    judge.judge.oracle = SimpleNamespace(name="the SQL statement")  # type: ignore[assignment]
    judge.in_form = lambda expected, emitted: (expected, [*map(list, emitted)])  # type: ignore[method-assign]
    judge.run = replace(judge.run, written=Written(rows, [*range(len(rows))]))
    return judge.emitted(Expected("end", [rows]))


def test_rows_of_unsure_keys_are_not_compared_and_these_are_counted() -> None:
    judge = late_run(SqlOracle, True)
    expected, rows = emitted(judge, *(row(1, user) for user in "abcb"))
    assert (expected.rows, rows) == ([[row(1, "b")] * 2], [row(1, "b")] * 2)
    assert judge.run.written == Written(rows, [1, 3])
    assert judge.not_checked == [
        "4 keys with rows at or behind the watermark, and the SQL statement can't decide whether such rows count: "
        "expect a rule, such as windows(…)"
    ]


def test_where_rows_do_not_say_their_key_rows_that_may_be_late_leave_the_run_unjudged() -> None:
    judge = late_run(SqlOracle, True)
    with pytest.raises(Inconclusive, match=r"the run of totals has read rows at or behind .* keep the columns of the"):
        emitted(judge, {"n": 1})


def test_rows_of_one_place_have_the_same_times_in_all_columns() -> None:
    first, *others = ({"start": row(1)["at"], "end": row(end)["at"], "n": end % 2} for end in (2, 3, 2))
    assert [place_of(other) == place_of(first) for other in others] == [False, True]
    assert place_of({**first, "n": 9}) == place_of(first)


@pytest.mark.parametrize(("start", "end", "is_closed"), [(0, 4, True), (0, 5, False), (5, 0, False), (6, 7, False)])
def test_a_row_is_closed_once_the_watermark_has_passed_the_last_of_its_times(
    start: int, end: int, is_closed: bool
) -> None:
    judge = judging("append", SqlOracle, False)
    judge.declared = SimpleNamespace(plan=SimpleNamespace(delays_us=(1,), durations_us=()))  # type: ignore[assignment]
    judge.run.watermarks_ms = [0, int(row(5)["at"].timestamp() * 1_000)]
    window = {"start": row(start)["at"], "end": row(end)["at"]}
    assert [judge._is_closed(one) for one in ({"window": window}, window)] == [is_closed] * 2
    assert not judge._is_closed({"n": 1})  # a row without a time shows nothing


def test_columns_without_expectation_are_recorded_if_any_row_is_expected() -> None:
    judge = judging("append", JobOracle, True)
    written = SimpleNamespace(rows=[row(1)], batches=[3])
    for expected, extra in (([[{"user": "a"}]], ["at", "n"]), ([[row(2)]], []), ([[]], [])):
        judge.run.written = written  # type: ignore[misc, assignment]
        judge.judge.met = SimpleNamespace(extra=["of before"])  # type: ignore[misc, assignment]
        judge.in_form = lambda expected, emitted: (expected, [*map(list, emitted)])  # type: ignore[method-assign]
        judge.unsure_keys = set()
        judge.emitted(Expected("batches", expected))
        assert judge.judge.met.extra == extra


@pytest.mark.parametrize(
    ("written", "said"),
    [([], None), ([{"user": "a", "n": 1}], None), ([{"user": "a"}], "has the columns user, but not n, which the SQL")],
)
def test_an_output_without_rows_lacks_no_column(written: list[Row], said: str | None) -> None:
    judge, expected = judging("append", SqlOracle, False), Expected("end", [[{"user": "a", "n": 1}]])
    judge.options = SimpleNamespace(run=None)  # type: ignore[assignment]
    judge.judge.side_by_side = lambda expected, emitted, variation: (expected, emitted)  # type: ignore[method-assign, assignment]
    judge.judge.oracle = SimpleNamespace(name="the SQL statement")  # type: ignore[assignment]
    with pytest.raises(BadInput, match=said) if said else contextlib.nullcontext():
        assert judge.in_form(expected, [written]) == (expected, [written])
