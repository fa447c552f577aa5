"""The command `spec replay`, which replays a model's behaviours on the code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from glob import escape as escape_pattern
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer
from rich.markup import escape

from .....reference.core.errors import BadInput, StreamproofError
from ....system.outputs import HISTORY, require_replaceable
from ....witnesses.kafka.versions import DEFAULT, asks_as_3_9_0, use_version, version_in_use
from ...options import KafkaVersion
from ...terminal import EXITS, STYLES, messages, results, steps

if TYPE_CHECKING:
    from .....specs.pytla import TlaValue, Trace
    from .....specs.replay import Disagreement, ReplayResult

from ..behaviours import graph_of
from ..files import write_text
from ..models import ChosenModel, constants_given, one_model
from ..options import (
    Behaviours,
    Constants,
    Cover,
    Covered,
    Findings,
    Force,
    Histories,
    Memory,
    ModelName,
    On,
    ReplayedOn,
    Timeout,
    WalkSeed,
)
from ..printing import count_of, expected_of, print_steps
from ..tlc import asking_tlc, reporter, tools_with


def replay_model(
    model: ModelName,
    on: On = ReplayedOn.REFERENCE,
    cover: Covered = Cover.EDGES,
    behaviours: Behaviours = 1000,
    seed: WalkSeed = 0,
    constant: Constants = None,
    write: Histories = None,
    folder: Findings = Path(".streamproof/counterexamples"),
    timeout: Timeout = None,
    memory: Memory = None,
    force: Force = False,
    kafka_version: KafkaVersion = None,
) -> None:
    """Replay a model's behaviours on the code: after each action, model and code must be in the same state.

    If a model is expected to fail, the command replays the model's counterexample. If TLC doesn't finish within
    --timeout, the result is inconclusive: exit 2.
    """
    from .....specs.checking import constants_of, tlc_errors
    from .....specs.replay import replay_named

    use_version(kafka_version)
    one = one_model(model, constants_given(constant))
    replay_named(one.model.module.stem)
    if write is not None:
        _require_replaceable_histories(one, write, force)
    with tlc_errors():
        constants = constants_of(one.model)
    if on is ReplayedOn.KAFKA:
        _require_release(constants)
    with steps() as progress:
        traces, what = _traces(one, _Asked(cover, behaviours, seed), timeout, memory, progress)
        if write is not None:
            written = _write_histories(traces(), one, constants, write)
            messages.out(f"{write}: {count_of(written, 'history file')}")
        progress(f"{one.name}: replaying on {on.value}")
        replayed = _replay_on(on)(traces(), constants, one.model.module.stem)
    contrasted: list[_Contrasted] = []
    if one.fails and on is ReplayedOn.REFERENCE:
        contrasted = _contrasted(next(traces()), constants, one)
    elif one.fails and on is ReplayedOn.KAFKA and not replayed.disagreements:
        contrasted = [_as_kafka_did(constants)]
    violated = replayed.disagreements or not all(line.holds for line in contrasted)
    verdict = "violated" if violated else "conforms" if replayed.behaviours else "inconclusive"
    results.print(f"[{STYLES[verdict]}]{verdict}[/] {escape(one.name)} on {on.value}: {_counted(replayed, what)}")
    if replayed.divergences:
        named = ", ".join(f"{name} {count:,}" for name, count in sorted(replayed.divergences.items()))
        results.out(f"  named divergences, in how many behaviours: {named}")
    for line in contrasted:
        results.out(f"  {line.sentence}", style="" if line.holds else "bold red")
    if replayed.disagreements:
        first = replayed.disagreements[0]
        trace = next(islice(traces(), first.behaviour - 1, None))
        _print_disagreement(first, trace, one.model.module)
        try:
            said = f"saved as {_save_disagreement(trace, constants, one, folder, on)}"
        except BadInput as error:  # continue, so that the command prints all results
            said = f"not saved as a history: {error}"
        messages.out(said)
    raise typer.Exit(EXITS[verdict])


def _replay_on(on: ReplayedOn) -> Callable[[Iterable[Trace], Mapping[str, TlaValue], str], ReplayResult]:
    if on is ReplayedOn.SPARK:
        from ....models.spec_replay import replay_on_spark

        return replay_on_spark
    if on is ReplayedOn.KAFKA:
        from ....models.spec_replay_on_kafka import replay_on_kafka

        return replay_on_kafka
    from .....specs.replay import replay

    return replay


def _counted(replayed: ReplayResult, what: str) -> str:
    behaviours, actions = count_of(replayed.behaviours, "behaviour"), count_of(replayed.actions, "action")
    return f"{behaviours} ({what}), {actions}, {count_of(len(replayed.disagreements), 'disagreement')}"


def _require_release(constants: Mapping[str, TlaValue]) -> None:
    """Refuse to replay a model of one Kafka release's instructions on another release."""
    old = {"kafka 3.9": True, "kafka 4.3": False}.get(str(constants.get("Protocol")))
    if old is not None and old != asks_as_3_9_0(version_in_use()):
        raise BadInput(
            f"Kafka {version_in_use()} has other instructions than the model's, {constants['Protocol']!r}: "
            f"use --kafka-version {'3.9.0' if old else DEFAULT}"
        )


