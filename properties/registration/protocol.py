"""The declarations by which an operator with channels is played message by message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...reference.core.clocks import Clock

if TYPE_CHECKING:
    from .mutants import MakeLogic


@dataclass(frozen=True)
class MessageProtocol:
    """The messages of an operator with channels.

    Attributes:
        model: Takes a definition and a clock; returns the model that passes messages, with `arrive`, `deliver` and
            `waiting`.
        answers_all: Takes options, as in a history file; returns whether every change is answered, so that the last
            result is the meaning whatever the schedule of delivery. It doesn't take a definition: a definition that
            misreads its options would excuse itself.
        staged: Returns a function that plays histories with a schedule on Spark: it takes histories and a logic for
            each (None for the operator's own), and returns their outcomes; with `strict=False` a delivery from an
            empty channel does nothing.
        specified: Returns the logic on Spark for each value of the constant `Mutant` of the operator's specification;
            a mutant that Spark can't have is left out, and `none` is the operator's own logic.
    """

    model: Callable[[Any, Clock], Any]
    answers_all: Callable[[Mapping[str, Any]], bool]
    staged: Callable[[], Callable[..., Any]]
    specified: Callable[[], Mapping[str, MakeLogic]] = dict
