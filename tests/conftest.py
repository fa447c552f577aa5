"""What all tests share: one Spark session for the whole run, and the mark `spark` on every test that uses it."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# How long an example takes depends on the machine.
settings.register_profile("without a deadline", settings.default, deadline=None)
settings.load_profile("without a deadline")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    from streamproof.properties.witnesses.spark.session import spark_session

    session = spark_session(cores=2)
    yield session
    session.stop()


@pytest.fixture(scope="session")
def kafka() -> None:
    """Skip a test, by its name and with the reason, where Kafka Streams can't be asked."""
    from streamproof.properties.witnesses.kafka.jvm import kafka_jvm
    from streamproof.reference.core.errors import MissingTool

    try:
        kafka_jvm()
    except MissingTool as missing:
        pytest.skip(str(missing))


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


ON_SPARK = pytest.StashKey[bool]()
"""Whether Spark may run in this process: a test was to start it, or one that wasn't has been told of."""


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Fail a test that starts Spark without the mark: it costs more than it says, and `make test-quick` has it.

    And forget the release that a command's `--kafka-version` names for its process: the next test asks the default.
    """
    if versions := sys.modules.get("streamproof.properties.witnesses.kafka.versions"):
        versions.use_version(None)
    stash, pyspark = item.config.stash, sys.modules.get("pyspark")
    if "spark" in item.keywords:
        stash[ON_SPARK] = True
    elif pyspark and pyspark.SparkContext._active_spark_context and not stash.get(ON_SPARK, False):
        stash[ON_SPARK] = True
        pytest.fail("it starts Spark: let it use the fixture spark, or play in memory (tests/shared_player.py)")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        assert " at 0x" not in item.nodeid, f"{item.nodeid}: name it by ids=, each process has other addresses"
        for weekly in item.iter_markers("weekly"):
            assert weekly.args, f"{item.nodeid}: say why it is weekly"
            item.add_marker(pytest.mark.exhaustive)  # what leaves these out leaves it out too
        if "spark" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.spark)
        # A module's fixture may take minutes: the tests that share it run in one process.
        if any(fixtures[-1].scope == "module" for fixtures in item._fixtureinfo.name2fixturedefs.values()):
            item.add_marker(pytest.mark.xdist_group(item.location[0]))


def pytest_collection_finish() -> None:
    """Let no garbage collection look at what was collected: it lives as long as the process."""
    gc.freeze()
