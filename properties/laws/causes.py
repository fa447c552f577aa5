"""The reference's run of a history, with the record that caused each output."""

from __future__ import annotations

from typing import Any

from ...reference.core.clocks import Clock
from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played, play
from ...reference.core.records import Output, Record


def played_with_causes(history: History) -> tuple[Played, list[int | None]]:
    """Return the reference's run, and for each output the number (from 0) of the record that caused it."""
    causes: list[int | None] = []
    number = -1

    class Noting:
        """A wrapper of the reference's state machine, which records the cause of each output."""

        def __init__(self, definition: Any, clock: Clock) -> None:
            self.own = operator_named(history.operator).behaviour(definition, clock)

        def arrive(self, record: Record) -> list[Output]:
            nonlocal number
            number += 1
            outputs = self.own.arrive(record)
            causes.extend([number] * len(outputs))
            return outputs

        def advance(self) -> list[Output]:
            outputs = self.own.advance()
            causes.extend([None] * len(outputs))
            return outputs

    played = play(history, Noting)
    return played, causes
