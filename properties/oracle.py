"""Holds the reference itself to its meaning, and to witnesses that nobody here wrote: a wrong oracle is worth nothing.

Every operator is drawn under several definitions (`shapes`), half of its histories under the batch clock with cuts,
half under stream time. A law must meet every situation under every definition that it judges, or it is inconclusive.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..reference.clocks import StreamTime
from ..reference.errors import BadInput, MissingTool
from ..reference.foreign_key_protocol import Protocol
from ..reference.histories import Delivery, History
from ..reference.joins import ForeignKeyJoin
from ..reference.operators import operator_named
from ..reference.play import play
from ..reference.records import Record, Table
from . import findings as finding_files
from .check import Progress, Report, hash_of
from .cohorts import clock_schedule
from .coverage import draw_covering, neighbours, neighbours_shown, situations_needed
from .divergences import explained
from .draws import Shape, draw_histories, under_stream_time
from .duckdb_witness import tables
from .findings import ALONE, Finding
from .laws import Law, LawResult, fold_is_meaning
from .outcomes import Difference, Grain, Outcome, differences, result_differences
from .recheck import Answer, answer_again
from .replays import of_check, replay
from .shapes import SHAPES
from .shrinking import shrink
from .situations import situations_of

Judge = Callable[[Sequence[History]], list[tuple[list[Difference], Outcome]]]
"""Says of each history where a witness parts from the reference, and what the witness said."""

SENTENCES = {
    "fold is meaning": "the reference's behaviour folds to its meaning after every batch",
    "duckdb": "DuckDB's statement of the definition gives the reference's result",
    "kafka": "the real Kafka Streams tells the reference's changelog, step by step, but for divergences with a name",
    "protocol": "messages delivered at once tell the reference's changelog",
    "schedules": "whatever the schedule of delivery, the join is right once no message waits",
}
WITNESSES = {
    "fold is meaning": "the meaning",
    "duckdb": "DuckDB",
    "kafka": "Kafka Streams",
    "protocol": "the protocol",
    "schedules": "the meaning",
}


def check_reference(
    operator: str,
    histories: int = 1000,
    seed: int = 0,
    folder: Path = finding_files.DEFAULT_FOLDER,
    progress: Progress = lambda step: None,
    report: Report | None = None,
) -> Report:
    """Hold the reference of an operator to every law that needs no Spark.

    Args:
        operator: The operator's name.
        histories: How many histories to draw, over all of its definitions.
        seed: What they are drawn from.
        folder: Where findings are written and read.
        progress: Called with the name of each step before it starts.
        report: Filled as the check goes, so that an interrupted one tells what it had; made when not given.

    Raises:
        BadInput: There is no such operator, a saved counterexample can't be read, or one can't be written.
    """
    operator_named(operator)
    report = report or Report(operator, [], seed, subject="the reference")
    started = time.monotonic()
    try:
        _Check(report, histories, seed, folder, progress).run()
    except BaseException:
        for result in report.results:
            result.unfinished = True
        raise
    finally:
        report.seconds = time.monotonic() - started
    return report


def drawn_under(operator: str, options: Any, quarter: int, seed: int) -> Iterator[History]:
    """Draw histories of a definition: by quarters under the batch clock or stream time, without and with null keys.

    Those under the batch clock have one schedule, on which the neighbours of the definition show.
    """
    schedule = clock_schedule(draw_covering(operator, options, quarter, seed).histories[0])
    for null_keys in (False, True):
        shape = Shape(options, schedule, operator=operator, null_keys=null_keys)
        for number, history in enumerate(draw_histories(shape, 2 * quarter, seed + null_keys)):
            named = replace(history, name=f"n{number}" if null_keys else history.name)
            yield named if number < quarter else under_stream_time(named)


class _Check:
    def __init__(self, report: Report, histories: int, seed: int, folder: Path, progress: Progress) -> None:
        self.report, self.histories, self.seed = report, histories, seed
        self.folder, self.progress = folder, progress

    def run(self) -> None:
        self.replay_saved()
        operator, shapes = self.report.operator, SHAPES[self.report.operator]
        drawn: dict[str, list[History]] = {}
        quarter = max(1, round(self.histories / len(shapes) / 4))
        for name, options in shapes.items():
            drawn[name] = list(drawn_under(operator, options, quarter, hash_of(self.seed, f"{operator} {name}")))
            self.report.histories += len(drawn[name])
        self.judge("fold is meaning", drawn, _by_meaning)
        self.judge("duckdb", drawn, _by_duckdb)
        if operator == "foreign_key_join":
            self.judge("protocol", drawn, _by_protocol)
            answered = {name: histories for name, histories in drawn.items() if _answers(histories[0])}
            self.judge("schedules", answered, _by_schedule, shrink_it=False, as_asked=self.scheduled)
        self.kafka(drawn)

    def replay_saved(self) -> None:
        """Ask about this check's saved counterexamples again, each by the law that it broke; no law is covered so."""
        mine = of_check(self.folder, self.report.operator, "reference")
        for one in replay(mine, JUDGES, self.progress, "reference"):
            result = self.result(one.law)
            result.judged += 1
            self.report.histories += 1
            if one.answer.differences:
                result.violations.append((one.history, one.answer.differences))
                seed = self.seed if one.metadata.seed is None else one.metadata.seed
                self.keep(one.law, one.history, one.answer, "", seed)

    def result(self, name: str) -> LawResult:
        """What a law says so far."""
        for result in self.report.results:
            if result.law.name == name:
                return result
        self.report.results.append(LawResult(Law(name, SENTENCES[name])))
        return self.report.results[-1]

    def kafka(self, drawn: dict[str, list[History]]) -> None:
        from .kafka_witness import refusal

        served: dict[str, list[History]] = {}
        for name, histories in drawn.items():
            asked = [history for history in histories if history.clock == "stream_time"]
            answered = [history for history in asked if refusal(history) is None]
            if 2 * len(answered) >= len(asked):  # what it refuses now and then it has no counterpart for
                served[name] = answered
        if served:
            try:
                self.judge("kafka", served, self.by_kafka)
            except MissingTool as missing:
                self.result("kafka").skipped = f"skipped: {missing}"

    def by_kafka(self, histories: Sequence[History]) -> list[tuple[list[Difference], Outcome]]:
        return _by_kafka(histories, self.report.divergences)

    def scheduled(self, history: History) -> History:
        """The history under a random schedule of delivery, the same for the same seed."""
        return scheduled_history(history, random.Random(hash_of(self.seed, history.to_text())))

    def judge(
        self,
        name: str,
        drawn: dict[str, list[History]],
        judge: Judge,
        shrink_it: bool = True,
        as_asked: Callable[[History], History] = lambda history: history,
    ) -> None:
        """Ask a law about histories by shape; the first violation is shrunk and becomes a finding.

        `as_asked` makes of a drawn history the one that the law is asked about, and that is kept.
        """
        needs = [
            f"{situation} ({shape})"
            for shape, histories in drawn.items()
            for situation in situations_needed(self.report.operator, histories[0].options, name == "kafka")
            if name != "kafka" or "null" not in situation  # Kafka tells no dropped record, and refuses some with nulls
        ]
        needs += [
            f"{neighbour.goal} ({shape})"
            for shape, histories in drawn.items()
            for neighbour in neighbours(self.report.operator, histories[0].options)
        ]
        result = self.result(name)
        result.law = replace(result.law, needs=tuple(needs))
        for shape, histories in drawn.items():
            self.progress(f"{name}: {len(histories)} histories, {shape}")
            asked = [as_asked(history) for history in histories]
            judged = judge(asked)
            result.judged += len(histories)
            met = situations_of(histories)
            if name == "fold is meaning":
                self.report.situations.update(met)
            met.update(neighbours_shown(histories))
            result.situations.update({f"{situation} ({shape})": count for situation, count in met.items()})
            for history, (found, outcome) in zip(asked, judged, strict=True):
                if found:
                    result.violations.append((history, found))
                    if len(result.violations) == 1:
                        self.found(name, history, found, outcome, judge, shrink_it)

    def found(
        self, name: str, history: History, found: list[Difference], outcome: Outcome, judge: Judge, shrink_it: bool
    ) -> None:
        """Shrink a violation, ask the law again about the smallest history alone, and keep it."""
        if shrink_it:
            history = shrink(history, lambda candidates: [bool(parted) for parted, _ in judge(candidates)])
        answer = answer_again(name, history, subject="reference")
        reference = ("reference", Outcome.of_play(history.name, play(history)))
        if not answer.differences:
            answer = Answer(reference, (WITNESSES[name], outcome), found)
            unconfirmed = ALONE
        else:
            unconfirmed = ""
        self.keep(name, history, answer, unconfirmed, self.seed)

    def keep(self, name: str, history: History, answer: Answer, unconfirmed: str, seed: int) -> None:
        """Write a counterexample, and note where."""
        finding = Finding(
            name,
            answer.sentence(SENTENCES[name]),
            history,
            answer.left,
            answer.right,
            answer.differences,
            not unconfirmed,
            seed,
            subject="reference",
            unconfirmed=unconfirmed,
        )
        self.report.found.append((finding, finding_files.save(finding, self.folder)))


