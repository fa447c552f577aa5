"""The arguments of a job's check, and their validation before Spark starts."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast, get_args

import pyarrow as pa

from ....reference.core.durations import Duration, microseconds_of
from ....reference.core.errors import BadInput
from ...generators.columns.formatting import duration
from ...generators.columns.histories.drawing import grain_of
from ...generators.columns.inputs import Input, ResolvedInput
from ...generators.columns.key_spaces import MOST
from ...generators.columns.resolving import distinct_names, resolve_all
from ...generators.columns.schemas import needs_spark
from ...laws.expected.oracle import Oracle
from ...laws.expected.oracles import BatchOracle, FunctionOracle, JobOracle, ModelOracle, sql
from ...laws.variation import BATCHES
from ...outcomes.equality import TWELVE_DIGITS, Equality
from ...system.arguments import defaults_of, fits, folder_at, short
from ...system.visible import visible
from ...witnesses.job.plan.plans import Plan
from ...witnesses.job.query.runnable import JobOrSink
from ...witnesses.job.rows import rows_of
from ...witnesses.job.running import Runner
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.run_options import Mode, RunOptions, Trigger
from ...witnesses.spark.session import session_of_jobs

LARGEST_SEED = 10**18


def check_arguments(histories: int, seed: int = 0, seconds: float = 1, out_of_order: Duration | None = None) -> None:
    """Refuse numbers and durations that have the right type but are out of range.

    Raises:
        BadInput: A number or duration is out of its range.
    """
    if not (fits(histories, int) and 1 <= histories <= MOST):  # not all callers check types
        raise BadInput(f"histories is {short(histories)}: give a whole number from 1 to {MOST:,}; 300 is a good one")
    if not -LARGEST_SEED <= seed <= LARGEST_SEED:
        raise BadInput(f"seed is {short(seed)}: give a whole number of 18 digits at the most")
    if not 0 < seconds <= threading.TIMEOUT_MAX:
        raise BadInput(f"seconds is {short(seconds)}: give a number above 0, such as 120")
    if out_of_order is not None and microseconds_of("out_of_order", out_of_order) < 0:
        raise BadInput(
            f"out_of_order is {out_of_order!r}: give zero or more, because rows can't be out of order by a negative "
            "time"
        )


HISTORIES = 300
"""The default number of histories of a check."""
ALONE_HISTORIES = 30
"""The default number of histories of a check in which each history has its own query."""
LEAST_SHARE = 0.5
"""If less than this share of the default number run before the time limit, the check is inconclusive."""


class Described(TypedDict, total=False):
    """The run options and the comparison of a job, which are keyword arguments of `Job`."""

    mode: Annotated[Mode | None, None]
    trigger: Annotated[Trigger, "default"]
    static: Annotated[Mapping[str, Any] | None, None]
    settings: Annotated[Mapping[str, str | int] | None, None]
    timeouts: Annotated[Sequence[Duration], ()]
    out_of_order: Annotated[Duration | None, None]
    unique: Annotated[Sequence[str] | None, None]
    without: Annotated[Sequence[str], ()]
    digits: Annotated[int | None, TWELVE_DIGITS.digits]
    alone: Annotated[bool, False]
    seconds: Annotated[float | None, None]


class Drawing(TypedDict, total=False):
    """The histories that a check draws, runs first and saves, which are keyword arguments of the methods of `Job`."""

    histories: Annotated[int | None, None]
    seed: Annotated[int, 0]
    examples: Annotated[Sequence[str | Path], ()]
    folder: Annotated[str | Path | None, None]


class Given(Described, Drawing):
    """The keyword arguments of a job's check that is one function call, such as `check_job`."""


class GivenOfUpgrade(Given, total=False):
    """The keyword arguments of an upgrade's check that is one function call, such as `upgrade`."""

    old_mode: Annotated[Mode | None, None]
    old_settings: Annotated[Mapping[str, str | int] | None, None]


SECONDS = 120
"""The default time limit of a job's queries (s)."""


def divided(given: Mapping[str, Any]) -> tuple[Described, Drawing]:
    """Split the arguments of a one-call check into the job's description and the options of the histories."""
    asked = {name: value for name, value in given.items() if name in Drawing.__annotations__}
    described = {name: value for name, value in given.items() if name not in asked}
    return cast("Described", described), cast("Drawing", asked)


