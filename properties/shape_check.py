"""The gate for every operator but session windows: each definition in `shapes` is a cohort on Spark.

What the reference itself is worth, `oracle` says; here Spark is held to the reference.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ..reference.histories import CUT, Heartbeat, History
from ..reference.operators import operator_named
from ..reference.play import play
from .check import LONG_AFTER, SessionCheck, hash_of, situations_alone
from .cohorts import clock_schedule, one_cohort
from .coverage import Finish, covered_by, draw_covering, goals
from .decoupled_witness import play_decoupled, staged_differences
from .domains import DOMAINS
from .draws import Shape, draw_histories
from .duckdb_witness import tables
from .examinations import Examination, examine
from .laws import LAWS, Law, state_left
from .native_check import native_histories, native_law, native_situations, same_as_reference, taken_by_spark
from .outcomes import differences
from .recheck import at_end
from .retention import RETAINED, retention_broken, retention_law, retention_plan, retention_situations, still_kept
from .schedules_check import OPERATOR as SCHEDULED
from .schedules_check import SCHEDULES, draw_scheduled, schedule_situations
from .shapes import NATIVE_SHAPES, SCHEDULE, SHAPES
from .spark_witness import Plan, run_cohort
from .variants import (
    PATIENT,
    Companion,
    changed_without_effect,
    is_timeless,
    laws_under,
    order_of,
    parted,
    without_other_keys,
)

FLAT = (SCHEDULE[-1],) * len(SCHEDULE)

BY_DUCKDB = "what Spark's changelog folds to is what DuckDB's statement of the definition gives"
SENTENCES = {
    "cuts": LAWS["cuts"].sentence,
    "repeats": "what comes of records that all come twice is known from what comes of them once",
    "keys": "what is told for a key is the same without what doesn't concern it",
}

FORGETTING: Mapping[str, Callable[[Any], bool]] = {
    "stream_stream_join": lambda definition: True,
    "window_aggregate": lambda definition: definition.unit == "ms",
    "windowed_table": lambda definition: definition.with_ in (None, "windowed_table"),
}
"""The operators whose state the definition bounds, and under which definitions."""


def forgets_under(operator: str, definition: Any) -> bool:
    """Whether an operator's state is empty under a definition, once the clock has passed everything."""
    return operator in FORGETTING and FORGETTING[operator](definition)


def laws_of(operator: str) -> list[Law]:
    """Give the laws of an operator on Spark, each with the goals that it must cover under every definition."""
    met = tuple(
        f"{situation} ({shape})"
        for shape, options in SHAPES[operator].items()
        for situation in goals(operator, options)
    )
    laws = [replace(LAWS["changelog"], needs=met), replace(LAWS["table at every cut"], needs=met)]
    laws += [LAWS[name] for name in ("packing", "partitions", "restart", "replay")]
    laws += [replace(LAWS["duckdb"], sentence=BY_DUCKDB, needs=met), *_of_variants(operator)]
    laws += [retention_law(operator)] if operator in RETAINED else []
    if operator in NATIVE_SHAPES:
        laws.append(native_law(operator))
    if operator == SCHEDULED:
        laws.append(SCHEDULES)
    return [*laws, LAWS["state"]] if operator in FORGETTING else laws


def _of_variants(operator: str) -> list[Law]:
    """The laws of variants, each of which must have changed something under every definition that it is asked of."""
    asked: dict[str, list[str]] = {"keys": list(SHAPES[operator])}
    free: dict[str, None] = {}  # an ordered set
    for name, options in SHAPES[operator].items():
        definition = operator_named(operator).declare(options)
        if is_timeless(operator, definition) or name in PATIENT.get(operator, {}):
            free[order_of(operator, definition).value] = None
            for law in laws_under(operator, definition):
                asked.setdefault(law, []).append(name)
    sentences = {**SENTENCES, "order": f"the order of arrival plays no part {', or '.join(free)}"}
    return [
        replace(LAWS[law], sentence=sentences[law], needs=tuple(f"changed ({name})" for name in names))
        for law, names in asked.items()
    ]


