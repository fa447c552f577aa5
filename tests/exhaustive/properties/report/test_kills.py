"""What mutation testing shows: of each law its worth, of each mutant whether a check sees it; without Spark."""

from __future__ import annotations

import pytest
from shared_player import play_all
from streamproof.properties.checking.mutation import Kill, check_mutants, chosen
from streamproof.properties.laws import runs
from streamproof.properties.laws.all import ON_SPARK
from streamproof.properties.laws.worth import KILLS_ALONE, STAYS
from streamproof.properties.report.kills import (
    laws_not_asked,
    worth_of_laws,
)
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark import witness

ELSEWHERE = {"partitions", "replay", "restart", "schedules"}
"""Laws whose mutants tests/fast/properties/laws/test_reruns.py and tests/exhaustive/properties/checking/test_mutation.py show."""
SOME = ["tombstones_in_wrong_order", "causeless_tombstones", "state_never_expires", "gap_exclusive", "no_tombstone"]
READING = RunOptions(read_state=True)


@pytest.fixture(scope="module")
def kills() -> list[Kill]:
    """What became of some mutants in shared queries that are played in memory."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (runs, witness):
            patched.setattr(module, "run_shared", lambda plays, options=None: play_all(plays, READING))
        return check_mutants(chosen("session_windows", SOME), histories=30, rounds=4)


@pytest.mark.parametrize("law", sorted(KILLS_ALONE.keys() - ELSEWHERE))
def test_no_other_law_kills_that_mutant(kills: list[Kill], law: str) -> None:
    operator, mutant = KILLS_ALONE[law]
    assert operator == "session_windows"
    (row,) = (row for row in worth_of_laws(kills) if row.law == law)
    assert mutant in row.alone


def test_the_table_counts_what_each_law_kills_and_names_what_it_kills_alone(kills: list[Kill]) -> None:
    rows = {row.law: row for row in worth_of_laws(kills)}
    assert rows["changelog"][1:] == (3, ["tombstones_in_wrong_order"], "tombstones_in_wrong_order")
    assert rows["table at every cut"].kills == 2
    assert (rows["order"].alone, rows["order"].why) == ([], STAYS["order"])
    unasked = laws_not_asked(kills)
    assert rows.keys() | unasked.keys() == {law.name for law in ON_SPARK}
    assert rows.keys() & unasked.keys() == set()
    assert unasked["schedules"] == "its registration has no protocol: it sends no messages"
    assert unasked["native"] == STAYS["native"]
