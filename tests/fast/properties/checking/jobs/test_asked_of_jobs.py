"""Which columns a check may be given, and of which jobs a variation isn't asked, and why."""

from __future__ import annotations

from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from memory_jobs import RUN, MemoryRunner, copy, options
from streamproof.properties.checking.jobs.boundary_values import _code_of
from streamproof.properties.checking.jobs.invariants import _why_not_asked, _without_crash, invariants_of
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.laws.all import invariants, variations_of
from streamproof.properties.laws.expected.oracles import FunctionOracle
from streamproof.properties.laws.metamorphic.sink_fault import SINK_FAULTS
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.run_options import BETWEEN, MIDDLE, PLAIN, WITHIN, RunOptions
from streamproof.reference.core.errors import BadInput

NAMES = ("user", "at", "window")


@dataclass(frozen=True)
class NamedRunner(MemoryRunner):
    """Runs a job whose columns are known."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        return Declared(names=NAMES, columns=("user", "at", "start", "end"))


def named(clicks: Any) -> Any:
    return clicks


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"unique": ["user", "start"]}, ""),
        ({"unique": ["window"]}, ""),
        (
            {"unique": ["user", "nope"]},
            r"^unique has 'nope', and the result of copy .* has the columns user, at, window, st",
        ),
        ({"without": frozenset({"at"})}, ""),
        ({"without": frozenset({"nope", "at"})}, "^without has 'nope', which is not one of the columns of copy"),
        ({"without": frozenset(NAMES)}, "^without leaves out all columns of copy"),
    ],
)
def test_columns_that_a_result_lacks_are_refused_before_a_history_runs(more: dict[str, Any], reason: str) -> None:
    def check() -> JobCheck:
        return JobCheck(options(copy, NamedRunner, **more), FunctionOracle(named), Variation(RUN))

    if not reason:
        check()
        return
    with pytest.raises(BadInput, match=reason):
        check()


UPDATES = replace(RUN, mode="update")
OF_FUNCTION = Plan(operators=frozenset({"TransformWithStateInPySpark"}), ends_in_function=True)


def before(
    plan: Plan = OF_FUNCTION, unique: Any = ("user",), why_alone: str = "", as_one: bool = False, alike: str = ""
) -> Any:
    of_plan = SimpleNamespace(plan=plan)
    judge = SimpleNamespace(
        declared=of_plan, met=of_plan, unique_columns=unique, is_sink=False, without_table=alike or None
    )
    inputs = SimpleNamespace(inputs=[])
    return SimpleNamespace(judge=judge, why_alone=why_alone, runs_as_one=as_one, options=inputs)


HELD = ("a restart", "a crash", "the order within a batch")
CUT = (*HELD, "the cuts between batches")
FORGETTING = Plan(operators=frozenset({"DeduplicateWithinWatermark"}))


@pytest.mark.parametrize(
    ("law", "run", "of", "held", "reason"),
    [
        ("a restart", RUN, before(FORGETTING), (), ""),
        ("the cuts between batches", RUN, before(), (), ""),
        (
            "the cuts between batches",
            RUN,
            before(FORGETTING),
            (),
            "dropDuplicatesWithinWatermark forgets rows only at the end of",
        ),
        ("the cuts between batches", UPDATES, before(alike="two rows"), (), "the cuts between batches: two rows"),
        ("the order within a batch", UPDATES, before(alike="two rows"), (), ""),
        ("rows one at a time", UPDATES, before(alike="two rows"), HELD, "nothing shows which rows update each other"),
        ("the cuts between batches", replace(RUN, processing_time=True), before(), (), "a row's batch determines its"),
        ("rows one at a time", RUN, before(Plan(), None), (), ""),
        ("rows one at a time", UPDATES, before(), HELD, ""),
        ("rows one at a time", UPDATES, before(), HELD[:2], "it is checked only after the order within a batch"),
        ("rows one at a time", UPDATES, before(unique=None), HELD, "nothing shows which rows update each other"),
        ("rows one at a time", UPDATES, before(Plan()), HELD, "an operator above the function may change the order"),
        ("histories of other keys in the query", RUN, before(), (), ""),
        (
            "histories of other keys in the query",
            RUN,
            before(why_alone="it has no key"),
            (),
            "each history runs in its",
        ),
        (
            "histories of other keys in the query",
            RUN,
            before(why_alone="it has no key", as_one=True),
            (),
            "the rows of all histories ran as one history: it has no key",
        ),
    ],
)
def test_a_variation_is_asked_unless_the_plan_forbids_it(
    law: str, run: RunOptions, of: Any, held: tuple[str, ...], reason: str
) -> None:
    (variation,) = [one for one in variations_of(run, 0, 6) if one.law == law]
    why = _why_not_asked(variation, of, dict.fromkeys(held, 1))
    assert reason in why
    assert bool(why) == bool(reason)


@pytest.mark.parametrize(
    ("plan", "looked_at"),
    [
        (Plan(), True),
        (Plan(operators=frozenset({"Project"})), False),
        (Plan(operators=frozenset({"TransformWithStateInPySpark"}), has_function=True), True),
        (Plan(operators=frozenset({"Project"}), in_functions=frozenset({"user"})), True),
    ],
)
def test_the_code_of_a_job_is_looked_at_where_its_plan_does_not_show_all(plan: Plan, looked_at: bool) -> None:
    assert [*_code_of(copy, plan)] == [copy] * looked_at


def test_names_to_leave_out_are_of_invariants_or_of_columns_and_an_invariant_is_left() -> None:
    names = [law.of_jobs for law in invariants()]
    assert invariants_of(["at", names[1], names[0], "n"]) == ([names[1], names[0]], ["at", "n"])
    assert invariants_of(names[1:]) == (names[1:], [])
    for every in (names, names[::-1], [*names, names[0], "at"]):
        with pytest.raises(BadInput, match="and no invariant is left: leave out some of a restart, a crash"):
            invariants_of(every)


@pytest.mark.parametrize(
    ("crashed", "spared"),
    [
        (set(), "a crash, and rows after a stop with state: the sink keeps no checkpoint"),
        ({BETWEEN}, "a crash in the middle of a micro-batch's output: the sink uses neither foreach,"),
        ({MIDDLE}, ""),
        ({BETWEEN, WITHIN}, ""),
    ],
)
def test_a_sink_that_is_spared_a_crash_is_said_to_be(crashed: Any, spared: str) -> None:
    held = {"a restart": 5, "a crash": 5}
    left = _without_crash("a crash", held, crashed)
    assert [one[: len(spared)] for one in left] == [spared] * bool(spared)
    assert ("a crash" in held) == bool(crashed)


@pytest.mark.parametrize(
    ("fault", "stateful", "why_alone", "held", "reason"),
    [
        ("zombie", True, "it has no key", HELD, ""),
        ("zombie", False, "", HELD[:1], "it is checked only after a crash"),
        ("two-queries", False, "", HELD, ""),
        ("two-queries", False, "it has no key", HELD, "the rows of its keys can't be divided: it has no key"),
        ("old-checkpoint", False, "", HELD, ""),
        ("old-checkpoint", True, "", HELD, "it is checked only after the cuts between batches"),
        ("deleted-checkpoint", True, "", CUT, ""),
        ("deleted-checkpoint-latest", True, "", CUT, "the query's state is deleted too"),
        ("deleted-checkpoint-latest", False, "", CUT, ""),
    ],
)
def test_a_fault_is_played_on_a_sink_whose_rows_it_must_not_change(
    fault: str, stateful: bool, why_alone: str, held: tuple[str, ...], reason: str
) -> None:
    checked = before(why_alone=why_alone)
    checked.judge.met = SimpleNamespace(plan=Plan(), stateful=stateful)
    (variation, *_) = SINK_FAULTS[fault].variations(replace(RUN, is_sink=True))
    why = _why_not_asked(variation, checked, held, CUT)
    assert why == (f"the fault {fault}: {reason}" if reason else "")
