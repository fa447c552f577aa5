"""How a job's query is run otherwise than plainly: what is drawn, saved and read again, and told of."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from streamproof import BadInput
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_jobs import counterexample_of
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory, Source
from streamproof.properties.laws.all import UPGRADE, saved_variation, variations_of
from streamproof.properties.laws.metamorphic.crash import CRASHES, Replay
from streamproof.properties.laws.metamorphic.cuts import Cuts
from streamproof.properties.laws.metamorphic.order import OrderLaw
from streamproof.properties.laws.metamorphic.restart import Restart
from streamproof.properties.laws.variation import CHANGED
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.job.dying.faults import NO_FAULT
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.plan.tables import TablesUsed
from streamproof.properties.witnesses.job.query.deaths import JobDeaths
from streamproof.properties.witnesses.job.query.progress import Committed
from streamproof.properties.witnesses.job.running import REPEATED, RESTORED, QueryOutput, output_of
from streamproof.properties.witnesses.run_options import MIDDLE, WITHIN, Crash, RunOptions

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
CLICKS = Source("clicks", pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC"))]), "at", ("user",))
RUN = RunOptions()
BEFORE, BETWEEN = "before its output", "between its output and its commit"


def history(*batches: int, clock: tuple[int, ...] = ()) -> JobHistory:
    rows = iter(Arrival("clicks", {"user": "a", "at": NOON + timedelta(minutes=minute)}) for minute in range(99))
    return JobHistory(tuple(tuple(next(rows) for _ in range(count)) for count in batches), clock)


def test_the_query_dies_in_each_micro_batch_with_and_without_data_and_only_a_sink_each_time_before_its_output() -> None:
    places = [(batch, data, moment) for batch in (0, 1) for data in (True, False) for moment in (BEFORE, BETWEEN)]
    of_sink = RunOptions(is_sink=True).crashes_everywhere(2)
    assert [at[:3] for at in of_sink if at.moment in (BEFORE, BETWEEN)] == places
    assert [at[:3] for at in RUN.crashes_everywhere(2)] == [at for at in places if at[0] == 0 or at[2] == BETWEEN]
    with_one_batch_without_data = RunOptions(trigger="available_now").crashes_everywhere(2)
    between = [(at.batch, at.data) for at in with_one_batch_without_data if at.moment == BETWEEN]
    assert between == [(0, True), (1, True), (1, False)]


def test_it_is_stopped_after_each_batch_but_the_last() -> None:
    assert [*variations_of(RUN, 0, 6)[0].run.stop_after] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("seed", range(5))
def test_what_a_counterexample_saves_is_the_variation_that_it_was_found_under(seed: int) -> None:
    *variations, packing, by_row = variations_of(RUN, seed, 6)
    variations.append(by_row)
    for variation in variations:
        assert saved_variation(RUN, json.loads(json.dumps(variation.saved))) == variation
    assert (packing.saved, packing.is_alone) == ({}, True)
    assert [variation.law for variation in variations] == [
        "a restart",
        "a crash",
        "the number of partitions",
        "the cuts between batches",
        "the order within a batch",
        "rows one at a time",
    ]


@pytest.mark.parametrize("seed", range(5))
def test_each_variation_runs_the_query_or_gives_the_rows_otherwise(seed: int) -> None:
    given = history(2, 1, 2)
    for variation in variations_of(RUN, seed, 6):
        assert variation.run != RUN or variation.is_alone or variation.vary(given).batches != given.batches
        assert variation.run.partitions != 2, "so many has the session itself"


@pytest.mark.parametrize(
    "saved", [{"law": "nope"}, {"law": "a crash", "given": 5}, {"law": "a crash", "given": [[1]]}, {"given": 1}]
)
def test_a_variation_that_can_t_be_read_is_refused_with_the_laws(saved: dict[str, Any]) -> None:
    with pytest.raises(BadInput, match=r"has the variation .*: remove it, or give it a law of a restart, a crash"):
        saved_variation(RUN, saved)


@pytest.mark.parametrize(
    ("batches", "clock", "first", "cut"),
    [
        ((1, 2, 0, 1), (), 2, [3, 1]),
        ((1, 2, 0, 1), (), 9, [4]),
        ((1, 2, 0), (10, 20, 30), 1, [1, 2]),
        ((1, 2, 0, 0, 0, 0), (10, 20, 30, 40, 50, 99), 1, [1, 2, 0]),
        ((1, 2, 0, 1, 0, 0), (10, 20, 30, 40, 50, 99), 2, [3, 1, 0]),
        ((1, 2, 0, 1, 0), (10, 20, 30, 40, 50), 2, [3, 1]),
        ((1,), (10,), 1, [1]),
        ((0, 0), (10, 20), 1, [0, 0]),
    ],
)
def test_one_cut_is_left_and_the_batch_that_closes_everything(
    batches: tuple[int, ...], clock: tuple[int, ...], first: int, cut: list[int]
) -> None:
    given = history(*batches, clock=clock)
    varied = Cuts().variation(RUN, first).vary(given)
    assert [len(batch) for batch in varied.batches] == cut
    assert varied.arrivals == given.arrivals
    if clock:
        assert varied.clock[-1] == clock[-1]
        assert len(varied.clock) == len(cut)


def test_the_rows_of_each_batch_come_in_the_opposite_order_in_their_batch() -> None:
    given = history(2, 0, 3, clock=(10, 20, 30))
    varied = OrderLaw().variation(RUN, "reversed").vary(given)
    assert [batch[::-1] for batch in varied.batches] == [*given.batches]
    assert varied.clock == given.clock


def test_of_a_crash_everywhere_the_repeated_rows_are_tried_first() -> None:
    crash = variations_of(RUN, 0, 2)[1]
    crashes = [*crash.run.crash_in]
    rows = Crash(1, False, BETWEEN)
    assert crash.parts is not None
    parts = crash.parts(QueryOutput([], crashed=[(at, at == rows) for at in crashes]))
    assert [[*part.run.crash_in] for part in parts] == [[rows], [at for at in crashes if at.moment == BEFORE]]
    assert parts[0].parts is None
    assert parts[0].when == "dying in batch 1 without data, between its output and its commit, and started again"


def test_each_variation_has_the_goals_without_which_it_shows_nothing() -> None:
    goals = {variation.law: {*variation.goals} for variation in (*variations_of(RUN, 0, 6), UPGRADE.variation(RUN, 1))}
    assert {law: found for law, found in goals.items() if found} == {
        "a restart": {RESTORED},
        "a crash": {REPEATED, RESTORED},
        "the cuts between batches": {CHANGED},
        "the order within a batch": {CHANGED},
        "an upgrade": {RESTORED},
    }


def test_a_variation_of_one_place_has_no_smaller_part() -> None:
    stops, crash, upgrade = Restart().variation(RUN, [1, 3]), Replay(), UPGRADE.variation(RUN, 2)
    output = QueryOutput([])
    for variation, parts in ((stops, [[1], [3]]), (upgrade, [0, 1])):
        assert variation.parts is not None
        assert [part.given for part in variation.parts(output)] == parts
    for one in (Restart().variation(RUN, [3]), crash.variation(RUN, [[1, True, BETWEEN]]), UPGRADE.variation(RUN, 0)):
        assert one.parts is None
    for wrong in (-1, True, "1"):
        with pytest.raises(ValueError, match=str(wrong)):
            UPGRADE.variation(RUN, wrong)


def test_of_a_sink_s_crashes_those_within_a_write_are_tried_by_themselves_and_halved() -> None:
    crash = variations_of(RunOptions(is_sink=True), 0, 1)[1]
    assert [at.moment for at in crash.run.crash_in] == [BEFORE, MIDDLE, WITHIN, BETWEEN] * 2
    cuts = [Crash(0, True, WITHIN, step) for step in (1, 2)]
    assert crash.parts is not None
    (within, _) = crash.parts(QueryOutput([], crashed=[(at, True) for at in cuts]))
    assert [*within.run.crash_in] == cuts
    assert within.parts is not None
    halves = within.parts(QueryOutput([], crashed=[(at, True) for at in cuts]))
    assert [[*half.run.crash_in] for half in halves] == [[at] for at in cuts]
    assert [half.parts for half in halves] == [None, None]


def test_histories_that_run_alone_share_all_stops_and_crashes() -> None:
    for variation, places in zip(variations_of(RUN, 0, 6)[:2], (5, 14), strict=True):
        assert variation.share is not None
        shares = [variation.share(number).given for number in range(6)]
        assert [variation.share(number + 6).given for number in range(6)] == shares
        assert {str(place) for share in shares for place in share} == {str(place) for place in variation.given}
        assert len(variation.given) == places > len(shares[0])


@pytest.mark.parametrize(
    ("crashed", "with_rows", "restored_in", "goals"),
    [
        ([], {1}, {1}, {RESTORED}),
        ([], {1}, {2}, set()),
        ([], {1}, set(), set()),
        ([False], {1}, set(), set()),
        ([False, True], {3}, {2}, {REPEATED, RESTORED}),
    ],
)
def test_goals_are_met_by_rows_in_a_repeated_batch_and_by_rows_after_a_stop_with_state(
    crashed: list[bool], with_rows: set[int], restored_in: set[int], goals: set[str]
) -> None:
    query: Any = SimpleNamespace(
        emitted=lambda run_all: ([], []),
        deaths=JobDeaths(),
        times=SimpleNamespace(committed=Committed(stateful=True, restored_in=restored_in)),
        declaration=SimpleNamespace(plan=Plan(), used=TablesUsed(), settings={}, divergences=()),
        ahead=False,
        triggers=[],
        outcome=NO_FAULT,
    )
    query.deaths.happened = [(Crash(0, True, "before its output"), has_rows) for has_rows in crashed]
    query.deaths.with_rows = with_rows
    assert output_of(query, lambda: None).covered == goals


def counterexample(expected: list[Any], emitted: list[Any], difference: Difference) -> Counterexample[JobHistory]:
    return counterexample_of(
        job="job (x.py:1)",
        oracle="the job without a crash",
        history=history(1),
        sources=[CLICKS],
        expected=Expected("end", [expected]),
        emitted=[emitted],
        difference=difference,
        run=RunOptions(mode="complete"),
        unique=[],
        seed=0,
        runs=("dying in batch 1", "without a crash"),
    )


def test_a_violated_invariant_says_what_both_runs_emit() -> None:
    one, two = {"n": 1}, {"n": 2}
    twice = counterexample([one], [one, one], Difference(None, [], [one]))
    assert twice.sentence == (
        "violated: dying in batch 1, job (x.py:1) emits n 1 twice at the end; without a crash it emits it once."
    )
    lost = counterexample([one, one], [one], Difference(None, [one], []))
    assert lost.sentence.endswith("emits n 1 once at the end; without a crash it emits it twice.")
    never = counterexample([one], [], Difference(None, [one], []))
    assert never.sentence.endswith("emits no such row at the end; without a crash it emits n 1.")
    other = counterexample([one], [two], Difference(None, [one], [two]))
    assert other.sentence.endswith("emits n 2 at the end; without a crash it emits n 1.")


@pytest.mark.parametrize(
    ("count", "given", "sizes"),
    [(9, 3, [3, 2, 4]), (9, 1, [1, 4, 4]), (5, 2, [2, 3]), (4, 2, [2, 2]), (1, 3, [1])],
)
def test_one_cut_is_left_and_the_batches_behind_the_drawn_ones_stay_one(
    count: int, given: int, sizes: list[int]
) -> None:
    rows = [Arrival("clicks", {"n": number}) for number in range(count)]
    merged = Cuts().variation(RUN, given).vary(JobHistory(tuple((row,) for row in rows), tuple(range(count))))
    assert [row for batch in merged.batches for row in batch] == rows
    assert [len(batch) for batch in merged.batches] == sizes
    assert [*merged.clock] == [batch[-1].row["n"] for batch in merged.batches]


def test_a_history_that_runs_alone_dies_in_its_share_of_the_places_or_in_all_of_them() -> None:
    crashes = [Crash(batch) for batch in range(CRASHES + 1)]
    for given, number, share in (
        (crashes, 0, [crashes[0], crashes[CRASHES]]),
        (crashes, 1, crashes[1:2]),
        (crashes, CRASHES + 1, crashes[1:2]),
        (crashes[:1], 1, crashes[:1]),
    ):
        varied = Replay().variation(RUN, given)
        assert varied.share is not None
        assert [*varied.share(number).run.crash_in] == share
