"""Draws chains of streamproof's operators and their input records; each operator reads the changelog of the operator
before it.

Each value between operators is null, or an object with a number `v` and a key `ref`, so that any operator can follow
any other. Aggregates read `v`; groups and foreign keys are `ref`. Each key begins with the number of its history and
`SEPARATOR`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache, cached_property
from typing import Any, TypeAlias

from ...reference.core.operator import operator_named
from ...reference.core.records import Key, Record
from ..registration.registration import Options, registration_of
from .options import draw_definitions

OPERATORS = (
    *("session_windows", "window_aggregate", "range_aggregate", "windowed_table", "table_aggregate"),
    *("stream_stream_join", "stream_table_join", "table_table_join", "foreign_key_join"),
)
"""The drawn operators. `scd1` and `scd2` are left out, because they refuse different events with equal times, which
changelogs contain; `one_to_many_join` is left out, because its result has two keys."""
LENGTHS = (2, 2, 3)
"""The numbers of operators of a chain."""
SEPARATOR = "|"
DRIVER = "~~"
"""The history of the rows that move the clock; each batch has such rows on each input."""
REFERRED = ("r", "s", "a", None)
"""The keys that values refer to; an operator's result refers to the key at its number modulo 4."""
_KEYS = ("a", "a", "b", "b", "r", "s")
_SETS = 40
"""The smallest number of sets of options of an operator."""
StreamBatch: TypeAlias = "tuple[int, Sequence[Record]]"
"""The clock after a batch (ms), and the batch's records, each on an input of the chain."""


@dataclass(frozen=True)
class Link:
    """An operator of a chain.

    Attributes:
        operator: Its name.
        options: The operator's options, as in a history file.
        side: The input that reads the changelog of the operator before; empty for the first operator.
    """

    operator: str
    options: tuple[tuple[str, Any], ...]
    side: str = ""

    @cached_property
    def definition(self) -> Any:
        """The declared options."""
        return operator_named(self.operator).declare(dict(self.options))

    @property
    def takes_numbers(self) -> bool:
        """Return whether the operator aggregates the values of a stream, which can't be null."""
        return hasattr(self.definition, "aggregate") and not hasattr(self.definition, "group_by")


@dataclass(frozen=True)
class Chain:
    """A chain of operators.

    Attributes:
        links: The operators, in the order in which they process records.
    """

    links: tuple[Link, ...]

    @property
    def inputs(self) -> list[str]:
        """The inputs of the chain, each as the number of an operator and the name of the operator's input."""
        numbered = enumerate(self.links)
        return [f"{number} {side}" for number, link in numbered for side in link.definition.inputs if side != link.side]

    @property
    def text(self) -> str:
        """The chain as text, with one line for each operator."""
        lines = []
        for link in self.links:
            options = ", ".join(f"{name}={value!r}" for name, value in link.options)
            lines.append(f"{link.operator}({options})" + f" takes the changelog as {link.side}" * bool(link.side))
        return "\n".join(lines)


def link(operator: str, options: Options, side: str = "") -> Link:
    """Return an operator of a chain with the given options; options that name a field of values name `v` or `ref`."""
    named = {name: value for name, value in (("group_by", "ref"), ("foreign_key", "ref")) if name in options}
    if "group_by" in options:
        named["field"] = "v"
    return Link(operator, tuple({**options, **named}.items()), side)


@cache
def _options_of(operator: str) -> list[Options]:
    """Return sets of options with which an operator can be in a chain; most legal pairs of option values occur in one
    of the sets.
    """
    drawn = draw_definitions(registration_of(operator), _SETS, 0)
    return [options for options in drawn if _suits_chains(options)]


def _suits_chains(options: Options) -> bool:
    """Return whether options work in a chain: with the values of chains, and without explicit message deliveries."""
    windows = options.get("with") in (None, "windowed_table") and not options.get("to_stream")
    return windows and options.get("aggregate") != "average" and options.get("delivery") != "manual"


