"""The gate's loop over operators, with stand-ins for what runs: what is reported when, and what a failure leaves."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.checking import check as check_module
from streamproof.properties.checking.check import (
    SIDE_BY_SIDE,
    Check,
    QueryThreads,
    check_operators,
    check_reference,
    query_threads,
    steps_of_references,
)
from streamproof.properties.checking.findings import CounterexampleMaker
from streamproof.properties.checking.pools import RERUN, SCHEDULES
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.rounds import Round, Work
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import OWN, BrokenCase, Comparison, Law, LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.runs import CohortRun, Pool, Run, Sample
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark import session
from streamproof.reference.core.errors import MissingTool, StreamproofError

NAMES = ["session_windows", "range_aggregate"]


@pytest.fixture(autouse=True)
def no_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "spark_session", lambda: None)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces the run of samples: returns the operators' names, one for each sample that was judged."""
    names: list[str] = []

    def judge(self: Check, sample: Sample, runs: object = None) -> None:
        names.append(sample.registration.name)

    monkeypatch.setattr(check_module, "plan_pools", lambda *arguments: [])
    monkeypatch.setattr(check_module, "run_sample", lambda *arguments: [])
    monkeypatch.setattr(Check, "judge", judge)
    return names


@pytest.fixture
def no_kafka(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(witness: object, histories: object) -> None:
        raise MissingTool("no jars: make some")

    monkeypatch.setattr("streamproof.properties.witnesses.kafka.witness.KafkaWitness.evaluate", missing)


def test_each_report_is_ready_as_soon_as_the_last_sample_of_its_operator_is_judged(
    judged: list[str], tmp_path: Path
) -> None:
    seen: list[tuple[str, bool, list[str]]] = []
    check_operators(
        NAMES,
        FolderStore(tmp_path),
        10,
        ready=lambda report: seen.append((report.operator, report.is_whole, sorted(set(judged)))),
    )
    assert seen == [("session_windows", True, NAMES[:1]), ("range_aggregate", True, sorted(NAMES))]


def test_what_ends_a_check_leaves_those_whole_that_were_done(judged: list[str], tmp_path: Path) -> None:
    reports: dict[str, Report] = {}

    def fail(report: Report) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check_operators(NAMES, FolderStore(tmp_path), 10, reports=reports, ready=fail)
    for name, whole in zip(NAMES, (True, False), strict=True):
        assert reports[name].results
        assert [result.unfinished for result in reports[name].results] == [not whole] * len(reports[name].results)


def test_samples_run_side_by_side_and_are_judged_in_order(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = threading.Barrier(SIDE_BY_SIDE)
    numbers: list[object] = []

    def run(sample: Sample, *arguments: Any) -> list[Any]:
        with contextlib.suppress(threading.BrokenBarrierError):  # the last one may be alone
            together.wait(1)
        numbers.append(session._of_thread.number)
        return []

    monkeypatch.setattr(check_module, "run_sample", run)
    check_operators(NAMES, FolderStore(tmp_path), 10)
    assert judged == sorted(judged, key=NAMES.index)
    assert set(numbers) == set(range(SIDE_BY_SIDE))


def test_a_sample_that_fails_ends_the_check_with_what_was_judged(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(sample: Sample, *arguments: Any) -> list[Any]:
        if sample.registration.name == NAMES[1]:
            raise StreamproofError("the query failed")
        return []

    monkeypatch.setattr(check_module, "run_sample", run)
    reports: dict[str, Report] = {}
    with pytest.raises(StreamproofError, match="the query failed"):
        check_operators(NAMES, FolderStore(tmp_path), 10, reports=reports)
    assert set(judged) == {NAMES[0]}
    assert reports[NAMES[0]].is_whole
    assert all(result.unfinished for result in reports[NAMES[1]].results)


def test_what_is_interrupted_stops_its_queries_at_once(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped = threading.Event()
    begun = threading.Semaphore(0)

    def run(sample: Sample, *arguments: Any) -> list[Any]:
        begun.release()
        if sample.registration.name == NAMES[1]:
            assert stopped.wait(60)
        return []

    def interrupt(report: Report) -> None:
        begun.acquire()
        raise KeyboardInterrupt

    monkeypatch.setattr(check_module, "run_sample", run)
    monkeypatch.setattr(check_module, "stop_queries", stopped.set)
    with pytest.raises(KeyboardInterrupt) as interrupted:
        check_operators(NAMES, FolderStore(tmp_path), 10, ready=interrupt)
    assert stopped.is_set(), interrupted


def test_no_query_begins_while_a_counterexample_is_shrunk(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[str] = []
    with query_threads(1) as executor:
        with executor.resting():
            waiting = executor.submit(begun.append, "first")
            assert not wait([waiting], 0.2).done
        waiting.result()
        assert begun == ["first"]
    threads: list[object] = []
    monkeypatch.setattr(Check, "judge", lambda check, *arguments: threads.append(check.resting.__func__))  # type: ignore[attr-defined]
    check_operators(NAMES, FolderStore(tmp_path), 10)
    assert set(threads) == {QueryThreads.resting}


def test_a_violation_is_looked_into_while_no_query_begins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    resting: list[bool] = []
    (drawn,) = draw_histories(HistorySettings("session_windows", {"gap_ms": 10}, SCHEDULE), 1, 0)
    nothing = ("nobody", Outcome("", Grain.END))

    class Broken(Law):
        name = "broken"

        def judge(self, run: Any, result: LawResult) -> Iterator[BrokenCase]:
            yield from [BrokenCase(Case(drawn), Comparison(nothing, nothing, []))] * 2

    @contextlib.contextmanager
    def rest() -> Iterator[None]:
        resting.append(True)
        yield
        resting.append(False)

    monkeypatch.setattr(CounterexampleMaker, "violated", lambda *arguments: resting.append(resting[-1]))
    report = Report("session_windows", [], 0)
    check = Check(registration_of("session_windows"), report, [], "spark", FolderStore(tmp_path), print, OWN)
    check.resting = rest
    check.ask(LawResult(Broken()), None)  # type: ignore[arg-type]
    assert resting == [True, True, False]


@pytest.mark.parametrize("interrupted_while", ["looking into a violation", "a query waits for that"])
def test_an_interrupted_check_begins_no_query_that_waited(interrupted_while: str) -> None:
    waiting: list[Future[None]] = []

    def interrupt() -> None:
        with query_threads(1) as executor, executor.resting():
            waiting.append(executor.submit(pytest.fail, "it began"))
            if interrupted_while == "a query waits for that":
                wait(waiting, 0.2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert waiting[0].cancelled() or isinstance(waiting[0].exception(), CancelledError)


def test_the_report_of_a_reference_is_whole_when_its_last_sample_is_judged(judged: list[str], tmp_path: Path) -> None:
    assert check_reference("session_windows", FolderStore(tmp_path), 10).is_whole
    assert set(judged) == {"session_windows"}


# Rounds, until the time is up: on the reference, which needs no stand-in.

LAW = "fold is meaning"


def check_rounds(folder: Path, *turns: Round) -> Report:
    report = Report("table_aggregate", [], 3, subject="the reference")
    for turn in turns:
        check_reference("table_aggregate", FolderStore(folder), 8, 3, report=report, turn=turn)
    return report


def over_after(steps: int) -> Callable[[], bool]:
    """Return a clock that says that the time is up when it has been asked so many times."""
    asked = iter(range(steps))
    return lambda: next(asked, None) is None


def test_a_further_round_asks_about_other_histories_and_adds_to_the_report(
    no_kafka: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[str, int] = {}
    ask = Check.ask

    def noted(self: Check, result: LawResult, run: Any) -> None:
        if result.law.name == LAW:
            drawn.update({history.to_text(): len(history.records) for history in run.histories})
        ask(self, result, run)

    monkeypatch.setattr(Check, "ask", noted)
    first = check_rounds(tmp_path, Round(0))
    of_first = dict(drawn)
    both = check_rounds(tmp_path, Round(0), Round(1))
    assert both.result(LAW).judged == 2 * first.result(LAW).judged == len(drawn)
    assert (both.histories, both.seeds) == (2 * first.histories, "seeds 3 to 4")
    assert set(of_first.values()) == {20}
    assert {drawn[text] for text in drawn.keys() - of_first.keys()} == {25}
    for result in first.results:
        assert both.result(result.law.name).goals == result.goals
        assert all(both.result(result.law.name).covered[goal] >= count for goal, count in result.covered.items())


def test_the_seed_of_a_further_round_is_that_of_a_counterexample_of_it(no_kafka: None, tmp_path: Path) -> None:
    report = check_rounds(tmp_path, Round(0), Round(2))
    assert (
        Check(
            registration_of("table_aggregate"), report, [], "reference", FolderStore(tmp_path), print, OWN, Round(2)
        ).seed
        == 5
    )


def test_of_the_violations_of_further_rounds_the_number_is_kept(tmp_path: Path) -> None:
    drawn = draw_histories(HistorySettings("session_windows", {"gap_ms": 10}, SCHEDULE), 3, 0)
    nothing = ("nobody", Outcome("", Grain.END))
    each = [BrokenCase(Case(history), Comparison(nothing, nothing, [])) for history in drawn]

    class Broken(Law):
        name, follows_changelog = "broken", True

        def judge(self, run: Any, result: LawResult) -> Iterator[BrokenCase]:
            yield from each

    report = Report("table_aggregate", [], 0)
    results = [LawResult(LAWS["spark"]["changelog"], violations=each[:1]), LawResult(Broken())]
    for number, kept in ((0, each), (1, [*each, *each[:1] * 3])):
        report.results = results
        one = Check(
            registration_of("table_aggregate"), report, [], "spark", FolderStore(tmp_path), print, OWN, Round(number)
        )
        one.ask(results[1], None)  # type: ignore[arg-type]
        assert results[1].violations == kept


def test_only_the_first_round_decides_what_must_be_covered(no_kafka: None, tmp_path: Path) -> None:
    report = check_rounds(tmp_path, Round(0))
    for turn, added in ((Round(1), []), (Round(0), ["another goal"])):
        one = Check(
            registration_of("table_aggregate"), report, [], "reference", FolderStore(tmp_path), print, OWN, turn
        )
        before = report.result(LAW).goals
        one.must_cover(report.result(LAW), [*before, "another goal"])
        assert report.result(LAW).goals == (*before, *added)


@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_round_that_is_cut_short_leaves_the_verdicts_of_the_first(no_kafka: None, tmp_path: Path, steps: int) -> None:
    first = check_rounds(tmp_path, Round(0))
    cut = check_rounds(tmp_path, Round(0), Round(1, over_after(steps)))
    assert [one.verdict for one in cut.results] == [one.verdict for one in first.results]
    assert not any(one.unfinished for one in cut.results)
    assert (cut.histories > first.histories) == (steps > 1)
    assert cut.rounds == (2 if steps else 1)


def test_the_first_round_is_finished_whatever_the_time(no_kafka: None, tmp_path: Path) -> None:
    whole, late = (check_rounds(tmp_path, Round(0, is_over)) for is_over in (lambda: False, lambda: True))
    assert late.is_whole
    assert late.histories == whole.histories


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replaces what runs on Spark: returns `way` for each run of a pool, and what is judged of it, or runs alone."""
    done: list[str] = []

    def prepare(pool: Pool, ways: Sequence[RunOptions], executor: Executor) -> None:
        done.extend(["way"] * len(ways))

    def shares(whole: CohortRun) -> list[Run]:
        done.append("judged")
        return []

    monkeypatch.setattr(Pool, "prepare", prepare)
    monkeypatch.setattr(CohortRun, "prepare_alone", lambda *arguments: None)
    monkeypatch.setattr(CohortRun, "shares", shares)
    monkeypatch.setattr(check_module, "run_sample", lambda *arguments: done.append("alone") or [])
    return done


def test_operators_that_share_queries_stop_between_two_definitions(runs: list[str], tmp_path: Path) -> None:
    reports: dict[str, Report] = {}
    check_operators(NAMES, FolderStore(tmp_path), 1, reports=reports)
    assert all(report.is_whole for report in reports.values())
    whole = runs.count("judged")
    runs.clear()
    check_operators(NAMES, FolderStore(tmp_path), 1, reports=reports, turn=Round(1, over_after(2 + 150)))
    assert 0 < runs.count("judged") < 100 < whole
    assert not any(one.unfinished for report in reports.values() for one in report.results)


# How much is done.


def test_the_steps_on_spark_are_those_that_are_run(runs: list[str], tmp_path: Path) -> None:
    shown: list[tuple[str, float, float]] = []
    work = Work(lambda *step: shown.append(step))
    check_operators(NAMES, FolderStore(tmp_path), 1, turn=Round(0, work=work))
    assert [*work.steps] == NAMES
    assert sum(work.steps.values()) == pytest.approx(runs.count("way") + runs.count("alone"))
    # Each pool as it is, two of them stopped or crashed, one in other partitions.
    assert runs.count("way") == SCHEDULES + RERUN + 1
    assert work.done == pytest.approx(dict(work.steps))
    assert shown[: len(NAMES)] == [(name, 0, work.steps[name]) for name in NAMES]
    for operator in NAMES:
        of_operator = [done for name, done, _ in shown if name == operator]
        assert of_operator == sorted(of_operator)
    assert len(shown) == len(NAMES) + runs.count("judged") + runs.count("alone")


def test_the_steps_of_references_are_their_samples(no_kafka: None, tmp_path: Path) -> None:
    work = Work()
    work.expect(steps_of_references(["table_aggregate", "one_to_many_join"]))
    for name in ("table_aggregate", "one_to_many_join"):
        check_reference(name, FolderStore(tmp_path), 8, turn=Round(0, work=work))
    names = ("table_aggregate", "one_to_many_join")
    assert work.done == work.steps == {name: len(registration_of(name).profiles) + 1 for name in names}


def test_operators_are_done_when_their_last_pool_is_and_references_meanwhile(
    runs: list[str], no_kafka: None, tmp_path: Path
) -> None:
    done: list[tuple[str, str, int]] = []
    names = ["session_windows", "table_aggregate", "range_aggregate"]
    check_operators(
        names,
        FolderStore(tmp_path),
        1,
        ready=lambda report: done.append((report.operator, report.subject, runs.count("judged"))),
        of_reference={name: Report(name, [], 0, subject="the reference") for name in names},
    )
    reference, spark = [(name, "the reference") for name in names], [(name, "on Spark") for name in names]
    assert [one[:2] for one in done] == [reference[0], spark[1], *reference[1:], spark[0], spark[2]]
    judged = [count for _, _, count in done]
    assert judged[0] == 0 < judged[1] == judged[2] < judged[3] < judged[4] == judged[5]
