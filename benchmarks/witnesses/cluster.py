"""Measures how many histories per second a standalone Spark cluster on this machine runs, with one worker and with two.

`python -m benchmarks.witnesses.cluster MASTER WORKERS COUNT ROUNDS` runs cohorts (many histories in one query) and
prints their rates as JSON. This command is a separate process, because a process has one Spark session.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Iterator
from functools import partial
from queue import Empty, Queue

import typer
from streamproof.properties.system.installed.requirements import package_folder
from streamproof.reference.core.errors import MissingTool, StreamproofError
from streamproof.specs.java import find_java

from ..figures import Figure, Setting, figure, ratio, seconds
from ..machine import ROOT

OPERATORS = ("session_windows", "foreign_key_join")
"""The measured operators: one stage with timers, and a join whose three stages run in one query."""
WORKERS = (1, 2)
_START_SECONDS = 60.0
_STOP_SECONDS = 10.0


def run(setting: Setting) -> list[Figure]:
    """Measure each number of workers in a separate process, on one master."""
    count, rounds = setting.size(2000, 60), setting.times()
    rates: dict[int, dict[str, list[float]]] = {}
    with contextlib.ExitStack() as cluster:
        folder = cluster.enter_context(tempfile.TemporaryDirectory(prefix="streamproof-", ignore_cleanup_errors=True))
        master = cluster.enter_context(_process(folder, "master", "Master"))
        for number in WORKERS:
            name = f"worker-{number}"
            words = ("--cores", "1", "--memory", "1g", "--work-dir", f"{folder}/{name}", master)
            cluster.enter_context(_process(folder, name, "Worker", *words))
            setting.progress(f"workers of 1 core: {number}; {count:,} histories, {rounds} rounds")
            rates[number] = _measured(master, number, count, rounds)
    sizes = f"{count:,} histories of 20 arrivals in 4 batches; each worker has 1 core"
    figures = []
    for operator in OPERATORS:
        one, two = (
            figure(f"{operator}, {name}", "histories/s", rates[number][operator], sizes)
            for number, name in zip(WORKERS, ("one worker", "two workers"), strict=True)
        )
        figures += [one, two, ratio(f"{operator}, two workers over one", two, one)]
    return figures


def _measured(master: str, workers: int, count: int, rounds: int) -> dict[str, list[float]]:
    words = [sys.executable, "-m", "benchmarks.witnesses.cluster", master, str(workers), str(count), str(rounds)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise StreamproofError(f"`{' '.join(words)}` failed: {(done.stderr.strip().splitlines() or ['?'])[-1]}")
    rates: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return rates


@contextlib.contextmanager
def _process(folder: str, name: str, kind: str, *words: str) -> Iterator[str]:
    """Run a master or a worker on this machine for the duration of the block, and yield the master's URL."""
    spark = package_folder("pyspark")
    if spark is None:
        raise MissingTool("PySpark isn't installed: run `make setup`.")
    command = [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind.lower()}.{kind}"]
    environment = {
        **os.environ,
        "JAVA_HOME": str(find_java().home),
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": f"{folder}/{name}-local",
    }
    process = subprocess.Popen(
        [*command, "--host", "127.0.0.1", "--port", "0", "--webui-port", "0", *words],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # Start a separate process group, so that a worker's executors end with the worker.
        start_new_session=True,
    )
    urls: Queue[str | None] = Queue()
    said: deque[str] = deque(maxlen=1)
    threading.Thread(target=_listen, args=(process, urls, said), daemon=True).start()
    try:
        with contextlib.suppress(Empty):
            url = urls.get(timeout=_START_SECONDS)
            if url is not None:
                yield url
                return
        raise StreamproofError(f"Spark's {name} didn't start; its last words: {' '.join(said).strip() or 'none'}")
    finally:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_STOP_SECONDS)


def _listen(process: subprocess.Popen[str], urls: Queue[str | None], said: deque[str]) -> None:
    assert process.stdout is not None
    # Read all output, because a process blocks when its pipe is full.
    for line in process.stdout:
        said.append(line)
        found = re.search(r"(?:Starting Spark master at|Successfully registered with master) (spark://\S+)", line)
        if found:
            urls.put(found[1])
    urls.put(None)


def measure(master: str, workers: int, count: int, rounds: int) -> None:
    """Run the cohorts on a master, and print the rates."""
    from streamproof.properties.generators.cohorts import one_cohort
    from streamproof.properties.generators.draws import SCHEDULE, HistorySettings, draw_histories
    from streamproof.properties.registration.registration import registered
    from streamproof.properties.witnesses.spark.platform.cluster import tasks_of_executors
    from streamproof.properties.witnesses.spark.session import spark_session
    from streamproof.properties.witnesses.spark.witness import SPARK

    # Wait for all workers before the first task, so that each measured cohort runs on all of them.
    together = {"spark.cores.max": str(workers), "spark.scheduler.minRegisteredResourcesRatio": "1"}
    spark = spark_session(master=master, settings=together)
    rates: dict[str, list[float]] = {}
    for operator in OPERATORS:
        profile = HistorySettings(operator, next(iter(registered()[operator].profiles.values())), SCHEDULE)
        run = partial(SPARK.run, one_cohort(list(draw_histories(profile, count, seed=0))))
        SPARK.run(one_cohort(list(draw_histories(profile, 50, seed=1))))
        rates[operator] = [count / seconds(run) for _ in range(rounds)]
    tasks = tasks_of_executors(spark)
    spark.stop()
    if len(tasks) != workers or min(tasks.values()) <= len(OPERATORS):
        raise StreamproofError(f"not all of {workers} workers ran tasks: {tasks}")
    print(json.dumps(rates))


if __name__ == "__main__":
    typer.run(measure)
