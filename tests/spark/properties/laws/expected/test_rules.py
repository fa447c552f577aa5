from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.model import Arrival, JobHistory, Source
from streamproof.properties.laws.expected.rules import (
    stream_join,
)
from streamproof.properties.witnesses.run_options import RunOptions

SCHEMA = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", tz="UTC")), ("amount", pa.int64())])
CLICKS = Source("clicks", SCHEMA, "at", ("user",))
SECOND = 1_000_000


def row(seconds: float, user: str | None = "a", amount: int | None = 1) -> dict[str, Any]:
    return {"user": user, "at": from_microseconds(int(seconds * SECOND)), "amount": amount}


@pytest.mark.parametrize(("spark", "emitted"), [("3.5", 1), ("4.1", 1), ("4.1.4", 1), ("4.2", 0), ("4.3", 0)])
def test_the_rules_are_those_of_the_named_version(spark: str, emitted: int) -> None:
    rule = stream_join("left_semi", (["user"], ["user"]), "1 second", "1 second", "1 second", spark=spark)
    views = Source("views", SCHEMA, "at", ("user",))
    both = JobHistory(
        ((Arrival("clicks", row(1000)),), (Arrival("clicks", row(990)), Arrival("views", row(990)))),
        (1000 * SECOND, 1000 * SECOND),
    )
    (found,) = rule.expected([both], (CLICKS, views), RunOptions(trigger="available_now"))
    assert len(found.rows[1]) == emitted
