"""The options to draw for an operator: the values of each option, and the legal combinations."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, ClassVar


class LeftOut(Enum):
    """Marks a missing option."""

    ABSENT = "left out"


ABSENT = LeftOut.ABSENT
"""The value of a missing option, if its default depends on other options."""


def _anything(options: Mapping[str, Any]) -> bool:
    return True


@dataclass(frozen=True, eq=False)
class OptionSpace:
    """The options to draw for an operator.

    A set of options is legal if the definition accepts it (`registration.declare` raises no `BadInput`) and `legal`
    does too.

    Attributes:
        values: The possible values, by the name of the option, as in a history file (durations in ms). If a drawn
            option has its default value, it is sometimes, and at least once, left out of the options. If the default
            depends on other options, add `OptionSpace.ABSENT` to the values: then the option's absence counts as a
            separate value.
        independent: The options whose values are compatible with all values of all other options; the search for legal
            combinations leaves these options out.
        legal: Returns whether options that the definition accepts may be drawn; by default all may.
    """

    ABSENT: ClassVar[LeftOut] = ABSENT

    values: Mapping[str, Sequence[Any]]
    independent: tuple[str, ...] = ()
    legal: Callable[[Mapping[str, Any]], bool] = _anything
