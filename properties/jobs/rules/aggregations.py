"""The rules of aggregation by time windows and by session windows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import pyarrow as pa

from ....reference.core.errors import BadInput
from ....reference.spark import session_windows as sessions
from ....reference.spark import windows as time_windows
from ....reference.spark.aggregates import FUNCTIONS, Aggregate
from ....reference.spark.durations import Duration, microseconds_of
from ...system.arguments import checked
from ...witnesses.run_options import Mode
from ..model import Source
from .declared import check_semantics, column_names, delays_of, look_for, named, only_input, positive_us
from .rule import Rule, Stage, stepping

Aggregates: TypeAlias = Mapping[str, str | Sequence[str]]
"""By the name of the output column: `count` for `count(*)`, or a function of Spark SQL and its column."""


@dataclass(frozen=True)
class Windows(Rule):
    """What time windows and session windows have in common.

    Attributes:
        keys: The columns of the key; None for those of the input.
        aggregates: The aggregates, by the name of their output column.
        input: The name of the input; None for the only one.
    """

    keys: tuple[str, ...] | None
    aggregates: Mapping[str, Aggregate]
    input: str | None

    def source(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> tuple[Source, tuple[str, ...]]:
        """Return the input and the columns of the key."""
        source = only_input(self.name, sources, self.input)
        keys = source.key if self.keys is None else self.keys
        columns = [*keys, *(aggregate.column for aggregate in self.aggregates.values() if aggregate.column is not None)]
        look_for(self.name, source, columns)
        for name, aggregate in self.aggregates.items():
            decimal = aggregate.column and pa.types.is_decimal(source.schema.field(aggregate.column).type)
            if aggregate.function == "avg" and decimal:
                raise BadInput(
                    f"{self.name}: the rules don't say how {name!r} is rounded, which averages decimals: expect their "
                    "sum and count instead"
                )
        if mode == "append" and not watermark:
            raise BadInput(
                f"{self.name} has no delay, and Spark aggregates in append mode only with a watermark: "
                'give it delay="10 minutes", or the job the mode "update" or "complete"'
            )
        return source, keys

    def stage(self, source: Source, start: Callable[[], Any], *, follows: bool) -> Stage:
        """Return the operator's stage."""
        times = {name for name, aggregate in self.aggregates.items() if aggregate.column == source.time}
        times -= {name for name, aggregate in self.aggregates.items() if aggregate.function == "count"}
        why = "the event time is then a window: it is the last operator in what a rule can say"
        return Stage(stepping(start, source.name), follows, frozenset({"start", "end", *times}), None, why)


@dataclass(frozen=True)
class SessionWindows(Windows):
    """An aggregation by session windows.

    Attributes:
        gap_us: How long after its last row a session ends, in microseconds.
    """

    gap_us: int

    @property
    def distances_us(self) -> Sequence[int]:
        """The gap and the delay, in microseconds."""
        return sorted({self.gap_us, *self.delays_us.values()})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source, keys = self.source(sources, mode, watermark=watermark)
        if mode == "update":
            raise BadInput(f'{self.name}: Spark refuses session windows in update mode: use "append" or "complete"')
        windows = sessions.SessionWindows(source.time, keys, self.gap_us, self.aggregates, mode)
        return [
            self.stage(source, lambda: sessions.State(windows).batch, follows=windows.asks_for_batch_without_data),
        ]


@dataclass(frozen=True)
class TimeWindows(Windows):
    """An aggregation by tumbling or hopping windows, all durations in microseconds.

    Attributes:
        size_us: How long a window is.
        slide_us: From one window's start to the next.
        start_us: Where windows start, from 1970.
    """

    size_us: int
    slide_us: int
    start_us: int

    @property
    def distances_us(self) -> Sequence[int]:
        """The size, the slide, the start and the delay, in microseconds."""
        return sorted({self.size_us, self.slide_us, abs(self.start_us), *self.delays_us.values()} - {0})

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source, keys = self.source(sources, mode, watermark=watermark)
        windows = time_windows.Windows(
            source.time, keys, self.size_us, self.slide_us, self.start_us, self.aggregates, mode
        )
        return [
            self.stage(source, lambda: time_windows.State(windows).batch, follows=windows.asks_for_batch_without_data),
        ]


