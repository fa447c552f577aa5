"""The rules of deduplication, with and without a watermark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .....reference.core.durations import Duration
from .....reference.core.errors import BadInput
from .....reference.spark.plans import Deduplication
from ....system.arguments import checked
from ....witnesses.run_options import Mode
from .declared import (
    ResultColumns,
    check_semantics,
    column_names,
    delays_of,
    look_for,
    named,
    only_input,
    refuse_several_times,
    result_columns,
)
from .rule import Rule, Stream


@checked
def drop_duplicates(
    columns: str | Sequence[str] | None = None,
    delay: Duration | None = None,
    within_watermark: bool = False,
    *,
    result: ResultColumns = None,
    input: str | None = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of `dropDuplicates(columns)`, or of `dropDuplicatesWithinWatermark(columns)`.

    The output contains the columns of the input. Of several duplicates in a batch, Spark may emit any row; this rule
    expects the first row. If duplicates differ in other columns, the job must select only the columns in which
    duplicates are equal. Columns that the job's result lacks aren't compared, unless `result` names them.

    Args:
        columns: The columns in which duplicates are equal; by default all columns.
        delay: The watermark's delay; with a watermark, late rows are dropped. Spark removes the state of earlier rows
            only if the event time is among `columns`, or with `within_watermark`.
        within_watermark: Whether Spark emits a duplicate again after the watermark has passed the first row by the
            delay.
        result: The columns that the job's result must have, or the rule's column for each, such as `{"customer":
            "user"}`; other columns aren't compared. By default, the columns in the result are compared, and the report
            names the missing columns.
        input: The input's name, if the job has several inputs.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: The delay is invalid or missing.
    """
    check_semantics("drop_duplicates", semantics)
    if within_watermark and delay is None:
        raise BadInput('drop_duplicates: within_watermark needs the watermark\'s delay: give delay="10 minutes"')
    given = None if columns is None else column_names("drop_duplicates", "columns", columns)
    name = named(
        "drop_duplicates", columns=given and "+".join(given), delay=delay, within_watermark=within_watermark or None
    )
    delays_us = delays_of("drop_duplicates", delay)
    wanted = result_columns("drop_duplicates", result)

    def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
        stream = only_input(name, streams, input)
        equal = tuple(stream.schema.names) if given is None else given
        look_for(name, stream, equal)
        refuse_several_times(name, stream)
        if within_watermark and not stream.plan.event_times:
            raise BadInput(
                f"{name}: the rule before it doesn't keep the event time: name the event time in columns= of the join"
            )
        return replace(stream, plan=Deduplication((stream.plan,), equal, within_watermark))

    # Without `result=`, a job may omit any columns, because it should omit the columns in which duplicates differ.
    return Rule(name, delays_us, bind, sorted({*delays_us.values()} - {0}), result is None, wanted)
