from __future__ import annotations

import pytest
from notation import changelog, history_of, steps
from streamproof.reference.core.play import play

JOIN = "stream_table_join"


# What Kafka Streams does (docs/facts.md).


@pytest.mark.parametrize(
    ("text", "left", "inner"),
    [
        ("L k=v", "k=(v,null)@0", "-"),
        ("R k=t L k=v", "k=(v,t)@1", "k=(v,t)@1"),
        ("R k=t k=u L k=v", "k=(v,u)@2", "k=(v,u)@2"),
        ("R k=t k=∅ L k=v", "k=(v,null)@2", "-"),
        ("R other=t L k=v", "k=(v,null)@1", "-"),
        ("R k=t@9 k=u@3 L k=v@0", "k=(v,u)@0", "k=(v,u)@0"),
        ("R k=t@90 L k=v@5", "k=(v,t)@5", "k=(v,t)@5"),
        ("R k=t L k=∅", "k!null value", "k!null value"),
        ("L k=v R k=t", "-", "-"),
    ],
    ids=[
        "no row",
        "a row",
        "the last row",
        "a deleted row",
        "another key's row",
        "arrival order decides",
        "the stream's timestamp",
        "a null value",
        "the table drives nothing",
    ],
)
def test_a_stream_record_looks_the_row_of_its_key_up(text: str, left: str, inner: str) -> None:
    assert steps(text, JOIN)[-1] == left
    assert steps(text, JOIN, join="inner")[-1] == inner


def test_a_null_key_may_be_kept_and_then_joins_nothing_and_moves_the_clock() -> None:
    # 27 KAFKA-19208: the row of no key is emitted with null, not dropped
    assert changelog("R -=t@1 L -=v@90 -=∅@90", JOIN, null_key="keep") == "-!null key -=(v,null)@90 -!null value"
    assert changelog("R -=t@1 L -=v@90", JOIN, join="inner", null_key="keep") == "-!null key -!null key"
    assert play(history_of("L -=v@90", JOIN, null_key="keep")).clock == 90


# Laws.
