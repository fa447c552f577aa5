from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.checking.jobs.arguments import oracle_of
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Source
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.generators.columns.wire import Encoder
from streamproof.properties.laws.expected.oracles import clock_of
from streamproof.properties.laws.expected.rules import (
    drop_duplicates,
    session_windows,
    static_join,
    stream_join,
    union,
    windows,
)
from streamproof.properties.witnesses.run_options import RunOptions
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


def expected(rule: Any, given: JobHistory, way: RunOptions | None = None, sources: Any = (CLICKS,)) -> Any:
    (found,) = rule.expected([given], sources, RunOptions() if way is None else way)
    return found


def test_a_session_is_emitted_in_the_batch_whose_clock_closes_it() -> None:
    rule = session_windows("30 seconds", "10 seconds", TOTAL)
    found = expected(rule, history([row(100)], [row(130)], [], clock=(100, 140, 170)))
    assert found.comparing == "batches"
    assert [len(rows) for rows in found.rows] == [0, 0, 1]
    assert found.rows[2] == [{"user": "a", "start": row(100)["at"], "end": row(160)["at"], "total": 2}]
    before = expected(rule, history([row(100)], [row(130)], [], clock=(100, 140, 169.999)))
    assert before.rows[2] == []


def test_under_available_now_lateness_is_a_batch_behind() -> None:
    rule = session_windows("30 seconds", "10 seconds", TOTAL)
    late = history([], [row(100)], [], clock=(145, 146, 200))
    assert [len(rows) for rows in expected(rule, late).rows] == [0, 0, 0]
    assert [len(rows) for rows in expected(rule, late, RunOptions(trigger="available_now")).rows] == [0, 1, 0]


def test_the_table_after_each_batch_is_expected_where_the_mode_is_complete() -> None:
    found = expected(
        windows("10 seconds", aggregates=TOTAL), history([row(1)], [row(2)], []), RunOptions(mode="complete")
    )
    assert found.comparing == "cuts"
    assert [[one["total"] for one in rows] for rows in found.rows] == [[1], [2], [2]]


def test_times_come_back_as_times_and_counts_as_numbers() -> None:
    aggregates = {"n": ("count", "at"), "last": ("max", "at"), "all": ("collect_list", "at"), "rows": "count"}
    (found,) = expected(
        windows("10 seconds", aggregates=aggregates), history([row(1), row(2)]), RunOptions(mode="update")
    ).rows
    times = [row(1)["at"], row(2)["at"]]
    assert found == [
        {"user": "a", "start": row(0)["at"], "end": row(10)["at"], "n": 2, "last": times[1], "all": times, "rows": 2}
    ]


def test_the_durations_that_matter_are_given_in_microseconds() -> None:
    assert session_windows("30 seconds", timedelta(seconds=1)).distances_us == [SECOND, 30 * SECOND]
    assert windows("10 seconds", "5 seconds", "-1 second", "2 seconds").distances_us == [
        number * SECOND for number in (1, 2, 5, 10)
    ]


PRICES = Source("prices", SCHEMA.set(2, pa.field("amount", pa.decimal128(9, 2))), "at", ("user",))
VIEWS = Source("views", pa.schema([("id", pa.string()), ("seen", pa.timestamp("us", tz="UTC"))]), "seen", ("id",))
BOTH = ["user"], ["id"]


def seen(seconds: float, name: str = "a") -> dict[str, Any]:
    return {"id": name, "seen": from_microseconds(int(seconds * SECOND))}


def joined(clicks: list[dict[str, Any]], views: list[dict[str, Any]], *clock: float) -> JobHistory:
    arrivals = [*(Arrival("clicks", one) for one in clicks), *(Arrival("views", one) for one in views)]
    batches = (tuple(arrivals), *(() for _ in clock[1:]))
    return JobHistory(batches, tuple(int(seconds * SECOND) for seconds in clock))


