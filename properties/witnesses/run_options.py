"""How a query is run: its stops, crashes, partitions, trigger, mode and settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from ...reference.core.errors import BadInput
from ...reference.spark.aggregates import Mode as Mode

WATERMARK_POLICY = "spark.sql.streaming.multipleWatermarkPolicy"
"""The setting by which a query makes its watermark from several, which its checkpoint keeps."""
Trigger: TypeAlias = Literal["default", "available_now"]
"""`default`: a batch without data follows each batch that moves the watermark; `available_now`: only the last."""
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
"""The moments at which a sink alone can die, while it is at work. Within a write comes first: to a function that skips
what it finds written, a micro-batch is new only once."""


class Crash(NamedTuple):
    """The moment at which a query dies; started again, it repeats the micro-batch.

    Attributes:
        batch: The index of the batch.
        data: Whether it dies in the micro-batch with the batch's rows, or in the following micro-batch without data.
        moment: Whether it dies before it has written the micro-batch, while it writes it, or after that and before the
            commit.
        step: In the middle of the output, after how many steps it dies: lines of the function of `foreachBatch`, or
            rows of a writer. Within a write, which partitions of which write fail, counted as by `Writes`. 0: the query
            chooses them.
    """

    batch: int
    data: bool = True
    moment: Moment = BETWEEN
    step: int = 0

    def __str__(self) -> str:
        return f"batch {self.batch}{'' if self.data else ' without data'}, {self.moment}"

    def to_json(self) -> list[Any]:
        """Return the crash as JSON: its fields, without the step where it has none."""
        return [*self[:3], *[self.step] * bool(self.step)]


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """How a query is run; witnesses without a query ignore it.

    Attributes:
        stop_after: Stop after each of these batches (from 0), and restart from the checkpoint.
        crash_in: Die at these moments, and restart; a crash that comes twice happens again when the batch is replayed.
        read_state: Read the state at the end.
        state_groups: The number of groups over which the state's keys are spread; None: by the number of histories.
        partitions: The number of shuffle partitions of the query; None for the session's number.
        trigger: For a job, whether a batch without data follows each batch, or only the last.
        mode: For a job, its output mode; a sink has its own.
        empty_batches: For a job, whether an empty batch follows each batch under the default trigger, whatever its
            operators ask for.
        processing_time: For a job, whether the processing time of each batch is the history's clock, not the
            machine's.
        is_sink: For a job, whether it writes its result itself, and so may die while it does.
        row_by_row: For a job, whether its functions with state get each row of a batch in a call of its own.
        settings: For a job, further settings of the session.
        seconds: For a job, the most time that its query may take.
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
    settings: Mapping[str, str] = field(default_factory=dict, hash=False)
    seconds: float = 120

    @property
    def is_rerun(self) -> bool:
        """Whether it differs from the first run of histories, which at most reads the state."""
        return replace(self, read_state=False) != PLAIN

    @property
    def watermark_policy(self) -> Literal["min", "max"]:
        """The rule that makes the query's watermark from several, by its settings: `max` or `min`."""
        policy = self.settings.get(WATERMARK_POLICY, "min")
        return "max" if policy.lower() == "max" else "min"  # Spark takes either case

    def delay_us(self, delays_us: Sequence[int]) -> int:
        """Return the delay of the query's watermark behind a clock that all its inputs follow, in microseconds.

        Args:
            delays_us: The delays of its watermarks.
        """
        return (min if self.watermark_policy == "max" else max)(delays_us, default=0)

    @property
    def steps(self) -> int:
        """The number of micro-batches for each batch of a job."""
        return 2 if self.trigger == "default" else 1

    def clipped(self, batches: int) -> RunOptions:
        """Return the options for a history of this many batches: each stop has a batch after it, if there are two."""
        return replace(
            self,
            stop_after=tuple(max(0, min(batch, batches - 2)) for batch in self.stop_after),
            crash_in=tuple(at._replace(batch=max(0, min(at.batch, batches - 1))) for at in self.crash_in),
        )

    def crashes_everywhere(self, batches: int) -> tuple[Crash, ...]:
        """Return all crashes that a job's query over this many batches can have, in order.

        Only a sink does anything before it is given a micro-batch: another query dies there in the first batch alone.
        """
        places = [(batch, data) for batch in range(batches) for data in (True, False)[: self.steps]]
        places += [(batches - 1, False)] * (self.steps == 1)
        moments = [moment for moment in get_args(Moment) if self.is_sink or moment not in OF_SINKS]
        crashes = (Crash(*place, moment) for place in places for moment in moments)
        return tuple(at for at in crashes if self.is_sink or at.moment != BEFORE or not at.batch)

    def to_json(self) -> dict[str, Any]:
        """Return the options of a rerun as JSON; a crash between output and commit of a batch is its number."""
        options = {name: getattr(self, name) for name in SAVED}
        options["stop_after"] = [*self.stop_after]
        options["crash_in"] = [at.batch if at == Crash(at.batch) else at.to_json() for at in self.crash_in]
        return {name: value for name, value in options.items() if value}


PLAIN = RunOptions()
ALONE = RunOptions(partitions=1)
"""The options for a history alone: its few keys need no second partition, which would cost a third more."""
SAVED = ("stop_after", "crash_in", "read_state", "state_groups", "partitions")
"""The options of a rerun that are saved with a counterexample."""


def run_options(content: Any) -> RunOptions:
    """Return the options that `RunOptions.to_json` has written.

    Raises:
        BadInput: The content isn't a set of run options; the message names the remedy.
    """
    if not isinstance(content, dict) or (unknown := [name for name in content if name not in SAVED]):
        refused = repr(content) if not isinstance(content, dict) else f"an option {unknown[0]!r}"
        raise BadInput(f"{refused:.60} is no way to run a query: use an object with some of {', '.join(SAVED)}")
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
    """Return the crash that JSON writes as the number of a batch, or as its fields; None: it isn't a crash."""
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
