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
        model: Returns the model that passes messages, with `arrive`, `deliver` and `waiting`, given a definition and a
            clock.
        answers_all: Returns whether every change gets a response with these options (as in a history file), so that the
            last result is right in any order of delivery. The function takes options, not a definition, because a
            definition that misreads its options would hide the mistake.
        staged: Returns a function that plays histories on Spark, and delivers messages where the histories say so. That
            function takes histories and a logic for each (None for the operator's own), and returns their outcomes;
            with `strict=False` it ignores a delivery from an empty channel.
        specified: Returns the logic on Spark for each value of the constant `Mutant` of the operator's specification.
            Mutants that Spark can't represent are missing, and `none` is the operator's own logic.
    """

    model: Callable[[Any, Clock], Any]
    answers_all: Callable[[Mapping[str, Any]], bool]
    staged: Callable[[], Callable[..., Any]]
    specified: Callable[[], Mapping[str, MakeLogic]] = dict
