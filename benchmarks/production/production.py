"""Measures each operator over one million records, its version of an earlier commit, and Spark's operator or plain SQL.

Each operator runs as a streaming query, with its state in RocksDB, over 16 parquet files of equal size, one per
micro-batch. The benchmark runs the operator of this commit and of commit ce10c6f, a baseline with the same result, and
a query that only reads the inputs. Each query has a separate process, and runs twice in this process. The first run is
the warm-up. The first run also writes results for the comparison with the baseline, because wrong results make a
benchmark worthless. The second run computes all its results and discards them. The benchmark measures the CPU seconds
of the whole process tree (Python, the JVM and the workers) during the second run. Growth counts the CPU seconds after
the first batch, which also starts the query.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from streamproof.reference.core.errors import StreamproofError

from ..figures import Figure, Setting, Target, figure, growth_exponent, ratio
from ..machine import ROOT
from ..processes import JAVA, PYTHON, WORKERS, require_proc
from .cases import AS_MANY, CASES
from .earlier import COMMIT, lay_out
from .run import BASELINE, EARLIERS, INPUTS, TODAYS
from .sampling import STAGES, VARIABLE

BATCHES = 16
OVER_EARLIER: Mapping[str, float] = {
    **dict.fromkeys(("table_table_join", "window_aggregate", "session_windows", "stream_table_join"), 3),
    **dict.fromkeys(("range_aggregate", "stream_stream_join"), 3),
    **dict.fromkeys(("foreign_key_join", "one_to_many_join"), 5),
}
"""The target ratio of records per CPU second to the earlier form."""
OVER_SPARKS_OWN, GROWTH, OVER_STATE = Target("at least", 0.8), Target("at most", 1.05), Target("at most", 1.3)
OVER_STATES = ("table_table_join", "session_windows")
UNIT = "records/CPU s"
Measured = Mapping[str, Any]


class Program(NamedTuple):
    """The path from which Python imports this version of streamproof.

    Attributes:
        folder: The folder in which Python starts.
        environment: Its environment.
    """

    folder: Path
    environment: Mapping[str, str]


HERE = Program(ROOT, os.environ)


def run(setting: Setting) -> list[Figure]:
    """Measure operator by operator; in each round every form runs once, in a fresh process."""
    require_proc()
    rows, batches, rounds = setting.size(1_000_000, 8_000), setting.size(BATCHES, 4), setting.times(1)
    figures: list[Figure] = []
    with tempfile.TemporaryDirectory(prefix=f"streamproof-{COMMIT}-") as name:
        earlier = Program(Path(name), lay_out(COMMIT, Path(name)))
        programs = {TODAYS: HERE, EARLIERS: earlier, INPUTS: HERE, BASELINE: HERE}
        for operator in setting.among(CASES):
            found: dict[str, list[Measured]] = {form: [] for form in programs}
            for _ in range(rounds):
                with tempfile.TemporaryDirectory(prefix="streamproof-") as folder:
                    for form, program in programs.items():
                        words = ("through", form, operator, folder, str(rows), str(batches))
                        found[form].append(measured(setting, program, "production.run", words))
            figures += through_figures(operator, found, rows, batches)
            if operator in OVER_STATES:
                figures += _over_state(setting, operator)
    return figures


def measured(setting: Setting, program: Program, module: str, words: Sequence[str]) -> Measured:
    """Start a module of the benchmarks with these arguments, and return its last output."""
    message: Measured = {}
    for message in messages_of(program, module, words):
        if "step" in message:
            setting.progress(message["step"])
    return message


def messages_of(program: Program, module: str, words: Sequence[str]) -> Iterator[Measured]:
    """Start a module of the benchmarks with these arguments, and yield its output; kill it if it isn't read to its end.

    Raises:
        StreamproofError: The process failed; the message contains the last line of its errors.
    """
    command = [sys.executable, "-m", f"benchmarks.{module}", *words]
    with tempfile.TemporaryFile("w+") as errors, tempfile.TemporaryDirectory(prefix="streamproof-") as samples:
        # Let Python write compiled modules, because otherwise each worker compiles its imports.
        environment = {**program.environment, VARIABLE: samples, "PYTHONDONTWRITEBYTECODE": ""}
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": errors, "text": True, "start_new_session": True}
        with subprocess.Popen(command, cwd=program.folder, env=environment, **pipes) as process:
            assert process.stdout is not None
            try:
                yield from map(json.loads, process.stdout)
            except BaseException:
                # The process leads a process group, so that a cluster's executors end with the process.
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                raise
        if process.returncode:
            errors.seek(0)
            raise StreamproofError(f"`{' '.join(command)}` failed: {(errors.read().strip().splitlines() or ['?'])[-1]}")


def through_figures(operator: str, found: Mapping[str, Sequence[Measured]], rows: int, batches: int) -> list[Figure]:
    """Return the figures of an operator.

    Args:
        operator: Its name.
        found: The measurements of each form, run by run.
        rows: The number of records in a run.
        batches: The number of batches.
    """
    against, streaming = (found[BASELINE][0][name] for name in ("against", "streaming"))
    sizes = f"{rows:,} records in {batches} batches"

    def rate(form: str, name: str) -> Figure:
        runs = found[form]
        work = sizes if form != BASELINE or streaming else f"{rows:,} records at once"
        kinds = ", ".join(f"{kind} {median(run['used'][-1][kind] for run in runs):.1f}" for kind in runs[0]["used"][-1])
        work = f"{work}; CPU s: {kinds}; {median(run['seconds'] for run in runs):.1f} s"
        return figure(name, UNIT, [rows / cpu_seconds(run) for run in runs], work)

    today, earlier = rate(TODAYS, operator), rate(EARLIERS, f"{operator}, {COMMIT}")
    theirs, inputs = (
        rate(BASELINE, f"{operator}: {against}"),
        rate(INPUTS, f"{operator}: its inputs alone"),
    )
    for_inputs = median(map(cpu_seconds, found[INPUTS]))

    def beyond_inputs(form: str) -> Figure:
        return figure(form, UNIT, [rows / (cpu_seconds(run) - for_inputs) for run in found[form]], sizes)

    own = OVER_SPARKS_OWN if streaming else None
    over_earlier = Target("at least", OVER_EARLIER[operator]) if operator in OVER_EARLIER else None
    return [
        today,
        earlier,
        theirs,
        inputs,
        replace(ratio(f"{operator} over {COMMIT}", today, earlier, over_earlier), sizes=sizes),
        ratio(f"{operator} over {COMMIT}, beyond what its inputs cost", beyond_inputs(TODAYS), beyond_inputs(EARLIERS)),
        replace(ratio(f"{operator} over {against}", today, theirs, own), sizes=sizes),
        *growth(operator, found[TODAYS], rows, batches, GROWTH),
        *(
            differing(
                f"{operator}, {side}: results that differ from the baseline's",
                [run["results"][side] for run in found[BASELINE]],
            )
            for side in (TODAYS, EARLIERS)
        ),
        *_stages(operator, found, rows),
    ]


def cpu_seconds(run: Measured) -> float:
    """Return the CPU seconds of a whole run, of all processes."""
    total: float = sum(run["used"][-1].values())
    return total


def growth(name: str, runs: Sequence[Measured], rows: int, batches: int, target: Target | None = None) -> list[Figure]:
    """Return the growth of the CPU seconds after the first batch with the records after it."""
    marks = [*(count for count in (1, 2, 4, 8) if count < batches - 1), batches - 1]
    used = [[sum(each.values()) for each in run["used"]] for run in runs]

    def exponents(counts: Sequence[int]) -> list[float]:
        return [growth_exponent([(count, sums[count] - sums[0]) for count in counts]) for sums in used]

    points = ", ".join(f"{median(sums[count] - sums[0] for sums in used):.1f}" for count in marks)
    each = rows // batches
    return [
        figure(
            f"{name}, growth",
            "exponent",
            exponents(marks),
            f"{each:,} to {marks[-1] * each:,} records after the first {each:,}: {points} CPU s",
            target,
        ),
        figure(
            f"{name}, growth at the end",
            "exponent",
            exponents(marks[-2:]),
            f"{marks[-2] * each:,} to {marks[-1] * each:,} records after the first {each:,}",
            target,
        ),
    ]


def differing(name: str, compared: Sequence[tuple[int, int]]) -> Figure:
    """Return the number of different rows, from each comparison's numbers of rows and of different rows."""
    # A comparison without rows counts as a difference, because it would always agree.
    different = [differ if rows else 1 for rows, differ in compared]
    return figure(name, "rows", different, f"of {compared[0][0]:,}", Target("at most", 0))


