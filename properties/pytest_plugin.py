"""For pytest suites: hold a Spark job of one's own to the reference of an operator."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from .cluster import MASTER_VARIABLE, PARTITIONS_VARIABLE, SHARED_VARIABLE

if TYPE_CHECKING:
    from .spark_witness import Job


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a suite say where its jobs run, as the command line does: the same options, with `streamproof-` before."""
    group = parser.getgroup("streamproof", "streamproof: where the jobs run that are held to a reference")
    group.addoption("--streamproof-master", metavar="URL", help=f"Spark's master; by default ${MASTER_VARIABLE}.")
    group.addoption(
        "--streamproof-partitions",
        type=int,
        metavar="N",
        help=f"Shuffle partitions of each query; by default ${PARTITIONS_VARIABLE}, or 2.",
    )
    group.addoption(
        "--streamproof-shared",
        type=Path,
        metavar="FOLDER",
        help=f"Folder that this machine and all workers see under one path; by default ${SHARED_VARIABLE}.",
    )


@pytest.fixture(scope="session")
def conforms(pytestconfig: pytest.Config) -> Callable[..., None]:
    """A function `conforms(job, options, histories=300, seed=0)` that fails the test on the smallest disagreement."""
    master = pytestconfig.getoption("--streamproof-master") or os.environ.get(MASTER_VARIABLE)
    partitions = pytestconfig.getoption("--streamproof-partitions")
    shared = pytestconfig.getoption("--streamproof-shared")
    if master or partitions is not None or shared is not None:
        from .spark_session import spark_session

        spark_session(master=master, partitions=partitions, shared=shared)
    return assert_conforms


def assert_conforms(
    job: Job,
    options: Mapping[str, Any],
    histories: int = 300,
    seed: int = 0,
    operator: str = "session_windows",
) -> None:
    """Hold a streaming job to the reference over random, out-of-order histories, all in one query.

    Args:
        job: Takes a streaming DataFrame with the columns key (string), value (as the options' aggregate wants it),
            timestamp (bigint, ms) and order (bigint, the order of arrival), and gives a streaming DataFrame in append
            mode with the columns key, window (struct of start and end; the end is the last record's timestamp), value
            and timestamp. A null value is a tombstone. A column `ordinal`, where there is one, orders a key's changes.
        options: The options that the job implements, as in a history file; durations in ms.
        histories: How many histories to draw.
        seed: What they are drawn from.
        operator: The operator's name.

    Raises:
        AssertionError: The job parts from the reference; the message has the smallest history and both outcomes.
        BadInput: The options are none of the operator's.
        StreamproofError: The query failed, or Spark couldn't be started.
    """
    __tracebackhide__ = True
    from ..reference.operators import operator_named
    from .cohorts import one_cohort
    from .draws import Shape, draw_histories
    from .examinations import examine, shrunk
    from .findings import account, disagreement
    from .shapes import SCHEDULE
    from .spark_witness import Plan

    operator_named(operator).declare(options)
    plan = Plan(job=job)
    drawn = list(draw_histories(Shape(options, SCHEDULE, operator=operator), histories, seed))
    examination = examine(one_cohort(drawn), plan)
    failing = [history for history, broken in zip(drawn, examination.broken, strict=True) if "changelog" in broken]
    if failing:
        smallest, confirmed = shrunk(failing[0], "changelog", plan)
        finding = disagreement("the job", smallest, plan, confirmed, seed)
        raise AssertionError(f"{len(failing)} of {histories} histories part from the reference.\n{account(finding)}")
