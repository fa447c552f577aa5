"""The same bug has one name: as a value of the constant `Mutant` of a specification, and as a mutant on Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamproof.specs as specs
from specified_mutants_setup import SAME, SPECIFIED, name_of
from streamproof.properties.operators.mutants.decoupled_foreign_key_join import MUTANTS as SCHEDULED
from streamproof.properties.registration.registration import registration_of
from streamproof.specs.replays import foreign_key_mutants


@pytest.mark.parametrize("operator", SPECIFIED)
def test_the_names_that_both_have_are_those_of_the_table(operator: str) -> None:
    on_both = {value for value in SPECIFIED[operator] if name_of(value) in registration_of(operator).mutants}
    waiting = {value for value in SPECIFIED[operator] if name_of(value) in SCHEDULED}
    assert on_both - waiting == SAME[operator]
    assert waiting == ({"no hash check", "asks the old key", "unsubscribe not sent"} & {*SPECIFIED[operator]})


def test_each_logic_that_spark_replays_a_specification_with_is_the_mutant_of_that_name() -> None:
    registration = registration_of("foreign_key_join")
    assert registration.protocol is not None
    logics, join = registration.protocol.specified(), registration.declare(registration.profiles["left"])
    assert {*logics} <= {*foreign_key_mutants.MUTANTS}
    shared = {value for value in logics if name_of(value) in registration.mutants}
    assert shared == {*SAME["foreign_key_join"], "no hash check", "asks the old key", "unsubscribe not sent"}
    for value in shared:
        ours, replayed = registration.mutants[name_of(value)].logic(join), logics[value](join)
        assert [type(stage) for stage in ours] == [type(stage) for stage in replayed], value


def test_the_one_to_many_join_has_three_mutants_of_its_specification() -> None:
    module = (Path(specs.__file__).parent / "OneToManyJoin" / "OneToManyJoin.tla").read_text(encoding="utf-8")
    (listed,) = re.findall(r"Mutants ==\s*\{([^}]*)\}", module)
    values = {*re.findall(r'"([^"]*)"', listed)}
    on_both = {value for value in values if name_of(value) in registration_of("one_to_many_join").mutants}
    assert on_both == {"old key kept", "first row only", "right tombstone silent"}
