from __future__ import annotations

import pytest
from history_strategies import histories
from hypothesis import HealthCheck, find, settings
from streamproof.properties.generators.coverage import count_goals_met
from streamproof.properties.generators.draws import (
    HistorySettings,
)
from streamproof.reference.core.history import History

QUIET = settings(deadline=None, max_examples=25, derandomize=True, database=None)
SEARCH = settings(QUIET, max_examples=200, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])
SCHEDULE = (20, 45, 45, 90, 140)
SETTINGS = HistorySettings("session_windows", {"gap_ms": 10, "grace_ms": 5}, SCHEDULE)


@pytest.fixture(scope="module")
def shrunk() -> History:
    """What Hypothesis makes of the planted failure `some merge of three came up`."""
    profile = HistorySettings("session_windows", SETTINGS.options, SCHEDULE[:2], arrivals=5)
    return find(
        histories(profile), lambda history: count_goals_met([history])["merge of three or more"] > 0, settings=SEARCH
    )


def test_hypothesis_shrinks_a_planted_failure_to_few_records(shrunk: History) -> None:
    assert 3 <= len(shrunk.records) <= 6


def test_hypothesis_shrinks_a_planted_failure_to_one_key_and_no_value(shrunk: History) -> None:
    assert {(record.key, record.value) for record in shrunk.records} == {("a", 0)}
