"""Plan the pools of a check: samples of many operators and options with one clock schedule, which share queries.

The options of operators are random too: a run contains every value of every option, and every legal pair of values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from ...reference.core.history import CUT, ClockAdvance, History
from ..generators.draws import HistorySettings, draw_histories
from ..generators.options import described, draw_definitions
from ..generators.schedules import draw_schedules_for, edges_met
from ..laws.all import invariants
from ..laws.metamorphic.reruns import RerunLaw
from ..laws.runs import Kind, Sample
from ..registration.registration import Options, Registration
from ..witnesses.run_options import RunOptions
from .rounds import RECORDS
from .samples import LONG_AFTER_MS, STANDING, horizon_of, seed_for, some_emptied, without_late_data

SCHEDULES = 4
"""The number of clock schedules for each definition that depends on the clock."""
RERUN = 2
"""The number of clock schedules with second runs of histories; each law gets one second run of each definition."""
LEAST, MOST = 3, 5
"""The smallest and largest number of batches of pooled histories, without the empty last batch."""


class Planned(NamedTuple):
    """The plan of a sample: its histories aren't drawn yet.

    Attributes:
        sample: The sample without histories.
        draw: Draws the histories.
    """

    sample: Sample
    draw: Callable[[], list[History]]

    def drawn(self) -> Sample:
        """Draw the histories, and return the sample with them."""
        return replace(self.sample, histories=self.draw())


def pools_on_spark(
    registrations: Sequence[Registration], histories: int, seed: int, records: int = RECORDS, all_laws: bool = False
) -> Iterator[list[Sample]]:
    """Plan the samples whose histories share queries, and draw one pool after the other; arguments as in
    `plan_pools`.
    """
    for pool in plan_pools(registrations, histories, seed, records, all_laws):
        yield [one.drawn() for one in pool]


def plan_pools(
    registrations: Sequence[Registration], histories: int, seed: int, records: int = RECORDS, all_laws: bool = False
) -> list[list[Planned]]:
    """Plan the samples whose histories share queries, one pool after the other; the same seed plans the same samples.

    The plan draws all options and clock schedules at once; a pool's histories are drawn just before the pool runs. Each
    definition (an operator with some options) has random histories in several pools, each with a different clock
    schedule.

    Args:
        registrations: The operators.
        histories: The number of histories of each operator over all its definitions and pools; a definition has at
            least one history in each of its pools.
        seed: The seed of the draws.
        records: The number of records in a history.
        all_laws: Whether to add a pool without late data for the laws that need it.
    """
    by_clock: list[PooledDefinition] = []
    others: list[PooledDefinition] = []
    timely: list[PooledDefinition] = []
    names = [one.name for one in registrations]
    for one in registrations:
        drawn = definitions_drawn(one, seed)
        alone = random.Random(seed_for(seed, f"{one.name} alone")).choice([*one.profiles.values()])
        for options in drawn:
            share = histories / len(drawn)
            (by_clock if one.by_clock(one.declare(options)) else others).append(
                PooledDefinition(one, options, share, options == alone)
            )
        # Let Spark run the definitions without late data too, because the check of the reference runs them.
        timely += [PooledDefinition(one, options, share, False) for options in in_time(one)]
    pools = []
    # To run fewer queries, histories that need no clock are added to the pool of histories with a clock.
    along = [one for one in others if by_clock and not one.registration.is_staged]
    standing = [one for one in others if not by_clock or one.registration.is_staged]
    batches = 1 + random.Random(seed_for(seed, "batches")).randint(LEAST, MOST)
    every = [draw_ways(number, batches, seed_for(seed, f"ways {number}")) for number in range(RERUN)]
    ways = {name: own for of_pool in every for name, own in of_pool.items()}
    pools.append([_planned(one, STANDING[:1] * batches, 0, 1, ways, seed, records) for one in standing])
    if all_laws:
        pools.append(_without_late_data(registrations, max(1, round(histories / 20)), seed, records))
    on_board = [(one.registration.name, one.options) for one in by_clock]
    schedules = draw_schedules_for(on_board, SCHEDULES, seed_for(seed, "schedules")) if by_clock else ()
    timed = [*by_clock, *timely]
    riding = [(one, True) for one in timed] + [(one, False) for one in along]
    riding.sort(key=lambda pair: names.index(pair[0].registration.name))
    for number, schedule in enumerate(schedules):
        whole = (*schedule, long_after_all(schedule[-1], [one[:2] for one in timed]))
        unmoved = STANDING[:1] * len(whole)
        ways = draw_ways(number, len(whole), seed_for(seed, f"ways {number} by clock")) if number < RERUN else {}
        pools.append(
            [
                _planned(one, whole if is_timed else unmoved, number, len(schedules), ways, seed, records)
                for one, is_timed in riding
            ]
        )
    return [pool for pool in pools if pool]


def draw_ways(number: int, batches: int, seed: int) -> dict[str, Sequence[RunOptions]]:
    """Draw, for each law, the run options of the second runs of a pool's histories; the same seed draws the same
    options.

    Args:
        number: The index of the pool.
        batches: The number of batches of the pool, at least four; the last batch contains no records.
        seed: The seed of the draws.
    """
    generator = random.Random(seed)
    drawn = {law.name: law.draw_ways(number, batches, generator) for law in invariants() if isinstance(law, RerunLaw)}
    return {name: ways for name, ways in drawn.items() if ways}


class PooledDefinition(NamedTuple):
    """An operator with some options, whose histories are in pools.

    Attributes:
        registration: The operator.
        options: The operator's options.
        histories: The number of the definition's histories in all pools.
        is_first: Whether some of the definition's histories also run alone; true for one profile of each operator.
    """

    registration: Registration
    options: Options
    histories: float
    is_first: bool


def asked_alone(registrations: Sequence[Registration], seed: int) -> list[str]:
    """Draw the one or two operators on which the check judges the law *packing*, because each operator costs further
    queries.

    Args:
        registrations: The operators of a check whose histories share queries.
        seed: The seed of the draws.

    Returns: The names of an operator with several stages and of an operator with one stage, if the check contains such
    operators.
    """
    groups = [[one.name for one in registrations if one.is_staged is staged] for staged in (True, False)]
    return [random.Random(seed_for(seed, "asked alone")).choice(group) for group in groups if group]


def definitions_drawn(registration: Registration, seed: int) -> list[Options]:
    """Return the options of each definition of an operator that `pools_on_spark` draws."""
    return draw_definitions(registration, 1, seed_for(seed, f"{registration.name} options"))


def in_time(registration: Registration) -> list[Options]:
    """Return the options of an operator's profiles without late data, if the output depends on the clock."""
    options = [without_late_data(registration, profile) for profile in registration.without_late_data]
    return [one for one in options if registration.by_clock(registration.declare(one))]


