"""The judge, over a runner that does what the reference of some plan says, in place of Spark."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from streamproof.properties.checking.fuzzing import divergences
from streamproof.properties.checking.fuzzing.cases import PlanCase
from streamproof.properties.checking.fuzzing.corpus import CORPUS
from streamproof.properties.checking.fuzzing.divergences import EXCLUDED_RULES
from streamproof.properties.checking.fuzzing.judging import Finding, PlanJudge
from streamproof.properties.checking.fuzzing.relations import SETTINGS, relations
from streamproof.properties.generators.plans.drawing import Query, draw_query
from streamproof.properties.generators.plans.rows import draw_rows
from streamproof.properties.witnesses.plans.running import HowRun, Ran, Refused
from streamproof.properties.witnesses.spark.failures import TOO_BUSY
from streamproof.reference.spark.execution import Execution
from streamproof.reference.spark.plans import Aggregation, Node, WithWatermark, pruned, rebuilt, with_joins
from streamproof.reference.spark.session_windows import SessionAggregation

Planned = Callable[[Query, HowRun], Node]


class Runner:
    """Runs a query as the reference runs the plan that `planned` returns for it."""

    def __init__(self, planned: Planned) -> None:
        self.planned, self.lost = planned, False

    def rows(self, batches: Any) -> Any:
        return batches

    def run(self, query: Query, batches: Any, how: HowRun) -> Ran:
        done = Execution(self.planned(query, how), policy=query.policy, without_data=query.without_data).run(batches)
        emitted: list[list[Any]] = [[] for _ in batches]
        for one in done:
            emitted[one.batch] = [*(emitted[one.batch] if query.mode != "complete" else []), *one.rows]
        if query.mode == "complete":
            for number, batch in enumerate(batches):
                emitted[number] = emitted[number] if batch or not number else emitted[number - 1]
        return Ran(emitted, [(one.has_data, one.watermark_ms) for one in done])

    def as_batch(self, query: Query, batches: Any, how: HowRun) -> list[Any]:
        rows = [row for batch in self.run(query, batches, how).batches for row in batch]
        return rows[1:] if self.lost else rows


def as_written(query: Query, how: HowRun) -> Node:
    return query.plan


def judged(query: Query, runner: Runner, seed: str = "0", late: bool = True) -> list[Finding]:
    generator = random.Random(seed)
    drawn = draw_rows(generator, query, 20)
    case = PlanCase(query, drawn.batches, nothing_late=not late)
    return [*PlanJudge(runner).judge(case, [*relations(generator, case)])]  # type: ignore[arg-type]


@pytest.mark.parametrize("seed", [str(seed) for seed in range(40)])
def test_of_a_query_that_runs_as_it_is_written_no_relation_finds_anything(seed: str) -> None:
    query = draw_query(random.Random(seed))
    if PlanCase(query, ()).columns is not None:
        assert judged(query, Runner(as_written), seed) == []


@pytest.mark.parametrize("name", ["rocksdb", "three partitions", "code generation"])
def test_a_setting_that_changes_rows_is_found_by_its_relation(name: str) -> None:
    query, other = CORPUS["windows above windows"], CORPUS["sessions above a union"].plan.inputs[0].inputs[0]

    def planned(asked: Query, how: HowRun) -> Node:
        return other if {*SETTINGS[name].items()} <= {*how.settings.items()} else asked.plan

    found = judged(query, Runner(planned))
    assert name in {one.relation.name for one in found}
    assert {one.named for one in found} == {()}


def test_rows_that_the_batch_query_lacks_are_found() -> None:
    runner = Runner(as_written)
    runner.lost = True
    assert [one.relation.name for one in judged(CORPUS["windows above windows"], runner, late=False)] == ["batch"]


@pytest.mark.parametrize(
    ("name", "time_us", "batch"),
    [
        ("windows above windows", None, True),
        ("left join", None, False),
        ("groups above sessions", None, False),
        ("groups above sessions", 7_000, True),
        ("groups above sessions", 7_001, False),
    ],
)
def test_rows_that_a_stream_keeps_or_loses_by_its_own_rules_are_not_judged_by_the_batch_query(
    name: str, time_us: int | None, batch: bool
) -> None:
    rows = [{"h": 0, "k": "a", "ts": time_us, "v": 1}]
    closing = [{"h": -1, "k": "a", "ts": time * 10**12, "v": 1} for time in (1, 2)]
    batches = ({"a": rows, "b": rows}, *({"a": [row], "b": [row]} for row in closing))
    case = PlanCase(CORPUS[name], batches, nothing_late=True)
    judge = PlanJudge(Runner(as_written))  # type: ignore[arg-type]
    assert [*judge.judge(case, [])] == []
    assert judge.runs["batch"] == batch


def test_null_keys_that_the_excluded_rules_join_do_not_hide_the_filter_below_the_watermark() -> None:
    def lagging(node: Node) -> Node:
        return replace(node, delay_us=node.delay_us + 7_000_000) if isinstance(node, WithWatermark) else node

    def planned(query: Query, how: HowRun) -> Node:
        excluded = "InferFiltersFromConstraints" in how.settings.get(EXCLUDED_RULES, "")
        return with_joins(query.plan, null_keys=True) if excluded else rebuilt(query.plan, lagging)

    found = [one for seed in "0123" for one in judged(CORPUS["windows above a join"], Runner(planned), seed)]
    assert {one.name for each in found if each.relation.name == "reference" for one in each.named} == {
        "filter below the watermark"
    }
    assert all(each.named for each in found if each.relation.name == "reference")


def test_times_forgotten_at_a_restart_have_a_name() -> None:
    class Forgetting(Runner):
        def run(self, query: Query, batches: Any, how: HowRun) -> Ran:
            starts = PlanCase(query, (), how).starts
            done = Execution(query.plan, policy=query.policy, without_data=query.without_data, starts=starts).run(
                batches
            )
            emitted: list[list[Any]] = [[] for _ in batches]
            for one in done:
                emitted[one.batch] += one.rows
            return Ran(emitted, [(one.has_data, one.watermark_ms) for one in done])

    found = [one for seed in "0123456" for one in judged(CORPUS["windows above a join"], Forgetting(as_written), seed)]
    assert {(one.relation.name, *(named.name for named in one.named)) for one in found} <= {
        ("restarts", "times forgotten at a restart"),
        ("deaths", "times forgotten at a restart"),
    }
    assert found


def test_a_query_that_loses_rows_where_it_dies_is_found() -> None:
    class Losing(Runner):
        def run(self, query: Query, batches: Any, how: HowRun) -> Ran:
            ran = super().run(query, batches, how)
            return ran._replace(batches=[[] if at in how.deaths else rows for at, rows in enumerate(ran.batches)])

    found = [one for seed in "012" for one in judged(CORPUS["windows above windows"], Losing(as_written), seed)]
    assert {one.relation.name for one in found} == {"deaths"}


def test_a_reading_names_what_it_explains() -> None:
    runner = Runner(lambda query, how: pruned(query.plan))
    found = [one for seed in "0123" for one in judged(CORPUS["no time above a deduplication"], runner, seed)]
    assert {name.name for one in found for name in one.named} == {"event time pruned"}


def test_rules_name_a_difference_only_if_the_rows_are_right_without_them() -> None:
    query, other = CORPUS["groups above sessions"], CORPUS["deduplication above windows"].plan

    def planned(asked: Query, how: HowRun, rule: str) -> Node:
        return asked.plan if rule in how.settings.get(EXCLUDED_RULES, "") else other

    for rule, named in (("RemoveRedundantAggregates", {"session windows removed"}), ("None", set())):
        runner = Runner(lambda asked, how, rule=rule: planned(asked, how, rule))  # type: ignore[misc]
        found = judged(Query(query.plan), runner)
        assert {one.name for each in found if each.relation.name == "reference" for one in each.named} == named


@pytest.mark.parametrize(("rule", "named"), [("PushDownPredicates", {"filter below the watermark"}), ("None", set())])
def test_a_watermark_that_lags_has_a_name_only_if_it_does_not_without_the_rules(rule: str, named: set[str]) -> None:
    def lagging(node: Node) -> Node:
        return replace(node, delay_us=node.delay_us + 7_000_000) if isinstance(node, WithWatermark) else node

    def planned(query: Query, how: HowRun) -> Node:
        return query.plan if rule in how.settings.get(EXCLUDED_RULES, "") else rebuilt(query.plan, lagging)

    found = [one for one in judged(CORPUS["filter after windows"], Runner(planned)) if one.relation.name == "reference"]
    assert [{one.name for one in each.named} for each in found] == [named]


def test_sessions_merged_early_have_a_name_where_the_setting_is_on() -> None:
    def planned(asked: Query, how: HowRun) -> Node:
        is_on = {*SETTINGS["sessions merged early"].items()} <= {*how.settings.items()}
        return rebuilt(asked.plan, early) if is_on else asked.plan

    def early(node: Node) -> Node:
        is_session = isinstance(node, Aggregation) and isinstance(node.by, SessionAggregation)
        return replace(node, by=replace(node.by, merges_early=True)) if is_session else node  # type: ignore[attr-defined, call-arg]

    found = [one for seed in "0123" for one in judged(CORPUS["sessions"], Runner(planned), seed)]
    assert {(one.relation.name, *(named.name for named in one.named)) for one in found} == {
        ("sessions merged early", "late rows in sessions merged early")
    }


@pytest.mark.parametrize(("rule", "named"), [("PropagateEmptyRelation", ["zero for null"]), ("ColumnPruning", [])])
def test_the_death_of_a_started_query_is_a_finding_named_by_the_rules_without_which_it_runs(
    rule: str, named: list[str]
) -> None:
    class Dying(Runner):
        def run(self, query: Query, batches: Any, how: HowRun) -> Ran:
            if rule not in how.settings.get(EXCLUDED_RULES, ""):
                raise Refused(StreamingQueryException("Query terminated with exception: a file does not exist"))
            return super().run(query, batches, how)

    found = judged(CORPUS["windows above windows"], Dying(as_written))
    assert [(one.error, [each.name for each in one.named]) for one in found] == [("a file does not exist", named)]


def test_a_busy_machine_without_a_python_worker_is_no_difference() -> None:
    class Busy(Runner):
        def run(self, query: Query, batches: Any, how: HowRun) -> Ran:
            raise Refused(StreamingQueryException(f"terminated with exception: {TOO_BUSY}."))

    assert judged(CORPUS["a processor above a join"], Busy(as_written)) == []


def test_a_divergence_of_past_releases_names_nothing_on_a_later_one(monkeypatch: pytest.MonkeyPatch) -> None:
    other = CORPUS["deduplication above windows"].plan
    runner = Runner(lambda query, how: query.plan if "PruneFilters" in how.settings.get(EXCLUDED_RULES, "") else other)
    names = []
    for version in ("3.5.3", "3.5.4"):
        monkeypatch.setattr(divergences, "installed", lambda package, version=version: version)
        found = judged(CORPUS["windows above windows"], runner)
        names.append([one.name for each in found if each.relation.name == "reference" for one in each.named])
    assert names == [["plan below a false filter removed"], []]


@pytest.mark.parametrize(
    ("said", "named"),
    [
        ("PLAN_VALIDATION_FAILED: PushDownLeftSemiAntiJoin", ["semi join above a union"]),
        ("INTERNAL_ERROR of another kind", []),
        ("STREAMING_OUTPUT_MODE", None),
    ],
)
def test_an_internal_error_is_a_finding_named_by_its_text_and_a_refusal_is_none(
    said: str, named: list[str] | None
) -> None:
    class Refusing(Runner):
        def run(self, query: Query, batches: Any, how: HowRun) -> Ran:
            raise Refused(ValueError(said))

    found = judged(CORPUS["windows above windows"], Refusing(as_written))
    assert [[one.name for one in each.named] for each in found] == ([] if named is None else [named])
    assert {one.relation.name for one in found} <= {"refused"}
