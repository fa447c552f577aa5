"""Folds a changelog batch by batch, and compares each table with the meaning of what was accepted by then."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ...reference.core.history import History
from ...reference.core.operator import collect, operator_named
from ...reference.core.play import Played
from ..witnesses.outcomes import Difference, canonical, result_differences


def folded_differences(
    history: History, played: Played, emitted: Callable[[int, int], Iterable[Any]]
) -> list[Difference]:
    """Return where the table of a changelog differs from the meaning, after the first batch in which it does.

    Args:
        history: The history.
        played: The reference's play of it: which records were accepted by when.
        emitted: Of a batch (from 0) and the number of entries that the reference had by its end: what was emitted.
    """
    operator, definition = operator_named(history.operator), played.definition
    for batch, (entries, accepted, clock) in enumerate(played.steps):
        meant = canonical(operator.meaning(definition, played.accepted[:accepted], clock), definition.unordered)
        folded = canonical(collect(definition, emitted(batch, entries)), definition.unordered)
        if wrong := result_differences(history.name, batch, meant, folded):
            return wrong
    return []
