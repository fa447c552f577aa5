"""Judges a seed of the fuzzer: draws a case, compares its results, shrinks each difference, and writes a script for
each.

A separate process (`PySparkProcess`) judges each seed, because a random plan may crash Spark or never end.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from ....reference.core.errors import StreamproofError
from ....reference.spark.groups import Groups
from ....reference.spark.plans import Aggregation, Deduplication, Join, Limit, Node, Processing
from ....reference.spark.session_windows import SessionAggregation
from ....spark_impl.runtime.required import OLDEST
from ...generators.plans.drawing import Query, draw_query
from ...generators.plans.rows import draw_rows
from ...generators.plans.texts import processor, statements
from ...system.installed.requirements import installed, release
from ...system.installed.spark_versions import spark_version
from ...witnesses.job.other_pyspark import Start
from ...witnesses.plans.running import PlanRunner
from ...witnesses.spark.failures import MachineTooBusy
from .cases import PlanCase
from .chains import CHAINS, drawn_chain, judged_chain
from .corpus import ASKED, QUERIES, plan_of, silence_of
from .equivalences import EQUIVALENCES
from .judging import Finding, PlanJudge
from .relations import EQUIVALENCE, NAMES, Relation, relations
from .scripts import confirmed_script
from .shrinking import SECONDS, shrunk

NAMED_SECONDS = 40.0
"""The time limit (s) of shrinking a finding that a known divergence explains."""
CHAIN = "chain "
"""The beginning of the seeds of chains."""
_judge: PlanJudge | None = None


@dataclass(frozen=True)
class ReportedFinding:
    """A finding as plain data for the report.

    Attributes:
        seed: The seed of the case.
        relation: The violated relation.
        named: The names of the divergences that explain the finding.
        plan: The plan as PySpark statements.
        error: The error that ended the query; empty: the query ran.
        script: The script that shows the finding; empty: the finding wasn't shrunk.
        confirmed: Whether a run of the script shows the finding; None: the script wasn't run.
        seconds: The time from the run's start to the finding (s).
    """

    seed: str
    relation: str
    named: tuple[str, ...]
    plan: str
    error: str = ""
    script: str = ""
    confirmed: bool | None = None
    seconds: float = 0.0


@dataclass
class Judged:
    """The result of judging a seed.

    Attributes:
        seed: The seed.
        plan: The plan as PySpark statements; empty: Spark ran no plan.
        digest: A digest of the case's rows in the run with default options; empty: there was no such run.
        skipped: The reason why Spark didn't run the plan; empty: Spark ran it.
        pairs: The number of judged pairs of a plan and a history.
        runs: The number of checks of each relation.
        refusals: The number of plans that Spark refused, by Spark's error condition.
        pairs_of_operators: The pairs of stateful operators in the plan, the operator nearer to the input first.
        differences: The findings.
    """

    seed: str
    plan: str = ""
    digest: str = ""
    skipped: str = ""
    pairs: int = 0
    runs: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    pairs_of_operators: set[tuple[str, str]] = field(default_factory=set)
    differences: list[ReportedFinding] = field(default_factory=list)


@dataclass(frozen=True)
class Begin(Start):
    """The request to start a Spark session, to which the process replies with the version of PySpark."""

    def answer(self) -> str:
        """Start it."""
        judge_of_process()
        return installed("pyspark")


@dataclass(frozen=True)
class Seed:
    """The request to judge a seed.

    Attributes:
        seed: The seed: a whole number, or a seed of the corpus.
        histories: The number of histories.
        relations: The largest number of metamorphic relations to check, in addition to the reference and the batch
            query.
        only: The only metamorphic relation to check; empty: all relations.
        shows: The divergences that still need a script; an unexplained finding always gets a script.
        shrinks: Whether to write a script for each finding.
    """

    seed: str
    histories: int
    relations: int = 3
    only: str = ""
    shows: tuple[str, ...] = ()
    shrinks: bool = True

    def query(self, generator: random.Random) -> Query:
        """Return the seed's query: a query of the corpus, or a random query."""
        known = QUERIES.get(plan_of(self.seed))
        return known or draw_query(generator)

    @property
    def is_chain(self) -> bool:
        """Return whether the seed is the seed of a chain of streamproof's operators."""
        return self.seed.startswith(CHAIN)

    @property
    def plan(self) -> str:
        """The plan as PySpark statements, or the chain of operators as text."""
        if self.is_chain:
            return drawn_chain(self.seed, 0)[0].text
        return "\n".join(statements(self.query(random.Random(self.seed)).plan))

    def answer(self) -> Judged:
        """Judge it."""
        if self.is_chain:
            return self.chain()
        generator = random.Random(self.seed)
        query = self.query(generator)
        judged, plan = Judged(self.seed), plan_of(self.seed)
        drawn = draw_rows(generator, query, self.histories, silence_of(self.seed))
        case = PlanCase(query, drawn.batches, nothing_late=drawn.nothing_late)
        judged.skipped = _reason_to_skip(case, generator.random() < 0.8 and plan not in QUERIES)
        if not judged.skipped:
            known = EQUIVALENCE if plan in EQUIVALENCES else ASKED.get(plan, "")
            wanted = {self.only} if self.only else {known} if plan in QUERIES else {*NAMES}
            offered = [EQUIVALENCES[plan].relation] if plan in EQUIVALENCES else relations(generator, case)
            asked = [one for one in offered if one.name in wanted][: self.relations]
            self.judge(case, asked, judged)
        return judged

    def chain(self) -> Judged:
        """Judge a chain."""
        if spark_version() < release(OLDEST):
            return Judged(self.seed, skipped="this PySpark can't run our operators")
        chain, histories = drawn_chain(self.seed, self.histories)
        runner = judge_of_process().runner
        names = [link.operator for link in chain.links]
        judged = Judged(self.seed, chain.text, pairs=len(histories), runs=Counter({CHAINS: 1}))
        judged.pairs_of_operators = {*itertools.pairwise(names)}
        try:
            difference = judged_chain(chain, histories, runner.chain)
        except MachineTooBusy as error:
            return Judged(self.seed, skipped=error.message)
        except StreamproofError as error:
            judged.differences = [ReportedFinding(self.seed, CHAINS, (), chain.text, error.message)]
            return judged
        if difference:
            judged.differences = [ReportedFinding(self.seed, CHAINS, (), difference)]
        return judged

    def judge(self, case: PlanCase, asked: Sequence[Relation], judged: Judged) -> None:
        """Compare Spark's rows of the case with the expected rows, and record each difference."""
        judge = judge_of_process()
        judge.pairs, judge.runs, judge.refusals, judge.digest = 0, Counter(), Counter(), ""
        judged.plan = "\n".join(statements(case.query.plan))
        judged.pairs_of_operators = pairs_of_operators(case.query)
        shows = self.shows
        for finding in judge.judge(case, asked):
            names = tuple(sorted(one.name for one in finding.named))
            show = self.shrinks and (not names or names == shows)
            judged.differences.append(self.difference(judge, finding, names, show=show))
            shows = () if show else shows
        judged.pairs, judged.runs, judged.refusals, judged.digest = (
            judge.pairs,
            judge.runs,
            judge.refusals,
            judge.digest,
        )

    def difference(self, judge: PlanJudge, finding: Finding, names: tuple[str, ...], *, show: bool) -> ReportedFinding:
        """Return a finding as plain data, with a script if the finding needs one."""
        plan = "\n".join(statements(finding.case.query.plan))
        found = ReportedFinding(self.seed, finding.relation.name, names, plan, finding.error)
        if not show:
            return found
        script, confirmed = confirmed_script(shrunk(judge, finding, NAMED_SECONDS if names else SECONDS))
        return replace(found, script=script, confirmed=confirmed)


