"""The supported releases of Kafka Streams, and their settings; no other module depends on the release.

The releases from 3.6 to 4.3 share `TopologyConfig`, `EmitStrategy`, `statestore.cache.max.bytes` and `JoinWindows.of`.
"""

from __future__ import annotations

import os
import re
from typing import Literal, TypeAlias

from ....reference.core.errors import BadInput

DEFAULT = "4.3.1"
"""The default release of Kafka Streams; the named divergences are this release's."""

OLDEST = (3, 6)

RELEASES = (
    *("3.6.2", "3.7.2", "3.8.1", "3.9.0", "3.9.1", "3.9.2"),
    *("4.0.0", "4.0.1", "4.0.2", "4.1.2", "4.2.2", "4.3.1"),
)
"""The tested releases: the newest of each minor release, and earlier patches that differ."""

VERSION_VARIABLE = "STREAMPROOF_KAFKA_VERSION"
"""The environment variable that names the release, without an option."""

Stores: TypeAlias = Literal["in memory", "RocksDB"]
"""The kind of stores that contain the state, of which RocksDB is Kafka's default."""

STORES: tuple[Stores, ...] = ("in memory", "RocksDB")

_STREAMS = "org.apache.kafka.streams"
_STRING_SERDE = "org.apache.kafka.common.serialization.Serdes$StringSerde"
_SETTINGS = {
    "application.id": "streamproof",
    "bootstrap.servers": "localhost:1",  # required, although no client connects
    "default.key.serde": _STRING_SERDE,
    "default.value.serde": _STRING_SERDE,
    "statestore.cache.max.bytes": "0",
    "metric.reporters": "",
    # By default, Kafka emits unmatched and closed rows at most once per second of the wall clock, which stands still in
    # a test driver.
    "__emit.interval.ms.kstreams.outer.join.spurious.results.fix__": "0",
    "__emit.interval.ms.kstreams.windowed.aggregation__": "0",
}

_named: str | None = None


def release(version: str) -> tuple[int, ...]:
    """Return a release's numbers, which order the releases.

    Raises:
        BadInput: The version isn't a release, or is older than the oldest supported release; the message lists the
            known releases.
    """
    known = f"use one of {', '.join(RELEASES)}, or another release from {OLDEST[0]}.{OLDEST[1]} on"
    if re.fullmatch(r"(0|[1-9]\d{0,3})(\.(0|[1-9]\d{0,3})){2}", version, re.ASCII) is None:
        raise BadInput(f"{version!r:.40} isn't a release of Kafka, which has three numbers: {known}")
    numbers = tuple(map(int, version.split(".")))
    if numbers < OLDEST:
        raise BadInput(f"Kafka {version} is too old: {known}")
    return numbers


def asks_as_3_9_0(version: str) -> bool:
    """Return whether a release's foreign-key join lacks KAFKA-16407's change (in 3.9.1 and 4.0.1)."""
    return release(version) < (3, 9, 1) or version == "4.0.0"


def use_version(version: str | None) -> None:
    """Set the default release of this process (None for the environment's release, or `DEFAULT`).

    Raises:
        BadInput: The version isn't a release, or is too old.
    """
    global _named
    if version is not None:
        release(version)
    _named = version


def version_in_use() -> str:
    """Return the default release of this process.

    Raises:
        BadInput: The environment variable doesn't contain a release.
    """
    if _named is not None:
        return _named
    version = os.environ.get(VERSION_VARIABLE) or DEFAULT
    release(version)
    return version


def name_in_use() -> str:
    """Return Kafka Streams' name in reports, with its release unless the release is the default."""
    version = version_in_use()
    return "Kafka Streams" if version == DEFAULT else f"Kafka Streams {version}"


def ignores_stream_joins(version: str) -> bool:
    """Return whether the stream-stream joins of a release ignore the setting for the kind of stores."""
    return release(version) < (3, 7)


def driver_settings(version: str, stores: Stores) -> dict[str, str]:
    """Return the settings of Kafka Streams in a test driver: no cache, and a kind of stores.

    In 3.6 and 3.7 a foreign-key join always uses RocksDB; in 3.6, a stream-stream join also always uses RocksDB (see
    `ignores_stream_joins`).
    """
    if release(version) < (3, 7):
        return {**_SETTINGS, "default.dsl.store": "in_memory" if stores == "in memory" else "rocksDB"}
    kind = "InMemory" if stores == "in memory" else "RocksDB"
    suppliers = f"{_STREAMS}.state.BuiltInDslStoreSuppliers${kind}DslStoreSuppliers"
    return {**_SETTINGS, "dsl.store.suppliers.class": suppliers}
