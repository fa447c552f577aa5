"""What the logs of a query, of Spark's sinks and sources and of Delta tables say of its micro-batches."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pyarrow as pa
import pytest
from streamproof import BadInput, Input
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.system.installed.spark_versions import struct_of_arrow
from streamproof.properties.witnesses.production import checkpoint, delta_source, file_source, kafka_source, output
from streamproof.properties.witnesses.production.files import Files
from streamproof.properties.witnesses.production.reading import Reading, ReadSource, with_time

CLICKS = resolve(Input("user string, at timestamp", key="user", name="clicks")).source


class OnDisk(Files):
    """The files of a folder of this machine, without Spark."""

    def __init__(self, spark: Any, root: str) -> None:
        self.root = root

    def names(self, folder: str = "") -> list[str]:
        path = Path(self.root, folder)
        return sorted(one.name for one in path.iterdir()) if path.is_dir() else []

    def text(self, name: str) -> str:
        return Path(self.root, name).read_text()

    @property
    def address(self) -> str:
        return f"file:{self.root}"


@pytest.fixture(autouse=True)
def on_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (checkpoint, output, delta_source):
        monkeypatch.setattr(module, "Files", OnDisk)


def write(folder: Path, logs: Mapping[str, Sequence[Any]], version: str = "v1") -> Any:
    """Write logs, by their names, and return the folder's files; each line is JSON, or a text as it is."""
    for name, lines in logs.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
        path.write_text("\n".join(([version] if version else []) + texts))
    return OnDisk(None, str(folder))


def offsets(*ends: Any, watermark: int = 0) -> list[Any]:
    said = {"batchTimestampMs": 1_000 + watermark, "batchWatermarkMs": watermark, "conf": {"a": str(watermark)}}
    return [said, *ends]


def read(folder: Path) -> checkpoint.Checkpoint:
    return checkpoint.read_checkpoint(None, str(folder))  # type: ignore[arg-type]


def test_the_committed_batches_are_those_without_a_gap_before_the_last_commit(tmp_path: Path) -> None:
    ends = {number: offsets({"logOffset": number}, "-", watermark=number * 10) for number in (1, 2, 4, 5, 6, 7)}
    write(tmp_path, {f"offsets/{number}": lines for number, lines in ends.items()})
    write(tmp_path, {f"commits/{number}": ["{}"] for number in (1, 2, 4, 5, 6)})
    (tmp_path / "metadata").write_text('{"id": "the query"}')
    found = read(tmp_path)
    assert [(one.number, one.started_ms, one.watermark_ms) for one in found.batches] == [
        (4, 1040, 40),
        (5, 1050, 50),
        (6, 1060, 60),
    ]
    assert found.batches[0].ends == {"0": {"logOffset": 4}, "1": None}
    assert (found.query, found.sources, found.settings) == ("the query", ["0", "1"], {"a": "60"})
    assert (found.running, found.is_whole, found.has_all_rows) == (7, False, False)


def test_newer_logs_name_the_sources_and_begin_with_the_first_batch(tmp_path: Path) -> None:
    write(tmp_path, {"offsets/0": offsets('clicks:{"logOffset":0}', "views:-"), "commits/0": ["{}"]}, "v2")
    found = read(tmp_path)
    assert (found.sources, found.query, found.running, found.is_whole) == (["clicks", "views"], "", None, True)
    assert found.batches[0].ends == {"clicks": {"logOffset": 0}, "views": None}


