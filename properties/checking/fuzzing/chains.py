"""Chains of streamproof's operators, drawn and judged like plans: compares Spark's output with the composed references
of the operators.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import TypeAlias

from ...generators.chains import SEPARATOR, Chain, StreamBatch, draw_chain, draw_streams, renumbered
from ...generators.shrinking import Deadline, Shrinker, fewer
from ...witnesses.chains.composed import ChainChanges, composed_changelog

CHAINS = "chains"
"""The relation of a chain to its composed reference."""
HISTORIES = 60
"""The largest number of histories of a chain: a query of several operators in Python takes seconds for them."""
OnSpark: TypeAlias = Callable[[Chain, Sequence[Sequence[StreamBatch]]], ChainChanges]
"""Runs a chain over histories on Spark."""
_SECONDS = 90.0
_AT_ONCE = 100


def drawn_chain(seed: str, histories: int) -> tuple[Chain, list[list[StreamBatch]]]:
    """Return the chain of a seed, and its histories."""
    generator = random.Random(seed)
    chain = draw_chain(generator)
    return chain, draw_streams(generator, chain, min(histories, HISTORIES))


def differing(chain: Chain, histories: Sequence[Sequence[StreamBatch]], on_spark: OnSpark) -> list[int]:
    """Return the numbers of the histories for which Spark and the composed reference emit different output."""
    found, expected = on_spark(chain, histories), composed_changelog(chain, histories)
    keys = (key for at, key in {**found, **expected} if found.get((at, key)) != expected.get((at, key)))
    return sorted({int(key.partition(SEPARATOR)[0]) for key in keys})


def smallest(chain: Chain, history: Sequence[StreamBatch], on_spark: OnSpark) -> Sequence[StreamBatch]:
    """Return the smallest differing history found within the time limit; the candidates of a round share a query."""

    def fails(candidates: Sequence[Sequence[StreamBatch]]) -> list[bool]:
        together = [renumbered(one, number) for number, one in enumerate(candidates)]
        wrong = differing(chain, together, on_spark) if together else []
        return [number in wrong for number in range(len(candidates))]

    shrinker = Shrinker(_size, _candidates)
    return shrinker.shrink(renumbered(history, 0), fails, at_once=_AT_ONCE, deadline=Deadline(_SECONDS))


def _size(history: Sequence[StreamBatch]) -> tuple[int, ...]:
    return (sum(len(records) for _, records in history),)


def _candidates(history: Sequence[StreamBatch], thorough: bool) -> Iterator[list[StreamBatch]]:
    places = [(batch, record) for batch, (_, records) in enumerate(history) for record in records]
    for kept in fewer(places, thorough):
        yield [
            (clock_ms, [record for at, record in kept if at == number]) for number, (clock_ms, _) in enumerate(history)
        ]


def text_of(chain: Chain, history: Sequence[StreamBatch], on_spark: OnSpark) -> str:
    """Return a differing history with both changelogs, as text."""
    lines = [chain.text]
    for number, (clock_ms, records) in enumerate(history):
        lines += [f"batch {number}:", *(f"  {record}" for record in records), f"  the clock moves to {clock_ms} ms"]
    for name, changelog in (
        ("expected", composed_changelog(chain, [history])),
        ("Spark", on_spark(chain, [history])),
    ):
        lines += [f"{name}:", *(f"  batch {at}, {key}: {rows}" for (at, key), rows in sorted(changelog.items()))]
    return "\n".join(lines)


def judged_chain(chain: Chain, histories: Sequence[Sequence[StreamBatch]], on_spark: OnSpark) -> str:
    """Judge a chain; return its smallest difference as text, or an empty text.

    Raises:
        StreamproofError: The query failed.
    """
    wrong = differing(chain, histories, on_spark)
    return text_of(chain, smallest(chain, histories[wrong[0]], on_spark), on_spark) if wrong else ""
