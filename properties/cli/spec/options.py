"""The options that the commands of `spec` share."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

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


class Cover(StrEnum):
    """Which behaviours are taken."""

    EDGES = "edges"
    ALL = "all"
