"""The command `run`: the output of history files on a witness."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....reference.core.errors import BadInput
from ...system.standard_streams import OutputLost
from ...system.visible import json_line
from ...witnesses.kafka.versions import use_version
from ..options import KafkaVersion, Master, Partitions, Shared, files_of
from ..witnesses import ON_SPARK, WitnessName, evaluated, start_spark

if TYPE_CHECKING:
    from ....reference.core.history import History


def run(
    paths: Annotated[
        list[Path], typer.Argument(help="History files, or folders of them (*.jsonl).", metavar="HISTORY…")
    ],
    on: Annotated[WitnessName, typer.Option(help="The witness that runs the history files.")] = WitnessName.REFERENCE,
    table: Annotated[bool, typer.Option("--table", help="Print the folded table at the end instead.")] = False,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
    kafka_version: KafkaVersion = None,
) -> None:
    """Run history files on a witness, and print its output as JSON Lines."""
    from ...outcomes.outcomes import Grain

    use_version(kafka_version)
    histories = _read(paths)
    if on in ON_SPARK:
        start_spark(master, partitions, shared)
    outcomes = evaluated(histories, on)
    try:
        for outcome in outcomes:
            lines = outcome.table_lines() if table or outcome.grain is Grain.END else outcome.to_lines()
            for line in lines:
                print(json_line(line))
        sys.stdout.flush()
    except OutputLost as lost:
        if not lost.closed:  # a reader that closes stdout, such as `head`, ends the command
            raise


def _read(paths: Sequence[Path]) -> list[History]:
    from ....reference.core.history import read_history

    files = files_of(paths, "history files")
    histories = [read_history(path) for path in files]
    names = [history.name for history in histories]
    for name, path in zip(names, files, strict=True):
        if names.count(name) > 1:
            raise BadInput(
                f"{path}: two histories have the name {name!r}: rename one of them, because each line names its history"
            )
    return histories
