"""What a dimension on Spark stores and forgets, and what it refuses; its changelog is the reference's by the laws."""

from __future__ import annotations

from typing import Any

import pytest
from declared_stages import Frame
from pyspark.sql import types as T
from streamproof import BadInput
from streamproof.reference.definitions.changes import Scd1, Scd2
from streamproof.spark_impl.dimensions.events import ChangesLogic, PlacedEvent
from streamproof.spark_impl.runtime.logic import Arrived
from streamproof.spark_impl.scd1 import Scd1Logic, scd1
from streamproof.spark_impl.scd2 import Scd2Logic

LOGICS: list[Any] = [(Scd1Logic, Scd1), (Scd2Logic, Scd2)]


def came(logic: ChangesLogic, *events: tuple[int, Any]) -> list[PlacedEvent]:
    """Return the state after events of a key, by timestamp and row."""
    state = logic.empty()
    for timestamp, row in events:
        logic.take(("k",), state, Arrived(timestamp, 0, (None, None, row, None)), 0)
    return state


def stored(logic: ChangesLogic, state: list[PlacedEvent], clock: int) -> Any:
    """Return what is stored of a state at a clock: sequences and rows."""
    return [(event.sequence, event.row) for event in logic.keep(state, 0, clock)]


@pytest.mark.parametrize(("logic", "definition"), LOGICS)
def test_a_deleted_key_leaves_the_state_when_no_older_event_is_accepted_any_more(logic: Any, definition: Any) -> None:
    forgetting = logic(definition(tombstone_ms=10))
    state = came(forgetting, (3, "x"), (5, None))
    assert forgetting.due(state, 0) == 16
    assert stored(forgetting, state, 15)[-1] == (5, None)
    assert stored(forgetting, state, 16) == []
    assert forgetting.pack(forgetting.keep(state, 0, 16)) is None


@pytest.mark.parametrize(("logic", "definition"), LOGICS)
def test_a_row_stays_and_a_deleted_key_too_unless_it_is_to_be_forgotten(logic: Any, definition: Any) -> None:
    forgetting, keeping = logic(definition(tombstone_ms=10)), logic(definition())
    assert stored(forgetting, came(forgetting, (5, "x")), 10**6) == [(5, "x")]
    assert forgetting.due(came(forgetting, (5, "x")), 0) is None
    state = came(keeping, (3, "x"), (5, None))
    assert (stored(keeping, state, 10**6)[-1], keeping.due(state, 0)) == ((5, None), None)


def test_of_versions_that_no_event_can_change_any_more_the_current_one_is_stored_from_its_start() -> None:
    logic = Scd2Logic(Scd2(tombstone_ms=10))
    state = came(logic, (1, "x"), (3, "y"), (4, "y"), (6, "y"), (9, "z"))
    assert stored(logic, state, 18) == [(3, "y"), (9, "z")]
    kept = logic.keep(state, 0, 18)
    (gone, before, after) = logic.take(("k",), kept, Arrived(8, 0, (None, None, "w", None)), 18)
    assert [(one.start, one.end, one.value) for one in (gone, before, after)] == [
        (3, 9, None),
        (3, 8, "y"),
        (8, 9, "w"),
    ]


@pytest.mark.parametrize(("logic", "definition"), LOGICS)
def test_two_events_of_equal_sequence_that_differ_end_the_query_and_copies_do_not(logic: Any, definition: Any) -> None:
    made = logic(definition())
    assert len(came(made, (5, {"a": 1}), (5, {"a": 1}))) == 1
    with pytest.raises(BadInput, match=r"two events of the key 'k' have the sequence 5 and differ: name a field"):
        came(made, (5, {"a": 1}), (5, {"a": True}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"deletes": "op"}, "deletes: 'op' is string: give a condition"),
        (
            {"sequence_by": "share"},
            "sequence_by: the column 'share' is double: it must be a whole number or a timestamp",
        ),
        ({"ties": "op"}, "ties: the column 'op' is string"),
        ({"sequence_by": "seq", "tombstones": "1 hour"}, "tombstone_ms is measured in timestamps"),
        ({"tombstones": "-1 ms"}, "tombstone_ms is -1: it can't be negative"),
    ],
)
def test_a_column_or_an_option_that_has_no_meaning_is_refused(
    given: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
    monkeypatch.setattr(T.DataType, "fromDDL", {"int": T.IntegerType()}.__getitem__)
    schema = T.StructType().add("key", "string").add("at", "long").add("seq", "long").add("op", "string")
    frame: Any = Frame(schema.add("share", "double"))
    with pytest.raises(BadInput, match=message):
        scd1(frame, key="key", timestamp="at", value="op", **given)