@dataclass(frozen=True, kw_only=True)
class CheckOptions:
    """The options that all checks of a job share.

    Attributes:
        runner: Runs the job.
        inputs: The job's inputs.
        run: The run options of the job's query without variations.
        seed: The seed of the histories.
        unique: The columns that the user names to identify the rows of an updated table.
        out_of_order: How far out of order events may be; None: as far as the job's watermarks allow.
        alone: Whether each history runs in its own query.
        timeouts_us: The durations of the job's processing-time timeouts and timers (µs).
        timers_us: The durations of the job's event-time timeouts and timers (µs).
        equality: The rule by which two values count as equal.
        without: The columns of the result that the check doesn't compare.
        least_alone: The smallest number of histories with their own queries for a verdict; fewer histories are
            inconclusive.
        folder: The folder where counterexamples are saved; None: the check saves no counterexample.
    """

    runner: Runner
    inputs: Sequence[ResolvedInput]
    run: RunOptions
    seed: int = 0
    unique: Sequence[str] | None = None
    out_of_order: Duration | None = None
    alone: bool = False
    timeouts_us: Sequence[int] = ()
    timers_us: Sequence[int] = ()
    equality: Equality = TWELVE_DIGITS
    without: frozenset[str] = frozenset()
    least_alone: int = 0
    folder: Path | None = None

    @property
    def batches(self) -> int:
        """The number of batches that may contain rows: large enough for the clock to advance by each timeout."""
        return max(BATCHES, 2 + 3 * len(self.timeouts_us))


def check_options(job: JobOrSink | Script, inputs: Sequence[Input], how: Described, asked: Drawing) -> CheckOptions:
    """Return the options that all checks of a job share.

    Args:
        job: The job.
        inputs: Its inputs.
        how: The run options and the comparison of the job.
        asked: The options of drawn and saved histories.

    Raises:
        BadInput: An argument is out of range, the check can't draw rows for an input, or a static table is invalid.
    """
    given = cast("Described", {**defaults_of(Described), **how})
    seconds = SECONDS if given["seconds"] is None else given["seconds"]
    seed, folder, trigger = asked.get("seed", 0), asked.get("folder"), given["trigger"]
    histories = asked.get("histories")
    histories = ALONE_HISTORIES if histories is None else histories
    check_arguments(histories, seed, seconds, given["out_of_order"])
    static = given["static"]
    if isinstance(job, Script):
        inputs, static = _reads_of(job, inputs, static)
    resolved, runner = runner_of(job, inputs, seed, static)
    settings = settings_of(given["settings"])
    timeouts_us = _timeouts_us(given["timeouts"], resolved)
    run = RunOptions(
        trigger=trigger,
        mode=given["mode"] or "append",
        empty_batches=True,
        processing_time=bool(timeouts_us),
        settings=settings,
        seconds=seconds,
    )
    if isinstance(job, Script):
        runner.declare(run)  # the declaration runs the script, and so finds its settings
        run = replace(run, mode=given["mode"] or mode_of(job), settings={**job.found.settings, **settings})
        runner = replace(runner, job=job.job)
    plan = runner.declare(run).plan if timeouts_us else Plan()
    run = replace(run, is_sink=isinstance(runner.job, Sink))
    by_event_time = plan.by_event_time and not plan.by_processing_time
    if by_event_time:
        run = replace(run, processing_time=False)
    elif timeouts_us and trigger != "default":
        raise BadInput(f'timeouts are checked under the default trigger: leave out trigger="{trigger}"')
    return CheckOptions(
        runner=runner,
        inputs=resolved,
        run=run,
        seed=seed,
        unique=given["unique"],
        out_of_order=given["out_of_order"],
        alone=given["alone"],
        timeouts_us=() if by_event_time else timeouts_us,
        timers_us=timeouts_us if by_event_time else (),
        equality=Equality(given["digits"]),
        without=frozenset(given["without"]),
        least_alone=math.ceil(LEAST_SHARE * histories),
        folder=None if folder is None else folder_at(folder),
    )


def _timeouts_us(timeouts: Sequence[Duration], inputs: Sequence[ResolvedInput]) -> list[int]:
    """Return the durations of the user's timeouts (µs).

    Raises:
        BadInput: A duration is longer than batches or rows can be apart in a history.
    """
    grain_us = max(1_000, grain_of(inputs))
    found = []
    for timeout in timeouts:
        timeout_us = microseconds_of("timeouts", timeout)
        if timeout_us <= grain_us or timeout_us % grain_us:
            raise BadInput(
                f"timeouts has {timeout!r}: batches run at event times of the inputs, so give a multiple of "
                f"{duration(grain_us)} that is larger than {duration(grain_us)}"
            )
        found.append(timeout_us)
    return sorted({*found})


