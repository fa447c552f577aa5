"""The input of laws: samples of histories, the queries that run them, and the outcomes for each tested subject."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import Any

from ...reference.core.history import History
from ...reference.core.play import Played, play
from ..generators.cohorts import one_cohort
from ..generators.coverage import EMITTED, count_goals_met, covered_by, emitted
from ..generators.options import met_by
from ..outcomes.outcomes import Outcome
from ..registration.registration import Registration
from ..witnesses.duckdb.witness import DuckDBWitness
from ..witnesses.run_options import ALONE, RunOptions
from ..witnesses.spark.answers import Answers, StoredState
from ..witnesses.spark.shared import Play, can_share, run_shared
from ..witnesses.spark.typed import TypedAnswer
from ..witnesses.spark.witness import SPARK, QueryWitness, SparkWitness
from .case import Case
from .causes import played_with_causes

PART = 5
"""The share of a sample's histories that run a second time with other options: 1 in `PART`."""


class Kind(Enum):
    """The purpose of a sample's histories, which determines the laws that judge them."""

    RANDOM = "random histories of a profile"
    WITHOUT_LATE_DATA = "histories of a profile without late data"
    RETENTION = "histories of a profile that run with a retention"
    NATIVE = "histories that Spark's own operator can run"
    SCHEDULED = "histories with a schedule of delivery"
    COLUMNS = "histories in columns of other types"
    REFERENCE = "histories for the laws of the reference"
    DEFINITIONS = "histories of drawn definitions, values and keys for the laws of the reference"
    IN_TIME = "histories without late data for the laws of the reference"


@dataclass(frozen=True)
class Variant:
    """A history that a law derives from another history of its sample, to compare their outcomes.

    Attributes:
        law: The law's name.
        index: The index of the original history in the sample.
        case: The variant, with its original history.
    """

    law: str
    index: int
    case: Case

    @property
    def changed(self) -> bool:
        """Whether the variant differs from the original."""
        return self.case.original is None or self.case.history.lines != self.case.original.lines


