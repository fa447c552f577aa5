"""Traces of a foreign-key join: the visible events of a run, as JSON Lines.

The first line is the header, and every other line an event:

    {"trace": "foreign_key_join", "join": "inner", "protocol": "kafka 4.3", "order": "topics", "quiet": true}
    {"event": "right", "key": "r1", "value": "x"}
    {"event": "left", "key": "l", "value": {"v": "a", "fk": "r1"}, "foreign_key": "r1"}
    {"event": "subscription sent", "foreign_key": "r1", "key": "l", "instruction": "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"}
    {"event": "response sent", "foreign_key": "r1", "key": "l", "value": "x", "of": {"v": "a", "fk": "r1"}}
    {"event": "output", "key": "l", "value": [{"v": "a", "fk": "r1"}, "x"]}

With the order `total`, lines are in the order of events: each change, `subscription delivered` and `response delivered`
is followed by its messages and outputs. With `topics`, there are no deliveries, and only events of one topic are in
order: of one input key, of the subscriptions to one right key, of the responses to one left key, of the outputs of one
left key. Such a trace can be read from a broker afterwards.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeGuard, get_args

from ..reference.core.errors import BadInput
from ..reference.core.records import Key, Value
from ..reference.foreign_key_protocol import Instruction

EventKind: TypeAlias = Literal[
    "left",
    "right",
    "subscription sent",
    "subscription delivered",
    "response sent",
    "response delivered",
    "output",
]
TraceOrder: TypeAlias = Literal["total", "topics"]
STEPS: Mapping[str, str] = {
    "left": "left",
    "right": "right",
    "subscription delivered": "subscription",
    "response delivered": "response",
}
"""The events that are steps, with their names in the specification; other events are effects of a step."""
UNKNOWN = object()
"""Marks an unknown left value whose hash a message contains, or an unknown sender."""
_FIELDS: Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "left": (("key", "value", "foreign_key"), ()),
    "right": (("key", "value"), ()),
    "subscription sent": (("foreign_key", "key", "instruction"), ("of",)),
    "subscription delivered": (("foreign_key", "key"), ()),
    "response sent": (("key", "value"), ("foreign_key", "of")),
    "response delivered": (("foreign_key", "key"), ()),
    "output": (("key", "value"), ()),
}
"""The fields of each kind of event: the required fields, and the optional fields."""
_HEADER = {
    "join": ("inner", "left"),
    "protocol": ("kip", "answer", "kafka 4.3", "kafka 4.3 answer", "kafka 3.9"),
    "null_foreign_key": ("ignore", "keep"),
    "order": get_args(TraceOrder),
    "quiet": (True, False),
}
_DEFAULTS = {"null_foreign_key": "ignore", "quiet": False}


@dataclass(frozen=True)
class TraceEvent:
    """One event of a trace.

    Attributes:
        line: The line of the event in the file, from 1.
        kind: The kind of event.
        key: The left key; for a right change the right key.
        foreign_key: The foreign key of a left value, or the right key that receives or sends a message, or None without
            such a key.
        value: The new value, a response's right value, or the emitted pair, or None for a deletion.
        instruction: The instruction of a subscription.
        of: The left value whose hash a message contains, or None for a deleted row, `UNKNOWN` if it wasn't recorded.
    """

    line: int
    kind: EventKind
    key: Key
    foreign_key: Any = None
    value: Value = None
    instruction: str | None = None
    of: Any = UNKNOWN

    @property
    def is_step(self) -> bool:
        """Return whether the event is a step (a change or a delivery), and not a message or output that a step
        causes.
        """
        return self.kind in STEPS

    def numbered(self, line: int) -> TraceEvent:
        """Return the event with another line number."""
        return replace(self, line=line)

    def __str__(self) -> str:
        if self.kind in ("left", "right"):
            return f"{self.kind} {self.key} = {_shown(self.value)}"
        if self.kind == "output":
            return f"output {self.key} = {_shown(self.value)}"
        route = "an unknown key" if self.foreign_key is UNKNOWN else self.foreign_key or "no key"
        what = self.instruction if self.kind == "subscription sent" else None
        what = _shown(self.value) if self.kind == "response sent" else what
        way = f"{self.key} to {route}" if self.kind.startswith("subscription") else f"{route} to {self.key}"
        of = "" if self.of is UNKNOWN else f", hash of {_shown(self.of)}"
        return f"{self.kind}, {way}" + ("" if what is None else f": {what}{of}")

    def to_json(self) -> dict[str, Any]:
        """Return the event's fields as in the file."""
        needed, optional = _FIELDS[self.kind]
        names = [*needed, *(name for name in optional if getattr(self, name) is not UNKNOWN)]
        return {"event": self.kind, **{name: getattr(self, name) for name in names}}