def _reads_of(
    script: Script, inputs: Sequence[Input], static: Mapping[str, Any] | None
) -> tuple[Sequence[Input], Mapping[str, Any]]:
    """Return the inputs and the static tables that a script reads, as found in a run of the script.

    Raises:
        BadInput: The user declares inputs although the script's own sources are the inputs.
    """
    if inputs:
        raise BadInput(f"{script.where} has its inputs in reads=: leave out the other inputs")
    tables = {**script.tables, **(static or {})}
    script.found.tables = [*tables]
    return script.inputs, tables


def mode_of(script: Script) -> Mode:
    """Return the output mode of a script's query.

    Raises:
        BadInput: Spark has no such output mode.
    """
    said = (script.found.mode or "append").lower()
    for mode in get_args(Mode):
        if said == mode:
            return cast("Mode", mode)
    raise BadInput(f"{script.where} has the output mode {said!r}: Spark has {', '.join(get_args(Mode))}")


def oracle_of(expect: Any, job: JobOrSink | None = None) -> Oracle:
    """Return the oracle for a user's argument `expect`.

    Raises:
        BadInput: The argument isn't an oracle, or this job can't be compared with the oracle.
    """
    if isinstance(expect, BatchOracle) and isinstance(expect.job or job, Sink):
        raise BadInput("a Sink can't be run as a batch: give the job without its sink to as_batch(job)")
    if isinstance(expect, BatchOracle) and expect.job is None and isinstance(job, Script) and job.read is not None:
        expect = replace(expect, job=job.without_sink)
    if isinstance(expect, (BatchOracle, JobOracle)) and isinstance(expect.job, Script):
        if isinstance(job, Script):
            expect.job.found.tables = job.found.tables
        expect = replace(expect, job=expect.job.job)
    is_class = isinstance(expect, type)
    if isinstance(expect, Oracle):
        return expect
    if isinstance(expect, str):
        return sql(expect)
    if is_class and hasattr(expect, "arrive"):
        return ModelOracle(expect)
    if callable(expect) and not is_class:
        return FunctionOracle(expect)
    raise BadInput(
        f"expect is {short(expect)}: give a rule such as session_windows(…), a function from rows to rows, a "
        "class with arrive and advance, sql(…), as_batch() or other_job(…)"
    )


def runner_of(
    job: JobOrSink, inputs: Sequence[Input], seed: int, static: Mapping[str, Any] | None
) -> tuple[list[ResolvedInput], Runner]:
    """Resolve a job's inputs, and return the runner of the job.

    Raises:
        BadInput: The check can't draw rows for an input, a static table is invalid, or two inputs or tables share a
            name.
    """
    if any(needs_spark(getattr(given, "schema", None)) for given in inputs):
        session_of_jobs()
    resolved, tables = resolve_all(inputs, seed), static_tables(static)
    distinct_names("inputs or static tables", [*(given.name for given in resolved), *tables])
    return resolved, Runner(job, [given.source for given in resolved], tables)


def static_tables(static: Mapping[str, Any] | None) -> dict[str, pa.Table]:
    """Return the static tables as Arrow tables.

    Raises:
        BadInput: A static table is invalid.
    """
    tables = {}
    for name, table in (static or {}).items():
        try:
            found = table if isinstance(table, pa.Table) else pa.Table.from_pylist(rows_of(table))
        except (BadInput, pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise BadInput(f"the static table {visible(name)}: {error}") from None
        if not found.column_names:
            raise BadInput(
                f"the static table {visible(name)} has no columns: give rows, or an arrow table with a schema"
            )
        tables[name] = found
    return tables


def settings_of(settings: Mapping[str, str | int] | None) -> dict[str, str]:
    """Return settings of the Spark session with their values as text, as Spark writes them.

    Raises:
        BadInput: A setting contains invalid characters.
    """
    given = {
        name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in (settings or {}).items()
    }
    for name, text in given.items():
        if not f"{name}{text}".isprintable():
            raise BadInput(
                f"settings has {short(name)}: {short(text)}, which contains invisible characters: leave them out"
            )
    return given
