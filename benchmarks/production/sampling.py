"""A daemon of Spark's Python workers that records where the workers spend their CPU seconds.

Spark starts it as `python -m benchmarks.production.sampling`, named by the setting `spark.python.daemon.module`; the
environment variable STREAMPROOF_SAMPLES names a folder with a file per worker. A worker samples its own stack every 10
ms of CPU time, and assigns the time to the stage of the innermost frame that belongs to a stage.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import NamedTuple

VARIABLE = "STREAMPROOF_SAMPLES"
SETTING = ("spark.python.daemon.module", "benchmarks.production.sampling")
EVERY_SECONDS = 0.01
WRITE_EVERY = 25


class Rule(NamedTuple):
    """The frames of a stage: files whose path contains a part, and functions, if any are named."""

    stage: str
    part: str
    functions: frozenset[str] = frozenset()


IN, STATE, LOGIC, RUNTIME, OUT, REST = "in", "state", "logic", "runtime", "out", "the rest"
STAGES = (IN, STATE, LOGIC, RUNTIME, OUT, REST)
RULES = (
    Rule(IN, "/pyspark/sql/streaming/stateful_processor_util"),
    Rule(STATE, "/pyspark/sql/streaming/"),
    Rule(RUNTIME, "/spark_impl/runtime/"),
    Rule(LOGIC, "/spark_impl/"),
    Rule(LOGIC, "/reference/"),
    Rule(IN, "/pyspark/", frozenset({"load_stream", "generate_data_batches", "row_stream"})),
    Rule(OUT, "/pyspark/", frozenset({"dump_stream", "convert_results"})),
)


def stage_of(frame: FrameType | None) -> str:
    """Return the stage that a stack belongs to."""
    while frame is not None:
        path, function = frame.f_code.co_filename, frame.f_code.co_name
        for rule in RULES:
            if rule.part in path and (not rule.functions or function in rule.functions):
                return rule.stage
        frame = frame.f_back
    return REST


def seconds_by_stage(folder: Path) -> Mapping[str, float]:
    """Return the CPU seconds that workers have recorded in a folder so far."""
    noted: defaultdict[str, float] = defaultdict(float)
    for file in folder.glob("*.json"):
        for stage, seconds in json.loads(file.read_text()).items():
            noted[stage] += seconds
    return noted


def note(folder: Path) -> None:
    """Start to record the stages in which this process spends its CPU time."""
    noted: defaultdict[str, float] = defaultdict(float)
    file = folder / f"{os.getpid()}.json"
    since, looks = time.process_time(), 0

    def look(number: int, frame: FrameType | None) -> None:
        nonlocal since, looks
        # Add the CPU time since the last sample, because a long call of native code is sampled only at its end.
        now = time.process_time()
        noted[stage_of(frame)] += now - since
        since, looks = now, looks + 1
        if looks % WRITE_EVERY == 0:
            unfinished = file.with_suffix(".part")
            unfinished.write_text(json.dumps(noted))
            unfinished.replace(file)

    # Stop the timer when Python exits, because Python then removes the handler, and a signal would kill the worker.
    atexit.register(signal.setitimer, signal.ITIMER_PROF, 0)
    signal.signal(signal.SIGPROF, look)
    signal.siginterrupt(signal.SIGPROF, False)
    signal.setitimer(signal.ITIMER_PROF, EVERY_SECONDS, EVERY_SECONDS)


if __name__ == "__main__":
    from pyspark.daemon import manager

    samples = Path(os.environ[VARIABLE])
    os.register_at_fork(after_in_child=lambda: note(samples))
    manager()