def _by_meaning(histories: Sequence[History]) -> list[tuple[list[Difference], Outcome]]:
    judged = []
    for history in histories:
        played = play(history)
        meant = operator_named(history.operator).meaning(played.definition, played.accepted, played.clock)
        outcome = Outcome(history.name, Grain.END, final=meant, is_stream=played.definition.is_stream)
        judged.append((fold_is_meaning(history, played), outcome))
    return judged


def _by_duckdb(histories: Sequence[History]) -> list[tuple[list[Difference], Outcome]]:
    return [_against_reference(history, outcome) for history, outcome in zip(histories, tables(histories), strict=True)]


def _against_reference(history: History, outcome: Outcome) -> tuple[list[Difference], Outcome]:
    played = play(history)
    unordered = outcome.grain is Grain.END and played.definition.unordered
    return differences(Outcome.of_play(history.name, played), outcome, unordered), outcome


def _by_protocol(histories: Sequence[History]) -> list[tuple[list[Difference], Outcome]]:
    answers = answer_of_protocol(histories)
    return [_against_reference(history, outcome) for history, outcome in zip(histories, answers, strict=True)]


def answer_of_protocol(histories: Sequence[History]) -> list[Outcome]:
    """Give what comes out of histories of the foreign-key join, when it is played with messages.

    Raises:
        BadInput: A history is another operator's, which has no messages.
    """
    for history in histories:
        if history.operator != "foreign_key_join":
            raise BadInput(
                f"{history.name}: protocol plays the messages of foreign_key_join, and {history.operator} has none: "
                "use another witness"
            )
    return [Outcome.of_play(history.name, play(history, Protocol)) for history in histories]


