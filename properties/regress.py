"""Recorded answers: what a witness once said of some histories, kept in files, and held against a witness of today.

So the oracle is checked against the real Kafka Streams where Kafka can't run, and a user's witness against its past.
A file is JSON Lines, one an operator and definition; each line holds a history file's text, the witness, its grain, and
its answer as `streamproof run` prints it.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..reference.errors import BadInput
from ..reference.histories import History, parse_history
from ..reference.operators import operator_named
from ..reference.play import Entry
from ..reference.records import Change, Dropped, Output
from .divergences import explained
from .draws import Shape, draw_histories, under_stream_time
from .files import write_whole
from .outcomes import Difference, Grain, Outcome, differences
from .shapes import SCHEDULE, SHAPES

Witness = Callable[[Sequence[History]], list[Outcome]]
ARRIVALS = 12
"""How many records a recorded history has: enough for every situation, and a file that a person can read."""


@dataclass
class Comparison:
    """What today's answers are against the recorded ones.

    Attributes:
        histories: How many were compared.
        parted: Those on which they part, and where, with today's outcome and the recorded one.
        divergences: In how many histories a named divergence of Kafka Streams explains why they part.
    """

    histories: int = 0
    parted: list[tuple[History, list[Difference], Outcome, Outcome]] = field(default_factory=list)
    divergences: Counter[str] = field(default_factory=Counter)


def drawn(operator: str, count: int, seed: int, clock: str, refused: Callable[[History], str | None]) -> dict[str, Any]:
    """Draw histories that a witness doesn't refuse, by the name of their definition: `count` in all, evenly."""
    shapes = SHAPES[operator]
    found: dict[str, list[History]] = {}
    for name, options in shapes.items():
        histories: list[History] = []
        shape = Shape(options, SCHEDULE, ARRIVALS, operator=operator, null_keys=True)
        for history in draw_histories(shape, 4 * count, seed):
            asked = under_stream_time(history) if clock == "stream_time" else history
            if refused(asked) is None:
                histories.append(asked)
        found[name] = histories
    served = {name: histories for name, histories in found.items() if histories}
    each = -(-count // max(1, len(served)))
    return {name: histories[:each] for name, histories in served.items()}


def record(path: Path, on: str, histories: Sequence[History], outcomes: Sequence[Outcome]) -> None:
    """Write answers into a file, whole or not at all.

    Raises:
        BadInput: The file can't be written.
    """
    lines = []
    for history, outcome in zip(histories, outcomes, strict=True):
        told = outcome.table_lines() if outcome.grain is Grain.END else outcome.to_lines()
        answer = [{name: value for name, value in line.items() if name != "history"} for line in told]
        for line, entry in zip(answer, outcome.entries, strict=False):
            line.setdefault("key", entry.output.key)  # a dropped record's, which `run` doesn't print by arrival
        content = {"name": history.name, "on": on, "grain": outcome.grain.name.lower(), "history": history.to_text()}
        lines.append(json.dumps({**content, "answer": answer}, ensure_ascii=False) + "\n")
    try:
        write_whole(path, "".join(lines))
    except OSError as error:
        raise BadInput(f"{path}: can't be written ({error.strerror}): choose another folder") from None


def recorded(path: Path) -> Iterator[tuple[str, History, Outcome]]:
    """Read the answers of a file: the witness, the history, and what the witness said.

    Raises:
        BadInput: The file can't be read, or a line is none of a recording; the message names the file and the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: can't be read ({error}): check the path and its permissions") from None
    for number, line in enumerate(text.splitlines(), 1):
        try:
            content = json.loads(line)
            history = parse_history(content["history"], content["name"], f"{path}: line {number}")
            yield content["on"], history, _outcome(history, content)
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"{path}: line {number}: no recorded answer ({error}): record it anew with `streamproof regress record`"
            ) from None


def _outcome(history: History, content: dict[str, Any]) -> Outcome:
    grain = Grain[content["grain"].upper()]
    is_stream = operator_named(history.operator).declare(history.options).is_stream
    outputs = [(line, _output(line)) for line in content["answer"]]
    knows = any(isinstance(output, Dropped) for _, output in outputs) or content["on"] == "reference"
    if grain is Grain.END:
        changes = [output for _, output in outputs if isinstance(output, Change)]
        table = {(change.key, change.window): (change.value, change.timestamp) for change in changes}
        return Outcome(history.name, grain, final=changes if is_stream else table, is_stream=is_stream)
    entries = [Entry(line.get("arrival", -1), line.get("batch", -1), output) for line, output in outputs]
    return Outcome(history.name, grain, entries, knows_dropped=knows, is_stream=is_stream)


def _output(line: dict[str, Any]) -> Output:
    if "dropped" in line:
        return Dropped(line.get("key"), line["dropped"])
    window = (line["window"][0], line["window"][1]) if "window" in line else None
    return Change(line["key"], window, line["value"], line["timestamp"])


def compare_recorded(paths: Sequence[Path], witness: Witness) -> Comparison:
    """Ask a witness about every recorded history, and compare.

    Raises:
        BadInput: A file isn't a recording, or the witness refuses a history.
    """
    comparison = Comparison()
    for path in paths:
        of_file = list(recorded(path))
        answers = witness([history for _, history, _ in of_file])
        for (on, history, before), now in zip(of_file, answers, strict=True):
            comparison.histories += 1
            unordered = operator_named(history.operator).declare(history.options).unordered
            found = differences(now, before, unordered and Grain.END in (now.grain, before.grain))
            names = explained(history, before) if found and on == "kafka" else ()
            comparison.divergences.update(names)
            if found and not names:
                comparison.parted.append((history, found, now, before))
    return comparison