def histories_in_pools(registration: Registration, definitions: Sequence[Options], histories: int) -> int:
    """Count the histories of an operator in all pools of `pools_on_spark`, given the options of its definitions."""
    by_clock = [registration.by_clock(registration.declare(one)) for one in definitions]
    ride_along = any(by_clock) and not registration.is_staged
    pools = [SCHEDULES if one or ride_along else 1 for one in by_clock] + [SCHEDULES] * len(in_time(registration))
    return sum(count * _in_a_pool(histories / len(definitions), count) for count in pools)


def _in_a_pool(histories: float, pools: int) -> int:
    """Return the number of a definition's histories in each pool."""
    return max(1, round(histories / pools))


def _planned(
    definition: PooledDefinition,
    schedule: Sequence[int],
    number: int,
    pools: int,
    ways: Mapping[str, Sequence[RunOptions]],
    seed: int,
    records: int,
) -> Planned:
    """Plan the histories of a definition in one of the definition's pools."""
    one, options, histories, is_first = definition
    own = seed_for(seed, f"{number} {one.name} {sorted(options.items())} in a pool")
    declared = one.declare(options)
    # Histories that empty their tables are in one pool only, because reading the state takes time.
    empties = not number and not one.bounds_state(declared) and bool(one.tables_stored(declared))
    sample = Sample(
        one,
        Kind.RANDOM,
        described(one, options),
        options,
        (),
        is_first=is_first and not number,
        is_pooled=True,
        is_emptied=empties,
        ways=ways,
        more=edges_met((one.name, options), schedule[:-1]),
    )
    count = _in_a_pool(histories, pools)
    return Planned(sample, partial(_drawn, one, options, schedule, count, own, records, empties))


def long_after_all(clock: int, definitions: Sequence[tuple[Registration, Options]]) -> int:
    """Return a clock (ms) at which every definition has closed all windows and removed all state."""
    horizon = max((horizon_of(one, options) for one, options in definitions), default=0)
    return clock + LONG_AFTER_MS + 2 * horizon


def _without_late_data(registrations: Sequence[Registration], count: int, seed: int, records: int) -> list[Planned]:
    """Plan a pool of histories without late data, under a constant clock."""
    definitions = [
        (one, profile, without_late_data(one, profile)) for one in registrations for profile in one.without_late_data
    ]
    after = long_after_all(STANDING[-1], [(one, options) for one, _, options in definitions])
    return [
        Planned(
            Sample(one, Kind.WITHOUT_LATE_DATA, profile, options, ()),
            partial(
                _drawn,
                one,
                options,
                (*STANDING, after),
                count,
                seed_for(seed, f"{one.name} {profile}, without late data"),
                records,
            ),
        )
        for one, profile, options in definitions
    ]


def _drawn(
    registration: Registration,
    options: Options,
    schedule: Sequence[int],
    count: int,
    seed: int,
    records: int,
    empties: bool = False,
) -> list[History]:
    """Draw histories whose last batch contains no records.

    A part of the histories contains records without a key. With `empties`, some histories end by deleting all rows of
    their tables.
    """
    *before, after = schedule
    nulls = count // 8 or int(seed % 8 == 0)
    drawn: list[History] = []
    for null_keys, share in ((False, count - nulls), (True, nulls)):
        settings = HistorySettings(registration.name, options, tuple(before), records, null_keys=null_keys)
        drawn += draw_histories(settings, share, seed + null_keys, mixed=True)
    if empties:
        drawn = some_emptied(drawn, seed)
    return [one.with_lines([*one.lines, CUT, ClockAdvance(after)]) for one in drawn]
