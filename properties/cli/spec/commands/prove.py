"""The command `spec prove`, which proves properties of specifications for any size by induction."""

from __future__ import annotations

import json
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from .....reference.core.errors import BadInput, StreamproofError
from ....system.outputs import CHART, REPORT, require_replaceable
from ...terminal import EXITS, STYLES, messages, results, steps
from ..behaviours import behaviour_json
from ..files import write_text
from ..options import ChartFile, Force, JsonFile
from ..printing import count_of, print_steps
from ..tlc import tools_with
from .check import available_cores

if TYPE_CHECKING:
    from .....specs.proofs.entries import ProofEntry
    from .....specs.proofs.proving import CheckedCondition
    from .....specs.pytla import Tools
    from ....checking.checked import VerdictName

_TLC_SECONDS = 60
"""The time limit for TLC to find the first state of a counterexample (s)."""


def prove_specifications(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[PROOF]...", help="Proofs, or modules with all of their proofs; all by default."),
    ] = None,
    catalogue: Annotated[
        Path | None, typer.Option("--proofs", metavar="FILE.json", help="Proofs of your own; see specs/README.md.")
    ] = None,
    timeout: Annotated[float, typer.Option(min=1, metavar="SECONDS", help="The time limit of z3 for a goal.")] = 10,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="The number of proofs that run at a time; by default one per core.")
    ] = None,
    chart: ChartFile = None,
    json_file: JsonFile = None,
    force: Force = False,
) -> None:
    """Prove by induction, with z3, that a specification holds for any number of keys, changes and messages.

    If the user names one proof, the command prints every condition. A condition that doesn't hold has a counterexample:
    a step from a state that the invariant allows to a state that the invariant forbids. TLC tests whether the
    specification can reach the first state. A proof that should fail ends with its first counterexample, and is a
    violation if it succeeds. If z3 finds no answer in time, the proof is inconclusive: exit 2.
    """
    from .....specs.proofs.entries import FILE, find_proofs

    entries = find_proofs(names or [], catalogue or FILE)
    if chart is not None and len(entries) != 1:
        raise BadInput("--chart is for a single proof: name the proof")
    for path, kind in ((chart, CHART), (json_file, REPORT)):
        if path is not None:
            require_replaceable(path, kind, force)
    tools = tools_with(None)
    width = max(len(entry.name) for entry in entries)
    found: list[dict[str, Any]] = []
    missed: CheckedCondition | None = None
    for entry, checked, seconds in _proved(entries, tools, round(timeout * 1000), jobs or available_cores()):
        verdict = _verdict(entry, checked)
        found.append(_as_json(entry, checked, verdict, seconds))
        said = f"{escape(f'{entry.name:{width}}')} {escape(_said(entry, checked))}; {seconds:.1f} s"
        results.print(f"[{STYLES[verdict]}]{verdict:12}[/] {said}", soft_wrap=True)
        missed = next((each for each in checked if each.counterexample is not None), None)
        if missed is not None and (verdict == "violated" or len(entries) == 1):
            _print_counterexample(entry, missed, tools)
    if json_file is not None:
        write_text(json_file, json.dumps(found, indent=2, ensure_ascii=False) + "\n")
    if chart is not None:
        from .....specs.sequence_chart import sequence_chart

        if missed is None or missed.counterexample is None:
            raise StreamproofError(f"{chart}: not written, because {entries[0].name} has no counterexample to draw")
        write_text(chart, sequence_chart(missed.counterexample, entries[0].module, entries[0].says, missed.claim))
        messages.out(f"{chart}: the counterexample to induction")
    verdicts = {each["verdict"] for each in found}
    raise typer.Exit(next((EXITS[one] for one in ("violated", "inconclusive") if one in verdicts), 0))


