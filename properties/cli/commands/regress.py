"""The commands of `regress`, which record a witness's answers, and check another witness against the recording."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....reference.core.errors import BadInput
from ...system.visible import visible
from ...witnesses.kafka.versions import use_version
from ..options import KafkaVersion, Seed, files_of
from ..terminal import EXITS, STYLES, messages, print_divergences, results
from ..witnesses import ON_SPARK, WitnessName, counted, evaluated

regress = typer.Typer(
    help="Record a witness's answers, and check a witness of today against them.", no_args_is_help=True
)


@regress.command("record")
def regress_record(
    folder: Annotated[Path, typer.Argument(help="Folder for the recordings, one file for each definition.")],
    operators: Annotated[list[str] | None, typer.Argument(help="Operators; all of the witness by default.")] = None,
    on: Annotated[WitnessName, typer.Option(help="The witness that answers.")] = WitnessName.REFERENCE,
    histories: Annotated[int, typer.Option(min=1, help="The least number of histories of each operator.")] = 100,
    seed: Seed = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace recordings that differ.")] = False,
    kafka_version: KafkaVersion = None,
) -> None:
    """Record a witness's answers to random histories, to check other witnesses on machines that lack the recorded
    witness.

    Only with --force, an existing recording that differs is replaced.
    """
    from ....reference.core.operator import OPERATORS, operator_named
    from ...report.recordings import drawn, record, recording, refuse_others
    from ...witnesses.by_name import witness_named

    use_version(kafka_version)
    clock = "batch" if on in ON_SPARK else "stream_time"
    texts: dict[Path, str] = {}
    for operator in [operator_named(name).name for name in operators or OPERATORS]:
        for profile, of_profile in drawn(operator, histories, seed, clock, witness_named(on).refuses).items():
            path = folder / f"{operator}-{profile.replace(', ', '-').replace(' ', '-')}.jsonl"
            texts[path] = recording(on.value, of_profile, evaluated(of_profile, on), seed)
    if not texts:
        raise BadInput(f"{on.value} answers none of {', '.join(operators or OPERATORS)}: choose another witness")
    same = [] if force else refuse_others(texts, seed)
    counts = {path: text.count("\n") for path, text in texts.items()}
    for path, text in texts.items():
        if path not in same:
            record(path, text)
        note = ", recorded before" if path in same else ""
        messages.out(f"{path}: {counted(counts[path])}{note}")
    results.print(f"{sum(counts.values()):,} histories recorded on {on.value}, seed {seed}.", markup=False)


@regress.command("check")
def regress_check(
    paths: Annotated[list[Path], typer.Argument(help="Recordings or folders of them (*.jsonl).", metavar="RECORDING…")],
    on: Annotated[WitnessName, typer.Option(help="The witness that is checked.")] = WitnessName.REFERENCE,
    kafka_version: KafkaVersion = None,
) -> None:
    """Check a witness against recorded answers, and accept the named divergences of a recorded Kafka Streams."""
    from ...counterexamples.text import side_by_side
    from ...report.recordings import compare_recorded

    use_version(kafka_version)
    comparison = compare_recorded(files_of(paths, "recordings"), lambda histories: evaluated(histories, on))
    for history, found, now, before in comparison.mismatches[:3]:
        keys = {difference.key for difference in found} | {record.key for record in history.records}
        sides = side_by_side((on.value, now), ("recorded", before), keys)
        results.out(visible(history.name), history.to_text(), *sides, sep="\n")
    print_divergences(comparison.divergences)
    verdict = "violated" if comparison.mismatches else "conforms" if comparison.histories else "inconclusive"
    results.print(
        f"[{STYLES[verdict]}]{verdict}[/]: {comparison.histories:,} recorded histories; {on.value} answers "
        f"{len(comparison.mismatches):,} of them differently."
    )
    raise typer.Exit(EXITS[verdict])
