"""Draw the samples of an operator's check: histories for each profile, and the coverage goals that they meet."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeAlias
from zlib import crc32

from ...reference.core.history import CUT, ClockAdvance, History
from ..generators.cohorts import clock_schedule, moved_by_one_each, moved_by_records
from ..generators.coverage import covered_by, draw_covering
from ..generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from ..generators.options import draw_definitions
from ..generators.schedules import draw_schedule
from ..generators.tables import emptied
from ..laws.on_spark.columns import InLayout, in_turn, layouts_of, prepared, with_null_keys_ahead
from ..laws.runs import Kind, Sample
from ..laws.scheduling import scheduled
from ..registration.registration import Options, Registration
from .rounds import RECORDS

STANDING = (SCHEDULE[-1],) * len(SCHEDULE)
"""The constant clock (ms) of histories without late data."""
LONG_AFTER_MS = 500
SHORT = (60, 75, 90)
"""The clock (ms) in three batches of a short history with its own query; a law may repeat the middle batch."""
IN_COLUMNS = 50
"""The largest number of histories for each layout of columns."""
ON_NATIVE = 250
"""The largest number of a profile's histories on Spark's own operator; 60 histories meet all coverage goals."""
BATCHES_OF_NATIVE = 4
"""The number of batches for Spark's own operator, without the last batch; a batch without data follows each batch."""
SHARE_OF_DEFINITIONS = 4
"""The share of a reference's histories with drawn options: a quarter; the others have the options of profiles."""
SHARE_IN_TIME = 4
"""The number of histories without late data is this share of the others: a quarter."""
SHARE_EMPTIED = 4
"""The share of histories of tables that end with the deletion of all rows: a quarter."""
SCHEDULED_RECORDS = 6
"""The largest number of records in a history with a schedule of message delivery."""
SCHEDULED_STEPS = 10
"""The largest number of records and deliveries in a history with a schedule; each costs three batches."""


Draw: TypeAlias = Callable[[], Sample]
"""Draws a sample; a plan of samples knows its length before it draws the histories."""


def plan_on_spark(registration: Registration, histories: int, seed: int, all_laws: bool = False) -> list[Draw]:
    """Plan the samples of an operator for the check on Spark; the same seed plans the same samples.

    Args:
        registration: The operator.
        histories: The number of random histories over all profiles; samples for special laws have fewer histories.
        seed: The seed of the draws.
        all_laws: Whether Spark's own operator runs with every profile, and not only with one profile that the seed
            chooses.
    """
    profiles = registration.profiles
    small = max(1, round(histories / 20))
    each = max(1, round(histories / len(profiles)))
    return [
        *[partial(random_sample, registration, profile, each, seed) for profile in profiles],
        *[
            partial(sample_without_late_data, registration, profile, small, seed)
            for profile in registration.without_late_data
        ],
        *plan_of_their_own(registration, histories, seed, all_laws),
    ]


def plan_of_their_own(registration: Registration, histories: int, seed: int, all_laws: bool = False) -> list[Draw]:
    """Plan the samples of an operator with queries of their own; arguments as in `plan_on_spark`."""
    profiles = registration.profiles
    small = max(1, round(histories / 20))
    plan: list[Draw] = []
    if registration.retention is not None:
        plan += [partial(retention_sample, registration, one, small, seed) for one in registration.retention.profiles]
    if registration.native is not None:
        known = [*registration.native.profiles]
        count = max(1, round(histories / len(known)))
        asked = known if all_laws else [known[seed % len(known)]]
        plan += [partial(native_sample, registration, one, count, seed) for one in asked]
    if registration.protocol is not None:
        plan.append(partial(scheduled_sample, registration, max(len(profiles), scheduled_of(histories)), seed))
    in_columns = min(IN_COLUMNS, max(10, small))
    plan += [partial(columns_sample, registration, one, in_columns, seed) for one in layouts_of(registration)]
    return plan


def random_sample(registration: Registration, profile: str, count: int, seed: int) -> Sample:
    """Draw histories of a profile, with a clock under which they can meet all coverage goals of the profile.

    If the operator's output doesn't depend on the clock, the clock is constant, so that variants can share the sample's
    query. If the definition lets state expire, each history ends with a batch long after the history's records.

    Args:
        registration: The operator.
        profile: The name of the profile.
        count: The number of histories.
        seed: The seed of the draws, combined with the names of the operator and the profile.
    """
    options = registration.profiles[profile]
    definition = registration.declare(options)
    bounds = registration.bounds_state(definition)
    empties = not bounds and bool(registration.tables_stored(definition))
    finished = partial(long_after, registration=registration) if bounds else None
    own = seed_for(seed, f"{registration.name} {profile} on Spark")
    if registration.by_clock(definition):
        cohort = draw_covering(registration.name, options, count, own, finished=finished)
        drawn, covered = cohort.histories, cohort.covered
    else:
        drawn = _drawn(registration, options, STANDING, count, own)
        covered = covered_by(drawn, finished)
    if empties:
        drawn = some_emptied(drawn, own)
    return Sample(
        registration,
        Kind.RANDOM,
        profile,
        options,
        drawn if finished is None else list(map(finished, drawn)),
        covered,
        is_first=profile == next(iter(registration.profiles)),
        is_emptied=empties,
    )


