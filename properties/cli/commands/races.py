"""The command `broker-races`, which counts the histories in which Kafka's foreign-key join ends stale on a real
broker.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ....reference.core.errors import BadInput
from ...system import signals
from ...system.outputs import TRACE, require_replaceable
from ...witnesses.kafka.versions import use_version, version_in_use
from ..options import KafkaVersion, Seed
from ..spec.files import write_text
from ..terminal import EXITS, STYLES, messages, results, steps, titled_table

if TYPE_CHECKING:
    from ...models.broker.run import RaceAnswer, RacePlan, RacesPlayed
    from ...witnesses.kafka_broker.cohort import Pauses

Join = StrEnum("Join", {"INNER": "inner", "LEFT": "left", "INNER_BY_LEFT": "inner-by-left"})
"""The joins in `witnesses.kafka_broker.application.JOINS`."""
Guarantee = StrEnum("Guarantee", {"AT_LEAST_ONCE": "at_least_once", "EXACTLY_ONCE": "exactly_once_v2"})
"""The processing guarantees of Kafka Streams."""
Names = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="[RACE]…",
        help="Races by name, such as delete-insert; `drawn` for random histories; or history files of "
        "foreign_key_join (.jsonl). All races by default.",
    ),
]
Count = Annotated[int, typer.Option(min=1, max=1_000_000, help="The number of histories to play under each name.")]
PauseMs = Annotated[
    str, typer.Option(metavar="LEAST:MOST", help="The pause of a history before each change, in ms; 0:0: back to back.")
]
OfJoin = Annotated[
    Join, typer.Option(help="inner-by-left is a left join whose joiner returns null for a missing right row.")
]
CommitMs = Annotated[int, typer.Option(min=1, help="The commit interval in ms; Kafka Streams' own default is 30000.")]
CacheBytes = Annotated[
    int, typer.Option(min=0, help=("The cache size in bytes; Kafka Streams' own default is 10485760."))
]
Guaranteed = Annotated[Guarantee, typer.Option(help="The processing guarantee of Kafka Streams.")]
Partitions = Annotated[int, typer.Option(min=1, max=64, help="The partitions of each topic.")]
Threads = Annotated[int, typer.Option(min=1, max=64, help="The threads of Kafka Streams.")]
LingerMs = Annotated[
    int | None,
    typer.Option(
        min=0, help=("The time that Kafka Streams' producer waits for more records, in ms; its own default is 100.")
    ),
]
Wait = Annotated[float, typer.Option(min=0, help="Compare the results again after this number of seconds.")]
Restart = Annotated[bool, typer.Option("--restart", help="Compare the results again after a restart of Kafka Streams.")]
Wipe = Annotated[
    bool,
    typer.Option(
        "--wipe", help=("Compare the results again after Kafka Streams' state has been removed and restored.")
    ),
]
Bootstrap = Annotated[
    str | None,
    typer.Option(metavar="HOST:PORT", help="An existing cluster; by default a broker starts on this machine."),
]
ClientConfig = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Client properties for the existing cluster, such as credentials.")
]
TraceFile = Annotated[
    Path | None,
    typer.Option(metavar="TRACE.jsonl", help="Write the topics' records as a trace, for `spec validate`."),
]
Force = Annotated[bool, typer.Option("--force", help="Replace a file that streamproof didn't make.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the report as JSON.")]


def races(
    names: Names = None,
    histories: Count = 1000,
    pause_ms: PauseMs = "0:0",
    join: OfJoin = Join.INNER,
    commit_interval_ms: CommitMs = 100,
    cache_bytes: CacheBytes = 0,
    guarantee: Guaranteed = Guarantee.AT_LEAST_ONCE,
    partitions: Partitions = 1,
    threads: Threads = 1,
    linger_ms: LingerMs = None,
    wait_seconds: Wait = 0,
    restart: Restart = False,
    wipe: Wipe = False,
    bootstrap: Bootstrap = None,
    client_config: ClientConfig = None,
    record: TraceFile = None,
    force: Force = False,
    kafka_version: KafkaVersion = None,
    seed: Seed = 0,
    as_json: AsJson = False,
) -> None:
    """Play races of the foreign-key join on a real Kafka broker, and count the results that stay stale.

    Exits 0 if every result is the join of its tables, 1 if a result is stale, and 3 if the broker couldn't run.
    """
    from ...models.broker.races import chosen
    from ...models.broker.recording import require_recordable
    from ...models.broker.run import RacePlan, run
    from ...witnesses.kafka_broker.application import Settings
    from ...witnesses.kafka_broker.broker import existing_cluster

    use_version(kafka_version)
    pauses, client = _pauses(pause_ms), _client_properties(client_config, bootstrap)
    played = chosen(names or [], histories, join, seed)
    settings = Settings(
        join=join.value,
        commit_interval_ms=commit_interval_ms,
        cache_bytes=cache_bytes,
        guarantee=guarantee.value,
        partitions=partitions,
        threads=threads,
        linger_ms=linger_ms,
        foreign_key=str(played[0].histories[0].options["foreign_key"]),
        keeps_messages=record is not None,
    )
    if record is not None:
        require_recordable(settings)
        require_replaceable(record, TRACE, force)
    plan = RacePlan(settings, pauses, seed, wait_seconds, restart, wipe, record is not None)
    cluster = None if bootstrap is None else existing_cluster(bootstrap, client)
    with signals.interrupting(), steps() as progress:
        report = run(played, plan, cluster, progress)
    if record is not None and report.trace is not None:
        write_text(record, report.trace.to_text())
        messages.out(f"{record}: a trace of {len(report.trace.events):,} events")
    if as_json:
        print(json.dumps(report.to_json(plan)))
    else:
        _print(report, plan)
    raise typer.Exit(EXITS[report.verdict])


def _client_properties(path: Path | None, bootstrap: str | None) -> dict[str, str]:
    """Read the client properties for an existing cluster."""
    from ...witnesses.kafka_broker.broker import read_client_properties

    if path is not None and bootstrap is None:
        raise BadInput("--client-config is for an existing cluster: name the cluster with --bootstrap")
    return {} if path is None else read_client_properties(path)


def _pauses(text: str) -> Pauses:
    from ...witnesses.kafka_broker.cohort import Pauses

    least, _, most = text.partition(":")
    if not (least.isdecimal() and (most or least).isdecimal()) or int(least) > int(most or least) or len(text) > 20:
        raise BadInput(f"--pause-ms {text!r}: give the minimum and the maximum in milliseconds, such as 0:500")
    return Pauses(int(least), int(most or least))


def _print(report: RacesPlayed, plan: RacePlan) -> None:
    from ...models.broker.races import changes_of

    later = list(report.answers[0].after)
    title = f"foreign-key join ({plan.settings.join}) of Kafka Streams {version_in_use()} on a broker"
    table = titled_table(title, "race", "changes", "histories", "stale", "share", *later, "how")
    for answer in report.answers:
        stale, count = len(answer.stale), len(answer.played.histories)
        table.add_row(
            answer.played.name,
            changes_of(answer.played.name),
            f"{count:,}",
            f"[{STYLES['violated' if stale else 'conforms']}]{stale:,}[/]",
            f"{stale / count:.1%}",
            *(f"{answer.after[step]:,}" for step in later),
            _how(answer),
        )
    results.print(table)
    for answer in report.answers:
        if not changes_of(answer.played.name):
            _print_smallest(answer)
    timing = report.timing
    rate = report.histories / timing.quiet if timing.quiet else 0
    late = f", the latest change {timing.late_ms:,} ms after it was due" if any(plan.pauses) else ""
    results.out(
        f"{report.histories:,} histories until nothing moved: {timing.quiet:.1f} s, {rate:,.0f} a second{late}; "
        f"{report.seconds:.0f} s in all, seed {plan.seed}."
    )
    stale = sum(len(answer.stale) for answer in report.answers)
    results.print(f"[{STYLES[report.verdict]}]{report.verdict}[/]: {stale:,} of {report.histories:,} results are stale")


def _how(answer: RaceAnswer) -> str:
    from ...models.broker.judging import counted

    kinds = counted(answer.stale)
    return ", ".join(kind if len(kinds) == 1 else f"{kind}: {count:,}" for kind, count in kinds.items())


def _print_smallest(answer: RaceAnswer) -> None:
    from ...models.broker.shrinking import REPEATS

    for kind, one in answer.smallest.items():
        again = f", stale in {answer.shrunk[kind].times} of {REPEATS}" if kind in answer.shrunk else ""
        results.print(f"{answer.played.name}, {kind}: the smallest history{again}", markup=False)
        lines = [*one.history.to_text().splitlines(), f"expected {dict(one.expected)}", f"actual   {dict(one.actual)}"]
        results.out("\n".join(f"  {line}" for line in lines))
