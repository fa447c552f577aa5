"""What mutation testing shows: of each law its worth, of each mutant whether a check sees it; without Spark."""

from __future__ import annotations

import inspect
import math
from collections.abc import Sequence

import pytest
from shared_player import play_all
from streamproof.properties.checking.check import check_operators
from streamproof.properties.checking.mutation import Kill, check_mutants, chosen
from streamproof.properties.checking.pools import definitions_drawn, histories_in_pools, pools_on_spark
from streamproof.properties.cli.commands import mutants as command
from streamproof.properties.cli.terminal import results
from streamproof.properties.laws import runs
from streamproof.properties.laws.all import AS_OF_REFERENCE, ON_SPARK, law_named
from streamproof.properties.laws.base import REFERENCE, BrokenCase, Comparison, LawResult
from streamproof.properties.laws.case import Case
from streamproof.properties.laws.unique_kills import KILLS_ALONE, STAYS, why
from streamproof.properties.outcomes.outcomes import Difference, Grain, Outcome
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.report.kills import (
    DEFAULT_HISTORIES,
    MIN_KILLING,
    asked_by_check,
    laws_not_asked,
    rare,
    shrunk_sentence,
    survivors,
    worth_of_laws,
)
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.properties.witnesses.spark import witness
from streamproof.reference.core.history import CUT, ClockAdvance, History
from streamproof.reference.core.records import Record

ELSEWHERE = {"partitions", "replay", "restart", "schedules"}
"""Laws whose mutants `laws/test_reruns.py` and `checking/test_mutation.py` show."""
SOME = ["tombstones_in_wrong_order", "causeless_tombstones", "state_never_expires", "gap_exclusive", "no_tombstone"]


READING = RunOptions(read_state=True)


@pytest.fixture(scope="module")
def kills() -> list[Kill]:
    """What became of some mutants in shared queries that are played in memory."""
    with pytest.MonkeyPatch.context() as patched:
        for module in (runs, witness):
            patched.setattr(module, "run_shared", lambda plays, options=None: play_all(plays, READING))
        return check_mutants(chosen("session_windows", SOME), histories=30, rounds=4)


def history(*records: Record, batches: int = 1, **options: object) -> History:
    lines = [*records, *[CUT] * (batches - 1), ClockAdvance(90)]
    return History("session_windows", {"gap_ms": 10, **options}, tuple(lines), "batch")


def killed(name: str, law: str, drawn: int, broken: Sequence[History]) -> Kill:
    """Return a mutant that a law kills on some of so many histories."""
    kill = Kill(registration_of("session_windows").mutants[name], drawn=drawn)
    nothing = Outcome("history", Grain.BATCH, [])
    comparison = Comparison((REFERENCE, nothing), ("Spark", nothing), [Difference(0, None, None, "a", "history")])
    kill.results[law] = LawResult(law_named(law), judged=drawn)
    kill.results[law].violations = [BrokenCase(Case(one), comparison) for one in broken]
    if broken:
        kill.shown[law] = list(broken)
    return kill


def test_every_law_kills_a_mutant_alone_or_says_why_it_stays() -> None:
    names = {law.name for law in ON_SPARK}
    assert KILLS_ALONE.keys() | STAYS.keys() == names
    assert KILLS_ALONE.keys() & STAYS.keys() == set()
    assert all(map(why, names))
    assert why("a law of one's own") == ""


@pytest.mark.parametrize("law", sorted(KILLS_ALONE.keys() - ELSEWHERE))
def test_no_other_law_kills_that_mutant(kills: list[Kill], law: str) -> None:
    operator, mutant = KILLS_ALONE[law]
    assert operator == "session_windows"
    (row,) = (row for row in worth_of_laws(kills) if row.law == law)
    assert mutant in row.alone


def test_the_table_counts_what_each_law_kills_and_names_what_it_kills_alone(kills: list[Kill]) -> None:
    rows = {row.law: row for row in worth_of_laws(kills)}
    assert rows["changelog"][1:] == (3, ["tombstones_in_wrong_order"], "tombstones_in_wrong_order")
    assert (rows["replay"].alone, rows["replay"].why) == ([], why("replay"))
    unasked = laws_not_asked(kills)
    assert {law: unasked[law] for law in AS_OF_REFERENCE} == {law: STAYS[law] for law in AS_OF_REFERENCE}
    assert rows.keys() | unasked.keys() == {law.name for law in ON_SPARK}
    assert rows.keys() & unasked.keys() == set()
    assert unasked["schedules"] == "its registration has no message protocol, because it sends no messages"
    assert unasked["native"] == STAYS["native"]


def test_of_many_mutants_that_a_law_kills_alone_three_are_named() -> None:
    names = ["gap_exclusive", "merges_one", "no_tombstone", "forward_only", "closes_twice"]
    (row,) = worth_of_laws([killed(name, "changelog", 10, [history()]) for name in names])
    assert row == ("changelog", 5, names, "gap_exclusive, merges_one, no_tombstone and 2 more")


