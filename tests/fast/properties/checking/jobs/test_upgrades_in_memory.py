"""The check of an upgrade without Spark: its queries, its counterexamples, and what a function of both outputs gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from memory_jobs import CLICKS, RUN, Batches, MemoryRunner, copy, options
from streamproof import BadInput, Script, Sink, UpgradeRefused, Violated, as_batch
from streamproof.properties.checking.jobs import job_check, upgrade
from streamproof.properties.checking.jobs.arguments import HISTORIES
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.checking.jobs.upgrade import OTHER_FILES, Upgrades, check_upgrade
from streamproof.properties.generators.columns.model import JobHistory
from streamproof.properties.laws.expected.oracles import BothOracle
from streamproof.properties.laws.expected.upgrading import UpgradeJudge
from streamproof.properties.laws.variation import Variation
from streamproof.properties.outcomes.equality import Equality
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.query.runnable import Earlier
from streamproof.properties.witnesses.job.query.upgrades import NotContinued
from streamproof.properties.witnesses.job.running import Declared, QueryOutput
from streamproof.properties.witnesses.job.witness import RowsWitness
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.failures import QueryFailed

Job = Callable[[Batches], Batches]


@dataclass(frozen=True)
class UpgradedRunner(MemoryRunner):
    """Runs the earlier version until the first stop, and then the job, which begins without state.

    Attributes:
        ran: Each run: the earlier job, if there is one, the job, and its stops.
    """

    ran: list[tuple[Job | None, Any, tuple[int, ...]]] = field(default_factory=list)

    def run(
        self, batches: Sequence[Mapping[str, pa.Table]], clock: Sequence[int] = (), run: RunOptions = PLAIN
    ) -> QueryOutput:
        earlier: Any = self.earlier and self.earlier.job
        self.ran.append((earlier, self.job, run.stop_after))
        if earlier is None:
            return super().run(batches, clock, run)
        count = run.stop_after[0] + 1
        output = super().run(batches[count:], clock, run)
        before = MemoryRunner(earlier, self.sources).run(batches[:count])
        output.batches[:0] = before.batches
        return output


def doubled(batches: Batches) -> Batches:
    return [[{**row, "amount": row["amount"] and 2 * row["amount"]} for row in rows] for rows in batches]


def first_of_user(batches: Batches) -> Batches:
    """Emit the first row of each user, which takes state."""
    seen: set[Any] = set()
    return [[row for row in rows if not (row["user"] in seen or seen.add(row["user"]))] for rows in batches]


def upgrades(old: Job, new: Job, expect: Any = None, run: RunOptions = RUN, **more: Any) -> Upgrades:
    given = options(new, more.pop("runner", UpgradedRunner), run=run, **more)  # type: ignore[arg-type]
    return Upgrades(given, Earlier(old), expect)  # type: ignore[arg-type]


def ran(checks: Upgrades) -> list[Any]:
    assert isinstance(checks.options.runner, UpgradedRunner)
    return checks.options.runner.ran


def test_one_run_from_the_start_serves_the_upgrades_after_all_batches() -> None:
    checks = upgrades(copy, copy)
    assert checks.report(20, ()).histories == 20
    from_start = (None, copy, (0, 1, 2))
    assert ran(checks) == [(copy, copy, (0,)), from_start, (copy, copy, (1,)), (copy, copy, (2,))]


@pytest.mark.parametrize("expect", [None, lambda old, new: new], ids=["from the start", "both"])
def test_a_run_from_the_start_has_no_other_stop_if_that_would_run_another_batch(expect: Any) -> None:
    checks = upgrades(copy, copy, expect, replace(RUN, trigger="available_now"))
    assert checks.report(20, ()).histories == 20
    each_cut = [[(copy, copy, (cut,)), *[(None, copy, (cut,))] * (1 if expect is None else 2)] for cut in range(3)]
    assert ran(checks) == [run for cut in each_cut for run in cut]


def test_a_function_is_given_the_outputs_of_both_versions_each_run_once_from_the_start() -> None:
    def doubles(old: Batches, new: Batches) -> Batches:
        assert len(old) == len(new)
        return doubled(old)

    checks = upgrades(copy, doubled, doubles)
    assert checks.report(20, ()).between == ("the function doubles", "job")
    from_start = [(None, copy, (0, 1, 2)), (None, doubled, (0, 1, 2))]
    assert ran(checks) == [
        (copy, doubled, (0,)),
        *from_start,
        (copy, doubled, (1,)),
        (copy, doubled, (2,)),
    ]


def test_a_function_that_expects_other_rows_or_returns_no_lists_is_named() -> None:
    def nothing(old: Batches, new: Batches) -> Batches:
        return [[] for _ in new]

    with pytest.raises(Violated, match="the function nothing expects no such row"):
        upgrades(copy, doubled, nothing).report(20, ())
    with pytest.raises(BadInput, match=r"receives the rows of \d batches, but returned int: return a list of rows for"):
        upgrades(copy, copy, lambda old, new: 1).report(20, ())


def not_continued() -> NotContinued:
    refusal = NotContinued("the query failed")
    refusal.cause = "the state is of another form"
    return refusal


class Failing(UpgradedRunner):
    """It fails after an upgrade, and from the start where the job is `copy`."""

    def run(self, *given: Any, **more: Any) -> QueryOutput:
        if self.earlier is not None:
            raise not_continued()
        if self.job is copy:
            raise QueryFailed("it can't run at all")
        return super().run(*given, **more)


def test_a_job_that_can_not_go_on_is_refused_and_one_that_can_not_run_at_all_has_failed() -> None:
    with pytest.raises(
        UpgradeRefused, match=r"doubled.* can't continue from the checkpoint of .*copy.*: the state is of"
    ):
        upgrades(copy, doubled, runner=Failing).report(20, ())
    with pytest.raises(QueryFailed, match="it can't run at all") as failed:
        upgrades(doubled, copy, runner=Failing).report(20, ())
    assert not isinstance(failed.value, UpgradeRefused)


def test_a_report_has_the_least_of_all_upgrades_and_the_limits_of_each() -> None:
    checks = upgrades(copy, copy)
    for number, check in enumerate(checks.checks):
        assert isinstance(check.judge, UpgradeJudge)
        check.judge.moved = 2**number
        check.judge.met.settings = {f"of.check.{number}": "1"}
    report = checks.report(20, ())
    assert [*report.laws] == [f"an upgrade after batch {cut}" for cut in range(3)]
    begins = [*(f"Upgraded after batch {cut}: rows" for cut in range(3)), "In 7 comparisons, rows are in another batch"]
    assert [line.startswith(begin) for line, begin in zip(report.counted, begins, strict=True)] == [True] * 4
    assert [limit.count("of.check") for limit in report.limits] == [1, 1, 1]


def test_a_counterexample_is_saved_run_first_and_refused_by_other_checks(tmp_path: Path) -> None:
    with pytest.raises(Violated, match="give upgrade these examples") as found:
        upgrades(first_of_user, first_of_user, folder=tmp_path).report(20, ())
    assert found.value.path is not None
    assert len(found.value.counterexample.history.arrivals) == 2
    saved = [found.value.path / "history.jsonl"]
    for examples, folder in (((), tmp_path), (saved, None)):
        checks = upgrades(first_of_user, first_of_user, folder=folder)
        with pytest.raises(Violated, match="1 of 1 histories, saved or given as examples, still differ"):
            checks.report(20, examples)
        first, *twice = [run for run in ran(checks) if run[0] is not None]
        assert first == (first_of_user, first_of_user, (0,))
        assert len(twice) == 2  # two runs alike tell columns that are others in each run
    with pytest.raises(BadInput, match=r"violates the invariant 'an upgrade' .* pass it to upgrade\(…\)"):
        JobCheck(options(first_of_user), as_batch(), Variation(RUN)).replay(saved)


def test_an_upgrade_has_the_notes_on_the_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_check, "notes_on", lambda judge: ["Note (rows wait): x"])
    assert upgrades(copy, copy).report(20, ()).notes == ["Note (rows wait): x"]
    refused = UpgradeRefused("violated", job="copy", cause="c")
    refused.notes = ["Note (rows wait): x"]
    assert [*refused.checked.notes] == ["Note (rows wait): x"]


def test_a_report_has_the_fewest_histories_and_how_values_were_compared() -> None:
    three, checks = Equality(3), upgrades(copy, copy, equality=Equality(3), out_of_order="1 minute")
    assert not checks.oracle.takes_late
    assert upgrades(copy, copy).oracle.takes_late
    for number, check in enumerate(checks.checks):
        made = check.check(20)
        check.check = lambda count, made=made, number=number: replace(made, laws={"it": 20 - number})  # type: ignore[method-assign,misc]
    report = checks.report(20, ())
    assert (report.histories, report.equality) == (18, three)
    assert "continues from the checkpoint of copy" in report.says
    assert "on 18 histories." in report.says
    *_, of_inputs, of_sources = report.not_checked
    assert of_inputs.startswith("null event times, in at of clicks")
    assert of_sources.startswith("the offsets of the job's own sources")


@pytest.mark.parametrize(
    ("cause", "said"),
    [
        ("Existing key_schema=struct", "a stateful operator must keep the schema of its state"),
        ("[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA]", "stateful operators can't be added"),
        ("There are [1] sources in the checkpoint offsets and now", "the number of sources, and their order"),
        ("Wrong basePath /a for the root path", "the number of sources, and their order"),
        ("no such thing", ""),
    ],
)
def test_a_refusal_has_the_sentence_of_spark_s_guide_on_its_cause(cause: str, said: str) -> None:
    class Refusing(UpgradedRunner):
        def run(self, *given: Any, **more: Any) -> QueryOutput:
            if self.earlier is not None:
                refusal = NotContinued("the query failed")
                refusal.cause = cause
                raise refusal
            return super().run(*given, **more)

    with pytest.raises(UpgradeRefused) as raised:
        upgrades(copy, doubled, runner=Refusing).report(20, ())
    guide = [line for line in str(raised.value).splitlines() if line.startswith("Spark's guide, section *Recovery")]
    assert [said in line for line in guide] == [True] * bool(said)
    assert raised.value.cause == (cause if "basePath" not in cause else OTHER_FILES)


SOURCES = Plan(sources=(("user",), ("who",)))


@pytest.mark.parametrize(
    ("old", "new", "is_without"),
    [
        (SOURCES, SOURCES, False),
        (SOURCES, Plan(sources=(("user",), ("user",))), True),
        (SOURCES, Plan(sources=(("user",),)), True),
    ],
)
def test_versions_with_other_sources_run_without_the_check_s_clock(old: Plan, new: Plan, is_without: bool) -> None:
    class Reading(UpgradedRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            return Declared(plan=old if self.job is doubled else new)

    checks = upgrades(doubled, copy, runner=Reading)
    assert {check.without_clock for check in checks.checks} == {is_without}
    assert {bool(one.clock) for one in checks.checks[0].draws.draw(9)} == {not is_without}
    told = "rows of the history move the watermark"
    assert (told in " ".join(checks._not_checked())) == is_without


def test_the_earlier_version_runs_under_its_own_mode_and_settings_and_its_state_is_repartitioned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Any] = []
    declared: list[Any] = []

    class Noting(UpgradedRunner):
        def declare(self, run: RunOptions = PLAIN) -> Declared:
            declared.append((self.job, dict(run.settings)))
            return Declared()

    def report(self: Upgrades, histories: int, examples: Any) -> None:
        made.append((self.earlier, histories, examples))

    monkeypatch.setattr(Upgrades, "report", report)
    given = options(copy, Noting, run=replace(RUN, settings={"spark.a": "1", "spark.b": "1"}))
    old: Any = (doubled, "update", {"spark.b": "2"})
    check_upgrade(given, old, None, {"histories": 7, "examples": ["x"]}, None, 5)  # type: ignore[typeddict-item]
    check_upgrade(given, (doubled, None, None), None, {}, None, None)  # type: ignore[arg-type]
    ((first, *asked), (second, *defaults)) = made
    assert (first.mode, first.settings, first.repartition, asked) == ("update", {"spark.b": "2"}, 5, [7, ["x"]])
    assert (second.mode, second.settings, second.repartition, defaults) == ("append", {}, None, [HISTORIES, ()])
    of_old = [settings for job, settings in declared if job is doubled]
    assert of_old == [{"spark.a": "1", "spark.b": "2"}, {"spark.a": "1", "spark.b": "1"}]
    with pytest.raises(BadInput, match="the earlier version and the new version are a Sink and a function"):
        check_upgrade(given, (Sink(copy, copy), None, None), None, {}, None, None)  # type: ignore[arg-type]


def test_a_function_of_both_outputs_is_given_the_batches_after_the_first_stop_alone() -> None:
    seen: list[tuple[int, int]] = []

    def noting(old: Batches, new: Batches) -> Batches:
        seen.append((len(old), len(new)))
        return new

    run = replace(RUN, trigger="available_now")
    oracle = BothOracle(noting, Earlier(copy), copy)  # type: ignore[arg-type]
    given = options(copy, UpgradedRunner, run=run)
    witness = RowsWitness(replace(given.runner, earlier=Earlier(copy)), given.inputs)  # type: ignore[arg-type]
    (history,) = upgrades(copy, copy, run=run).checks[0].draws.draw(1)
    last = len(history.batches)
    for stops, left in (((0, 2), last - 1), ((2, 1), last - 2)):
        seen.clear()
        (expected,) = oracle.beside(witness).expected([history], witness.sources, replace(run, stop_after=stops))
        assert seen == [(left, left)]
        assert expected.rows[: last - left] == [[]] * (last - left)


def test_the_earlier_version_runs_from_the_start_under_its_own_mode_and_settings() -> None:
    ran: list[tuple[Any, str, dict[str, str]]] = []

    class Noting(MemoryRunner):
        def run(self, batches: Any, clock: Any = (), run: RunOptions = PLAIN, times_ms: Any = ()) -> QueryOutput:
            ran.append((self.job, run.mode, {**run.settings}))
            return super().run(batches, clock, run)

    def second(old: Batches, new: Batches) -> Batches:
        return new

    run = replace(RUN, settings={"spark.a": "1", "spark.b": "1"}, stop_after=(0,))
    oracle = BothOracle(second, Earlier(doubled, "update", {"spark.b": "2"}), copy)  # type: ignore[arg-type]
    given = options(copy, Noting, run=run)
    witness = RowsWitness(given.runner, given.inputs)
    (history,) = upgrades(copy, copy).checks[0].draws.draw(1)
    oracle.beside(witness).expected([history], witness.sources, run)
    assert ran == [
        (doubled, "update", {"spark.a": "1", "spark.b": "2"}),
        (copy, "append", {"spark.a": "1", "spark.b": "1"}),
    ]


def test_versions_of_a_sink_run_without_the_check_s_clock_though_their_sources_are_the_same() -> None:
    made = options(copy)
    of_sinks = replace(made, runner=replace(made.runner, job=Sink(copy, copy)))
    for given, old, is_without in ((of_sinks, Sink(doubled, doubled), True), (made, doubled, False)):
        checks = Upgrades(given, Earlier(old), None).checks
        assert {check.without_clock for check in checks} == {is_without}


def test_a_refusal_says_whatever_arrives_if_neither_a_history_nor_a_stop_is_named() -> None:
    checks = upgrades(copy, doubled)
    check = checks.checks[0]
    for failing, stopped, is_said in ((None, "", True), (None, "It stopped", False), (JobHistory(((),)), "", False)):
        refused = check.failure(not_continued(), failing, Variation(RUN), stopped)
        assert isinstance(refused, UpgradeRefused)
        assert (", whatever arrives: the state is of another form" in str(refused)) == is_said
        assert ("\nIt stopped." in str(refused)) == bool(stopped)


@dataclass(frozen=True)
class Declaring(UpgradedRunner):
    """It notes the settings under which it declares a job."""

    on: Any = None
    settings: list[Mapping[str, str]] = field(default_factory=list)

    def declare(self, run: RunOptions, *given: Any) -> Any:
        self.settings.append(run.settings)


def test_the_earlier_version_s_own_settings_go_before_those_of_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrade, "mode_of", lambda old: "append")
    given = options(copy, Declaring, run=replace(RUN, settings={"a": "of the check", "b": "of the check"}))
    old = Script(lambda: None, {"clicks": CLICKS})
    old.found.settings = {"a": "of the script", "c": "of the script"}
    earlier = upgrade._earlier(old, given, None, {"a": "its own"}, None)
    assert isinstance(given.runner, Declaring)
    assert given.runner.settings == [{"a": "its own", "b": "of the check"}]
    assert (earlier.mode, earlier.settings) == ("append", {"a": "its own", "c": "of the script"})
    for named in ("update", None):
        assert upgrade._earlier(old, given, named, None, None).mode == (named or "append")
        assert upgrade._earlier(copy, given, named, None, None).mode == (named or given.run.mode)
