"""The base class of all checks of jobs: draws histories, runs them, compares outputs, and shrinks a differing history.

A check with the verdict *conforms* returns a report. A check raises `Violated` for the smallest differing history
found, and `Inconclusive` if no history differs but coverage goals are unmet.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput, StreamproofError
from ...counterexamples.counterexample import Counterexample
from ...counterexamples.of_jobs import JobStore, counterexample_of, saved_histories
from ...generators.columns.formatting import shown_row
from ...generators.columns.histories.shrinking import size
from ...generators.columns.histories.standing_alone import without_clock
from ...generators.columns.key_spaces import ALONE, why_alone
from ...generators.columns.model import JobHistory, Source
from ...generators.columns.packing import UnreadableKey, with_own_keys
from ...generators.shrinking import Deadline
from ...laws.all import UPGRADE, saved_variation
from ...laws.expected.comparison import is_alike
from ...laws.expected.judging import Judge, Judgement
from ...laws.expected.oracle import Oracle
from ...laws.variation import Variation
from ...outcomes.outcomes import Difference
from ...system.progress import doing
from ...system.time_limit import seconds_left
from ...witnesses.job.plan.plans import delays_by_input
from ...witnesses.job.query.upgrades import NotContinued
from ...witnesses.job.running import Declared
from ...witnesses.job.witness import RowsWitness, TablesOfKeys, keyed_tables, why_unkeyed
from ...witnesses.run_options import OF_SINKS
from ...witnesses.spark.engine import TookTooLong
from ...witnesses.spark.failures import QueryFailed
from ..fuzzing.divergences import EXCLUDED_RULES, FILTERED_WATERMARK, divergence_named, sentences
from .arguments import CheckOptions
from .boundary_values import with_boundary_values
from .conclusion import inconclusive, limits, not_checked, notes_on, unmet_goals
from .draws import Draws, with_identities
from .failing import failing_history
from .reports import JobReport
from .smallest import deadline_of_shrinking, plainest, shrunk
from .verdicts import Inconclusive, Violated

MAX_ALONE_AGAIN = 3
"""The largest number of histories that run both in a shared query and alone, to detect histories that influence
others.
"""
BESIDE = "The job differs when the history runs alone, but not in a query with other histories."
OTHER_KEYS = (
    "If rows of other keys may change a result, as in a join or an aggregate by another column than the key, "
    "name that column as the Input's key, or give alone=True. If they may not, the job has a bug that no query "
    "over one key shows, such as a number rounded by other rows"
)
KEYED = f"{BESIDE} The job computes with the key, which has a prefix or another number in a shared query."
NO_ROWS = "the job emits no row for the rows of one history"
TWO_RUNS = "Two runs with default options differ too: the result depends on more than the rows."
STOPPED = "The search for the fewest rows that make it fail stopped after {:.0f} s, its limit"
MOST_TOGETHER = 6
"""The largest number of histories that run as one history if none of them differs alone."""
TRIED_ALONE = 2
"""The number of histories that run alone if the rows of all histories differ as one history."""
MAX_WITHOUT_CLOCK = 6
"""The number of histories that run without the check's clock if Spark moves a filter below a watermark of the job."""
OF_PRODUCTION = (
    "The job differs if only the history's own rows move the watermark, as in production. It agrees if the "
    "check's clock moves the watermark."
)
OTHER_MOMENTS = (
    "which rows are late, and when rows are emitted, if rows that the filter drops don't move the watermark, "
    "because this oracle expects only the final result; a rule of Spark's operators, a class, or a function "
    "with a clock expects rows by batch"
)
MAX_KEYS_ALONE = 4
"""The number of histories that run alone if a job computes with keys."""


class _Again(Exception):
    """Raised to restart the check without columns whose values vary between runs."""


