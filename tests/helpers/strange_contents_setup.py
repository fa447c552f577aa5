"""Histories with values and keys as users have them."""

from __future__ import annotations

from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
from streamproof.properties.generators.values import KEY_SETS, VALUE_KINDS
from streamproof.properties.registration.registration import registered

DRAWN = [
    history
    for name, one in registered().items()
    for options in list(one.profiles.values())[:1]
    for history in draw_histories(
        HistorySettings(name, options, SCHEDULE), max(len(VALUE_KINDS), len(KEY_SETS)), seed=1, mixed=True
    )
]
