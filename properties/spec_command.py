"""The commands of `streamproof spec`: what the TLA+ models say, checked by TLC and replayed on the code."""

from __future__ import annotations

import json
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from glob import escape as escape_pattern
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer
from rich.markup import escape
from rich.padding import Padding
from rich.table import Column, Table
from rich.text import Text

from ..reference.errors import BadInput, StreamproofError
from .files import whole_file
from .outputs import BEHAVIOURS, CHART, HISTORY, REPORT, require_replaceable
from .terminal import EXITS, STYLES, messages, results, steps
from .visible import visible

if TYPE_CHECKING:
    from ..specs.catalogue import CatalogueModel
    from ..specs.checking import Found
    from ..specs.pytla import Model, Progress, StateGraph, Tools, Trace, Value
    from ..specs.replay import Disagreement

specs = typer.Typer(
    help="The TLA+ models of the protocols: check them with TLC, and replay their behaviours on the code. "
    "Exits as streamproof does: 0, 1 where something is violated, 2 where that is inconclusive, 3 if it could not run.",
    no_args_is_help=True,
)

_AS_VERB = {"conforms": "conform"}
_QUIET_SECONDS = 30
"""How often a model's progress is told where there is no terminal."""

Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant", metavar="NAME=VALUE", help="Another value of a constant, as TLA+ writes it; may be repeated."
    ),
]
Timeout = Annotated[float | None, typer.Option(min=1, metavar="SECONDS", help="How long TLC may take for a model.")]
Memory = Annotated[
    int | None,
    typer.Option("--memory", min=1, metavar="MIB", help="TLC's heap; a quarter of the machine's memory by default."),
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Replace files that streamproof didn't make, and take names with other endings."),
]
ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model of `spec list`, such as ForeignKeyJoin, or a .tla file.")
]
Configuration = Annotated[
    Path | None, typer.Option("--config", help="The configuration of your own module; the .cfg beside it by default.")
]
Deadlock = Annotated[
    bool,
    typer.Option(
        "--deadlock/--no-deadlock", help="Whether a state without a next one is an error, in a module of your own."
    ),
]


class SizeChoice(StrEnum):
    """Which models a check takes."""

    SMALL = "small"
    LARGE = "large"
    ALL = "all"


class Cover(StrEnum):
    """Which behaviours are taken."""

    EDGES = "edges"
    ALL = "all"


class ReplayedOn(StrEnum):
    """What behaviours are replayed on."""

    REFERENCE = "reference"
    SPARK = "spark"


@specs.command("list")
def list_models() -> None:
    """List the specifications and their models, with what is expected of each."""
    from ..specs.catalogue import catalogue

    table = Table(Column("model", no_wrap=True), "what it says", "expected", Column("states", justify="right"), "size")
    for specification in catalogue():
        table.add_section()
        title = f"[bold]{escape(specification.title)}[/] ({escape(specification.source)})"
        table.add_row(f"[bold]{specification.module.name}[/]", title, "", "", "")
        for model in specification.models:
            states = "" if model.distinct is None else f"{model.distinct:,}"
            table.add_row(model.name, escape(model.says), _expected(model), states, model.size)
    results.print(table)