def _answers(history: History) -> bool:
    join = operator_named(history.operator).declare(history.options)
    return isinstance(join, ForeignKeyJoin) and join.answers_all


def _by_kafka(
    histories: Sequence[History], divergences: Counter[str] | None = None
) -> list[tuple[list[Difference], Outcome]]:
    """Judge by Kafka Streams, but for divergences with a name, which are counted."""
    from .kafka_witness import answer

    judged = []
    for history, outcome in zip(histories, answer(histories), strict=True):
        found, _ = _against_reference(history, outcome)
        names = explained(history, outcome) if found else ()
        if divergences is not None:
            divergences.update(names)
        judged.append(([] if names else found, outcome))
    return judged


def _by_schedule(histories: Sequence[History]) -> list[tuple[list[Difference], Outcome]]:
    """Judge histories that deliver all their messages, by their meaning."""
    return [_scheduled_rightly(history) for history in histories]


def _scheduled_rightly(history: History) -> tuple[list[Difference], Outcome]:
    played = play(history)
    meant = operator_named(history.operator).meaning(played.definition, played.accepted, played.clock)
    assert isinstance(meant, dict)
    assert isinstance(played.result, dict)
    # A message's timestamp depends on its way, so that values alone are fixed.
    found = result_differences(history.name, None, _untimed(meant), _untimed(played.result))
    return found, Outcome(history.name, Grain.END, final=meant)


JUDGES: Mapping[str, Judge] = {
    "fold is meaning": _by_meaning,
    "duckdb": _by_duckdb,
    "kafka": _by_kafka,
    "protocol": _by_protocol,
    "schedules": _by_schedule,
}
"""How each law is asked."""


def _untimed(table: Table) -> Table:
    return {row: (value, 0) for row, (value, _) in table.items()}


def scheduled_history(history: History, generator: random.Random) -> History:
    """Give a foreign-key join's history with manual delivery, by a random schedule that leaves no message waiting."""
    manual = replace(history, options={**history.options, "delivery": "manual"})
    definition = operator_named(history.operator).declare(manual.options)
    records = history.records
    lines: list[Record | Delivery] = []
    protocol = Protocol(definition, StreamTime())
    while records or protocol.waiting:
        if records and (not protocol.waiting or generator.random() < 0.4):
            record = records.pop(0)
            lines.append(record)
            protocol.arrive(record)
        else:
            delivery = Delivery(*generator.choice(list(protocol.waiting)))
            lines.append(delivery)
            protocol.deliver(*delivery)
    return manual.with_lines(lines)
