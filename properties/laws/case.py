"""What a law is asked again about."""

from __future__ import annotations

from dataclasses import dataclass

from ...reference.core.history import History
from ..witnesses.run_options import RunOptions


@dataclass(frozen=True)
class Case:
    """What a law is asked again about.

    Attributes:
        history: The history.
        original: The history that it was made from, where it is a variant.
        way: How it is run again, by a law that runs histories again; None: in the ways that such a law has by itself.
    """

    history: History
    original: History | None = None
    way: RunOptions | None = None