@checked
def session_windows(
    gap: Duration,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: str | Sequence[str] | None = None,
    input: str | None = None,
    semantics: str = "spark",
) -> SessionWindows:
    """Expect `groupBy(keys, session_window(time, gap))` and its aggregates.

    Rows of the output: the columns of the key, `start`, `end` (a gap after the last row, exclusive) and the aggregates.

    Args:
        gap: The gap, such as "30 minutes"; rows exactly one gap apart share a session.
        delay: The delay of the watermark; needed in append mode.
        aggregates: By the name of the output column: `("sum", "amount")`, or `"count"` for `count(*)`, which is
            expected by default. Functions are count, sum, min, max, avg, and collect_list and collect_set, sorted.
        keys: The columns of the key; those of the input by default.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: A duration or an aggregate can't be read.
    """
    check_semantics("session_windows", semantics)
    return SessionWindows(
        named("session_windows", gap=gap, delay=delay),
        delays_of("session_windows", delay),
        None if keys is None else column_names("session_windows", "keys", keys),
        _aggregates("session_windows", aggregates),
        input,
        positive_us("session_windows", "gap", gap),
    )


@checked
def windows(
    size: Duration,
    slide: Duration | None = None,
    start: Duration | None = None,
    delay: Duration | None = None,
    aggregates: Aggregates | None = None,
    *,
    keys: str | Sequence[str] | None = None,
    input: str | None = None,
    semantics: str = "spark",
) -> TimeWindows:
    """Expect `groupBy(keys, window(time, size, slide, start))` and its aggregates.

    Rows of the output: the columns of the key, `start`, `end` (exclusive) and the aggregates.

    Args:
        size: How long a window is, such as "1 hour".
        slide: From one window's start to the next; the size by default.
        start: Where windows start, from midnight (UTC) of 1970-01-01; there by default.
        delay: The delay of the watermark; needed in append mode.
        aggregates: As in `session_windows`.
        keys: The columns of the key; those of the input by default.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: A duration or an aggregate can't be read, or Spark refuses the window.
    """
    check_semantics("windows", semantics)
    size_us = positive_us("windows", "size", size)
    slide_us = size_us if slide is None else positive_us("windows", "slide", slide)
    start_us = 0 if start is None else microseconds_of("windows: start", start)
    if slide_us > size_us:
        raise BadInput(
            f"windows: the slide {slide!r} is longer than the size {size!r}, and Spark refuses that: swap them"
        )
    if abs(start_us) >= slide_us:
        raise BadInput(f"windows: the start {start!r} must be shorter than the slide: give the rest of their division")
    return TimeWindows(
        named("windows", size=size, slide=slide, start=start, delay=delay),
        delays_of("windows", delay),
        None if keys is None else column_names("windows", "keys", keys),
        _aggregates("windows", aggregates),
        input,
        size_us,
        slide_us,
        start_us,
    )


def _aggregates(rule: str, given: Aggregates | None) -> dict[str, Aggregate]:
    aggregates = {}
    for name, said in ({"count": "count"} if given is None else given).items():
        parts = (said, None) if isinstance(said, str) else (*said,)
        if len(parts) != 2 or parts[0] not in FUNCTIONS or (parts[1] is None and parts[0] != "count"):
            raise BadInput(
                f"{rule}: the aggregate {name!r} is {said!r}: give a function of {', '.join(FUNCTIONS)} "
                'with its column, such as ("sum", "amount"), or "count"'
            )
        aggregates[name] = Aggregate(*parts)
    return aggregates
