"""The law *state*: the state is empty once the clock is past all retentions, or once all rows of a table are deleted.

An operator's registration declares which of these events empties the state, and which state remains.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ...generators.tables import changes_of_rows, rows_stored
from ...outcomes.outcomes import Difference, Outcome
from ...registration.registration import Registration, registration_of
from ...witnesses.run_options import RunOptions
from ...witnesses.spark.answers import StoredState
from ..base import BrokenCase, Comparison, LawResult
from ..case import Case
from ..runs import Run, Sample
from .judging import OutcomeLaw, by_reference

EXPIRED, STORED, DELETED = "state expired", "rows stored", "rows deleted"


class StateLaw(OutcomeLaw):
    """Reports each key that has state at the end."""

    name = "state"
    between = ("reference", "spark")
    options = RunOptions(read_state=True)
    shows_neighbours = False

    def sentence(self, registration: Registration) -> str:
        """Return the law's statement: which event empties the operator's state, and which state remains."""
        says = []
        if registration.bounded_state is not None:
            says.append("a key's state is gone after its retention")
        if (tables := registration.tables) is not None:
            kept = f", but {tables.keeps}" if tables.keeps else ""
            says.append(f"nothing is stored once every row of its tables is deleted{kept}")
        if registration.unbounded:
            says.append(f"not checked {registration.unbounded}")
        return "; ".join(says)

    def not_checked(self, registration: Registration) -> str | None:
        """Return the reason why the law skips all definitions of an operator, or None."""
        if registration.bounded_state is not None or registration.tables is not None:
            return None
        return registration.unbounded or "its registration names no definition that bounds its state, and no tables"

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.bounds_state or sample.is_emptied

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goals: state exists during the run and, for histories whose rows aren't deleted, Spark reports the
        rows' state.
        """
        return sample.goals([EXPIRED] if sample.bounds_state else [STORED, DELETED])

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge each history of a run that ends long after all records, or with empty tables."""
        met: Counter[str] = Counter()
        of_each = zip(run.histories, run.played, run.outcomes, run.leftover, strict=True)
        for history, played, outcome, stored in of_each:
            if run.sample.bounds_state:
                met[EXPIRED] += bool(played.accepted)
            elif rows_stored(history, played):
                met[STORED] += bool(unexplained(history, stored))
                continue
            else:
                met[DELETED] += any(record.value is not None for record in changes_of_rows(history, played))
            result.judged += 1
            found = self.differences(history, played, outcome, stored)
            if found:
                yield BrokenCase(Case(history), Comparison(by_reference(history, played), ("Spark", outcome), found))
        result.covered.update(run.sample.cover(met))

    def differences(
        self, history: History, played: Played, outcome: Outcome, left: Sequence[StoredState]
    ) -> Sequence[Difference]:
        """Return the keys that still have state."""
        registration = registration_of(history.operator)
        if registration.bounds_state(played.definition):
            return state_left(history.name, left)
        return [] if rows_stored(history, played) else state_left(history.name, unexplained(history, left))


def unexplained(history: History, stored: Iterable[StoredState]) -> list[StoredState]:
    """Return a history's state without the state that the operator's registration allows to stay."""
    registration = registration_of(history.operator)
    tables, definition = registration.tables, registration.declare(history.options)
    return [one for one in stored if tables is None or not tables.is_kept(definition, one.fields)]


def state_left(name: str, stored: Iterable[StoredState]) -> list[Difference]:
    """Return a difference for each key of a history that still has state."""
    return [Difference(None, "no state", "state left", key, name) for key in sorted({one.key for one in stored})]
