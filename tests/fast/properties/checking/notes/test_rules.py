"""The notes on plans of the reference: each right one and each wrong one, with the smallest history that shows it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.notes.rules import Note, _Linter, notes_of
from streamproof.properties.generators.plans.drawing import draw_query
from streamproof.properties.witnesses.job.plan.skeletons import Filtered, Skeleton, TableLookup
from streamproof.reference.core.durations import UNITS_US
from streamproof.reference.spark.aggregates import AggregateFunction
from streamproof.reference.spark.expressions import column
from streamproof.reference.spark.groups import Groups
from streamproof.reference.spark.plans import (
    Aggregation,
    Deduplication,
    Join,
    Node,
    Processing,
    Project,
    Scan,
    Union,
    WithWatermark,
)
from streamproof.reference.spark.processor import Processor
from streamproof.reference.spark.session_windows import SessionAggregation
from streamproof.reference.spark.stream_join import StreamJoin
from streamproof.reference.spark.windows import Windows

MINUTE, HOUR = UNITS_US["minute"], UNITS_US["hour"]
TYPES = {"user#1": "string", "at#2": "timestamp", "who#3": "string", "paid#4": "timestamp"}
VIEWS, PAYMENTS = Scan("0", ("user#1", "at#2")), Scan("1", ("who#3", "paid#4"))
TIMED = WithWatermark((VIEWS,), "at#2", 10 * MINUTE)
PAID = WithWatermark((PAYMENTS,), "paid#4", 20 * MINUTE)
COUNT = {"n#9": AggregateFunction("count", None)}
NAMES = {"0": "views", "1": "payments"}


def joined(kind: Any, before_us: int | None = 0, after_us: int | None = 2 * HOUR, *inputs: Node) -> Join:
    by = StreamJoin(kind, (("user#1",), ("who#3",)), ("at#2", "paid#4"), before_us, after_us)
    return Join(inputs or (TIMED, PAID), by)


def windowed(below: Node, mode: Any = "append") -> Aggregation:
    return Aggregation((below,), Windows("at#2", ("user#1",), HOUR, HOUR, 0, COUNT, mode), "at#2")


def notes(*parts: Node, **more: Any) -> list[Note]:
    return notes_of(Skeleton(parts, TYPES, **more), NAMES)


def named(plan: Node, **more: Any) -> dict[str, Note]:
    return {note.name: note for note in notes(plan, **more)}


NEVER = {
    "a join without bounds": joined("inner", None, None),
    "a join with a bound on one side": joined("inner", 0, None),
    "a join with one watermark": joined("inner", 0, HOUR, TIMED, PAYMENTS),
    "a join without watermarks": joined("inner", 0, HOUR, VIEWS, PAYMENTS),
    "a deduplication without watermark": Deduplication((VIEWS,), ("user#1",)),
    "a deduplication without the event time": Deduplication((TIMED,), ("user#1",)),
    "groups without the event time": Aggregation((TIMED,), Groups(("user#1",), None, COUNT, "update")),
    "windows without watermark": windowed(VIEWS, "update"),
    "windows in complete mode": windowed(TIMED, "complete"),
}
FORGETS = {
    "a join with bounds": joined("inner"),
    "an outer join with bounds": joined("left"),
    "a semi join with bounds": joined("left_semi"),
    "a deduplication with the event time": Deduplication((TIMED,), ("user#1", "at#2")),
    "a deduplication within the watermark": Deduplication((TIMED,), ("user#1",), within_watermark=True),
    "windows": windowed(TIMED),
    "windows in update mode": windowed(TIMED, "update"),
    "sessions": Aggregation((TIMED,), SessionAggregation("at#2", ("user#1",), HOUR, COUNT), "at#2"),
    "groups with the event time": Aggregation((TIMED,), Groups(("user#1", "at#2"), "at#2", COUNT)),
    "one group of all rows": Aggregation((VIEWS,), Groups((), None, COUNT, "update")),
    "a function with state": Processing((TIMED,), Processor(("user#1",), None, "n#9", 366 * 86_400_000)),
    "an input as it is": VIEWS,
    "an operator without a model": Deduplication((Scan("?1", ("user#1",)),), ("user#1",)),
}


@pytest.mark.parametrize("plan", NEVER.values(), ids=NEVER)
def test_state_that_is_kept_for_ever_is_noted_with_a_history(plan: Node) -> None:
    note = named(plan)["never forgets"]
    assert "forever" in note.says
    assert 2 <= len(note.history) <= 3
    assert note.history[0].startswith("batch 1: ")


@pytest.mark.parametrize("plan", FORGETS.values(), ids=FORGETS)
def test_state_that_is_forgotten_is_not_noted(plan: Node) -> None:
    assert "never forgets" not in named(plan)


def test_the_history_of_a_join_names_the_inputs() -> None:
    assert named(joined("inner", None, None))["never forgets"].history == (
        "batch 1: views: user 'a', at 2024-01-01 00:00:00",
        "batch 2: views: user 'b', at 2024-12-31 00:00:00; payments: who 'b', paid 2024-12-31 00:00:00: the watermark "
        "moves",
        "batch 3: payments: who 'a', paid 2024-12-31 00:01:00: the first row is still joined",
    )


def test_a_join_with_one_bound_forgets_one_input() -> None:
    assert "this join never forgets a row of views, and " in named(joined("inner", 0, None))["never forgets"].says
    assert "this join never forgets a row of payments, and " in named(joined("inner", None, 0))["never forgets"].says
    assert "this join never forgets a row, and " in named(joined("inner", None, None))["never forgets"].says
    for inputs, says in (({"0": "views"}, "a row, "), ({"1": "bought"}, "a row of bought, ")):
        notes_on_one = notes_of(Skeleton((joined("inner", None, 0),), TYPES), inputs)
        assert [f"never forgets {says}" in note.says for note in notes_on_one if note.name == "never forgets"] == [True]


@pytest.mark.parametrize(
    ("plan", "late", "times"),
    [
        (windowed(TIMED), "10 minutes", ("01:10:00", "00:59:59.999999")),
        (Deduplication((TIMED,), ("user#1", "at#2")), "10 minutes", ("00:10:00", "00:00:00")),
        (Deduplication((TIMED,), ("user#1",), within_watermark=True), "10 minutes", ("00:10:00", "00:00:00")),
        (
            Aggregation((TIMED,), SessionAggregation("at#2", ("user#1",), HOUR, COUNT), "at#2"),
            "70 minutes",
            ("01:10:00", "00:00:00"),
        ),
    ],
    ids=["windows", "a deduplication", "within the watermark", "sessions"],
)
def test_how_late_a_row_may_be_is_noted(plan: Node, late: str, times: tuple[str, str]) -> None:
    says = named(plan)["drops late rows"].says
    assert f"whose at is {late} or more behind the latest may be dropped" in says
    assert says.endswith(": 2024-01-01 {1} after 2024-01-01 {0}, for example".format(*times))


def test_the_slower_of_two_watermarks_says_which_rows_are_late() -> None:
    late = [note.says for note in notes(joined("inner")) if note.name == "drops late rows"]
    assert len(late) == 2
    assert all("20 minutes or more behind" in says for says in late)
    at_most = [note.says for note in notes(joined("inner"), policy="max") if note.name == "drops late rows"]
    assert all("10 minutes or more behind" in says for says in at_most)


def test_a_query_without_watermark_drops_and_holds_nothing_back() -> None:
    assert {*named(windowed(VIEWS, "update"))} == {"never forgets"}


def test_a_deduplication_whose_event_time_is_pruned_drops_no_late_row() -> None:
    kept = Deduplication((TIMED,), ("user#1",))
    assert "drops late rows" in named(kept)
    assert "drops late rows" not in named(Project((kept,), (("user#1", column("user#1")),)))


def test_a_window_waits_for_a_later_row() -> None:
    says = named(windowed(TIMED))["rows wait"].says
    assert says == (
        "a row of views is emitted after a later row has moved the watermark: 2024-01-01 00:00:00 waits for "
        "2024-01-01 01:10:00"
    )
    assert "rows wait" not in named(windowed(TIMED, "update"))


def test_the_row_that_an_outer_join_keeps_waits_for_both_inputs() -> None:
    waits = [note.says for note in notes(joined("left")) if note.name == "rows wait"]
    assert waits == [
        "a row of views without a partner is emitted after later rows have arrived on views and payments: "
        "2024-01-01 00:00:00 waits for 2024-01-01 02:20:00.001 on each; while one input has no rows, nothing is emitted"
    ]
    assert not [note for note in notes(joined("inner")) if note.name == "rows wait"]


@pytest.mark.parametrize("join", ["left", "right", "full", "inner"])
def test_an_outer_join_that_never_emits_a_row_without_a_partner_is_noted(join: str) -> None:
    def never(plan: Node) -> set[str]:
        return {note.says.split(" is ")[0] for note in notes(plan) if note.name == "never emitted"}

    kept = {"left": {"views"}, "right": {"payments"}, "full": {"views", "payments"}, "inner": set()}[join]
    rows = {f"a row of {name} without a partner" for name in kept}
    assert never(joined(join, -MINUTE, HOUR, VIEWS, PAYMENTS)) == rows
    assert never(joined(join)) == set()


def test_an_input_that_is_read_twice_moves_both_watermarks() -> None:
    again = Scan("0", ("who#3", "paid#4"))
    both = joined("left", -MINUTE, HOUR, TIMED, WithWatermark((again,), "paid#4", MINUTE))
    (waits,) = [note.says for note in notes(both) if note.name == "rows wait"]
    assert "after a later row has moved the watermark" in waits


def test_a_union_with_a_silent_input_holds_windows_back() -> None:
    payments = Project((PAID,), (("user#1", column("who#3")), ("at#2", column("paid#4"))))
    waits = [note.says for note in notes(windowed(Union((TIMED, payments)))) if note.name == "rows wait"]
    assert len(waits) == 2
    assert all("views and payments" in says for says in waits)


def test_the_event_time_among_the_columns_of_a_deduplication_is_noted() -> None:
    says = named(Deduplication((TIMED,), ("user#1", "at#2")))["event time among the keys"].says
    assert "it keeps both of two rows with the same user at 2024-01-01 00:00:00 and 2024-01-01 00:00:01" in says
    for plan in (
        Deduplication((TIMED,), ("at#2",)),
        Deduplication((TIMED,), ("user#1",)),
        Deduplication((TIMED,), ("user#1", "at#2"), within_watermark=True),
        Deduplication((VIEWS,), ("user#1", "at#2")),
    ):
        assert "event time among the keys" not in named(plan)


def test_a_filter_behind_an_outer_join_is_noted_with_the_row_that_it_drops() -> None:
    join = joined("left")
    note = named(join, filtered=[Filtered(join, "left", ("user#1",), ("who#3",))])["outer join filtered"]
    assert note.says.startswith("a filter by who after the outer join drops every row of its left side without a")
    assert note.history == (
        "batch 1: views: user 'a', at 2024-01-01 00:00:00",
        "batch 2: views: user 'b', at 2024-01-01 02:20:00.001; payments: who 'b', paid 2024-01-01 02:20:00.001: the "
        "join emits the first row with nulls, and the filter drops this row",
    )
    of_table = named(VIEWS, filtered=[Filtered(None, "left", ("user#1",), ("who#3",))])["outer join filtered"]
    assert of_table.history == ("batch 1: a row whose user has no partner: joined with nulls, and dropped",)


def test_the_rows_that_an_inner_join_loses_are_noted() -> None:
    assert "drops each row whose user is null or not in the table" in (
        named(VIEWS, lookups=[TableLookup(True, ("user#1",))])["rows without a partner"].says
    )
    assert not notes(VIEWS, lookups=[TableLookup(False, ("user#1",))])
    assert "rows without a partner" in named(joined("inner"))
    assert "rows without a partner" not in named(joined("left"))


def test_an_aggregate_by_the_order_of_rows_is_noted() -> None:
    assert named(VIEWS, by_order=[("first", "user#1")])["order of rows"].says.startswith(
        "first(user) depends on the order"
    )


def test_a_note_is_a_line_and_its_history_is_below_it() -> None:
    assert str(Note("never forgets", "it grows", ("batch 1: x",))) == "Note (never forgets): it grows\n    batch 1: x"


def test_a_part_below_an_operator_without_a_model_is_judged_too() -> None:
    part = Deduplication((VIEWS,), ("user#1",))
    assert [note.name for note in notes(part, Scan("?0", ("n#9",)))] == ["never forgets"]


def test_the_same_note_is_made_once() -> None:
    part = Deduplication((VIEWS,), ("user#1",))
    assert len(notes(part, replace(part))) == 1


@pytest.mark.parametrize("seed", range(12))
def test_a_drawn_plan_gets_its_notes_whatever_its_operators_are(seed: int) -> None:
    query = draw_query(Random(seed))
    found = notes_of(Skeleton((query.plan,), types={"k": "string"}, policy=query.policy))
    assert len({str(note) for note in found}) == len(found)


def test_a_function_with_timers_of_event_time_drops_late_rows() -> None:
    counting = Processor((), None, "n#9", 10**12)
    assert "at is 10 minutes or more behind" in named(Processing((TIMED,), counting))["drops late rows"].says
    assert not named(Processing((VIEWS,), counting))


def test_a_function_without_timeouts_is_noted() -> None:
    assert {*named(VIEWS, untimed=True)} == {"no timeout"}


@pytest.mark.parametrize(
    ("before_us", "after_us", "apart_us"),
    [(0, HOUR, 0), (HOUR, -MINUTE, -MINUTE), (-MINUTE, HOUR, MINUTE), (None, None, 0), (None, -MINUTE, -MINUTE)],
)
def test_the_nearest_match_of_a_row_is_within_the_bounds_of_the_join(
    before_us: int | None, after_us: int | None, apart_us: int
) -> None:
    stage: Any = SimpleNamespace(plan=joined("inner", before_us, after_us))
    linter: Any = None
    assert [_Linter.apart_us(linter, stage, source) for source in "01"] == [apart_us, -apart_us]
    stage.plan = TIMED
    assert _Linter.apart_us(linter, stage, "0") == 0
