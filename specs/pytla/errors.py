"""The errors of failed runs of TLC, each with the location and the remedy."""

from __future__ import annotations

from pathlib import Path

from .results import Progress, Result, Trace
from .tlc_error import TlcError, ValueSyntaxError


class ParseFailed(TlcError):
    """A missing module, or a file that isn't TLA+."""


class ConfigurationFailed(TlcError):
    """An invalid model: an unknown constant, a constant without a value, an undefined property, or a syntax error."""


class AssumptionFailed(TlcError):
    """An ASSUME of the module that is false for the model's constants."""


class DeadlockReached(TlcError):
    """TLC reached a state without a successor: `result` has the counts, and `result.trace` the path to the state."""

    def __init__(self, message: str, result: Result, *, file: Path | None = None) -> None:
        super().__init__(message, file=file)
        self.result = result


class EvaluationFailed(TlcError):
    """TLC can't evaluate an expression: `trace` is the path to the state, or None if TLC printed no path."""

    trace: Trace | None = None


class StateSpaceTooLarge(TlcError):
    """More states than `max_distinct` allows, or a set with more elements than TLC supports.

    `progress` is TLC's last report.
    """

    progress: Progress | None = None


class OutOfMemory(TlcError):
    """Java ran out of memory."""


class EndedBySignal(TlcError):
    """A signal ended Java; `signal` is the name of the signal, such as `SIGTERM`."""

    signal: str = ""


class LimitReached(TlcError):
    """The system refused Java more files, threads or disk space."""


class FolderUnusable(TlcError):
    """A run's files can't be written to the temporary directory."""


class TimedOut(TlcError):
    """TLC ran into the timeout: `progress` is TLC's last report, or None if TLC reported nothing."""

    progress: Progress | None = None


class TlcCrashed(TlcError):
    """TLC or Java ended without a result; `output` is the end of the program's output."""

    output: str = ""


class MissingJar(TlcError):
    """The file tla2tools.jar is missing on this machine."""


class MissingJava(TlcError):
    """There is no Java at the given path."""


class CyclicGraph(TlcError):
    """A state graph has a cycle, so infinitely many behaviours; `states` has the indexes of states on a cycle."""

    states: tuple[int, ...] = ()


def unreadable(what: str, error: ValueSyntaxError) -> TlcCrashed:
    """Return the error for a text of TLC with an unreadable value."""
    return TlcCrashed(
        f"{what}, as TLC printed it, can't be read ({error}): keep this value out of the variables, or try another "
        "tla2tools.jar, named by TLA2TOOLS_JAR."
    )