@pytest.mark.parametrize(
    ("logs", "version", "says"),
    [
        ({}, "v1", "isn't a checkpoint of a streaming query"),
        ({"offsets/0": offsets({})}, "v1", "committed no batch yet"),
        ({"offsets/0": offsets({}), "commits/1": []}, "v1", "batch 1 is committed, but offsets/1 is missing"),
        ({"offsets/0": offsets({}), "commits/0": []}, "v3", "has the version 'v3', but this streamproof reads v1 and"),
        ({"offsets/0": ["{"], "commits/0": []}, "v1", r"isn't a Spark log, or is truncated: '\{'"),
        ({"offsets/0": [], "commits/0": []}, "v1", "offsets/0 is truncated"),
    ],
)
def test_a_checkpoint_that_can_not_be_read_is_refused(
    logs: Mapping[str, Sequence[Any]], version: str, says: str, tmp_path: Path
) -> None:
    write(tmp_path, logs, version)
    with pytest.raises(BadInput, match=says):
        read(tmp_path)


def of(batches: Mapping[int, Any], folder: Path, **more: Any) -> Any:
    """Return a checkpoint whose committed batches have read a source up to these ends."""
    committed = [checkpoint.CommittedBatch(number, 1_000 * number, 0, {"0": end}) for number, end in batches.items()]
    return checkpoint.Checkpoint(OnDisk(None, str(folder)), "the query", committed, ["0"], {}, **more)


def named(batch: int, *paths: str) -> list[dict[str, Any]]:
    return [{"path": path, "batchId": batch} for path in paths]


def test_each_file_of_a_source_is_of_the_batch_that_read_up_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches 3 and 5 have read nothing of it; of those before the first with a log the order alone is known."""
    logs = {"2.compact": named(0, "a") + named(1, "b") + named(2, "c"), "1": named(1, "b")}
    logs |= {str(number): named(number, name) for number, name in [(3, "d"), (4, "e"), (5, "f"), (6, "g")]}
    write(tmp_path, {f"sources/0/{name}": lines for name, lines in logs.items()})
    ends = {number: {"logOffset": end} for number, end in [(2, 2), (3, 2), (4, 4), (5, 4), (6, 5)]}
    monkeypatch.setattr(file_source, "_rows", lambda place, numbers: numbers)

    def again(begins: int) -> Any:
        batches = {number - 2 + begins: end for number, end in ends.items()}
        return file_source.read_files(ReadSource(None, of(batches, tmp_path), "0", CLICKS, Reading()))  # type: ignore[arg-type]

    assert again(2) == {"a": -1, "b": 0, "c": 1, "d": 4, "e": 4, "f": 6}
    assert again(0) == {"a": 0, "b": 0, "c": 0, "d": 2, "e": 2, "f": 4}

    (tmp_path / "sources/0/4").unlink()
    with pytest.raises(BadInput, match="sources/0/4 is missing, but lists files"):
        again(2)


def test_the_files_of_a_sink_are_those_that_its_log_names_in_folders_of_partitions_too(tmp_path: Path) -> None:
    """The log's entry of a tenth batch has all before it, without their batches: the times of the files say them."""

    def wrote(*files: tuple[str, int], action: str = "add") -> list[Any]:
        return [{"path": path, "modificationTime": time, "action": action} for path, time in files]

    logs = {
        "1.compact": wrote(("day=1/a", 500), ("day=1/b", 2_001), ("c", 9_000)) + wrote(("gone", 1), action="delete"),
        "1": wrote(("c", 9_000)),
        "2": wrote(("day=2/d", 1), ("day=2/e", 1)),
        "3": wrote(("f", 1)),
    }
    files = write(tmp_path, {f"{output.SINK_LOG}/{name}": lines for name, lines in logs.items()})
    found = output._of_sink(files, of(dict.fromkeys([1, 2, 3]), tmp_path))
    assert found == ({"c": 1, "day=2/d": 2, "day=2/e": 2, "f": 3, "day=1/a": 1, "day=1/b": 1}, True)
    early, _ = output._of_sink(files, of(dict.fromkeys([2, 3]), tmp_path))
    assert (early["day=1/a"], early["day=1/b"]) == (1, 1)
    (tmp_path / output.SINK_LOG / "4.compact").write_text("v1\n" + json.dumps(*wrote(("day=1/a", 2_001))))
    assert output._of_sink(files, of(dict.fromkeys([1, 2, 3, 4]), tmp_path))[0]["day=1/a"] == 3
    with pytest.raises(BadInput, match="batch 4 has written files but isn't committed"):
        output._of_sink(files, of(dict.fromkeys([1, 2, 3]), tmp_path))
    (tmp_path / output.SINK_LOG / "4.compact").unlink()
    (tmp_path / output.SINK_LOG / "1.compact").unlink()
    assert output._of_sink(files, of(dict.fromkeys([1, 2, 3]), tmp_path))[1] is False


