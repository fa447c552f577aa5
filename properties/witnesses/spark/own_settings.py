"""The settings of a session that a job changes itself, for example while it declares its query."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def noting_settings(spark: SparkSession, noted: dict[str, str]) -> Iterator[None]:
    """Record the settings of a session that change in the block; over Spark Connect none is visible.

    Args:
        spark: The session.
        noted: Receives the settings, by name.
    """
    before = _Settings(spark)
    yield
    noted |= {name: value for name, value in before.changed() if value is not None}


@contextlib.contextmanager
def taking_back_settings(spark: SparkSession) -> Iterator[None]:
    """Restore the session's settings that the block changed, because a later check would run under the changed
    settings.
    """
    before = _Settings(spark)
    try:
        yield
    finally:
        for name, _ in before.changed():
            earlier = before.values.get(name)
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


class _Settings:
    """The settings of a session at a point in time.

    Args:
        spark: The session; a Connect session has no settings in this process.
    """

    def __init__(self, spark: SparkSession) -> None:
        session: Any = getattr(spark, "_jsparkSession", None)
        self.now = self.values = {} if session is None else session.sessionState().conf().settings()
        if session is not None:
            self.values = session.sessionState().conf().clone().settings()

    def changed(self) -> list[tuple[str, str | None]]:
        """Return the settings that have changed since, each with its value (None: the setting no longer exists)."""
        if self.now == self.values:  # compare in one call of the JVM, because reading each setting needs many calls
            return []
        now, before = dict(self.now), dict(self.values)
        return [(name, now.get(name)) for name in {**before, **now} if now.get(name) != before.get(name)]
