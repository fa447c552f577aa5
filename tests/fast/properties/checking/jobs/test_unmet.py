"""The coverage goals that a check has left unmet: too few rows, other delays, what a variation must have changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import Input
from streamproof.properties.checking.jobs import conclusion
from streamproof.properties.checking.jobs.conclusion import (
    _named,
    _unmet_tables,
    inconclusive,
    limits,
    not_checked,
    unmet_goals,
)
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.laws.variation import CHANGED
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import REPEATED, RESTORED
from streamproof.reference.spark.plans import Scan, Union

SECOND = 1_000_000


def unmet(monkeypatch: pytest.MonkeyPatch, **more: Any) -> list[str]:
    given: dict[str, Any] = {
        **{"count": 40, "expecting": 40, "goals": (), "covered": (), "stateful": True, "is_sink": False, "crashed": ()},
        **{"expected_us": None, "plan": Plan(), "timers": (), "law": "", "tables": (), "drawn": (), **more},
    }
    monkeypatch.setattr(conclusion, "_unmet_tables", lambda witness, histories: [*given["tables"]])
    monkeypatch.setattr(conclusion, "_compares", lambda judge: [])
    oracle = SimpleNamespace(watermark_delays_us=given["expected_us"], distances_us=())
    met = SimpleNamespace(covered=given["covered"], crashed=given["crashed"], stateful=given["stateful"], plan=Plan())
    judge: Any = SimpleNamespace(
        met=met,
        oracle=oracle,
        is_sink=given["is_sink"],
        declared=SimpleNamespace(plan=given["plan"]),
        witness=SimpleNamespace(sources=[]),
    )
    options = SimpleNamespace(timers_us=given["timers"], timeouts_us=())
    draws: Any = SimpleNamespace(unmet=lambda histories: [*given["drawn"]], options=options, inputs=[])
    variation: Any = SimpleNamespace(goals=given["goals"], law=given["law"])
    return unmet_goals(judge, draws, variation, [None] * given["count"], given["expecting"])  # type: ignore[list-item]


@pytest.mark.parametrize(
    ("more", "goal"),
    [
        ({}, ""),
        ({"count": 10, "expecting": 10}, ""),
        ({"count": 9, "expecting": 9}, "at least 10 histories"),
        ({"expecting": 2}, ""),
        ({"expecting": 1}, "expected rows in one of twenty histories (only 1 have expected rows)"),
        ({"expecting": 0}, "expected rows in one of twenty histories (only 0 have expected rows); perhaps the job"),
        ({"goals": (REPEATED,), "covered": (REPEATED,)}, ""),
        ({"goals": (REPEATED,)}, REPEATED),
        ({"goals": (RESTORED,)}, RESTORED),
        ({"goals": (RESTORED,), "stateful": False}, ""),
        ({"goals": (REPEATED,), "stateful": False}, REPEATED),
        ({"goals": (REPEATED,), "is_sink": True}, ""),
        ({"goals": (REPEATED,), "is_sink": True, "crashed": ("commit",)}, REPEATED),
        ({"goals": (CHANGED,), "is_sink": True}, CHANGED),
        ({"plan": Plan(by_event_time=True)}, "rows around the job's event-time timers"),
        ({"plan": Plan(by_event_time=True), "timers": (SECOND,)}, ""),
        ({"plan": Plan(by_event_time=True), "law": "a crash"}, ""),
    ],
)
def test_a_goal_is_unmet_where_the_check_has_shown_nothing_of_it(
    more: dict[str, Any], goal: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = unmet(monkeypatch, **more)
    assert [one[: len(goal)] for one in found] == [goal] * bool(goal)


@pytest.mark.parametrize(
    ("expected_us", "delays_us", "other"),
    [
        (None, [SECOND], ""),
        ({}, [], ""),
        ({"": SECOND}, [SECOND], ""),
        ({"": SECOND}, [0, SECOND], ""),
        ({"": 0}, [], ""),
        ({"a": SECOND, "b": 0}, [SECOND], ""),
        ({"": SECOND}, [2 * SECOND], "1 second (the job's delays are 2 seconds)"),
        ({"": SECOND}, [], "1 second (the job's delays are nothing)"),
        ({"": SECOND}, [SECOND, 3 * SECOND], "1 second (the job's delays are 1 second and 3 seconds)"),
    ],
)
def test_another_delay_of_the_watermark_than_expected_is_named(
    expected_us: Any, delays_us: list[int], other: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(operators=frozenset({"Aggregate"}), delays_us=delays_us)
    found = unmet(monkeypatch, expected_us=expected_us, plan=plan)
    assert found == [f"the expected watermark delays {other}"] * bool(other)


def test_the_goals_are_unmet_in_the_order_of_their_weight(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = Plan(operators=frozenset({"Aggregate"}), delays_us=[], by_event_time=True)
    more: dict[str, Any] = {"count": 9, "expecting": 0, "tables": ["of a table"], "drawn": ["a late row"]}
    found = unmet(monkeypatch, goals=(REPEATED,), expected_us={"": SECOND}, plan=plan, **more)
    starts = (
        REPEATED,
        "the expected watermark delays",
        "rows around",
        "expected rows",
        "at least 10 histories",
        "of a table",
        "a late row",
    )
    assert len(found) == len(starts)
    assert all(one.startswith(start) for one, start in zip(found, starts, strict=True))


def test_five_unmet_goals_are_named_and_the_others_counted() -> None:
    def said(count: int) -> str:
        missing = [f"goal {number}" for number in range(count)]
        given: dict[str, Any] = {"histories": 40, "missing": missing, "more": "more", "seed": 6, "alone": " Alone."}
        return str(inconclusive("a job", "as_batch()", **given))

    agrees = "inconclusive: a job agrees with as_batch() on all 40 histories, but they are too weak to judge"
    five = "goal 0; goal 1; goal 2; goal 3; goal 4"
    ends = "Give more, or another seed than 6. Alone."
    assert said(5) == f"{agrees}. Unmet coverage goals: {five}. {ends}"
    assert said(7) == f"{agrees}. Unmet coverage goals: {five}; and 2 more. {ends}"


def test_what_each_input_may_have_and_no_history_has_is_not_checked() -> None:
    def left(**shares: float) -> list[str]:
        inputs = resolve_all(
            [
                Input("k string, at timestamp", key="k", name="a", format="kafka", **shares),
                Input("k string, at timestamp", key="k", name="b", format="kafka", **shares),
            ],
            0,
        )
        draws: Any = SimpleNamespace(takes_late=True, inputs=inputs, options=SimpleNamespace(out_of_order=None))
        plan = Plan()
        judge: Any = SimpleNamespace(
            met=SimpleNamespace(plan=plan),
            declared=SimpleNamespace(plan=plan),
            computed_keys=[],
            oracle=SimpleNamespace(unchecked=["ties"]),
            witness=SimpleNamespace(alone=False, sources=[given.source for given in inputs]),
        )
        return not_checked(judge, draws, [])

    nulls = "null event times, in at of a and at of b: Input(…, null_times=0.05) draws some"
    flawed = "payloads that can't be parsed as rows, on a and b: Input(…, malformed=0.05) draws some"
    assert left() == ["ties", nulls, flawed]
    assert left(null_times=0.1) == ["ties", flawed]
    assert left(malformed=0.1) == ["ties", nulls]


LATE = (
    "late rows, because this oracle ignores lateness: a rule, such as windows(…) or stream_join(…), or a class checks "
    "them"
)
LONG_ENOUGH = 'the watermark\'s delay: out_of_order="10 minutes" says how late events may be'
WHOLE_BATCHES = 'rows that are late by whole batches: out_of_order="10 minutes" draws them'


@pytest.mark.parametrize(
    ("takes_late", "out_of_order", "delay_us", "is_sink", "left"),
    [
        (True, None, SECOND, True, []),
        (False, None, 0, False, [LATE]),
        (False, None, SECOND, False, [LATE, LONG_ENOUGH]),
        (False, None, 0, True, [LATE, WHOLE_BATCHES]),
        (False, "1 minute", SECOND, True, [LATE]),
    ],
)
def test_late_rows_that_are_not_drawn_are_not_checked(
    takes_late: bool, out_of_order: str | None, delay_us: int, is_sink: bool, left: list[str]
) -> None:
    options = SimpleNamespace(out_of_order=out_of_order)
    draws: Any = SimpleNamespace(takes_late=takes_late, inputs=[], options=options, delay_us=delay_us)
    judge: Any = SimpleNamespace(
        met=SimpleNamespace(plan=Plan()),
        declared=SimpleNamespace(plan=Plan()),
        is_sink=is_sink,
        computed_keys=[],
        oracle=SimpleNamespace(unchecked=()),
        witness=SimpleNamespace(alone=False, sources=[]),
    )
    assert not_checked(judge, draws, []) == left


def test_the_limits_of_a_verdict_are_each_said_with_all_that_they_are_of() -> None:
    met = SimpleNamespace(
        nondeterministic=frozenset("nmlkji"),
        extra=["e", "f"],
        left_out=["g", "h"],
        triggers={"t", "s"},
        settings={"spark.b": "1", "spark.c": "3"},
    )
    judge: Any = SimpleNamespace(
        met=met,
        declared=SimpleNamespace(settings={"spark.a": "0", "spark.b": "2"}, columns=[*"ijklmnxyz"]),
        without=frozenset({"y", "x"}),
        divergences=(),
        witness=SimpleNamespace(runner=SimpleNamespace(job=SimpleNamespace(notes=("a write", "a read")))),
    )
    assert limits(judge) == [
        "Not compared: the columns x, y: without= leaves them out",
        "Not compared: the columns i, j, k, l, m, n, whose values differ between runs: they contain times of the "
        "clock, random values, files, partitions or offsets",
        "Not compared: the columns e, f: the oracle doesn't return them",
        "Not compared: the columns g, h: the oracle returns them, and the job's result lacks them",
        "Not checked: a write",
        "Not checked: a read",
        "Not checked: the trigger s: the check decides which rows each batch contains",
        "Not checked: the trigger t: the check decides which rows each batch contains",
        "Set by the job: spark.a=0, spark.b=1, spark.c=3",
    ]
    judge.declared.columns = [*"ijklmnxy"]
    assert limits(judge)[0].startswith("Only the number of rows was compared, because no column has the same values")


def test_eight_sides_that_no_row_is_on_are_named_and_the_others_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    draws: Any = SimpleNamespace(inputs=[])
    judge: Any = SimpleNamespace(witness=SimpleNamespace(alone=False))
    monkeypatch.setattr(conclusion, "_compares", lambda judge: [])
    for count in (0, 1, 8, 11):
        sides = [f"n > {number}" for number in range(count)]
        monkeypatch.setattr(conclusion, "unreached", lambda *given, sides=sides, **named: sides)
        named = conclusion._unreached(judge, draws, [])
        assert named == [*sides[:8], *["and 3 more"] * (count == 11)]


def test_the_tables_whose_keys_no_history_has_are_named_in_order() -> None:
    (clicks,) = resolve_all([Input("k string, at timestamp", key="k", name="clicks")], 0)
    keys = {"b": {"x"}, "a": {"y"}, "c": {"z", "k"}}
    witness: Any = SimpleNamespace(keyed=dict.fromkeys(keys, "k"), sources=[clicks.source], keys_of=keys.__getitem__)
    drawn = [JobHistory(((Arrival("clicks", {"k": "k"}),),)), JobHistory(((),))]
    assert [one.partition(" (")[0] for one in _unmet_tables(witness, drawn)] == [
        f"rows with a key of the table {name}" for name in ("a", "b")
    ]


def test_notes_name_the_inputs_whose_columns_tell_them_apart() -> None:
    def named(*columns: str, **inputs: str) -> Any:
        scans = [Scan(str(at), tuple(f"{name}#{at}" for name in of.split())) for at, of in enumerate(columns)]
        skeleton: Any = SimpleNamespace(parts=[Union((scans[0], scans[-1]))])
        return _named(skeleton, {name: of.split() for name, of in inputs.items()})

    assert named("user at", "who paid", clicks="user at", bought="who paid") == {"0": "clicks", "1": "bought"}
    assert named("user at more", "who paid", clicks="user at", bought="who paid") == {"0": "clicks", "1": "bought"}
    assert named("user at", "who paid", clicks="user at", views="user at", bought="who paid") == {"1": "bought"}
    assert named("user at", "user at", clicks="user at", bought="who paid") == {}


def test_the_numbers_of_the_declared_plan_and_of_the_plan_that_has_run_are_named() -> None:
    (clicks,) = resolve_all([Input("k string, at timestamp, a int, b int, c int", key="k", values={"c": [1]})], 0)
    draws: Any = SimpleNamespace(takes_late=True, inputs=[clicks], options=SimpleNamespace(out_of_order=None))
    for declared, ran in (({("a", 1)}, {("b", 2)}), ({("b", 2), ("a", 1)}, set()), (set(), {("b", 2), ("a", 1)})):
        judge: Any = SimpleNamespace(
            met=SimpleNamespace(plan=Plan(thresholds=frozenset({*ran, ("c", 3)}))),
            declared=SimpleNamespace(plan=Plan(thresholds=frozenset(declared))),
            computed_keys=[],
            oracle=SimpleNamespace(unchecked=()),
            witness=SimpleNamespace(alone=False, sources=[clicks.source]),
        )
        said = not_checked(judge, draws, [])[0]
        assert said.startswith("values near the constants that the job compares with, a at 1 and b at 2: Input(")
