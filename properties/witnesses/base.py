"""What every witness is: it says what comes out of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from .outcomes import Grain, Outcome


@dataclass(frozen=True)
class RunOptions:
    """How a query is run, apart from what is run; witnesses without a query take no notice.

    Attributes:
        stop_after: Stop after each of these batches (from 0), and restart from the checkpoint.
        crash_in: Die between output and commit of each of these batches (from 0), and restart; one that comes twice
            dies again when it is replayed.
        read_state: Read the state at the end.
        state_groups: Over how many groups the state's keys are spread; None decides by the number of histories.
        partitions: How many shuffle partitions the query has; None for the session's number.
    """

    stop_after: tuple[int, ...] = ()
    crash_in: tuple[int, ...] = ()
    read_state: bool = False
    state_groups: int | None = None
    partitions: int | None = None

    @property
    def is_rerun(self) -> bool:
        """Whether it differs from how histories are run first, which reads the state at most."""
        return replace(self, read_state=False) != PLAIN

    def clipped(self, batches: int) -> RunOptions:
        """Return the same for a history of so many batches: a stop has one after it, where there are two or more."""
        return replace(
            self,
            stop_after=tuple(max(0, min(batch, batches - 2)) for batch in self.stop_after),
            crash_in=tuple(max(0, min(batch, batches - 1)) for batch in self.crash_in),
        )

    def to_json(self) -> dict[str, Any]:
        """Return what isn't as usual, as JSON has it."""
        found = {one.name: getattr(self, one.name) for one in fields(self) if getattr(self, one.name) != one.default}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


PLAIN = RunOptions()
ALONE = RunOptions(partitions=1)
"""How a history is run alone: its few keys need no second partition, which would cost a third more."""


def run_options(content: Any) -> RunOptions:
    """Return the options that `RunOptions.to_json` has written.

    Raises:
        BadInput: They are none; the message names the remedy.
    """
    known = [one.name for one in fields(RunOptions)]
    if not isinstance(content, dict) or (unknown := [name for name in content if name not in known]):
        said = repr(content) if not isinstance(content, dict) else f"an option {unknown[0]!r}"
        raise BadInput(f"{said:.60} is no way to run a query: use an object with some of {', '.join(known)}")
    found: dict[str, Any] = {}
    for name, value in content.items():
        if name in ("stop_after", "crash_in"):
            right = isinstance(value, list) and all(type(one) is int and one >= 0 for one in value)
            wanted = "a list of batches, numbers from 0 on"
        elif name == "read_state":
            right, wanted = type(value) is bool, "true or false"
        else:
            right, wanted = value is None or (type(value) is int and value > 0), "a number from 1 on, or null"
        if not right:
            raise BadInput(f"{name} is {value!r:.40}, and must be {wanted}")
        found[name] = tuple(value) if isinstance(value, list) else value
    return RunOptions(**found)


class Witness(Protocol):
    """Says what comes out of histories."""

    @property
    def name(self) -> str:
        """What commands and reports call it."""
        ...

    @property
    def grain(self) -> Grain:
        """How finely it says when something came out."""
        ...

    def refuses(self, history: History) -> str | None:
        """Say why the witness can't answer a history, or None where it can."""
        ...

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Return what comes out of each history, in their order.

        Raises:
            BadInput: A history is refused, or a value doesn't fit.
            MissingTool: The machine lacks what the witness needs.
            StreamproofError: A query failed.
        """
        ...
