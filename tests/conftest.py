"""What all tests share: one Spark session for the whole run, and what a test of each folder may do."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from costs import CostLimits, folder_of, leave_to_weekly
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from streamproof.spark_impl.sinks.materialize import Target

# How long an example takes depends on the machine.
settings.register_profile("without a deadline", settings.default, deadline=None)
settings.load_profile("without a deadline")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from streamproof.properties.witnesses.spark.session import spark_session

    session = spark_session(cores=2)
    yield session
    session.stop()


@pytest.fixture(scope="session", autouse=True)
def sessions_outlive_commands() -> Iterator[None]:
    """Let no command that runs in the process of the tests stop the Spark session, which later tests use."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("streamproof.properties.cli.app._running_session", lambda: None)
        yield


@pytest.fixture(scope="session")
def kafka() -> None:
    """Skip a test, by its name and with the reason, where Kafka Streams can't be asked."""
    from streamproof.properties.witnesses.kafka.jvm import kafka_jvm
    from streamproof.reference.core.errors import MissingTool

    try:
        kafka_jvm()
    except MissingTool as missing:
        pytest.skip(str(missing))


@pytest.fixture(params=["parquet", "duckdb"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Target:
    """The targets that the tests of `materialize` write to."""
    from streamproof.spark_impl.sinks.tables import DuckDBTable, ParquetTable

    if request.param == "parquet":
        return ParquetTable(tmp_path / "table", buckets=3)
    return DuckDBTable(tmp_path / "database.duckdb", "table of totals")


@pytest.fixture
def benchmarks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[..., tuple[object, str, str]]:
    """Runs `python -m benchmarks` with words, and ends no Spark session: gives its exit code, and what it printed."""
    monkeypatch.setattr("pyspark.sql.SparkSession.getActiveSession", lambda: None)
    from benchmarks import command_line

    def run(*words: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["benchmarks", *words])
        with pytest.raises(SystemExit) as ended:
            command_line.main()
        return (ended.value.code, *capsys.readouterr())

    return run


@pytest.fixture
def unshrunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a job's check, or a run's, show the history that it has found as it is: most tests ask only for a bug."""
    for limit in ("smallest.SHRINKING", "smallest.SHRINKING_S", "production.narrowing.SHRINKING_S"):
        monkeypatch.setattr(f"streamproof.properties.checking.jobs.{limit}", 0)


@pytest.fixture
def dying_only(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Return a function that lets queries die at one moment alone: at all moments a sink dies some thirty times."""
    from streamproof.properties.witnesses.run_options import Crash, RunOptions

    everywhere = RunOptions.crashes_everywhere

    def only(moment: str) -> None:
        def crashes(run: RunOptions, batches: int) -> tuple[Crash, ...]:
            return tuple(at for at in everywhere(run, batches) if at.moment == moment)

        monkeypatch.setattr(RunOptions, "crashes_everywhere", crashes)

    return only


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(CostLimits(config), "limits of costs")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--within-limits", action="store_true", help="refuse to collect tests that took longer than their folder allows"
    )


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test of tests/fast that starts Spark: `make test-quick` runs it.

    And forget the release that a command's `--kafka-version` names for its process: the next test asks the default.
    """
    if versions := sys.modules.get("streamproof.properties.witnesses.kafka.versions"):
        versions.use_version(None)
    pyspark = sys.modules.get("pyspark")
    if folder_of(item.nodeid) == "fast" and pyspark and pyspark.SparkContext._active_spark_context:
        pyspark.SparkContext._active_spark_context.stop()
        helpers = "tests/helpers/memory_spark.py, shared_player.py"
        pytest.fail(f"it starts Spark: move it to tests/spark, or run it in memory ({helpers})")


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    leave_to_weekly(items)
    for item in items:
        assert " at 0x" not in item.nodeid, f"{item.nodeid}: name it by ids=, each process has other addresses"
        is_weekly = [*item.iter_markers("weekly")]
        assert all(one.args for one in is_weekly), f"{item.nodeid}: say why it is weekly"
        assert is_weekly or folder_of(item.nodeid) != "weekly", f"{item.nodeid}: mark it weekly, with the reason"
        # A module's fixture may take minutes: the tests that share it run in one process.
        if any(fixtures[-1].scope == "module" for fixtures in item._fixtureinfo.name2fixturedefs.values()):
            item.add_marker(pytest.mark.xdist_group(item.location[0]))


def pytest_collection_finish() -> None:
    """Let no garbage collection look at what was collected: it lives as long as the process."""
    gc.freeze()