@dataclass(frozen=True)
class JoinTrace:
    """A trace of a foreign-key join.

    Attributes:
        join: `inner` or `left`.
        protocol: The protocol of the left side's instructions, as the constant `Protocol` of the specification.
        null_foreign_key: `ignore` or `keep`.
        order: `total` or `topics`.
        quiet: Whether no message waits at the end of the trace.
        events: The events.
    """

    join: str
    protocol: str
    null_foreign_key: str
    order: TraceOrder
    quiet: bool
    events: tuple[TraceEvent, ...]

    def to_text(self) -> str:
        """Return the trace in the form of a file."""
        header = {
            "trace": "foreign_key_join",
            "join": self.join,
            "protocol": self.protocol,
            "null_foreign_key": self.null_foreign_key,
            "order": self.order,
            "quiet": self.quiet,
        }
        lines = [header, *(event.to_json() for event in self.events)]
        return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)

    def by_topics(self) -> JoinTrace:
        """Return the trace as a broker's topics show it: without deliveries, and with the events of each topic in
        order.
        """
        kept = (event for event in self.events if not event.kind.endswith("delivered"))
        return replace(self, order="topics", events=tuple(kept))

    def parts(self) -> list[JoinTrace]:
        """Split the trace into parts without common keys; each part is a trace."""
        parents: dict[tuple[str, Key], tuple[str, Key]] = {}

        def root(one: tuple[str, Key]) -> tuple[str, Key]:
            while parents.setdefault(one, one) != one:
                one = parents[one]
            return one

        for event in self.events:
            first, *others = _keys_of(event)
            for other in others:
                parents[root(first)] = root(other)
        grouped: dict[tuple[str, Key], list[TraceEvent]] = {}
        for event in self.events:
            grouped.setdefault(root(_keys_of(event)[0]), []).append(event)
        return [replace(self, events=tuple(events)) for events in grouped.values()]


def _keys_of(event: TraceEvent) -> list[tuple[str, Key]]:
    if event.kind == "right":
        return [("right", event.key)]
    names = event.foreign_key is not None and event.foreign_key is not UNKNOWN
    return [("left", event.key), *([("right", event.foreign_key)] if names else [])]


def read_trace(path: Path) -> JoinTrace:
    """Read a trace from a file.

    Raises:
        BadInput: The file is unreadable, or isn't a trace; the message names the line.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise BadInput(f"{path}: can't be read ({error.strerror})") from None
    except UnicodeDecodeError:
        raise BadInput(f"{path}: not UTF-8: a trace is JSON, with one event per line") from None
    return parse_trace(text, str(path))


def parse_trace(text: str, where: str = "trace") -> JoinTrace:
    """Read a trace.

    Args:
        text: The text of the trace, in JSON Lines.
        where: The name of the trace in messages.

    Raises:
        BadInput: The text isn't a trace; the message names the line.
    """
    lines = [(number, line) for number, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise BadInput(f'{where}: empty: the first line is the header, such as {{"trace": "foreign_key_join", …}}')
    number, first = lines[0]
    header = _object(first, f"{where}: line {number}")
    if header.get("trace") != "foreign_key_join":
        raise BadInput(f'{where}: line {number}: not a header, which begins with {{"trace": "foreign_key_join", …}}')
    for name in header:
        if name != "trace" and name not in _HEADER:
            raise BadInput(f"{where}: line {number}: unknown field {name!r}: use {', '.join(_HEADER)}")
    chosen = {**_DEFAULTS, **header}
    for name, known in _HEADER.items():
        if name not in chosen:
            raise BadInput(f"{where}: line {number}: {name!r} is missing: it is one of {_listed(known)}")
        if chosen[name] not in known or isinstance(chosen[name], bool) != isinstance(known[0], bool):
            raise BadInput(
                f"{where}: line {number}: {name!r} is {json.dumps(chosen[name])}, but must be one of {_listed(known)}"
            )
    events = tuple(_event(line, number, f"{where}: line {number}", chosen["order"]) for number, line in lines[1:])
    if chosen["order"] == "total" and events and not events[0].is_step:
        raise BadInput(
            f"{where}: line {events[0].line}: no earlier event caused this: with the order total a change or "
            "a delivery comes first, then its messages and outputs"
        )
    fields = {name: chosen[name] for name in _HEADER}
    return JoinTrace(events=events, **fields)


def _event(line: str, number: int, where: str, order: str) -> TraceEvent:
    content = _object(line, where)
    kind = content.pop("event", None)
    if not _is_kind(kind):
        raise BadInput(f"{where}: the event is {json.dumps(kind)}, but must be one of {_listed(_FIELDS)}")
    if order == "topics" and kind.endswith("delivered"):
        raise BadInput(f"{where}: a delivery isn't part of a topic: leave it out, or give the order total")
    needed, optional = _FIELDS[kind]
    for name in needed:
        if name not in content:
            raise BadInput(f"{where}: {name!r} of the event {kind!r} is missing")
    for name in content:
        if name not in (*needed, *optional):
            raise BadInput(f"{where}: the event {kind!r} has no {name!r}: its fields are {_listed(needed + optional)}")
    for name in ("key", "foreign_key"):
        value = content.get(name)
        if name in content and not (isinstance(value, str) or (name == "foreign_key" and value is None)):
            raise BadInput(f"{where}: {name!r} is {json.dumps(value)}, but must be a string")
    if kind == "subscription sent" and content["instruction"] not in [one.value for one in Instruction]:
        raise BadInput(
            f"{where}: the instruction is {json.dumps(content['instruction'])}, but must be one of "
            f"{_listed(one.value for one in Instruction)}"
        )
    value = content.get("value")
    if kind == "output" and value is not None and not (isinstance(value, list) and len(value) == 2):
        raise BadInput(f"{where}: 'value' is {json.dumps(value)}, but must be a pair [left, right], or null")
    if kind == "response sent":
        content.setdefault("foreign_key", UNKNOWN)
    return TraceEvent(number, kind, **content)


def _is_kind(value: object) -> TypeGuard[EventKind]:
    return isinstance(value, str) and value in _FIELDS


def _object(line: str, where: str) -> dict[str, Any]:
    try:
        content = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{where}: not JSON: {error}") from None
    if not isinstance(content, dict):
        raise BadInput(f"{where}: {line.strip()[:40]} isn't a JSON object")
    return content


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(name if isinstance(name, str) else json.dumps(name) for name in names)


def _shown(value: Any) -> str:
    return "∅" if value is None else json.dumps(value, ensure_ascii=False)