def test_shrunk_histories_are_few_arrivals_in_few_batches(kills: list[Kill]) -> None:
    assert all(kill.shrunk for kill in kills)
    sentence = shrunk_sentence(kills)
    assert sentence is not None
    arrivals, batches = (int(part.split("median ")[1].split(",")[0]) for part in sentence.split(";"))
    assert 1 <= arrivals <= 4
    assert 1 <= batches <= 2


def test_batches_after_the_last_record_do_not_count_and_of_nothing_shrunk_nothing_is_said() -> None:
    one, other, third = (Kill(registration_of("session_windows").mutants["gap_exclusive"]) for _ in range(3))
    a = Record("events", "a", 1, 5)
    one.shrunk, other.shrunk = history(a, batches=3), history(a, a, a)
    assert shrunk_sentence([third]) is None
    assert shrunk_sentence([one, other, third]) == (
        "Shrunk histories of 2 mutants: arrivals median 2, at most 3; batches median 1, at most 1."
    )


def test_a_check_draws_as_many_histories_as_is_reckoned() -> None:
    for name in ("session_windows", "table_table_join"):
        registration = registration_of(name)
        for count in (40, 900):
            drawn = [
                one
                for pool in pools_on_spark([registration], count, 3)
                for sample in pool
                if sample.is_pooled
                for one in sample.histories
            ]
            assert histories_in_pools(registration, definitions_drawn(registration, 3), count) == len(drawn)


def test_a_check_of_the_default_size_is_what_is_reckoned_with() -> None:
    assert inspect.signature(check_operators).parameters["histories"].default == DEFAULT_HISTORIES


def test_a_mutant_that_shows_in_few_histories_is_listed_with_the_size_at_which_it_shows_in_ten() -> None:
    registration = registration_of("session_windows")
    definitions = definitions_drawn(registration, 0)
    of = histories_in_pools(registration, definitions, DEFAULT_HISTORIES)
    few, many = (
        killed("gap_exclusive", "changelog", of, [history()] * 3),
        killed("merges_one", "labels", 20, [history()]),
    )
    (found,) = rare([few, many])
    assert (found.kill, found.law, found.histories) == (few, "changelog", 3)
    assert histories_in_pools(registration, definitions, found.needed) * 3 >= MIN_KILLING * of
    assert histories_in_pools(registration, definitions, int(0.85 * found.needed)) * 3 < MIN_KILLING * of
    assert str(found).startswith(
        f"killed in fewer than 10 histories of a check: gap_exclusive (3 of {of:,}; by changelog): "
        f"check --histories {found.needed:,} would kill it 10 times"
    )


def test_of_what_a_check_asks_of_a_part_only_that_part_counts() -> None:
    plain, again, variants = (
        killed("gap_exclusive", law, 4000, [history()] * 30) for law in ("changelog", "restart", "keys")
    )
    assert [one.law for one in rare([plain, again, variants])] == ["restart", "keys"]
    assert [math.ceil(1 / asked_by_check(law_named(law))) for law in ("changelog", "restart", "keys")] == [1, 5, 3]
    assert ", 30 of 4,000 here)" in str(rare([again])[0])


def test_the_law_that_shows_a_mutant_most_often_in_a_check_is_reckoned_with() -> None:
    kill = killed("gap_exclusive", "restart", 4000, [history()] * 10)
    kill.results |= (other := killed("gap_exclusive", "changelog", 4000, [history()] * 3)).results
    kill.shown |= other.shown
    assert [one.law for one in rare([kill])] == ["changelog"]


def test_an_option_that_all_killing_histories_have_and_few_definitions_is_named() -> None:
    shown = [history(late="own", aggregate="max", emit=emit) for emit in ("update", "close", "update")]
    definitions = definitions_drawn(registration_of("session_windows"), 0)
    of_max = sum(one.get("aggregate") == "max" for one in definitions)
    (found,) = rare([killed("gap_exclusive", "changelog", 4000, shown)])
    assert len(found.options) == 2
    assert f"aggregate=max ({of_max} of {len(definitions)} definitions)" in found.options
    assert not any(option.startswith("emit=") for option in found.options)
    assert "; all have " in str(found)
    (too_few,) = rare([killed("gap_exclusive", "changelog", 4000, shown[:2])])
    assert too_few.options == []


def test_a_survivor_is_named_with_what_its_survival_shows_and_the_remedy() -> None:
    (line,) = survivors([killed("merges_one", "changelog", 300, []), killed("gap_exclusive", "labels", 9, [history()])])
    assert line.startswith("survived: merges_one (0 of 300): fewer than one in 100 histories kill it, if any: ")
    assert "mutants session_windows merges_one --histories 3,000 would check more" in line
    assert "session_windows isn't asked schedules: its registration has no message protocol" in line


def test_the_command_prints_the_tables_and_the_lines(kills: list[Kill]) -> None:
    with results.capture() as captured:
        command._print_kills_alone([*kills, killed("merges_one", "changelog", 300, [])], seed=0)
    printed = captured.get()
    assert "laws by mutants" in printed
    assert "Shrunk histories of 5 mutants: arrivals median" in printed
    assert "survived: merges_one (0 of 300)" in printed
