"""The queries that a script starts: what each writes, in which mode, and a query that stands for it."""

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
        frame: What it writes.
        mode: Its output mode; None: the script doesn't say it, and Spark appends.
        name: Its name; empty where it has none.
        format: The format of its sink; empty where the script doesn't say it.
        function: The function that is given to `foreachBatch`, if one is.
        of_rows: What is given to `foreach`, if anything is.
        target: The path or table that it writes to.
        line: The script's line that starts it.
        where: The file of the line, as messages call it.
        is_elsewhere: Whether that is another file of the script's.
        trigger: Its trigger, as its arguments; empty where the script doesn't say it.
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
        """What messages call its sink."""
        if self.function is not None:
            return "foreachBatch"
        return "foreach" if self.of_rows is not None else self.format or self.target or "a sink without a format"

    def __str__(self) -> str:
        name = f"{self.name!r} " if self.name else ""
        at = f"line {self.line} of {self.where}" if self.is_elsewhere else f"line {self.line}"
        return visible(f"{name}({at}, {self.sink})")


def started_of(writes: Sequence[Write]) -> list[Write]:
    """Return the queries that a script starts, in order; those that a notebook displays only if there are no others."""
    displayed = [write for write in writes if write.format == "display"]
    return [write for write in writes if write.format not in ("display", "shown")] or displayed


@dataclass
class Idle:
    """The Java side of a writer whose DataFrame doesn't stream: each method leaves it as it is."""

    called: list[str] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Idle]:
        def method(*arguments: Any) -> Idle:
            self.called.append(name)
            return self

        return method


def _does_nothing(*arguments: Any, **named: Any) -> None:
    pass


class EndedQuery(StreamingQuery):
    """A query that has ended: what a script is given where the check runs the query itself.

    Args:
        name: Its name.
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
        """Return at once, as of a query that has ended."""
        return None if timeout is None else True
