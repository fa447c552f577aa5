"""How rows of a job are compared."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from streamproof import Input, drop_duplicates, static_join, windows
from streamproof.properties.generators.columns.model import Expected, Source
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.laws.expected.comparison import (
    Kinds,
    check_columns,
    check_kinds,
    difference,
    in_their_form,
    in_words,
    is_alike,
    note_kinds,
    table_of,
    unmatched,
    with_columns,
)
from streamproof.properties.laws.expected.judging import Judge
from streamproof.properties.outcomes.equality import EXACT, TWELVE_DIGITS, Equality
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.job.plan.grouping import Grouping
from streamproof.properties.witnesses.job.rows import flat, rows_of
from streamproof.reference.core.errors import BadInput

NOON = datetime(2024, 7, 15, 12, tzinfo=UTC)


def differ(expected: Any, emitted: Any) -> bool:
    rows = Expected("batches", [[{"user": "a", "value": expected}]])
    return difference(rows, [[{"value": emitted, "user": "a", "extra": 1}]], "append", ["user"]) is not None


def test_all_columns_of_a_grouping_tell_rows_apart() -> None:
    names = [f"c{number}" for number in range(6)]
    met = SimpleNamespace(columns=[*names, "start", "end"])
    declared = SimpleNamespace(grouping=Grouping(names, [*names, "window"]))
    judge = SimpleNamespace(unique=None, declared=declared, met=met)
    assert Judge.unique_columns.fget(judge) == [*names, "start", "end"]  # type: ignore[attr-defined]
    judge.unique = names[1:]
    assert Judge.unique_columns.fget(judge) == names[1:]  # type: ignore[attr-defined]


def test_the_comparison_is_named_with_how_exact_it_is() -> None:
    assert in_words("batches", TWELVE_DIGITS) == "the rows of each batch, as a bag; floating-point numbers to 12 digits"
    assert in_words("end", EXACT) == "the table at the end; numbers exactly"


def test_what_is_expected_is_projected_onto_the_columns_of_the_result() -> None:
    expected = [Expected("batches", [[], [{"user": "a", "at": NOON, "id": 1}]])]
    assert with_columns(expected, ["id", "user", "extra"]) == (
        [Expected("batches", [[], [{"user": "a", "id": 1}]])],
        ["at"],
    )
    # With none of them it would compare nothing: it is refused for what it lacks.
    assert with_columns(expected, ["name"]) == (expected, [])


def test_only_rules_that_emit_columns_of_their_inputs_are_projected() -> None:
    once = drop_duplicates(["user"])
    hours = windows("1 hour", delay="5 minutes")
    assert once.allows_fewer_columns
    assert static_join([{"user": "a"}], "user").allows_fewer_columns
    assert (hours.allows_fewer_columns, (once >> hours).allows_fewer_columns) == (False, False)


@pytest.mark.parametrize("value", [{"b": 1, "a": 2}, {}, None, {"a": None}])
def test_a_map_is_a_dict_wherever_it_stands(value: Any) -> None:
    kind = pa.map_(pa.string(), pa.int64())
    table = pa.table(
        {
            "plain": pa.array([value], kind),
            "nested": pa.array(
                [[{"of": value, "at": NOON}]], pa.list_(pa.struct({"of": kind, "at": pa.timestamp("us", "UTC")}))
            ),
        }
    )
    assert rows_of(table) == [{"plain": value, "nested": [{"of": value, "at": NOON}]}]
    assert not differ(value, rows_of(table)[0]["plain"])


WINDOW = {"start": NOON, "end": NOON + timedelta(hours=1)}
LATER = {name: time + timedelta(hours=1) for name, time in WINDOW.items()}


def compared(expected: Mapping[str, Any], emitted: Mapping[str, Any]) -> Difference | None:
    return difference(Expected("batches", [[expected]]), [[emitted]], "append", [])


@pytest.mark.parametrize("name", ["session", "window", "session_window", "of"])
def test_a_window_of_any_name_is_its_start_and_its_end(name: str) -> None:
    assert flat([{"user": "a", name: WINDOW, "n": 1}]) == [{"user": "a", **WINDOW, "n": 1}]
    assert flat([{"user": "a", name: None}, {"user": "b", name: WINDOW}])[0] == {
        "user": "a",
        "start": None,
        "end": None,
    }
    assert compared({"user": "a", **WINDOW}, {"user": "a", name: WINDOW}) is None
    assert compared({"user": "a", "w": WINDOW}, {"user": "a", name: WINDOW}) is None
    assert compared({"user": "a", **WINDOW}, {"user": "a", name: LATER}) is not None
    with pytest.raises(BadInput, match="as a column of any name or as its two fields"):
        check_columns([Expected("end", [[WINDOW]])], ["user"], "job")
    for columns, result in {"user start": '["user", "start"]', "user at": '{"user": "user", "at": "start"}'}.items():
        with pytest.raises(BadInput, match=re.escape(f"expect the job's columns: result={result} of the rule")):
            check_columns([Expected("end", [[{"user": "a", **WINDOW}]])], columns.split(), "job")
    assert check_columns([Expected("end", [[{name: WINDOW}]])], ["start", "end", "n"], "job") == ["n"]


def test_two_windows_stand_as_they_are_and_do_not_clash() -> None:
    both = {"clicked": WINDOW, "viewed": LATER}
    assert flat([both]) == [both]
    assert compared(both, both) is None
    assert compared({"viewed": LATER}, both) is None
    assert compared({"clicked": LATER, "viewed": WINDOW}, both) is not None
    # Of two it is Spark's own name that is the window.
    assert flat([{"visit": LATER, "window": WINDOW}]) == [{"visit": LATER, **WINDOW}]
    assert compared({"visit": LATER}, {"visit": LATER, "window": WINDOW}) is None
    assert compared({"visit": WINDOW}, {"visit": LATER, "window": WINDOW}) is not None


@pytest.mark.parametrize(
    "row",
    [
        {"range": {"start": 1, "end": 2}},
        {"range": {**WINDOW, "zone": "UTC"}},
        {"range": WINDOW, "start": NOON},
        {"range": {}},
        {"range": None},
    ],
)
def test_what_is_no_window_stays(row: Any) -> None:
    assert flat([row]) == [row]


@pytest.mark.parametrize(
    ("expected", "read", "refused"),
    [
        (NOON, "2024-07-15 12:00:00", True),
        (NOON.date(), "2024-07-15", True),
        (NOON, 1721044800, True),
        (True, 1, True),
        (1, "1", True),
        ("a", 1, False),
        (1.5, 1, False),
        (None, "a", False),
    ],
)
def test_what_a_store_has_no_type_for_is_refused_and_not_condemned(expected: Any, read: Any, refused: bool) -> None:
    wanted: Kinds = {}
    came: Kinds = {}
    note_kinds(wanted, [[{"value": expected, "user": "a"}, {"value": None, "user": "b"}]])
    note_kinds(came, [[{"value": read, "user": "a"}, {"value": None, "user": "b"}]])
    if refused:
        with pytest.raises(BadInput, match=r"the column 'value' the sink has .*: declare the type with schema=\"value"):
            check_kinds(wanted, came, "job")
    else:
        check_kinds(wanted, came, "job")


def test_text_among_other_values_is_a_difference_and_stays_it_in_smaller_histories() -> None:
    wanted: Kinds = {}
    came: Kinds = {}
    note_kinds(wanted, [[{"value": NOON}]])
    note_kinds(came, [[{"value": NOON}, {"value": "late"}]])
    note_kinds(came, [[{"value": "late"}]])
    check_kinds(wanted, came, "job")


def test_two_differences_may_have_one_reason_if_a_column_or_the_side_that_lacks_rows_is_the_same() -> None:
    total, other, which = ({"k": "a", "n": n, "w": w} for n, w in ((1, 1), (2, 1), (1, 2)))
    value, tie = Difference(0, [total], [which, other]), Difference(0, [total], [which])
    lost, more = Difference(1, [total], []), Difference(None, [], [total])
    for found, shrunk, alike in [
        (Difference(0, [total], [other]), tie, False),
        (value, tie, True),
        (value, lost, True),
        (lost, value, False),
        (lost, more, False),
        (lost, Difference(0, [other], []), True),
    ]:
        assert is_alike(found, shrunk) is alike


MANY = {f"column_{number}": number for number in range(8)}
"""A row of many columns: the last of them counts as the first does."""


@pytest.mark.parametrize("column", MANY)
def test_each_of_many_columns_is_compared_and_tells_rows_of_a_table_apart(column: str) -> None:
    other = {**MANY, column: 99}
    rows = Expected("batches", [[MANY]])
    assert difference(rows, [[other]], "append", None) == Difference(0, [MANY], [other])
    assert unmatched([MANY], [other], [], EXACT) == ([0], [0])
    assert [len(table) for table in table_of([[MANY], [other], [MANY]], "update", [*MANY])] == [1, 2, 2]
    assert Source("rows", pa.schema([]), "at", tuple(MANY)).key_of(other) == tuple(other.values())


def test_rows_are_compared_to_the_digits_that_are_asked_for() -> None:
    rows = Expected("batches", [[{"value": 1.0}]])
    for digits, equal in ((2, True), (6, False), (None, False)):
        assert (difference(rows, [[{"value": 1.001}]], "append", None, Equality(digits)) is None) == equal


ROWS = [[{"user": "a", "n": n}] for n in range(3)]


@pytest.mark.parametrize(
    ("expected", "emitted", "batch"),
    [
        (Expected("batches", ROWS), ROWS, "agree"),
        (Expected("batches", ROWS), [ROWS[0], [], ROWS[2]], 1),
        (Expected("batches", ROWS), [*ROWS[:2], []], 2),
        (Expected("cuts", ROWS), [ROWS[0], ROWS[1], ROWS[2]], "agree"),
        (Expected("cuts", ROWS), [ROWS[0], [], ROWS[2]], 1),
        (Expected("end", ROWS[2:]), ROWS, "agree"),
        (Expected("end", ROWS[2:]), [*ROWS[:2], []], None),
        (Expected("end", ROWS[2:]), ROWS[2:], "agree"),
        (Expected("cuts", ROWS), ROWS[2:], "agree"),  # of a sink only the end is known
        (Expected("cuts", ROWS), ROWS[:1], None),
        (Expected("cuts", ROWS[2:]), [[]], 0),
    ],
)
def test_a_difference_names_its_batch_and_at_the_end_none(expected: Expected, emitted: Any, batch: Any) -> None:
    found = difference(expected, emitted, "complete", None)
    assert (found is None) == (batch == "agree")
    assert found is None or found.when == batch


def test_the_columns_that_differ_are_those_of_the_most_similar_rows() -> None:
    def rows(*values: tuple[int, int]) -> list[Any]:
        return [{"n": n, "m": m} for n, m in values]

    found = Difference(0, rows((1, 1), (2, 2)), rows((9, 8), (2, 7)))  # the second rows differ in m alone
    assert is_alike(found, Difference(0, rows((5, 1)), rows((5, 2))))
    assert not is_alike(found, Difference(0, rows((5, 1)), rows((6, 1))))


def test_a_column_of_several_kinds_is_of_no_type() -> None:
    for wanted, came in (
        ({"n": {"number": 1, "truth": True}}, {"n": {"number": 1}}),
        ({"n": {"truth": True}}, {"n": {"number": 1, "str": "x"}}),
    ):
        check_kinds(wanted, came, "job")  # type: ignore[arg-type]
    with pytest.raises(BadInput, match="in the column 'n' the sink has 1, but the expected value true"):
        check_kinds({"n": {"truth": True}}, {"n": {"number": 1}}, "job")


NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MS = 1_767_268_800_000


def of_form(time_format: Any, name: str = "clicks", time: str = "at") -> Source:
    columns = f"user string, {time} bigint, n bigint" if time_format else f"user string, {time} timestamp, n bigint"
    return resolve(Input(columns, key="user", time=time, time_format=time_format, name=name)).source


@pytest.mark.parametrize(
    ("formats", "emitted", "shown"),
    [
        (["ms"], [{"at": MS, "n": 1}], {"at": MS, "n": 1}),
        (["ms"], [{"at": NOON, "n": 1}], {"at": NOON, "n": 1}),
        (["ms"], [{"at": None, "n": 1}], {"at": NOON, "n": 1}),
        (["ms"], [{"at": MS, "n": 1}, {"at": NOON, "n": 1}], {"at": NOON, "n": 1}),
        (["ms"], [{"end": MS}], {"end": MS, "n": 1}),
        (["ms", "s"], [{"end": MS}], {"end": NOON, "n": 1}),
        (["ms", "s"], [{"at": MS}], {"at": MS, "n": 1}),
        ([None], [{"at": MS}], {"at": NOON, "n": 1}),
    ],
)
def test_event_times_are_expected_in_the_form_that_the_job_emits(
    formats: list[Any], emitted: list[Any], shown: dict[str, Any]
) -> None:
    names = [("clicks", "at"), ("views", "seen")]
    sources = [of_form(one, *name) for one, name in zip(formats, names, strict=False)]
    expected = Expected("end", [[{name: NOON if name in ("at", "end") else 1 for name in shown}, {"at": None}]])
    (found,) = in_their_form([expected], [[emitted]], sources)
    assert found.rows == [[shown, {"at": None}]]
