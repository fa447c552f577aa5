"""What a law is asked again about."""

from __future__ import annotations

from dataclasses import dataclass

from ...reference.core.history import History


@dataclass(frozen=True)
class Case:
    """What a law is asked again about: a history and, where it is a variant, the history that it was made from."""

    history: History
    original: History | None = None
