"""What a registration must have, and how a mistake in one is reported."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from streamproof import check
from streamproof.properties.generators.coverage import count_goals_met, coverage_goals
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.generators.registering import register, validate
from streamproof.properties.registration.domain import Domain, domain_of_duration
from streamproof.properties.registration.options import OptionSpace
from streamproof.properties.registration.registration import (
    FreeOrder,
    Registration,
    registered,
    registration_of,
    unregister,
)
from streamproof.reference.core.clocks import Clock, StreamTime
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import OPERATORS, Operator, operator_named
from streamproof.reference.core.records import Accepted, Change, Dropped, Output, Record, Table
from streamproof.reference.definitions.declarations import Definition, not_negative


@dataclass(frozen=True)
class Doubling(Definition):
    """Each value twice, but for those above a limit."""

    limit: int = field(default=3, metadata={"needed": "a limit"})

    def __post_init__(self) -> None:
        not_negative(self, "limit")


class Behaviour:
    """Emits each record's value, doubled."""

    def __init__(self, definition: Doubling, clock: Clock) -> None:
        self.definition, self.clock = definition, clock

    def arrive(self, record: Record) -> list[Output]:
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        if record.value > self.definition.limit:
            return []
        return [Change(record.key, None, 2 * record.value, record.timestamp)]

    def advance(self) -> list[Output]:
        return []


def meaning(definition: Doubling, accepted: Iterable[Accepted], clock: int) -> Table:
    return {
        (taken.record.key, None): (2 * taken.record.value, taken.record.timestamp)
        for taken in accepted
        if taken.record.value <= definition.limit
    }


def registration(
    behaviour: Callable[..., Any] = Behaviour,
    profiles: dict[str, Any] | None = None,
    meaning: Any = meaning,
    name: str = "doubling",
) -> Registration:
    operator = Operator(name, Doubling, behaviour, meaning)
    return Registration(operator, {"plain": {}} if profiles is None else profiles)


@pytest.fixture(autouse=True)
def _ten_again() -> Iterator[None]:
    before = tuple(OPERATORS)
    yield
    for name in set(OPERATORS) - set(before):
        unregister(name)


def refused(wrong: Registration) -> str:
    before = tuple(OPERATORS)
    with pytest.raises(BadInput) as refusal:
        register(wrong)
    assert tuple(OPERATORS) == before == tuple(registered())
    return str(refusal.value)


def test_an_operator_and_its_profiles_are_enough() -> None:
    mine = register(registration())
    assert registration_of("doubling") is mine
    assert operator_named("doubling") is mine.operator
    assert tuple(registered())[-1] == "doubling"


def test_histories_of_a_registered_operator_are_drawn_and_meet_the_goals_of_every_operator() -> None:
    mine = register(registration())
    settings = HistorySettings("doubling", {}, SCHEDULE, null_keys=True)
    met = count_goals_met(draw_histories(settings, 50, seed=1))
    assert all(met[goal] for goal in coverage_goals(mine, mine.declare({})))


def test_what_is_left_out_is_nothing_and_not_a_guess() -> None:
    bare = registration()
    left_out = (bare.coverage, bare.repeats, bare.spark, bare.native, bare.sql, bare.kafka, bare.protocol)
    assert left_out == (None,) * 7
    assert (bare.bounded_state, bare.retention, dict(bare.mutants), bare.free_order(None)) == (
        None,
        None,
        {},
        FreeOrder.KEYS,
    )


@pytest.mark.parametrize("name", ["session_windows", "table_table_join"])
def test_one_of_ours_cant_be_registered_again(name: str) -> None:
    assert refused(registration(name=name)) == f"there is already an operator {name}: give this operator another name"


def test_a_registration_can_be_taken_back_and_made_again() -> None:
    register(registration())
    unregister("doubling")
    assert "doubling" not in registered()
    register(registration())
    with pytest.raises(BadInput, match="no operator session_windows was registered"):
        unregister("session_windows")


def lacking(method: str) -> Registration:
    return registration(type("Lacking", (Behaviour,), {method: None}))


