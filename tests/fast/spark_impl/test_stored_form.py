"""What an operator stores has the form that `FORM` counts: `tests/golden/stored_form.txt` holds the state of each.

With `STREAMPROOF_GOLDEN=write` the state of the file's histories is written anew, if `FORM` has been raised; of a line
that is new, with a history and empty `pages`, it is written anyway.
"""

from __future__ import annotations

import base64
import json
import os
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import count
from typing import Any

import pyarrow as pa
import pytest
from declared_stages import declared, played
from memory_runtime import Groups
from msgspec import Raw
from paths import GOLDEN
from pyspark.sql import types as T
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.operator import OPERATORS
from streamproof.spark_impl.runtime.codec import FORM, arrow_type, encode
from streamproof.spark_impl.runtime.ends import GROUP, Pack
from streamproof.spark_impl.runtime.logic import Logic
from streamproof.spark_impl.runtime.pages import Pages, Stored
from streamproof.spark_impl.runtime.processor import KeyedProcessor, Stage
from streamproof.spark_impl.runtime.required import StatefulProcessorHandleState

FILE = GOLDEN / "stored_form.txt"
LOST = (
    "a query in production would lose or misread its state after an update: keep the form, or raise FORM in "
    "spark_impl/runtime/codec.py, say so in CHANGELOG.md, and write the file with STREAMPROOF_GOLDEN=write"
)
KEYS: dict[str, tuple[Any, ...]] = {
    "string": ("", "a", "ä|", None),
    "bigint": (0, -1, 2**53 + 1, None),
    "double": (0.0, -0.5, float("nan")),
    "boolean": (True, False),
    "date": (date(1969, 12, 31), date(2024, 2, 29)),
    "timestamp": (datetime(2024, 2, 29, 1, 2, 3, 4, UTC),),
    "timestamp_ntz": (datetime(2024, 2, 29, 1, 2, 3),),
    "decimal(38,18)": (Decimal("-1.000000000000000001"),),
}
TYPES = [T.StringType(), T.LongType(), T.DoubleType(), T.BooleanType(), T.DateType()]
TYPES += [T.TimestampType(), T.TimestampNTZType(), T.DecimalType(38, 18)]


def test_what_is_stored_and_where_a_key_is_looked_up_changes_only_with_its_form() -> None:
    first, *operators = map(json.loads, FILE.read_text(encoding="utf-8").splitlines())
    asked = {parse_history(one["history"]).operator for one in operators}
    assert asked == {*OPERATORS}, f"{FILE.name} asks each operator: add its history, and write the file"
    common = {"form": FORM, "variables": variables(), "keys": places(), "pages": [many_keys()]}
    today = [json.loads(json.dumps(one)) for one in (common, *(stored(one["history"]) for one in operators))]
    is_written = os.environ.get("STREAMPROOF_GOLDEN") == "write"
    if not is_written or first["form"] == FORM:
        before = [(read(now), read(one)) for now, one in zip(today, (first, *operators), strict=True) if one["pages"]]
        assert [now for now, _ in before] == [one for _, one in before], LOST
    if is_written:
        FILE.write_text("".join(json.dumps(one, ensure_ascii=False) + "\n" for one in today), encoding="utf-8")
    assert is_written or all(one["pages"] for one in operators)


def read(line: dict[str, Any]) -> dict[str, Any]:
    """Unpack the groups of keys in a line: LZ4 may compress otherwise, as long as it is read again."""
    try:
        groups = [Pages(base64.b64decode(packed)) for packed in line["pages"]]
    except ValueError as error:
        pytest.fail(f"{error}: {LOST}")
    return {**line, "pages": [[pages.count, [(page.due, page.keys) for page in pages.closed]] for pages in groups]}


def stored(history: str) -> dict[str, Any]:
    """Play a history; return the declaration of its operator, and what each stage has stored after a batch."""
    parsed = parse_history(history)
    one = declared(parsed.operator, parsed.options, parsed.records)
    batches: list[list[str]] = [[] for _ in one.stages]

    def see(stage: Stage, groups: Groups) -> None:
        state = groups.memories[0].state
        if state is not None:
            batches[one.stages.index(stage)].append(base64.b64encode(state[0]).decode())

    played(parsed, one, see)
    kinds = [T.StructType().add("key", T.StructType([*stage.key])).add("state", stage.state) for stage in one.stages]
    shown = [kind.simpleString() for kind in kinds]
    return {
        "history": history,
        "declaration": one.declaration,
        "types": shown,
        "pages": [max(packed, key=len) for packed in batches],
    }


def many_keys() -> str:
    """Pack a group with several pages."""
    pages = Pages(None)
    for number in range(40):
        key = encode((number,))
        pages.page_of(key)[key] = Stored(Raw(encode((number,))), number, number + 1 if number % 2 else None)
    packed = pages.packed()
    assert packed is not None
    return base64.b64encode(packed[0]).decode()


def places() -> list[list[Any]]:
    """Return the bytes of keys of each type, and the group of 256 and the page of 16 that have them."""
    found: list[list[Any]] = []
    for kind, keys in zip(TYPES, KEYS.values(), strict=True):
        rows = pa.RecordBatch.from_arrays(
            [pa.array(keys, arrow_type(kind)), *([pa.array([0] * len(keys), pa.int64())] * 3)],
            names=["key_0", "timestamp", "order", "value"],
        )
        pack = Pack(0, [kind], T.LongType(), T.LongType(), 256, False, 0)
        for number, key in zip(count(), keys):
            pages, own = Pages(None), encode((key,))
            pages.spread(16)
            (group,) = next(iter(pack([rows.slice(number, 1)]))).column(GROUP).to_pylist()
            page = next(at for at, one in pages.opened.items() if one is pages.page_of(own))
            found.append([kind.simpleString(), own.hex(), group, page])
    return found


def variables() -> list[list[Any]]:
    """Return the name, type and first text of each variable of the state that a processor opens."""
    found: list[list[Any]] = []

    class Opened:
        _statefulProcessorApiClient: Any

        def __init__(self, *named: str) -> None:
            self.named = [*named]

        def getValueState(self, name: str, kind: T.StructType) -> Opened:
            found.append([name, kind.simpleString(), None, None])
            return Opened()

        def get(self) -> None:
            return None

        def update(self, row: tuple[str]) -> None:
            found[-1][2] = row[0]

    class Client:
        handle_state = StatefulProcessorHandleState.INITIALIZED

        def set_implicit_key(self, key: Any) -> None:
            found[-1][3] = [*key]

        def remove_implicit_key(self) -> None:
            pass

    handle: Any = Opened()
    handle._statefulProcessorApiClient = Client()
    key, state = [T.StructField("key", T.StringType())], T.StructType().add("count", "long")
    KeyedProcessor(Stage(Logic(), [], key, state, declaration="declared()")).init(handle)
    return found
