"""Run witnesses by name for commands; if the user gives an option for Spark, start Spark first."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

from ...spark_impl.runtime.required import require_pyspark
from ..system.visible import visible
from ..witnesses.kafka.versions import version_in_use
from .terminal import messages, steps

if TYPE_CHECKING:
    from ...reference.core.history import History
    from ..outcomes.outcomes import Outcome


class WitnessName(StrEnum):
    """The witnesses that can run a history."""

    REFERENCE = "reference"
    SPARK = "spark"
    SPARK_NATIVE = "spark-native"
    DUCKDB = "duckdb"
    KAFKA = "kafka"
    KAFKA_BROKER = "kafka-broker"
    PROTOCOL = "protocol"


ON_SPARK = {WitnessName.SPARK, WitnessName.SPARK_NATIVE}
ON_KAFKA = {WitnessName.KAFKA: "Kafka Streams", WitnessName.KAFKA_BROKER: "a Kafka broker, Kafka Streams"}
STARTED = {**dict.fromkeys(ON_SPARK, "Spark"), **ON_KAFKA}  # the program that each witness starts


def start_spark(master: str | None, partitions: int | None, shared: Path | None) -> None:
    """Start Spark first if the user gives an option for Spark, so that an unusable cluster is reported at once.

    Raises:
        MissingTool: PySpark is too old for the operators.
    """
    require_pyspark()
    if master is None and partitions is None and shared is None:
        return
    from ..witnesses.spark.session import spark_session

    with steps() as progress:
        progress(f"starting Spark on {master or 'this machine'}")
        spark_session(master=master, partitions=partitions, shared=shared)


def evaluated(histories: Sequence[History], on: WitnessName) -> list[Outcome]:
    """Run each history on a witness, and print on stderr the names of the programs that were started for the witness.

    Raises:
        BadInput: The witness refuses a history.
        MissingTool: The machine lacks a tool that the witness needs.
        StreamproofError: A query of the witness failed.
    """
    from ..witnesses.by_name import witness_named

    witness = witness_named(on)
    if on not in STARTED:
        return witness.evaluate(histories)
    otherwise = [history.name for history in histories if history.clock != "batch"]
    if on in ON_SPARK and otherwise:
        messages.out(f"note: Spark has the batch clock, not stream time: {', '.join(map(visible, otherwise))}")
    with steps() as progress:
        release = f" {version_in_use()}" if on in ON_KAFKA else ""
        progress(f"{counted(len(histories))} on {STARTED[on]}{release}")
        return witness.evaluate(histories)


def counted(histories: int) -> str:
    """Return a count of histories, such as `2 histories`."""
    return f"{histories} {'history' if histories == 1 else 'histories'}"
