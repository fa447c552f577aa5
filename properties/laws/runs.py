"""What laws judge: a sample of histories, the run of a cohort of it, and each subject's share of that run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, TypeAlias

from ...reference.core.history import History
from ...reference.core.play import Played, play
from ..generators.cohorts import Cohort, one_cohort
from ..generators.coverage import covered_by
from ..registration.key_space import owner
from ..registration.registration import Registration
from ..witnesses.base import RunOptions
from ..witnesses.outcomes import Outcome
from ..witnesses.spark.query import StreamOutput
from ..witnesses.spark.witness import QueryWitness
from .case import Case

MANY = 200
"""A cohort of more histories than this spreads its keys over state groups."""
FINE_GROUPS = 1024
"""Over so many state groups their keys are spread: a key without a timer is served by those that share its group."""
PART = 5
"""A run again, with other options, is of one in so many histories of a sample."""

WitnessFor: TypeAlias = Callable[[Sequence[int]], QueryWitness]
"""Returns the witness of a cohort in which the subjects have so many histories each, one subject after the other."""


class Kind(Enum):
    """What a sample is for."""

    RANDOM = "random histories of a profile"
    WITHOUT_LATE_DATA = "histories of a profile in which nothing is late"
    RETENTION = "histories of a profile that is asked with a retention"
    NATIVE = "histories that Spark's own operator can serve"
    SCHEDULED = "histories with a schedule of delivery"
    COLUMNS = "histories in columns of other types"
    REFERENCE = "histories for the laws of the reference"


@dataclass(frozen=True)
class Variant:
    """A history made from another one of its sample, by a law that relates the outcomes of the two.

    Attributes:
        law: The law's name.
        index: The index of the original in the sample.
        case: The variant, and its original.
    """

    law: str
    index: int
    case: Case

    @property
    def changed(self) -> bool:
        """Whether the variant isn't the original itself."""
        return self.case.original is None or self.case.history.lines != self.case.original.lines


@dataclass(frozen=True)
class Sample:
    """Histories of one profile under one clock schedule, and what they are for.

    Attributes:
        registration: The operator.
        kind: What they are for.
        profile: The name of the profile.
        options: Its options, as far as they are those of the histories.
        histories: The histories, as they are run.
        covered: In how many of them each coverage goal was met.
        is_first: Whether it is of the operator's first profile, of which the runs with other options are asked.
        more: What the laws of its kind need to know besides: a retention (ms), settings of Spark.
    """

    registration: Registration
    kind: Kind
    profile: str
    options: Mapping[str, Any]
    histories: Sequence[History]
    covered: Counter[str] = field(default_factory=Counter)
    is_first: bool = False
    more: Any = None

    @cached_property
    def definition(self) -> Any:
        """What the options declare."""
        return self.registration.declare(self.options)

    @property
    def is_without_late_data(self) -> bool:
        """Whether nothing is late in its histories, whatever their order."""
        return self.kind is Kind.WITHOUT_LATE_DATA or (
            self.kind is Kind.RANDOM and not self.registration.by_clock(self.definition)
        )

    @property
    def bounds_state(self) -> bool:
        """Whether nothing of a history is left in the state once the clock has passed everything."""
        bounded = self.registration.bounded_state
        return self.kind is Kind.RANDOM and bounded is not None and bounded(self.definition)

    def goals(self, names: Sequence[str]) -> tuple[str, ...]:
        """Return the names of goals as those of this profile."""
        return tuple(f"{name} ({self.profile})" for name in names)

    def cover(self, counts: Mapping[str, int]) -> Counter[str]:
        """Return how often goals were met, as those of this profile."""
        return Counter({f"{name} ({self.profile})": count for name, count in counts.items() if count})