@specs.command("check")
def check_models(
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="[MODEL]...", help="Models, or .tla files of your own; all small models by default."),
    ] = None,
    size: Annotated[SizeChoice, typer.Option(help="Which models are checked if none is named.")] = SizeChoice.SMALL,
    workers: Annotated[
        int, typer.Option(min=1, help="TLC's threads; with more than one, counts vary and aren't compared.")
    ] = 1,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="How many models are checked at a time; what the cores allow by default.")
    ] = None,
    constant: Constants = None,
    config: Configuration = None,
    deadlock: Deadlock = True,
    timeout: Timeout = None,
    memory: Memory = None,
    trace: Annotated[bool, typer.Option("--trace", help="Tell expected counterexamples step by step, too.")] = False,
    chart: Annotated[
        Path | None, typer.Option(metavar="FILE.svg", help="Draw the counterexample of the one model that is checked.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE.json", help="Write what was found as JSON, too.")
    ] = None,
    force: Force = False,
) -> None:
    """Check models with TLC, and hold each to what is expected: the outcome, the violated property, and the counts.

    A model that should fail and passes is a violation. With --constant, or a module of your own, nothing is expected.
    What isn't found within --timeout is inconclusive: exit 2.
    """
    from ..specs.checking import find_tools

    chosen = _chosen(models, size, _constants(constant), config, deadlock)
    if (constant or chart) and len(chosen) != 1:
        raise BadInput(f"{'--constant' if constant else '--chart'} is of one model: name it")
    for path, kind in ((chart, CHART), (json_file, REPORT)):
        if path is not None:
            require_replaceable(path, kind, force)
    tools = _with_heap(find_tools(), memory)
    width = max(len(one.name) for one in chosen)
    # For a third of a short run TLC waits, for files and for threads of its own.
    at_a_time = jobs or max(1, _cores() * 3 // 2 // workers)
    checked: list[_Checked] = []
    started = time.monotonic()
    try:
        progress = _Progress()
        answers = _check_all(chosen, tools, workers, at_a_time, timeout, progress)
        for _ in chosen:
            with progress.shown():
                checked.append(next(answers))
            _print_checked(checked[-1], width, trace)
    finally:
        if json_file is not None:
            _write(json_file, json.dumps([one.to_json() for one in checked], indent=2, ensure_ascii=False) + "\n")
    if chart is not None:
        _draw(checked[0], chart)
    counts = {verdict: sum(one.verdict == verdict for one in checked) for verdict in EXITS}
    if len(checked) > 1:
        told = ", ".join(f"{counts[verdict]} {_AS_VERB.get(verdict, verdict)}" for verdict in EXITS if counts[verdict])
        note = "" if workers == 1 else f" Counts aren't compared with {workers} workers."
        results.print(f"{len(checked)} models: {told}; {time.monotonic() - started:.0f} s.{note}", markup=False)
    raise typer.Exit(next((EXITS[verdict] for verdict in ("violated", "inconclusive") if counts[verdict]), 0))


@specs.command("simulate")
def simulate_model(
    model: ModelName,
    behaviours: Annotated[int, typer.Option(min=1, help="How many random behaviours.")] = 1000,
    depth: Annotated[int, typer.Option(min=1, help="How many states each has at the most.")] = 100,
    seed: Annotated[int, typer.Option(help="What the behaviours are drawn from.")] = 0,
    constant: Constants = None,
    config: Configuration = None,
    deadlock: Deadlock = True,
    timeout: Timeout = None,
    memory: Memory = None,
) -> None:
    """Walk random behaviours of a model, where it is too large to be searched, and hold them to its properties.

    What isn't walked within --timeout is inconclusive: exit 2.
    """
    from ..specs import pytla
    from ..specs.checking import as_found, find_tools, tlc_errors

    one = _one(model, _constants(constant), config, deadlock)
    tools = _with_heap(find_tools(), memory)
    with steps() as progress, tlc_errors(), _inconclusive_out_of_time(one):
        try:
            simulation = pytla.simulate(
                one.model,
                tools,
                behaviours=behaviours,
                depth=depth,
                seed=seed,
                timeout=timeout,
                progress=_reporter(one.name, progress),
            )
            found, walked = as_found(simulation.result), simulation.behaviours
        except pytla.DeadlockReached as reached:
            found, walked = as_found(reached.result), ()
    lengths = [len(behaviour) for behaviour in walked]
    told = _count(len(walked), "behaviour")
    if lengths:
        told += f" of {min(lengths)} to {max(lengths)} states"
    expected = one.entry is not None and one.entry.fails and not constant
    if found.passed:
        verdict = "inconclusive" if expected else "conforms"
        wanted = f"; {_expected(one.entry)} was expected, and a search would find it" if expected and one.entry else ""
        said = f"no property is violated in them{wanted}"
    else:
        met = one.entry is not None and expected and found.result == one.entry.result
        verdict = "conforms" if met and one.entry and found.violated == one.entry.violated else "violated"
        said = found.verdict + (", as it should" if verdict == "conforms" else "")
    results.print(
        f"[{STYLES[verdict]}]{verdict}[/] {escape(one.name)}: {told}; {escape(said)}; "
        f"seed {seed}; {found.seconds:.1f} s"
    )
    if verdict == "violated":
        print_counterexample(found, one.model.module)
    raise typer.Exit(EXITS[verdict])


@specs.command("behaviours")
def behaviours_of(
    model: ModelName,
    cover: Annotated[
        Cover, typer.Option(help="Every edge of the state graph at least once, or every behaviour.")
    ] = Cover.EDGES,
    count: Annotated[bool, typer.Option("--count", help="Count the behaviours, and look for no covering set.")] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the behaviours there, as JSON Lines.")
    ] = None,
    constant: Constants = None,
    config: Configuration = None,
    timeout: Timeout = None,
    memory: Memory = None,
    force: Force = False,
) -> None:
    """Count the behaviours of a small model from start to end, and write them, one a line.

    What isn't counted within --timeout is inconclusive: exit 2.
    """
    one = _one(model, _constants(constant), config)
    path = None if out is None else out / f"{one.name}-{cover.value}.jsonl"
    if path is not None:
        require_replaceable(path, BEHAVIOURS, force)
    with steps() as progress:
        graph = _graph(one, timeout, memory, progress)
        told = [
            _count(len(graph.states), "state"),
            _count(len(graph.edges), "edge"),
            f"{_count(_counted(graph), 'behaviour')} from start to end",
        ]
        chosen: Sequence[Trace] | None = None
        if not count and cover is Cover.EDGES:
            progress(f"{one.name}: covering every edge")
            chosen = _covering(graph)
            told.append(f"{len(chosen):,} of them cover{'s' if len(chosen) == 1 else ''} every edge")
        if path is not None:
            progress(f"{one.name}: writing behaviours")
            written = _write_lines(path, _behaviour_lines(graph.behaviours() if chosen is None else chosen))
            messages.print(f"{path}: {_count(written, 'behaviour')}", markup=False, soft_wrap=True)
    results.print(f"{one.name}: {', '.join(told)}.", markup=False)


