"""Samza's window operator with full storage, whose messages tests of several files read."""

from __future__ import annotations

from typing import Any

from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.definitions.windows import WindowAggregate
from streamproof.reference.window_aggregate import Behaviour

WINDOWS = "window_aggregate"


def machine_of(*, size: int = 10, storage: Any = "full", **options: Any) -> Behaviour:
    return Behaviour(WindowAggregate(size, storage=storage, **options), StreamTime())


def records(machine: Behaviour, earliest: int, latest: int, **fields: Any) -> list[Any]:
    return [(one.key, one.value, one.timestamp) for one in machine.messages(earliest, latest, **fields)]
