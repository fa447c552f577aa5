"""The options of an operator that may be drawn: the values of each, and their legal combinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar


class LeftOut(Enum):
    """Marks an option that is left out."""

    ABSENT = "left out"


ABSENT = LeftOut.ABSENT
"""The value of an option that is left out, if its default depends on other options."""


def _anything(options: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class OptionSpace:
    """The options of an operator that may be drawn.

    A set of options is legal if the definition accepts it (`registration.declare` raises no `BadInput`) and `legal`
    does too.

    Attributes:
        values: The values that are drawn, by the name of the option, as in a history file (durations in ms). An option
            at its default is sometimes left out, at least once. Where the default depends on other options, add
            `OptionSpace.ABSENT` to the values: then the option's absence counts as a value of its own.
        independent: The options whose every value goes with all values of the others. The search for legal combinations
            leaves them out.
        legal: Takes options that the definition accepts; returns whether they may be drawn. By default all may.
    """

    ABSENT: ClassVar[LeftOut] = ABSENT

    values: Mapping[str, Sequence[Any]]
    independent: tuple[str, ...] = ()
    legal: Callable[[Mapping[str, Any]], bool] = _anything
