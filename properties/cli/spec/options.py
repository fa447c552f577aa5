"""The options of the commands of `spec`."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

Cover = StrEnum("Cover", "EDGES ALL RANDOM")  # the behaviours to replay
SizeChoice = StrEnum("SizeChoice", "SMALL LARGE ALL")  # the models to check
ReplayedOn = StrEnum("ReplayedOn", "REFERENCE SPARK KAFKA")  # the code for the replay

# Options of several commands.

Constants = Annotated[
    list[str] | None,
    typer.Option(
        "--constant", metavar="NAME=VALUE", help="Another value of a constant, as TLA+ writes it; may be repeated."
    ),
]
Timeout = Annotated[float | None, typer.Option(min=1, metavar="SECONDS", help="The time limit of TLC for a model.")]
Memory = Annotated[
    int | None,
    typer.Option("--memory", min=1, metavar="MIB", help="TLC's heap; a quarter of the machine's memory by default."),
]
Force = Annotated[
    bool,
    typer.Option(
        "--force", help=("Replace files that streamproof didn't create, and accept file names with other endings.")
    ),
]
ModelName = Annotated[
    str, typer.Argument(metavar="MODEL", help="A model of `spec list`, such as ForeignKeyJoin, or a .tla file.")
]
Configuration = Annotated[
    Path | None, typer.Option("--config", help="The configuration of your own module; by default the .cfg next to it.")
]
Deadlock = Annotated[
    bool,
    typer.Option(
        "--deadlock/--no-deadlock", help="Whether a state without a next state is an error, in a module of your own."
    ),
]
Covered = Annotated[
    Cover, typer.Option(help="Every edge of the state graph at least once, every behaviour, or random behaviours.")
]
Behaviours = Annotated[int, typer.Option(min=1, help="The number of behaviours for --cover random.")]
WalkSeed = Annotated[int, typer.Option(help="The seed of the random behaviours.")]

# Options of `spec check`.

ModelNames = Annotated[
    list[str] | None,
    typer.Argument(metavar="[MODEL]...", help="Models, or .tla files of your own; all small models by default."),
]
Size = Annotated[SizeChoice, typer.Option(help="The models to check if no model is named.")]
Workers = Annotated[
    int, typer.Option(min=1, help="TLC's threads; with more than one, counts vary and aren't compared.")
]
Jobs = Annotated[
    int | None,
    typer.Option(min=1, help="The number of models checked at a time; by default as many as the cores allow."),
]
WithTraces = Annotated[bool, typer.Option("--trace", help="Print expected counterexamples step by step, too.")]
ChartFile = Annotated[
    Path | None, typer.Option(metavar="FILE.svg", help="Draw the counterexample of the only checked model.")
]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE.json", help="Write the results as JSON, too.")]

# Options of `spec replay`.

On = Annotated[ReplayedOn, typer.Option("--on", help="The code on which the behaviours are replayed.")]
Histories = Annotated[
    Path | None, typer.Option(metavar="FOLDER", help=("Write the behaviours into this folder, as history files."))
]
Findings = Annotated[Path, typer.Option("--findings", help="The folder for the history of a disagreement.")]
