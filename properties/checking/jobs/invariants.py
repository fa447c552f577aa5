"""The invariants of every correct job: for example, a restart of the query mustn't change the query's result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ....reference.core.errors import BadInput
from ...generators.columns.key_spaces import shared_identities
from ...laws.all import invariants as laws_of_jobs
from ...laws.all import variations_of
from ...laws.expected.oracles import FORGETS, JobOracle
from ...laws.metamorphic.crash import Replay
from ...laws.metamorphic.cuts import Cuts
from ...laws.metamorphic.order import OrderLaw
from ...laws.metamorphic.row_by_row import RowsOneAtATime
from ...laws.metamorphic.sink_fault import SINK_FAULTS
from ...laws.variation import Variation
from ...system.time_limit import seconds_left
from ...witnesses.job.dying.faults import NO_FAULT, REREADS, FaultOutcome
from ...witnesses.job.witness import EmittedBatches
from ...witnesses.run_options import OF_SINKS, Moment
from .arguments import CheckOptions
from .conclusion import limits, notes_on, unfinished
from .job_check import JobCheck
from .reports import JobReport
from .verdicts import Violated

ALL_FAULTS = "all"
IN_COMMIT = "death in commit: `streamproof sinks` plays it on sinks of its own"
HISTORIES = 100
"""The default number of histories; each runs once for every invariant."""


def invariants_of(without: Sequence[str]) -> tuple[list[str], list[str]]:
    """Split the names in `without` into names of invariants and names of columns.

    Raises:
        BadInput: `without` leaves out all invariants.
    """
    names = [law.of_jobs for law in laws_of_jobs()]
    laws = [name for name in without if name in names]
    if {*laws} == {*names}:
        raise BadInput(f"without has {laws[-1]!r}, and no invariant is left: leave out some of {', '.join(names)}")
    return laws, [name for name in without if name not in names]


def faults_of(faults: Sequence[str], is_sink: bool) -> list[str]:
    """Return the names of the faults, besides crashes, that the check simulates on a sink.

    Raises:
        BadInput: A fault is unknown, or the job isn't a sink.
    """
    if faults and not is_sink:
        raise BadInput("faults= are faults of a sink, and the job returns its result: give a Sink(…), or no faults")
    for name in faults:
        if name not in (*SINK_FAULTS, ALL_FAULTS):
            raise BadInput(f"faults has {name!r}: name some of {', '.join(SINK_FAULTS)}, or {ALL_FAULTS!r} for all")
    return [name for name in SINK_FAULTS if name in faults or ALL_FAULTS in faults]


class Invariants:
    """The checks of a job's invariants: each compares another run of the job with the run with default options.

    Args:
        options: The common options of the checks.
        without: The names of the invariants to leave out.
        faults: The names of the faults that the check simulates on a sink.
    """

    def __init__(self, options: CheckOptions, without: Sequence[str] = (), faults: Sequence[str] = ()) -> None:
        self.options, self.without = options, without
        self.faults = faults_of(faults, options.run.is_sink)
        self.emitted: dict[str, list[EmittedBatches]] = {}
        # Count one more batch in append mode: each drawn history then ends with a batch that closes all windows.
        variations = variations_of(options.run, options.seed, options.batches + (options.run.mode == "append"))
        variations += [one for name in self.faults for one in SINK_FAULTS[name].variations(options.run)]
        asked = [variation for variation in variations if variation.law not in without]
        declared = options.runner.declare(options.run)
        for name in options.without:
            if (
                name not in declared.names and not options.run.is_sink
            ):  # the columns of a sink are known only after a run
                columns = f", or the columns {', '.join(declared.names)}" if declared.names else ""
                raise BadInput(
                    f"without has {name!r}, which is no invariant{' and no column' if columns else ''}: leave out some "
                    f"of {', '.join(law.of_jobs for law in laws_of_jobs())}{columns}"
                )
        plan = declared.plan
        self.checks = [self.check_of(one) for one in asked if plan.has_function or not one.run.row_by_row]

    def check_of(self, variation: Variation) -> JobCheck:
        """Return the check that compares the job's run under a variation with the run with default options."""
        plain = JobOracle(
            run=self.options.run,
            comparing=variation.comparing,
            called=f"the job {variation.otherwise}".strip(),
            plain=self.emitted,
        )
        return JobCheck(self.options, plain, variation)

    def before_violation(self, broken: str, held: Mapping[str, int]) -> str:
        """Return the invariants that held before a violation, and the invariants that weren't checked because of the
        violation.
        """
        laws = [check.variation.law for check in self.checks]
        left = [law for law in laws[laws.index(broken) + 1 :] if law not in held and law != broken]
        done = "; ".join(f"{law} ({count} histories)" for law, count in held.items()) or "nothing was run"
        return f"Held before: {done}. Not checked after the violation: {'; '.join(left) or 'none'}."

    def report(self, histories: int, examples: Sequence[str | Path]) -> JobReport:
        """Replay saved counterexamples, check each variation, and return the report.

        Raises:
            Inconclusive: A coverage goal is unmet, or the time limit ended before each invariant had been checked.
        """
        __tracebackhide__ = True
        for check in self.checks:
            if check.variation.saved:
                check.replay(examples)
        before, asked = self.checks[0], [check.variation.law for check in self.checks]
        held: dict[str, int] = {}
        unrun: list[str] = []
        unsure = [f"{law}: without= leaves it out" for law in self.without]
        for check in self.checks:
            if check.variation.law == OrderLaw.of_jobs and before.judge.without_table:
                check = self.check_of(replace(check.variation, comparing="batches"))
            check.judge.leave_out(before.judge.met.nondeterministic)
            check.judge.met.settings |= before.judge.met.settings
            check.judge.met.triggers |= before.judge.met.triggers
            law = check.variation.law
            if why := _why_not_asked(check.variation, before, held, asked):
                unsure.append(why)
                continue
            if not seconds_left():
                unrun.append(law)
                continue
            if before.why_alone:
                check.run_each_alone(before.why_alone, keys_apart=before.keeps_keys_apart)
            try:
                held[law] = (
                    check.check_others(histories) if check.variation.is_alone else check.check(histories).histories
                )
            except Violated as failed:
                failed.notes = [self.before_violation(law, held)]
                raise
            if check.variation.run.crash_in and check.judge.is_sink:
                unsure += _without_crash(law, held, check.judge.met.crashed)
            unsure += _under_fault(law, held, check.judge.met.fault or NO_FAULT)
            before = check
        if unrun:
            raise unfinished(before.judge.name, held, unrun)
        if before.judge.is_sink and before.judge.met.plan.has_function and RowsOneAtATime.of_jobs not in self.without:
            unsure.append(f"{RowsOneAtATime.of_jobs}: the sink may depend on receiving all rows of a key in one batch")
        if before.judge.is_sink:
            if left := [name for name in SINK_FAULTS if name not in self.faults]:
                unsure.append(f"the faults {', '.join(left)}: faults=[…] names those that the sink must withstand")
            unsure.append(IN_COMMIT)
        return JobReport(
            job=before.judge.name,
            says=f"{before.judge.name}: the output doesn't change with",
            laws=held,
            not_checked=unsure,
            equality=self.options.equality,
            limits=limits(before.judge),
            notes=notes_on(before.judge),
            between=("job",),
        )


