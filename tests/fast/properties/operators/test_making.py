"""Mutants that are made in a line: their names, how workers find them, and what they leave as it is."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import cloudpickle
from streamproof.properties.operators.mutants.making import logics_in, redeclaring, returning
from streamproof.properties.registration.mutants import mutants_of
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.spark_impl.runtime.logic import Logic
from streamproof.spark_impl.table_table_join import TableTableLogic

Doubled = returning(TableTableLogic, "A timer is due twice as late", due=lambda found: 2 * found)
InnerAlways = redeclaring(TableTableLogic, "Every join is an inner one", lambda join: {"join": "inner"})


def test_a_mutant_has_the_name_of_its_variable_and_the_right_logic_is_none() -> None:
    found = mutants_of("table_table_join", TableTableLogic, "outer", logics_in(globals(), TableTableLogic))
    assert {name: mutant.sentence for name, mutant in found.items()} == {
        "doubled": "A timer is due twice as late",
        "inner_always": "Every join is an inner one",
    }


@pytest.mark.parametrize("operator", registered())
def test_a_worker_imports_every_mutated_logic_by_its_module_and_name(operator: str) -> None:
    classes = [mutant.logic for mutant in registration_of(operator).mutants.values() if isinstance(mutant.logic, type)]
    for logic in classes:
        assert getattr(sys.modules[logic.__module__], logic.__name__) is logic
        assert len(cloudpickle.dumps(logic)) < 200


def test_a_method_that_the_right_logic_does_not_have_is_refused() -> None:
    with pytest.raises(AttributeError, match="dew"):
        returning(TableTableLogic, "Never", dew=lambda found: found)


def test_a_mutant_of_another_declaration_leaves_the_definition_as_it_is() -> None:
    definition: Any = SimpleNamespace(join="outer", inputs=("left", "right"))
    logic: Any = InnerAlways(definition)
    assert (logic.join.join, definition.join) == ("inner", "outer")


def test_the_mutants_of_a_logic_that_a_function_makes_are_the_logics_themselves() -> None:
    (mutant,) = mutants_of("table_table_join", lambda join: TableTableLogic(join), "outer", [Doubled]).values()
    made = mutant.logic(SimpleNamespace(join="outer"))
    assert isinstance(made, Logic)
    assert type(made) is Doubled
