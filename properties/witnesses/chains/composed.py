"""The reference of a chain of operators: each operator's reference reads the changes of the previous operator's."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import reduce
from typing import TypeAlias

from ....reference.core.clocks import Clock, make_clock
from ....reference.core.operator import operator_named
from ....reference.core.records import Change, Output, Record, Value, Window
from ...generators.chains import Chain, Link, StreamBatch, referred_by

ChainChanges: TypeAlias = "dict[tuple[int, str], list[tuple[Window | None, Value, int]]]"
"""The emitted windows, values and timestamps (ms) in order, by batch and key."""
LIST_BASE, LIST_MODULUS = 3, 1_000_003
"""How the numbers of a list become one number: its order matters."""


def as_value(link: Link, change: Change) -> Value:
    """Return a change's value in the form that the next operator reads: an object with a number and a key, or None."""
    if change.value is None:
        return None
    number, referred = _parts(link, change.key or "", change.value)
    start, end = change.window or (0, 0)
    return {"v": (number or 0) + start + 2 * end, "ref": referred}


def _parts(link: Link, key: str, value: Value) -> tuple[int | None, str | None]:
    """Return a value's number, if any, and the key to which the value refers."""
    if isinstance(value, list) and len(link.definition.inputs) == 2:
        sides = [(None, None) if side is None else _parts_of_side(key, side) for side in value]
        (one, referred), (other, other_referred) = sides
        return 3 * (one or 0) + (other or 0), other_referred if referred is None else referred
    return _parts_of_side(key, value)


def _parts_of_side(key: str, value: Value) -> tuple[int | None, str | None]:
    if isinstance(value, dict):
        return value["v"], value["ref"]
    if isinstance(value, list):
        value = reduce(lambda made, member: (LIST_BASE * made + member) % LIST_MODULUS, value, 0)
    return value, referred_by(key, value)


class ComposedLink:
    """The reference of an operator in a chain, which reads inputs of the chain and the changes of the previous
    operator.

    Args:
        chain: The chain.
        number: The operator's number.
        clock: The clock that all operators of the chain share.
    """

    def __init__(self, chain: Chain, number: int, clock: Clock) -> None:
        self.number, self.link, self.clock = number, chain.links[number], clock
        self.behaviour = operator_named(self.link.operator).behaviour(self.link.definition, clock)
        self.before = type(self)(chain, number - 1, clock) if number else None

    def arrive(self, record: Record) -> list[Output]:
        """Process a record on an input of the chain."""
        number, _, side = record.input.partition(" ")
        if int(number) == self.number:
            return self.take(record._replace(input=side))
        return [] if self.before is None else self.fed(self.before.arrive(record))

    def advance(self) -> list[Output]:
        """Emit what the clock has closed: first this operator's windows and rows, then the previous operators'."""
        own = list(self.behaviour.advance())
        return own if self.before is None else [*own, *self.fed(self.before.advance())]

    def fed(self, outputs: Sequence[Output]) -> list[Output]:
        """Convert each change of the previous operator to a record of this operator, and process the record."""
        changes = [output for output in outputs if isinstance(output, Change)]
        return [emitted for change in changes for emitted in self.take(self.as_record(change))]

    def as_record(self, change: Change) -> Record:
        """Convert a change of the previous operator to a record of this operator."""
        assert self.before is not None
        return Record(self.link.side, change.key, as_value(self.before.link, change), change.timestamp)

    def take(self, record: Record) -> list[Output]:
        """Process a record of this operator; an aggregate of a stream ignores tombstones."""
        if self.link.takes_numbers:
            if record.value is None:
                return []
            record = record._replace(value=record.value["v"])
        return list(self.behaviour.arrive(record))


def composed_changelog(
    chain: Chain, histories: Sequence[Sequence[StreamBatch]], make: type[ComposedLink] = ComposedLink
) -> ChainChanges:
    """Return the changes that the composed reference emits; changes that the clock causes belong to the next batch.

    Args:
        chain: The chain.
        histories: The histories.
        make: The class of the composed reference; mutants replace it.
    """
    emitted: ChainChanges = defaultdict(list)
    for batches in histories:
        clock = make_clock("batch")
        last = make(chain, len(chain.links) - 1, clock)

        def emit(batch: int, outputs: Sequence[Output]) -> None:
            for output in outputs:
                if isinstance(output, Change) and output.key is not None:
                    emitted[batch, output.key].append((output.window, output.value, output.timestamp))

        for batch, (clock_ms, records) in enumerate(batches):
            for record in records:
                emit(batch, last.arrive(record))
            clock.observe(clock_ms)
            clock.cut()
            emit(min(batch + 1, len(batches) - 1), last.advance())
    return dict(emitted)
