from __future__ import annotations

from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.jobs.model import Arrival, JobHistory, Source, Way, from_microseconds
from streamproof.properties.jobs.rules import session_windows, windows
from streamproof.reference.core.errors import BadInput

SCHEMA = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("amount", pa.int64())])
CLICKS = Source("clicks", SCHEMA, "at", ("user",))
SECOND = 1_000_000
TOTAL = {"total": ("sum", "amount")}


def row(seconds: float, user: str | None = "a", amount: int | None = 1) -> dict[str, Any]:
    return {"user": user, "at": from_microseconds(int(seconds * SECOND)), "amount": amount}


def history(*batches: list[dict[str, Any]], clock: tuple[float, ...] = ()) -> JobHistory:
    arrivals = tuple(tuple(Arrival("clicks", one) for one in batch) for batch in batches)
    return JobHistory(arrivals, tuple(int(seconds * SECOND) for seconds in clock))


def expected(rule: Any, given: JobHistory, way: Way | None = None, sources: Any = (CLICKS,)) -> Any:
    (found,) = rule.expected([given], sources, Way() if way is None else way)
    return found


def test_a_session_is_emitted_in_the_batch_whose_clock_closes_it() -> None:
    rule = session_windows("30 seconds", "10 seconds", TOTAL)
    found = expected(rule, history([row(100)], [row(130)], [], clock=(100, 140, 170)))
    assert found.comparing == "batches"
    assert [len(rows) for rows in found.rows] == [0, 0, 1]
    assert found.rows[2] == [{"user": "a", "start": row(100)["at"], "end": row(160)["at"], "total": 2}]
    before = expected(rule, history([row(100)], [row(130)], [], clock=(100, 140, 169.999)))
    assert before.rows[2] == []


def test_without_a_clock_the_rows_of_a_history_move_the_watermark_themselves() -> None:
    rule = session_windows("30 seconds", "10 seconds", TOTAL)
    found = expected(rule, history([row(100)], [row(139.999)], [row(140)]))
    assert [[one["total"] for one in rows] for rows in found.rows] == [[], [], [1]]


def test_under_available_now_lateness_is_a_batch_behind() -> None:
    rule = session_windows("30 seconds", "10 seconds", TOTAL)
    late = history([], [row(100)], [], clock=(145, 146, 200))
    assert [len(rows) for rows in expected(rule, late).rows] == [0, 0, 0]
    assert [len(rows) for rows in expected(rule, late, Way("available_now")).rows] == [0, 1, 0]


def test_the_table_after_each_batch_is_expected_where_the_mode_is_complete() -> None:
    found = expected(windows("10 seconds", aggregates=TOTAL), history([row(1)], [row(2)], []), Way(mode="complete"))
    assert found.comparing == "cuts"
    assert [[one["total"] for one in rows] for rows in found.rows] == [[1], [2], [2]]


def test_times_come_back_as_times_and_counts_as_numbers() -> None:
    aggregates = {"n": ("count", "at"), "last": ("max", "at"), "all": ("collect_list", "at"), "rows": "count"}
    (found,) = expected(
        windows("10 seconds", aggregates=aggregates), history([row(1), row(2)]), Way(mode="update")
    ).rows
    times = [row(1)["at"], row(2)["at"]]
    assert found == [
        {"user": "a", "start": row(0)["at"], "end": row(10)["at"], "n": 2, "last": times[1], "all": times, "rows": 2}
    ]


def test_other_columns_can_be_the_key() -> None:
    rule = windows("10 seconds", keys=["amount"])
    (found,) = expected(rule, history([row(1, "a", 5), row(2, "b", 5)]), Way(mode="update")).rows
    assert [(one["amount"], one["count"]) for one in found] == [(5, 2)]


def test_the_durations_that_matter_are_given_in_microseconds() -> None:
    assert session_windows("30 seconds", timedelta(seconds=1)).distances_us == [SECOND, 30 * SECOND]
    assert windows("10 seconds", "5 seconds", "-1 second", "2 seconds").distances_us == [
        number * SECOND for number in (1, 2, 5, 10)
    ]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: session_windows("0 seconds", "1 second"), "gap is '0 seconds': give a duration above zero"),
        (lambda: session_windows("1 second", "-1 second"), "no watermark has a negative one"),
        (
            lambda: session_windows("soon", "1 second"),
            "session_windows: gap is 'soon', which is no duration: write it as",
        ),
        (lambda: session_windows("1 second", semantics="kip94"), "by `conforms`"),
        (lambda: windows("1 second", "2 seconds"), "longer than the size"),
        (lambda: windows("2 seconds", start="2 seconds"), "must be shorter than the slide"),
        (lambda: windows("1 second", aggregates={"total": ("median", "amount")}), "give a function of count, sum"),
        (lambda: windows("1 second", aggregates={"total": "sum"}), "with its column"),
        (lambda: windows("1 second", keys=[]), "keys is \\[\\]: give the names of columns"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_the_remedy(call: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        call()


@pytest.mark.parametrize(
    ("rule", "mode", "sources", "said"),
    [
        (windows("1 second"), "append", (CLICKS,), "only with a watermark: give it delay="),
        (session_windows("1 second", "1 second"), "update", (CLICKS,), "refuses session windows in update mode"),
        (windows("1 second", aggregates={"n": ("sum", "price")}), "update", (CLICKS,), "no column 'price': use one of"),
        (windows("1 second"), "update", (CLICKS, CLICKS), "takes one input"),
        (windows("1 second", input="orders"), "update", (CLICKS,), "no input 'orders': use one of clicks"),
    ],
)
def test_what_does_not_fit_the_inputs_is_refused(rule: Any, mode: Any, sources: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        expected(rule, history([]), Way(mode=mode), sources)
