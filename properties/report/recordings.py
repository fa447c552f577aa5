"""Record a witness's outcomes of histories in files, and compare a witness's outcomes with recorded outcomes.

Recordings check the reference against the real Kafka Streams on machines without Kafka, and a user's witness against
its earlier outcomes. A file is JSON Lines, one line per operator and definition. Each line contains a history file's
text, the witness, its grain, the seed of the history, and the outcome in the format of `streamproof run`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NoReturn

from ...reference.core.errors import BadInput
from ...reference.core.files import read_content
from ...reference.core.history import Cut, History, parse_history, read_object
from ...reference.core.operator import operator_named
from ...reference.core.play import Entry
from ...reference.core.records import Change, Dropped, Output
from ..generators.draws import SCHEDULE, HistorySettings, draw_histories, under_stream_time
from ..outcomes.outcomes import Difference, Grain, Outcome, differences
from ..registration.registration import registration_of
from ..system.files import write_whole
from ..witnesses.by_name import WITNESSES
from ..witnesses.kafka.divergences import explained

LARGEST_MB = 1024  # the largest recording, in MB of 2^20 bytes
ARRIVALS = 12  # records per recorded history: enough for every coverage goal, and readable for people


@dataclass
class ComparedRecording:
    """The comparison of a witness's outcomes with recorded outcomes.

    Attributes:
        histories: The number of compared histories.
        mismatches: The histories with differences: the history, the differences, the new outcome and the recorded
            outcome.
        divergences: The number of histories that each named divergence of Kafka Streams explains.
    """

    histories: int = 0
    mismatches: list[tuple[History, list[Difference], Outcome, Outcome]] = field(default_factory=list)
    divergences: Counter[str] = field(default_factory=Counter)


def drawn(operator: str, count: int, seed: int, clock: str, refused: Callable[[History], str | None]) -> dict[str, Any]:
    """Draw `count` histories that a witness accepts, evenly distributed over profiles; return them by profile.

    Args:
        operator: The operator's name.
        count: The smallest number of histories; fewer if too many are refused.
        seed: The seed of the draws.
        clock: `batch`, or `stream_time`.
        refused: Returns the reason why the witness refuses a history; None if it accepts the history.
    """
    found: dict[str, list[History]] = {}
    for name, options in registration_of(operator).profiles.items():
        profile = HistorySettings(operator, options, SCHEDULE, ARRIVALS, null_keys=True)
        histories = draw_histories(profile, 4 * count, seed)
        asked = map(under_stream_time, histories) if clock == "stream_time" else histories
        found[name] = [history for history in asked if refused(history) is None]
    served = {name: histories for name, histories in found.items() if histories}
    each = -(-count // max(1, len(served)))
    return {name: histories[:each] for name, histories in served.items()}


def recording(on: str, histories: Sequence[History], outcomes: Sequence[Outcome], seed: int | None = None) -> str:
    """Return outcomes as the text of a recording.

    Args:
        on: The name of the witness.
        histories: The histories.
        outcomes: The outcome of each history.
        seed: The seed of the histories; None if unknown.
    """
    lines = []
    for history, outcome in zip(histories, outcomes, strict=True):
        lines_of = outcome.table_lines() if outcome.grain is Grain.END else outcome.to_lines()
        answer = [{name: value for name, value in line.items() if name != "history"} for line in lines_of]
        for line, entry in zip(answer, outcome.entries, strict=False):
            line.setdefault("key", entry.output.key)  # the format of `run` lacks a dropped record's key
        content = {"name": history.name, "on": on, "grain": outcome.grain.name.lower(), "history": history.to_text()}
        of_seed = {} if seed is None else {"seed": seed}
        lines.append(json.dumps({**content, **of_seed, "answer": answer}, ensure_ascii=False) + "\n")
    return "".join(lines)


def record(path: Path, text: str) -> None:
    """Write a recording's text to a file, completely or not at all; an existing file is replaced.

    Raises:
        BadInput: The file isn't writable.
    """
    try:
        write_whole(path, text)
    except OSError as error:
        raise BadInput(f"{path}: can't be written ({error.strerror}): choose another folder") from None


def refuse_others(recordings: Mapping[Path, str], seed: int) -> list[Path]:
    """Refuse to replace different files by recordings, and return the paths that already contain the same recording.

    Args:
        recordings: The recordings' texts, by path.
        seed: The seed of their histories.

    Raises:
        BadInput: A different file exists at a path; the message names the file, its seed and the remedy.
    """
    same = []
    for path, text in recordings.items():
        try:
            before = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            raise BadInput(f"{path}: can't be written ({error.strerror}): choose another folder") from None
        if before in (text.encode(), _without_seed(text).encode()):
            same.append(path)
            continue
        raise BadInput(
            f"{path}: contains {_named(path)}, not the recording with seed {seed}: choose another "
            "folder, or "
            "replace it with --force"
        )
    return same


def _without_seed(text: str) -> str:
    """Return a recording's text without seeds, as an earlier version wrote it."""
    contents = [json.loads(line) for line in text.split("\n") if line]
    for content in contents:
        content.pop("seed", None)
    return "".join(json.dumps(content, ensure_ascii=False) + "\n" for content in contents)


def _named(path: Path) -> str:
    """Describe a file's content for a message: the witness and seed of a recording, or other content."""
    try:
        content = next(_lines(path))[1]
    except (BadInput, StopIteration):
        return "other content than a recording"
    seed = f"seed {content['seed']}" if content.get("seed") is not None else "an unknown seed"
    return f"a recording on {content.get('on')} with {seed}"


