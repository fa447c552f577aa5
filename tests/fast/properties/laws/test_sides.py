"""The sides of a difference are those that the comparison names, in this order: the expected or the original first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from notation import history_of
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.metamorphic.variants import VariantLaw
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.reference.core.play import play


@pytest.mark.parametrize("operator", ["table_table_join", "session_windows"])
@pytest.mark.parametrize("name", ["order", "cuts", "repeats"])
def test_what_only_the_original_has_is_on_the_first_side_and_of_the_variant_on_the_second(
    name: str, operator: str
) -> None:
    law, history = LAWS["spark"][name], history_of("L k=1 R k=2" if "join" in operator else "k@1 k@2", operator)
    assert isinstance(law, VariantLaw)
    played = play(history)
    whole = Outcome(history.name, Grain.BATCH, [one._replace(arrival=-1) for one in played.entries])
    none, case = replace(whole, entries=[]), Case(history, history)
    for outcomes, sides in (((whole, none), (True, False)), ((none, whole), (False, True))):
        comparison = law.compare(case, *outcomes)
        assert [title for title, _ in (comparison.expected, comparison.actual)] == ["the original", "Spark"]
        assert {(bool(one.expected), bool(one.actual)) for one in comparison.differences} == {sides}