def sample_without_late_data(registration: Registration, profile: str, count: int, seed: int) -> Sample:
    """Draw histories of a profile without late data, each with a last batch long after the records; as
    `random_sample`.
    """
    options = without_late_data(registration, profile)
    own = seed_for(seed, f"{registration.name} {profile}, without late data on Spark")
    drawn = [long_after(one, registration) for one in _drawn(registration, options, STANDING, count, own)]
    return Sample(registration, Kind.WITHOUT_LATE_DATA, profile, options, drawn)


def retention_sample(registration: Registration, profile: str, count: int, seed: int) -> Sample:
    """Draw histories of a profile for retention, each with a last batch long after the records; as `random_sample`."""
    assert registration.retention is not None
    changed, retention_ms = registration.retention.profiles[profile]
    options = {**registration.profiles[profile], **changed}
    own = seed_for(seed, f"{registration.name} {profile}, with a retention on Spark")
    after = [long_after(one, registration) for one in _drawn(registration, options, SHORT, count, own)]
    return Sample(registration, Kind.RETENTION, profile, options, after, more=retention_ms)


def native_sample(registration: Registration, profile: str, count: int, seed: int) -> Sample:
    """Draw at most `ON_NATIVE` histories that Spark's own operator accepts, each with a last batch long after the
    records.

    The arguments are those of `random_sample`.
    """
    count = min(ON_NATIVE, count)
    assert registration.native is not None
    native = registration.native.profiles[profile]
    finished = partial(long_after, registration=registration)
    own = seed_for(seed, f"{registration.name} {profile} on Spark's own")
    definition = registration.declare(native.options)
    if native.without_late_data or not registration.by_clock(definition):
        drawn, covered = _drawn(registration, native.options, STANDING, count, own), Counter[str]()
    else:
        cohort = draw_covering(registration.name, native.options, count, own, BATCHES_OF_NATIVE, finished)
        drawn, covered = cohort.histories, cohort.covered
    whole = [finished(registration.native.prepared(history)) for history in drawn]
    return Sample(registration, Kind.NATIVE, profile, native.options, whole, covered, more=native)