class Raising(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        if record.value == 2:
            raise KeyError("no such row")
        return super().arrive(record)


class Silent(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        emitted = super().arrive(record)
        return emitted if self.definition.limit else []


def no_value(definition: Doubling, side: str, value: int, choice: int, near: int) -> int:
    return 1 // (choice - 3)


def no_meaning(definition: Doubling, accepted: Iterable[Accepted], clock: int) -> Table:
    raise ValueError("no meaning")


def returning(table: Any) -> Registration:
    return registration(meaning=lambda definition, accepted, clock: table)


TABLE = r": its meaning returned .*return a table, [{]\(key, window\): \(value, timestamp\)[}], window \(start, end\)"
FILE = r", profile 'odd': the options {'limit': .*history file.*use"


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lacking("arrive"), ": Lacking has no method arrive: give it one"),
        (lacking("advance"), ": Lacking has no method advance: give it one"),
        (registration(meaning={}), ": operator has no method meaning: give it one"),
        (
            registration(Raising, {"first": {}, "second": {"limit": 1}}),
            ", profile 'first': the reference raises KeyError: 'no such row', at the record .*'events', '.*, 2, .*"
            "fix the reference, or give a domain of values that the reference accepts$",
        ),
        (
            registration(lambda definition: Behaviour(definition, StreamTime())),
            ", profile 'plain': the behaviour can't be created, TypeError: ",
        ),
        (
            replace(registration(), domain=Domain(value=no_value)),
            ", profile 'plain': its domain raises ZeroDivisionError: ",
        ),
        (registration(meaning=no_meaning), ".*the reference raises ValueError: no meaning"),
        (returning({("a", None): 1}), TABLE),
        (returning({"a": (1, 0)}), TABLE),
        (returning([]), TABLE),
        (registration(profiles={"plain": {}, "odd": {"limit": {1, 2}}}), FILE),
        (registration(profiles={"plain": {}, "odd": {"limit": float("nan")}}), FILE),
        (registration(profiles={"plain": {}, "odd": {"limit": (1, 2)}}), FILE),
        (
            registration(profiles={"odd": {"limits": 1}}),
            ", profile 'odd': its definition refuses the options: doubling has no option 'limits': it takes limit$",
        ),
        (
            registration(Silent, {"plain": {}, "mute": {"limit": 0}}),
            ", profile 'mute': 200 drawn histories emit nothing.*give a domain",
        ),
        (registration(profiles={}), " has no profile"),
    ],
    ids=lambda given: given if isinstance(given, str) else "",
)
def test_a_mistake_in_a_registration_is_refused_by_what_is_wrong(wrong: Registration, message: str) -> None:
    assert re.match(f"doubling{message}", refused(wrong), re.DOTALL)


@dataclass(frozen=True)
class Daily(Definition):
    day_ms: int = 86_400_000


class EveryDay(Behaviour):
    def arrive(self, record: Record) -> list[Output]:
        if record.key is None:
            return [Dropped(None, "null key")]
        self.clock.observe(record.timestamp)
        start = record.timestamp // self.definition.day_ms * self.definition.day_ms  # type: ignore[attr-defined]
        return [Change(record.key, (start, start), record.value, record.timestamp)]


def last_of_the_day(definition: Daily, accepted: Iterable[Accepted], clock: int) -> Table:
    table: Table = {}
    for (_, key, value, timestamp), _ in accepted:
        start = timestamp // definition.day_ms * definition.day_ms
        table[key, (start, start)] = value, timestamp
    return table


def test_a_duration_that_nothing_is_drawn_around_is_named_as_not_checked(tmp_path: Path) -> None:
    reports = []
    for domain in (Domain(), domain_of_duration("day_ms", by_clock=False)):
        operator = Operator("daily", Daily, EveryDay, last_of_the_day)
        register(Registration(operator, {"day": {}}, domain=domain))
        (report,) = check("daily", only="reference", histories=300, folder=tmp_path)
        reports.append(report)
        unregister("daily")
    without, drawn = reports
    assert without.not_checked["day_ms"] == "no drawn times lie around this duration"
    assert "day_ms" not in drawn.not_checked
    assert drawn.verdict == "conforms"


def test_our_operators_are_sound_too_and_are_imported_when_they_are_needed() -> None:
    for name in ("stream_table_join", "range_aggregate"):
        validate(registration_of(name))
    with pytest.raises(BadInput, match="stream_table_join, profile 'left': its definition refuses the options"):
        validate(replace(registration_of("stream_table_join"), profiles={"left": {"gap_ms": 1}}))


@pytest.mark.parametrize(
    ("space", "message"),
    [
        (OptionSpace({"join": ("inner", "middle")}), "no legal options of its space contain join=middle: leave"),
        (OptionSpace({"join": ()}), "join has no values in its space of options"),
        (OptionSpace({"join": ("inner",)}, ("emit",)), "emit is independent in its space of options, but has no"),
    ],
)
def test_a_space_of_options_that_cannot_be_drawn_is_refused(space: OptionSpace, message: str) -> None:
    with pytest.raises(BadInput, match=f"table_table_join: {message}"):
        validate(replace(registration_of("table_table_join"), space=space))


def test_every_operator_of_ours_has_a_registration_under_its_name() -> None:
    assert [one.name for one in registered().values()] == list(OPERATORS)
    for one in registered().values():
        assert one.spark is not None
        assert one.sql is not None
        assert one.coverage is not None
        assert len(one.mutants) >= 6
        assert {mutant.operator for mutant in one.mutants.values()} == {one.name}
        profiles = {mutant.profile for mutant in one.mutants.values() if not mutant.scheduled}
        assert profiles <= set(one.profiles)
        assert set(one.without_late_data) <= set(one.profiles)
        assert one.retention is None or set(one.retention.profiles) <= set(one.profiles)
