"""Run a history on a behaviour, and label each output with its arrival and batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..definitions.declarations import Definition
from ..foreign_key_protocol import Protocol
from .clocks import Clock, make_clock
from .errors import BadInput
from .history import ClockAdvance, Cut, Delivery, History
from .operator import Behaviour, collect, operator_named
from .records import Accepted, Bag, Dropped, Output, Record, Table


class Entry(NamedTuple):
    """An output, with the arrival and the batch that caused it.

    Output that a cut causes belongs to the next batch and the next arrival, or to the last arrival if none follows.
    Output at the end of the history belongs to the last batch and the last arrival. Arrivals and batches are numbered
    from 0.
    """

    arrival: int
    batch: int
    output: Output


@dataclass
class Played:
    """The output of a behaviour for a history, and the records that the behaviour accepted.

    Attributes:
        definition: The operator's definition, from the history.
        entries: Every output in order.
        accepted: The accepted records in order of arrival, each with the clock's time at its arrival (ms).
        clock: The clock's time at the end (ms).
        steps: For the end of each batch: the number of outputs so far, the number of accepted records, the clock's time
            (ms).
    """

    definition: Definition
    entries: list[Entry] = field(default_factory=list)
    accepted: list[Accepted] = field(default_factory=list)
    clock: int = 0
    steps: list[tuple[int, int, int]] = field(default_factory=list)

    @property
    def result(self) -> Table | Bag:
        """The folded changelog, or the bag of all results if the result is a stream."""
        return collect(self.definition, (entry.output for entry in self.entries))


def play(history: History, behaviour: Callable[[Any, Clock], Behaviour] | None = None) -> Played:
    """Run a history on its operator's behaviour, or on the state machine that `behaviour` makes.

    Raises:
        BadInput: The options or an arrival are invalid; the message names the line.
    """
    operator = operator_named(history.operator)
    clock = make_clock(history.clock)
    definition = operator.declare(history.options)
    machine = (behaviour or operator.behaviour)(definition, clock)
    played = Played(definition)
    arrivals = sum(not isinstance(line, Cut) for line in history.lines)
    arrival = batch = 0

    def emit(outputs: list[Output]) -> None:
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
                raise BadInput(f"{history.location(index)}: {error}") from None
            emit(outputs)
            if isinstance(line, Record) and not (outputs and isinstance(outputs[-1], Dropped)):
                played.accepted.append(Accepted(line, clock.now))
        elif isinstance(line, ClockAdvance):
            clock.observe(line.timestamp)
            emit(machine.advance())
        else:
            end_of_batch()
            batch += 1
            clock.cut()
            emit(machine.advance())
            continue
        arrival += 1
    clock.cut()
    emit(machine.advance())
    end_of_batch()
    played.clock = clock.now
    return played


def deliver(machine: Behaviour, delivery: Delivery) -> list[Output]:
    """Deliver the oldest message that waits on a route, and return the outputs.

    Raises:
        BadInput: No message waits on the route, or the behaviour sends no messages.
    """
    if not isinstance(machine, Protocol):
        raise BadInput("no message waits, because delivery is immediate: use the option delivery manual")
    return [*machine.deliver(*delivery)]