class JobCheck:
    """A check of a job: draws histories, runs them, compares outputs, and shrinks a differing history.

    The methods raise `Violated` if the job differs on a history, and `Inconclusive` if coverage goals are unmet.

    Args:
        options: The options that all checks of the job share.
        oracle: The oracle of the expected output.
        variation: The run options of the job's queries.

    Raises:
        BadInput: The job's result lacks a column, or the oracle can't compute the job's expected output.
    """

    def __init__(self, options: CheckOptions, oracle: Oracle, variation: Variation) -> None:
        self.variation, self.depends_on_others, self.two_runs = variation, False, ""
        self.keeps_keys_apart = False
        declared = options.runner.declare(variation.run)
        self.options = options = with_boundary_values(with_identities(options, oracle), declared.plan, oracle)
        late = oracle.takes_late and variation.comparing != "end"  # no late rows if the batches vary
        self.why_alone = _why_alone(options, declared)
        keyed = {} if self.why_alone else keyed_tables(options.runner.sources, declared.tables)
        alone, renamed = bool(self.why_alone), declared.plan.renamed
        witness = RowsWitness(options.runner, options.inputs, options.seed, late, alone, keyed, renamed)
        self.judge = judge = self.judge_of(witness, oracle, declared)
        self.draws = Draws(options, judge.oracle, variation.run, declared.plan, late)
        self._refuse()
        folder = options.folder and options.folder / variation.saved.get("law", "").replace(" ", "-")
        self.store = JobStore(folder, witness.sources, job=judge.name, oracle=judge.oracle.name, seed=options.seed)

    def doing(self, step: str) -> None:
        """Report the name of the next step."""
        law = f", {self.variation.law}" if self.variation.law else ""
        doing(f"{self.judge.name}{law}: {step}")

    def judge_of(self, witness: RowsWitness, oracle: Oracle, declared: Declared) -> Judge:
        """Return the judge that compares the job with the oracle."""
        options = self.options
        return Judge(witness, oracle, declared, options.unique, options.equality, options.without)

    def _refuse(self) -> None:
        """Refuse column names that the result lacks, and a job for which the oracle can't compute the expected
        output.
        """
        declared, oracle, name = self.judge.declared, self.judge.oracle, self.judge.name
        known = list(dict.fromkeys([*declared.names, *declared.columns]))  # only a run shows a sink's columns
        unknown = [column for column in self.options.unique or () if known and column not in known]
        if unknown:
            raise BadInput(
                f"unique has {unknown[0]!r}, and the result of {name} has the columns {', '.join(known)}: name "
                "the columns that identify a row of the table"
            )
        self.judge.refuse_without(declared.names)
        inexact = sorted(declared.plan.inexact)
        if inexact and self.options.equality.digits is None:
            raise BadInput(
                f"digits=None compares all digits, and the last digits of {inexact[0]} in {name} depend on the "
                "order in which Spark reads the rows: leave digits= out, or give a number of digits"
            )
        derived = self.options.runner.derived_time(declared.plan)
        if derived not in (None, oracle.derived_clock) and not self.draws.closes and oracle.follows_clock:
            raise BadInput(
                f"{name} has its watermark on {derived!r}, which it computes from other columns, and "
                f"{oracle.name} uses the event time of the input: declare the time as the source has it, such as "
                'Input(…, format="kafka") or time_format="ms", or expect sql(…), as_batch(), another job, '
                "or a function without a clock"
            )
        reason = oracle.refuses(declared.plan, self.variation.run)
        if reason is not None:
            raise BadInput(reason)

    def run_each_alone(self, why: str, *, keys_apart: bool = False) -> None:
        """Run each history in its own query from now on.

        Args:
            why: Why.
            keys_apart: Whether each history's keys stay separate when the rows of all histories run as one history.
        """
        self.judge, self.why_alone, self.keeps_keys_apart = self.judge.each_alone(), why, keys_apart

    def replay(self, examples: Sequence[str | Path]) -> None:
        """Run the examples and the saved counterexamples, before histories are drawn.

        Raises:
            BadInput: An example or a counterexample is unreadable.
        """
        __tracebackhide__ = True
        histories = saved_histories(examples, self.store.folder, self.judge.witness.sources)
        replayed: list[tuple[JobHistory, Variation]] = []
        for history in histories:
            run = self.variation.run
            variation = saved_variation(run, history.variation) if history.variation else self.variation
            if variation.law and not self.variation.law:
                check = "upgrade" if variation.law == UPGRADE.of_jobs else "invariants"
                raise BadInput(
                    f"the history {history.name} violates the invariant {variation.law!r} with its own run "
                    f"options: pass it to {check}(…), as examples=, or remove its variation"
                )
            if variation.law == self.variation.law:
                replayed.append((history, variation))
        failing: list[tuple[JobHistory, Variation, Judgement]] = []
        for history, variation in replayed:
            self.doing(f"running {history.name}, an example or saved counterexample")
            with self.named_failure([history], variation):
                compared = self.judge.compare_alone(history, variation)
                if compared.differs and self.leaves_out_columns(history, variation):
                    compared = self.judge.compare_alone(history, variation)
            if compared.differs:
                failing.append((history, variation, compared))
        if failing:
            history, variation, compared = min(failing, key=lambda each: size(each[0], self.options.inputs))
            count = f"{len(failing)} of {len(replayed)} histories"
            head = f"{count}, saved or given as examples, still differ; no new history was drawn."
            raise self.violation(history, variation, compared, head)

    def check(self, count: int) -> JobReport:
        """Draw histories, run the job on these histories in one query or each in its own query, and compare the outputs
        with the oracle's.
        """
        __tracebackhide__ = True
        while True:
            try:
                return self.check_drawn(count)
            except _Again:
                continue
            except TablesOfKeys as found:
                self.judge = self.judge.with_tables(found.keyed)
            except UnreadableKey as unreadable:
                if self.why_alone:
                    raise
                self.run_each_alone(unreadable.message, keys_apart=not self.options.runner.static)

    def check_drawn(self, count: int) -> JobReport:
        """Draw histories, run the job on these histories, and compare the outputs with the oracle's.

        Raises:
            UnreadableKey: A row of a shared query's result belongs to no known history.
        """
        __tracebackhide__ = True
        started = time.monotonic()
        self.doing(f"drawing {count} histories")
        histories = self.draws.draw(count)
        expecting = 0 if self.why_alone else self.check_together(histories, started)
        if not (expecting or self.why_alone) and self.variation.law and self.can_be_one:
            self.run_each_alone(NO_ROWS)
        if self.why_alone:  # the job or the shared query's output requires it
            histories, expecting = self.check_alone(histories, started)
        if self.depends_on_others:
            raise Inconclusive(f"inconclusive: {self.judge.name}: {self.why_alone}. {OTHER_KEYS}", job=self.judge.name)
        of_production = self.check_without_clock(histories, started)
        least = self.options.least_alone if self.why_alone else 0
        missing = unmet_goals(self.judge, self.draws, self.variation, histories, expecting, least)
        if missing:
            count = len(histories)
            more = "values for which the job emits rows"
            is_slow = self.why_alone and not self.runs_as_one
            if expecting:
                by = f"seconds={4 * self.variation.run.seconds:g} (--seconds)" if is_slow else f"histories={4 * count}"
                more = f"more, such as {by}"
            alone = f" Each history ran in its own query: {self.why_alone}." if is_slow else ""
            raise inconclusive(
                self.judge.name,
                self.judge.oracle.name,
                histories=count,
                missing=missing,
                more=more,
                seed=self.options.seed,
                alone=alone,
            )
        oracle = self.judge.oracle.name
        return JobReport(
            job=self.judge.name,
            says=f"{self.judge.name} conforms to {oracle} on {len(histories)} histories; rows were expected on "
            f"{expecting}.",
            laws={oracle: len(histories)},
            expecting=expecting,
            comparing=self.judge.met.comparing,
            alone=self.why_alone,
            limits=[*limits(self.judge), *of_production],
            notes=notes_on(self.judge),
            not_checked=not_checked(self.judge, self.draws, histories),
            equality=self.options.equality,
        )

    def check_together(self, histories: Sequence[JobHistory], started: float) -> int:
        """Run histories in one query, compare the outputs with the oracle's, and count the histories with expected
        rows.

        If a history differs only in the shared query, every history must run alone afterwards.

        Raises:
            UnreadableKey: A row of the result belongs to no known history.
        """
        __tracebackhide__ = True
        self.doing(f"running {len(histories)} histories in one query")
        with self.named_failure(histories, self.variation):
            comparisons = self.judge.compare(histories, self.variation)
        failing = [pair for pair in zip(histories, comparisons, strict=True) if pair[1].differs]
        if failing:
            history, compared = min(failing, key=lambda pair: size(pair[0], self.options.inputs))
            differ = f"{len(failing)} of {len(histories)} histories differ"
            self.raise_smallest(history, compared, self.variation, head=f"{differ}.", started=started)
            if self.variation.law and self.can_be_one:  # a difference may need many rows in a batch
                together = self.as_one([one for one, _ in failing][:MOST_TOGETHER])
                self.raise_smallest(together, compared, self.variation, head=f"{differ}.", started=started)
            if self.variation.run.fault:
                raise self.violation(history, self.variation, compared, f"{differ} in one query, and none alone.")
            why = (
                f"{differ} in one query, for example a history that {_in_words(compared.difference)}; in its own "
                "query this history agrees. So a history's result depends on other histories, although no two "
                "histories share a key"
            )
            self.depends_on_others = not self.variation.law and not self.judge.computed_keys
            self.run_each_alone(why)
            seconds = self.variation.run.seconds
            self.doing(f"running each history alone for {seconds:g} s, because {self.why_alone}")
        elif not self.variation.law:  # another invariant tests whether histories influence each other
            self.check_beside(histories, comparisons, started)
        return sum(compared.expects_rows for compared in comparisons)

    @property
    def can_be_one(self) -> bool:
        """Return whether the rows of several histories can form one history: not if rows are changes of a table or
        copies of events.
        """
        return not any(given.source.is_change_log or given.identity for given in self.options.inputs)

    @property
    def runs_as_one(self) -> bool:
        """Return whether all rows run as one history, because the invariant isn't about separate histories."""
        return bool(self.variation.law and self.why_alone) and not self.options.alone and self.can_be_one

    def as_one(self, histories: Sequence[JobHistory]) -> JobHistory:
        """Return the rows of histories with one clock schedule as a single history."""
        if self.keeps_keys_apart and len(histories) > 1:
            histories = with_own_keys(histories, self.judge.witness.sources)
        each = zip(*(history.batches for history in histories), strict=True)
        whole = histories[0].with_batches([[arrival for batch in batches for arrival in batch] for batches in each])
        return replace(whole, unreadable=tuple(one for history in histories for one in history.unreadable))

    def check_beside(self, histories: Sequence[JobHistory], comparisons: Sequence[Judgement], started: float) -> None:
        """Run the largest history alone too; if the job computes with keys, run several histories alone that contain
        most of the keys.

        A shared query adds a prefix to keys or changes numeric keys, which may change the result of a job that computes
        with keys.
        """
        __tracebackhide__ = True
        computes = bool(self.judge.computed_keys or self.judge.keys_in_functions)
        numbers = self._most_keys(histories) if computes else _fullest(histories, 1)
        for done, number in enumerate(numbers):
            self.doing(f"running history {done + 1} of {len(numbers)} alone, too")
            if self.judge.beside(histories[number], comparisons[number].expected, self.variation).differs:
                self.run_each_alone(
                    "the oracle expects another result of a history alone than in a query with other histories"
                )
                compared = self.judge.compare_alone(histories[number], self.variation)
                if compared.differs:
                    head = KEYED if computes else BESIDE
                    self.raise_smallest(histories[number], compared, self.variation, head=head, started=started)
                return

    def _most_keys(self, histories: Sequence[JobHistory]) -> list[int]:
        """Return the indexes of a few histories that together contain most keys, histories with more rows first."""
        sources = {source.name: source for source in self.judge.witness.sources}
        keys = [{repr(sources[name].key_of(row)) for name, row in history.arrivals} for history in histories]
        left, chosen = _fullest(histories, len(histories)), []
        seen: set[str] = set()
        for _ in range(min(MAX_KEYS_ALONE, len(left))):
            best = max(left, key=lambda number: len(keys[number] - seen))
            left.remove(best)
            seen |= keys[best]
            chosen.append(best)
        return chosen

    def check_alone(self, histories: Sequence[JobHistory], started: float) -> tuple[list[JobHistory], int]:
        """Run each history in its own query until `seconds` have passed, or run all histories' rows as one history.

        Returns:
            The histories that ran, and how many of these histories have expected rows.
        """
        __tracebackhide__ = True
        if self.runs_as_one and len(histories) > 1:
            return [*histories], self.check_as_one(histories, started)
        return self.check_each(histories, started)

    def check_as_one(self, histories: Sequence[JobHistory], started: float) -> int:
        """Run the rows of histories as one history, and count expected rows, at most one for each history."""
        __tracebackhide__ = True
        self.doing(f"running the rows of {len(histories)} histories as one history")
        whole = self.as_one(histories)
        with self.named_failure(histories, self.variation):
            compared = self.judge.compare_alone(whole, self.variation)
        if compared.differs:
            if self.leaves_out_columns(whole, self.variation):
                raise _Again
            fewer = self.fewer_that_differ(histories, deadline_of_shrinking(started, self.variation.run.seconds))
            head = f"The rows of {len(histories)} histories, run as one history, differ."
            self.raise_smallest(self.as_one(fewer), compared, self.variation, head=head, started=started)
        rows = sum(map(len, compared.expected.rows))
        return len(histories) if rows and self.judge.met.stateful else min(rows, len(histories))

    def fewer_that_differ(self, histories: Sequence[JobHistory], deadline: Deadline) -> Sequence[JobHistory]:
        """Return the fewest histories found whose rows, run as one history, still differ."""

        def differ(some: Sequence[JobHistory]) -> bool:
            return not deadline.is_over() and self.judge.compare_alone(self.as_one(some), self.variation).differs

        fullest = [[histories[number]] for number in _fullest(histories, TRIED_ALONE)]
        if (single := next(filter(differ, fullest), None)) is not None:
            return single
        while len(histories) > 1:
            halves = histories[: len(histories) // 2], histories[len(histories) // 2 :]
            if (half := next(filter(differ, halves), None)) is None:
                break
            histories = half
        return histories

    def check_each(self, histories: Sequence[JobHistory], started: float) -> tuple[list[JobHistory], int]:
        """Run each history in its own query until `seconds` have passed; the result is as in `check_alone`."""
        __tracebackhide__ = True
        until = time.monotonic() + min(self.variation.run.seconds, seconds_left())
        done: list[JobHistory] = []
        expecting = 0
        for history in sorted(histories, key=lambda each: -len(each.arrivals)):
            if done and time.monotonic() > until:
                break
            variation = self.variation if self.variation.share is None else self.variation.share(len(done))
            self.doing(f"running history {len(done) + 1} of {len(histories)} in its own query")
            with self.named_failure([history], variation):
                compared = self.judge.compare_alone(history, variation)
            if compared.differs:
                head = f"1 of {len(done) + 1} histories that ran alone differs."
                self.raise_smallest(history, compared, variation, head=head, started=started)
            expecting += compared.expects_rows
            done.append(history)
        return done, expecting

    def check_without_clock(self, histories: Sequence[JobHistory], started: float) -> list[str]:
        """Run the largest histories alone without the check's clock, if Spark moves a filter below a watermark.

        In production there is no such clock: rows that the filter drops don't move the watermark, but the clock's own
        rows would.

        Returns: A sentence about the runs without the clock, without a full stop; empty if Spark moves no filter.
        """
        __tracebackhide__ = True
        if FILTERED_WATERMARK.name not in self.judge.divergences or self.variation.law:
            return []
        if self.variation.run.processing_time or (self.draws.closes and self.judge.met.comparing == "end"):
            return [f"Not checked: {OTHER_MOMENTS}"]
        numbers = _fullest(histories, MAX_WITHOUT_CLOCK)
        shared, self.judge = self.judge, self.judge.each_alone()
        try:
            for done, history in enumerate((without_clock(histories[number]) for number in numbers), 1):
                self.doing(f"running history {done} of {len(numbers)} without the check's clock")
                with self.named_failure([history], self.variation):
                    compared = self.judge.compare_alone(history, self.variation)
                if compared.differs:
                    self.raise_smallest(history, compared, self.variation, head=OF_PRODUCTION, started=started)
        finally:
            self.judge = shared
        return [f"{len(numbers)} histories also ran without the check's clock, and agree"]

    def check_others(self, count: int) -> int:
        """Run the largest histories alone, compare each output with the output of the shared query, and return the
        number of histories.
        """
        __tracebackhide__ = True
        histories = self.draws.draw(count)
        self.doing(f"running the {MAX_ALONE_AGAIN} largest of {count} histories alone")
        expected = self.judge.expected(histories, self.variation)
        for number in _fullest(histories, MAX_ALONE_AGAIN):
            compared = self.judge.without_others(histories, number, expected[number], self.variation)
            if compared.differs:
                raise self.violation(histories[number], self.variation, compared, BESIDE)
        return min(count, MAX_ALONE_AGAIN)

    def raise_smallest(
        self, history: JobHistory, compared: Judgement, variation: Variation, *, head: str, started: float
    ) -> None:
        """Save a differing history, shrink it, and raise the violation; return only if the smallest history doesn't
        differ when it runs alone.
        """
        __tracebackhide__ = True
        if self.leaves_out_columns(history, variation):
            raise _Again
        kept = self.store.keep(replace(history, variation=variation.saved), variation.run)
        deadline = deadline_of_shrinking(started, variation.run.seconds)
        smallest, part = shrunk(self.judge, self.draws, history, variation, output=compared.output, deadline=deadline)
        if self.judge.compare_alone(smallest, part).differs:
            plain, plain_compared = plainest(self.judge, self.draws, smallest, part, deadline=deadline)
            as_found = self.found_otherwise(history, compared, plain_compared, variation)
            given: dict[str, Any] = {"unshrunk": kept, "deadline": deadline, "as_found": as_found}
            raise self.violation(plain, part, plain_compared, head, **given)
        self.store.forget(kept)

    def found_otherwise(
        self, history: JobHistory, compared: Judgement, shrunk: Judgement, variation: Variation
    ) -> Counterexample[JobHistory] | None:
        """Return the counterexample before shrinking, if it differs in other rows than the smallest history; None: it
        doesn't.
        """
        for _ in range(2):
            found, smallest = compared.difference, shrunk.difference
            if found is None or smallest is None or is_alike(found, smallest):
                return None
            compared = self.judge.compare_alone(history, variation)  # now alone, not in the shared query
        return self.counterexample(history, variation, compared)

    def leaves_out_columns(self, history: JobHistory, variation: Variation) -> bool:
        """Leave out the columns that differ between two equal runs of a history; return whether any columns differ."""
        if not self.judge.oracle.runs_job:
            return False
        found = self.judge.other_in_each_run(history, variation)
        self.two_runs = TWO_RUNS if found is None else ""
        if found:
            self.judge.leave_out(found)
        return bool(found)

    def violation(
        self,
        history: JobHistory,
        variation: Variation,
        compared: Judgement,
        head: str,
        *,
        unshrunk: Path | None = None,
        deadline: Deadline | None = None,
        as_found: Counterexample[JobHistory] | None = None,
    ) -> Violated:
        """Save a differing history, and return the failure.

        Args:
            history: The history.
            variation: The run options of the history's query.
            compared: The judge's comparison of the job with the oracle on the history.
            head: The number of differing histories, as text.
            unshrunk: The folder of the history before shrinking; the method removes this folder unless `as_found` is
                given.
            deadline: The deadline of shrinking; None: don't shrink.
            as_found: The counterexample before shrinking, if the job differs there in other rows than on the smallest
                history.
        """
        head = " ".join(filter(None, (head, variation.remedy, self.two_runs)))
        if compared.output.died_at and any(at.moment in OF_SINKS for at in variation.run.crash_in):
            head = f"{head} The query died {compared.output.died_at}."
        if variation.run.fault:
            head = f"{head} {compared.under_fault}"
        causes = [name for name in self.judge.divergences if self.may_cause(name, history, variation)]
        head = " ".join([head, *(f"{one}." for one in sentences(causes))])
        counterexample = self.counterexample(history, variation, compared)
        if deadline is not None and deadline.has_stopped:
            head = f"{head} Shrinking reached its time limit: a smaller history may differ, too."
        message, path = self.store.violation(counterexample, head, unshrunk, as_found)
        return Violated(message, counterexample, path=path, as_found=as_found)

    def may_cause(self, divergence: str, history: JobHistory, variation: Variation) -> bool:
        """Return whether Spark's optimizer may explain a difference: without the optimizer rules of known divergences,
        the job's output is as expected.
        """
        settings = variation.run.settings
        excluded = divergence_named(divergence).excluded
        if not excluded or EXCLUDED_RULES in settings:
            return True
        without = replace(variation.run, settings={**settings, EXCLUDED_RULES: excluded})
        try:
            (compared,) = self.judge.compare([history], replace(variation, run=without))
        except StreamproofError:
            return True
        return not compared.differs

    def counterexample(
        self, history: JobHistory, variation: Variation, compared: Judgement
    ) -> Counterexample[JobHistory]:
        """Return the counterexample for a history, from the judge's comparison."""
        judge, run = self.judge, variation.run
        return counterexample_of(
            job=self.judge.name,
            oracle=self.judge.oracle.name,
            history=replace(history, variation=variation.saved),
            sources=judge.witness.sources,
            expected=judge.as_written(compared.expected),
            emitted=compared.emitted,
            difference=compared.difference,
            run=replace(run, mode="complete", is_sink=True) if judge.is_sink else run,
            unique=judge.unique_columns,
            seed=self.options.seed if history.seed is None else history.seed,
            delays_us=_delays_us(judge.declared, judge.witness.sources),
            equality=self.options.equality,
            runs=(variation.when, variation.otherwise) if variation.when else None,
        )

    @contextlib.contextmanager
    def named_failure(self, histories: Sequence[JobHistory], variation: Variation) -> Iterator[None]:
        """If a query over histories fails in the block, raise `QueryFailed` with the rows that make the query fail."""
        started = time.monotonic()
        try:
            yield
        except QueryFailed as failed:
            kind = NotContinued if isinstance(failed, NotContinued) else QueryFailed
            deadline, last = deadline_of_shrinking(started, variation.run.seconds), failed

            def fails(some: Sequence[JobHistory]) -> bool:
                nonlocal last
                self.doing(f"searching for the rows that make its query fail: trying {len(some)} histories")
                seconds = max(deadline.at - time.monotonic(), 1)  # a hanging query ends at the deadline
                some = [self.as_one(some)] if self.runs_as_one else some
                try:
                    self.judge.compare(some, replace(variation, run=replace(variation.run, seconds=seconds)))
                except TookTooLong:
                    return False
                except QueryFailed as again:
                    last = again if isinstance(again, kind) else last
                    return isinstance(again, kind)
                return False

            failing = failing_history(histories, fails, deadline)
            stopped = STOPPED.format(deadline.seconds) if deadline.has_stopped else ""
            # Raise the error of the query that ran the shown history: the first error may name another history's value.
            raise self.failure(failed if failing is None else last, failing, variation, stopped) from None

    def failure(
        self, failed: QueryFailed, failing: JobHistory | None, variation: Variation, stopped: str = ""
    ) -> Exception:
        """Return the error for a query that failed.

        Args:
            failed: The reason why the query failed.
            failing: The saved history that makes the query fail; None: every history makes the query fail.
            variation: The run options of the query.
            stopped: A sentence if the search for the failing history ended early; empty if the search was complete.
        """
        why = f"{self.judge.name}: {failed.message}"
        if failing is None:
            why = why.rstrip(".")
            return QueryFailed(f"{why}. {stopped}" if stopped else f"{why}, whatever rows arrive")
        why = f"{why.rstrip('.')}. {stopped}" if stopped else why
        return QueryFailed(self.store.failure(replace(failing, variation=variation.saved), variation.run, why))


def _why_alone(options: CheckOptions, declared: Declared) -> str:
    """Return the reason why each history runs in its own query; return an empty text if histories share a query.

    Args:
        options: The options of the check.
        declared: The facts about the job that Spark shows before a run, such as columns and plan.
    """
    if declared.watermarks.without_clock:
        return "a watermark of the job is on a field of a struct column"
    if options.alone:
        return "alone=True"
    why = why_alone(options.inputs) or why_unkeyed(options.runner.sources, declared.tables) or ""
    return why.removesuffix(f"; {ALONE}")


def _delays_us(declared: Declared, sources: Sequence[Source]) -> Mapping[str, int] | None:
    """Return the watermark delay of each input; None: some inputs have no watermark, or the plan doesn't show which
    delay belongs to which input.
    """
    delays_us = declared.plan.delays_us
    if declared.watermarks.count != len(sources):
        return None
    if len(delays_us) == 1:
        return {source.name: delays_us[0] for source in sources}
    return delays_by_input(declared.plan, sources)


def _fullest(histories: Sequence[JobHistory], count: int) -> list[int]:
    """Return the indexes of the histories with the most rows."""
    return sorted(range(len(histories)), key=lambda number: -len(histories[number].arrivals))[:count]


def _in_words(difference: Difference | None) -> str:
    """Return a short phrase for a difference, for use in a sentence."""
    assert difference is not None
    where = "at the end" if difference.when is None else f"in batch {difference.when}"
    rows = [shown_row(side[0]) if side else "no such row" for side in (difference.expected, difference.actual)]
    return f"expects {rows[0]} and emits {rows[1]} {where}"
