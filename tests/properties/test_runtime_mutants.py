"""The gate kills mutants of what a logic doesn't decide: the runtime, columns, state types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from runtime_mutants import MUTANTS, RUNTIME, TOGETHER, RuntimeMutant, checked, planted, violated

LEAST = 10
"""In so many histories a mutant must show, at the least: in one it could be luck."""


def name_of(mutant: RuntimeMutant) -> str:
    return mutant.name


@pytest.mark.parametrize("mutant", MUTANTS, ids=name_of)
def test_a_mutant_s_source_is_there(mutant: RuntimeMutant, tmp_path: Path) -> None:
    folder = planted([mutant], tmp_path / "tree")
    for patch in mutant.patches:
        text = (folder / "streamproof" / "spark_impl" / patch.file).read_text(encoding="utf-8")
        assert patch.new in text
        compile(text, patch.file, "exec")


def test_a_mutant_whose_source_has_changed_is_refused(tmp_path: Path) -> None:
    (patch,) = RUNTIME[0].patches
    gone = RuntimeMutant("gone", (type(patch)(patch.file, "no such text", ""),), "session_windows")
    with pytest.raises(LookupError, match="gone: 'no such text' stands 0 times"):
        planted([gone], tmp_path / "tree")


def test_no_two_mutants_have_one_name() -> None:
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS) == sum(map(len, TOGETHER))


@pytest.mark.spark
@pytest.mark.exhaustive
@pytest.mark.parametrize("mutants", TOGETHER, ids=lambda mutants: mutants[0].name)
def test_a_mutant_shows_in_ten_of_the_histories_that_a_check_draws(
    mutants: Sequence[RuntimeMutant], tmp_path: Path
) -> None:
    shown = violated(mutants, tmp_path / "tree")
    assert {name: count for name, count in shown.items() if count < LEAST} == {}


@pytest.mark.spark
@pytest.mark.exhaustive
def test_the_command_says_violated_of_a_mutant(tmp_path: Path) -> None:
    (mutant,) = (one for one in RUNTIME if one.name == "the cause of a change is lost")
    done = checked([mutant], tmp_path, "--only", "spark", "--histories", "200")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "columns" in done.stdout