class CohortRun:
    """One query over a sample's histories and their variants, as often as there are subjects.

    Args:
        sample: The sample.
        variants: The variants, which travel behind the sample's histories.
        witness_for: Returns the witness for so many histories of each subject.
        subjects: How many subjects there are: one, or each mutant.
    """

    def __init__(self, sample: Sample, variants: Sequence[Variant], witness_for: WitnessFor, subjects: int = 1) -> None:
        self.sample, self.variants, self.witness_for, self.subjects = sample, variants, witness_for, subjects
        self.queries = 0
        self.each = [*sample.histories, *(variant.case.history for variant in variants)]
        options = RunOptions(read_state=sample.bounds_state or sample.kind is Kind.RETENTION)
        self.outcomes, self.output, self.cohort = self._run(self.each, options, self.is_fine)
        self._again: dict[RunOptions, tuple[int, list[Outcome], StreamOutput]] = {}

    @property
    def is_fine(self) -> bool:
        """Whether timers decide when something is emitted: then state groups are fine, so that a missing one shows."""
        sample = self.sample
        return sample.is_first or sample.options.get("emit") == "close"

    def _run(
        self, each: Sequence[History], options: RunOptions, is_fine: bool
    ) -> tuple[list[Outcome], StreamOutput, Cohort]:
        self.queries += 1
        cohort = one_cohort([history for _ in range(self.subjects) for history in each])
        if is_fine and self.sample.registration.has_timers and len(cohort.histories) > MANY:
            options = replace(options, state_groups=FINE_GROUPS)
        outcomes, output = self.witness_for([len(each)] * self.subjects).run(cohort, options)
        return outcomes, output, cohort

    @cached_property
    def leftover(self) -> list[list[str]]:
        """For each history of all subjects, its keys whose state is left at the end."""
        return leftover(self.output, len(self.cohort.histories))

    def again(self, options: RunOptions) -> tuple[int, list[Outcome], StreamOutput]:
        """Run a part of the sample's histories with other options, once for all laws that ask for it.

        Returns:
            How many histories of each subject that is, their outcomes, and what the query wrote.
        """
        if options not in self._again:
            count = len(self.sample.histories)
            part = count if self.subjects > 1 else max(1, count // PART)
            outcomes, output, _ = self._run(self.each[:part], options, self.is_fine)
            self._again[options] = part, outcomes, output
        return self._again[options]

    def shares(self) -> Iterator[Run]:
        """Yield each subject's share of the run."""
        played = [play(history) for history in self.each]  # all subjects are asked about the same histories
        for subject in range(self.subjects):
            yield Run(self, subject, played)


class ReferenceRun:
    """A sample's histories, and the reference's play of them."""

    def __init__(self, sample: Sample) -> None:
        self.sample, self.histories = sample, list(sample.histories)
        self.played = [play(history) for history in self.histories]

    @cached_property
    def covered(self) -> Counter[str]:
        """In how many histories each coverage goal was met; a neighbour's goal counts once."""
        return covered_by(self.histories, played=self.played)


class StagedRun:
    """A sample's histories, played message by message in the queries that an operator with channels has on Spark."""

    def __init__(self, sample: Sample, staged: Sequence[Any]) -> None:
        self.sample, self.histories, self.staged = sample, list(sample.histories), staged


class TypedRun:
    """A sample's histories, and what came out of them in the layout of columns that it is for."""

    def __init__(self, sample: Sample, outcomes: Sequence[Outcome]) -> None:
        self.sample, self.histories, self.outcomes = sample, list(sample.histories), outcomes


class Run:
    """One subject's share of a cohort's run: the histories, their outcomes, the reference's play of them."""

    def __init__(self, whole: CohortRun, subject: int, played: Sequence[Played]) -> None:
        self.whole, self.subject, self.played = whole, subject, played
        self.sample, self.histories, self.variants = whole.sample, whole.each, whole.variants
        self.outcomes: list[Outcome] = self.own(whole.outcomes, len(whole.each))

    def own(self, of_all: Sequence[Any], count: int) -> list[Any]:
        """Return the share of this subject in what there is of each history, `count` a subject."""
        return list(of_all[self.subject * count : (self.subject + 1) * count])

    @property
    def drawn(self) -> int:
        """How many of the histories were drawn; variants of them follow."""
        return len(self.sample.histories)

    @cached_property
    def leftover(self) -> list[list[str]]:
        """For each history, its keys whose state is left at the end."""
        return self.own(self.whole.leftover, len(self.histories))

    def again(self, options: RunOptions) -> tuple[list[Outcome], StreamOutput, int]:
        """Run a part of the histories with other options.

        Returns:
            Their outcomes, what the query wrote, and the index of this subject's first history in that.
        """
        part, outcomes, output = self.whole.again(options)
        return self.own(outcomes, part), output, self.subject * part


def leftover(
    output: StreamOutput, count: int, is_left: Callable[[Mapping[str, Any]], bool] = lambda group: True
) -> list[list[str]]:
    """Return for each of `count` histories its keys whose state is left at the end.

    Args:
        output: What the query wrote, and its state.
        count: How many histories the cohort has.
        is_left: Whether what is left of a key counts; all does by default.
    """
    keys: list[list[str]] = [[] for _ in range(count)]
    for row in output.leftover:
        for group in row["value"]["keys"]:  # type: ignore[index]
            if is_left(group) and (owned := owner(group["key_0"])) is not None:
                keys[owned[0]].append(owned[1])
    return keys
