"""Check models with TLC, and compare TLC's results with the catalogue's expectations."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..reference.core.errors import MissingTool, StreamproofError
from . import pytla
from .catalogue import CatalogueModel, ExpectedEnd
from .java import find_java
from .pytla import (
    DeadlockReached,
    MissingJar,
    Progress,
    Result,
    TlaValue,
    TlcError,
    Tools,
    Trace,
    ValueSyntaxError,
    parse_value,
)
from .pytla.inputs.configuration import Configuration

FOUND: Mapping[str, ExpectedEnd] = {
    "passed": "success",
    "invariant": "safety failure",
    "action property": "safety failure",
    "temporal property": "liveness failure",
    "deadlock": "deadlock failure",
}


@dataclass(frozen=True)
class ModelResult:
    """TLC's result for a model.

    Attributes:
        result: The result of TLC, by its name in the manifest.
        violated: The violated property, or None if no property is violated, or TLC doesn't name the violated property.
        trace: The counterexample, or None if there is none.
        distinct: The number of distinct states.
        generated: The number of generated states, equal states included.
        depth: The depth of the state graph, as far as TLC searched it.
        seconds: TLC's run time.
    """

    result: ExpectedEnd
    violated: str | None
    trace: Trace | None
    distinct: int
    generated: int
    depth: int
    seconds: float

    @property
    def passed(self) -> bool:
        """Return whether no property is violated, and every state has a next state."""
        return self.result == "success"

    @property
    def verdict(self) -> str:
        """The result as text, such as `passes`, `violates QuietIsJoined` or `ends in a deadlock`."""
        if self.passed:
            return "passes"
        return "ends in a deadlock" if self.result == "deadlock failure" else f"violates {self.violation}"

    @property
    def violation(self) -> str:
        """The violated property, or a sentence on another violation; empty if nothing is violated."""
        if self.passed:
            return ""
        if self.result == "deadlock failure":
            return "deadlock: the last state has no next one"
        return self.violated or "a temporal property"


@contextlib.contextmanager
def tlc_errors() -> Iterator[None]:
    """Convert TLC's errors to streamproof's messages: no traceback, exit code 3.

    Raises:
        MissingTool: The file tla2tools.jar is missing.
        StreamproofError: Any other failure of TLC; the message contains file and line.
    """
    try:
        yield
    except MissingJar as error:
        raise MissingTool(str(error)) from None
    except TlcError as error:
        raise StreamproofError(str(error)) from None


QUICK = ("-XX:TieredStopAtLevel=1",)
"""Java's option to compile quickly, for runs of seconds, not of minutes."""


def find_tools(options: tuple[str, ...] = QUICK) -> Tools:
    """Find Java and TLC. `options` are options of Java; the default suits short runs.

    Raises:
        MissingTool: Java or TLC isn't installed; the message contains the remedy.
    """
    with tlc_errors():
        return Tools(find_java().executable, pytla.find_jar(), options)


def model_of(model: CatalogueModel, constants: Mapping[str, TlaValue]) -> pytla.Model:
    """Return a model of the catalogue as a pytla model, with some constants overridden."""
    return pytla.Model(model.module, model.configuration, constants=constants)


def check(
    model: pytla.Model,
    tools: Tools,
    workers: int = 1,
    timeout: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> ModelResult:
    """Check a model with TLC; a deadlock is a result, not an exception.

    Args:
        model: The model.
        tools: The paths of Java and of tla2tools.jar.
        workers: The number of threads that explore.
        timeout: The timeout (s), or None for no timeout.
        progress: A function that receives each progress report of TLC.

    Raises:
        TlcError: TLC failed: it ran out of time or memory, or the model is invalid.
    """
    try:
        return as_found(pytla.check(model, tools, workers=workers, timeout=timeout, progress=progress))
    except DeadlockReached as deadlock:
        return as_found(deadlock.result)


def broken_expectations(model: CatalogueModel, found: ModelResult, exact: bool) -> list[str]:
    """Return the differences between a result and the expected result, one sentence each.

    Args:
        model: The model, with its expected result.
        found: The result.
        exact: Whether to compare also the counts and the counterexample's length, which only runs with one worker
            repeat exactly.
    """
    if found.result != model.result:
        return [f"the result is {found.result}, but the manifest says {model.result}"]
    compared: list[tuple[str, object, object]] = []
    # If a model has several temporal properties, TLC doesn't name the violated property.
    if found.violated is not None or found.result == "safety failure":
        compared.append(("the violated property", found.violated, model.violated))
    if exact:
        compared += [
            ("the counterexample's length", None if found.trace is None else len(found.trace), model.trace_length),
            ("the number of distinct states", found.distinct, model.distinct),
            ("the number of generated states", found.generated, model.generated),
            ("the depth", found.depth, model.depth),
        ]
    return [
        f"{what} is {_shown(is_)}, but the manifest says {_shown(expected)}"
        for what, is_, expected in compared
        if is_ != expected
    ]


def constants_of(model: pytla.Model) -> dict[str, TlaValue]:
    """Return the constants of a model: the configuration's values, and the overridden constants.

    Raises:
        TlcError: The configuration is unreadable.
    """
    configuration = Configuration(model.configuration)
    constants: dict[str, TlaValue] = {}
    for entry in configuration.entries:
        name, is_value, text = configuration.text[entry.start : entry.end].partition("=")
        if entry.section == "constants" and is_value:
            with contextlib.suppress(ValueSyntaxError):  # skip an invalid value, which TLC will report
                constants[name.strip()] = parse_value(text)
    return {**constants, **model.constants}


def own_model(
    module: Path, configuration: Path | None, constants: Mapping[str, TlaValue], deadlock: bool
) -> pytla.Model:
    """Return a user's module as a pytla model. By default the configuration is the `.cfg` file beside the module.

    Args:
        module: The `.tla` file.
        configuration: The `.cfg` file, or None for the configuration beside the module.
        constants: Values for constants, instead of the configuration's.
        deadlock: Whether a state without a successor is an error.

    Raises:
        StreamproofError: The module or the configuration is missing.
    """
    chosen = configuration or module.with_suffix(".cfg")
    for path, remedy in ((module, "name a TLA+ module"), (chosen, "name one with --config")):
        if not os.path.isfile(path):  # unlike Path.is_file, os.path.isfile doesn't fail for a name that is too long
            raise StreamproofError(f"{path}: no such file: {remedy}")
    return pytla.Model(module, chosen, constants=constants, deadlock=deadlock)


def as_found(result: Result) -> ModelResult:
    """Return TLC's result by its name in the manifest."""
    return ModelResult(
        FOUND[result.outcome],
        result.violated,
        result.trace,
        result.distinct,
        result.generated,
        result.depth,
        result.seconds,
    )


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)
