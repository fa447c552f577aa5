"""Kafka's own foreign-key join under schedules of delivery, in a test driver whose messages are held back."""

from __future__ import annotations

import pytest
from streamproof.properties.models.races import raced
from streamproof.specs.races import RACES

pytestmark = pytest.mark.usefixtures("kafka")


def test_kafkas_inner_join_ends_right_in_every_order_once_every_change_is_answered():
    found = raced([RACES["move-update"], RACES["lose-update"]], "kafka", every=True, answered=True)
    assert [(one.played, one.wrong) for one in found] == [(800, 0), (800, 0)]