def _reason_to_skip(case: PlanCase, is_choosy: bool) -> str:
    """Return the reason to skip a case; the fuzzer skips most cases without a stateful operator or without a row."""
    if case.columns is None:
        return "its rows depend on an arbitrary choice of Spark"
    if processor(case.query.plan) and spark_version() < (4, 1):
        return "this PySpark has no row-based transformWithState"
    if is_choosy and not case.query.stateful:
        return "it has no stateful operator"
    return "it emits nothing" if is_choosy and not case.emits else ""


def judge_of_process() -> PlanJudge:
    """Return the judge of this process, which reuses one Spark session."""
    global _judge
    _judge = _judge or PlanJudge(PlanRunner())
    return _judge


def kind_of(node: Node) -> str:
    """Return the name of a stateful operator."""
    match node:
        case Aggregation(by=Groups()):
            return "groups"
        case Aggregation(by=SessionAggregation()):
            return "session windows"
        case Aggregation():
            return "windows"
        case Deduplication():
            return "deduplication within the watermark" if node.within_watermark else "deduplication"
        case Join():
            return f"{node.by.join.replace('_', ' ')} join"
        case Limit():
            return "limit"
        case Processing():
            return "transformWithState"
    return type(node).__name__.lower()


def pairs_of_operators(query: Query) -> set[tuple[str, str]]:
    """Return the pairs of stateful operators in which the second operator reads the output of the first, directly or
    indirectly.
    """
    return {
        (kind_of(below), kind_of(node))
        for node in query.stateful
        for side in node.inputs
        for below in side.walk()
        if below.is_stateful
    }
