"""Run TLC: exhaustive checks, random simulations, and state graphs."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

from .errors import ConfigurationFailed, ParseFailed, TimedOut, TlcCrashed, unreadable
from .graph import StateGraph, read_dot
from .inputs.configuration import Configuration, check_names, prepare
from .inputs.models import Model
from .inputs.modules import read_modules
from .results import Progress, Result, Simulation, Step, Trace
from .tlc.conclude import RunFacts, conclude, no_initial_state
from .tlc.output import TlcOutput, listen
from .tlc.process import TimeUp, private_folder, started, usable_folder
from .tlc.tools import Tools, check_jar, find_java
from .tlc_error import ValueSyntaxError
from .values import TlaValue, parse_state

OnProgress = Callable[[Progress], None]


def check(
    model: Model,
    tools: Tools,
    *,
    workers: int | Literal["auto"] = 1,
    timeout: float | None = None,
    memory_mb: int | None = None,
    max_distinct: int | None = None,
    coverage: bool = False,
    progress: OnProgress | None = None,
) -> Result:
    """Explore every state of `model` and return whether its properties hold.

    A violated invariant or property is a result. With one worker the trace of an invariant is as short as possible, and
    counts are the same in every run.

    Args:
        model: The model.
        tools: The paths of Java and of tla2tools.jar.
        workers: The number of threads that explore; "auto" uses one per processor.
        timeout: The timeout (s), or None for no timeout.
        memory_mb: The largest heap of Java, in MiB, or None for Java's default, a quarter of the machine's memory.
        max_distinct: The largest number of distinct states, or None for no limit.
        coverage: Whether to count how often each action is taken; this slows TLC down.
        progress: A function that receives each progress report of TLC. The run stops if the function raises.

    Raises:
        TlcError: The run failed; the subclass of `TlcError` tells the cause. The subclass `DeadlockReached` contains a
            result.
    """
    # TLC 2.15 has no option `-workers auto`.
    arguments = [
        "-workers",
        str(_processors() if workers == "auto" else workers),
        *(["-coverage", "1"] if coverage else []),
        # Without this option TLC checks liveness at times that depend on the machine's speed, which changes the counts.
        *("-lncheck", "final"),
        # Without a seed TLC draws a new seed, and may report any of several counterexamples to a temporal property.
        *("-fp", "0"),
    ]
    with _executed(model, tools, arguments, timeout, memory_mb, max_distinct, progress) as (case, output, _):
        return conclude(case, output)


def simulate(
    model: Model,
    tools: Tools,
    *,
    behaviours: int,
    depth: int = 100,
    seed: int = 0,
    timeout: float | None = None,
    progress: OnProgress | None = None,
) -> Simulation:
    """Walk `behaviours` random behaviours of at most `depth` states each; the same seed gives the same behaviours.

    TLC 2.15 doesn't name the actions of these behaviours, so their steps' actions are None; the steps of a violating
    trace have names.

    Args:
        model: The model; its invariants and properties are checked along the way.
        tools: The paths of Java and of tla2tools.jar.
        behaviours: The number of behaviours.
        depth: The largest number of states in a behaviour.
        seed: The seed of the random choices.
        timeout: The timeout (s), or None for no timeout.
        progress: A function that receives each progress report of TLC. The run stops if the function raises.

    Raises:
        TlcError: As for `check`.
    """
    if behaviours < 1 or depth < 1:
        raise ConfigurationFailed(f"behaviours={behaviours} and depth={depth} must both be at least 1.")
    # The file's name is relative, because TLC treats a comma in a path as its end.
    arguments = ["-simulate", f"file=walk,num={behaviours}", "-depth", str(depth), "-seed", str(seed)]
    with _executed(model, tools, arguments, timeout, None, None, progress) as (case, output, folder):
        result = conclude(case, output, exhaustive=False)
        known: dict[str, tuple[str, TlaValue]] = {}
        walked = tuple(_read_walk(path, known) for path in sorted(folder.glob("walk_*"), key=_walk_number))
        if result.passed and not walked:
            raise no_initial_state(case)
        deepest = max((len(trace) for trace in walked), default=len(result.trace or ()))
        return Simulation(replace(result, distinct=0, left_on_queue=0, depth=deepest), walked)


def state_graph(
    model: Model,
    tools: Tools,
    *,
    timeout: float | None = None,
    max_distinct: int | None = None,
    progress: OnProgress | None = None,
) -> StateGraph:
    """Return all states of `model` and the steps between them.

    No invariant, property or deadlock is checked, so the graph is complete. The configuration's symmetry and view are
    ignored, because with them a step of the graph may not be a step of the model.

    Args:
        model: The model.
        tools: The paths of Java and of tla2tools.jar.
        timeout: The timeout (s), or None for no timeout.
        max_distinct: The largest number of distinct states, or None for no limit.
        progress: A function that receives each progress report of TLC. The run stops if the function raises.

    Raises:
        TlcError: As for `check`.
    """
    unchecked = replace(model, invariants=(), properties=(), deadlock=False)
    arguments = ["-workers", "1", "-dump", "dot,actionlabels", "graph.dot"]
    drop = ("invariants", "properties", "symmetry", "view")
    with _executed(unchecked, tools, arguments, timeout, None, max_distinct, progress, drop) as (case, output, folder):
        result = conclude(case, output)
        try:
            with open(folder / "graph.dot", encoding="utf-8", errors="replace") as lines:
                graph = read_dot(lines)
        except FileNotFoundError:
            raise TlcCrashed("TLC dumped no state graph: try another tla2tools.jar.", file=model.module) from None
    if len(graph.states) < result.distinct:
        raise TlcCrashed(
            f"TLC found {result.distinct} states and dumped {len(graph.states)}: try another tla2tools.jar.",
            file=model.module,
        )
    return graph


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextlib.contextmanager
def _executed(
    model: Model,
    tools: Tools,
    arguments: Sequence[str],
    timeout: float | None,
    memory_mb: int | None,
    max_distinct: int | None,
    progress: OnProgress | None,
    drop: Sequence[str] = (),
) -> Iterator[tuple[RunFacts, TlcOutput, Path]]:
    """Run TLC to its end, and yield its output while its folder of files exists."""
    began = time.monotonic()
    find_java(tools)
    check_jar(tools)
    if not model.module.is_file():
        raise ParseFailed("there is no such module.", file=model.module)
    configuration = Configuration(model.configuration)
    modules = read_modules(model.module, tools.jar)
    check_names(model, configuration, modules)
    run = prepare(model, configuration, max_distinct=max_distinct, drop=drop)
    case = RunFacts(model, configuration, modules, max_distinct)
    with private_folder() as folder:
        with usable_folder():
            for name, text in run.files.items():
                (folder / name).write_text(text, encoding="utf-8")
            for path in model.module.parent.glob("*.tla"):
                if path.name not in run.files:
                    _link(path, folder / path.name)
        options = [] if memory_mb is None else [f"-Xmx{memory_mb}m"]
        full = ["-tool", "-metadir", "states", "-checkpoint", "0", "-config", run.configuration]
        full += [*([] if model.deadlock else ["-deadlock"]), *arguments, f"{run.root}.tla"]
        with started(tools, folder, options, full) as java:
            output = TlcOutput(began)
            try:
                listen(output, java.lines(None if timeout is None else began + timeout), progress)
            except TimeUp:
                raise _time_is_up(model, timeout, output) from None
            output.ended(java.exit_code(), java.standard_error())
        yield case, output, folder


def _time_is_up(model: Model, timeout: float | None, output: TlcOutput) -> TimedOut:
    reported = output.progress
    found = f"{reported.distinct} distinct states were found" if reported.distinct else f"TLC was at: {reported.phase}"
    error = TimedOut(
        f"stopped after {timeout:g} seconds, when {found}: allow more time, or make the model's constants smaller.",
        file=model.configuration,
    )
    error.progress = reported
    return error


def _link(path: Path, link: Path) -> None:
    try:
        link.symlink_to(path.resolve())
    except OSError:
        shutil.copyfile(path, link)


_CLOSING = re.compile(r"^={4,}\s*\Z", re.MULTILINE)
_WALK_STATE = re.compile(r"^STATE_(\d+) ==[ \t]*$", re.MULTILINE)


def _walk_number(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.name)]


def _read_walk(path: Path, known: dict[str, tuple[str, TlaValue]]) -> Trace:
    """Read one behaviour in the format of `-simulate file=`."""
    text = path.read_text(encoding="utf-8", errors="replace")
    if not _CLOSING.search(text):
        raise TlcCrashed(f"TLC's behaviour in {path.name} is truncated: is the disk full? Simulate again.")
    # `split` returns the states' numbers and texts in turn.
    parts = _WALK_STATE.split(_CLOSING.sub("", text))[1:]
    try:
        states = [parse_state(_plain(part), known) for part in parts[1::2]]
    except ValueSyntaxError as error:
        raise unreadable(f"a state of the behaviour {path.name}", error) from None
    return Trace(
        tuple(Step(number, "Initial" if number == 1 else None, state) for number, state in enumerate(states, 1))
    )


def _plain(part: str) -> str:
    """Return a state without the comments that newer TLC versions write between states."""
    return "\n".join(line for line in part.strip().split("\n") if not line.startswith("\\*")).strip()