@specs.command("replay")
def replay_model(
    model: ModelName,
    on: Annotated[ReplayedOn, typer.Option("--on", help="What the behaviours are replayed on.")] = ReplayedOn.REFERENCE,
    cover: Annotated[
        Cover, typer.Option(help="Every edge of the state graph at least once, or every behaviour.")
    ] = Cover.EDGES,
    constant: Constants = None,
    write: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Write the behaviours there as history files.")
    ] = None,
    folder: Annotated[
        Path, typer.Option("--findings", help="Folder that a disagreement is written to, as a history.")
    ] = Path(".streamproof/findings"),
    timeout: Timeout = None,
    memory: Memory = None,
    force: Force = False,
) -> None:
    """Replay a model's behaviours on the code, action by action: after each, both must be in the same state.

    Of a model that is expected to fail it is the counterexample that is replayed. What TLC doesn't find within
    --timeout is inconclusive: exit 2.
    """
    from ..specs.checking import constants_of, tlc_errors
    from ..specs.replay import replay, replay_named

    one = _one(model, _constants(constant))
    replay_named(one.model.module.stem)
    if write is not None:
        _require_replaceable_histories(one, write, force)
    with tlc_errors():
        constants = constants_of(one.model)
    with steps() as progress:
        traces, what = _traces(one, cover, timeout, memory, progress)
        if write is not None:
            written = _write_histories(traces(), one, constants, write)
            messages.print(f"{write}: {_count(written, 'history file')}", markup=False, soft_wrap=True)
        progress(f"{one.name}: replaying on {on.value}")
        if on is ReplayedOn.SPARK:
            from .spec_replay import replay_on_spark

            replayed = replay_on_spark(traces(), constants, one.model.module.stem)
        else:
            replayed = replay(traces(), constants, one.model.module.stem)
    parted = len(replayed.disagreements)
    contrasted = _contrasted(next(traces()), constants, one) if one.fails and on is ReplayedOn.REFERENCE else []
    violated = parted or not all(line.holds for line in contrasted)
    verdict = "violated" if violated else "conforms" if replayed.behaviours else "inconclusive"
    results.print(
        f"[{STYLES[verdict]}]{verdict}[/] {escape(one.name)} on {on.value}: {_count(replayed.behaviours, 'behaviour')} "
        f"({what}), {_count(replayed.actions, 'action')}, {_count(parted, 'disagreement')}"
    )
    for line in contrasted:
        results.print(f"  {line.told}", style="" if line.holds else "bold red", markup=False, soft_wrap=True)
    if parted:
        first = replayed.disagreements[0]
        trace = next(islice(traces(), first.behaviour - 1, None))
        _tell_disagreement(first, trace, one.model.module)
        try:
            said = f"saved as {_save_disagreement(trace, constants, one, folder, on)}"
        except BadInput as error:  # what was found is told already, and stands
            said = f"not saved as a history: {error}"
        messages.print(said, markup=False, soft_wrap=True)
    raise typer.Exit(EXITS[verdict])


