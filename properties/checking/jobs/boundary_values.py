"""The boundary values of a check: values near the constants in a job's plan and in the code of its functions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from ...generators.columns.histories.constants import compares, with_constants
from ...generators.columns.histories.drawing import start_of
from ...laws.expected.oracle import Oracle
from ...witnesses.job.function_constants import constants_in
from ...witnesses.job.plan.plans import Plan
from ...witnesses.job.query.runnable import JobOrSink
from ...witnesses.job.scripts.script import Script
from ...witnesses.job.sinks.sink import Sink
from .arguments import CheckOptions


def with_boundary_values(options: CheckOptions, plan: Plan, oracle: Oracle) -> CheckOptions:
    """Return the options of a check, with values around the constants of the job and the oracle in its inputs.

    Args:
        options: The options.
        plan: The job's analyzed plan; empty for a sink, whose plan isn't known before a run.
        oracle: The oracle.
    """
    job = options.runner.job
    expected = [one for other in oracle.written if other is not job for one in _code(other)]
    of_code = constants_in([*_code_of(job, plan), *expected], without=None if isinstance(job, Sink) else job)
    inputs = with_constants(
        options.inputs,
        compares(plan.comparisons, options.runner.sources),
        of_code,
        start_of(options.seed),
        exact=options.equality.digits is None,
    )
    return replace(options, inputs=inputs)


def _code_of(job: JobOrSink | Script, plan: Plan) -> Iterator[Any]:
    """Yield the job's code if the plan hides some of the job's logic."""
    if plan.operators and not (plan.has_function or plan.in_functions):
        return
    yield from _code(job)


def _code(written: Any) -> Iterator[Any]:
    """Yield the code of a job, a function or a class, or the text of a statement."""
    function = written.start if isinstance(written, Sink) else written
    script = getattr(function, "script", function)
    if not isinstance(script, Script):
        yield function
    elif callable(script.source):
        yield script.source
    else:
        yield from filter(None, [script.code])
