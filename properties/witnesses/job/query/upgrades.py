"""Runs a query with a job's earlier version until the first stop, and with the job afterwards."""

from __future__ import annotations

from dataclasses import replace

from .....reference.core.errors import BadInput
from ....system.visible import first_cause, first_line
from ...spark.failures import QueryFailed
from ...spark.session import with_settings
from ..dying.checkpoints import last_commit
from .job_query import JobQuery
from .runnable import Earlier, LeftBehind, name_of


class NotContinued(QueryFailed):
    """A job failed on the checkpoint of its earlier version; the message is Spark's error."""


def run_until_first_stop(query: JobQuery) -> LeftBehind:
    """Run the batches before the first stop, stop the query, and return the results for the next version."""
    query.make_available(min(query.first_stop, len(query.batches) - 1) + 1)
    query.drained()
    return LeftBehind(query.available, query.checkpoint, query.tables, query.times.committed, query.deaths)


class UpgradeRun:
    """The change from a job's earlier version to the job, within one query.

    Args:
        query: The query of the job.
        earlier: The earlier version.
    """

    def __init__(self, query: JobQuery, earlier: Earlier) -> None:
        self.query, self.earlier = query, earlier
        query.follows_clock = False  # don't compare with the clock: the two versions' delays may differ

    def run_all(self) -> None:
        """Run the earlier version until the stop, and then the job on the same checkpoint.

        Raises:
            NotContinued: The job fails on the checkpoint.
        """
        query, earlier = self.query, self.earlier
        try:
            self.run_earlier()
        except (QueryFailed, BadInput) as failed:
            raise type(failed)(f"{earlier.name}: {failed.message}") from None
        if query.available == len(query.batches) * query.steps:
            return
        if earlier.repartition is not None:
            self.repartition(earlier.repartition)
        # The earlier version has already stopped at this batch: with a second stop, the job would first start without
        # rows.
        query.run = replace(query.run, stop_after=tuple(at for at in query.run.stop_after if at > query.first_stop))
        query.declaration.take_over(query.runnable.job, query.run.mode)
        try:
            query.run_all()
        except (QueryFailed, BadInput) as error:
            refusal = NotContinued(error.message)
            refusal.cause = getattr(error, "cause", "") or error.message
            raise refusal from None

    def run_earlier(self) -> None:
        """Run the earlier version until the stop."""
        query, earlier = self.query, self.earlier
        if earlier.on is not None:
            left = earlier.on.until_stop(earlier, query.until_stop)
            query.available, query.checkpoint, query.tables = left.available, left.checkpoint, left.tables
            query.times.committed, query.deaths = left.committed, left.deaths
            return
        query.declaration.take_over(earlier.job, earlier.mode)
        with with_settings(query.spark, earlier.settings):
            run_until_first_stop(query)

    def repartition(self, partitions: int) -> None:
        """Let Spark change the number of the state's partitions, while no query runs.

        Raises:
            BadInput: Spark is older than 4.2, or refuses the change.
        """
        from py4j.protocol import Py4JJavaError
        from pyspark.errors import PySparkException

        query = self.query
        if not hasattr(type(query.spark), "_streamingCheckpointManager"):
            raise BadInput(
                f"repartition={partitions}: PySpark {query.spark.version} can't repartition state: use 4.2 or newer"
            )
        try:
            query.spark._streamingCheckpointManager.repartition(str(query.checkpoint), partitions)
        except (Py4JJavaError, PySparkException) as error:
            java = getattr(error, "java_exception", None)
            why = first_line(error if java is None else first_cause(java).getMessage()).rstrip(".")
            raise BadInput(
                f"repartition={partitions}: Spark refuses to repartition the checkpoint of "
                f"{name_of(query.declaration.job)}: {why}: give another number than the state has now; a job without "
                "state has no partitions to change"
            ) from None
        query.repartitioned = last_commit(query.checkpoint)
