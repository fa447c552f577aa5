"""Hypothesis strategies for histories and for options of session windows: few records, that shrink."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st
from streamproof.properties.generators.draws import KINDS, HistorySettings, Move, history_of
from streamproof.properties.generators.values import KEY_SETS, SMALL
from streamproof.properties.registration.domain import CHOICES
from streamproof.reference.core.history import History


@st.composite
def histories(draw: st.DrawFn, settings: HistorySettings, mixed: bool = False) -> History:
    """Hypothesis strategy for histories of these settings; it shrinks to few records, few cuts, small timestamps.

    Args:
        draw: Hypothesis' own.
        settings: What the histories have in common.
        mixed: Whether each has a kind of values and a set of keys of its own; they shrink to the plainest.
    """
    if mixed:
        kind, key_set = draw(st.sampled_from(settings.kinds or (SMALL,))), draw(st.sampled_from(list(KEY_SETS)))
        settings = replace(settings, kind=kind, key_set=key_set)
    move = st.builds(
        Move,
        kind=st.integers(0, KINDS - 1),
        back=st.integers(0, 4),
        jitter=st.integers(0, 12),
        key=st.integers(0, 2),
        value=st.integers(0, 3),
        cuts=st.sampled_from([0, 0, 0, 0, 1, 1, 2]),
        side=st.just(0) if settings.is_plain else st.integers(0, 1),
        choice=st.just(0) if settings.is_plain else st.integers(0, CHOICES - 1),
    )
    return history_of(settings, draw(st.lists(move, max_size=settings.arrivals)))


def declarations(
    aggregates: Sequence[str] = ("count", "sum", "min", "max", "list"),
) -> st.SearchStrategy[dict[str, Any]]:
    """Hypothesis strategy for options of `session_windows`."""
    return st.fixed_dictionaries(
        {
            "gap_ms": st.integers(1, 12),
            "grace_ms": st.sampled_from([0, 5, 30]),
            "aggregate": st.sampled_from(list(aggregates)),
            "emit": st.sampled_from(["update", "close"]),
            "late": st.sampled_from(["merged", "own"]),
        }
    )
