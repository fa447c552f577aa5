"""Nothing is stored once every row of a table is deleted; shared queries are played in memory, without Spark."""

from __future__ import annotations

import pytest
from shared_player import play_in_memory
from streamproof.properties.checking import mutation
from streamproof.properties.checking.mutation import check_mutants, chosen
from streamproof.properties.laws.metamorphic.reruns import RerunLaw

LEAKS = {
    "table_table_join": ["deleted_rows_stored"],
    "stream_table_join": ["deleted_row_stored"],
    "table_aggregate": ["rows_without_group_stored"],
    "foreign_key_join": [
        *("rows_without_foreign_key_stored", "no_one_to_unsubscribe", "empty_right_stored", "deleted_rows_stored"),
    ],
    "one_to_many_join": ["rows_without_foreign_key_stored", "empty_right_stored"],
}


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    play_in_memory(monkeypatch)


@pytest.mark.parametrize(("operator", "mutant"), [(name, one) for name, names in LEAKS.items() for one in names])
def test_a_leak_is_killed_by_the_law_state_alone(monkeypatch: pytest.MonkeyPatch, operator: str, mutant: str) -> None:
    laws = [law for law in mutation.ALL_LAWS if not isinstance(law, RerunLaw)]
    monkeypatch.setattr(mutation, "ALL_LAWS", laws)
    (kill,) = check_mutants(chosen(operator, [mutant]), histories=100, rounds=0, all_laws=True)
    assert set(kill.laws) == {"state"}
    assert {"changelog", "labels", "table at every cut", "keys", "order", "cuts"} <= kill.results.keys()