# -- what is chosen ----------------------------------------------------------------------------------------------------


class _Chosen(NamedTuple):
    """A model to be run: of the catalogue, with what is expected of it, or a user's own."""

    name: str
    model: Model
    entry: CatalogueModel | None

    @property
    def fails(self) -> bool:
        """Whether a counterexample is expected."""
        return self.entry is not None and self.entry.fails


def _constants(given: Sequence[str] | None) -> dict[str, Value]:
    from ..specs.pytla import ValueSyntaxError, parse_value

    constants: dict[str, Value] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--constant {text}: not NAME=VALUE, such as LeftChanges=2 or Join='\"inner\"'")
        try:
            constants[name.strip()] = parse_value(value)
        except ValueSyntaxError as error:
            raise BadInput(f"--constant {text}: {error}; strings have quotes, '{name}=\"text\"'") from None
    return constants


def _one(name: str, constants: Mapping[str, Value], config: Path | None = None, deadlock: bool = True) -> _Chosen:
    from ..specs.catalogue import find_model
    from ..specs.checking import model_of, own_model

    if name.endswith(".tla"):
        own = own_model(Path(name), config, constants, deadlock)
        return _Chosen(own.configuration.stem, own, None)
    if config is not None:
        raise BadInput(f"--config goes with a .tla file of your own, and {name} has its own configuration")
    if name.endswith(".cfg"):
        raise BadInput(f"{name}: name the .tla file, and this one with --config")
    if not deadlock:
        raise BadInput(f"--no-deadlock goes with a .tla file of your own, and of {name} it is known what is expected")
    entry = find_model(name)
    return _Chosen(entry.name, model_of(entry, constants), entry if not constants else None)


def _chosen(
    names: Sequence[str] | None, size: SizeChoice, constants: Mapping[str, Value], config: Path | None, deadlock: bool
) -> list[_Chosen]:
    from ..specs.catalogue import catalogue

    if names:
        return [_one(name, constants, config, deadlock) for name in names]
    if config is not None:
        raise BadInput("--config is of a .tla file of your own: name it")
    wanted = [model for one in catalogue() for model in one.models if size in (SizeChoice.ALL, model.size)]
    if not wanted:
        raise BadInput(f"the catalogue has no {size.value} models")
    return [_one(model.name, constants) for model in wanted]


# -- checking ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Checked:
    """A model that was checked, and the verdict on it."""

    chosen: _Chosen
    found: Found | None
    broken: Sequence[str]
    verdict: str
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        found, chosen = self.found, self.chosen
        told: dict[str, Any] = {
            "model": chosen.name,
            "module": str(chosen.model.module),
            "configuration": str(chosen.model.configuration),
            "verdict": self.verdict,
        }
        if found is None:
            return {**told, "why": self.why}
        return {
            **told,
            "result": found.result,
            "property": found.violated,
            "unexpected": list(self.broken),
            "distinctStates": found.distinct,
            "totalStates": found.generated,
            "stateDepth": found.depth,
            "seconds": round(found.seconds, 3),
            "trace": None if found.trace is None else behaviour_json(found.trace),
        }


