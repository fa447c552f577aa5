"""The options of a query's run: stops, crashes, partitions, trigger, mode and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ...reference.core.errors import BadInput
from ...reference.spark.aggregates import Mode as Mode

WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
"""The setting with which a query combines several watermarks; the query's checkpoint stores it."""
Trigger: TypeAlias = Literal["default", "available_now"]
"""With `default`, a batch without data follows each batch that moves the watermark; with `available_now`, only the last
batch.
"""
Moment: TypeAlias = Literal[
    "before its output",
    "in the middle of its output",
    "within a write of its output",
    "between its output and its commit",
]
BEFORE: Moment = "before its output"
MIDDLE: Moment = "in the middle of its output"
WITHIN: Moment = "within a write of its output"
BETWEEN: Moment = "between its output and its commit"
OF_SINKS: Sequence[Moment] = (WITHIN, MIDDLE)
"""The moments at which only a sink can die, during its output. A death within a write comes first, because a function
that skips written rows sees a micro-batch as new only once.
"""


class Crash(NamedTuple):
    """The moment at which a query dies; after the restart, the query repeats the micro-batch.

    Attributes:
        batch: The index of the batch.
        data: Whether the query dies in the micro-batch with the batch's rows, or in the following micro-batch without
            data.
        moment: Whether the query dies before the micro-batch's output, during the output, or between the output and the
            commit.
        step: In the middle of the output, the number of steps before the death: lines of a `foreachBatch` function, or
            rows of a writer. Within a write, the index of the failure, as in `Writes`. 0: the query chooses the steps.
    """

    batch: int
    data: bool = True
    moment: Moment = BETWEEN
    step: int = 0

    def __str__(self) -> str:
        return f"batch {self.batch}{'' if self.data else ' without data'}, {self.moment}"

    def to_json(self) -> list[Any]:
        """Return the crash as JSON: its fields, without a step of 0."""
        return [*self[:3], *[self.step] * bool(self.step)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """The options of a query's run; witnesses without a query ignore them.

    Attributes:
        stop_after: Stop after each of these batches (from 0), and restart from the checkpoint.
        crash_in: Die at these moments, and restart; a repeated crash happens again when the query repeats the batch.
        read_state: Read the state at the end.
        state_groups: The number of groups over which the state's keys are spread (None: a number that depends on the
            number of histories).
        partitions: The number of shuffle partitions of the query (None: the session's number).
        trigger: For a job, whether a batch without data follows each batch, or only the last batch.
        mode: For a job, the output mode; a sink sets its own mode.
        empty_batches: For a job, whether an empty batch follows each batch under the default trigger, even if no
            operator needs it.
        processing_time: For a job, whether the history's clock, not the machine's, sets the processing time of each
            batch.
        is_sink: For a job, whether the job writes its own result, and so may die during its output.
        row_by_row: For a job, whether its stateful functions get each row of a batch in a separate call.
        fault: For a sink, the fault that the sink's query undergoes; empty: no fault.
        fault_at: The batches in which the fault happens, each with the number of the line of the sink's function for
            `foreachBatch`; empty: the query chooses the batches and lines.
        settings: For a job, further settings of the session.
        seconds: For a job, the time limit of its query (s).
    """

    stop_after: tuple[int, ...] = ()
    crash_in: tuple[Crash, ...] = ()
    read_state: bool = False
    state_groups: int | None = None
    partitions: int | None = None
    trigger: Trigger = "default"
    mode: Mode = "append"
    empty_batches: bool = False
    processing_time: bool = False
    is_sink: bool = False
    row_by_row: bool = False
    fault: str = ""
    fault_at: tuple[tuple[int, int], ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    seconds: float = 120

    @property
    def is_rerun(self) -> bool:
        """Return whether the options contain more than `read_state`, the only option of a first run."""
        return replace(self, read_state=False) != PLAIN

    @property
    def watermark_policy(self) -> Literal["min", "max"]:
        """The rule that combines several watermarks into the query's watermark, `max` or `min`."""
        policy = self.settings.get(WATERMARK_POLICY, "min")
        return "max" if policy.lower() == "max" else "min"  # Spark ignores the case of the setting

    def delay_us(self, delays_us: Sequence[int]) -> int:
        """Return the delay (µs) of the query's watermark behind a clock that all inputs follow.

        Args:
            delays_us: The delays of the query's watermarks.
        """
        return (min if self.watermark_policy == "max" else max)(delays_us, default=0)

    @property
    def steps(self) -> int:
        """The number of micro-batches for each batch of a job."""
        return 2 if self.trigger == "default" else 1

    def clipped(self, batches: int) -> RunOptions:
        """Return the options for a history of this many batches; a batch follows each stop, if the history has two
        batches.
        """
        return replace(
            self,
            stop_after=tuple(max(0, min(batch, batches - 2)) for batch in self.stop_after),
            crash_in=tuple(at._replace(batch=max(0, min(at.batch, batches - 1))) for at in self.crash_in),
        )

    def crashes_everywhere(self, batches: int) -> tuple[Crash, ...]:
        """Return all possible crashes of a job's query over this many batches, in order.

        Only a sink acts before it receives a micro-batch; for another query, a crash before the output of the first
        batch suffices.
        """
        places = [(batch, data) for batch in range(batches) for data in (True, False)[: self.steps]]
        places += [(batches - 1, False)] * (self.steps == 1)
        moments = [moment for moment in get_args(Moment) if self.is_sink or moment not in OF_SINKS]
        crashes = (Crash(*place, moment) for place in places for moment in moments)
        return tuple(at for at in crashes if self.is_sink or at.moment != BEFORE or not at.batch)

    def to_json(self) -> dict[str, Any]:
        """Return the options of a rerun as JSON; a batch's number represents a crash between the batch's output and its
        commit.
        """
        options = {name: getattr(self, name) for name in SAVED}
        options["stop_after"] = [*self.stop_after]
        options["crash_in"] = [at.batch if at == Crash(at.batch) else at.to_json() for at in self.crash_in]
        return {name: value for name, value in options.items() if value}


PLAIN = RunOptions()
ALONE = RunOptions(partitions=1)
"""The options for a single history: its few keys need no second partition, which would make the run a third longer."""
SAVED = ("stop_after", "crash_in", "read_state", "state_groups", "partitions")
"""The options of a rerun that are saved with a counterexample."""


def run_options(content: Any) -> RunOptions:
    """Return the options that `RunOptions.to_json` has written.

    Raises:
        BadInput: The content isn't a set of run options; the message names the remedy.
    """
    if not isinstance(content, dict) or (unknown := [name for name in content if name not in SAVED]):
        refused = repr(content) if not isinstance(content, dict) else f"an option {unknown[0]!r}"
        raise BadInput(f"{refused:.60} isn't valid as run options: use an object with some of {', '.join(SAVED)}")
    options: dict[str, Any] = {}
    for name, value in content.items():
        if name == "stop_after":
            is_valid = isinstance(value, list) and all(map(_is_batch, value))
            wanted = "a list of batches, numbers from 0 on"
        elif name == "crash_in":
            is_valid = isinstance(value, list) and None not in map(crash_of, value)
            wanted = 'a list of batches, numbers from 0 on, or of crashes, such as [1, true, "before its output"]'
        elif name == "read_state":
            is_valid, wanted = type(value) is bool, "true or false"
        else:
            is_valid, wanted = value is None or (type(value) is int and value > 0), "a number from 1 on, or null"
        if not is_valid:
            raise BadInput(f"{name} is {value!r:.40}, and must be {wanted}")
        options[name] = tuple(value) if isinstance(value, list) else value
    options["crash_in"] = tuple(map(crash_of, options.get("crash_in", ())))
    return RunOptions(**options)


def crash_of(value: Any) -> Crash | None:
    """Return the crash that JSON represents as the number of a batch, or as the crash's fields (None: not a crash)."""
    match value:
        case int(batch) if _is_batch(batch):
            return Crash(batch)
        case [batch, bool(data), moment, *rest] if _is_batch(batch) and moment in get_args(Moment):
            match rest:
                case [] | [0]:
                    return Crash(batch, data, moment)
                case [step] if moment in OF_SINKS and _is_batch(step):
                    return Crash(batch, data, moment, step)
    return None


def _is_batch(value: Any) -> bool:
    return type(value) is int and value >= 0
