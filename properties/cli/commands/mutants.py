"""The command `mutants`: checks that the laws kill every mutant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ....reference.core.errors import BadInput
from ...system import signals
from ..options import Master, Partitions, Seed, Shared
from ..terminal import results, steps, titled_table
from ..witnesses import start_spark
from .check import JOBS_FOLDER
from .job import JobOptions, check_one_job, takes_job

if TYPE_CHECKING:
    from ...checking.mutation import Kill


HISTORIES = 100


@takes_job
def mutants(
    operator: Annotated[
        str,
        typer.Argument(
            metavar="OPERATOR|MODULE:JOB", help="The operator, such as session_windows; or a job of your own."
        ),
    ],
    job: JobOptions,
    names: Annotated[list[str] | None, typer.Argument(help="Mutants; all by default.")] = None,
    histories: Annotated[
        int | None,
        typer.Option(
            min=1, help="The number of random histories to check each mutant on: 100 by default, 300 for a job."
        ),
    ] = None,
    seed: Seed = 0,
    rounds: Annotated[int, typer.Option(min=0, help="Rounds of shrinking.")] = 4,
    master: Master = None,
    partitions: Partitions = None,
    shared: Shared = None,
) -> None:
    """Check mutants against the laws, or against the test of your own job: a surviving mutant is a gap in the test."""
    from ...checking.mutation import check_mutants, chosen

    if ":" in operator:
        if job.expect is None:
            raise BadInput(f"{operator} needs --expect: its mutants are compared with the expected rows")
        start_spark(master, partitions, shared)
        check_one_job(operator, job, seed, JOBS_FOLDER, mutants=True)
    if job.given:
        raise BadInput(f"--{job.given[0]} is for a job of your own: name the job, as module:function")
    histories = HISTORIES if histories is None else histories
    selected = chosen(operator, names or [])
    start_spark(master, partitions, shared)
    kills: dict[str, Kill] = {}
    try:
        with signals.interrupting(), steps() as progress:
            check_mutants(selected, histories, seed, progress, rounds, kills)
    except BaseException:
        # Report the kills so far, even if the check fails.
        if signals.received():
            signals.leave()
        _print_kills(operator, [*kills.values()], seed, finished=False)
        raise
    survivors = _print_kills(operator, [*kills.values()], seed, finished=True)
    _print_kills_alone([*kills.values()], seed)
    raise typer.Exit(1 if survivors else 0)


def _print_kills_alone(kills: Sequence[Kill], seed: int) -> None:
    """Print how many mutants each law kills, and kills alone, and list the mutants that survived or were killed too
    rarely.
    """
    from ...report.kills import laws_not_asked, rare, shrunk_sentence, survivors, worth_of_laws

    table = titled_table("laws by mutants", "law", "kills", "alone", "which, or why it stays")
    for one in worth_of_laws(kills):
        table.add_row(one.law, str(one.kills), str(len(one.alone)), one.why)
    for law, why in laws_not_asked(kills).items():
        table.add_row(law, "not asked", "", why)
    results.print(table)
    if shrunk := shrunk_sentence(kills):
        results.print(shrunk, markup=False)
    for line in map(str, rare(kills, seed)):
        results.out(line, style="yellow")
    for line in survivors(kills):
        results.out(line, style="bold red")


def _print_kills(operator: str, kills: Sequence[Kill], seed: int, finished: bool) -> list[str]:
    """Print the result of each mutant; return the names of the mutants that survived, or aren't killed yet."""
    table = titled_table(operator, "mutant", "killed by", "in histories", "shrunk to", "also by", "what is wrong")
    for kill in kills:
        if kill.law is None:
            law = "[bold red]survived[/]" if finished else "[yellow]not finished[/]"
            count, length, others = f"0 of {max(kill.judged.values(), default=0)}", "", ""
        else:
            law, smallest = kill.law, kill.shrunk or kill.smallest(kill.law)
            count = f"{kill.laws[law]} of {kill.judged[law]}"
            length = f"{len(smallest.records)} records{'' if kill.shrunk else ', as drawn'}"
            others = ", ".join(sorted(other for other in kill.laws if other != law))
        table.add_row(kill.mutant.name, law, count, length, others, kill.mutant.sentence)
    results.print(table)
    survivors = [kill.mutant.name for kill in kills if not kill.killed]
    until = "" if finished else " until then"
    results.print(f"{len(kills) - len(survivors)} of {len(kills)} mutants killed{until}, seed {seed}.", markup=False)
    return survivors
