"""The rule of a union of streams."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import reduce

from .....reference.core.durations import Duration
from .....reference.core.errors import BadInput
from .....reference.spark import plans
from ....system.arguments import checked
from ....witnesses.run_options import Mode
from .declared import (
    ResultColumns,
    check_semantics,
    column_names,
    each_delay,
    named,
    only_input,
    result_columns,
)
from .rule import Rule, Stream


@checked
def union(
    inputs: Sequence[str] | None = None,
    delay: Duration | Mapping[str, Duration] | None = None,
    *,
    result: ResultColumns = None,
    semantics: str = "spark",
) -> Rule:
    """Expect the rows of `union` of streams with the same columns; the first stream's event time applies.

    Args:
        inputs: The names of the inputs, in order; by default all inputs.
        delay: The watermark's delay of each input, or a mapping from inputs' names to delays. If instead a rule after
            the union has the delay, the watermark is on the union's output.
        result: The columns of the job's result, as in `drop_duplicates`.
        semantics: The system whose rules apply: `spark`.

    Raises:
        BadInput: The delay is invalid.
    """
    check_semantics("union", semantics)
    given = None if inputs is None else column_names("union", "inputs", inputs)
    delays_us, wanted = each_delay("union", delay), result_columns("union", result)
    name = named("union", inputs=given and "+".join(given), delay=delay)

    def bind(streams: Sequence[Stream], mode: Mode) -> Stream:
        united = [*streams] if given is None else [only_input(name, streams, one) for one in given]
        first, *others = united
        if not others:
            raise BadInput(f"{name} needs two inputs or more, but has only {first.name}: give it a second input")
        for other in others:
            if (other.plan.columns, other.time, other.times) != (first.plan.columns, first.time, first.times):
                raise BadInput(
                    f"{name}: {other.name} has the columns {', '.join(other.schema.names)} and the event time "
                    f"{other.time}, but {first.name} has {', '.join(first.schema.names)} and {first.time}: both "
                    "must be alike"
                )
        # Without delays here, a later rule's delay is for the union's output: `a.union(b).withWatermark(…)`.
        above = not delays_us and all(one.is_input and one.plan.event_times == first.plan.event_times for one in united)
        times = first.plan.event_times if above else ()
        below = (one.plan.input if times else one.plan for one in united)
        plan: plans.Node = reduce(lambda one, two: plans.Union((one, two)), below)
        if times:
            plan = plans.WithWatermark((plan,), *times[0])
        inputs_of = frozenset(name for one in united for name in one.inputs)
        return replace(first, plan=plan, inputs=inputs_of)

    return Rule(name, delays_us, bind, sorted({*delays_us.values()} - {0}), result is None, wanted)
