"""Checkpoints that older PySparks have left of a windowed sum, in `tests/golden/checkpoints`, a zip for each.

`python tests/helpers/old_checkpoints.py 3.5.9 4.1.4` writes them anew; it makes an environment for each PySpark.
"""

from __future__ import annotations

import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
from paths import GOLDEN
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from streamproof.properties.generators.columns.model import Source
from streamproof.properties.system.installed.environments import python_of
from streamproof.properties.witnesses.job.other_pyspark import PySparkProcess
from streamproof.properties.witnesses.job.query.runnable import Earlier, LeftBehind, OtherPySpark, UntilStop
from streamproof.properties.witnesses.job.running import QueryOutput, Runner
from streamproof.properties.witnesses.run_options import RunOptions

FOLDER = GOLDEN / "checkpoints"
SCHEMA = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC")), ("amount", pa.int64())])
CLICKS = Source("clicks", SCHEMA, time="at", key=("user",))
RUN = RunOptions(stop_after=(1,), partitions=1)
_HERE = "{folder}"
"""Stands in a zip for the folder of the query."""


def at(hour: int, minute: int) -> datetime:
    return datetime(2024, 10, 27, hour, minute, tzinfo=UTC)


BATCHES = (
    [("ann", at(10, 5), 1), ("bo", at(10, 10), 5)],
    [("ann", at(10, 50), 2)],
    [("ann", at(10, 55), 4), ("cy", at(12, 0), 9)],
    [("cy", at(14, 0), 1)],
)
"""The rows of each batch; the first two are run on the older PySpark."""
AFTER = (
    [("ann", at(10, 0), 7), ("bo", at(10, 0), 5)],
    [("cy", at(12, 0), 9)],
)
"""The rows that the other batches emit: user, start of the hour, total."""


def hourly_totals(clicks: DataFrame) -> DataFrame:
    by_hour = clicks.withWatermark("at", "10 minutes").groupBy("user", F.window("at", "1 hour"))
    return by_hour.agg(F.sum("amount").alias("total")).select("user", F.col("window.start").alias("hour"), "total")


def tables() -> list[dict[str, pa.Table]]:
    named = [[dict(zip(SCHEMA.names, row, strict=True)) for row in rows] for rows in BATCHES]
    return [{"clicks": pa.Table.from_pylist(rows, SCHEMA)} for rows in named]


def run_on(pyspark: OtherPySpark) -> QueryOutput:
    """Run the first batches on another PySpark, and the others here."""
    return Runner(hourly_totals, [CLICKS], earlier=Earlier(hourly_totals, on=pyspark)).run(tables(), run=RUN)


@dataclass(frozen=True)
class Stored:
    """A PySpark of which only the checkpoint is there, as another PySpark for `Earlier`."""

    version: str

    def until_stop(self, earlier: Earlier, until: UntilStop) -> LeftBehind:
        with zipfile.ZipFile(FOLDER / f"{self.version}.zip") as stored:
            for name in stored.namelist():
                path = until.folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(stored.read(name).replace(_HERE.encode(), str(until.folder).encode()))
        run = until.feed.run
        return LeftBehind((min(run.stop_after) + 1) * run.steps, until.folder / "checkpoint")

    declare: Any = None
    run: Any = None


@dataclass(frozen=True)
class Storing:
    """A process of another PySpark whose checkpoint is written into a zip."""

    process: PySparkProcess

    @property
    def version(self) -> str:
        return self.process.version

    def until_stop(self, earlier: Earlier, until: UntilStop) -> LeftBehind:
        left = self.process.until_stop(earlier, until)
        FOLDER.mkdir(exist_ok=True)
        with zipfile.ZipFile(FOLDER / f"{self.version}.zip", "w", zipfile.ZIP_DEFLATED) as stored:
            for path in sorted((until.folder / "checkpoint").rglob("*")):
                if path.is_file() and path.suffix != ".crc":  # a file with another folder has another checksum
                    content = path.read_bytes().replace(str(until.folder).encode(), _HERE.encode())
                    name = str(path.relative_to(until.folder))
                    stored.writestr(zipfile.ZipInfo(name, (2024, 1, 1, 0, 0, 0)), content, zipfile.ZIP_DEFLATED)
        return left

    declare: Any = None
    run: Any = None


def write(versions: Sequence[str]) -> None:
    for version in versions:
        with PySparkProcess(python_of(version), version) as process:
            print(version, run_on(Storing(process)).batches)


if __name__ == "__main__":
    import old_checkpoints  # as the module in which another process finds the job

    old_checkpoints.write(sys.argv[1:])