def draw_chain(generator: random.Random) -> Chain:
    """Draw a chain."""
    links: list[Link] = []
    for _ in range(generator.choice(LENGTHS)):
        operator = generator.choice(OPERATORS)
        drawn = link(operator, generator.choice(_options_of(operator)))
        links.append(replace(drawn, side=generator.choice(drawn.definition.inputs)) if links else drawn)
    return Chain(tuple(links))


def durations_ms(chain: Chain) -> list[int]:
    """Return the durations (ms) on which a chain's output depends, as distances between records or behind the clock."""
    found = {1, 10}
    for one in chain.links:
        domain = registration_of(one.operator).domain
        found |= {*domain.distances(one.definition), *domain.edges(one.definition)}
    return sorted(found - {0})


def draw_streams(generator: random.Random, chain: Chain, histories: int) -> list[list[StreamBatch]]:
    """Draw the histories of a chain with one clock schedule; records are at or next to the distances in `durations_ms`.

    Args:
        generator: The generator.
        chain: The chain.
        histories: The number of histories.
    """
    distances = durations_ms(chain)
    clock_ms, clocks_ms = 2 * distances[-1], list[int]()
    for _ in range(generator.choice((3, 4))):
        clock_ms += generator.choice((1, 5, *distances, distances[-1] + 1))
        clocks_ms.append(clock_ms)
    drawn = []
    for history in range(histories):
        batches: list[StreamBatch] = []
        for number, now_ms in enumerate(clocks_ms):
            edges = [reached - distance for reached in clocks_ms[: number + 1] for distance in (0, *distances)]
            times = [max(0, min(edge + beside, now_ms)) for edge in edges for beside in (-1, 0, 1)]
            count = generator.randint(0, 8)
            batches.append((now_ms, [_record(generator, chain, history, times) for _ in range(count)]))
        drawn.append(batches)
    return drawn


def _record(generator: random.Random, chain: Chain, history: int, times: Sequence[int]) -> Record:
    number, _, side = generator.choice(chain.inputs).partition(" ")
    one, prefix = chain.links[int(number)], f"{history:03d}{SEPARATOR}"
    referred = generator.choice(("r", *REFERRED))
    value = {"v": generator.randint(0, 9), "ref": None if referred is None else prefix + referred}
    deleted = not one.takes_numbers and generator.random() < 0.2
    key = generator.choice("rrs" if side == "right" and hasattr(one.definition, "foreign_key") else _KEYS)
    return Record(f"{number} {side}", prefix + key, None if deleted else value, generator.choice(times))


def clock_records(chain: Chain, clock_ms: int) -> list[Record]:
    """Return the records that move the clock, with the records of right inputs first."""
    value = {"v": 0, "ref": f"{DRIVER}{SEPARATOR}r"}
    inputs = sorted(chain.inputs, key=lambda name: name.partition(" ")[2] != "right")
    return [Record(name, f"{DRIVER}{SEPARATOR}{key}", value, clock_ms) for name in inputs for key in "ar"]


def renumbered(batches: Sequence[StreamBatch], number: int) -> list[StreamBatch]:
    """Return a history with another number in its keys, so that it can share a query with other histories."""

    def of_history(key: Any) -> Any:
        return key and f"{number:03d}{SEPARATOR}{key.partition(SEPARATOR)[2]}"

    def changed(record: Record) -> Record:
        value = record.value and {**record.value, "ref": of_history(record.value["ref"])}
        return record._replace(key=of_history(record.key), value=value)

    return [(clock_ms, [changed(record) for record in records]) for clock_ms, records in batches]


def referred_by(key: Key, number: int | None) -> Key | None:
    """Return the key to which an operator's result refers, chosen by the result's number from its history's keys; None
    without a number.
    """
    prefix = key.partition(SEPARATOR)[0]
    name = None if number is None else "r" if prefix == DRIVER else REFERRED[number % len(REFERRED)]
    return None if name is None else f"{prefix}{SEPARATOR}{name}"
