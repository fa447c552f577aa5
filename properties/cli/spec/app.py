"""The commands of `streamproof spec`, for TLA+ models that TLC checks and that are replayed on the code."""

from __future__ import annotations

import typer

from .behaviours import behaviours_of
from .commands.check import check_models
from .commands.list import list_models
from .commands.prove import prove_specifications
from .commands.races import play_races
from .commands.replay import replay_model
from .commands.simulate import simulate_model
from .commands.validate import validate_traces

specs = typer.Typer(
    help="The TLA+ models of the protocols: check them with TLC, and replay their behaviours on the code. Exit codes: "
    "0 conforms, 1 violated, 2 inconclusive, 3 could not run.",
    no_args_is_help=True,
)


specs.command("list")(list_models)
specs.command("check")(check_models)
specs.command("simulate")(simulate_model)
specs.command("behaviours")(behaviours_of)
specs.command("replay")(replay_model)
specs.command("prove")(prove_specifications)
specs.command("races")(play_races)
specs.command("validate")(validate_traces)