def test_a_join_names_its_columns_by_input_and_takes_the_first_that_is_not_null() -> None:
    rule = stream_join(
        "full",
        BOTH,
        "0 seconds",
        "5 seconds",
        "1 second",
        columns={"user": ["clicks.user", "views.id"], "clicked": "clicks.at", "seen": "views.seen"},
    )
    given = joined([row(10), row(20)], [seen(15), seen(30, "b")], 30, 100)
    first, then = expected(rule, given, None, (CLICKS, VIEWS)).rows
    assert first == [
        {"user": "a", "clicked": row(10)["at"], "seen": row(15)["at"]},
        {"user": "a", "clicked": row(20)["at"], "seen": None},  # emitted by the batch without data
    ]
    assert then == [{"user": "b", "clicked": None, "seen": row(30)["at"]}]


def test_a_join_has_all_columns_of_both_inputs_by_default_and_a_semi_join_those_of_the_left() -> None:
    given = joined([row(10)], [seen(10)], 10)
    rule, semi = stream_join("inner", BOTH), stream_join("left_semi", BOTH)
    assert expected(rule, given, None, (CLICKS, VIEWS)).rows == [[{**row(10), **seen(10)}]]
    assert expected(semi, given, None, (CLICKS, VIEWS)).rows == [[row(10)]]
    swapped = stream_join("left_semi", (["id"], ["user"]), left="views", right="clicks")
    assert expected(swapped, given, None, (CLICKS, VIEWS)).rows == [[seen(10)]]


def test_each_input_of_a_join_can_have_a_delay_of_its_own_or_none() -> None:
    given = joined([row(10)], [seen(10)], 10, 20, 30)
    late = JobHistory(((), (), given.batches[0]), given.clock)
    for delay, count in (({"clicks": "0 seconds"}, 0), ({"views": "0 seconds"}, 0), (None, 1)):
        rule = stream_join("inner", BOTH, "0 seconds", "0 seconds", delay)
        found = expected(rule, late, None, (CLICKS, VIEWS)).rows
        assert sum(map(len, found)) == count


def test_a_deduplication_keeps_rows_as_they_are() -> None:
    found = expected(drop_duplicates("user"), history([row(1), row(2)], [row(3), row(4, "b")])).rows
    assert found == [[row(1)], [row(4, "b")]]
    within = drop_duplicates("user", "1 second", within_watermark=True)
    assert expected(within, history([row(1)], [row(9)], [row(10)], [row(11)])).rows == [[row(1)], [], [row(10)], []]


def test_a_table_adds_its_columns_and_may_come_from_arrow() -> None:
    table = [{"user": "a", "city": "Rome"}]
    for given in (table, pa.Table.from_pylist(table)):
        found = expected(static_join(given, "user", "left"), history([row(1), row(2, "b")])).rows
        assert found == [[{**row(1), "city": "Rome"}, {**row(2, "b"), "city": None}]]
    assert expected(static_join([], "user", "left"), history([row(1)])).rows == [[row(1)]]


def test_rules_follow_one_another_under_one_watermark() -> None:
    table = [{"user": "a", "city": "Rome"}, {"user": "b", "city": "Rome"}]
    distinct = drop_duplicates(["user", "at"], "1 second")
    rule = distinct >> static_join(table, "user") >> windows("10 seconds", keys=["city"])
    found = expected(rule, history([row(1), row(1), row(2, "b")], [row(11)], [])).rows
    assert [[(one["city"], one["count"]) for one in rows] for rows in found] == [[], [("Rome", 2)], []]
    assert rule.name.startswith(
        "drop_duplicates(columns=user+at, delay=1 second) >> static_join(on=user, join=inner) >> "
    )
    assert rule.distances_us == [SECOND, 10 * SECOND]


