"""A violation of any law is asked about again alone, and shrunk; the reference with a bug stands in for Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from shared_player import share_nothing
from streamproof.properties.checking import confirm
from streamproof.properties.checking.confirm import confirmed
from streamproof.properties.checking.samples import STANDING
from streamproof.properties.checking.shrinking import ended_after
from streamproof.properties.counterexamples.counterexample import ALONE
from streamproof.properties.generators.cohorts import Cohort
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import BrokenCase, CannotRecheck, Comparison
from streamproof.properties.laws.case import Case
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.query import StreamOutput
from streamproof.properties.witnesses.spark.witness import QueryWitness
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play

Loses = Callable[[Cohort, RunOptions, History], bool]
OPTIONS = registration_of("table_table_join").profiles["outer"]
(DRAWN,) = draw_histories(HistorySettings("table_table_join", OPTIONS, STANDING), 1, seed=2)

BUGS: list[tuple[str, Loses, int]] = [
    ("changelog", lambda cohort, options, history: True, 1),
    ("duckdb", lambda cohort, options, history: True, 1),
    ("order", lambda cohort, options, history: [one.input for one in history.records[:1]] == ["right"], 2),
    ("cuts", lambda cohort, options, history: len(history.batches[0]) > 4, 8),
    ("repeats", lambda cohort, options, history: history.records[:1] == history.records[1:2], 1),
    ("keys", lambda cohort, options, history: len({record.key for record in history.records}) > 1, 2),
    ("restart", lambda cohort, options, history: bool(options.stop_after), 1),
    ("partitions", lambda cohort, options, history: options.partitions == 7, 1),
    ("packing", lambda cohort, options, history: len(cohort.histories) > 1, 4),
]


def lose(monkeypatch: pytest.MonkeyPatch, loses: Loses) -> None:
    """Let all that some histories emit be lost on Spark."""

    def run(witness: object, cohort: Cohort, options: RunOptions = PLAIN) -> tuple[list[Outcome], StreamOutput]:
        outcomes = []
        for history in cohort.histories:
            entries = [entry._replace(arrival=-1) for entry in play(history).entries]
            lost = loses(cohort, options, history)
            outcomes.append(Outcome(history.name, Grain.BATCH, [] if lost else entries))
        return outcomes, StreamOutput(partitions=options.partitions or 2)

    share_nothing(monkeypatch)
    monkeypatch.setattr(QueryWitness, "run", run)


def broken(law: str, history: History) -> BrokenCase:
    """The first case of a history on which a law is broken."""
    cases = LAWS["spark"][law].cases_of(history)
    comparisons: Sequence[Comparison] = LAWS["spark"][law].recheck(cases)
    return next(BrokenCase(*pair) for pair in zip(cases, comparisons, strict=True) if pair[1].differences)


@pytest.mark.parametrize(("law", "loses", "most"), BUGS, ids=[bug[0] for bug in BUGS])
def test_a_violation_of_any_law_is_confirmed_and_shrunk(
    monkeypatch: pytest.MonkeyPatch, law: str, loses: Loses, most: int
) -> None:
    lose(monkeypatch, loses)
    asked: list[int] = []
    smallest, unconfirmed = confirmed(LAWS["spark"][law], broken(law, DRAWN), asked=asked.append)
    assert unconfirmed == ""
    assert smallest.comparison.differences
    assert len((smallest.case.original or smallest.case.history).records) <= most < len(DRAWN.records)
    (again,) = LAWS["spark"][law].recheck([smallest.case])
    assert again.differences == smallest.comparison.differences
    assert len(asked) > 2


def test_a_violation_that_does_not_show_alone_stays_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    lose(monkeypatch, lambda cohort, options, history: False)
    nothing: Any = ("reference", Outcome("h", Grain.END, final={}))
    violation = BrokenCase(Case(DRAWN), Comparison(nothing, nothing, []))
    assert confirmed(LAWS["spark"]["changelog"], violation) == (violation, ALONE)


def test_a_violation_that_can_not_be_shrunk_is_confirmed_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*arguments: Any) -> History:
        raise CannotRecheck("no smaller one")

    lose(monkeypatch, lambda cohort, options, history: True)
    monkeypatch.setattr(confirm, "shrink", refuses)
    violation = broken("changelog", DRAWN)
    smallest, unconfirmed = confirmed(LAWS["spark"]["changelog"], violation)
    first = violation.comparison.differences[0].when
    assert (smallest.case, unconfirmed) == (Case(ended_after(DRAWN, first or 0)), "")


def test_batches_after_the_first_difference_are_left_out_unless_it_takes_them(monkeypatch: pytest.MonkeyPatch) -> None:
    shrunk: list[History] = []

    def as_it_is(history: History, *arguments: Any) -> History:
        shrunk.append(history)
        return history

    monkeypatch.setattr(confirm, "shrink", as_it_is)
    law, batches = LAWS["spark"]["changelog"], len(DRAWN.batches)
    lose(monkeypatch, lambda cohort, options, history: len(history.records) >= len(DRAWN.records[:-1]))
    violation = broken("changelog", DRAWN)
    assert violation.comparison.differences[0].when == 1 < batches - 1
    confirmed(law, violation)
    lose(monkeypatch, lambda cohort, options, history: True)
    confirmed(law, violation)
    assert [len(history.batches) for history in shrunk] == [batches, 2]
