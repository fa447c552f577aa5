"""Counterexamples of values and keys as users have them: their files, texts and tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_contents import counterexample_of
from strange_contents_setup import DRAWN
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.registration.registration import registered


@pytest.mark.parametrize("operator", list(registered()))
def test_a_saved_counterexample_is_read_back_whatever_its_keys_and_values(operator: str, tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    mine = [history for history in DRAWN if history.operator == operator]
    paths = {store.save(counterexample_of(history, lost=range(99))) for history in mine}
    assert len(paths) == len(mine)
    assert {repr(one.history.lines) for one in store.saved(operator, "spark")} == {repr(one.lines) for one in mine}
