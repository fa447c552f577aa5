"""Hunts the seeded bugs: every mutant of an operator is held to the laws, and those that none catches survive.

All mutants travel in one cohort, each with its own copies of the same histories, and are shrunk in lock-step.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from ..reference.errors import BadInput
from ..reference.histories import History
from ..reference.operators import operator_named
from .check import SHAPES, Progress, drawn_for, hash_of, long_after
from .cohorts import one_cohort
from .coverage import draw_covering
from .decoupled_witness import play_decoupled, staged_differences
from .draws import Shape, draw_histories
from .duckdb_witness import tables
from .examinations import examine, examine_restart
from .findings import ASKABLE
from .laws import repeated_twice, same_table, variants_of
from .mutants import (
    foreign_key_join,
    one_to_many_join,
    range_aggregate,
    session_windows,
    stream_stream_join,
    stream_table_join,
    table_aggregate,
    table_table_join,
    window_aggregate,
    windowed_table,
)
from .mutants.common import Mutant, travelling
from .mutants.decoupled_foreign_key_join import IN_THREE_QUERIES
from .outcomes import Difference, Outcome, differences
from .schedules_check import SCHEDULES, draw_scheduled
from .shape_check import FLAT, forgets_under
from .shape_check import long_after as long_after_all
from .shapes import SHAPES as DECLARED
from .shrinking import shrink_together, size
from .spark_witness import Plan
from .variants import PATIENT, Companion, changed_without_effect, is_timeless, parted, without_other_keys

RESTARTED = ("restart", "replay")
Judge = Callable[[Companion, Outcome, Outcome], list[Difference]]
MUTANTS: Mapping[str, Mapping[str, Mutant]] = {
    module.__name__.rpartition(".")[2]: module.MUTANTS
    for module in (
        session_windows,
        stream_stream_join,
        stream_table_join,
        table_table_join,
        window_aggregate,
        foreign_key_join,
        one_to_many_join,
        table_aggregate,
        range_aggregate,
        windowed_table,
    )
}
"""The seeded bugs of each operator, by name."""


@dataclass
class Kill:
    """What became of a mutant.

    Attributes:
        mutant: The seeded bug.
        laws: By law: how many of the histories broke it.
        judged: By law: how many histories it was held to.
        drawn: By law: the smallest of the drawn histories that broke it.
        shrunk: The history that it was shrunk to, where the law that caught it can be asked again.
    """

    mutant: Mutant
    laws: dict[str, int] = field(default_factory=dict)
    judged: dict[str, int] = field(default_factory=dict)
    drawn: dict[str, History] = field(default_factory=dict)
    shrunk: History | None = None

    def held(self, law: str, history: History, broken: bool) -> None:
        """Note that the mutant was held to a law on a history."""
        self.judged[law] = self.judged.get(law, 0) + 1
        if broken:
            self.laws[law] = self.laws.get(law, 0) + 1
            self.drawn[law] = min(self.drawn.get(law, history), history, key=size)

    @property
    def killed(self) -> bool:
        """Whether some law caught it."""
        return bool(self.laws)

    @property
    def law(self) -> str | None:
        """The law that caught it in most histories, a law that can be asked again first."""
        ranked = sorted(self.laws, key=lambda law: (law not in ASKABLE, -self.laws[law]))
        return ranked[0] if ranked else None


def chosen(operator: str, names: Sequence[str]) -> list[Mutant]:
    """Give the mutants of those names; all, where none is named.

    Raises:
        BadInput: There is no such operator or mutant.
    """
    known = MUTANTS.get(operator_named(operator).name)
    if known is None:
        raise BadInput(f"{operator} has no seeded bugs yet: {', '.join(MUTANTS)} have")
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadInput(f"unknown mutant {unknown[0]!r}: use one of {', '.join(known)}")
    return [known[name] for name in names] if names else list(known.values())


def hunt(
    mutants: Sequence[Mutant],
    histories: int = 100,
    seed: int = 0,
    progress: Progress = lambda step: None,
    rounds: int = 4,
    kills: dict[str, Kill] | None = None,
) -> list[Kill]:
    """Hold mutants to the laws on real Spark.

    Args:
        mutants: The seeded bugs.
        histories: How many random histories each is held to; the same for all.
        seed: What they are drawn from.
        progress: Called with the name of each step before it starts.
        rounds: How many rounds of shrinking, one query each; 0 for none.
        kills: Filled as the hunt goes, by the mutant's name, so that an interrupted one reports what it had.
    """
    kills = {} if kills is None else kills
    kills.update({mutant.name: Kill(mutant) for mutant in mutants})
    failing: dict[str, tuple[str, History]] = {}
    staged = [mutant for mutant in mutants if mutant.shape == IN_THREE_QUERIES]
    if staged:
        _staged(staged, histories, seed, kills, progress)
    for shape in sorted({mutant.shape for mutant in mutants} - {IN_THREE_QUERIES}):
        of_shape = [mutant for mutant in mutants if mutant.shape == shape]
        operator = of_shape[0].operator
        drawn = _drawn(operator, shape, histories, seed)
        some = drawn[: max(1, histories // 4)]
        progress(f"{len(of_shape)} mutants, {len(drawn)} histories each, in one query: {shape}")
        _random(of_shape, drawn, _companions(some, seed), kills, failing, progress)
        if (operator, shape) == ("session_windows", "update"):
            patient = list(draw_histories(SHAPES["patient"], max(1, histories // 5), hash_of(seed, "patient")))
            _patient(of_shape, _variants(patient, seed), _session_parted, kills, progress)
        elif shape in PATIENT.get(operator, {}):
            options = {**DECLARED[operator][shape], **PATIENT[operator][shape]}
            patient = _drawn_under(operator, options, FLAT, max(1, histories // 4), hash_of(seed, "patient"))
            _patient(of_shape, [*changed_without_effect(patient, random.Random(seed))], parted, kills, progress)
    if rounds:
        _shrink(list(kills.values()), failing, rounds, progress)
    return list(kills.values())


def _staged(mutants: Sequence[Mutant], count: int, seed: int, kills: dict[str, Kill], progress: Progress) -> None:
    """Hold mutants to the protocol, message by message, on histories with random schedules of delivery."""
    drawn = draw_scheduled(count, seed)
    progress(f"{len(mutants)} mutants, {len(drawn)} histories each, message by message in three queries")
    logics = [mutant.logic for mutant in mutants for _ in drawn]
    played = iter(play_decoupled([*drawn] * len(mutants), logics, strict=False))
    for mutant in mutants:
        for history, staged in zip(drawn, played, strict=False):
            kills[mutant.name].held(SCHEDULES.name, history, bool(staged_differences(history, staged)))


def _plan(mutants: Sequence[Mutant], counts: Sequence[int], read_state: bool = False) -> Plan:
    starts = [sum(counts[:number]) for number in range(len(counts))]
    return Plan(logic=travelling(mutants, starts), read_state=read_state)


def _drawn(operator: str, shape: str, count: int, seed: int) -> list[History]:
    """Histories of a shape, with a batch long after them where the operator is to forget them by then."""
    if operator == "session_windows":
        return list(map(long_after, drawn_for(shape, count, seed, long_after)[0]))
    options = DECLARED[operator][shape]
    timeless = is_timeless(operator, operator_named(operator).declare(options))
    return _drawn_under(operator, options, FLAT if timeless else None, count, hash_of(seed, shape))


def _drawn_under(
    operator: str, options: Mapping[str, Any], schedule: tuple[int, ...] | None, count: int, seed: int
) -> list[History]:
    definition = operator_named(operator).declare(options)
    finished = partial(long_after_all, definition=definition) if forgets_under(operator, definition) else None
    if schedule is None:
        drawn = draw_covering(operator, options, count, seed, finished=finished).histories
    else:
        drawn = list(draw_histories(Shape(options, schedule, operator=operator), count, seed))
    return drawn if finished is None else list(map(finished, drawn))


def _companions(histories: Sequence[History], seed: int) -> list[Companion]:
    """The variants that travel with histories, of operators other than session windows."""
    operator, generator = histories[0].operator, random.Random(seed)
    if operator == "session_windows":
        return []
    companions = [*without_other_keys(histories, generator)]
    if is_timeless(operator, operator_named(operator).declare(histories[0].options)):
        companions += changed_without_effect(histories, generator)
    return companions


def _forgets(mutant: Mutant) -> bool:
    declared = DECLARED[mutant.operator]
    return mutant.operator == "session_windows" or forgets_under(
        mutant.operator, operator_named(mutant.operator).declare(declared[mutant.shape])
    )


def _random(
    mutants: Sequence[Mutant],
    drawn: Sequence[History],
    companions: Sequence[Companion],
    kills: dict[str, Kill],
    failing: dict[str, tuple[str, History]],
    progress: Progress,
) -> None:
    each = [*drawn, *(companion.variant.history for companion in companions)]
    plan = _plan(mutants, [len(each)] * len(mutants), read_state=_forgets(mutants[0]))
    examination = examine(one_cohort([history for _ in mutants for history in each]), plan)
    progress(f"{len(mutants)} mutants with a restart and a crash")
    restarted = examine_restart(examination, plan, stop_after=1, crash_in=2)
    # In sessions' own gate DuckDB judges the reference.
    answers = [] if mutants[0].operator == "session_windows" else tables(drawn)
    for number, mutant in enumerate(mutants):
        kill, first = kills[mutant.name], number * len(each)
        for place in range(first, first + len(each)):
            for laws, broken in ((ASKABLE, examination.broken[place]), (RESTARTED, restarted.broken[place])):
                for law in laws:
                    kill.held(law, examination.cohort.histories[place], law in broken)
        outcomes = examination.outcomes[first : first + len(each)]
        for place, answer in enumerate(answers):
            unordered = examination.played[first + place].definition.unordered
            kill.held("duckdb", drawn[place], bool(differences(answer, outcomes[place], unordered)))
        _hold_companions(kill, companions, outcomes, outcomes[len(drawn) :], parted)
        if kill.law in ASKABLE:
            failing[mutant.name] = (kill.law, kill.drawn[kill.law])


def _hold_companions(
    kill: Kill, companions: Sequence[Companion], originals: Sequence[Outcome], others: Sequence[Outcome], judge: Judge
) -> None:
    for companion, other in zip(companions, others, strict=True):
        broken = bool(judge(companion, originals[companion.place], other))
        kill.held(companion.variant.law, companion.original, broken)


def _patient(
    mutants: Sequence[Mutant], companions: Sequence[Companion], judge: Judge, kills: dict[str, Kill], progress: Progress
) -> None:
    """Hold mutants to what variants of histories in which nothing is late have to do with their originals."""
    progress(f"{len(mutants)} mutants on reordered, cut and repeated histories in one query")
    originals = list({companion.place: companion.original for companion in companions}.values())
    each = [*originals, *(companion.variant.history for companion in companions)]
    plan = _plan(mutants, [len(each)] * len(mutants))
    examination = examine(one_cohort([history for _ in mutants for history in each]), plan)
    for number, mutant in enumerate(mutants):
        outcomes = examination.outcomes[number * len(each) : (number + 1) * len(each)]
        _hold_companions(kills[mutant.name], companions, outcomes, outcomes[len(originals) :], judge)


def _variants(histories: Sequence[History], seed: int) -> list[Companion]:
    """The variants of session windows' histories."""
    generator = random.Random(seed)
    return [
        Companion(history, place, variant)
        for place, history in enumerate(histories)
        for variant in variants_of(history, generator.shuffle, generator.randint)
    ]