class ShapeCheck(SessionCheck):
    """Holds an operator on Spark to its laws, shape by shape."""

    following = (*SessionCheck.following, "duckdb")

    def run(self) -> None:
        """Ask every law, the saved findings first."""
        self.replay_saved()
        for name, options in SHAPES[self.report.operator].items():
            self.shape(name, options)
        for name, changed in PATIENT.get(self.report.operator, {}).items():
            self.patient_shape(name, {**SHAPES[self.report.operator][name], **changed})
        self.retention()
        self.native()
        if self.report.operator == SCHEDULED:
            self.schedules()

    def drawn(
        self,
        name: str,
        options: Mapping[str, Any],
        schedule: Sequence[int] | None,
        share: float = 1.0,
        finished: Finish | None = None,
    ) -> tuple[list[History], Counter[str]]:
        """Draw an operator's histories of one definition, on a schedule on which its neighbours show or on this one.

        `finished` makes of each history the one that is run, where that is another.

        Returns:
            The histories, and in how many of them each goal was met.
        """
        operator = self.report.operator
        count = max(1, round(share * self.histories / len(SHAPES[operator])))
        seed = hash_of(self.seed, f"{operator} {name} on Spark")
        if schedule is None:
            cohort = draw_covering(operator, options, count, seed, finished=finished)
            return cohort.histories, cohort.covered
        drawn = list(draw_histories(Shape(options, tuple(schedule), operator=operator), count, seed))
        return drawn, covered_by(drawn, finished)

    def shape(self, name: str, options: Mapping[str, Any]) -> None:
        """One definition in one query, with variants; of the first one also what restarts and packing do."""
        operator = self.report.operator
        definition = operator_named(operator).declare(options)
        timeless = is_timeless(operator, definition)
        forgets = forgets_under(operator, definition)
        finished = partial(long_after, definition=definition) if forgets else None
        drawn, known = self.drawn(name, options, FLAT if timeless else None, finished=finished)
        self.report.situations.update(situations_alone(known))
        whole = drawn if finished is None else list(map(finished, drawn))
        generator = random.Random(self.seed)
        some = whole[: max(1, len(whole) // 6)]
        companions = [*without_other_keys(some, generator)]
        if timeless:
            companions += changed_without_effect(some, generator)
        travelling = [*whole, *(companion.variant.history for companion in companions)]
        self.progress(f"{len(travelling)} histories in one query: {name}")
        first = name == next(iter(SHAPES[operator]))
        # A definition with timers that decide when something is emitted, and the first, show a missing timer.
        fine = first or options.get("emit") == "close"
        examination = examine(one_cohort(travelling), replace(self.plan, read_state=forgets), fine)
        by_shape = Counter({f"{situation} ({name})": count for situation, count in known.items()})
        self.judge(examination, by_shape)
        self.by_duckdb(examination.part(len(whole)), by_shape)
        self.companions(examination, companions, name)
        if forgets:
            self.state(examination)
        if first:
            self.restart(examination)
            self.packing(examination)
            self.partitions(examination)

    def patient_shape(self, name: str, options: Mapping[str, Any]) -> None:
        """Histories in which nothing can be late, with their variants, in one query."""
        definition = operator_named(self.report.operator).declare(options)
        drawn, _ = self.drawn(f"{name}, patient", options, FLAT, len(SHAPES[self.report.operator]) / 20)
        whole = [long_after(history, definition) for history in drawn]
        companions = [*changed_without_effect(whole, random.Random(self.seed))]
        self.progress(f"{len(whole) + len(companions)} histories in one query: {name}, and nothing is late")
        together = one_cohort([*whole, *(one.variant.history for one in companions)])
        examination = examine(together, self.plan, fine=False)
        self.judge(examination)
        self.companions(examination, companions, name)

    def companions(self, examination: Examination, companions: Sequence[Companion], name: str) -> None:
        """Judge the variants that travelled behind the other histories, each against its original."""
        first = len(examination.outcomes) - len(companions)
        for place, companion in enumerate(companions, first):
            law = self.laws[companion.variant.law]
            law.judged += 1
            law.situations[f"changed ({name})"] += companion.changed
            original, other = examination.outcomes[companion.place], examination.outcomes[place]
            found = parted(companion, original, other)
            if found:
                variant = companion.variant.history
                told = ("the original", at_end(original))
                before = examination.cohort.histories[companion.place]
                played, after = examination.played[place], at_end(other)
                self.violated(law.law.name, variant, found, played, after, against=told, original=before)

    def by_duckdb(self, examination: Examination, known: Counter[str]) -> None:
        """Judge what Spark's changelogs fold to by DuckDB's own answer."""
        histories = examination.cohort.histories
        law = self.laws["duckdb"]
        law.judged += len(histories)
        law.situations.update(known)
        for place, (history, answer) in enumerate(zip(histories, tables(histories), strict=True)):
            played, outcome = examination.played[place], examination.outcomes[place]
            found = differences(answer, outcome, played.definition.unordered)
            if found:
                self.violated("duckdb", history, found, played, outcome, against=("DuckDB", answer))

    def retention(self) -> None:
        """Where rows are kept for ever unless the parameter `retention` says otherwise: histories under one."""
        operator = self.report.operator
        for name, (changed, retention_ms) in RETAINED.get(operator, {}).items():
            options = {**SHAPES[operator][name], **changed}
            drawn, _ = self.drawn(f"{name}, with a retention", options, SCHEDULE, len(SHAPES[operator]) / 20)
            definition = operator_named(operator).declare(options)
            cohort = one_cohort([long_after(history, definition) for history in drawn])
            self.progress(f"{len(drawn)} histories in one query: {name}, with a retention of {retention_ms} ms")
            outcomes, output = run_cohort(cohort, retention_plan(operator, options, retention_ms, self.plan.logic))
            self.report.queries += 1
            self.report.histories += len(drawn)
            law = self.laws["retention"]
            law.judged += len(drawn)
            for history, outcome, left in zip(cohort.histories, outcomes, still_kept(cohort, output), strict=True):
                law.situations.update(f"{side} ({name})" for side in retention_situations(history, retention_ms))
                found = retention_broken(history, retention_ms, outcome) or state_left(history.name, left)
                if found:
                    self.violated("retention", history, found, play(history), outcome)

    def judge(self, examination: Examination, known: Counter[str] | None = None) -> None:
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
                    self.violated(law, histories[place], broken[law], played, outcome)

    def state(self, examination: Examination) -> None:
        """Judge what is left in the state long after every history."""
        law = self.laws["state"]
        law.judged += len(examination.cohort.histories)
        law.situations["state expired"] += sum(bool(played.accepted) for played in examination.played)
        for place, broken in enumerate(examination.broken):
            if "state" in broken:
                history, outcome = examination.cohort.histories[place], examination.outcomes[place]
                self.violated("state", history, broken["state"], examination.played[place], outcome)

    def schedules(self) -> None:
        """Random schedules of delivery, in three queries that are fed message by message."""
        histories = draw_scheduled(max(len(SHAPES[SCHEDULED]), self.histories // 10), self.seed)
        self.progress(f"{len(histories)} histories in three queries, message by message")
        logics = None if self.plan.logic is None else [self.plan.logic] * len(histories)
        staged = play_decoupled(histories, logics, strict=logics is None)
        self.report.queries += 3
        self.report.histories += len(histories)
        law = self.laws[SCHEDULES.name]
        law.judged += len(histories)
        broken = []
        for history, found in zip(histories, staged, strict=True):
            law.situations.update(schedule_situations(history))
            differences_found = staged_differences(history, found)
            broken += [(history, differences_found, found.outcome)] if differences_found else []
        for history, parts, outcome in sorted(broken, key=lambda one: len(one[0].lines)):
            self.violated(SCHEDULES.name, history, parts, play(history), outcome)

    def native(self) -> None:
        """Spark's own operator, where there is one, definition by definition, one batch at a time."""
        operator = self.report.operator
        shapes = NATIVE_SHAPES.get(operator, {})
        for name, options in shapes.items():
            definition = operator_named(operator).declare(options)
            count = max(1, round(self.histories / len(shapes)))
            finished = partial(long_after, definition=definition)
            seed = hash_of(self.seed, f"{operator} {name} on Spark's own")
            whole = list(map(finished, native_histories(operator, options, count, seed, finished)))
            self.progress(f"{len(whole)} histories on Spark's own operator: {name}")
            outcomes, _ = run_cohort(one_cohort(whole), Plan(native=True))
            self.report.queries += 1
            self.report.histories += len(whole)
            law = self.laws["native"]
            law.judged += len(whole)
            law.situations.update(native_situations(whole, name))
            for history, outcome in zip(whole, outcomes, strict=True):
                found = same_as_reference(history, outcome)
                if found:
                    self.violated("native", history, found, play(taken_by_spark(history)), outcome)


def long_after(history: History, definition: Any) -> History:
    """The history with one more batch, in which the clock has passed everything that the state is kept for."""
    patience = DOMAINS[history.operator].patience(definition) + getattr(definition, "retention_ms", 0)
    return history.with_lines([*history.lines, CUT, Heartbeat(clock_schedule(history)[-1] + LONG_AFTER + 2 * patience)])
