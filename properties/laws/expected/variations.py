"""How a job's query is run otherwise than plainly, where that may change nothing of what the job emits.

A variation is small enough to be saved with its counterexample, so that this is replayed as it was found.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

from ....reference.core.errors import BadInput
from ...generators.columns.model import Comparing, JobHistory
from ...witnesses.job.running import REPEATED, RESTORED, Output
from ...witnesses.run_options import RunOptions, crash_of

BATCHES = 5
"""The batches of a history that may have rows."""
RESTARTS, CRASHES = 2, 6
"""Histories that each run alone and share all stops, or all crashes: a query with all of them takes long."""


@dataclass(frozen=True)
class Variation:
    """One way to run a job's query; by default the plain one.

    Attributes:
        run: How the query is run.
        law: The law that asks for it; empty for the plain one.
        given: What the law was given, such as where the query dies, as JSON has it.
        when: The run in words, such as `with five shuffle partitions`.
        otherwise: The plain run in words.
        comparing: What must be the same: the rows of each batch, or the table at the end.
        vary: Returns the history that the job is given in place of one that is drawn.
        goals: The coverage goals of the run.
        parts: Takes the output of a run and returns smaller variations, the likeliest first; None: there are none.
        share: Returns the share of a history, by its number, where each runs in a query of its own; None for the whole.
    """

    run: RunOptions
    law: str = ""
    given: Any = None
    when: str = ""
    otherwise: str = ""
    comparing: Comparing = "batches"
    vary: Callable[[JobHistory], JobHistory] = field(default=lambda history: history, compare=False)
    goals: Sequence[str] = ()
    parts: Callable[[Output], Sequence[Variation]] | None = field(default=None, compare=False)
    share: Callable[[int], Variation] | None = field(default=None, compare=False)

    @property
    def saved(self) -> Mapping[str, Any]:
        """The variation as a counterexample's file has it; empty for the plain run."""
        return {"law": self.law, "given": self.given} if self.law else {}


def restart(run: RunOptions, given: Sequence[int]) -> Variation:
    """Stop the query after batches, and start it again from its checkpoint."""
    # A stop lets the batch without data run that `available_now` has at the end alone: late rows are late sooner.
    comparing: Comparing = "batches" if run.trigger == "default" else "end"
    return Variation(
        replace(run, stop_after=tuple(given)),
        "a restart",
        [*given],
        f"stopped after batch {', '.join(map(str, given))} and started again",
        "without a stop",
        comparing,
        goals=(RESTORED,),
        parts=(lambda output: [restart(run, [stop]) for stop in given]) if len(given) > 1 else None,
        share=lambda number: restart(run, [*given][number % RESTARTS :: RESTARTS] or given),
    )


def crash(run: RunOptions, given: Sequence[Sequence[Any]]) -> Variation:
    """Let the query die, before a batch's output or between that and its commit, and start it again."""
    crashes = [at for at in map(crash_of, given) if at is not None]
    if len(crashes) < len(given):
        raise ValueError(given)
    where = "in each batch" if len(crashes) > 1 else f"in {crashes[0]}"

    def parts(output: Output) -> list[Variation]:
        # Mostly it is an output with rows that is repeated, and one of them is enough.
        repeated = [at for at, has_rows in output.crashed if has_rows and at.moment != "before its output"]
        some = [repeated, [at for at in crashes if at.moment == "before its output"]]
        if len(repeated) == len(crashes):
            some = [[at] for at in crashes]
        return [crash(run, part) for part in some if 0 < len(part) < len(crashes)]

    return Variation(
        replace(run, crash_in=tuple(crashes)),
        "a crash",
        [[*at] for at in crashes],
        f"dying {where}, and started again",
        "without a crash",
        goals=(REPEATED, RESTORED),
        parts=parts if len(crashes) > 1 else None,
        share=lambda number: crash(run, crashes[number % CRASHES :: CRASHES] or crashes),
    )


def partitions(run: RunOptions, given: int) -> Variation:
    """Run the query with another number of shuffle partitions."""
    return Variation(
        replace(run, partitions=given),
        "the number of partitions",
        given,
        f"with {given} shuffle partitions",
        "with the session's own number",
    )


def cuts(run: RunOptions, given: int) -> Variation:
    """Cut the history once, before a batch."""

    def merged(history: JobHistory) -> JobHistory:
        count = len(history.batches)
        # A batch beyond those that are drawn closes everything, and stays one of its own.
        ends = sorted({min(end, count) for end in (given, BATCHES, count)})
        spans = [*zip([0, *ends], ends, strict=False)]
        rows = tuple(tuple(arrival for batch in history.batches[a:b] for arrival in batch) for a, b in spans)
        clock = tuple(history.clock[b - 1] for _, b in spans) if history.clock else ()
        return replace(history, batches=rows, clock=clock)

    return Variation(
        run,
        "the cuts between batches",
        given,
        f"with a single cut between batches, before batch {given}",
        "with all cuts",
        "end",
        merged,
    )


def order(run: RunOptions, given: str) -> Variation:
    """Reverse the rows of each batch."""
    return Variation(
        run,
        "the order within a batch",
        given,
        "with the rows of each batch in the opposite order",
        "in the order of arrival",
        "end",
        lambda history: history.with_batches([batch[::-1] for batch in history.batches]),
    )


LAWS: Mapping[str, Callable[[RunOptions, Any], Variation]] = {
    "a restart": restart,
    "a crash": crash,
    "the number of partitions": partitions,
    "the cuts between batches": cuts,
    "the order within a batch": order,
}


def variations_of(run: RunOptions, seed: int, batches: int) -> list[Variation]:
    """Return the variations of a job's run.

    Args:
        run: The plain run.
        seed: The seed of what is drawn.
        batches: How many batches a history has.
    """
    first = random.Random(f"{seed} of the invariants").randrange(1, BATCHES)
    return [
        restart(run, range(batches - 1)),
        crash(run, run.crashes_everywhere(batches)),
        partitions(run, 5),
        cuts(run, first),
        order(run, "reversed"),
    ]


def saved_variation(run: RunOptions, saved: Mapping[str, Any]) -> Variation:
    """Return the variation that a counterexample was found under.

    Raises:
        BadInput: There is none of that law, or with what it was given.
    """

    def refuse() -> NoReturn:
        known = ", ".join(LAWS)
        raise BadInput(f"a saved history has the variation {dict(saved)!r}: remove it, or give it a law of {known}")

    if not saved:
        return Variation(run)
    law = LAWS.get(str(saved.get("law")))
    if law is None:
        refuse()
    try:
        return law(run, saved.get("given"))
    except (TypeError, ValueError, IndexError):
        refuse()