def _without_crash(law: str, held: dict[str, int], crashed: Collection[Moment]) -> list[str]:
    """Return, as texts, the planned crashes that a sink never reached; if the sink reached no crash, remove the law
    from `held`.
    """
    if not crashed:
        del held[law]
        return [
            f"{law}, and rows after a stop with state: the sink keeps no checkpoint in the folder that the check "
            "passes to it"
        ]
    if not {*OF_SINKS} & {*crashed}:
        return [
            f"{law} in the middle of a micro-batch's output: the sink uses neither foreach, nor Spark's writers, "
            "nor several statements in a function for foreachBatch"
        ]
    return []


def _under_fault(law: str, held: dict[str, int], outcome: FaultOutcome) -> list[str]:
    """Return, as text, how many histories a reader found half-written; if the fault didn't happen, return the reason
    and remove the law from `held`.
    """
    if outcome.unmet:
        del held[law]
        return [f"{law}: {outcome.unmet}"]
    torn = [f"complete batches under {law}: a reader found half a batch of {outcome.torn} histories"]
    return torn * bool(outcome.torn)


def _why_not_asked(variation: Variation, before: JobCheck, held: Collection[str], asked: Collection[str] = ()) -> str:
    """Return the reason why a variation doesn't apply to a job, as the earlier checks show; return an empty text if the
    variation applies.

    Args:
        variation: The variation.
        before: The check of the previous variation.
        held: The invariants that held.
        asked: All invariants of the job.
    """
    law, plans = variation.law, (before.judge.declared.plan, before.judge.met.plan)
    if variation.comparing == "end" and any(FORGETS in plan.operators for plan in plans):
        return f"{law}: dropDuplicatesWithinWatermark forgets rows only at the end of a batch"
    if law == Cuts.of_jobs and before.judge.without_table:
        return f"{law}: {before.judge.without_table}"
    if law == Cuts.of_jobs and variation.run.processing_time:
        return f"{law}: a row's batch determines its processing time"
    if fault := variation.run.fault:
        if Replay.of_jobs in asked and Replay.of_jobs not in held:
            return f"{law}: it is checked only after {Replay.of_jobs}"
        is_stateful = before.judge.met.stateful
        if fault == "two-queries" and before.why_alone:
            return f"{law}: the rows of its keys can't be divided: {before.why_alone}"
        if fault == "deleted-checkpoint-latest" and is_stateful:
            return f"{law}: the query's state is deleted too"
        if fault in REREADS and is_stateful and Cuts.of_jobs not in held:
            return f"{law}: it is checked only after {Cuts.of_jobs}"
    if variation.is_alone and before.why_alone:
        how = (
            "the rows of all histories ran as one history"
            if before.runs_as_one
            else "each history runs in its own query"
        )
        return f"histories with other keys, because {how}: {before.why_alone}"
    if variation.is_alone and (shared := shared_identities(before.options.inputs)):
        return f"{law}: events of two keys may have the same identity, {' and '.join(shared)}"
    if variation.run.row_by_row and variation.run.mode == "update":
        if OrderLaw.of_jobs not in held:  # the law on the order of rows wasn't judged
            return f"{law}: it is checked only after {OrderLaw.of_jobs}"
        if not before.judge.unique_columns or before.judge.without_table:
            return (
                f"{law}: nothing shows which rows update each other; unique=[…] names the columns that identify a row"
            )
        # Only a key's last row in a batch counts, and most operators may change the order of rows.
        if not before.judge.declared.plan.ends_in_function:
            return f"{law}: an operator above the function may change the order of a key's rows"
    return ""
