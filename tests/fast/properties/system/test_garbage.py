"""How often Python searches for garbage."""

from __future__ import annotations

import contextlib
import gc

from streamproof.properties.system.garbage import THRESHOLDS, searched_seldom


def test_garbage_is_searched_for_seldom_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with contextlib.suppress(KeyError), searched_seldom():
        assert gc.get_threshold() == THRESHOLDS
        assert gc.isenabled()
        raise KeyError
    assert gc.get_threshold() == before


def test_the_search_is_rarer_than_pythons_own() -> None:
    assert THRESHOLDS[0] > 10 * 700
