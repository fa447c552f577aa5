"""Every way in which a run of TLC can fail, each with its location and the remedy."""

from __future__ import annotations

from pathlib import Path

from .results import Progress, Result, Trace
from .tlc_error import TlcError, ValueSyntaxError


class ParseFailed(TlcError):
    """A module that is not there, or not TLA+."""


class ConfigurationFailed(TlcError):
    """A model that can't be run: a constant unknown or without a value, a property not defined, a syntax error."""


class AssumptionFailed(TlcError):
    """An ASSUME of the module that is false under the model's constants."""


class DeadlockReached(TlcError):
    """A state without a successor: `result` has the counts and, in `result.trace`, the way there."""

    def __init__(self, message: str, result: Result, *, file: Path | None = None) -> None:
        super().__init__(message, file=file)
        self.result = result


class EvaluationFailed(TlcError):
    """An expression that TLC can't evaluate: `trace` leads to the state where it tried, None if it printed no trace."""

    trace: Trace | None = None


class StateSpaceTooLarge(TlcError):
    """More states than `max_distinct` allows, or a set of more elements than TLC holds.

    `progress` is TLC's last report.
    """

    progress: Progress | None = None


class OutOfMemory(TlcError):
    """Java had too little memory."""


class EndedBySignal(TlcError):
    """Java was ended by a signal: `signal` is its name, such as `SIGTERM`."""

    signal: str = ""


class LimitReached(TlcError):
    """The system gave Java no more files, threads or room for its files."""


class FolderUnusable(TlcError):
    """A run's files can't be written to the temporary directory, or no more of them."""


class TimedOut(TlcError):
    """The time was up: `progress` is TLC's last report, None if it reported nothing."""

    progress: Progress | None = None


class TlcCrashed(TlcError):
    """TLC, or Java, ended without an answer; `output` is the end of its output."""

    output: str = ""


class MissingJar(TlcError):
    """No tla2tools.jar on this machine."""


class MissingJava(TlcError):
    """No Java at the path given."""


class CyclicGraph(TlcError):
    """A state graph with a cycle, so with infinitely many behaviours; `states` has the indices of states on a cycle."""

    states: tuple[int, ...] = ()


def unreadable(what: str, error: ValueSyntaxError) -> TlcCrashed:
    """Return the error for a text of TLC's with a value that can't be read."""
    return TlcCrashed(
        f"{what}, as TLC printed it, can't be read ({error}): keep this value out of the variables, or try another "
        "tla2tools.jar, named by TLA2TOOLS_JAR."
    )
