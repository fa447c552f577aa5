"""The queries that a script starts: output, mode and sink of each, and a stand-in for a started query."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming import StreamingQuery

from ....system.visible import visible

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass
class Write:
    """A query that the script starts.

    Attributes:
        frame: The written DataFrame.
        mode: The output mode (None: the script sets no mode, so Spark appends).
        name: The query's name; empty without a name.
        format: The sink's format; empty if the script sets none.
        function: The function of `foreachBatch`, if any.
        of_rows: The argument of `foreach`, if any.
        target: The sink's path or table.
        line: The line of the script that starts the query.
        where: The file of the line, as in messages.
        is_elsewhere: Whether the line is in another file of the script.
        trigger: The trigger's arguments; empty if the script sets no trigger.
    """

    frame: DataFrame
    mode: str | None = None
    name: str = ""
    format: str = ""
    function: Callable[..., Any] | None = None
    of_rows: Any = None
    target: str | None = None
    line: int = 0
    where: str = ""
    is_elsewhere: bool = False
    trigger: str = ""

    @property
    def sink(self) -> str:
        """The sink's name in messages."""
        if self.function is not None:
            return "foreachBatch"
        return "foreach" if self.of_rows is not None else self.format or self.target or "a sink without a format"

    def __str__(self) -> str:
        name = f"{self.name!r} " if self.name else ""
        at = f"line {self.line} of {self.where}" if self.is_elsewhere else f"line {self.line}"
        return visible(f"{name}({at}, {self.sink})")


def started_of(writes: Sequence[Write]) -> list[Write]:
    """Return the queries that a script starts, in order; displayed queries only if all queries are displayed."""
    displayed = [write for write in writes if write.format == "display"]
    return [write for write in writes if write.format not in ("display", "shown")] or displayed


@dataclass
class Idle:
    """The Java side of a writer whose DataFrame doesn't stream: each method returns the same writer."""

    called: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Idle]:
        def method(*arguments: Any) -> Idle:
            self.called.append(name)
            return self

        return method


def _does_nothing(*arguments: Any, **named: Any) -> None:
    pass


class EndedQuery(StreamingQuery):
    """Stands in for an ended query in the script, because the check runs the query itself.

    Args:
        name: The query's name.
    """

    id: Any = ""
    runId: Any = ""
    name: Any = ""
    isActive: Any = False
    status: Any = MappingProxyType({"message": "Stopped", "isDataAvailable": False, "isTriggerActive": False})
    recentProgress: Any = ()
    lastProgress: Any = None
    processAllAvailable = stop = explain = exception = _does_nothing

    def __init__(self, name: str = "") -> None:
        self.id, self.runId, self.name = str(uuid.uuid4()), str(uuid.uuid4()), name or None

    def awaitTermination(self, timeout: int | None = None) -> bool | None:
        """Return at once, as for an ended query."""
        return None if timeout is None else True