@dataclass(frozen=True)
class Sample:
    """Histories of one profile with the same clock schedule, and their purpose.

    Attributes:
        registration: The operator.
        kind: The purpose of the histories.
        profile: The name of the profile.
        options: The profile's options that all histories share.
        histories: The histories to run.
        covered: The number of histories that meet each coverage goal.
        is_first: Whether some of the histories also run alone and, if the operator shares no queries, a second time.
        is_pooled: Whether the definition is random; the coverage goals of a random definition belong to the operator.
        is_emptied: Whether some of the histories end with the deletion of all rows of their tables.
        ways: The options of the second runs for each law; all histories of a pool have the same second runs.
        more: Data for the laws that judge this kind of sample: a retention (ms), Spark's settings, or the goals that a
            pool's clock meets.
    """

    registration: Registration
    kind: Kind
    profile: str
    options: Mapping[str, Any]
    histories: Sequence[History]
    covered: Counter[str] = field(default_factory=Counter)
    is_first: bool = False
    is_pooled: bool = False
    is_emptied: bool = False
    ways: Mapping[str, Sequence[RunOptions]] = field(default_factory=dict)
    more: Any = None

    @cached_property
    def definition(self) -> Any:
        """The operator's definition with the sample's options."""
        return self.registration.declare(self.options)

    def is_without_late_data(self, history: History) -> bool:
        """Return whether no record of the sample's histories can be late, in any order."""
        if self.kind in (Kind.WITHOUT_LATE_DATA, Kind.IN_TIME):
            return True
        return not self.registration.by_clock(self.declared(history))

    def declared(self, history: History) -> Any:
        """Return the definition of a history of the sample."""
        is_shared = self.kind is not Kind.DEFINITIONS and self.options == history.options
        return self.definition if is_shared else self.registration.declare(history.options)

    @property
    def bounds_state(self) -> bool:
        """Return whether a history's state is empty once the clock is past all retentions."""
        return self.kind is Kind.RANDOM and self.registration.bounds_state(self.definition)

    def goals(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return names of goals, extended by the profile's name, or by the operator's name if the definition is
        random.
        """
        return tuple(names) if self.is_pooled else tuple(f"{name} ({self.profile})" for name in names)

    def cover(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return the counts of met goals, with the names as in `goals`."""
        if self.is_pooled:
            return Counter({name: count for name, count in counts.items() if count})
        return Counter({f"{name} ({self.profile})": count for name, count in counts.items() if count})


class CohortRun:
    """A sample's histories and variants; each subject (an operator or a mutant) runs them in queries that the samples
    of a pool share.

    Args:
        sample: The sample.
        variants: The variants of histories; they follow the sample's histories in the query.
        witnesses: The witness of each subject: of the operator's own implementation, or of a mutant.
    """

    def __init__(
        self, sample: Sample, variants: Sequence[Variant] = (), witnesses: Sequence[QueryWitness] = (SPARK,)
    ) -> None:
        self.sample, self.variants, self.witnesses = sample, variants, witnesses
        self.each = [*sample.histories, *(variant.case.history for variant in variants)]
        self.pool = Pool([self])
        self._alone: dict[int, Future[Outcome]] = {}

    @cached_property
    def played_with_causes(self) -> list[tuple[Played, list[int | None]]]:
        """The reference's run of each history, with the cause of each output; all subjects run the same histories."""
        return [played_with_causes(history) for history in self.each]

    @cached_property
    def played(self) -> list[Played]:
        """The reference's run of each history."""
        return [played for played, _ in self.played_with_causes]

    @cached_property
    def covered(self) -> Counter[str]:
        """The number of drawn histories that met each coverage goal."""
        sample = self.sample
        if not sample.is_pooled:
            return sample.covered
        played = self.played[: len(sample.histories)]
        found = count_goals_met(sample.histories, played)
        found[EMITTED] = sum(bool(emitted(one)) for one in played)
        of_all = {*met_by(sample.registration, sample.options), *(sample.more or ())}
        return found + Counter(dict.fromkeys(of_all, len(played)))

    def part(self, options: RunOptions) -> list[History]:
        """Return the histories that run with these options; in a second run, return only the first histories."""
        if not options.is_rerun:
            return self.each
        count = len(self.sample.histories)
        return self.each[: count if len(self.witnesses) > 1 else max(1, count // PART)]

    @cached_property
    def runs_alone(self) -> int:
        """The index of the drawn history that also runs alone: the history with the largest output in the reference."""
        return max(range(len(self.sample.histories)), key=lambda index: len(self.played[index].entries))

    def alone(self, subject: int) -> Outcome:
        """Return a subject's outcome of the history `runs_alone`, from a query with only this history."""
        prepared = self._alone.get(subject)
        return self._run_alone(subject) if prepared is None else prepared.result()

    def prepare_alone(self, executor: Executor) -> None:
        """Start running a history alone for each subject, in other threads."""
        self._alone = {subject: executor.submit(self._run_alone, subject) for subject in range(len(self.witnesses))}

    def _run_alone(self, subject: int) -> Outcome:
        (outcome,), _ = self.witnesses[subject].run(one_cohort([self.each[self.runs_alone]]), ALONE)
        self.pool.count(1)
        return outcome

    def shares(self) -> Iterator[Run]:
        """Yield the run of each subject."""
        for subject in range(len(self.witnesses)):
            yield Run(self, subject)


class Pool:
    """Samples that share queries, and their outcomes for each set of run options.

    Args:
        members: The runs of the samples, with their variants and subjects.
    """

    def __init__(self, members: Sequence[CohortRun]) -> None:
        self.members: Sequence[CohortRun] = members
        self._queries: list[int] = []
        self._answers: dict[RunOptions, dict[int, Answers]] = {}
        self._by_duckdb: dict[int, list[Outcome]] = {}
        self._prepared: dict[RunOptions, Future[dict[int, Answers]]] = {}
        for member in members:
            member.pool = self

    @property
    def queries(self) -> int:
        """The number of queries that ran so far."""
        return sum(self._queries)

    def count(self, queries: int) -> None:
        """Add a number of queries to the count; threads may call this method concurrently."""
        self._queries.append(queries)

    def prepare(self, ways: Sequence[RunOptions], executor: Executor) -> None:
        """Start running the histories with several run options, in other threads."""
        self._prepared = {options: executor.submit(self._run, options) for options in ways}

    def let_go(self) -> None:
        """Drop the pool's references to its runs, so that Python frees their outcomes without waiting for a garbage
        collection.
        """
        self.members = ()
        self._answers.clear()

    @property
    def plain(self) -> RunOptions:
        """The options of the histories' first run."""
        samples = [one.sample for one in self.members]
        reads = any(one.bounds_state or one.is_emptied or one.kind is Kind.RETENTION for one in samples)
        return RunOptions(read_state=reads)

    def answers(self, member: CohortRun, options: RunOptions | None = None) -> Answers:
        """Return the outcomes of a sample's histories for each subject; queries run once for each set of options."""
        options = self.plain if options is None else options
        if options not in self._answers:
            prepared = self._prepared.get(options)
            self._answers[options] = self._run(options) if prepared is None else prepared.result()
        return self._answers[options][id(member)]

    def by_duckdb(self, member: CohortRun) -> list[Outcome]:
        """Return DuckDB's outcomes of a sample's drawn histories; one DuckDB query runs the histories of all
        samples.
        """
        if not self._by_duckdb:
            asked = [one for one in self.members if one.sample.kind is Kind.RANDOM and one.sample.registration.sql]
            outcomes = DuckDBWitness().evaluate([history for one in asked for history in one.sample.histories])
            start = 0
            for one in asked:
                count = len(one.sample.histories)
                self._by_duckdb[id(one)] = outcomes[start : start + count]
                start += count
        return self._by_duckdb[id(member)]

    def _run(self, options: RunOptions) -> dict[int, Answers]:
        found: dict[int, Answers] = {}
        plays: list[Play] = []
        starts: list[tuple[CohortRun, int, int]] = []
        for member in self.members:
            part = member.part(options)
            if all(isinstance(one, SparkWitness) for one in member.witnesses) and all(map(can_share, part)):
                starts.append((member, len(plays), len(part) * len(member.witnesses)))
                plays += [Play(history, one.logic) for one in member.witnesses for history in part]
            else:
                found[id(member)] = joined([one.answers(part, options) for one in member.witnesses])
                self.count(len(member.witnesses))
        if plays:
            together = run_shared(plays, options)
            self.count(together.queries)
            found |= {id(member): together.part(start, count) for member, start, count in starts}
        return found


def joined(of_subjects: Sequence[Answers]) -> Answers:
    """Concatenate the outcomes of several subjects, in order."""
    first = of_subjects[0]
    return Answers(
        [outcome for one in of_subjects for outcome in one.outcomes],
        [left for one in of_subjects for left in one.left],
        [keys for one in of_subjects for keys in one.rewritten],
        first.replayed,
        first.partitions,
    )


class ReferenceRun:
    """A sample's histories, and the reference's runs of these histories.

    Args:
        sample: The sample.
        variants: The variants of the histories.
    """

    def __init__(self, sample: Sample, variants: Sequence[Variant] = ()) -> None:
        self.sample, self.histories, self.variants = sample, list(sample.histories), variants
        self.played = [play(history) for history in self.histories]
        self.drawn = len(self.histories)

    @cached_property
    def outcomes(self) -> list[Outcome]:
        """The reference's outcome of each history, then of each variant, batch by batch."""
        varied = [variant.case.history for variant in self.variants]
        played = [*self.played, *map(play, varied)]
        return [Outcome.in_batches(one.name, own) for one, own in zip([*self.histories, *varied], played, strict=True)]

    @cached_property
    def covered(self) -> Counter[str]:
        """The number of histories that met each coverage goal; a goal of an off-by-one number of a profile counts
        once.
        """
        if self.sample.kind is Kind.REFERENCE:
            return covered_by(self.histories, played=self.played)
        found = count_goals_met(self.histories, self.played)
        for history in self.histories if self.sample.is_pooled else ():
            found.update(met_by(self.sample.registration, history.options))
        return found


class StagedRun:
    """A sample's histories, which run message by message in separate Spark queries that exchange messages."""

    def __init__(self, sample: Sample, staged: Sequence[Any]) -> None:
        self.sample, self.histories, self.staged = sample, list(sample.histories), staged


class TypedRun:
    """A sample's histories, and their outcomes in the sample's layout of columns."""

    def __init__(self, sample: Sample, answers: Sequence[TypedAnswer]) -> None:
        self.sample, self.histories, self.answers = sample, list(sample.histories), answers


class Run:
    """The results for one subject of a shared run: the histories, their outcomes, and the reference's runs."""

    def __init__(self, whole: CohortRun, subject: int) -> None:
        self.whole, self.subject, self.witness = whole, subject, whole.witnesses[subject]
        self.sample, self.histories, self.variants = whole.sample, whole.each, whole.variants
        self.played, self.causes = whole.played, [causes for _, causes in whole.played_with_causes]
        self.answers = self.again(whole.pool.plain)

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcome of each history."""
        return self.answers.outcomes

    @property
    def leftover(self) -> list[list[StoredState]]:
        """The state of each history's keys at the end."""
        return self.answers.left

    @property
    def drawn(self) -> int:
        """The number of drawn histories, which come before the variants."""
        return len(self.sample.histories)

    def again(self, options: RunOptions) -> Answers:
        """Return the outcomes of the first histories in a second run with other options, which all laws share."""
        count = len(self.whole.part(options))
        return self.whole.pool.answers(self.whole, options).part(self.subject * count, count)
