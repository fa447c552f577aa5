"""The command `divergences`: lists where Kafka Streams contradicts its documents, and where Spark contradicts the
written plan.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from ....reference.core.errors import BadInput
from ...system.installed.requirements import installed
from ...witnesses.kafka.versions import use_version
from ..options import KafkaVersion
from ..terminal import EXITS, StepDisplay, results, steps

REPAIRED = "repaired"


class System(StrEnum):
    """A system with named divergences."""

    KAFKA = "kafka"
    SPARK = "spark"


if TYPE_CHECKING:
    from ...checking.fuzzing.divergences import Divergence
    from ...models.races import Raced
    from ...witnesses.kafka.divergences import KafkaDivergence
    from ...witnesses.kafka.releases import ReleaseAnswer


def divergences(
    names: Annotated[list[str] | None, typer.Argument(help="Divergences; all by default.")] = None,
    table: Annotated[
        bool,
        typer.Option("--table", help="Print a table of all releases of Kafka Streams, or of the given versions."),
    ] = False,
    kafka_version: KafkaVersion = None,
    spark_version: Annotated[
        list[str] | None,
        typer.Option(
            "--spark-version",
            metavar="VERSION",
            help="A PySpark, such as 4.1.4; may be repeated. The installed PySpark by default.",
        ),
    ] = None,
    on: Annotated[System, typer.Option(help="The system: kafka, or spark's streaming plans.")] = System.KAFKA,
) -> None:
    """List where the real Kafka Streams contradicts its documents, each with its smallest history.

    With --on spark, list where Spark runs a streaming plan differently from its text, and whether the installed Spark
    does so. Each --spark-version is installed into its own environment, and tested there. Exits 0.

    Each divergence is shown on stores in memory and on RocksDB. Without names, the command also lists the races of the
    foreign-key join, with the number of message orders that stay wrong forever. Exits 0 if Kafka shows the known
    divergences of the release, 1 if Kafka doesn't, 2 if Kafka Streams can't run here.
    """
    from ...witnesses.kafka.divergences import chosen
    from ...witnesses.kafka.releases import verdict_of
    from ...witnesses.kafka.versions import RELEASES, version_in_use

    if on is System.SPARK:
        _of_spark(names or [], spark_version or [], table=table)
        return
    if spark_version:
        raise BadInput("--spark-version is for --on spark: name a release of Kafka Streams by --kafka-version")
    use_version(kafka_version)
    version = version_in_use()
    wanted = chosen(names or [], None if table else version)
    versions = RELEASES if table and kafka_version is None else (version,)
    with steps() as progress:
        asked = {one: _asked(one, wanted, with_races=not names, progress=progress) for one in versions}
    every = [answer for one in asked.values() for answers in one.answers.values() for answer in answers]
    if table:
        _print_table(wanted, asked, every)
    else:
        results.out(*_texts(asked[version], version), sep="\n\n")
    as_known = [bool(race.wrong) == known for one in asked.values() for race, known in one.races]
    raise typer.Exit(EXITS[verdict_of(every) if all(as_known) else "violated"])


def _of_spark(names: list[str], versions: list[str], *, table: bool) -> None:
    """Print the named divergences of Spark's plans, and the versions that show them on the fuzzer's corpus."""
    from ...checking.fuzzing.divergences import ALL
    from ...system.installed.environments import python_of, require_supported

    known = {one.name: one for one in ALL}
    if unknown := [name for name in names if name not in known]:
        raise BadInput(f"there is no divergence {unknown[0]!r} of Spark: give one of {', '.join(known)}")
    for version in versions:
        require_supported("--spark-version", version)
    asked = [known[name] for name in names or known]
    found: dict[str, list[str]] = {}
    versions = versions or [installed("pyspark")]
    for version in versions:
        with steps() as progress:
            progress(f"starting PySpark {version}")
            for one, says in zip(asked, _shown_by(python_of(version), version, asked, progress), strict=True):
                found.setdefault(one.name, []).append(says)
                if not table:
                    at = f"before PySpark {version}" if says == REPAIRED else f"on PySpark {version}"
                    results.out(f"{one.name} ({one.issue}): {says} {at}\n  {one.says}\n  Remedy: {one.remedy}.")
    if table:
        results.out(*_table("divergence", versions, found.items()), sep="\n")


def _shown_by(python: Path, version: str, asked: list[Divergence], progress: StepDisplay) -> Iterator[str]:
    """Yield `seen`, `not seen` or `repaired` for each divergence on a version of PySpark."""
    from ...checking.fuzzing.campaign import HISTORIES
    from ...checking.fuzzing.corpus import SHOW, seeds_of
    from ...checking.fuzzing.seeds import Begin, Seed
    from ...witnesses.job.other_pyspark import PySparkProcess

    with PySparkProcess(python, version, Begin({})) as process:
        for one in asked:
            if not one.is_of(process.version):
                yield REPAIRED
                continue
            plan = SHOW[one.name]
            progress(f"running the plan {plan!r} on PySpark {process.version}")
            answers = (process.ask(Seed(seed, HISTORIES, shrinks=False)) for seed in seeds_of(plan))
            found = (name for answer in answers for difference in answer.differences for name in difference.named)
            yield "seen" if one.name in found else "not seen"


def _table(title: str, versions: Iterable[str], rows: Iterable[tuple[str, Sequence[str]]]) -> list[str]:
    """Return the lines of a table in Markdown, with a cell for each version."""
    lines = [(title, versions), *rows]
    head, *body = (f"| {name} | {' | '.join(cells)} |" for name, cells in lines)
    return [head, "|---" * (head.count(" | ") + 1) + "|", *body]


class _Asked(NamedTuple):
    """The divergences and races on a release, and for each whether its result is the known result."""

    answers: dict[KafkaDivergence, list[ReleaseAnswer]]
    races: list[tuple[Raced, bool]]


def _asked(version: str, wanted: list[KafkaDivergence], with_races: bool, progress: StepDisplay) -> _Asked:
    from ...models.races import races_of
    from ...witnesses.kafka.jvm import stop_kafka
    from ...witnesses.kafka.releases import answers

    progress(f"asking Kafka Streams {version}")
    asked = {divergence: answers(divergence, version) for divergence in wanted}
    is_here = all(answer.kafka is not None for each in asked.values() for answer in each)
    races = races_of(version) if with_races and is_here else []
    stop_kafka(version)
    return _Asked(asked, races)


def _texts(asked: _Asked, version: str) -> Iterator[str]:
    yield from (_shown(*one, version) for one in asked.answers.items())
    if asked.races:
        lines = [f"Races of the foreign-key join, of all orders of messages, on Kafka Streams {version}:"]
        for raced, known in asked.races:
            unknown = f", although this race is known {'to' if known else 'not to'} end wrong there"
            as_known = "" if bool(raced.wrong) == known else unknown
            lines.append(f"  {raced.race.name}: {raced.wrong:,} of {raced.played:,} end wrong{as_known}")
        yield "\n".join(lines)


def _silence(divergence: KafkaDivergence, expected: bool) -> str:
    if expected:
        return "no longer shows this divergence"
    repaired = f", and was repaired in {' and '.join(divergence.fixed_in)}" if divergence.fixed_in else ""
    return f"doesn't show this divergence, which is known since {divergence.since}{repaired}"


def _shown(divergence: KafkaDivergence, asked: list[ReleaseAnswer], version: str) -> str:
    from ...counterexamples.text import side_by_side

    setting = "" if divergence.setting == "plain" else f" Shown with: {divergence.setting}."
    lines = [
        f"{divergence.name} ({divergence.operator})",
        f"  Kafka Streams: {divergence.sentence}. Source: {divergence.source}.{setting}",
    ]
    alike = all(one.history == asked[0].history and one.kafka == asked[0].kafka for one in asked)
    for answer in asked[:1] if alike else asked:
        stores = " and on ".join(one.stores for one in asked) if alike else answer.stores
        lines += [f"  Stores: {stores}.", *(f"    {line}" for line in answer.history.to_text().splitlines())]
        if answer.kafka is None:
            lines.append(f"  Kafka Streams can't be asked: {answer.why}")
            continue
        keys = {entry.output.key for outcome in (answer.reference, answer.kafka) for entry in outcome.entries}
        lines += side_by_side(("reference", answer.reference), (f"Kafka Streams {version}", answer.kafka), keys)
        if not answer.shows:
            lines.append(f"  Kafka Streams {version} {_silence(divergence, answer.expected)}.")
        elif not answer.expected:
            lines.append(f"  Kafka Streams {version} shows this divergence, although it is known not to.")
    return "\n".join(lines)


def _print_table(wanted: list[KafkaDivergence], asked: dict[str, _Asked], every: list[ReleaseAnswer]) -> None:
    """Print the divergences that each release shows, as a table in Markdown."""
    from ...witnesses.kafka.releases import cell

    rows = [(f"`{one.name}`", [cell(each.answers[one]) for each in asked.values()]) for one in wanted]
    races = next((one.races for one in asked.values() if one.races), [])
    for index, (race, _) in enumerate(races):
        of_race = [one.races[index][0] if one.races else None for one in asked.values()]
        cells = ["?" if one is None else f"{one.wrong} of {one.played}" for one in of_race]
        rows.append((f"`{race.race.name}`", cells))
    results.out(*_table("divergence or race", asked, rows), sep="\n")
    for why in dict.fromkeys(answer.why for answer in every if answer.kafka is None):
        results.out(f"Kafka Streams can't be asked: {why}")
