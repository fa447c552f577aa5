"""The gate for every operator but session windows: each definition in `shapes` is a cohort on Spark.

What the reference itself is worth, `oracle` says; here Spark is held to the reference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ..reference.histories import CUT, Heartbeat, History
from ..reference.operators import operator_named
from .check import LONG_AFTER, SessionCheck, hash_of
from .cohorts import clock_schedule, one_cohort, with_heartbeats
from .domains import DOMAINS
from .draws import Shape, draw_histories
from .examinations import Examination, examine
from .laws import LAWS, Law, record_batches
from .operator_situations import needed
from .outcomes import canonical, result_differences
from .shapes import SCHEDULE, SHAPES
from .situations import situations_of

FLAT = (SCHEDULE[-1],) * len(SCHEDULE)

CUT_ELSEWHERE: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "window_aggregate": ("by tuple", {}),
    "stream_stream_join": ("outer, eager", {"grace_ms": 1000}),
    "windowed_table": ("hopping", {"grace_ms": 1000}),
}
"""A definition under which nothing is late, where the first one isn't such: its shape, and the options that differ."""

FORGETTING: Mapping[str, Callable[[Any], bool]] = {
    "stream_stream_join": lambda definition: True,
    "window_aggregate": lambda definition: definition.unit == "ms",
    "windowed_table": lambda definition: definition.with_ is None,
}
"""The operators whose state the definition bounds, and under which definitions."""


def forgets_under(operator: str, definition: Any) -> bool:
    """Whether an operator's state is empty under a definition, once the clock has passed everything."""
    return operator in FORGETTING and FORGETTING[operator](definition)


def laws_of(operator: str) -> list[Law]:
    """Give the laws of an operator on Spark, each with the situations that it must meet under every definition."""
    met = tuple(
        f"{situation} ({shape})"
        for shape, options in SHAPES[operator].items()
        for situation in needed(operator, operator_named(operator).declare(options))
        if "null key" not in situation  # a history with null keys travels in no cohort
    )
    laws = [replace(LAWS["changelog"], needs=met), replace(LAWS["table at every cut"], needs=met)]
    laws += [LAWS[name] for name in ("packing", "restart", "replay")]
    laws.append(replace(LAWS["cuts"], needs=("cuts moved",)))
    return [*laws, LAWS["state"]] if operator in FORGETTING else laws


class ShapeCheck(SessionCheck):
    """Holds an operator on Spark to its laws, shape by shape."""

    def run(self) -> None:
        """Ask every law, the saved findings first."""
        self.replay_saved()
        for name, options in SHAPES[self.report.operator].items():
            self.shape(name, options)
        self.cut_elsewhere()

    def drawn(
        self, name: str, options: Mapping[str, Any], schedule: Sequence[int], share: float = 1.0
    ) -> list[History]:
        """Draw an operator's histories of one definition."""
        count = max(1, round(share * self.histories / len(SHAPES[self.report.operator])))
        shape = Shape(options, tuple(schedule), operator=self.report.operator)
        return list(draw_histories(shape, count, hash_of(self.seed, f"{self.report.operator} {name} on Spark")))

    def shape(self, name: str, options: Mapping[str, Any]) -> None:
        """One definition in one query; of the first one also what restarts and packing do."""
        drawn = self.drawn(name, options, SCHEDULE)
        known = situations_of(drawn)
        self.report.situations.update(known)
        first = name == next(iter(SHAPES[self.report.operator]))
        definition = operator_named(self.report.operator).declare(options)
        forgets = forgets_under(self.report.operator, definition)
        whole = [long_after(history, definition) for history in drawn] if forgets else drawn
        self.progress(f"{len(whole)} histories in one query: {name}")
        examination = examine(one_cohort(whole), replace(self.plan, read_state=forgets))
        self.judge(examination, Counter({f"{situation} ({name})": count for situation, count in known.items()}))
        if forgets:
            self.state(examination)
        if first:
            self.restart(examination)
            self.packing(examination)

    def judge(self, examination: Examination, known: Counter[str] | None = None, shrink_them: bool = True) -> None:
        """Judge a run's histories by the changelog and the table at every cut."""
        self.report.queries += 1
        histories = examination.cohort.histories
        self.report.histories += len(histories)
        for law in ("changelog", "table at every cut"):
            self.laws[law].situations.update(known or {})
            self.laws[law].judged += len(histories)
            for place, broken in enumerate(examination.broken):
                if law in broken:
                    played, outcome = examination.played[place], examination.outcomes[place]
                    self.violated(law, histories[place], broken[law], played, outcome, shrink_them)

    def state(self, examination: Examination) -> None:
        """Judge what is left in the state long after every history."""
        law = self.laws["state"]
        law.judged += len(examination.cohort.histories)
        law.situations["state expired"] += sum(bool(played.accepted) for played in examination.played)
        for place, broken in enumerate(examination.broken):
            if "state" in broken:
                history, outcome = examination.cohort.histories[place], examination.outcomes[place]
                self.violated("state", history, broken["state"], examination.played[place], outcome)

    def cut_elsewhere(self) -> None:
        """Histories in which nothing can be late, with their records cut elsewhere, in one query."""
        operator = self.report.operator
        name, changed = CUT_ELSEWHERE.get(operator, (next(iter(SHAPES[operator])), {}))
        drawn = self.drawn(f"{name}, cut elsewhere", {**SHAPES[operator][name], **changed}, FLAT, 0.5)
        generator = random.Random(self.seed)
        moved = [cut_anew(history, generator) for history in drawn]
        self.progress(f"{2 * len(drawn)} histories in one query: cut elsewhere")
        examination = examine(one_cohort([*drawn, *moved]), self.plan)
        self.judge(examination)
        law, outcomes = self.laws["cuts"], examination.outcomes
        for place, (history, other) in enumerate(zip(drawn, moved, strict=True)):
            law.judged += 1
            law.situations["cuts moved"] += history.lines != other.lines
            played = examination.played[len(drawn) + place]
            unordered = played.definition.unordered
            one, two = (canonical(outcomes[at].result, unordered) for at in (place, len(drawn) + place))
            found = result_differences(other.name, None, one, two)
            if found:
                self.violated("cuts", other, found, played, outcomes[len(drawn) + place])


def cut_anew(history: History, generator: random.Random) -> History:
    """Give a history with its records in the same order, and its cuts elsewhere."""
    schedule = clock_schedule(history)
    records = [record for batch in record_batches(history) for record in batch]
    edges = [0, *sorted(generator.randint(0, len(records)) for _ in schedule[1:]), len(records)]
    batches: Iterable[Sequence[Any]] = [records[start:end] for start, end in pairwise(edges)]
    return replace(history, lines=with_heartbeats(list(batches), schedule), name=f"{history.name}/cuts")


def long_after(history: History, definition: Any) -> History:
    """The history with one more batch, in which the clock has passed everything that the state is kept for."""
    patience = DOMAINS[history.operator].patience(definition) + getattr(definition, "retention_ms", 0)
    return history.with_lines([*history.lines, CUT, Heartbeat(SCHEDULE[-1] + LONG_AFTER + 2 * patience)])
