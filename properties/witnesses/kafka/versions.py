"""The releases of Kafka Streams that can be asked, and what they are to be set up by: the only place that knows.

What the releases from 3.6 to 4.3 share needs no word: `TopologyConfig`, `EmitStrategy`, `statestore.cache.max.bytes`
and `JoinWindows.of` are in all of them.
"""

from __future__ import annotations

import os
import re
from typing import Literal, TypeAlias

from ....reference.core.errors import BadInput

DEFAULT = "4.3.1"
"""The release that is asked where none is named; what the reference is said to differ from is what this one does."""

OLDEST = (3, 6)

RELEASES = (
    *("3.6.2", "3.7.2", "3.8.1", "3.9.0", "3.9.1", "3.9.2"),
    *("4.0.0", "4.0.1", "4.0.2", "4.1.2", "4.2.2", "4.3.1"),
)
"""The releases that were asked: the newest of each minor one, and those before it that differ."""

VERSION_VARIABLE = "STREAMPROOF_KAFKA_VERSION"
"""The environment variable that names the release, where no option does."""

Stores: TypeAlias = Literal["in memory", "RocksDB"]
"""What keeps the state; RocksDB is Kafka's default."""

STORES: tuple[Stores, ...] = ("in memory", "RocksDB")

_STREAMS = "org.apache.kafka.streams"
_STRING_SERDE = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_SETTINGS = {
    "application.id": "streamproof",
    "bootstrap.servers": "localhost:1",  # demanded, and never spoken to
    "default.key.serde": _STRING_SERDE,
    "default.value.serde": _STRING_SERDE,
    "statestore.cache.max.bytes": "0",
    "metric.reporters": "",
    # Unmatched and closed rows are emitted at most once a second of the wall clock, which stands still in a test
    # driver.
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
}

_named: str | None = None


def release(version: str) -> tuple[int, ...]:
    """Return a release's numbers, by which releases are ordered.

    Raises:
        BadInput: It is none, or is older than the oldest that can be asked; the message names those that are known.
    """
    known = f"use one of {', '.join(RELEASES)}, or another release from {OLDEST[0]}.{OLDEST[1]} on"
    if re.fullmatch(r"(0|[1-9]\d{0,3})(\.(0|[1-9]\d{0,3})){2}", version, re.ASCII) is None:
        raise BadInput(f"{version!r:.40} is no release of Kafka, which has three numbers: {known}")
    numbers = tuple(map(int, version.split(".")))
    if numbers < OLDEST:
        raise BadInput(f"Kafka {version} is too old to be asked: {known}")
    return numbers


def asks_as_3_9_0(version: str) -> bool:
    """Whether a release's foreign-key join asks for answers as before KAFKA-16407's change in 3.9.1 and 4.0.1."""
    return release(version) < (3, 9, 1) or version == "4.0.0"


def use_version(version: str | None) -> None:
    """Let this process ask a release wherever none is named; None for that of the environment, or the default.

    Raises:
        BadInput: It is no release, or too old.
    """
    global _named
    if version is not None:
        release(version)
    _named = version


def version_in_use() -> str:
    """Return the release that is asked where none is named.

    Raises:
        BadInput: The environment names something that is no release.
    """
    if _named is not None:
        return _named
    version = os.environ.get(VERSION_VARIABLE) or DEFAULT
    release(version)
    return version


def name_in_use() -> str:
    """Return what reports call the Kafka Streams that is asked: with its release, where that isn't the default."""
    version = version_in_use()
    return "Kafka Streams" if version == DEFAULT else f"Kafka Streams {version}"


def ignores_stream_joins(version: str) -> bool:
    """Whether a release's joins of streams take no notice of the settings of the stores."""
    return release(version) < (3, 7)


def driver_settings(version: str, stores: Stores) -> dict[str, str]:
    """Return the settings of Kafka Streams in a test driver: no cache, and stores of a kind.

    In 3.6 and 3.7 they have no say in the stores of a foreign-key join, which are RocksDB's, nor in 3.6 in those of a
    join of streams, see `ignores_stream_joins`.
    """
    if release(version) < (3, 7):
        return {**_SETTINGS, "default.dsl.store": "in_memory" if stores == "in memory" else "rocksDB"}
    kind = "InMemory" if stores == "in memory" else "RocksDB"
    suppliers = f"{_STREAMS}.state.BuiltInDslStoreSuppliers${kind}DslStoreSuppliers"
    return {**_SETTINGS, "dsl.store.suppliers.class": suppliers}