def _session_parted(companion: Companion, original: Outcome, other: Outcome) -> list[Difference]:
    judge = repeated_twice if companion.variant.law == "repeats" else same_table
    return judge(companion.original.name, original, other)


def _shrink(kills: Sequence[Kill], failing: dict[str, tuple[str, History]], rounds: int, progress: Progress) -> None:
    for shape in sorted({kill.mutant.shape for kill in kills}):
        caught = [kill for kill in kills if kill.mutant.shape == shape and kill.mutant.name in failing]
        if not caught:
            continue

        def fails(asked: Sequence[Sequence[History]], caught: Sequence[Kill] = caught) -> list[list[bool]]:
            progress(f"shrinking: {sum(map(len, asked))} candidates in one query")
            plan = _plan(
                [kill.mutant for kill in caught], [len(of_one) for of_one in asked], _forgets(caught[0].mutant)
            )
            examination = examine(one_cohort([history for of_one in asked for history in of_one]), plan)
            broken = iter(examination.broken)
            return [
                [failing[kill.mutant.name][0] in next(broken) for _ in of_one]
                for kill, of_one in zip(caught, asked, strict=True)
            ]

        smallest = shrink_together([failing[kill.mutant.name][1] for kill in caught], fails, rounds)
        for kill, history in zip(caught, smallest, strict=True):
            kill.shrunk = history
