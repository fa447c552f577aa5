"""The one-to-many join on Spark: what is declared, what each stage decides, and one query over a batch DataFrame."""

from __future__ import annotations

from typing import Any

import pytest
from streamproof.properties.operators.one_to_many_join import REGISTRATION
from streamproof.reference.definitions.joins import OneToManyJoin
from streamproof.spark_impl.one_to_many_join import OneToManyStages, one_to_many_stages
from streamproof.spark_impl.runtime.logic import Arrived


def stages(**options: Any) -> OneToManyStages:
    return one_to_many_stages(OneToManyJoin("artist", **options))


def left(value: Any, foreign_key: str | None) -> Arrived:
    return Arrived(0, [0, 0], [value, foreign_key])


def moved(value: Any, timestamp: int) -> Arrived:
    return Arrived(timestamp, [0, timestamp, 0], [timestamp, None, value, "l"], "messages")


LEFT_KEPT = {"join": "left", "null_foreign_key": "keep"}


@pytest.mark.parametrize(
    ("before", "value", "after", "options", "expected"),
    [
        ([], "v", "r1", {}, [("r1", "v")]),
        ([("r1",)], "v", "r1", {}, [("r1", "v")]),
        ([("r1",)], "v", "r2", {}, [("r1", None), ("r2", "v")]),
        ([("r1",)], None, "r1", {}, [("r1", None)]),
        ([("r1",)], "v", None, {}, [("r1", None)]),
        ([("r1",)], "v", None, LEFT_KEPT, [("r1", None), (None, "v")]),
        ([(None,)], "v", None, LEFT_KEPT, [(None, "v")]),
        ([(None,)], None, None, LEFT_KEPT, [(None, None)]),
        ([], None, None, LEFT_KEPT, []),
    ],
)
def test_a_left_row_is_taken_away_before_it_is_put_elsewhere(
    before: list[Any], value: Any, after: str | None, options: dict[str, Any], expected: list[Any]
) -> None:
    logic = stages(**options).left
    assert [one.value for one in logic.take(("l",), [*before], left(value, after), 0)] == expected


def test_a_row_without_foreign_key_is_emitted_but_not_kept_for_a_right_row_that_cannot_come() -> None:
    logic = stages(**LEFT_KEPT).right
    state = logic.empty()
    emitted = [*logic.take((None,), state, moved("v", 1), 0), *logic.take((None,), state, moved(None, 2), 0)]
    assert [one.change for one in emitted] == ["update", "tombstone"]
    assert logic.pack(state) is None
    assert logic.take((None,), state, Arrived(5, [], "x", "right"), 0)[0].reason == "null key"


def test_both_keys_come_back_as_the_reference_writes_them() -> None:
    import pyarrow as pa

    table = pa.table({"foreign_key": ["00003|r|1", None, None, None], "key": ["00003|ä", "00003|b", None, "~clock"]})
    assert REGISTRATION.spark.keys(table) == ['00003|["r|1", "ä"]', '00003|[null, "b"]', None, "~clock"]
