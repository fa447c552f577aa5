"""Play histories on a broker, count the stale results, and check whether the results stay stale."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....reference.core.history import History
from ....specs.races import RACES
from ....specs.traces import JoinTrace
from ...witnesses.kafka.versions import version_in_use
from ...witnesses.kafka_broker.application import Application, Settings, running
from ...witnesses.kafka_broker.broker import Cluster
from ...witnesses.kafka_broker.clients import clients_of
from ...witnesses.kafka_broker.cohort import Pauses, Timing, play, tables
from .judging import KINDS, Stale, counted, expected, judged, smallest
from .races import PlayedHistories
from .recording import recorded
from .shrinking import Shrunk, shrink

SayStep = Callable[[str], None]


@dataclass(frozen=True)
class RacePlan:
    """How to play histories: the settings, and further steps, after each of which the results are judged again.

    Attributes:
        settings: The settings of the application.
        pauses: The range of the random pause before each change.
        seed: The seed of the pauses.
        wait_seconds: The time to wait (s); 0 for no wait.
        restart: Whether the application is restarted.
        wipe: Whether the application's state is deleted and restored.
        record: Whether the application's topics are recorded as a trace before the further steps.
    """

    settings: Settings = field(default_factory=Settings)
    pauses: Pauses = field(default_factory=Pauses)
    seed: int = 0
    wait_seconds: float = 0
    restart: bool = False
    wipe: bool = False
    record: bool = False


@dataclass
class RaceAnswer:
    """The result of all plays of a race or history file.

    Attributes:
        played: The histories.
        stale: The histories whose result at the end was stale (not the join of their tables).
        after: The number of stale histories after each further step, by the step's name.
        shrunk: The shrunk stale history of each kind of difference; empty for races, which are already small.
    """

    played: PlayedHistories
    stale: list[Stale]
    after: dict[str, int] = field(default_factory=dict)
    shrunk: dict[str, Shrunk] = field(default_factory=dict)

    @property
    def smallest(self) -> dict[str, Stale]:
        """Return the stale history with the fewest records for each kind of difference."""
        return {**smallest(self.stale), **{kind: one.stale for kind, one in self.shrunk.items()}}

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON."""
        kinds = counted(self.stale)
        return {
            "race": self.played.name,
            "histories": len(self.played.histories),
            "stale": len(self.stale),
            "after": self.after,
            "kinds": {kind: kinds[kind] for kind in KINDS if kinds[kind]},
            "smallest": {
                kind: {"history": one.history.to_text().splitlines(), "expected": one.expected, "actual": one.actual}
                for kind, one in self.smallest.items()
            },
        }


@dataclass
class RacesPlayed:
    """The races of a run, and their results.

    Attributes:
        answers: The results, in the order of the names.
        timing: The time for which each history was played.
        seconds: The time of the whole run (s), including the start and the end of the application.
        trace: The trace of the application's topics, if requested.
    """

    answers: list[RaceAnswer]
    timing: Timing
    seconds: float = 0
    trace: JoinTrace | None = None

    @property
    def verdict(self) -> str:
        """Return `violated` if a result is stale, otherwise `conforms`."""
        return "violated" if any(answer.stale for answer in self.answers) else "conforms"

    @property
    def histories(self) -> int:
        """Return the number of played histories."""
        return sum(len(answer.played.histories) for answer in self.answers)

    def to_json(self, plan: RacePlan) -> dict[str, Any]:
        """Return the report as JSON."""
        return {
            "verdict": self.verdict,
            "kafka_version": version_in_use(),
            "settings": {**vars(plan.settings), "pause_ms": list(plan.pauses), "seed": plan.seed},
            "races": [answer.to_json() for answer in self.answers],
            "seconds": {
                "sending": round(self.timing.sending, 3),
                "to_quiet": round(self.timing.quiet, 3),
                "in_all": round(self.seconds, 3),
            },
            "late_ms": self.timing.late_ms,
        }


def run(played: Sequence[PlayedHistories], plan: RacePlan, cluster: Cluster | None, progress: SayStep) -> RacesPlayed:
    """Play histories concurrently, each under its own keys, and judge their results.

    Args:
        played: The histories, the same number under each name.
        plan: The settings of the run.
        cluster: A running cluster; None for a broker started by this process.
        progress: A function that is called with each step's description.

    Raises:
        MissingTool: Jars can't be downloaded, or there is no Java.
        StreamproofError: The broker or the application doesn't start, fails, or refuses a record; or some records
            aren't processed.
    """
    began = time.monotonic()
    turns = zip(*(one.histories for one in played), strict=True)
    # Alternate the races, so that each race also runs at the start, before the JVM has compiled the code.
    histories = [history for turn in turns for history in turn]
    with clients_of(cluster, progress) as clients:
        progress("starting Kafka Streams")
        with running(clients, plan.settings) as application:
            timing = play(application, histories, plan.pauses, plan.seed, progress)
            progress("judging")
            found = _judged(application, histories)
            answers = [
                RaceAnswer(one, [stale for stale in found[index :: len(played)] if stale is not None])
                for index, one in enumerate(played)
            ]
            trace = recorded(application) if plan.record else None
            for name, step in _steps(application, plan):
                progress(f"looking again {name}")
                step()
                application.await_quiet()
                found = _judged(application, histories)
                for index, answer in enumerate(answers):
                    answer.after[name] = sum(stale is not None for stale in found[index :: len(played)])
            unused = len(histories)

            def ask(further: Sequence[History]) -> list[Stale | None]:
                """Play more histories, under unused keys, and judge the results."""
                nonlocal unused
                first, unused = unused, unused + len(further)
                play(application, further, plan.pauses, plan.seed, first=first)
                return _judged(application, further, first)

            for answer in answers:
                for kind, one in smallest(answer.stale).items() if answer.played.name not in RACES else ():
                    progress(f"shrinking: {kind}")
                    answer.shrunk[kind] = shrink(one, kind, ask)
    return RacesPlayed(answers, timing, time.monotonic() - began, trace)


def _steps(application: Application, plan: RacePlan) -> list[tuple[str, Callable[[], None]]]:
    steps: list[tuple[str, Callable[[], None]]] = []
    if plan.wait_seconds:
        steps.append((f"after {plan.wait_seconds:g} s", lambda: time.sleep(plan.wait_seconds)))
    if plan.restart:
        steps.append(("after a restart", application.restart))
    if plan.wipe:
        steps.append(("after wiping the state", lambda: application.restart(wiped=True)))
    return steps


def _judged(application: Application, histories: Sequence[History], first: int = 0) -> list[Stale | None]:
    # Compute expected tables once per object, because a race repeats the same history object.
    wanted = {key: expected(history) for key, history in {id(one): one for one in histories}.items()}
    found = tables(application.output(), histories, first)
    return [
        judged(history, {key: value for key, (value, _) in rows.items()}, wanted[id(history)])
        for history, rows in zip(histories, found, strict=True)
    ]
