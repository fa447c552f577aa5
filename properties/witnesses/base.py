"""What every witness is: it says what comes out of a history."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ...reference.core.history import History
from .outcomes import Grain, Outcome


@dataclass(frozen=True)
class RunOptions:
    """How a query is run, apart from what is run; witnesses without a query take no notice.

    Attributes:
        stop_after: Stop after that batch (from 0), and restart from the checkpoint.
        crash_in: Die between output and commit of that batch (from 0), and restart.
        read_state: Read the state at the end.
        state_groups: Over how many groups the state's keys are spread; None decides by the number of histories.
        partitions: How many shuffle partitions the query has; None for the session's number.
    """

    stop_after: int | None = None
    crash_in: int | None = None
    read_state: bool = False
    state_groups: int | None = None
    partitions: int | None = None

    @property
    def is_rerun(self) -> bool:
        """Whether it differs from how histories are run first, which reads the state at most."""
        return replace(self, read_state=False) != PLAIN


PLAIN = RunOptions()


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
