"""Runs queries of Nexmark on Kafka Streams, in Java (`NexmarkStreams.java`), with a broker that streamproof starts.

Before the measurement the benchmark sends the events to topics with one partition on the broker. The
query's rows are written to a topic too. The measurement lasts from the start of the query until it has read all events
and committed all rows. A first run in the same process is the warm-up, and its rows are compared.

The query runs without Python, in its own process, compiled by `javac`. The benchmark counts the query's process and the
broker's process separately.
"""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet as pq
from streamproof.properties.witnesses.kafka.jvm import kafka_jars, kafka_jvm
from streamproof.properties.witnesses.kafka_broker.application import Look, await_quiet
from streamproof.properties.witnesses.kafka_broker.broker import broker_jars, own_broker
from streamproof.properties.witnesses.kafka_broker.clients import Clients
from streamproof.reference.core.errors import MissingTool, StreamproofError
from streamproof.specs.java import find_java

from ..processes import processes
from ..production.run import report
from .queries import AUCTION, BID
from .queries import QUERIES as ALL

SOURCE = Path(__file__).with_name("NexmarkStreams.java")
PROGRAM = SOURCE.stem
EVENTS: Mapping[str, Sequence[str]] = {
    "bid": ("order", "auction", "bidder", "price", "time", "channel", "url", "extra"),
    "auction": (
        *("id", "initial_bid", "reserve", "time", "expires", "seller", "category"),
        *("item_name", "description", "extra"),
    ),
}
"""The fields of an event, in the order of the Java program; the first is its key."""
QUERIES: Mapping[str, Sequence[str]] = {
    "q11": ("bidder", "bids", "start", "last"),
    "q18": BID,
    "q20": (*BID, *(f"auction_{name}" for name in AUCTION)),
}
"""The fields of each query's rows."""
TEXTS = ("item_name", "description", "channel", "url", "extra")
SETTINGS: Mapping[str, str] = {
    # One transaction per interval, like a micro-batch of Spark and an epoch of Bytewax in this benchmark.
    "processing.guarantee": "exactly_once_v2",
    "commit.interval.ms": "1000",
    # A table's topic also serves as its changelog, so a table writes no second copy.
    "topology.optimization": "all",
    "auto.offset.reset": "earliest",
}
PATIENCE_SECONDS, LOOK_SECONDS = 120, 0.5
STREAMS, BROKER = "streams", "broker"


def why_not() -> str | None:
    """Return why Kafka Streams can't be measured here, or None if it can."""
    try:
        compiler = _compiler()
        broker_jars()
        kafka_jars()
    except MissingTool as missing:
        return str(missing)
    return None if compiler.exists() else f"there is no {compiler}, which compiles {SOURCE.name}"


def _compiler() -> Path:
    return find_java().home / "bin" / "javac"