class _Progress:
    """Tells the present step wherever it is shown at the time: on a terminal not while results are printed."""

    def __init__(self) -> None:
        self._tell: Callable[[str], None] = lambda step: None

    def __call__(self, step: str) -> None:
        self._tell(step)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show steps for a while."""
        with steps() as self._tell:
            yield


def _check_all(
    chosen: Sequence[_Chosen],
    tools: Tools,
    workers: int,
    at_a_time: int,
    timeout: float | None,
    progress: Callable[[str], None],
) -> Iterator[_Checked]:
    """Check models, some at a time, and give what is found in their order."""
    if at_a_time == 1 or len(chosen) == 1:
        for one in chosen:
            yield _check(one, tools, workers, timeout, progress)
        return
    answers: list[Future[_Checked]] = [Future() for _ in chosen]
    waiting = deque(zip(chosen, answers, strict=True))

    def work() -> None:
        while waiting:
            with suppress(IndexError):  # another thread took the last one
                one, answer = waiting.popleft()
                try:
                    answer.set_result(_check(one, tools, workers, timeout, progress))
                except BaseException as error:
                    answer.set_exception(error)

    # Daemons, for nothing waits for them when a check ends early; TLC ends with this process.
    for _ in range(min(at_a_time, len(chosen))):
        Thread(target=work, daemon=True).start()
    try:
        for answer in answers:
            yield answer.result()
    finally:
        waiting.clear()


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tools_for(one: _Chosen, tools: Tools) -> Tools:
    """Let Java compile less where a model is small: it would spend more time on that than the model takes."""
    from ..specs.checking import QUICK

    others = tuple(option for option in tools.options if option not in QUICK)
    return tools._replace(options=(*QUICK, *others) if one.entry is not None and one.entry.size == "small" else others)


def _with_heap(tools: Tools, memory: int | None) -> Tools:
    """Let TLC have a heap of so many MiB, if that is said."""
    return tools if memory is None else tools._replace(options=(*tools.options, f"-Xmx{memory}m"))


@contextmanager
def _inconclusive_out_of_time(one: _Chosen) -> Iterator[None]:
    """End the command as inconclusive where TLC's time is up."""
    from ..specs.pytla import TimedOut

    try:
        yield
    except TimedOut as unfinished:
        _print_inconclusive(one.name, str(unfinished))
        raise typer.Exit(EXITS["inconclusive"]) from None


def _print_inconclusive(name: str, why: str) -> None:
    results.print(f"[{STYLES['inconclusive']}]inconclusive[/] {escape(f'{name}: {why}')}", soft_wrap=True)


def _check(
    one: _Chosen, tools: Tools, workers: int, timeout: float | None, progress: Callable[[str], None]
) -> _Checked:
    from ..specs.checking import broken_expectations, check, tlc_errors
    from ..specs.pytla import StateSpaceTooLarge, TimedOut

    with tlc_errors():
        try:
            found = check(one.model, _tools_for(one, tools), workers, timeout, _reporter(one.name, progress))
        except (TimedOut, StateSpaceTooLarge) as unfinished:
            return _Checked(one, None, [], "inconclusive", str(unfinished))
    if one.entry is None:
        return _Checked(one, found, [], "conforms" if found.passed else "violated")
    broken = broken_expectations(one.entry, found, exact=workers == 1)
    return _Checked(one, found, broken, "violated" if broken else "conforms")


def _reporter(name: str, progress: Callable[[str], None]) -> Callable[[Progress], None]:
    told = 0.0
    if messages.is_terminal:
        progress(name)

    def report(now: Progress) -> None:
        nonlocal told
        if messages.is_terminal or now.seconds - told >= _QUIET_SECONDS:
            told = now.seconds
            progress(
                f"{name}: {now.phase}, {now.distinct:,} states, {now.left_on_queue:,} of them to be searched, "
                f"depth {now.depth}"
            )

    return report


def _print_checked(checked: _Checked, width: int, with_trace: bool) -> None:
    name, found = checked.chosen.name, checked.found
    verdict = f"[{STYLES[checked.verdict]}]{checked.verdict:12}[/] {escape(f'{name:{width}}')}"
    if found is None:
        results.print(f"{verdict} {escape(checked.why)}", soft_wrap=True)
        return
    expected = checked.chosen.entry is not None and not checked.broken
    if found.trace is None:
        said = found.verdict
    else:
        said = f"{found.verdict} in {len(found.trace)} states" + (", as it should" if expected else "")
    results.print(
        f"{verdict} {escape(said)}; {found.distinct:,} distinct states of {found.generated:,} generated, "
        f"depth {found.depth}; {found.seconds:.1f} s",
        soft_wrap=True,
    )
    for sentence in checked.broken:
        results.print(f"  {sentence}", markup=False, soft_wrap=True)
    if found.trace is not None and (with_trace or not expected):
        print_counterexample(found, checked.chosen.model.module)


def print_counterexample(found: Found, module: Path) -> None:
    """Tell a counterexample: what is violated, where that stands and what it says, and the steps there."""
    from ..specs.steps import read_module

    if found.trace is None:
        return
    violated = read_module(module).definitions.get(found.violated or "")
    where = "" if violated is None else f" ({violated.path.name}, line {violated.line})"
    results.print()
    said = found.told if found.result == "deadlock failure" else f"violated: {found.told}{where}"
    results.print(f"  {said}", style="bold red", markup=False, soft_wrap=True)
    if violated is not None and violated.comment:
        results.print(f"  {violated.comment}", markup=False, soft_wrap=True)
    print_steps(found.trace, module)
    results.print()


