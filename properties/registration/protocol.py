"""The declarations for playing an operator message by message, if its parts send messages on channels."""

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
        model: A function from a definition and a clock to the model that passes messages, with `arrive`, `deliver` and
            `waiting`.
        answers_all: A function from options, as in a history file, to whether every change gets a response, so that the
            last result is the meaning for any schedule of delivery. The function takes options rather than a
            definition, because a definition that misreads its options would hide the mistake.
        staged: Returns a function that plays histories with a schedule on Spark. That function takes histories and a
            logic for each (None for the operator's own), and returns their outcomes; with `strict=False` it ignores a
            delivery from an empty channel.
        specified: Returns the logic on Spark for each value of the constant `Mutant` of the operator's specification.
            Mutants that Spark can't represent are missing, and `none` is the operator's own logic.
    """

    model: Callable[[Any, Clock], Any]
    answers_all: Callable[[Mapping[str, Any]], bool]
    staged: Callable[[], Callable[..., Any]]
    specified: Callable[[], Mapping[str, MakeLogic]] = dict
