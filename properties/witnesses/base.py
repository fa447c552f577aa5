"""The interface of witnesses: they run histories and return their outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...reference.core.history import History
from ..outcomes.outcomes import Grain, Outcome
from .run_options import PLAIN, RunOptions


class Witness(Protocol):
    """Runs histories, and returns their outcomes."""

    @property
    def name(self) -> str:
        """The witness's name in commands and reports."""
        ...

    @property
    def grain(self) -> Grain:
        """The precision of the times in the witness's outcomes: by arrival, by batch, or at the end."""
        ...

    def refuses(self, history: History) -> str | None:
        """Return the reason why the witness can't run a history, or None if it can."""
        ...

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Run histories, and return their outcomes in the same order.

        Raises:
            BadInput: The witness refuses a history, or can't represent a value.
            MissingTool: The machine lacks a tool that the witness needs.
            StreamproofError: A query failed.
        """
        ...
