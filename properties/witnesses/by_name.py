"""Finds witnesses by their names in commands, and imports a witness only when it is needed."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from ...reference.core.errors import BadInput
from .base import Witness

_WITNESSES: Mapping[str, tuple[str, str]] = {
    "reference": ("reference", "ReferenceWitness"),
    "spark": ("spark.witness", "SparkWitness"),
    "spark-native": ("spark.witness", "NativeSparkWitness"),
    "duckdb": ("duckdb.witness", "DuckDBWitness"),
    "kafka": ("kafka.witness", "KafkaWitness"),
    "kafka-broker": ("kafka_broker.witness", "KafkaBrokerWitness"),
    "protocol": ("protocol", "ProtocolWitness"),
}
WITNESSES = tuple(_WITNESSES)
"""The names of the witnesses."""


def witness_named(name: str) -> Witness:
    """Return a witness by its name.

    Raises:
        BadInput: No witness has this name; the message lists the known names.
    """
    if name not in _WITNESSES:
        raise BadInput(f"unknown witness {name!r}: use one of {', '.join(WITNESSES)}")
    module, kind = _WITNESSES[name]
    witness: Witness = getattr(import_module(f".{module}", __package__), kind)()
    return witness
