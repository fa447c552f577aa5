"""The command `spec simulate`: random behaviours of a model."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.markup import escape

from ...terminal import EXITS, STYLES, results, steps
from ..models import constants_given, one_model
from ..options import Configuration, Constants, Deadlock, Memory, ModelName, Timeout
from ..printing import count_of, expected_of, print_counterexample
from ..tlc import asking_tlc, reporter, tools_with


def simulate_model(
    model: ModelName,
    behaviours: Annotated[int, typer.Option(min=1, help="The number of random behaviours.")] = 1000,
    depth: Annotated[int, typer.Option(min=1, help="The largest number of states in a behaviour.")] = 100,
    seed: Annotated[int, typer.Option(help="The seed of the random behaviours.")] = 0,
    constant: Constants = None,
    config: Configuration = None,
    deadlock: Deadlock = True,
    timeout: Timeout = None,
    memory: Memory = None,
) -> None:
    """Walk random behaviours of a model that is too large for a search, and check them against its properties.

    If the walk isn't finished within --timeout, the result is inconclusive: exit 2.
    """
    from .....specs import pytla
    from .....specs.checking import as_found

    one = one_model(model, constants_given(constant), config, deadlock)
    tools = tools_with(memory)
    with steps() as progress, asking_tlc(one.name):
        try:
            simulation = pytla.simulate(
                one.model,
                tools,
                behaviours=behaviours,
                depth=depth,
                seed=seed,
                timeout=timeout,
                progress=reporter(one.name, progress),
            )
            found, walked = as_found(simulation.result), simulation.behaviours
        except pytla.DeadlockReached as reached:
            found, walked = as_found(reached.result), ()
    lengths = [len(behaviour) for behaviour in walked]
    walk = count_of(len(walked), "behaviour")
    if lengths:
        walk += f" of {min(lengths)} to {max(lengths)} states"
    wanted = one.entry if one.fails else None
    if found.passed:
        verdict = "inconclusive" if wanted else "conforms"
        search = f"; {expected_of(wanted)} was expected, and a search would find it" if wanted else ""
        said = f"no property is violated in them{search}"
    else:
        met = wanted is not None and (found.result, found.violated) == (wanted.result, wanted.violated)
        verdict = "conforms" if met else "violated"
        said = found.verdict + (", as it should" if met else "")
    results.print(
        f"[{STYLES[verdict]}]{verdict}[/] {escape(one.name)}: {walk}; {escape(said)}; "
        f"seed {seed}; {found.seconds:.1f} s"
    )
    if verdict == "violated":
        print_counterexample(found, one.model.module)
    raise typer.Exit(EXITS[verdict])