def test_rows_of_batches_that_are_not_committed_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {f"{output.SINK_LOG}/{number}": [{"path": f"file{number}"}] for number in (2, 3, 4)})
    monkeypatch.setattr(
        output, "_rows_of_files", lambda spark, files, paths, schema: ([{"of": path} for path in paths], paths)
    )
    found = output.read_output(None, str(tmp_path), of({2: None, 3: None}, tmp_path), None)  # type: ignore[arg-type]
    assert (found.rows, found.batches, found.has_batches) == ([{"of": "file2"}, {"of": "file3"}], [2, 3], True)
    with pytest.raises(BadInput, match=r"has neither _spark_metadata, .* nor _delta_log"):
        output.read_output(None, str(tmp_path / "offsets"), of({2: None}, tmp_path), None)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("ending", "asked"), [("parquet", ("mergeSchema", "true")), ("csv", "the schema"), ("orc", ("mergeSchema", "true"))]
)
def test_files_are_read_at_the_paths_that_their_addresses_stand_for(
    ending: str, asked: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths, spark = [f"file:///out/day=a%20b/1.{ending}", f"file:///out/c%2525/2.{ending}"], MagicMock()
    reader = spark.read.format.return_value.option.return_value
    chosen = reader.schema.return_value if asked == "the schema" else reader.option.return_value
    monkeypatch.setattr(output, "in_order", lambda frame, given: (frame, given))
    chosen.load.side_effect = lambda given: [{"from": path} for path in given]
    rows, order = output._rows_of_files(spark, OnDisk(None, "/out"), paths, "the schema")  # type: ignore[arg-type]
    assert [row["from"] for row in rows] == [f"file:///out/day=a b/1.{ending}", f"file:///out/c%25/2.{ending}"]
    assert order == paths
    spark.read.format.assert_called_with(ending)
    spark.read.format.return_value.option.assert_called_with("basePath", "/out")
    (reader.schema if asked == "the schema" else reader.option).assert_called_once_with(
        *([asked] if isinstance(asked, str) else asked)
    )


def delta(folder: Path, *versions: Sequence[Mapping[str, Any]]) -> Any:
    return write(folder, {f"_delta_log/{number:020d}.json": lines for number, lines in enumerate(versions)}, "")


def add(path: str, time: int = 0, **more: Any) -> dict[str, Any]:
    return {"add": {"path": path, "modificationTime": time, **more}}


def txn(version: int, query: str = "the query") -> dict[str, Any]:
    return {"txn": {"appId": query, "version": version}}


@pytest.mark.parametrize(
    ("last", "found"),
    [
        ([txn(1), add("c")], {"a": 0, "b": 0, "c": 1}),
        ([add("c", dataChange=False)], {"a": 0, "b": 0}),
        ([txn(1, "another query"), add("c")], None),
        ([add("c")], None),
        ([txn(1), add("c", deletionVector={"of": 1})], None),
        ([txn(1), add("c"), {"remove": {"path": "a"}}], None),
        ([txn(1), add("c"), {"remove": {"path": "a", "dataChange": False}}], {"a": 0, "b": 0, "c": 1}),
    ],
)
def test_a_delta_table_says_the_batch_of_each_file_where_its_query_alone_added_rows(
    last: Sequence[Any], found: Any, tmp_path: Path
) -> None:
    files = delta(tmp_path, [{"metaData": {}}], [txn(0), add("a"), add("b")], last)
    wanted = found and {f"{files.address}/{name}": batch for name, batch in found.items()}
    assert output._of_delta(files, "the query") == wanted
    (tmp_path / "_delta_log" / f"{0:020d}.json").unlink()
    assert output._of_delta(files, "the query") is None


def end(version: int, index: int, is_initial: bool = False) -> dict[str, Any]:
    return {"reservoirId": "id", "reservoirVersion": version, "index": index, "isStartingVersion": is_initial}


SCHEMA = struct_of_arrow(CLICKS.wire_schema).json()
META = {"metaData": {"id": "id", "schemaString": SCHEMA}}


@pytest.mark.parametrize(
    ("batches", "options", "read"),
    [
        ({0: end(1, 1, True), 1: end(2, -1), 2: end(2, 0), 3: end(3, 1)}, {}, "0b 0a 2d 3c 3e 3f"),
        ({0: None, 1: end(1, 0, True), 2: end(1, 1, True)}, {}, "1b 2a"),
        ({0: end(3, 0)}, {"startingVersion": "2"}, "0d 0c 0e"),
        ({0: end(2, 1)}, {}, "0b 0a 0d 0c"),
        ({0: end(1, 1, True), 1: end(3, 1)}, {"excludeRegex": "[ae]"}, "0b 1d 1c 1f"),
    ],
)
def test_each_file_of_a_delta_table_is_of_the_batch_whose_end_is_behind_it(
    batches: Mapping[int, Any], options: Mapping[str, str], read: str, tmp_path: Path
) -> None:
    delta(tmp_path, [META], [add("a", 2), add("b", 1)], [add("d"), add("c")], [add("e"), add("f")])
    table = delta_source._Table(
        ReadSource(None, of(batches, tmp_path), "0", CLICKS, Reading("delta", {"path": str(tmp_path), **options}))  # type: ignore[arg-type]
    )
    assert " ".join(f"{number}{one['path']}" for number, one in table.files() if table.takes(one)) == read


@pytest.mark.parametrize(
    ("metadata", "options", "says"),
    [
        ({"id": "other"}, {}, "is the Delta table other, but the query has read the table id"),
        ({"configuration": {"delta.columnMapping.mode": "name"}}, {}, "maps the names of its columns"),
        (
            {"schemaString": struct_of_arrow(pa.schema([("user", pa.string())])).json()},
            {},
            "column.* user, but not at:",
        ),
        ({}, {"path": ""}, "give its location"),
        ({}, {"readChangeFeed": "true"}, "change feed, which can't be read again"),
        ({}, {"startingVersion": "latest"}, "doesn't start at a version"),
        ({}, {"startingTimestamp": "2026-01-01"}, "doesn't start at a version"),
        ({}, {"path": "nowhere"}, "isn't a Delta table"),
    ],
)
def test_a_delta_table_that_can_not_be_read_again_is_refused(
    metadata: Mapping[str, Any], options: dict[str, str], says: str, tmp_path: Path
) -> None:
    delta(tmp_path, [{"metaData": {**META["metaData"], **metadata}}])
    given = {name: value for name, value in {"path": str(tmp_path), **options}.items() if value}
    with pytest.raises(BadInput, match=says):
        delta_source._Table(ReadSource(None, of({0: end(0, 0)}, tmp_path), "0", CLICKS, Reading("delta", given)))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("actions", "options", "taken"),
    [
        ([add("b"), {"remove": {"path": "a"}}], {}, 'changes rows, .* "ignoreChanges": "true"'),
        ([{"remove": {"path": "a"}}], {}, 'removes rows, .* "ignoreDeletes": "true"'),
        ([add("b"), {"remove": {"path": "a"}}], {"ignoreDeletes": "true"}, "changes rows"),
        ([add("b"), {"remove": {"path": "a"}}], {"ignoreChanges": "TRUE"}, ["b"]),
        ([add("b"), {"remove": {"path": "a"}}], {"ignoreFileDeletion": "true"}, ["b"]),
        ([add("b"), {"remove": {"path": "a"}}], {"skipChangeCommits": "true"}, []),
        ([{"remove": {"path": "a"}}], {"ignoreDeletes": "true"}, []),
        ([add("b"), {"remove": {"path": "a", "dataChange": False}}], {}, ["b"]),
    ],
)
def test_of_a_version_that_removes_rows_files_are_taken_as_the_query_s_options_say(
    actions: Sequence[Any], options: Mapping[str, str], taken: Any, tmp_path: Path
) -> None:
    delta(tmp_path, [META, add("a")], actions)
    reading = Reading("delta", {"path": str(tmp_path), **options})
    table = delta_source._Table(ReadSource(None, of({0: end(1, 9)}, tmp_path), "0", CLICKS, reading))  # type: ignore[arg-type]
    if isinstance(taken, str):
        with pytest.raises(BadInput, match=taken):
            table._added(1)
    else:
        assert [one["path"] for one in table._added(1)] == taken


