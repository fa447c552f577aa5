"""Plays a history on a behaviour, and tells for each output which arrival and which batch set it off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .clocks import Clock, make_clock
from .errors import BadInput
from .histories import CUT, Cut, Heartbeat, History
from .operators import Behaviour, operator_named
from .records import Accepted, Dropped, Output, Record, Table, fold


class Entry(NamedTuple):
    """One output, with what set it off.

    What a cut sets off belongs to the batch after it, and to that batch's first arrival, if one comes at all; what the
    end of the history sets off belongs to the last batch and the last arrival. Both count from 0.
    """

    arrival: int
    batch: int
    output: Output


@dataclass
class Played:
    """What came out of a history, and what went in.

    Attributes:
        entries: Every output in order.
        accepted: The records that the operator took, each with its clock (ms), in arrival order.
        clock: What the clock says at the end (ms).
        steps: After each batch: how many entries there were, how many accepted records, and the clock (ms).
    """

    entries: list[Entry] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    clock: int = 0
    steps: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def table(self) -> Table:
        """The folded changelog."""
        return fold(entry.output for entry in self.entries)


def play(history: History, behaviour: Callable[[Any, Clock], Behaviour] | None = None) -> Played:
    """Play a history on the reference of its operator, or on another behaviour of the same form."""
    operator = operator_named(history.operator)
    clock = make_clock(history.clock)
    machine = (behaviour or operator.behaviour)(operator.declare(history.options), clock)
    played = Played()
    arrivals = len(history.lines) - history.lines.count(CUT)
    arrival = batch = 0

    def tell(outputs: list[Output]) -> None:
        if outputs:
            number = max(0, min(arrival, arrivals - 1))
            played.entries += [Entry(number, batch, output) for output in outputs]

    def end_of_batch() -> None:
        played.steps.append((len(played.entries), len(played.accepted), clock.now))

    for line in history.lines:
        if isinstance(line, Record):
            try:
                outputs = machine.arrive(line)
            except BadInput as error:
                raise BadInput(f"{history.name}: arrival {arrival}: {error}") from None
            tell(outputs)
            if not (outputs and isinstance(outputs[-1], Dropped)):
                played.accepted.append(Accepted(line, clock.now))
        elif isinstance(line, Heartbeat):
            clock.observe(line.timestamp)
            tell(machine.advance())
        elif isinstance(line, Cut):
            end_of_batch()
            batch += 1
            clock.cut()
            tell(machine.advance())
            continue
        else:
            raise NotImplementedError("no operator with channels yet")
        arrival += 1
    clock.cut()
    tell(machine.advance())
    end_of_batch()
    played.clock = clock.now
    return played
