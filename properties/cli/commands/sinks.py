"""The command `sinks`: prints each sink's promises, and its observed behaviour under every fault."""

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
    json_file: Annotated[
        Path | None,
        typer.Option("--json", metavar="FILE", help="Write all cells here; cells that the file has aren't run again."),
    ] = None,
    known: Annotated[bool, typer.Option("--list", help="List the sinks and faults, and run nothing.")] = False,
) -> None:
    """Print each sink's promises, and its behaviour under faults: rows lost, doubled or torn, or a query stuck.

    An exception or restored files simulate a fault; only a killed process is a real fault. Exits 0 if each sink keeps
    its documented promises, 1 if a sink doesn't, 2 if no fault could be played.
    """
    from ...checking.sinks.faults import FAULTS
    from ...checking.sinks.sinks import SINKS, sink_named
    from ...checking.sinks.table import Asked, fault_named, play

    asked_sinks = [sink_named(name) for name in dict.fromkeys(names or SINKS)]
    asked_faults = [fault_named(name) for name in dict.fromkeys(fault or [one.name for one in FAULTS])]
    if folder is not None and (not folder.is_dir() or any(folder.iterdir())):
        raise BadInput(f"--folder {folder}: give an empty folder: nothing is written next to existing files")
    asked = Asked(asked_sinks, asked_faults, histories, seed, folder)
    if known:
        _print_known(asked)
        return
    before = [] if json_file is None else played_before(asked, json_file)
    found = [cell for cell in before if cell.sink in asked_sinks and cell.fault in asked_faults]
    others = [cell for cell in before if cell not in found]

    def save() -> None:
        if json_file is None:
            return
        try:
            write_whole(json_file, json.dumps(content_of(asked, [*found, *others]), indent=1) + "\n")
        except OSError as error:
            raise BadInput(f"--json {json_file}: it can't be written: {error.strerror}") from None

    save()  # save first, so that an unwritable file is refused before any run
    try:
        with signals.interrupting(), steps() as progress:
            play(asked, found, progress, save)
    except BadInput:
        raise
    except BaseException:
        if signals.received():
            signals.leave()
        _report(asked, found)
        raise
    save()
    _report(asked, found)
    raise typer.Exit(EXITS[verdict_of(found)])


def played_before(asked: Asked, json_file: Path) -> list[Cell]:
    """Return the cells that an earlier command has written to a file; no cells if the file doesn't exist.

    Raises:
        BadInput: The file doesn't contain cells, or an earlier command created its cells with other options.
    """
    from ...checking.sinks.table import Cell

    if not json_file.parent.is_dir():
        raise BadInput(f"--json {json_file}: there is no folder {json_file.parent}")
    if not json_file.is_file():  # there is nothing to read in a new file, a pipe or a device
        return []
    try:
        content = json.loads(json_file.read_text(encoding="utf-8"))
        other = {name: content[name] for name, value in _how(asked).items() if content[name] != value}
        found = [Cell.from_json(cell) for cell in content["cells"] if cell["ways"]]
    except (ValueError, LookupError, TypeError, AttributeError, BadInput):
        raise BadInput(f"--json {json_file}: it isn't a file of this command: name another file") from None
    if other:
        played = ", ".join(f"{name} {value}" for name, value in other.items())
        raise BadInput(f"--json {json_file}: its cells were played with {played}: name another file")
    return found


def _report(asked: Asked, found: Sequence[Cell]) -> None:
    """Print the results."""
    _print_table(asked, found)
    _print_cells(found)


def verdict_of(found: Sequence[Cell]) -> str:
    """Return the verdict on all cells: whether every promise was kept."""
    if any(cell.is_broken for cell in found):
        return "violated"
    return "conforms" if any(cell.ways for cell in found) else "inconclusive"


def content_of(asked: Asked, found: Sequence[Cell]) -> dict[str, object]:
    """Return the table as plain data."""
    from ...checking.sinks.faults import FAULTS
    from ...checking.sinks.sinks import SINKS

    places = [*SINKS], [one.name for one in FAULTS]
    found = sorted(found, key=lambda cell: (places[0].index(cell.sink.name), places[1].index(cell.fault.name)))
    sinks = dict.fromkeys(cell.sink for cell in found)
    faults = dict.fromkeys(cell.fault for cell in found)
    return {
        **_how(asked),
        "sinks": {one.name: {"says": one.says, "promises": one.promises, "document": one.document} for one in sinks},
        "faults": {one.name: one.says for one in faults},
        "cells": [cell.to_json() for cell in found],
    }


def _how(asked: Asked) -> dict[str, object]:
    """Return the version and options that each cell depends on."""
    return {"pyspark": installed("pyspark"), "histories": asked.histories, "seed": asked.seed}


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
    """Print a row for each sink, with the letters of each cell's verdicts, and the number of histories with the first
    verdict.
    """
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
    """Print each cell with a broken promise, with the cell's smallest history, cause and command; then print the
    counts.
    """
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
        f"{sum(bool(cell.ways) for cell in found)} of {len(found)} cells were played, {len(both)} of them with a "
        f"simulated and a real fault: {len(both) - differ} agree, {differ} differ. "
        f"{sum(cell.is_broken for cell in found)} break a documented promise."
    )
    slowest = max(found, key=lambda cell: cell.played.cpu_seconds)
    if slowest.played.cpu_seconds:
        results.out(f"The slowest, {slowest.command}, took {slowest.played.cpu_seconds:.0f} CPU seconds.")


def _lines(cell: Cell) -> Iterator[str]:
    counts = ", ".join(f"{name} {count}" for name, count in cell.played.counts.items())
    promise = f"; it promises {cell.sink.promises}" if cell.fault.is_of_process else "; no document promises it"
    yield f"{cell.sink.name}, {cell.fault.name}: {counts or 'refused'}{promise}"
    for name, history in cell.played.smallest.items():
        yield f"  the smallest history {name}: {history}"
    cause, source = cell.cause
    if cause:
        yield f"  {cause} ({source})"
    if cell.report:
        yield f"  the same defect in public: {cell.report}"
    for why in [cell.played.why, *cell.played.refusals]:
        if why:
            yield f"  {why[:300]}"
    if cell.differs:
        ways = "; ".join(f"{name}: {', '.join(way.verdicts)}" for name, way in cell.ways.items())
        yield f"  {ways}" + f": {cell.difference}" * bool(cell.difference)
    yield f"  {cell.command}"
