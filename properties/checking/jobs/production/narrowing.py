"""Finds the smallest part of a run in production that shows a wrong row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from .....reference.core.errors import BadInput, StreamproofError
from ....counterexamples.counterexample import Counterexample
from ....generators.columns.forms.rows import Row
from ....generators.columns.histories.drawing import closed
from ....generators.columns.histories.shrinking import shrink
from ....generators.columns.model import Arrival, Expected, JobHistory
from ....generators.columns.packing import UnreadableKey
from ....generators.shrinking import Deadline, Shrinker, fewer, one_by_one
from ....laws.expected.comparison import unmatched
from ....laws.expected.judging import Judgement
from ....laws.expected.oracles import JobOracle
from ....laws.variation import Variation
from ....outcomes.equality import comparable
from ....system.progress import doing
from ..draws import DAY_US
from ..smallest import plainest
from .judging import Judging, place_of

MOST_ROWS_OF_PART = 10_000
"""The largest number of rows of a key in a search for a smaller part of the run."""
SHRINKING_S = 60.0
ELSEWHERE = "{}: another version ran, or the sink lost or repeated rows."


class Narrowing:
    """The search for the smallest part of a run that shows a wrong row.

    Args:
        judging: The object that compares the run with the oracle.
    """

    def __init__(self, judging: Judging) -> None:
        self.judging = judging

    def closer(self, found: Counterexample[JobHistory]) -> tuple[Counterexample[JobHistory], str]:
        """Return the counterexample with fewer rows of the run, and a sentence on the output of the job for these rows
        on this machine.

        If the job is also wrong on this machine, the rows are the fewest that show the error. Otherwise, they are the
        fewest for which the oracle still expects the row.
        """
        part, judge, draws = found.history, self.judging.judge, self.judging.draws
        count = len(part.arrivals)
        if isinstance(judge.oracle, JobOracle) and judge.oracle.job is None:
            return found, ELSEWHERE.format("The job was run here over the same batches")
        if count > MOST_ROWS_OF_PART:
            return self._with_history(found, JobHistory(((),))), (
                f"The run read {count:,} rows that may have caused the wrong row, too many to shrink: name the "
                "key's column in the Input, and keep it in the output."
            )
        assert found.difference is not None
        missing, surplus = found.difference.expected, found.difference.actual
        plain, deadline = Variation(self.judging.options.run), Deadline(SHRINKING_S)
        same = place_of([*missing, *surplus][0])
        if draws.closes:
            part = closed(part, DAY_US + 2 * sum(draws.distances_us))

        def is_same(compared: Judgement) -> bool:
            one = compared.difference
            return one is not None and any(place_of(row) == same for row in [*one.expected, *one.actual])

        def alone(candidate: JobHistory) -> bool:
            return is_same(judge.compare_alone(candidate, plain))

        def fails(candidates: Sequence[JobHistory]) -> Sequence[bool]:
            try:
                return [*map(is_same, judge.compare(candidates, plain))]
            except UnreadableKey:
                return one_by_one(alone, deadline)(candidates)

        doing(f"{judge.name}: running the job here over {count} rows of the run")
        try:
            if alone(part):
                doing(f"{judge.name}: shrinking {count} rows of the run, for at most {SHRINKING_S:.0f} s")
                smallest = shrink(part, self.judging.options.inputs, fails, deadline=deadline)
                history, compared = plainest(judge, draws, smallest, plain, deadline=deadline)
                return self.judging.counterexample(
                    job=judge.name,
                    history=replace(history, numbers=()),
                    expected=compared.expected,
                    emitted=compared.emitted,
                    difference=compared.difference,
                    run=self.judging.options.run,
                    says=found.sentence,
                ), (
                    f"The job is wrong here, too: {len(history.arrivals)} of the {count:,} rows with the wrong "
                    "row's key show it. Here batches are numbered from 0."
                )
        except StreamproofError as error:
            return found, f"The job can't be run here over the rows of its key: {error.message}"
        wanted = found.expected[1].rows[-1][:1]  # the row is missing, or was written too often
        if wanted and self._expects([found.history], wanted)[0]:
            found = self._with_history(found, self._fewest(found.history, wanted, deadline))
        return found, ELSEWHERE.format("The job is right here over the rows of its key")

    def _with_history(self, found: Counterexample[JobHistory], history: JobHistory) -> Counterexample[JobHistory]:
        return replace(found, history=history, watermarks=self.judging.watermarks(history))

    def _fewest(self, history: JobHistory, wanted: Sequence[Row], deadline: Deadline) -> JobHistory:
        """Return the fewest rows of a part of the run, in their original batches, for which the oracle still expects a
        certain row.
        """
        placed = [(number, one) for number, batch in enumerate(history.batches) for one in batch]

        def part(rows: Sequence[tuple[int, Arrival]]) -> JobHistory:
            batches: list[list[Arrival]] = [[] for _ in history.batches]
            for number, one in rows:
                batches[number].append(one)
            return history.with_batches(batches)

        def expects(candidates: Sequence[Sequence[tuple[int, Arrival]]]) -> list[bool]:
            return self._expects([*map(part, candidates)], wanted)

        shrinker = Shrinker[list[tuple[int, Arrival]]](lambda rows: (len(rows), repr(rows)), fewer)
        return part(shrinker.shrink(placed, expects, deadline=deadline))

    def rows_of(self, key: Any) -> JobHistory:
        """Return a key's rows as a history with only the batches of these rows, the two batches before each, and the
        last two batches.
        """
        by_name = {source.name: source for source in self.judging.sources}
        batches = [
            [one for one in batch if key is None or comparable([*by_name[one.input].key_of(one.row)]) == key]
            for batch in self.judging.run.history.batches
        ]
        clock, last = self.judging.run.clock(self.judging.sources), len(batches) - 1
        kept = {near for at, batch in enumerate(batches) if batch for near in (at - 2, at - 1, at) if near >= 0}
        shown = sorted({*kept, max(last - 1, 0), last})
        numbers = [*self.judging.run.numbers, self.judging.run.checkpoint.batches[-1].number + 1]
        of_shown = tuple(clock[at] for at in shown), "a part of the run"
        part = JobHistory((), *of_shown, numbers=tuple(numbers[at] for at in shown))
        return part.with_batches([batches[at] for at in shown])

    def _expects(self, histories: Sequence[JobHistory], wanted: Sequence[Row]) -> list[bool]:
        """Return, for each history, whether the oracle expects a certain row."""
        try:
            return [self._has(expected, wanted) for expected in self.judging.expected(histories)]
        except BadInput:  # the user's oracle raises an error for this candidate
            return [False] * len(histories)

    def _has(self, expected: Expected, wanted: Sequence[Row]) -> bool:
        in_form, _ = self.judging.in_form(expected, [wanted])
        rows = [row for rows in in_form.rows for row in rows]
        return any(not any(unmatched([row], wanted, [*wanted[0]], self.judging.options.equality)) for row in rows)
