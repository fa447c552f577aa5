"""What every witness is: it says what comes out of a history."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...reference.core.history import History
from ..outcomes.outcomes import Grain, Outcome
from .run_options import PLAIN, RunOptions


class Witness(Protocol):
    """Says what comes out of histories."""

    @property
    def name(self) -> str:
        """Its name in commands and reports."""
        ...

    @property
    def grain(self) -> Grain:
        """How finely it says when something came out."""
        ...

    def refuses(self, history: History) -> str | None:
        """Say why the witness can't answer a history, or None where it can."""
        ...

    def evaluate(self, histories: Sequence[History], run: RunOptions = PLAIN) -> list[Outcome]:
        """Run histories, and return their outcomes, in their order.

        Raises:
            BadInput: A history is refused, or a value doesn't fit.
            MissingTool: The machine lacks what the witness needs.
            StreamproofError: A query failed.
        """
        ...
