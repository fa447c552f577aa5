"""The law *state*: what the definition bounds is gone from the state once the clock has passed everything."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...witnesses.base import RunOptions
from ...witnesses.outcomes import Difference, Outcome
from ..base import LawResult, Violation
from ..runs import Run, Sample
from .judging import OutcomeLaw


class State(OutcomeLaw):
    """Every key that is left at the end is a difference."""

    name = "state"
    says = "a key's state is gone after its retention"
    needs = "bounded_state"
    reason = "its registration names no definition that bounds its state"
    options = RunOptions(read_state=True)
    shows_neighbours = False

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.bounds_state

    def goals(self, sample: Sample) -> Sequence[str]:
        return sample.goals(["state expired"])

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Judge each history of a run, which ends long after all of them."""
        result.covered.update(run.sample.cover({"state expired": sum(bool(played.accepted) for played in run.played)}))
        yield from super().judge(run, result)

    def differences(
        self, history: History, played: Played, outcome: Outcome, left: Sequence[str]
    ) -> Sequence[Difference]:
        """Return the keys whose state is left."""
        return state_left(history.name, left)


def state_left(name: str, keys: Iterable[str]) -> list[Difference]:
    """Return a difference for every key of a history whose state is left."""
    return [Difference(name, key, None, "no state", "state left") for key in sorted(keys)]
