"""Which laws kill which mutants, and each law kills one: shared queries in memory, no Spark."""

from __future__ import annotations

from dataclasses import replace

import pytest
from shared_player import play_in_memory
from streamproof.properties.checking import mutation
from streamproof.properties.checking.mutation import Kill, check_mutants, chosen
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.reference.core.errors import BadInput

IN_ALL_POOLS = {"never_due"}
"""Mutants of which it is asked by which laws they are killed: these are run on all histories."""
SLICES = 6
"""A pool is run in so many slices: what is killed in the first few, as most mutants are, is in no further one."""


@pytest.fixture(scope="module")
def kills() -> dict[str, Kill]:
    with pytest.MonkeyPatch.context() as patch:
        play_in_memory(patch)
        found = check_mutants(chosen("session_windows", []), histories=60, rounds=2, all_laws=True)
    return {kill.mutant.name: kill for kill in found}


def test_only_the_law_labels_sees_a_tombstone_that_is_called_an_update(kills: dict[str, Kill]) -> None:
    for name in ("tombstones_are_updates", "causeless_tombstones"):
        assert set(kills[name].laws) == {"labels"}
    # A row before is forgotten by a batch that is repeated.
    assert set(kills["cause_of_row_before"].laws) == {"labels", "replay"}


def test_only_starting_again_shows_what_a_restart_forgets(kills: dict[str, Kill]) -> None:
    assert set(kills["forgets_at_restart"].laws) == {"restart", "replay"}
    assert kills["closings_lost_at_restart"].laws.keys() <= {"restart", "replay"}


@pytest.mark.parametrize("operator", registered())
@pytest.mark.in_ci("session_windows", "foreign_key_join", "table_aggregate", "stream_table_join")
def test_every_law_kills_a_mutant_of_an_operator(monkeypatch: pytest.MonkeyPatch, operator: str) -> None:
    play_in_memory(monkeypatch)
    registration = registration_of(operator)
    asked = {"changelog", "labels", "table at every cut", "duckdb", "keys", "order", "cuts", "repeats"}
    if registration.bounded_state or registration.tables:
        asked.add("state")
    found = laws_until_killed(monkeypatch, operator, asked, histories=40)
    assert asked - set().union(*found.values()) == set()
    if registration.bounded_state:
        assert found["never_due"] >= {"changelog", "state"}


def laws_until_killed(
    monkeypatch: pytest.MonkeyPatch, operator: str, asked: set[str], histories: int
) -> dict[str, set[str]]:
    """Return for each mutant by which laws it is killed in the pools of a check, which are run slice by slice.

    A mutant that is killed is left out as soon as each law that is asked has killed some mutant.
    """
    left = [one for one in chosen(operator, []) if not one.scheduled]
    found: dict[str, set[str]] = {mutant.name: set() for mutant in left}
    pools = list(mutation.pools_on_spark([registration_of(operator)], histories, 0, all_laws=True))
    for samples in (pool[start::SLICES] for start in range(SLICES) for pool in pools if start < len(pool)):
        monkeypatch.setattr(mutation, "pools_on_spark", lambda *_, samples=samples, **__: [samples])
        for kill in check_mutants(left, histories, rounds=0, all_laws=True):
            found[kill.mutant.name].update(kill.laws)
        if asked <= set().union(*found.values()):
            left = [one for one in left if not found[one.name] or one.name in IN_ALL_POOLS]
        if not left:
            break
    return found


def test_an_operator_without_mutants_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    without = replace(registration_of("range_aggregate"), mutants={})
    monkeypatch.setattr(mutation, "registration_of", lambda name: without)
    monkeypatch.setattr(mutation, "registered", lambda: {"session_windows": registration_of("session_windows")})
    with pytest.raises(BadInput, match="range_aggregate has no mutants yet: session_windows have"):
        chosen("range_aggregate", [])