def _traces(
    chosen: ChosenModel, asked: _Asked, timeout: float | None, memory: int | None, progress: Callable[[str], None]
) -> tuple[Callable[[], Iterator[Trace]], str]:
    """Return a function that yields the behaviours to replay from the start at each call, and a description of the
    behaviours.
    """
    from .....specs.checking import check

    if chosen.entry is not None and chosen.fails:
        with asking_tlc(chosen.name):
            found = check(chosen.model, tools_with(memory), timeout=timeout, progress=reporter(chosen.name, progress))
        if found.trace is None:
            raise StreamproofError(
                f"{chosen.name}: no property is violated, but {expected_of(chosen.entry)} was expected"
            )
        return lambda: iter([found.trace] if found.trace else []), f"the counterexample: it {found.verdict}"
    with asking_tlc(chosen.name):
        graph = graph_of(chosen, timeout, memory, progress)
        graph.count_behaviours()  # raises for a cyclic graph, before any replay
        if asked.cover is Cover.ALL:
            return graph.behaviours, "all"
        if asked.cover is Cover.RANDOM:
            of = graph.count_behaviours()
            return partial(graph.sample, asked.behaviours, asked.seed), f"random, of {of:,}, seed {asked.seed}"
        covering = graph.covering()
    return lambda: iter(covering), "covering every edge"


class _Asked(NamedTuple):
    """The behaviours to replay."""

    cover: Cover
    behaviours: int
    seed: int


class _Contrasted(NamedTuple):
    """A sentence about a counterexample's effect on the code, and whether the effect is as expected."""

    sentence: str
    holds: bool


def _as_kafka_did(constants: Mapping[str, TlaValue]) -> _Contrasted:
    if constants["Mutant"] == "none":
        return _Contrasted("Kafka Streams did the same, step by step, up to the wrong result", True)
    return _Contrasted("Kafka Streams doesn't have the bug: it ends right on the same changes", True)


def _contrasted(trace: Trace, constants: Mapping[str, TlaValue], chosen: ChosenModel) -> list[_Contrasted]:
    """Replay a counterexample on the code with the model's fault, where the replay must fail, and on the right code."""
    from .....specs.replays.foreign_key_join import MODULE, ForeignKeyJoinReplay, contrast
    from .....specs.replays.foreign_key_kafka import KAFKA

    if chosen.model.module.stem != MODULE or chosen.entry is None:
        return []
    both = contrast(trace, constants)
    mutant, protocol = constants["Mutant"], constants["Protocol"]
    # In this module, a liveness failure is a wrong result that the code never corrects.
    wanted = chosen.entry.violated if chosen.entry.result == "safety failure" else "QuietIsJoined"
    if protocol in KAFKA:
        code = f"the protocol with the instructions of {protocol!r}"
    elif mutant != "none":
        code = f"the reference with the mutant {mutant!r}"
    else:
        code = f"the reference, protocol {protocol!r},"
    broken = {found.property: found.arrival for found in both.broken}
    if wanted in broken:
        found = [_Contrasted(f"{code} breaks {wanted} at arrival {broken[wanted]}, as the model does", True)]
    else:
        found = [_Contrasted(f"{code} doesn't break {wanted}, but the model does", False)]
    on_right = ", ".join(f"{found.property} at arrival {found.arrival}" for found in both.broken_on_right)
    if not ForeignKeyJoinReplay(constants).is_right:
        answering = mutant == "none" and constants["Join"] == "inner"
        right = f"the right reference{', protocol answer,' if answering else ''}"
        found.append(_Contrasted(f"{right} breaks {on_right or 'nothing'} on the same changes", not on_right))
    else:
        found.append(_Contrasted("no other code is known to do better", True))
    return found


def _require_replaceable_histories(chosen: ChosenModel, folder: Path, force: bool) -> None:
    for path in [folder / f"{chosen.name}-1.jsonl", *folder.glob(f"{escape_pattern(chosen.name)}-*.jsonl")]:
        if path.stem.removeprefix(f"{chosen.name}-").isdecimal():
            require_replaceable(path, HISTORY, force)


def _write_histories(
    traces: Iterable[Trace], chosen: ChosenModel, constants: Mapping[str, TlaValue], folder: Path
) -> int:
    from .....specs.replay import history_of

    count = 0
    for count, trace in enumerate(traces, 1):
        write_text(
            folder / f"{chosen.name}-{count}.jsonl", history_of(trace, constants, chosen.model.module.stem).to_text()
        )
    return count


def _print_disagreement(found: Disagreement, trace: Trace, module: Path) -> None:
    results.print()
    results.out(f"  {found}", style="bold red")
    print_steps(replace(trace, steps=trace.steps[: found.step], loop=None, stutters=False), module)
    results.print()


def _save_disagreement(
    trace: Trace, constants: Mapping[str, TlaValue], chosen: ChosenModel, folder: Path, on: ReplayedOn
) -> Path:
    from .....specs.replay import history_of
    from ....counterexamples.counterexample import Counterexample
    from ....counterexamples.of_operators import FolderStore
    from ....counterexamples.store import HISTORY
    from ....laws.all import Subject

    history = history_of(trace, constants, chosen.model.module.stem)
    subject: Subject = "spark" if on is ReplayedOn.SPARK else "reference"
    known = Counterexample(law=f"replay {chosen.name}", history=history, subject=subject)
    saved = FolderStore(folder).write_history(known, {})
    return saved / HISTORY
