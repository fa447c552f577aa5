"""Which options of an operator may be drawn: the values of each, and which of them go together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar


class Absent(Enum):
    """That an option is left out."""

    ABSENT = "left out"


ABSENT = Absent.ABSENT
"""Among the values of an option: it is left out, where its default depends on other options."""


def _anything(options: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class OptionSpace:
    """The options of an operator that may be drawn.

    Options are legal that the definition accepts (`registration.declare` raises no `BadInput`), and `legal` too.

    Attributes:
        values: By the name of an option: the values that are drawn, as in a history file (durations in ms). An option
            at its default is sometimes left out, once at least. Where the default depends on other options, let
            `OptionSpace.ABSENT` be among the values: that the option is left out then counts as a value of its own.
        independent: The options of which every value goes with all values of the others, so that what is legal is
            searched for without them.
        legal: Of options that the definition accepts: whether they may be drawn; by default all are.
    """

    ABSENT: ClassVar[Absent] = ABSENT

    values: Mapping[str, Sequence[Any]]
    independent: tuple[str, ...] = ()
    legal: Callable[[Mapping[str, Any]], bool] = _anything
