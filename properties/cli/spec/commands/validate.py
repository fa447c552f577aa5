"""The command `spec validate`, which checks that traces of a foreign-key join are behaviours of its specification."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from ...terminal import EXITS, STYLES, messages, results, steps
from ..options import Memory, Timeout
from ..printing import count_of
from ..tlc import asking_tlc, reporter, tools_with

if TYPE_CHECKING:
    from .....specs.validation import Refusal

_MOST = 5
"""The maximum number of refused lines that the command prints for a trace."""


class ProtocolChoice(StrEnum):
    """The protocol whose instructions a trace must follow."""

    KIP = "kip"
    ANSWER = "answer"
    KAFKA_4_3 = "kafka 4.3"
    KAFKA_4_3_ANSWER = "kafka 4.3 answer"
    KAFKA_3_9 = "kafka 3.9"


def validate_traces(
    traces: Annotated[list[Path], typer.Argument(metavar="TRACE...", help="Traces of a foreign-key join, JSON Lines.")],
    protocol: Annotated[
        ProtocolChoice | None,
        typer.Option(
            help=("The protocol whose instructions the traces must follow; by default the trace's own protocol.")
        ),
    ] = None,
    timeout: Timeout = None,
    memory: Memory = None,
) -> None:
    """Check with TLC that traces of a foreign-key join are behaviours of its specification, ForeignKeyJoinTrace.

    A trace that isn't a behaviour is a violation: the command prints the refused line and the possible actions. A trace
    without events is inconclusive: exit 2.
    """
    from .....specs.traces import read_trace
    from .....specs.validation import validate

    read = [read_trace(path) for path in traces]
    tools = tools_with(memory)
    verdicts = set()
    for path, trace in zip(traces, read, strict=True):
        held = trace if protocol is None else replace(trace, protocol=protocol.value)
        with steps() as progress, asking_tlc(str(path)):
            found = validate(held, tools, timeout, reporter(str(path), progress))
        verdict = "violated" if found.refusals else "conforms" if found.events else "inconclusive"
        verdicts.add(verdict)
        parts = f" in {found.parts:,} parts without a key in common" if found.parts > 1 else ""
        refused = f", {count_of(len(found.refusals), 'part')} refused" if found.refusals and found.parts > 1 else ""
        results.print(
            f"[{STYLES[verdict]}]{verdict}[/] {escape(str(path))}: {count_of(found.events, 'event')}{parts}{refused}; "
            f"protocol {escape(held.protocol)}, {count_of(found.states, 'state')}",
            soft_wrap=True,
        )
        for refusal in found.refusals[:_MOST]:
            _print_refusal(refusal)
        if len(found.refusals) > _MOST:
            messages.out(f"{len(found.refusals) - _MOST:,} more parts are refused")
    raise typer.Exit(next((EXITS[one] for one in ("violated", "inconclusive") if one in verdicts), 0))


def _print_refusal(refusal: Refusal) -> None:
    results.out(f"  {refusal}", style="bold red")
    after = "" if refusal.after is None else f", the last on line {refusal.after.line}"
    results.out(f"  explained: {refusal.explained:,} of {refusal.events:,} events{after}")
    for way in refusal.possible or ["nothing"]:
        results.out(f"  possible: {way}")
