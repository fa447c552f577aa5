"""What kills a query that many definitions share is found by halves, and the others get their answers."""

from __future__ import annotations

from typing import Any, NoReturn

from pyspark.sql import SparkSession
from streamproof import play
from streamproof.properties.checking.samples import STANDING
from streamproof.properties.generators.draws import HistorySettings, draw_histories
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.witnesses.spark.shared import Play, run_shared
from streamproof.spark_impl.table_table_join import TableTableLogic


def test_a_logic_that_ends_its_worker_is_isolated_on_spark(spark: SparkSession) -> None:
    def ends_its_worker(definition: Any) -> TableTableLogic:
        # A local class, for workers can't import a test's module.
        class EndsItsWorker(TableTableLogic):
            def take(self, *arguments: Any) -> NoReturn:
                import os

                os._exit(7)

        return EndsItsWorker(definition)

    histories = list(draw_histories(HistorySettings("table_table_join", {"join": "outer"}, STANDING), 3, seed=2))
    output = run_shared([*map(Play, histories), Play(histories[0], ends_its_worker)])
    for history, outcome in zip(histories, output.outcomes, strict=False):
        assert not differences(Outcome.of_play(history.name, play(history)), outcome)
    (dropped,) = output.outcomes[-1].entries
    assert str(dropped.output.reason).startswith("failed: the Spark query failed: ")  # type: ignore[union-attr]
