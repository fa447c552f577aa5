"""What is asked of a PySpark by its version, without starting one."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError
from typing import Any

import pytest
from streamproof.properties.system.installed import requirements, spark_versions


@pytest.fixture(autouse=True)
def read_anew() -> Iterator[None]:
    """Forget the version that this process has read."""
    spark_versions.spark_version.cache_clear()
    yield
    spark_versions.spark_version.cache_clear()


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    def say(pyspark: str) -> None:
        actual = requirements.version
        monkeypatch.setattr(requirements, "version", lambda name: pyspark if name == "pyspark" else actual(name))

    return say


@pytest.mark.parametrize(
    ("pyspark", "package", "has_sockets"),
    [
        ("3.5.9", "streaming", False),
        ("4.0.5", "streaming", False),
        ("4.1.0", "streaming.checkpointing", True),
        ("4.3.0", "streaming.checkpointing", True),
    ],
)
def test_sockets_and_the_manager_of_checkpoint_files_are_where_the_version_has_them(
    installed: Any, pyspark: str, package: str, has_sockets: bool
) -> None:
    installed(pyspark)
    wanted = f"org.apache.spark.sql.execution.{package}.FileSystemBasedCheckpointFileManager"
    assert (spark_versions.checkpoint_file_manager(), spark_versions.has_unix_sockets()) == (wanted, has_sockets)


def test_a_condition_is_asked_by_the_name_that_the_version_has() -> None:
    class Old:
        def getErrorClass(self) -> str:
            return "OLD"

    class New(Old):
        def getCondition(self) -> str:
            return "NEW"

    assert [spark_versions.condition_of(one()) for one in (Old, New)] == ["OLD", "NEW"]  # type: ignore[arg-type]


def test_without_a_pyspark_there_is_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr(requirements, "version", none)
    monkeypatch.setattr(requirements, "platform_version", lambda: "")
    assert spark_versions.spark_version.__wrapped__() == ()
