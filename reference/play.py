"""Plays a history on a behaviour, and tells for each output which arrival and which batch set it off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from .clocks import Clock, make_clock
from .declarations import Definition
from .errors import BadInput
from .foreign_key_protocol import Protocol
from .histories import Cut, Delivery, Heartbeat, History
from .operators import Behaviour, collect, operator_named
from .records import Accepted, Bag, Dropped, Output, Record, Table


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
        definition: The operator's, as the history declares it.
        entries: Every output in order.
        accepted: The records that the operator took, each with its clock (ms), in arrival order.
        clock: What the clock says at the end (ms).
        steps: After each batch: how many entries there were, how many accepted records, and the clock (ms).
    """

    definition: Definition
    entries: list[Entry] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    clock: int = 0
    steps: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def result(self) -> Table | Bag:
        """The folded changelog, or of a stream the bag of all results."""
        return collect(self.definition, (entry.output for entry in self.entries))


def play(history: History, behaviour: Callable[[Any, Clock], Behaviour] | None = None) -> Played:
    """Play a history on the reference of its operator, or on another behaviour of the same form."""
    operator = operator_named(history.operator)
    clock = make_clock(history.clock)
    definition = operator.declare(history.options)
    machine = (behaviour or operator.behaviour)(definition, clock)
    played = Played(definition)
    arrivals = sum(not isinstance(line, Cut) for line in history.lines)
    arrival = batch = 0

    def tell(outputs: list[Output]) -> None:
        if outputs:
            number = max(0, min(arrival, arrivals - 1))
            played.entries += [Entry(number, batch, output) for output in outputs]

    def end_of_batch() -> None:
        played.steps.append((len(played.entries), len(played.accepted), clock.now))

    for index, line in enumerate(history.lines):
        if isinstance(line, (Record, Delivery)):
            try:
                outputs = machine.arrive(line) if isinstance(line, Record) else deliver(machine, line)
            except BadInput as error:
                raise BadInput(f"{history.place(index)}: {error}") from None
            tell(outputs)
            if isinstance(line, Record) and not (outputs and isinstance(outputs[-1], Dropped)):
                played.accepted.append(Accepted(line, clock.now))
        elif isinstance(line, Heartbeat):
            clock.observe(line.timestamp)
            tell(machine.advance())
        else:
            end_of_batch()
            batch += 1
            clock.cut()
            tell(machine.advance())
            continue
        arrival += 1
    clock.cut()
    tell(machine.advance())
    end_of_batch()
    played.clock = clock.now
    return played


def deliver(machine: Behaviour, delivery: Delivery) -> list[Output]:
    """Hand on a message that waits in a channel of a behaviour.

    Raises:
        BadInput: None waits there, or the behaviour has no channels.
    """
    if not isinstance(machine, Protocol):
        raise BadInput("no message waits, for delivery is immediate: use the option delivery manual")
    return [*machine.deliver(*delivery)]