def test_windows_may_be_aggregated_again_by_their_own_time() -> None:
    rule = windows("10 seconds", delay="0 seconds") >> windows("20 seconds", aggregates={"total": ("sum", "count")})
    found = expected(rule, history([row(1), row(2), row(11)], [row(20)], [], clock=(11, 20, 40))).rows
    # The window from 10 s to 20 s is closed at 20 s, and counts for the one that ends then; that is closed as it comes.
    assert found == [
        [],
        [{"user": "a", "start": row(0)["at"], "end": row(20)["at"], "total": 3}],
        [{"user": "a", "start": row(20)["at"], "end": row(40)["at"], "total": 1}],
    ]


def test_a_join_may_be_followed_by_windows_of_the_event_time_that_it_keeps() -> None:
    columns = {"who": "clicks.user", "seen": "views.seen"}
    join = stream_join("inner", BOTH, "5 seconds", "5 seconds", "0 seconds", columns=columns)
    given = joined([row(8), row(12)], [seen(9), seen(11)], 12, 30, 40)
    found = expected(join >> windows("10 seconds"), given, None, (CLICKS, VIEWS)).rows
    # The views at 9 s and at 11 s have two clicks each; a window waits for rows that the join may still emit.
    assert [[(one["who"], one["start"], one["count"]) for one in rows] for rows in found] == [
        [],
        [("a", row(0)["at"], 2), ("a", row(10)["at"], 2)],
        [],
    ]


def test_a_join_may_follow_windows_and_reads_an_input_that_they_do_not() -> None:
    columns = {"user": "clicks.user", "count": "clicks.count", "seen": "views.seen"}
    join = stream_join("inner", BOTH, "0 seconds", "5 seconds", columns=columns)
    rule = windows("10 seconds", delay="0 seconds", input="clicks") >> join >> drop_duplicates("user")
    given = joined([row(1), row(2)], [seen(9), seen(10), seen(14)], 14, 30)
    found = expected(replace(rule, result={"user": "user", "n": "count"}), given, None, (CLICKS, VIEWS))
    assert found.rows == [[{"user": "a", "n": 2}], []]


def test_a_column_named_like_the_bound_of_a_window_keeps_no_event_time() -> None:
    starts = Source("clicks", SCHEMA.append(pa.field("start", pa.string())), "at", ("user",))
    columns = {"user": "clicks.user", "begin": "clicks.start", "id": "views.id"}
    join = stream_join("inner", BOTH, columns=columns)
    with pytest.raises(BadInput, match="event time"):
        expected(join >> windows("20 seconds"), joined([row(1)], [seen(9)], 10), None, (starts, VIEWS))


@pytest.mark.parametrize("bound", ["start", "end"])
def test_a_window_goes_through_a_join_with_its_start_or_its_end(bound: str) -> None:
    columns = {"user": "clicks.user", "bound": f"clicks.{bound}", "id": "views.id"}
    join = stream_join("inner", BOTH, columns=columns)
    rule = windows("10 seconds", delay="0 seconds", input="clicks") >> join >> windows("20 seconds")
    given = joined([row(1)], [seen(9)], 10, 20, 30)
    found = expected(rule, given, None, (CLICKS, VIEWS)).rows
    assert found == [[], [{"user": "a", "start": row(0)["at"], "end": row(20)["at"], "count": 1}], []]


def test_a_union_has_the_rows_of_its_inputs_and_may_be_followed_by_any_rule() -> None:
    clicks = (CLICKS, replace(CLICKS, name="more"))
    given = JobHistory(((Arrival("clicks", row(1)), Arrival("more", row(2))), (Arrival("more", row(1)),)))
    assert expected(union(), given, None, clicks).rows == [[row(1), row(2)], [row(1)]]
    assert expected(union(result="user"), given, None, clicks).rows[1] == [{"user": "a"}]
    distinct = union(["more", "clicks"], delay={"more": "0 seconds", "clicks": "1 second"}) >> drop_duplicates("user")
    assert expected(distinct, given, None, clicks).rows == [[row(2)], []]
    assert distinct.name == (
        "union(inputs=more+clicks, delay=more 0 seconds+clicks 1 second) >> drop_duplicates(columns=user)"
    )


