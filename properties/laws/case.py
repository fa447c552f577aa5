"""The case on which a law is asked again."""

from __future__ import annotations

from dataclasses import dataclass

from ...reference.core.history import History
from ..witnesses.run_options import RunOptions


@dataclass(frozen=True)
class Case:
    """The case on which a law is asked again.

    Attributes:
        history: The history.
        original: The history that it was made from, if it is a variant.
        way: How a law that runs histories again runs it; None: in all ways of that law.
    """

    history: History
    original: History | None = None
    way: RunOptions | None = None
