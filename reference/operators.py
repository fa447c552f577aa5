"""The operators by name: what each takes, what it means and how it behaves."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from . import session_windows
from .aggregates import named_aggregate
from .clocks import Clock
from .errors import BadInput
from .records import Accepted, Output, Record, Table
from .windows import SessionWindows


class Behaviour(Protocol):
    """A state machine that takes one arrival at a time and tells what changes."""

    def arrive(self, record: Record) -> list[Output]:
        """Take a record; it moves the clock itself, for a dropped record may not. `Dropped` comes last, if at all."""
        ...

    def advance(self) -> list[Output]:
        """The clock has moved without a record: at a heartbeat, a cut or the end."""
        ...


@dataclass(frozen=True)
class Operator:
    """An operator of the reference.

    Attributes:
        name: Its one name, everywhere.
        inputs: The inputs that a record may come on.
        declare: Turns options (as in a history file, durations in ms) into a definition; raises BadInput.
        check: Raises BadInput for a record that the operator can't take under these options.
        behaviour: Makes the state machine of a definition, on a clock.
        meaning: Gives the table of the accepted records of a definition, at a clock (ms).
        bag: Whether values under these options are fixed by the meaning up to order only.
    """

    name: str
    inputs: tuple[str, ...]
    declare: Callable[[Mapping[str, Any]], Any]
    check: Callable[[Mapping[str, Any], Record], None]
    behaviour: Callable[[Any, Clock], Behaviour]
    meaning: Callable[[Any, Iterable[Accepted], int], Table]
    bag: Callable[[Mapping[str, Any]], bool]


def _declare_session_windows(options: Mapping[str, Any]) -> SessionWindows:
    known = {"gap_ms", "grace_ms", "retention_ms", "aggregate", "emit", "late"}
    _refuse_unknown("session_windows", options, known)
    if "gap_ms" not in options:
        raise BadInput(
            'session_windows needs the option gap_ms: the inactivity gap in milliseconds, such as "gap_ms": 10'
        )
    if options.get("retention_ms", 0) is None:
        raise BadInput("retention_ms is null: give milliseconds, or leave it out for gap + grace")
    return SessionWindows(**{**options, "aggregate": named_aggregate(options.get("aggregate", "count"))})


def _refuse_unknown(name: str, options: Mapping[str, Any], known: set[str]) -> None:
    unknown = sorted(set(options) - known)
    if unknown:
        raise BadInput(f"{name} has no option {unknown[0]!r}: it takes {', '.join(sorted(known))}")


def _check_aggregate(options: Mapping[str, Any], record: Record) -> None:
    if record.key is not None:
        named_aggregate(options.get("aggregate", "count")).check(record.value)


OPERATORS = {
    operator.name: operator
    for operator in (
        Operator(
            name="session_windows",
            inputs=session_windows.INPUTS,
            declare=_declare_session_windows,
            check=_check_aggregate,
            behaviour=session_windows.Behaviour,
            meaning=session_windows.meaning,
            bag=lambda options: named_aggregate(options.get("aggregate", "count")).ordered,
        ),
    )
}


def operator_named(name: str) -> Operator:
    """Look an operator up by name.

    Raises:
        BadInput: There is none of that name; the message lists those there are.
    """
    if not isinstance(name, str) or name not in OPERATORS:
        raise BadInput(f"unknown operator {name!r}: use one of {', '.join(OPERATORS)}")
    return OPERATORS[name]
