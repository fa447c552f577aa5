"""How an operator with channels is played message by message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from ...reference.core.clocks import Clock


@dataclass(frozen=True)
class MessageProtocol:
    """The messages of an operator with channels.

    Attributes:
        model: Of a definition and a clock: the model that passes messages, with `arrive`, `deliver` and `waiting`.
        answers_all: Of a definition: whether every change is answered, so that the last result is the meaning whatever
            the schedule of delivery.
        staged: Returns what plays histories with a schedule on Spark: of histories and, for each, a logic (None for the
            operator's own), what came out; with `strict=False` a delivery from an empty channel does nothing.
    """

    model: Callable[[Any, Clock], Any]
    answers_all: Callable[[Any], bool]
    staged: Callable[[], Callable[..., Any]]
