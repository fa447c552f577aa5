"""By which of its offsets a source of a run is read again."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import BadInput
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