def _proved(
    entries: Sequence[ProofEntry], tools: Tools, milliseconds: int, jobs: int
) -> Iterator[tuple[ProofEntry, tuple[CheckedCondition, ...], float]]:
    """Check proofs concurrently, and yield the results in the proofs' order, with the seconds of each."""
    from .....specs.checking import tlc_errors

    with tlc_errors():
        if len(entries) == 1:
            yield (entries[0], *_timed(entries[0], tools, milliseconds, shown=True))
            return
        # Each proof has its own process, because the solver uses one core, and the solver's memory of one proof
        # slows the next proof.
        with (
            steps() as progress,
            ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool,
        ):
            answers = [pool.submit(_timed, entry, tools, milliseconds) for entry in entries]
            for entry, answer in zip(entries, answers, strict=True):
                progress(f"{entry.name}: proving")
                yield (entry, *answer.result())


def _timed(
    entry: ProofEntry, tools: Tools, milliseconds: int, shown: bool = False
) -> tuple[tuple[CheckedCondition, ...], float]:
    from .....specs.proofs.proving import prove

    start = time.monotonic()
    checked = prove(entry, tools, milliseconds, _print_condition if shown else None)
    return checked, time.monotonic() - start


def _print_condition(checked: CheckedCondition) -> None:
    style = {"proved": "green", "not proved": "bold red", "unknown": "yellow"}[checked.answer]
    why = f" ({escape(checked.why)})" if checked.why else ""
    claim = escape(checked.claim)
    results.print(f"[{style}]{checked.answer:10}[/] {checked.milliseconds:6,} ms  {claim}{why}", soft_wrap=True)


def _verdict(entry: ProofEntry, checked: Sequence[CheckedCondition]) -> VerdictName:
    answers = {each.answer for each in checked}
    if "not proved" in answers:
        return "conforms" if entry.result == "not proved" else "violated"
    if "unknown" in answers:
        return "inconclusive"
    return "conforms" if entry.result == "proved" else "violated"


def _said(entry: ProofEntry, checked: Sequence[CheckedCondition]) -> str:
    missed = [each for each in checked if each.answer == "not proved"]
    unknown = [each for each in checked if each.answer == "unknown"]
    if missed:
        expected = ", as it should be" if entry.result == "not proved" else ""
        return f"not proved{expected}: not “{missed[0].claim}”"
    if unknown:
        return f"z3 can't decide {count_of(len(unknown), 'condition')} of {len(checked)}, first “{unknown[0].claim}”"
    return f"proved: {count_of(len(checked), 'condition')}"


def _print_counterexample(entry: ProofEntry, checked: CheckedCondition, tools: Tools) -> None:
    from .....specs.proofs.reaching import steps_to
    from .....specs.pytla import TlcError

    if checked.counterexample is None:
        return
    results.print()
    results.out(f"  counterexample to induction: not “{checked.claim}”", style="bold red")
    print_steps(checked.counterexample, entry.module, "a state that the invariant allows")
    changes = ", ".join(f"{name} = {value}" for name, value in entry.reach.items())
    try:
        with steps() as progress:
            progress(f"{entry.name}: TLC looks for the first state")
            number = steps_to(entry, checked.counterexample.steps[0].state, tools, _TLC_SECONDS)
    except TlcError as error:
        results.out(f"  TLC can't tell whether the specification reaches the first state: {error}")
    else:
        reached = (
            "doesn't reach the first state"
            if number is None
            else f"reaches the first state in {count_of(number, 'step')}"
        )
        results.out(f"  TLC {reached}, with {changes}")
    results.print()


def _as_json(
    entry: ProofEntry, checked: Sequence[CheckedCondition], verdict: VerdictName, seconds: float
) -> dict[str, Any]:
    return {
        "proof": entry.name,
        "module": str(entry.module),
        "verdict": verdict,
        "expected": entry.result,
        "seconds": round(seconds, 3),
        "conditions": [
            {
                "condition": each.claim,
                "answer": each.answer,
                "milliseconds": each.milliseconds,
                **({"why": each.why} if each.why else {}),
                **({"counterexample": behaviour_json(each.counterexample)} if each.counterexample else {}),
            }
            for each in checked
        ],
    }