def test_a_union_has_a_watermark_of_its_own_if_a_later_rule_has_the_delay_and_a_quiet_input_holds_none_back() -> None:
    clicks = (CLICKS, replace(CLICKS, name="more"))
    quiet = JobHistory(((Arrival("clicks", row(1)),), (Arrival("clicks", row(20)),)))
    for rule, count in (
        (union() >> windows("10 seconds", delay="0 seconds"), 1),
        (union(delay="0 seconds") >> windows("10 seconds"), 0),
        (windows("10 seconds", delay="0 seconds", input="clicks"), 1),  # nothing reads the other input
    ):
        found = expected(rule, quiet, RunOptions(empty_batches=True), clicks).rows
        assert sum(map(len, found)) == count


def test_an_operator_without_state_may_follow_windows_in_every_mode() -> None:
    rule = windows("10 seconds") >> static_join([{"user": "a", "city": "Rome"}], "user")
    for mode, cities in (("update", [1, 1]), ("complete", [1, 2])):
        found = expected(rule, history([row(1), row(1, "b")], [row(11)]), RunOptions(mode=mode)).rows  # type: ignore[arg-type]
        assert [len(rows) for rows in found] == cities
        assert found[1][-1] == {"user": "a", "start": row(10)["at"], "end": row(20)["at"], "count": 1, "city": "Rome"}


