"""Counterexamples of values and keys as users have them: their files, texts and tests."""

from __future__ import annotations

from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.generators.values import KEY_SETS, VALUE_KINDS
from streamproof.properties.outcomes.outcomes import Grain, Outcome, differences
from streamproof.properties.registration.registration import registered
from streamproof.reference.core.history import History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Change


def counterexample_of(history: History) -> Counterexample:
    played = play(history)
    ours = Outcome.of_play(history.name, played)
    entries = [entry for entry in played.entries if not isinstance(entry.output, Change)]
    theirs = Outcome(history.name, Grain.ARRIVAL, entries, is_stream=played.definition.is_stream)
    found = differences(ours, theirs)
    return Counterexample(
        law="changelog",
        sentence="It differs.",
        history=history,
        left=("the reference", ours),
        right=("Spark", theirs),
        differences=found,
        seed=1,
    )


DRAWN = [
    history
    for name, one in registered().items()
    for options in list(one.profiles.values())[:1]
    for history in draw_histories(
        HistorySettings(name, options, SCHEDULE), max(len(VALUE_KINDS), len(KEY_SETS)), seed=1, mixed=True
    )
]