def print_steps(trace: Trace, module: Path) -> None:
    """Tell a behaviour: its first state, then of each step the action and what changed."""
    from ..specs.steps import ending, read_module, told_steps, written

    text = read_module(module)
    _print_indented(2, Text.assemble((f"{1:2}", "dim"), "  initial state"))
    for name, value in text.ordered(trace.steps[0].state).items():
        _print_indented(8, Text.assemble((name, "cyan"), f" = {visible(written(value))}"))
    for step in told_steps(trace, text):
        _print_indented(2, Text.assemble((f"{step.number:2}", "dim"), "  ", (visible(step.action), "bold")))
        for change in step.changes:
            _print_indented(8, Text.assemble((visible(change.path), "cyan"), f": {visible(change.difference)}"))
        if not step.changes:
            _print_indented(8, Text("nothing changes", "dim"))
    if ending(trace):
        _print_indented(6, Text(ending(trace), "yellow"))


def _print_indented(indent: int, text: Text) -> None:
    if results.is_terminal:
        results.print(Padding(text, (0, 0, 0, indent)))
    else:
        results.print(Text(" " * indent) + text, soft_wrap=True)


def _expected(model: CatalogueModel) -> str:
    if not model.fails:
        return "passes"
    failure = "a deadlock" if model.violated is None else f"{model.violated} violated"
    return f"{failure} in {model.trace_length} states"


def _draw(checked: _Checked, path: Path) -> None:
    from ..specs.sequence_chart import sequence_chart

    found = checked.found
    if found is None or found.trace is None:
        raise StreamproofError(f"{path}: not written, for {checked.chosen.name} has no counterexample to draw")
    entry = checked.chosen.entry
    title = checked.chosen.name if entry is None else f"{entry.name}: {entry.says}"
    _write(path, sequence_chart(found.trace, checked.chosen.model.module, title, found.told))
    messages.print(f"{path}: the counterexample, {len(found.trace)} states", markup=False, soft_wrap=True)


# -- behaviours --------------------------------------------------------------------------------------------------------


def _graph(one: _Chosen, timeout: float | None, memory: int | None, progress: Callable[[str], None]) -> StateGraph:
    from ..specs import pytla
    from ..specs.checking import find_tools, tlc_errors

    tools = _with_heap(find_tools(), memory)
    with tlc_errors(), _inconclusive_out_of_time(one):
        return pytla.state_graph(one.model, tools, timeout=timeout, progress=_reporter(one.name, progress))


def _counted(graph: StateGraph) -> int:
    from ..specs.checking import tlc_errors

    with tlc_errors():
        return graph.count_behaviours()


def _covering(graph: StateGraph) -> Sequence[Trace]:
    from ..specs.checking import tlc_errors

    with tlc_errors():
        return graph.covering()


def behaviour_json(trace: Trace) -> list[dict[str, Any]]:
    """A behaviour as JSON: of each step its number, its action, and its state, each value in TLA+."""
    return [{"step": step.number, "action": step.action, "state": _state_json(step.state)} for step in trace.steps]


def _state_json(state: Mapping[str, Value]) -> dict[str, str]:
    from ..specs.pytla import to_tla

    return {name: to_tla(value) for name, value in state.items()}


def _behaviour_lines(traces: Iterable[Trace]) -> Iterator[str]:
    """Behaviours as JSON, one a line; the states of a graph, which they share, are written once each."""
    states: dict[int, tuple[Mapping[str, Value], str]] = {}  # with the state, so that no other has its id
    for trace in traces:
        steps = []
        for step in trace.steps:
            if id(step.state) not in states:
                states[id(step.state)] = step.state, json.dumps(_state_json(step.state), ensure_ascii=False)
            _, state = states[id(step.state)]
            steps.append(f'{{"step": {step.number}, "action": {json.dumps(step.action)}, "state": {state}}}')
        yield f"[{', '.join(steps)}]"


# -- replay ------------------------------------------------------------------------------------------------------------