def through(name: str, folder: Path, result: Path, runs: int) -> Mapping[str, Any]:
    """Run a query over the events, once or twice; write its rows; return the CPU seconds of its process and the broker.

    Args:
        name: The query.
        folder: The events.
        result: The folder of the query's rows.
        runs: How many runs.
    """
    result.mkdir(exist_ok=True)
    before = _javas()
    with contextlib.ExitStack() as ends, own_broker() as cluster:
        (broker,) = _javas() - before
        work = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="streamproof-")))
        _ran([_compiler(), "-d", work, "-cp", _class_path(), SOURCE])
        clients = ends.enter_context(contextlib.closing(Clients(kafka_jvm().gateway, cluster)))
        reads = ALL[name].reads
        clients.create_topics(reads, 1)
        for kind in reads:
            report(f"{name}, kafka: sending the {kind}s")
            (work / kind).write_text("".join(f"{line}\n" for line in lines(folder / kind, EVENTS[kind])))
            _ran([*_program(work), "load", cluster.bootstrap, kind, work / kind])
        log = result / "log"
        process = ends.enter_context(_started([*_program(work), "run", name], log))
        for run in range(runs):
            report(f"{name}, kafka: {'measured' if run else 'for its results'}")
            application, out = f"run-{run}", f"rows-{run}"
            clients.create_topics([out], 1)
            given = {**SETTINGS, "bootstrap.servers": cluster.bootstrap, "application.id": application}
            properties = work / f"{application}.properties"
            settings = {**given, "state.dir": str(work / application)}
            properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
            used, started = _used(process.pid, broker), time.perf_counter()
            _say(process, f"{properties} {out}")

            def look(application: str = application, out: str = out) -> Look:
                cluster.require_alive()
                if process.poll() is not None:
                    raise StreamproofError(f"{name}, kafka: the query's process has ended: its log is {log}")
                own = [topic for topic in clients.topics(f"{application}-") if not topic.endswith("-changelog")]
                committed = clients.committed(application)
                return Look(committed, clients.ends([*reads, *own, out], 1), [*reads, *own])

            await_quiet(look, PATIENCE_SECONDS, time.monotonic, lambda _: time.sleep(LOOK_SECONDS))
            taken, after = time.perf_counter() - started, _used(process.pid, broker)
            _say(process, "")
            if not run:
                rows = {received.key: received.value for received in clients.read_all(out, 1)}
                pq.write_table(table_of([row for row in rows.values() if row], QUERIES[name]), result / "rows.parquet")
    streams, brokers = (one - other for one, other in zip(after, used, strict=True))
    return {"used": [{STREAMS: streams}], BROKER: brokers, "seconds": taken}


def lines(folder: Path, columns: Sequence[str]) -> list[str]:
    """Return the events of a folder in order, as lines with fields separated by tabs."""
    table = pq.read_table(folder).sort_by("order")
    texts = [table[column].cast(pa.string()).combine_chunks() for column in columns]
    found: list[str] = pc.binary_join_element_wise(*texts, "\t").to_pylist()
    return found


def table_of(rows: Sequence[str], columns: Sequence[str]) -> pa.Table:
    """Return rows as a table, without the rows of the closing events, whose first field is -1."""
    types = {name: pa.string() if name.removeprefix("auction_") in TEXTS else pa.int64() for name in columns}
    table = pa.csv.read_csv(
        io.BytesIO("\n".join(rows).encode()),
        pa.csv.ReadOptions(column_names=list(columns)),
        pa.csv.ParseOptions(delimiter="\t", quote_char=False),
        pa.csv.ConvertOptions(column_types=types),
    )
    return table.filter(pc.field(columns[0]) != -1)


def _class_path() -> str:
    return os.pathsep.join(map(str, sorted(kafka_jars().glob("*.jar"))))


def _program(work: Path) -> list[str | Path]:
    return [find_java().executable, "-cp", f"{work}{os.pathsep}{_class_path()}", PROGRAM]


def _ran(command: Sequence[str | Path]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise StreamproofError(f"{command[0]} failed: {done.stderr.strip()}")


@contextlib.contextmanager
def _started(command: Sequence[str | Path], log: Path) -> Iterator[subprocess.Popen[str]]:
    """Start the Java program, which ends when its standard input closes."""
    with log.open("w") as errors:
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": errors, "text": True}
        with subprocess.Popen(command, **pipes) as process:
            try:
                yield process
            finally:
                process.kill()


def _say(process: subprocess.Popen[str], line: str) -> None:
    """Send the program a line, and wait for its response."""
    to, answers = process.stdin, process.stdout
    assert to is not None
    assert answers is not None
    to.write(f"{line}\n")
    to.flush()
    answers.readline()


def _javas() -> set[int]:
    """Return the numbers of this process's JVMs."""
    here = os.getpid()
    return {number for number, process in processes().items() if process.parent == here and process.name == "java"}


def _used(*numbers: int) -> list[float]:
    there = processes()
    return [there[number].alone for number in numbers]
