"""The command `sinks`: each sink's promises, and its observed behaviour under every fault."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....reference.core.errors import BadInput
from ...system import signals
from ...system.files import write_whole
from ...system.installed.requirements import installed
from ..options import Seed
from ..terminal import EXITS, STYLES, results, steps, titled_table

if TYPE_CHECKING:
    from ...checking.sinks.table import Asked, Cell

LETTERS = {"stuck": "S", "lost": "L", "doubled": "D", "torn": "T", "refused": "R", "kept": "", "not played": "-"}
"""The symbols of verdicts in the table."""


def sinks(
    names: Annotated[list[str] | None, typer.Argument(metavar="[SINK]...", help="Sinks; all by default.")] = None,
    fault: Annotated[
        list[str] | None, typer.Option(metavar="FAULT", help="A fault; may be repeated. All by default.")
    ] = None,
    histories: Annotated[
        int, typer.Option(min=1, max=5_000, help="The number of histories that share each query.")
    ] = 60,
    seed: Seed = 0,
    folder: Annotated[
        Path | None, typer.Option(help="An empty folder to write below, such as one of another disk.")
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write all cells here, too.")] = None,
    known: Annotated[bool, typer.Option("--list", help="List the sinks and faults, and play nothing.")] = False,
) -> None:
    """Print each sink's promises, and its behaviour under faults: rows lost, doubled or torn, or a query stuck.

    An exception or restored files simulate a fault; a killed process is a real fault. Exits 0 if each sink keeps its
    documented promises, 1 if a sink doesn't, 2 if no fault could be played.
    """
    from ...checking.sinks.faults import FAULTS
    from ...checking.sinks.sinks import SINKS, sink_named
    from ...checking.sinks.table import Asked, fault_named, play

    asked_sinks = [sink_named(name) for name in dict.fromkeys(names or SINKS)]
    asked_faults = [fault_named(name) for name in dict.fromkeys(fault or [one.name for one in FAULTS])]
    if folder is not None and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"--folder {folder}: give an empty folder; nothing is written beside files that are there")
    asked = Asked(asked_sinks, asked_faults, histories, seed, folder)
    if known:
        _print_known(asked)
        return
    found: list[Cell] = []
    try:
        with signals.interrupting(), steps() as progress:
            play(asked, found, progress)
    except BadInput:
        raise
    except BaseException:
        if signals.received():
            signals.leave()
        _report(asked, found, json_file)
        raise
    _report(asked, found, json_file)
    raise typer.Exit(EXITS[verdict_of(found)])


def _report(asked: Asked, found: Sequence[Cell], json_file: Path | None) -> None:
    """Print and write the results."""
    _print_table(asked, found)
    _print_cells(found)
    if json_file is not None:
        write_whole(json_file, json.dumps(content_of(asked, found), indent=1) + "\n")


def verdict_of(found: Sequence[Cell]) -> str:
    """Return the verdict on all cells: whether every promise was kept."""
    if any(cell.is_broken for cell in found):
        return "violated"
    return "conforms" if any(cell.ways for cell in found) else "inconclusive"


def content_of(asked: Asked, found: Sequence[Cell]) -> dict[str, object]:
    """Return the table as plain data."""
    return {
        "pyspark": installed("pyspark"),
        "histories": asked.histories,
        "seed": asked.seed,
        "sinks": {
            one.name: {"says": one.says, "promises": one.promises, "document": one.document} for one in asked.sinks
        },
        "faults": {one.name: one.says for one in asked.faults},
        "cells": [cell.to_json() for cell in found],
    }


def _print_known(asked: Asked) -> None:
    from ...checking.sinks.sinks import NOT_PLAYED

    table = titled_table("sinks", "sink", "promises", "how it writes")
    for one in asked.sinks:
        table.add_row(one.name, one.promises, one.says)
    for name, why in NOT_PLAYED.items():
        table.add_row(name, "not played", why)
    results.print(table)
    table = titled_table("faults", "fault", "what is done")
    for each in asked.faults:
        table.add_row(each.name, each.says)
    results.print(table)


def _print_table(asked: Asked, found: Sequence[Cell]) -> None:
    """Print a row for each sink: the letters of each cell's verdicts, and the number of histories with the first."""
    numbers = [str(number) for number, _ in enumerate(asked.faults, 1)]
    table = titled_table(f"sinks under faults, {asked.histories} histories each", "sink", "promises", *numbers)
    for sink in asked.sinks:
        table.add_row(sink.name, sink.promises, *(_in_table(cell) for cell in found if cell.sink == sink))
    results.print(table)
    results.out(", ".join(f"{number}: {one.name}" for number, one in zip(numbers, asked.faults, strict=True)))
    results.out("S stuck, L lost, D doubled, T torn, R refused, - not played; bold: breaks its promise; ?: ways differ")


def _in_table(cell: Cell) -> str:
    letters = "".join(LETTERS[one] for one in cell.verdicts)
    count = next(iter(cell.played.counts.values()), "")
    text = f"{letters}{' ' * bool(count)}{count}{'?' * cell.differs}"
    style = STYLES["violated"] if cell.is_broken else STYLES["inconclusive"] if count else STYLES["conforms"]
    return f"[{style}]{text or '.'}[/]"


def _print_cells(found: Sequence[Cell]) -> None:
    """Print each cell with a broken promise, with its smallest history, cause and command; then the counts."""
    for cell in found:
        if cell.verdicts not in (("kept",), ("not played",)):
            results.out("", *_lines(cell), sep="\n")
    unplayed: dict[str, list[str]] = {}
    for cell in found:
        if not cell.ways:
            unplayed.setdefault(cell.played.unmet, []).append(f"{cell.sink.name} {cell.fault.name}")
    for why, which in unplayed.items():
        results.out(f"Not played, {why}: {', '.join(which)}.")
    both = [cell for cell in found if len(cell.ways) > 1]
    differ = sum(cell.differs for cell in both)
    results.out(
        f"{sum(bool(cell.ways) for cell in found)} of {len(found)} cells were played, {len(both)} by hand and by a "
        f"real death: {len(both) - differ} agree, {differ} differ. {sum(cell.is_broken for cell in found)} break what "
        "a document promises."
    )


def _lines(cell: Cell) -> Iterator[str]:
    counts = ", ".join(f"{name} {count}" for name, count in cell.played.counts.items())
    promise = f"; it promises {cell.sink.promises}" if cell.fault.is_of_process else "; no document promises it"
    yield f"{cell.sink.name}, {cell.fault.name}: {counts or 'refused'}{promise}"
    for name, history in cell.played.smallest.items():
        yield f"  the smallest history {name}: {history}"
    cause, source = cell.cause
    if cause:
        yield f"  {cause} ({source})"
    for why in [cell.played.why, *cell.played.refusals]:
        if why:
            yield f"  {why[:300]}"
    if cell.differs:
        yield "  " + "; ".join(f"{name}: {', '.join(way.verdicts)}" for name, way in cell.ways.items())
    yield f"  {cell.command}"
