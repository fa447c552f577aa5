"""The fixtures of pytest suites: `check_job`, `invariants` and `conforms`, each with a folder of the test's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from ..witnesses.spark.cluster import MASTER_VARIABLE, PARTITIONS_VARIABLE, SHARED_VARIABLE


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let a suite say where its jobs run, as the command line does: the same options, with `streamproof-` before."""
    group = parser.getgroup("streamproof", "streamproof: where the jobs run that are checked against a reference")
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
    from .conformance import assert_conforms

    return _in_test(pytestconfig, assert_conforms)


@pytest.fixture(scope="session")
def check_job(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """`streamproof.check_job`, which saves the counterexamples of each test in a folder of that test's own."""
    from ..jobs.check import check_job

    return _in_test(pytestconfig, check_job)


@pytest.fixture(scope="session")
def invariants(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """`streamproof.invariants`, which saves the counterexamples of each test in a folder of that test's own."""
    from ..jobs.invariants import invariants

    return _in_test(pytestconfig, invariants)


def _in_test(pytestconfig: pytest.Config, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the function with the folder of the test that runs, on the cluster that pytest is told of."""
    master = pytestconfig.getoption("--streamproof-master") or os.environ.get(MASTER_VARIABLE)
    partitions = pytestconfig.getoption("--streamproof-partitions")
    shared = pytestconfig.getoption("--streamproof-shared")
    if master or partitions is not None or shared is not None:
        from ..witnesses.spark.session import spark_session

        spark_session(master=master, partitions=partitions, shared=shared)
    from .conformance import folder_of_test, running_test

    @wraps(function)
    def in_test(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        test = running_test()
        own = {} if test is None else {"folder": folder_of_test(pytestconfig.rootpath, test)}
        return function(*arguments, **{**own, **named})

    return in_test
