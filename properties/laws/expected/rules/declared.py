"""Validates the arguments that the rules share: durations, columns, column types, and the choice of inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from .....reference.core.durations import Duration, microseconds_of
from .....reference.core.errors import BadInput
from ....system.installed.requirements import PYSPARKS, listed, minor, release
from ....system.installed.spark_versions import spark_version
from .rule import WINDOW_TIME, Stream

On: TypeAlias = str | Sequence[str] | tuple[Sequence[str], Sequence[str]]
"""The join columns: their names, or the names on each side in the same order."""
ResultColumns: TypeAlias = str | Sequence[str] | Mapping[str, str] | None
"""The columns of a job's result: their names, or the rule's column for each name; None: all columns of the rule."""


def check_semantics(rule: str, semantics: str) -> None:
    """Refuse an argument `semantics` other than Spark's; the message says how to check other semantics."""
    if semantics != "spark":
        raise BadInput(
            f'{rule}: semantics is {semantics!r}, but a job is checked by Spark\'s own rules, "spark": leave '
            "semantics out; reference_of(…) expects the output of the twelve operators' definitions, such as "
            "KIP-94"
        )


def version_of(rule: str, spark: str | None) -> tuple[int, ...]:
    """Return the version of Spark that a rule follows; by default the version of the installed PySpark."""
    if spark is None:
        return spark_version()
    if minor(spark) not in PYSPARKS:
        raise BadInput(
            f"{rule}: spark is {spark!r}: give a version, {listed(PYSPARKS)}, or a release of such a version"
        )
    return release(spark) if spark.count(".") > 1 else (*release(spark), 99)


def named(rule: str, **given: object) -> str:
    """Return a rule's name in reports: the function and the given arguments."""
    texts = {
        name: "+".join(f"{one} {two}" for one, two in value.items()) if isinstance(value, Mapping) else str(value)
        for name, value in given.items()
        if value is not None
    }
    return f"{rule}({', '.join(f'{name}={text}' for name, text in texts.items())})"


def positive_us(rule: str, name: str, duration: Duration) -> int:
    """Return a duration in microseconds, which must be above zero."""
    duration_us = microseconds_of(f"{rule}: {name}", duration)
    if duration_us <= 0:
        raise BadInput(f"{rule}: {name} is {duration!r}: give a duration above zero")
    return duration_us


def delays_of(rule: str, delay: Duration | None) -> dict[str, int]:
    """Return a mapping from the empty name to the watermark's delay of all inputs (µs); return an empty mapping without
    a watermark.
    """
    return {} if delay is None else {"": watermark_delay_us(rule, "delay", delay)}


def each_delay(rule: str, delay: Duration | Mapping[str, Duration] | None) -> dict[str, int]:
    """Return the delays as `delays_of` does; the argument may also map each input's name to its delay."""
    if not isinstance(delay, Mapping):
        return delays_of(rule, delay)
    return {name: watermark_delay_us(rule, f"the delay of {name}", one) for name, one in delay.items()}


def watermark_delay_us(rule: str, name: str, delay: Duration) -> int:
    """Return the delay of a watermark (µs)."""
    delay_us = microseconds_of(f"{rule}: {name}", delay)
    if delay_us < 0:
        raise BadInput(
            f"{rule}: {name} is {delay!r}, but the delay of a watermark can't be negative: give zero or more"
        )
    return delay_us


def column_names(rule: str, name: str, columns: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns; at least one is required."""
    given = (columns,) if isinstance(columns, str) else tuple(columns)
    if not given:
        raise BadInput(f'{rule}: {name} is {columns!r}: give the names of columns, such as ["user"]')
    return given


def result_columns(rule: str, result: ResultColumns) -> dict[str, str]:
    """Return the rule's column for each column of a job's result; return an empty mapping if the result has all columns
    of the rule.
    """
    if isinstance(result, Mapping):
        return dict(zip(column_names(rule, "result", [*result]), result.values(), strict=True))
    return {} if result is None else {name: name for name in column_names(rule, "result", result)}


def both_sides(rule: str, on: On) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the join columns of each side."""
    if isinstance(on, str) or all(isinstance(name, str) for name in on):
        columns = column_names(rule, "on", on)  # type: ignore[arg-type]
        return columns, columns
    sides = [column_names(rule, "on", side) for side in on]
    if len(sides) != 2 or len(sides[0]) != len(sides[1]):
        raise BadInput(
            f"{rule}: on is {on!r}: give the names of columns, or equally many names for each side, such as "
            "(['user'], ['id'])"
        )
    return sides[0], sides[1]


def only_input(rule: str, streams: Sequence[Stream], name: str | None) -> Stream:
    """Return the stream that a rule with one input reads: the named stream, or the output of the rule before it."""
    names = ", ".join(stream.name for stream in streams)
    if name is None and (len(streams) == 1 or not streams[0].is_input):
        return streams[0]
    if name is None:
        raise BadInput(f'{rule} reads one input, and the job has {names}: name the input, input="{streams[0].name}"')
    for stream in streams:
        if stream.name == name:
            return stream
    raise BadInput(f"{rule}: there is no input {name!r}: use one of {names}")


def refuse_several_times(rule: str, stream: Stream) -> None:
    """Refuse a stream with several event times, because Spark can't decide which event time makes a row late."""
    times = {time.column for time in stream.plan.event_times}
    timed = sorted("the time of a window" if time.endswith(WINDOW_TIME) else time for time in times)
    if len(timed) > 1:
        raise BadInput(
            f"{rule}: the rule before it keeps several event times, {' and '.join(timed)}, which Spark refuses: "
            "let columns= of the join keep one of them"
        )


def look_for(rule: str, stream: Stream, columns: Sequence[str]) -> None:
    """Refuse columns that a stream lacks."""
    missing = [column for column in columns if column not in stream.schema.names]
    if missing:
        counts = '; "count" alone, {"n": "count"}, counts rows' if missing[0] == "*" else ""
        names = ", ".join(stream.schema.names)
        where = f"the input {stream.name}" if stream.is_input else "the rule before it"
        raise BadInput(f"{rule}: {where} has no column {missing[0]!r}: use one of {names}{counts}")
