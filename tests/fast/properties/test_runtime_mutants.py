"""The gate kills mutants of what a logic doesn't decide: the runtime, columns, state types, the guard.

`python tests/helpers/runtime_mutants.py FOLDER` runs all of them in half an hour. Here some are run of each kind.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from runtime_mutants import MUTANTS, SOME, RuntimeMutant, Shows, named, planted


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_mutant_s_source_is_there(mutant: RuntimeMutant, tmp_path: Path) -> None:
    folder = planted([mutant], tmp_path / "tree")
    text = (folder / "streamproof" / "spark_impl" / mutant.file).read_text(encoding="utf-8")
    assert mutant.new in text
    compile(text, mutant.file, "exec")


def test_a_mutant_whose_source_has_changed_is_refused(tmp_path: Path) -> None:
    gone = replace(MUTANTS[0], name="gone", old="no such text")
    with pytest.raises(LookupError, match="gone: 'no such text' stands 0 times"):
        planted([gone], tmp_path / "tree")


def test_there_are_so_many_mutants_each_under_its_own_name_and_some_of_each_kind() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) >= 7 + 40
    assert {named(name).shows for name in SOME} == {*Shows}
