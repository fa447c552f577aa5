"""Fold a changelog batch by batch, and compare each table with the meaning (the correct table) of the records accepted
so far.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Entry, Played
from ...reference.core.records import Change, Output, Table, bag, fold
from ..outcomes.outcomes import Difference, FinalResult, canonical, result_differences


def by_batch(entries: Iterable[Entry], batches: int) -> list[list[Output]]:
    """Return the output of each batch, in order."""
    emitted: list[list[Output]] = [[] for _ in range(batches)]
    for entry in entries:
        if entry.batch < batches:
            emitted[entry.batch].append(entry.output)
    return emitted


def folded_differences(history: History, played: Played, emitted: Sequence[Sequence[Output]]) -> list[Difference]:
    """Return the differences between the folded changelog and the meaning (the correct table) for the first batch with
    a difference.

    Args:
        history: The history.
        played: The reference's run of the history, with the records that each batch accepted.
        emitted: The output of each batch; these changes are folded.
    """
    operator, definition = operator_named(history.operator), played.definition
    table: Table = {}
    stream: list[Change] = []
    asked: tuple[int, int] | None = None
    for batch, ((_, accepted, clock), outputs) in enumerate(zip(played.steps, emitted, strict=True)):
        if asked == (accepted, clock) and not outputs:
            continue  # no record was accepted and no output emitted
        asked = accepted, clock
        if definition.is_stream:
            stream = bag([*stream, *outputs])
        result: FinalResult = stream if definition.is_stream else fold(outputs, table)
        meant = canonical(operator.meaning(definition, played.accepted[:accepted], clock), definition.unordered)
        folded = canonical(result, definition.unordered)
        # Test equality first, because listing the differences is slower.
        if meant != folded and (wrong := result_differences(history.name, batch, meant, folded)):
            return wrong
    return []