def recorded(path: Path) -> Iterator[tuple[str, History, Outcome]]:
    """Read a recording; yield for each line the witness, the history and the witness's outcome.

    Raises:
        BadInput: The file is unreadable, or a line isn't part of a recording; the message names the file, the line and
            the remedy.
    """
    try:
        for number, content in _lines(path):
            yield _Recorded(f"{path}: line {number}", content).read()
    except BadInput as error:
        raise BadInput(f"{error}; or record it again with `streamproof regress record`") from None


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the objects of a recording, with their line numbers."""
    content = read_content(path, LARGEST_MB)
    if not content.strip():
        raise BadInput(f"{path}: line 1: empty: name a recording")
    for number, line in enumerate(content.split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            raise BadInput(
                f"{path}: line {number}: not UTF-8 at byte {error.start} of the line: save the file as UTF-8"
            ) from None
        if text.startswith("\ufeff"):
            raise BadInput(f"{path}: line {number}: begins with a byte order mark: save the file as UTF-8 without one")
        if text.strip():
            yield number, read_object(text, str(path), number)


_KINDS = {str: "a string", int: "a whole number", list: "a list", dict: "an object", type(None): "null"}


@dataclass
class _Recorded:
    """Reads a line of a recording; `source` is the line's name in messages."""

    source: str
    content: dict[str, Any]

    def fail(self, problem: str) -> NoReturn:
        raise BadInput(f"{self.source}: {problem}")

    def read(self) -> tuple[str, History, Outcome]:
        name, on, grain, text = (self.field(self.content, one, str) for one in ("name", "on", "grain", "history"))
        if not name:
            self.fail("the name is empty: give the history's name")
        for what, known in {"on": [*WITNESSES], "grain": [one.name.lower() for one in Grain]}.items():
            if self.content[what] not in known:
                self.fail(f"unknown {what} {self.content[what]!r}: use one of {', '.join(known)}")
        if "seed" in self.content:
            self.field(self.content, "seed", int)
        history = parse_history(text, name, f"{self.source}: history")
        return on, history, self.outcome(history, Grain[grain.upper()], on)

    def outcome(self, history: History, grain: Grain, on: str) -> Outcome:
        is_stream = operator_named(history.operator).declare(history.options).is_stream
        lines = self.field(self.content, "answer", list)
        outputs = [self.output(index, line, grain) for index, line in enumerate(lines)]
        if grain is Grain.END:
            changes = [output for output in outputs if isinstance(output, Change)]
            table = {(change.key, change.window): (change.value, change.timestamp) for change in changes}
            if not is_stream and len(table) < len(changes):
                self.fail("the answer contains two rows of one key and window: a table contains one")
            return Outcome(history.name, grain, final=changes if is_stream else table, is_stream=is_stream)
        knows = any(isinstance(output, Dropped) for output in outputs) or on == "reference"
        arrivals = sum(not isinstance(line, Cut) for line in history.lines)
        when, limit = ("batch", len(history.batches)) if grain is Grain.BATCH else ("arrival", arrivals)
        entries = []
        for index, (line, output) in enumerate(zip(lines, outputs, strict=True)):
            number = self.field(line, when, int, where=f"answer {index}: ")
            if not 0 <= number < max(1, limit):
                self.fail(
                    f"answer {index}: {when} {number} of a history with {limit}, counted from 0: correct the number"
                )
            entries.append(Entry(number if when == "arrival" else -1, number if when == "batch" else -1, output))
        return Outcome(history.name, grain, entries, knows_dropped=knows, is_stream=is_stream)

    def output(self, index: int, line: Any, grain: Grain) -> Output:
        where = f"answer {index}: "
        if not isinstance(line, dict):
            self.fail(f"{where}{line!r:.40} instead of an object: write {{…}}")
        key = self.field(line, "key", str, type(None), where=where)
        if "dropped" in line:
            if grain is Grain.END:
                self.fail(f"{where}a dropped record in a result: leave it out")
            return Dropped(key, self.field(line, "dropped", str, where=where))
        if "value" not in line:
            self.fail(f"{where}without 'value': add it")
        window = None
        if "window" in line:
            bounds = self.field(line, "window", list, where=where)
            if len(bounds) != 2 or not all(_is(bound, int) for bound in bounds) or bounds[0] > bounds[1]:
                self.fail(f"{where}the window {bounds!r:.60} isn't [start, end] in milliseconds: give both")
            window = (bounds[0], bounds[1])
        return Change(key, window, line["value"], self.field(line, "timestamp", int, where=where))

    def field(self, content: dict[str, Any], name: str, *kinds: type, where: str = "") -> Any:
        """Return a field with one of the given types."""
        if name not in content:
            self.fail(f"{where}without {name!r}: add it")
        if not any(_is(content[name], kind) for kind in kinds):
            wanted = " or ".join(_KINDS[kind] for kind in kinds)
            self.fail(f"{where}the {name} {content[name]!r:.40} is not {wanted}: correct its type")
        return content[name]


def _is(value: Any, kind: type) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool)


def compare_recorded(
    paths: Sequence[Path], evaluate: Callable[[Sequence[History]], list[Outcome]]
) -> ComparedRecording:
    """Compare a witness's outcomes of all recorded histories with the recorded outcomes.

    Raises:
        BadInput: A file isn't a recording, or the witness refuses a history.
    """
    comparison = ComparedRecording()
    # Read all files first, so that a bad file is reported before the witness runs.
    for of_file in [list(recorded(path)) for path in paths]:
        answers = evaluate([history for _, history, _ in of_file])
        for (on, history, before), now in zip(of_file, answers, strict=True):
            comparison.histories += 1
            unordered = operator_named(history.operator).declare(history.options).unordered
            found = differences(now, before, unordered and Grain.END in (now.grain, before.grain))
            names = explained(history, before) if found and on == "kafka" else ()
            comparison.divergences.update(names)
            if found and not names:
                comparison.mismatches.append((history, found, now, before))
    return comparison
