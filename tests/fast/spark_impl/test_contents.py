"""Whether a batch follows the content of a target: the next one does, the same one is there, any other is refused."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import types as T
from streamproof.reference.core.errors import BadInput
from streamproof.spark_impl.sinks.materialize import Included, follows

SCHEMA = T.StructType().add("key", "string").add("value", "long")
HELD = Included("query", 3, "offsets", "table", ("key",), SCHEMA)
OTHERS: dict[str, Any] = {
    "query": "another",
    "offsets": "other offsets",
    "result": "stream",
    "keys": ("value",),
    "schema": T.StructType().add("key", "string").add("value", "double"),
}


@pytest.mark.parametrize("batch", range(7))
def test_the_batch_after_the_last_is_written_the_last_is_there_and_others_are_refused(batch: int) -> None:
    now = HELD._replace(batch=batch, offsets="offsets" if batch == HELD.batch else f"offsets {batch}")
    if batch in (HELD.batch, HELD.batch + 1):
        assert follows(HELD, now) == (batch > HELD.batch)
    else:
        with pytest.raises(
            BadInput,
            match=rf"all batches up to 3, and .* continues with {batch}: the table or the checkpoint is an older copy",
        ):
            follows(HELD, now)


@pytest.mark.parametrize("name", OTHERS)
def test_a_batch_that_differs_in_anything_is_refused(name: str) -> None:
    assert {*OTHERS, "batch"} == {*Included._fields}
    with pytest.raises(BadInput):
        follows(HELD, HELD._replace(**{name: OTHERS[name]}))
    if name == "offsets":
        assert follows(HELD, HELD._replace(batch=4, offsets=OTHERS[name]))
    else:
        with pytest.raises(BadInput, match=r"it contains|was written by"):
            follows(HELD, HELD._replace(batch=4, **{name: OTHERS[name]}))


def test_an_empty_target_takes_the_first_batch_alone() -> None:
    assert follows(None, HELD._replace(batch=0))
    for batch in (1, 2):
        with pytest.raises(
            BadInput, match=f"the target is empty, though the checkpoint's query has reached batch {batch}"
        ):
            follows(None, HELD._replace(batch=batch))


def test_a_content_is_read_as_it_was_written() -> None:
    assert Included.from_json(HELD.to_json()) == HELD