def record(partition: int, offset: int, unreadable: bool = False) -> dict[str, Any]:
    payload = None if unreadable else {"user": f"{partition}/{offset}", "at": None}
    of_kafka = {"__topic": "clicks", "__partition": partition, "__offset": offset, "__timestamp": None}
    return {**of_kafka, "payload": payload, "__unreadable": unreadable}


def test_each_record_of_each_partition_is_of_the_batch_that_ended_behind_it(tmp_path: Path) -> None:
    rows = [record(0, 0), record(1, 0), record(1, 1), record(0, 1), record(0, 2, True), record(1, 2)]
    ends = {("clicks", 0): [1, 1, 3], ("clicks", 1): [0, 2, 3]}
    source = resolve(Input("user string, at timestamp", key="user", name="clicks", format="kafka")).source
    place = ReadSource(None, of(dict.fromkeys(range(3)), tmp_path), "0", source, Reading())  # type: ignore[arg-type]
    found = [(number, row and row["user"]) for number, row in kafka_source._with_batches(place, rows, ends)]
    assert found == [(0, "0/0"), (1, "1/0"), (1, "1/1"), (2, "0/1"), (2, None), (2, "1/2")]


@pytest.mark.parametrize(
    ("first", "end", "has_all"),
    [(0, {"clicks": {"0": 5}}, True), (4, {"clicks": {"0": 5}}, False), (4, {"logOffset": 5}, True), (4, None, False)],
)
def test_without_its_first_logs_a_checkpoint_has_all_rows_of_a_file_source_alone(
    first: int, end: Any, has_all: bool, tmp_path: Path
) -> None:
    assert of({first: None, first + 1: end}, tmp_path).has_all_rows is has_all


def test_where_a_source_began_is_read_with_and_without_a_version(tmp_path: Path) -> None:
    found = of({0: None}, tmp_path)
    assert found.start_of("0") is None
    for text in ('\0v1\n{"clicks": {"0": 5}}', '{"clicks": {"0": 5}}'):
        write(tmp_path, {"sources/0/0": [text]}, "")
        assert found.start_of("0") == {"clicks": {"0": 5}}


def test_a_row_has_its_event_time_as_a_timestamp_whatever_the_form() -> None:
    row = {"user": "a", "at": datetime(2024, 7, 1, tzinfo=UTC)}
    assert with_time(CLICKS, row) == row
    in_seconds = resolve(Input("user string, at bigint", key="user", time="at", time_format="s")).source
    assert with_time(in_seconds, {"user": "a", "at": 1_719_792_000}) == row
    assert with_time(in_seconds, {"user": "a", "at": None}) == {"user": "a", "at": None}
