"""By which of its offsets a source of a run is read again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput
from streamproof.properties.witnesses.production import inputs
from streamproof.properties.witnesses.production.delta_source import read_delta
from streamproof.properties.witnesses.production.file_source import read_files
from streamproof.properties.witnesses.production.inputs import _reader
from streamproof.properties.witnesses.production.kafka_source import read_kafka


def reader(*ends: Any) -> Any:
    files = SimpleNamespace(where=lambda: "/run")
    place: Any = SimpleNamespace(ends=[*ends], folder="0", checkpoint=SimpleNamespace(files=files))
    return _reader(place)


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([], read_files),
        ([None, None], read_files),
        ([None, {"logOffset": 3}], read_files),
        ([{"reservoirVersion": 1, "index": 0}, None], read_delta),
        ([{"clicks": {"0": 5}}], read_kafka),
        ([None, {"clicks": {"0": 5}, "views": {"0": 1, "1": 2}}, None], read_kafka),
    ],
)
def test_a_source_is_read_by_the_last_offset_that_says_its_kind(ends: list[Any], expected: Any) -> None:
    assert reader(*ends) is expected


@pytest.mark.parametrize("end", [{}, 5, "5", [1], {"clicks": 5}, {"clicks": {"0": 5}, "views": 1}])
def test_an_offset_of_another_kind_is_refused_as_it_stands(end: Any) -> None:
    with pytest.raises(BadInput, match=r"/run: source 0 has the offset .*, but only files, Kafka and Delta tables can"):
        reader(None, end)


def test_rows_before_the_first_known_batch_come_first_in_the_order_of_their_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows: dict[str, list[Any]] = {"a": [(7, {"n": 1}), (3, {"n": 2}), (2, None)], "b": [(1, {"n": 3}), (8, {"n": 4})]}
    monkeypatch.setattr(inputs, "_reader", lambda place: lambda again: rows[again.source.name])
    monkeypatch.setattr(
        inputs, "ReadSource", lambda spark, checkpoint, folder, source, reading: SimpleNamespace(source=source)
    )
    checkpoint: Any = SimpleNamespace(batches=[SimpleNamespace(number=number) for number in (7, 8)])
    sources: Any = [SimpleNamespace(name=name) for name in "ab"]
    read = inputs.read_inputs(None, checkpoint, {"a": "0", "b": "1"}, sources, {})  # type: ignore[arg-type]
    assert [[row["n"] for _, row in batch] for batch in read.batches] == [[3], [2], [1], [4]]
    assert (read.numbers, read.unreadable) == ([None, None, 7, 8], 1)
