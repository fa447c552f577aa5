"""The gate kills mutants of what a logic doesn't decide: the runtime, columns, state types, the guard.

`python tests/helpers/runtime_mutants.py FOLDER` runs all of them in half an hour. Here some are run of each kind.
"""

from __future__ import annotations

from pathlib import Path

from runtime_mutants import LEAST, SOME, Shows, named, shown


def test_mutants_show_in_shared_queries_in_ten_histories(tmp_path: Path) -> None:
    chosen = [named(name) for name in SOME if named(name).shows is Shows.SHARED]
    assert [(mutant.name, count) for mutant, count in shown(chosen, tmp_path) if count < LEAST] == []


def test_mutants_show_in_ten_of_the_histories_that_a_check_draws(tmp_path: Path) -> None:
    chosen = [named(name) for name in SOME if named(name).shows is not Shows.SHARED]
    found = {mutant.name: count for mutant, count in shown(chosen, tmp_path)}
    assert [*found] == [mutant.name for mutant in chosen]
    assert {name: count for name, count in found.items() if count < LEAST} == {}
