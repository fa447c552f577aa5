"""The pytest plugin: fixtures such as `spark` and `check_job`, and their options on the command line."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from ...reference.core.errors import needing_spark
from ..system.progress import telling
from ..system.visible import visible
from ..witnesses.spark.platform.cluster import MASTER_VARIABLE, PARTITIONS_VARIABLE, SHARED_VARIABLE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PROFILES: Mapping[str, Mapping[str, float]] = {
    "quick": {"histories": 50},
    "default": {},
    "thorough": {"histories": 2000, "seconds": 900},
}
"""The options of each profile, for checks that don't set these options."""
PROFILE = "streamproof_profile"
OPTIONS: Sequence[tuple[str, type, str, str]] = (
    ("histories", int, "N", "The number of histories of each check, overriding the test's."),
    (
        "seconds",
        float,
        "S",
        "The time limit of a job's query, and of all histories that run alone, overriding the test's.",
    ),
    ("seed", int, "N", "The seed of the drawn histories, overriding the test's."),
    (
        "report",
        Path,
        "FOLDER",
        "Write the results of job checks as HTML, text, JSON and JUnit XML; under xdist each worker has a folder.",
    ),
    ("master", str, "URL", f"Spark's master; by default ${MASTER_VARIABLE}."),
    (
        "partitions",
        int,
        "N",
        f"The number of shuffle partitions of each query; by default ${PARTITIONS_VARIABLE}, or 2.",
    ),
    (
        "shared",
        Path,
        "FOLDER",
        f"A folder with the same path on this machine and all workers; by default ${SHARED_VARIABLE}.",
    ),
)
"""The options besides the profile: name, type, metavar and help."""
OUTCOMES = pytest.StashKey[list[tuple[str, Any]]]()
"""The result or exception of each check of a job, with the node id of the test."""
STDERR = pytest.StashKey[int]()
"""A descriptor of standard error that pytest doesn't capture."""
FIXTURES = ("check_job", "invariants", "upgrade")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the command line: how much is checked, and on which Spark the jobs run."""
    group = parser.getgroup("streamproof", "streamproof: how jobs are checked, and where they run")
    group.addoption(
        "--streamproof-profile",
        choices=[*PROFILES],
        metavar="NAME",
        help="quick (50 histories), default (300) or thorough (2000, 900 s), unless the test gives a number.",
    )
    for name, kind, metavar, said in OPTIONS:
        group.addoption(f"--streamproof-{name}", type=kind, metavar=metavar, help=said)
    group.addoption(
        "--streamproof-mutants",
        action="store_true",
        help="Check mutants of each job that conforms, and list the mutants that the test doesn't kill; no test fails.",
    )
    parser.addini(PROFILE, "The profile of this suite: quick, default or thorough.", default="default")


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests() -> None:
    """Prepare Spark Connect before conftest.py and the tests' modules are imported, if SPARK_REMOTE is set."""
    if "SPARK_REMOTE" in os.environ:
        from ..witnesses.spark.platform import connect

        connect.begin()


def pytest_configure(config: pytest.Config) -> None:
    """Refuse an unknown profile, and a report folder that isn't writable, before any test runs."""
    if config.getini(PROFILE) not in PROFILES:
        raise pytest.UsageError(f"{PROFILE} is {config.getini(PROFILE)!r}: use one of {', '.join(PROFILES)}")
    config.stash[OUTCOMES] = []
    with suppress(OSError, ValueError, AttributeError):  # standard error may have no file descriptor
        config.stash[STDERR] = os.dup(sys.stderr.fileno())  # copy standard error before pytest captures output
    folder = _report_folder(config)
    if folder is not None:
        from ...reference.core.errors import BadInput
        from ..report.writing import require_folder

        try:
            require_folder(folder)
        except BadInput as error:
            raise pytest.UsageError(f"--streamproof-report: {error}") from None


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the descriptor to which progress is written."""
    if STDERR in config.stash:
        os.close(config.stash[STDERR])
        del config.stash[STDERR]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    """Show the progress of a test's checks, one line every ten seconds, even if pytest captures output."""
    descriptor = item.config.stash.get(STDERR, None)
    if descriptor is None:
        return (yield)

    def show(line: str) -> None:
        with suppress(OSError):  # the terminal may be gone
            os.write(descriptor, f"\nstreamproof: {visible(line)}\n".encode(errors="replace"))

    with telling(show):
        return (yield)