def _stages(operator: str, found: Mapping[str, Sequence[Measured]], rows: int) -> list[Figure]:
    """Return the cost of a record, stage by stage, in this commit and in the earlier commit."""

    def micros(form: str) -> dict[str, list[float]]:
        costs: dict[str, list[float]] = {}
        for run in found[form]:
            used, stages, threads = run["used"][-1], run["stages"], run["threads"]
            # Divide the processes' seconds, which are exact, by the shares that threads and samples give.
            parts = {
                "driver": used[PYTHON],
                **{f"JVM: {what}": used[JAVA] * threads[what] / sum(threads.values()) for what in threads},
                **{
                    f"workers: {stage}": used[WORKERS] * stages.get(stage, 0) / (sum(stages.values()) or 1)
                    for stage in STAGES
                },
            }
            for name, seconds in parts.items():
                costs.setdefault(name, []).append(1e6 * seconds / rows)
        return costs

    earlier = micros(EARLIERS)
    return [
        figure(f"{operator}, {name}", "µs/record", runs, f"{COMMIT}: {median(earlier[name]):.1f}")
        for name, runs in micros(TODAYS).items()
    ]


def over_states(
    setting: Setting, form: str, operator: str, spread: str, keys: Sequence[int], sizes: Sequence[int], turns: int
) -> dict[tuple[int, int], list[float]]:
    """Run a form in batches of several sizes over states of several sizes.

    Args:
        setting: The settings of this run of the benchmarks.
        form: The form.
        operator: The operator, one of `FILLED`.
        spread: The spread of the batches' keys, as in `over_state`.
        keys: The numbers of keys in the state; each is a separate run.
        sizes: The sizes of batches, in records.
        turns: The number of batches of each size. The first turn finishes the remaining work of filling the state, and
            doesn't count.

    Returns:
        The CPU seconds of each batch after the first turn, by keys and size.
    """
    with tempfile.TemporaryDirectory(prefix="streamproof-") as folder:
        words = ("over", form, operator, folder, spread, *map(str, keys), "--", *map(str, [*sizes] * turns))
        found = measured(setting, HERE, "production.run", words)["batches"]
    each = len(sizes)
    return {(many, size): found[str(many)][each + at :: each] for many in keys for at, size in enumerate(sizes)}


def _over_state(setting: Setting, operator: str) -> list[Figure]:
    """Measure the additional cost of a batch over a state of many keys, compared with few."""
    few, many = setting.size(10_000, 1_000), setting.size(1_000_000, 4_000)
    sizes = (setting.size(20_000, 500), setting.size(60_000, 1_500))
    used = over_states(setting, TODAYS, operator, AS_MANY, (few, many), sizes, setting.size(6, 2))
    figures: list[Figure] = []
    for size in sizes:
        name = f"{operator}: a batch of {size:,} records"
        small, large = (
            figure(f"{name} over {keys:,} keys", "CPU s", used[keys, size], "a batch") for keys in (few, many)
        )
        figures += [small, large, ratio(f"{name}, {many:,} keys over {few:,}", large, small, OVER_STATE)]
    return figures
