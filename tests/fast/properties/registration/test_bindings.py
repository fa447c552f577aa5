"""The bindings of operators: how values travel as texts, and what a wrong operator makes of them."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.registration.bindings import from_json, pair_from_json


@pytest.mark.parametrize("text", ["no JSON", {"part": 1}, [{"part": 1}], 1.5])
def test_an_emitted_value_that_was_never_drawn_is_shown_and_differs_from_every_value(text: Any) -> None:
    assert from_json(text) == f"not a drawn value: {text!r}"
    assert pair_from_json({"left": "1", "right": text}) == [1, f"not a drawn value: {text!r}"]
