"""The settings of the session that a job makes itself, as while it declares its query."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextlib.contextmanager
def noting_settings(spark: SparkSession, noted: dict[str, str]) -> Iterator[None]:
    """Note the settings of a session that are others after the block; over Spark Connect none is seen.

    Args:
        spark: The session.
        noted: Gets the settings, by name.
    """
    before = _Settings(spark)
    yield
    noted |= {name: value for name, value in before.changed() if value is not None}


@contextlib.contextmanager
def taking_back_settings(spark: SparkSession) -> Iterator[None]:
    """Put the settings of a session that are others after the block back, or a later check would run under them."""
    before = _Settings(spark)
    try:
        yield
    finally:
        for name, _ in before.changed():
            earlier = before.values.get(name)
            spark.conf.unset(name) if earlier is None else spark.conf.set(name, earlier)


class _Settings:
    """The settings of a session at a moment.

    Args:
        spark: The session; over Connect it has none here.
    """

    def __init__(self, spark: SparkSession) -> None:
        session: Any = getattr(spark, "_jsparkSession", None)
        self.now = self.values = {} if session is None else session.sessionState().conf().settings()
        if session is not None:
            self.values = session.sessionState().conf().clone().settings()

    def changed(self) -> list[tuple[str, str | None]]:
        """Return the settings that are others now, each with its value; None: it is no longer set."""
        if self.now == self.values:  # a call of the JVM, where to read each of them takes many
            return []
        now, before = dict(self.now), dict(self.values)
        return [(name, now.get(name)) for name in {**before, **now} if now.get(name) != before.get(name)]
