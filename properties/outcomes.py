"""What a witness says came out of a history, and how two answers are compared.

Outcomes are compared at the finer grain that both have, as ordered lists per key where both keep order: a map would
hide duplicate and swapped tombstones.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any, NamedTuple

from ..reference.play import Entry, Played
from ..reference.records import Change, Dropped, Key, Output, Row, Table, fold


class Grain(IntEnum):
    """How finely a witness tells when something came out; a larger grain is coarser."""

    ARRIVAL = 0
    BATCH = 1
    END = 2


@dataclass
class Outcome:
    """What came out of one history.

    Attributes:
        history: The history's name.
        grain: `ARRIVAL`: entries tell arrival and batch; `BATCH`: the batch alone is told (arrival is -1); `END`: only
            the table is known, and `entries` is empty.
        entries: The outputs, in order; a witness at batch grain keeps the order within a key only.
        final: The table at the end; where there are entries, it is their fold.
        knows_dropped: Whether dropped records are among the entries.
    """

    history: str
    grain: Grain
    entries: list[Entry] = field(default_factory=list)
    final: Table | None = None
    knows_dropped: bool = True

    @property
    def table(self) -> Table:
        """The table at the end."""
        return fold(entry.output for entry in self.entries) if self.final is None else self.final

    @classmethod
    def of_play(cls, history: str, played: Played) -> Outcome:
        """The reference's outcome of a history."""
        return cls(history, Grain.ARRIVAL, played.entries)

    def to_lines(self) -> list[dict[str, Any]]:
        """The outcome as `streamproof run` prints it."""
        return [_entry_line(self.history, self.grain, entry) for entry in self.entries]

    def table_lines(self) -> list[dict[str, Any]]:
        """The table as `streamproof run --table` prints it, in key order."""
        return [_change_fields(self.history, Change(*row, *at)) for row, at in sorted(self.table.items())]


def _change_fields(history: str, change: Change) -> dict[str, Any]:
    line: dict[str, Any] = {"history": history, "key": change.key}
    if change.window is not None:
        line["window"] = list(change.window)
    return {**line, "value": change.value, "timestamp": change.timestamp}


def _entry_line(history: str, grain: Grain, entry: Entry) -> dict[str, Any]:
    when = {"batch": entry.batch} if grain is Grain.BATCH else {"arrival": entry.arrival}
    if isinstance(entry.output, Dropped):
        line: dict[str, Any] = {"history": history, **when}
        if grain is Grain.BATCH:
            line["key"] = entry.output.key
        return {**line, "dropped": entry.output.reason}
    fields = _change_fields(history, entry.output)
    return {"history": fields.pop("history"), **when, **fields}


class Difference(NamedTuple):
    """Where two outcomes part: the key, the batch or arrival (None at the end), and what each said there."""

    history: str
    key: Key | None
    when: int | None
    left: Any
    right: Any


def differences(left: Outcome, right: Outcome, bag: bool = False) -> list[Difference]:
    """Give every key and step at which two outcomes part; `bag` compares list values without their order.

    At the end, tables are compared; else the ordered list of changes of each key in each batch (or arrival), and apart
    from it, where both know, the dropped records.
    """
    if Grain.END in (left.grain, right.grain):
        return table_differences(left.history, None, canonical(left.table, bag), canonical(right.table, bag))
    by_arrival = left.grain is Grain.ARRIVAL and right.grain is Grain.ARRIVAL
    with_dropped = left.knows_dropped and right.knows_dropped
    ours_by_step = _steps(left.entries, by_arrival, with_dropped, bag)
    theirs_by_step = _steps(right.entries, by_arrival, with_dropped, bag)
    steps = sorted(
        (
            step
            for step in ours_by_step.keys() | theirs_by_step.keys()
            if ours_by_step.get(step) != theirs_by_step.get(step)
        ),
        key=lambda step: (step[0], step[1] or "", step[2]),
    )
    return [
        Difference(
            left.history, key, when, ours_by_step.get((when, key, kind), []), theirs_by_step.get((when, key, kind), [])
        )
        for when, key, kind in steps
    ]


def table_differences(name: str, when: int | None, left: Table, right: Table) -> list[Difference]:
    """Give every row on which two tables part, at that batch (None: at the end)."""

    def shown(row: Row, table: Table) -> Change | None:
        return Change(*row, *table[row]) if row in table else None

    rows = sorted(row for row in left.keys() | right.keys() if left.get(row) != right.get(row))
    return [Difference(name, row[0], when, shown(row, left), shown(row, right)) for row in rows]


def canonical(table: Table, bag: bool) -> Table:
    """The table with its list values sorted, where their order isn't fixed, and with typed truth values."""
    return {row: (_typed(_sorted(value) if bag else value), at) for row, (value, at) in table.items()}


def _steps(
    entries: Sequence[Entry], by_arrival: bool, with_dropped: bool, bag: bool
) -> dict[tuple[int, Key | None, str], list[Output]]:
    steps: dict[tuple[int, Key | None, str], list[Output]] = defaultdict(list)
    for arrival, batch, output in entries:
        if isinstance(output, Dropped):
            if not with_dropped:
                continue
            steps[arrival if by_arrival else batch, output.key, "dropped"].append(output)
        else:
            output = output._replace(value=_typed(_sorted(output.value) if bag else output.value))
            steps[arrival if by_arrival else batch, output.key, "changes"].append(output)
        if by_arrival:
            # Where both tell it, the order across keys is part of the answer too.
            steps[arrival, None, "order of keys"].append(output)
    return steps


def _typed(value: Any) -> Any:
    """The value, with true and false told apart from 1 and 0, which Python takes for equal."""
    if isinstance(value, bool):
        return ("truth value", value)
    if isinstance(value, list):
        return [_typed(member) for member in value]
    return {name: _typed(member) for name, member in value.items()} if isinstance(value, dict) else value


def _sorted(value: Any) -> Any:
    return sorted(value, key=lambda member: json.dumps(member, sort_keys=True)) if isinstance(value, list) else value


def grouped_by_key(entries: Iterable[Entry]) -> dict[Key | None, list[Entry]]:
    """The entries of each key, in order."""
    groups: dict[Key | None, list[Entry]] = defaultdict(list)
    for entry in entries:
        groups[entry.output.key].append(entry)
    return groups
