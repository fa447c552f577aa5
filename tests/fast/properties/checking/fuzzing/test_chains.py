"""Chains of operators: what is drawn shows bugs between operators, and a difference is shrunk."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from functools import partial

import pytest
from streamproof.properties.checking.fuzzing.chains import differing, drawn_chain, judged_chain
from streamproof.properties.generators.chains import (
    OPERATORS,
    Chain,
    StreamBatch,
    clock_records,
    draw_chain,
    draw_streams,
    link,
    renumbered,
)
from streamproof.properties.witnesses.chains.composed import ComposedLink, composed_changelog
from streamproof.reference.core.records import Change, Output, Record

CHAINS, HISTORIES, PAIRS = 40, 20, 10


class IgnoresTombstones(ComposedLink):
    def fed(self, outputs: Sequence[Output]) -> list[Output]:
        return super().fed([one for one in outputs if isinstance(one, Change) and one.value is not None])


class LosesOrder(ComposedLink):
    def fed(self, outputs: Sequence[Output]) -> list[Output]:
        return super().fed(outputs[::-1])


class ClosesAlone(ComposedLink):
    def advance(self) -> list[Output]:
        return list(self.behaviour.advance())


class LosesWindows(ComposedLink):
    def as_record(self, change: Change) -> Record:
        return super().as_record(change._replace(window=None))


class LosesTimes(ComposedLink):
    def as_record(self, change: Change) -> Record:
        return super().as_record(change)._replace(timestamp=self.clock.now)


class TakesTwice(ComposedLink):
    def fed(self, outputs: Sequence[Output]) -> list[Output]:
        return super().fed([one for output in outputs for one in (output, output)])


MUTANTS = (IgnoresTombstones, LosesOrder, ClosesAlone, LosesWindows, LosesTimes, TakesTwice)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.__name__)
def test_drawn_chains_show_a_bug_between_operators(mutant: type[ComposedLink]) -> None:
    left = PAIRS
    for number in range(CHAINS):
        chain, histories = drawn_chain(f"chain {number}", HISTORIES)
        left -= len(differing(chain, histories, partial(composed_changelog, make=mutant)))
        if left <= 0:
            return
    pytest.fail(f"{PAIRS - left} pairs show it")


def test_any_operator_is_drawn_behind_any_other() -> None:
    drawn = [draw_chain(random.Random(seed)) for seed in range(700)]
    pairs = {pair for chain in drawn for pair in itertools.pairwise(one.operator for one in chain.links)}
    assert pairs == {*itertools.product(OPERATORS, OPERATORS)}


def test_most_drawn_chains_emit() -> None:
    emitted = (composed_changelog(*drawn_chain(f"chain {number}", 5)) for number in range(20))
    assert sum(map(bool, emitted)) >= 15


def test_the_clocks_rows_pass_each_chain_whose_first_operators_have_no_clock() -> None:
    chain = Chain(
        (link("foreign_key_join", {"foreign_key": "x"}), link("table_aggregate", {"group_by": "g"}, "events"))
    )
    batches: list[StreamBatch] = [(at, clock_records(chain, at)) for at in (10, 20)]
    assert [{at for _, _, at in rows} for rows in composed_changelog(chain, [batches]).values()] == [{10}, {20}]


def test_a_history_under_another_number_has_the_same_result() -> None:
    chain, histories = drawn_chain("chain 1", 2)
    other = renumbered(histories[0], 7)
    found = composed_changelog(chain, [other])
    assert {key[:4] for _, key in found} <= {"007|"}
    assert len(found) == len(composed_changelog(chain, histories[:1]))


def test_a_difference_is_shrunk_to_a_few_records_and_shown_with_both_changelogs() -> None:
    chain = Chain((link("table_table_join", {"join": "inner"}), link("table_aggregate", {"group_by": "g"}, "events")))
    histories = draw_streams(random.Random(1), chain, 30)
    text = judged_chain(chain, histories, partial(composed_changelog, make=IgnoresTombstones))
    assert text.startswith("table_table_join(join='inner')\ntable_aggregate(group_by='ref', field='v') takes the")
    assert text.count("Record(") <= 3
    assert "expected:" in text
    assert "Spark:" in text


def test_a_chain_without_a_difference_has_no_text() -> None:
    assert judged_chain(*drawn_chain("chain 3", 10), composed_changelog) == ""