def test_a_batch_without_data_leaves_one_table_where_the_mode_is_complete() -> None:
    rule = drop_duplicates(["user"], "0 seconds") >> windows("10 seconds")
    found = expected(rule, history([row(1)], [row(2), row(3, "b")]), RunOptions(mode="complete")).rows
    assert [len(rows) for rows in found] == [1, 2]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: session_windows("0 seconds", "1 second"), "gap is '0 seconds': give a duration above zero"),
        (lambda: session_windows("1 second", "-1 second"), "but the delay of a watermark can't be negative"),
        (
            lambda: session_windows("soon", "1 second"),
            "session_windows: gap is 'soon', which isn't a duration: write it as",
        ),
        (lambda: session_windows("1 second", semantics="kip94"), r"reference_of\(…\) expects the output"),
        (lambda: windows("1 second", "2 seconds"), "longer than the size"),
        (lambda: windows("2 seconds", start="2 seconds"), "must be shorter than the slide"),
        (lambda: windows("1 second", aggregates={"total": ("median", "amount")}), "give a function of count, sum"),
        (lambda: windows("1 second", aggregates={"total": "sum"}), "with its column"),
        (lambda: drop_duplicates("user", within_watermark=True), 'give delay="10 minutes"'),
        (lambda: static_join([{"id": 1}], "user"), "the table has no column 'user': use some of id"),
        (lambda: static_join([{"user": 1}], "user", "full"), "join is 'full': give one of inner, left"),  # type: ignore[arg-type]
        (lambda: stream_join("inner", (["a", "b"], ["c"])), "equally many names for each side"),
        (
            lambda: windows("1 second", delay="1 second") >> windows("1 second", delay="2 seconds"),
            "watermarks on one input: leave out",
        ),
        (lambda: windows("1 second", keys=[]), "keys is \\[\\]: give the names of columns"),
    ],
)
def test_what_cannot_be_declared_is_refused_with_the_remedy(call: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        call()


TWO, UPDATE = {"sources": (CLICKS, VIEWS)}, {"mode": "update"}
NAMES = {"user": "clicks.user", "id": "views.id"}


@pytest.mark.parametrize(
    ("rule", "more", "said"),
    [
        (windows("1 second"), {}, "only with a watermark: give it delay="),
        (session_windows("1 second"), {}, "only with a watermark: give it delay="),
        (session_windows("1 second", "1 second"), UPDATE, "refuses session windows in update mode"),
        (windows("1 second", aggregates={"n": ("sum", "price")}), UPDATE, "no column 'price': use one of"),
        (stream_join("left", BOTH, "1 second"), TWO, 'add after="1 hour"'),
        (stream_join("right", BOTH, None, "1 second", "1 second"), TWO, 'add before="1 hour"'),
        (stream_join("inner", "user"), TWO, "the input views has no column 'user'"),
        (stream_join("inner", "user"), {}, "joins two inputs, and the job has 1"),
        (
            stream_join("inner", "user"),
            {"sources": (CLICKS, replace(CLICKS, name="b"))},
            'add columns={"user": "clicks.user", .*, because both inputs have the columns user, at, amount',
        ),
        (stream_join("inner", BOTH), {**UPDATE, **TWO}, "only in append mode"),
        (stream_join("inner", BOTH, delay={"b": "1 second"}), TWO, "a delay for 'b', which isn't an input"),
        (stream_join("inner", BOTH, columns={"x": "views.x"}), TWO, "which doesn't exist: use some of clicks.user"),
        (static_join([{"user": "a", "amount": 1}], "user"), {}, "a column 'amount': rename the table's"),
        (drop_duplicates("id"), {}, "no column 'id'"),
        (drop_duplicates("user"), {"mode": "complete"}, 'only for aggregations: use "append"'),
        (
            windows("1 second", aggregates={"mean": ("avg", "amount")}),
            {**UPDATE, "sources": (PRICES,)},
            "expect the sum and the count",
        ),
        (windows("1 second") >> windows("1 second"), UPDATE, "after an aggregation only in append mode"),
        (windows("1 second", keys=["at"]) >> windows("1 second", keys=["user"]), UPDATE, "the rule before it has no"),
        (
            stream_join("inner", BOTH, delay="1 second", columns=NAMES) >> windows("1 second"),
            TWO,
            "keeps no event time",
        ),
        (
            stream_join("inner", BOTH, columns=NAMES) >> drop_duplicates("user", "1 second", within_watermark=True),
            TWO,
            "doesn't keep the event time: name the event time in columns=",
        ),
        (
            windows("1 second", delay="1 second", input="clicks")
            >> stream_join("inner", BOTH, columns=NAMES)
            >> stream_join("inner", BOTH, "1 second"),
            {"sources": (CLICKS, VIEWS, replace(VIEWS, name="more"))},
            "keeps no event time: name an event time in columns=",
        ),
        (
            stream_join("inner", BOTH, delay="1 second") >> drop_duplicates("user"),
            TWO,
            "several event times, at and seen",
        ),
        (
            stream_join("inner", BOTH, delay="1 second") >> stream_join("inner", "user", columns=NAMES),
            {"sources": (CLICKS, VIEWS, replace(CLICKS, name="more"))},
            "several event times, at and seen",
        ),
        (union(result="price"), {"sources": (CLICKS, replace(CLICKS, name="more"))}, "result= names 'price'"),
        (union(), {}, "needs two inputs or more, but has only clicks"),
        (union(["clicks"]), TWO, "needs two inputs or more"),
        (
            union(),
            TWO,
            "views has the columns id, seen and the event time seen, but clicks has user, at, amount and at",
        ),
        (windows("1 second"), {**UPDATE, "sources": (CLICKS, CLICKS)}, "reads one input"),
        (windows("1 second", input="orders"), UPDATE, "no input 'orders': use one of clicks"),
    ],
)
def test_what_does_not_fit_the_inputs_is_refused(rule: Any, more: dict[str, Any], said: str) -> None:
    with pytest.raises(BadInput, match=said):
        expected(rule, history([]), RunOptions(mode=more.get("mode", "append")), more.get("sources", (CLICKS,)))


@pytest.mark.parametrize(("policy", "unmatched"), [("min", 0), ("max", 1), ("MAX", 1)])
def test_the_watermark_of_two_inputs_follows_the_policy_of_the_settings(policy: str, unmatched: int) -> None:
    delays, of_clicks = {"clicks": "1 second", "views": "1 hour"}, {"user": "clicks.user", "at": "clicks.at"}
    rule = stream_join("left", "user", "1 second", "1 second", delays, columns=of_clicks)
    views = Source("views", SCHEMA, "at", ("user",))
    given = JobHistory(((Arrival("clicks", row(1000)),), ()), (1000 * SECOND, 1010 * SECOND))
    settings = {"spark.sql.streaming.multipleWatermarkPolicy": policy}
    (found,) = rule.expected([given], (CLICKS, views), RunOptions(empty_batches=True, settings=settings))
    assert sum(map(len, found.rows)) == unmatched


def test_a_version_that_is_not_known_is_named_with_those_that_are() -> None:
    with pytest.raises(BadInput, match=r"spark is '3\.4': give a version, 3\.5, 4\.0, 4\.1, 4\.2 and 4\.3"):
        stream_join("inner", "user", "1 second", "1 second", "1 second", spark="3.4")


def test_one_message_names_all_that_a_join_lacks() -> None:
    orders = replace(CLICKS, name="orders")
    with pytest.raises(BadInput) as raised:
        expected(stream_join("left"), history([]), RunOptions(), (CLICKS, orders))
    assert raised.value.message == (
        'stream_join(join=left): add on=["user"], the columns that are equal; and after="1 hour" and '
        'delay="10 minutes", because Spark allows an outer join only if both sides have a watermark and time is '
        "bounded; "
        'and columns={"user": "clicks.user", "clicks_at": "clicks.at", "clicks_amount": "clicks.amount", '
        '"orders_at": "orders.at", "orders_amount": "orders.amount"}, with the job\'s names, because both inputs have '
        "the columns user, at, amount"
    )
    with pytest.raises(BadInput, match=r'on=\(\["user"\], \["id"\]\), the columns that are equal$'):
        expected(stream_join("inner"), history([]), RunOptions(), (CLICKS, VIEWS))


def test_what_is_suggested_for_a_join_is_taken() -> None:
    orders = replace(CLICKS, name="orders")
    with pytest.raises(BadInput) as raised:
        expected(
            stream_join("full", "user", after="1 hour", delay="1 second"), history([]), RunOptions(), (CLICKS, orders)
        )
    columns = json.loads(raised.value.message.partition("columns=")[2].partition("}")[0] + "}")
    assert columns["user"] == ["clicks.user", "orders.user"]
    rule = stream_join("full", "user", after="1 hour", delay="1 second", columns=columns)
    assert expected(rule, history([row(1)]), RunOptions(), (CLICKS, orders)).rows == [[]]


@pytest.mark.parametrize("rule", [drop_duplicates, static_join])
def test_a_result_must_have_the_columns_that_are_named_and_no_others_are_compared(rule: Any) -> None:
    given = [["user"]] if rule is drop_duplicates else [[{"user": "a", "region": "north"}], "user"]
    wanted = ["amount", "user"] if rule is drop_duplicates else ["region", "user"]
    free, strict = rule(*given), rule(*given, result=wanted)
    assert (free.allows_fewer_columns, strict.allows_fewer_columns) == (True, False)
    (first,) = expected(strict, history([row(1)])).rows[0]
    assert first == {name: expected(free, history([row(1)])).rows[0][0][name] for name in wanted}
    renamed = rule(*given, result={f"the {name}": name for name in wanted})
    assert [*expected(renamed, history([row(1)])).rows[0][0].values()] == [*first.values()]
    with pytest.raises(BadInput, match=r"names 'price', which isn't a column of the rule \(user, at, amount"):
        expected(rule(*given, result=["user", "price"]), history([row(1)]))
    with pytest.raises(BadInput, match=r"result is \[\]: give the names of columns"):
        rule(*given, result=[])


@pytest.mark.parametrize(("rule", "last"), [(windows, 10), (session_windows, 12)])
def test_the_rows_of_windows_have_the_columns_of_the_result_under_its_names(rule: Any, last: int) -> None:
    rows, mode = history([row(1, amount=2), row(2, amount=3)]), RunOptions(mode="complete")
    start = row(0 if rule is windows else 1)["at"]
    for result, wanted in [
        ({"of": "user", "at": "start", "sum": "total"}, {"of": "a", "at": start, "sum": 5}),
        (["end", "total"], {"end": row(last)["at"], "total": 5}),
        ("total", {"total": 5}),
    ]:
        assert expected(rule("10 seconds", aggregates=TOTAL, result=result), rows, mode).rows == [[wanted]]
    with pytest.raises(BadInput, match=r"names 'amount', which isn't a column of the rule \(user, start, end, total\)"):
        expected(rule("10 seconds", aggregates=TOTAL, result={"total": "amount"}), rows, mode)


def test_the_last_rule_of_a_chain_says_which_columns_the_result_has() -> None:
    chain = static_join([{"user": "a", "region": "north"}], "user") >> drop_duplicates("user", result="region")
    assert expected(chain, history([row(1), row(2)])).rows[0] == [{"region": "north"}]
    free = drop_duplicates("user", result="user") >> static_join([{"user": "a"}], "user")
    assert (free.allows_fewer_columns, free.result) == (True, {})


@pytest.mark.parametrize(("version", "emitted"), [("3.5", 1), ("4.1", 1), ("4.1.4", 1), ("4.2", 0), ("4.3", 0)])
def test_the_rules_are_those_of_the_named_version(version: str, emitted: int) -> None:
    rule = stream_join("left_semi", "user", "1 second", "1 second", "1 second", spark=version)
    arrivals = [("clicks", 1000)], [("clicks", 990), ("views", 990)]
    both = tuple(tuple(Arrival(name, row(seconds)) for name, seconds in batch) for batch in arrivals)
    given = JobHistory(both, (1000 * SECOND, 1000 * SECOND))
    available_now = RunOptions(trigger="available_now")
    found = expected(rule, given, available_now, (CLICKS, replace(CLICKS, name="views")))
    assert len(found.rows[1]) == emitted


def test_nans_are_one_value_as_in_spark() -> None:
    nan = float("nan")
    given = history(*([row(at, amount=one) for one in batch] for at, batch in enumerate([[nan], [nan, 0.0], [-0.0]])))
    for rule, counts in (
        (drop_duplicates("amount"), [1, 1, 0]),
        (windows("10 seconds", keys=["amount"]), [1, 2, 1]),
        (static_join([{"amount": nan}], "amount"), [1, 1, 0]),
    ):
        assert [len(rows) for rows in expected(rule, given, RunOptions(mode="update")).rows] == counts
    given = JobHistory(tuple((Arrival(name, row(1, amount=float("nan"))),) for name in ("clicks", "prices")))
    rule = stream_join("inner", "amount", columns={"amount": "prices.amount"})
    assert [len(rows) for rows in expected(rule, given, None, (CLICKS, PRICES)).rows] == [0, 1]


def test_a_row_without_any_value_moves_the_clock_as_others_do() -> None:
    window, bare = row(1), row(100, user=None, amount=None)
    given, clocks = history([window], [bare], []), []

    class Closing:
        def arrive(self, row: Any) -> None: ...

        def advance(self, clock: Any) -> None:
            clocks.append(clock)

    expected(oracle_of(Closing), given)
    assert clocks == [window["at"], bare["at"], bare["at"]]
    assert clock_of(given, 1, [CLICKS]) == bare["at"]
    assert given.times_ms([CLICKS]) == [1_000, 100_000, 100_000]
    assert CLICKS.latest_us(given.batches[1]) == 100 * SECOND
    found = expected(windows("10 seconds", delay="0 seconds", aggregates=TOTAL), given).rows
    assert [[one["total"] for one in rows] for rows in found] == [[], [1], []]
    encoded = resolve(Input("user string, at timestamp", key="user", format="kafka")).source
    kafka = Encoder(encoded)
    kafka.table([{"user": None, "at": bare["at"]}])
    assert kafka.reached_us == 100 * SECOND


@pytest.mark.parametrize(
    "declared",
    [
        lambda **more: session_windows("1 second", **more),
        lambda **more: windows("1 second", **more),
        lambda **more: drop_duplicates("user", **more),
        lambda **more: union(["a", "b"], **more),
        lambda **more: static_join([{"user": "a"}], "user", **more),
        lambda **more: stream_join("inner", "user", **more),
    ],
    ids=["session_windows", "windows", "drop_duplicates", "union", "static_join", "stream_join"],
)
def test_every_rule_is_spark_s_and_refuses_another_system_s(declared: Any) -> None:
    declared(semantics="spark")
    with pytest.raises(BadInput, match="semantics is 'flink', but a job is checked by Spark's own rules"):
        declared(semantics="flink")


def test_a_table_without_rows_adds_its_columns_all_the_same() -> None:
    empty = pa.table({"user": pa.array([], pa.string()), "name": pa.array([], pa.string())})
    (found,) = expected(static_join(empty, "user", "left"), history([row(1)])).rows
    assert found == [{**row(1), "name": None}]


@pytest.mark.parametrize(
    ("declared", "said"),
    [
        (lambda: drop_duplicates("user", "soon"), "drop_duplicates: delay is 'soon'"),
        (lambda: windows("1 second", delay="soon"), "windows: delay is 'soon'"),
        (lambda: windows("soon"), "windows: size is 'soon'"),
        (lambda: windows("1 minute", "soon"), "windows: slide is 'soon'"),
        (lambda: session_windows("1 second", "soon"), "session_windows: delay is 'soon'"),
        (lambda: stream_join("inner", "user", "soon"), "stream_join: before is 'soon'"),
        (lambda: stream_join("inner", "user", None, "soon"), "stream_join: after is 'soon'"),
        (lambda: union(["a", "b"], "soon"), "union: delay is 'soon'"),
    ],
)
def test_a_duration_that_is_none_is_named_with_its_rule(declared: Any, said: str) -> None:
    with pytest.raises(BadInput, match=said):
        declared()


def test_the_shortest_duration_is_a_microsecond() -> None:
    assert windows("1 microsecond").name == "windows(size=1 microsecond)"
    with pytest.raises(BadInput, match="give a duration above zero"):
        windows("0 microseconds")


@pytest.mark.parametrize("first", [stream_join("inner", "user", columns={"user": "clicks.user"}), union()])
def test_an_input_that_a_rule_has_read_is_not_there_for_the_next(first: Any) -> None:
    given, sources = JobHistory(((),)), (CLICKS, replace(CLICKS, name="views"))
    with pytest.raises(BadInput, match=r"there is no input 'views': use one of clicks$"):
        expected(first >> drop_duplicates("user", input="views"), given, None, sources)
    assert expected(first >> drop_duplicates("user"), given, None, sources).rows == [[]]


def test_a_column_called_start_keeps_no_event_time_unless_it_is_of_a_window() -> None:
    schema = pa.schema([*SCHEMA, ("start", pa.int64())])
    sources = (Source("clicks", schema, "at", ("user",)), replace(CLICKS, name="views"))
    join = stream_join("inner", "user", columns={"user": "clicks.user", "start": "clicks.start"})
    with pytest.raises(BadInput, match="the rule before it keeps no event time"):
        expected(join >> windows("10 seconds"), JobHistory(((),)), None, sources)


def test_a_rule_is_followed_by_a_rule_alone() -> None:
    other: Any = 5
    with pytest.raises(TypeError, match="unsupported operand"):
        windows("10 seconds") >> other