def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Record a test that fails without a check's verdict, so that the report doesn't conform."""
    if call.excinfo is None or call.when == "teardown" or _report_folder(item.config) is None:
        return
    raised, outcomes = call.excinfo.value, item.config.stash[OUTCOMES]
    if isinstance(raised, (pytest.skip.Exception, pytest.xfail.Exception)) or any(one is raised for _, one in outcomes):
        return
    from ...reference.core.errors import StreamproofError
    from ..checking.jobs.verdicts import CheckFailed, NotFinished

    if isinstance(raised, CheckFailed):  # the test called streamproof.check_job itself
        outcomes.append((item.nodeid, raised))
    elif isinstance(raised, StreamproofError) or {*FIXTURES} & {*getattr(item, "fixturenames", ())}:
        said = f"{type(raised).__name__}: {raised}"
        why = raised.message if isinstance(raised, StreamproofError) else " ".join(said.split())
        outcomes.append((item.nodeid, NotFinished(item.nodeid, f"could not run: {why}")))


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write the report, if requested, also after an interrupted run; an earlier run's report is replaced."""
    folder, outcomes = _report_folder(session.config), session.config.stash[OUTCOMES]
    if folder is None or not (outcomes or (folder / "report.html").exists()):
        return
    from ..report.making import write_report

    ended = session.shouldfail or session.shouldstop
    if not ended and exitstatus in (pytest.ExitCode.INTERRUPTED, pytest.ExitCode.INTERNAL_ERROR):
        ended = pytest.ExitCode(exitstatus).name.replace("_", " ").lower()
    write_report(folder, *(outcome for _, outcome in outcomes), ended=f"pytest ended early: {ended}" if ended else "")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the path of the report and, with -v, the report of each check that conforms."""
    outcomes = config.stash[OUTCOMES]
    if outcomes and (terminalreporter.verbosity > 0 or config.getoption("--streamproof-mutants")):
        terminalreporter.section("streamproof")
        for test, outcome in outcomes:
            if getattr(outcome, "verdict", "") == "conforms":
                terminalreporter.write_line(f"{test}:")
                for line in str(outcome).splitlines():
                    terminalreporter.write_line(f"  {line}")
    if (folder := _report_folder(config)) is not None:
        if getattr(config.option, "numprocesses", None):
            written = f"{folder}, a folder for each worker"
        else:
            page = folder / "report.html"
            written = str(page) if page.exists() else "none, because no job was checked"
        terminalreporter.write_line(f"streamproof's report: {written}")


@pytest.fixture(scope="session")
def spark(pytestconfig: pytest.Config) -> SparkSession:
    """Return the Spark session for checks of jobs; a suite can define its own fixture `spark` instead."""
    with needing_spark():
        from ..witnesses.spark.session import session_of_jobs

    return session_of_jobs(**_cluster(pytestconfig))


@pytest.fixture(scope="session")
def check_job(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """Return `streamproof.check_job`, which saves the counterexamples of each test in a separate folder."""
    with needing_spark():
        from ..checking.jobs.job import check_job

    return _in_test(pytestconfig, check_job)


@pytest.fixture(scope="session")
def invariants(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """Return `streamproof.invariants`, which saves the counterexamples of each test in a separate folder."""
    with needing_spark():
        from ..checking.jobs.job import invariants

    return _in_test(pytestconfig, invariants)


@pytest.fixture(scope="session")
def upgrade(pytestconfig: pytest.Config) -> Callable[..., Any]:
    """Return `streamproof.upgrade`, which saves the counterexamples of each test in a separate folder."""
    with needing_spark():
        from ..checking.jobs.job import upgrade

    return _in_test(pytestconfig, upgrade)


def _cluster(config: pytest.Config) -> dict[str, Any]:
    """Return the options of the command line for the Spark session."""
    return {name: config.getoption(f"--streamproof-{name}") for name in ("master", "partitions", "shared")}


def _in_test(config: pytest.Config, function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a check so that it uses the running test's folder and the options of the command line."""
    cluster = _cluster(config)
    if cluster["master"] or os.environ.get(MASTER_VARIABLE) or any(value is not None for value in cluster.values()):
        from ..witnesses.spark.session import spark_session

        spark_session(**{**cluster, "master": cluster["master"] or os.environ.get(MASTER_VARIABLE)}, any_provider=True)
    from ..checking.jobs.verdicts import CheckFailed
    from ..counterexamples.of_jobs import SAVED, folder_of

    signature = inspect.signature(function)
    profile = PROFILES[config.getoption("--streamproof-profile") or config.getini(PROFILE)]
    asked = {name: config.getoption(f"--streamproof-{name}") for name in ("histories", "seconds", "seed")}
    asked["mutants"] = config.getoption("--streamproof-mutants") or None

    @wraps(function)
    def in_test(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        test = running_test()
        given: dict[str, Any] = {} if test is None else {"folder": folder_of(test, config.rootpath / SAVED)}
        given |= {name: value for name, value in profile.items() if name in signature.parameters}
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError:
            return function(*arguments, **named)  # raises the error about the arguments
        wanted = {name: value for name, value in asked.items() if value is not None and name in signature.parameters}
        bound.arguments = {**given, **bound.arguments, **wanted}
        try:
            outcome = function(*bound.args, **bound.kwargs)
        except CheckFailed as raised:
            config.stash[OUTCOMES].append((test or function.__name__, raised))
            raise
        if outcome is not None:
            config.stash[OUTCOMES].append((test or function.__name__, outcome))
        return outcome

    return in_test


def running_test() -> str | None:
    """Return the node id of the test that pytest is running, or None outside of tests."""
    running = os.environ.get("PYTEST_CURRENT_TEST")
    return None if running is None else running.rpartition(" ")[0]


def _report_folder(config: pytest.Config) -> Path | None:
    """Return the folder of this process's report; None if no report is requested."""
    folder: Path | None = config.getoption("--streamproof-report")
    worker = getattr(config, "workerinput", {}).get("workerid")
    return folder if folder is None or worker is None else folder / worker
