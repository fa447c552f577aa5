"""The case for a law's recheck."""

from __future__ import annotations

from dataclasses import dataclass

from ...reference.core.history import History
from ..witnesses.run_options import RunOptions


@dataclass(frozen=True)
class Case:
    """The case for a law's recheck.

    Attributes:
        history: The history.
        original: The history from which a variant was created, if it is a variant.
        way: The options of the law's second run; None: all options of that law.
    """

    history: History
    original: History | None = None
    way: RunOptions | None = None