def _traces(
    one: _Chosen, cover: Cover, timeout: float | None, memory: int | None, progress: Callable[[str], None]
) -> tuple[Callable[[], Iterator[Trace]], str]:
    """What is replayed, from its beginning whenever it is called, and what that is."""
    from ..specs.checking import check, find_tools, tlc_errors

    if one.entry is not None and one.fails:
        tools = _with_heap(find_tools(), memory)
        with tlc_errors(), _inconclusive_out_of_time(one):
            found = check(one.model, tools, timeout=timeout, progress=_reporter(one.name, progress))
        if found.trace is None:
            raise StreamproofError(f"{one.name}: no property is violated, where {_expected(one.entry)} was expected")
        return lambda: iter([found.trace] if found.trace else []), f"the counterexample: it {found.verdict}"
    graph = _graph(one, timeout, memory, progress)
    _counted(graph)  # a graph with a cycle is told before anything is replayed
    if cover is Cover.ALL:
        return graph.behaviours, "all"
    chosen = _covering(graph)
    return lambda: iter(chosen), "covering every edge"


class _Contrasted(NamedTuple):
    """What a counterexample does to a code, told, and whether that is as it should be."""

    told: str
    holds: bool


def _contrasted(trace: Trace, constants: Mapping[str, Value], one: _Chosen) -> list[_Contrasted]:
    """Play a counterexample on the code as the model has it, which it must break, and on the right code."""
    from ..specs.replays.foreign_key_join import MODULE, contrast

    if one.model.module.stem != MODULE or one.entry is None:
        return []
    both = contrast(trace, constants)
    mutant, protocol = constants["Mutant"], constants["Protocol"]
    # A liveness failure of this module is a wrong result that nothing will mend.
    wanted = one.entry.violated if one.entry.result == "safety failure" else "QuietIsJoined"
    code = f"the reference with the mutant {mutant!r}" if mutant != "none" else f"the reference, protocol {protocol!r},"
    is_other = mutant != "none" or (protocol == "kip" and constants["Join"] == "inner")
    broken = {found.property: found.arrival for found in both.broken}
    if wanted in broken:
        told = [_Contrasted(f"{code} breaks {wanted} at arrival {broken[wanted]}, as the model does", True)]
    else:
        told = [_Contrasted(f"{code} doesn't break {wanted}, where the model does", False)]
    on_right = ", ".join(f"{found.property} at arrival {found.arrival}" for found in both.broken_on_right)
    if is_other:
        right = f"the right reference{'' if mutant != 'none' else ', protocol answer,'}"
        told.append(_Contrasted(f"{right} breaks {on_right or 'nothing'} on the same changes", not on_right))
    else:
        told.append(_Contrasted("no other code is known that does better", True))
    return told


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _require_replaceable_histories(one: _Chosen, folder: Path, force: bool) -> None:
    for path in [folder / f"{one.name}-1.jsonl", *folder.glob(f"{escape_pattern(one.name)}-*.jsonl")]:
        if path.stem.removeprefix(f"{one.name}-").isdecimal():
            require_replaceable(path, HISTORY, force)


def _write_histories(traces: Iterable[Trace], one: _Chosen, constants: Mapping[str, Value], folder: Path) -> int:
    from ..specs.replay import history_of

    count = 0
    for count, trace in enumerate(traces, 1):
        _write(folder / f"{one.name}-{count}.jsonl", history_of(trace, constants, one.model.module.stem).to_text())
    return count


def _tell_disagreement(found: Disagreement, trace: Trace, module: Path) -> None:
    results.print()
    results.print(f"  {found}", style="bold red", markup=False, soft_wrap=True)
    print_steps(replace(trace, steps=trace.steps[: found.step], loop=None, stutters=False), module)
    results.print()


def _save_disagreement(
    trace: Trace, constants: Mapping[str, Value], one: _Chosen, folder: Path, on: ReplayedOn
) -> Path:
    from ..specs.replay import history_of
    from .store import HISTORY, Metadata, Subject, save_history

    history = history_of(trace, constants, one.model.module.stem)
    subject: Subject = "spark" if on is ReplayedOn.SPARK else "reference"
    saved, _ = save_history(history, Metadata(folder, f"replay {one.name}", subject, history.operator))
    return saved / HISTORY


# -- files -------------------------------------------------------------------------------------------------------------


def _write(path: Path, text: str) -> None:
    _write_lines(path, [text.removesuffix("\n")])


def _write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write a file whole or not at all, and say how many lines it has.

    Raises:
        BadInput: It can't be written.
    """
    count = 0
    try:
        with whole_file(path) as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
    except OSError as error:
        raise BadInput(f"{path}: can't be written ({error.strerror})") from None
    return count
