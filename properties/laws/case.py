"""The input of a recheck, which judges a law again: a history, with its original or the options of its second run."""

from __future__ import annotations

from dataclasses import dataclass

from ...reference.core.history import History
from ..witnesses.run_options import RunOptions


@dataclass(frozen=True)
class Case:
    """A history on which a law is judged again.

    Attributes:
        history: The history.
        original: The history from which the law created this variant; None if it isn't a variant.
        way: The options of the history's second run; None: all options that the law uses.
    """

    history: History
    original: History | None = None
    way: RunOptions | None = None
