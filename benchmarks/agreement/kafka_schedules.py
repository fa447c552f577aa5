"""Counts on how many of 10,000 random schedules Kafka's own foreign-key join differs from the reference's protocol.

Each history has a random schedule of delivery, after which no message waits. After each step the output and the waiting
messages are compared; a difference that a named divergence (a known difference of Kafka from its documents) explains is
counted under that name. The benchmark also measures the rate of scheduled histories on Kafka Streams' test driver, and
the time of every race.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from streamproof.properties.laws.scheduling import scheduled
from streamproof.properties.models.races import raced
from streamproof.properties.witnesses.kafka.divergences import explained
from streamproof.properties.witnesses.kafka.witness import KafkaWitness
from streamproof.properties.witnesses.messages import staged_by_protocol, staged_differences
from streamproof.reference.core.errors import StreamproofError
from streamproof.reference.core.history import History
from streamproof.specs.races import chosen

from ..figures import Figure, Setting, Target, figure, seconds

JOINS: Mapping[str, Mapping[str, Any]] = {
    "inner": {"foreign_key": "artist"},
    "left": {"foreign_key": "artist", "join": "left", "null_foreign_key": "keep"},
}
RECORDS = 8
TOGETHER = 1_000
"""The number of histories that are played together."""


def run(setting: Setting) -> list[Figure]:
    """Count the unexplained differences of each join; measure the rate of histories, and the time of the races."""
    count = setting.size(10_000, 40)
    figures = []
    for join, options in JOINS.items():
        drawn = schedules(options, count, setting.seed)
        unexplained, named, lines = 0, Counter[str](), 0
        for number, some in enumerate(_parts(drawn)):
            setting.progress(f"{join} join: schedules {number * TOGETHER + 1:,} to {number * TOGETHER + len(some):,}")
            differing, names = disagreements(some)
            unexplained, lines = unexplained + len(differing), lines + sum(len(history.lines) for history in some)
            named.update(names)
            for history in differing[:1]:
                setting.progress(f"it differs on {history.name}:\n{history.to_text()}")
        if not any(len(history.lines) > len(history.records) for history in drawn):
            raise StreamproofError(f"{join} join: no history has a delivery, so nothing was compared")
        names = ", ".join(f"{name} {found:,}" for name, found in sorted(named.items())) or "none"
        sizes = f"{count:,} random schedules of {lines:,} steps; named divergences: {names}"
        name = f"{join} join under random schedules, Kafka against the protocol: unexplained disagreements"
        figures.append(figure(name, "histories", [float(unexplained)], sizes, Target("at most", 0)))
    return [*figures, rate(setting), *races(setting)]


def rate(setting: Setting) -> Figure:
    """Measure the rate of scheduled histories on Kafka (per second)."""
    count = setting.size(TOGETHER, 40)
    drawn = schedules(JOINS["inner"], count, setting.seed)
    kafka = KafkaWitness()
    kafka.evaluate(drawn)  # this run starts the JVM; it isn't measured
    setting.progress(f"{count:,} scheduled histories on Kafka Streams")
    runs = [count / seconds(lambda: kafka.evaluate(drawn)) for _ in range(setting.times())]
    sizes = f"{count:,} histories, {sum(len(history.lines) for history in drawn) / count:.1f} steps each"
    target = None if setting.small else Target("at least", 300)
    return figure("scheduled histories on Kafka's test driver, its messages held", "histories/s", runs, sizes, target)


def races(setting: Setting) -> Iterator[Figure]:
    """Measure the time to play all races by their schedules, and in every order of their messages, without the JVM's
    start.
    """
    for every, bound in ((False, 60), (True, 120)):
        setting.progress("every race" + every * ", in every order of its messages")
        found: list[Any] = []
        taken = seconds(lambda: found.extend(raced(chosen([]), "kafka", every=every)))  # noqa: B023
        sizes = f"{sum(one.played for one in found):,} orders, {sum(one.wrong for one in found):,} of them end wrong"
        yield figure(
            f"the races on Kafka's own code{every * ', every order of their messages'}",
            "seconds",
            [taken],
            sizes,
            Target("under", bound),
        )


def schedules(options: Mapping[str, Any], count: int, seed: int) -> list[History]:
    """Draw histories under stream time, each with a random schedule; the same seed gives the same histories."""
    settings = HistorySettings("foreign_key_join", options, SCHEDULE, arrivals=RECORDS)
    generator = random.Random(seed)
    return [scheduled(under_stream_time(one), generator) for one in draw_histories(settings, count, seed=seed)]


def disagreements(histories: list[History]) -> tuple[list[History], Counter[str]]:
    """Return the histories with unexplained differences, and the number of histories that each divergence explains."""
    unexplained, named = [], Counter[str]()
    for history, staged in zip(histories, KafkaWitness().stage(histories, strict=False), strict=True):
        expected = staged_by_protocol(history)
        if not staged_differences(history, staged, expected):
            continue
        names = explained(history, staged.outcome) if staged.waiting == expected.waiting else ()
        named.update(names)
        unexplained += [] if names else [history]
    return unexplained, named


def _parts(histories: list[History]) -> Iterator[list[History]]:
    return (histories[start : start + TOGETHER] for start in range(0, len(histories), TOGETHER))