def scheduled_sample(registration: Registration, count: int, seed: int) -> Sample:
    """Draw histories with random schedules of message delivery, of one profile after another; as `random_sample`."""
    drawn: list[History] = []
    for profile, options in registration.profiles.items():
        own = seed_for(seed, f"{profile}, scheduled")
        settings = HistorySettings(registration.name, options, SCHEDULE, arrivals=SCHEDULED_RECORDS)
        for history in draw_histories(settings, max(1, count // len(registration.profiles)), own):
            by_schedule = scheduled_in(SCHEDULED_STEPS, history, seed)
            drawn.append(replace(by_schedule, name=f"{history.name} {profile}"))
    return Sample(registration, Kind.SCHEDULED, "all profiles", {}, drawn)


def scheduled_of(histories: int) -> int:
    """Return the number of histories with a schedule of message delivery, in a check of `histories` histories."""
    return histories // 5


def scheduled_in(steps: int, history: History, seed: int) -> History:
    """Return a history with a random schedule of message delivery; drop the last records of a history that is too
    long.
    """
    by_schedule = scheduled(history, random.Random(seed_for(seed, history.to_text())))
    while len(by_schedule.lines) > steps:
        history = history.with_lines(history.records[:-1])
        by_schedule = scheduled(history, random.Random(seed_for(seed, history.to_text())))
    return by_schedule


def columns_sample(registration: Registration, asked: InLayout, count: int, seed: int) -> Sample:
    """Draw histories for a layout of columns, with null keys if the layout allows null keys; as `random_sample`."""
    asked = in_turn(asked, seed_for(seed, registration.name))
    layout = asked.layout
    own = seed_for(seed, f"{registration.name} {asked.profile}")
    settings = HistorySettings(registration.name, asked.options, SHORT, null_keys=layout.has_null_keys, kind=asked.kind)
    moved = moved_by_one_each([*draw_histories(settings, count, own)], random.Random(own))
    drawn = [with_null_keys_ahead(prepared(layout, history)) for history in moved]
    return Sample(registration, Kind.COLUMNS, asked.profile, asked.options, drawn, more=asked)


def plan_of_reference(registration: Registration, histories: int, seed: int, records: int = RECORDS) -> list[Draw]:
    """Plan the samples of an operator for the check of the reference; arguments as in `plan_on_spark`.

    Each profile has a sample; 1 in `SHARE_OF_DEFINITIONS` histories has random options. A further 1 in `SHARE_IN_TIME`
    histories contains no late data.
    """
    of_definitions = round(histories / SHARE_OF_DEFINITIONS)
    in_time = max(1, round(histories / SHARE_IN_TIME / max(1, len(registration.without_late_data))))
    quarter = max(1, round((histories - of_definitions) / len(registration.profiles) / 4))
    return [
        *[partial(reference_sample, registration, one, quarter, seed, records) for one in registration.profiles],
        partial(definitions_sample, registration, of_definitions, seed, records),
        *[partial(in_time_sample, registration, one, in_time, seed, records) for one in registration.without_late_data],
    ]


def reference_sample(
    registration: Registration, profile: str, quarter: int, seed: int, records: int = RECORDS
) -> Sample:
    """Draw histories of a profile for the laws of the reference; arguments as in `drawn_under`."""
    options = registration.profiles[profile]
    own = seed_for(seed, f"{registration.name} {profile}")
    drawn = list(drawn_under(registration, options, quarter, own, records))
    return Sample(registration, Kind.REFERENCE, profile, options, drawn)


def definitions_sample(registration: Registration, count: int, seed: int, records: int = RECORDS) -> Sample:
    """Draw histories with random options, values and keys; arguments as in `random_sample`.

    Each definition (a set of options) has at least one history. Some histories use stream time, some a clock moved by
    heartbeats, and some a clock moved by records; half may contain null keys.
    """
    name, drawn = registration.name, list[History]()
    definitions = draw_definitions(registration, 1, seed_for(seed, f"{name} options"))
    each = max(1, round(count / len(definitions)))
    for options in definitions:
        own = seed_for(seed, f"{name} {sorted(options.items())} for the reference")
        schedule = draw_schedule(name, options, own)
        for null_keys, share in ((False, each - each // 2), (True, each // 2)):
            settings = HistorySettings(name, options, schedule, records, null_keys=null_keys)
            for number, history in enumerate(draw_histories(settings, share, own + null_keys, mixed=True)):
                clocked = (moved_by_records, under_stream_time, with_null_keys_ahead)[number % 3]
                drawn.append(clocked(replace(history, name=f"d{len(drawn)}")))
    return Sample(registration, Kind.DEFINITIONS, "drawn definitions", {}, drawn, is_pooled=True)


def in_time_sample(registration: Registration, profile: str, count: int, seed: int, records: int = RECORDS) -> Sample:
    """Draw histories of a profile without late data, with any values and keys, for the laws of the reference."""
    options = without_late_data(registration, profile)
    own = seed_for(seed, f"{registration.name} {profile}, without late data, for the reference")
    drawn: list[History] = []
    for null_keys, share in ((False, count - count // 8), (True, count // 8)):
        settings = HistorySettings(registration.name, options, STANDING, records, null_keys=null_keys)
        drawn += draw_histories(settings, share, own + null_keys, mixed=True)
    return Sample(registration, Kind.IN_TIME, profile, options, [long_after(one, registration) for one in drawn])


def without_late_data(registration: Registration, profile: str) -> Options:
    """Return a profile's options with the changes that prevent late data."""
    return {**registration.profiles[profile], **registration.without_late_data[profile]}


def drawn_under(
    registration: Registration, options: Options, quarter: int, seed: int, records: int = RECORDS
) -> Iterator[History]:
    """Draw four equal groups of histories: with the batch clock or stream time, and with or without null keys.

    Histories with the batch clock share a schedule under which off-by-one numbers of options change the output. In
    every second of them, records move the clock instead. The timestamps of records without a key may be far ahead of
    this clock.
    """
    name = registration.name
    schedule = clock_schedule(draw_covering(name, options, quarter, seed).histories[0])
    for null_keys in (False, True):
        settings = HistorySettings(name, options, schedule, records, null_keys=null_keys)
        for number, history in enumerate(draw_histories(settings, 2 * quarter, seed + null_keys)):
            named = replace(history, name=f"n{number}" if null_keys else history.name)
            if number >= quarter:
                yield under_stream_time(named)
            else:
                ahead = with_null_keys_ahead(named)
                yield moved_by_records(ahead) if number % 2 else ahead


def long_after(history: History, registration: Registration) -> History:
    """Return the history with a last batch at which the clock has closed all windows and removed all state."""
    after = ClockAdvance(clock_schedule(history)[-1] + LONG_AFTER_MS + 2 * horizon_of(registration, history.options))
    return history.with_lines([*history.lines, CUT, after])


def some_emptied(histories: Sequence[History], seed: int) -> list[History]:
    """Return histories; 1 in `SHARE_EMPTIED` ends with the deletion of all table rows, chosen by the seed."""
    first = seed % SHARE_EMPTIED
    return [emptied(one) if number % SHARE_EMPTIED == first else one for number, one in enumerate(histories)]


def horizon_of(registration: Registration, options: Options) -> int:
    """Return the distance behind the clock (ms) beyond which a definition has no open window and no state."""
    definition = registration.declare(options)
    return registration.domain.lateness_horizon(definition) + int(getattr(definition, "retention_ms", 0))


def seed_for(seed: int, name: str) -> int:
    """Return a seed for a sample; the seed is the same in every process."""
    return seed * 1_000_003 + crc32(name.encode())


def _drawn(
    registration: Registration, options: Mapping[str, object], schedule: tuple[int, ...], count: int, seed: int
) -> list[History]:
    return list(draw_histories(HistorySettings(registration.name, options, schedule), count, seed))
