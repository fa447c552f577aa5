"""Trace validation: check whether a recorded trace of a foreign-key join is a behaviour of its specification.

TLC searches for a behaviour of `ForeignKeyJoinTrace.tla` that explains the whole trace. If no behaviour explains the
whole trace, the longest explained beginning shows the refused event and the allowed steps.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from ..reference.core.clocks import StreamTime
from ..reference.core.history import Delivery, History
from ..reference.core.operator import operator_named
from ..reference.core.records import Change, Key, Record
from ..reference.core.records import Value as Row
from ..reference.definitions.joins import ForeignKeyJoin
from ..reference.foreign_key_protocol import Protocol, Route, Subscription, digest_of
from .catalogue import FOLDER
from .pytla import Function, Model, ModelValue, Progress, StateGraph, TlaValue, Tools, state_graph
from .replays.foreign_key_kafka import WITHOUT_KEY
from .traces import STEPS, UNKNOWN, EventKind, JoinTrace, TraceEvent

MODULE = FOLDER / "ForeignKeyJoin" / "ForeignKeyJoinTrace.tla"
BATCH = 200
"""The largest number of traces per run of TLC."""
NONE = ModelValue("None")
_KIND_OF: Mapping[str, EventKind] = {step: kind for kind, step in STEPS.items()}  # type: ignore[misc]


@dataclass(frozen=True)
class Possible:
    """A step that the specification allows in place of a refused event.

    Attributes:
        step: The step.
        does: The messages and outputs of the step.
    """

    step: TraceEvent
    does: tuple[TraceEvent, ...]

    def __str__(self) -> str:
        return f"{self.step}: " + ("; ".join(map(str, self.does)) or "nothing is sent or emitted")


@dataclass(frozen=True)
class Refusal:
    """A trace, or a part of a trace, that isn't a behaviour of the specification.

    Attributes:
        event: The refused event, or None if the trace lacks an event.
        lacks: The events of the specification that the trace lacks.
        explained: The number of events that the longest explained beginning contains.
        events: The number of events in the trace.
        after: The last explained step or input, or None if no event is explained.
        unexplained: The first unexplained event of each topic, in the order of lines.
        possible: The steps that the specification allows at the refused event.
    """

    event: TraceEvent | None
    lacks: tuple[TraceEvent, ...]
    explained: int
    events: int
    after: TraceEvent | None
    unexplained: tuple[TraceEvent, ...]
    possible: tuple[Possible, ...]

    def __str__(self) -> str:
        if self.event is not None:
            return f"line {self.event.line} ({self.event}) is refused"
        what = "; ".join(map(str, self.lacks)) or "messages that wait"
        where = "" if self.after is None else f" after line {self.after.line}"
        return f"it lacks the next event{where}: {what}"


class Validated(NamedTuple):
    """TLC's verdict on a trace.

    Attributes:
        parts: The number of parts without common keys.
        events: The number of events in the trace.
        states: The number of states that TLC found.
        refusals: The refused parts of the trace, each with the refused event.
    """

    parts: int
    events: int
    states: int
    refusals: tuple[Refusal, ...]


def validate(
    trace: JoinTrace,
    tools: Tools,
    timeout: float | None = None,
    progress: Callable[[Progress], None] | None = None,
) -> Validated:
    """Ask TLC whether a trace is a behaviour of the specification.

    Args:
        trace: The trace; its parts without common keys are checked one by one.
        tools: The paths of Java and of tla2tools.jar.
        timeout: The timeout of a run of TLC (s), or None for no timeout.
        progress: A function that receives each progress report of TLC.

    Raises:
        TlcError: TLC fails.
    """
    parts = [_Part(part) for part in trace.parts()]
    states, refusals = 0, []
    for start in range(0, len(parts), BATCH):
        batch = parts[start : start + BATCH]
        keys = _keys(batch)
        graph = _graph(batch, [0] * len(batch), keys, tools, timeout, progress)
        states += len(graph.states)
        furthest = _furthest(graph, batch)
        refused = [number for number, state in enumerate(furthest) if not batch[number].explains(state)]
        if refused:
            stray_at = [batch[number].progress(furthest[number]) + 1 for number in refused]
            strays = _graph([batch[number] for number in refused], stray_at, keys, tools, timeout, progress)
            for index, number in enumerate(refused, 1):
                refusals.append(batch[number].refusal(furthest[number], _strayed(strays, index, furthest[number])))
    return Validated(len(parts), len(trace.events), states, tuple(refusals))


def _keys(parts: Sequence[_Part]) -> tuple[Sequence[str], Sequence[str]]:
    """Return the names of as many left and right keys as the largest trace needs."""
    lefts = max(1, *(len(part.left_names) for part in parts))
    rights = max(1, *(len(part.right_names) for part in parts))
    return [f"l{number}" for number in range(1, lefts + 1)], [f"r{number}" for number in range(1, rights + 1)]


def _graph(
    parts: Sequence[_Part],
    stray_at: Sequence[int],
    keys: tuple[Sequence[str], Sequence[str]],
    tools: Tools,
    timeout: float | None,
    progress: Callable[[Progress], None] | None,
) -> StateGraph:
    left_keys, right_keys = keys
    first = parts[0].trace
    constants: dict[str, TlaValue] = {
        "LeftKeys": frozenset(left_keys),
        "RightKeys": frozenset(right_keys),
        "LeftChanges": max(part.count("left") for part in parts),
        "RightChanges": max(part.count("right") for part in parts),
        "Join": first.join,
        "Protocol": first.protocol,
        "NullForeignKey": first.null_foreign_key,
        "Traces": tuple(part.written(left_keys, right_keys) for part in parts),
        "StrayAt": tuple(stray_at),
    }
    model = Model(MODULE, MODULE.with_suffix(".cfg"), constants=constants)
    return state_graph(model, tools, timeout=timeout, progress=progress)


def _furthest(graph: StateGraph, parts: Sequence[_Part]) -> list[Any]:
    """Return for each trace a state that explains all events, or else the first state that explains most events."""
    best: list[Any] = [None] * len(parts)
    rank = [(False, -1)] * len(parts)
    for state in graph.states:
        number = _int(state["number"]) - 1
        found = (parts[number].explains(state), parts[number].progress(state))
        if found > rank[number]:
            best[number], rank[number] = state, found
    return best


def _strayed(graph: StateGraph, number: int, furthest: Any) -> list[Any]:
    """Return the effects of the steps that the specification allows in a state."""
    mine = {**furthest, "number": number}
    found = []
    for edge in graph.edges:
        target = graph.states[edge.target]
        if target["strayed"] != NONE and target["number"] == number and graph.states[edge.source] == mine:
            found.append(target["strayed"])
    return found


class _Part:
    """A part of a trace without keys in common with other parts, converted to the specification's keys and versions.

    The class writes the trace as a constant, and converts states back to events with the same names.
    """

    def __init__(self, trace: JoinTrace) -> None:
        self.trace = trace
        lefts = dict.fromkeys(event.key for event in trace.events if event.kind != "right")
        rights = dict.fromkeys(
            key
            for event in trace.events
            for key in (event.key if event.kind == "right" else event.foreign_key,)
            if key is not None and key is not UNKNOWN
        )
        self.left_names = {key: f"l{number}" for number, key in enumerate(lefts, 1)}
        self.right_names = {key: f"r{number}" for number, key in enumerate(rights, 1)}
        self.keys = {name: key for names in (self.left_names, self.right_names) for key, name in names.items()}
        self.rows: dict[str, tuple[Function, Row]] = {}
        self.versions: dict[str, int] = {}
        self.right_rows: dict[TlaValue, Row] = {}
        for event in trace.events:
            if event.value is None:
                continue
            if event.kind == "left":
                version = len(self.rows) + 1
                row = _record({"version": version, "foreign_key": self._right_name(event.foreign_key)})
                self.rows.setdefault(_text(event.value), (row, event.value))
            elif event.kind == "right":
                self.versions.setdefault(_text(event.value), len(self.versions) + 1)
                self.right_rows[self._right_row(event.key, event.value)] = event.value
        self.values: dict[TlaValue, Row] = {NONE: None, **dict(self.rows.values()), **self.right_rows}
        self.groups = list(_grouped(trace.events)) if trace.order == "total" else []

    def count(self, kind: EventKind) -> int:
        """Count the events of a kind."""
        return sum(event.kind == kind for event in self.trace.events)

    # As a constant.

    def written(self, left_keys: Sequence[str], right_keys: Sequence[str]) -> Function:
        """Return the trace in the form of the module, with a log for each key."""
        logs = self.logs

        def of(log: str, keys: Sequence[TlaValue], write: Callable[[TraceEvent], TlaValue]) -> Function:
            return Function((key, tuple(write(event) for event in logs.get((log, key), ()))) for key in keys)

        return _record(
            {
                "total": self.trace.order == "total",
                "quiet": self.trace.quiet,
                "left": of("left", left_keys, lambda event: self._left_row(event.value)),
                "right": of("right", right_keys, lambda event: self._right_row(event.key, event.value)),
                "sent": of("sent", [*right_keys, NONE], self._subscription),
                "answered": of("answered", left_keys, self._response),
                "emitted": of("emitted", left_keys, self._pair),
                "schedule": tuple(self._step(*group) for group in self.groups),
            }
        )

    @cached_property
    def logs(self) -> dict[tuple[str, TlaValue], list[TraceEvent]]:
        """Return the events of each log of the module, in order."""
        logs: dict[tuple[str, TlaValue], list[TraceEvent]] = {}
        for event in self.trace.events:
            if event.kind == "right":
                logs.setdefault(("right", self.right_names[event.key]), []).append(event)
            elif event.kind == "subscription sent":
                logs.setdefault(("sent", self._right_name(event.foreign_key)), []).append(event)
            elif event.kind in ("left", "response sent", "output"):
                log = {"left": "left", "response sent": "answered", "output": "emitted"}[event.kind]
                logs.setdefault((log, self.left_names[event.key]), []).append(event)
        return logs

    def _right_name(self, key: Any) -> TlaValue:
        return NONE if key is None else self.right_names[key]

    def _left_row(self, value: Row) -> TlaValue:
        return (
            NONE
            if value is None
            else self.rows.get(_text(value), (_record({"version": 0, "foreign_key": NONE}), None))[0]
        )

    def _right_row(self, key: Any, value: Row) -> TlaValue:
        """Return a right row of the specification; if the key is unknown or the row never existed, only its version has
        a meaning.
        """
        if value is None:
            return NONE
        named = NONE if key is None or key is UNKNOWN else self.right_names[key]
        return _record({"version": self.versions.get(_text(value), 0), "key": named})

    def _hash(self, event: TraceEvent) -> dict[str, TlaValue]:
        known = event.of is not UNKNOWN
        return {"hashed": known, "hash": self._left_row(event.of) if known else NONE}

    def _subscription(self, event: TraceEvent) -> Function:
        assert event.instruction is not None
        asks: dict[str, TlaValue] = {"key": self.left_names[event.key], "instruction": event.instruction}
        return _record({**asks, **self._hash(event)})

    def _response(self, event: TraceEvent) -> Function:
        named = event.foreign_key is not UNKNOWN
        from_: dict[str, TlaValue] = {"named": named, "from": self._right_name(event.foreign_key) if named else NONE}
        return _record({**from_, **self._hash(event), "value": self._right_row(event.foreign_key, event.value)})

    def _pair(self, event: TraceEvent) -> TlaValue:
        if event.value is None:
            return NONE
        left, right = event.value
        row = self._left_row(left)
        names = row["foreign_key"] if isinstance(row, Function) else NONE
        return _record({"left": row, "right": self._right_row(self.keys.get(str(names)), right)})

    def _step(self, step: TraceEvent, does: Sequence[TraceEvent]) -> Function:
        counts = [sum(one.kind == kind for one in does) for kind in ("subscription sent", "response sent", "output")]
        route = {"left": None, "right": step.key}.get(step.kind, step.foreign_key)
        return _record(
            {
                "action": STEPS[step.kind],
                "route": self._right_name(route),
                "key": NONE if step.kind == "right" else self.left_names[step.key],
                **dict(zip(("sent", "answers", "emitted"), counts, strict=True)),
            }
        )

    # Conversion of the recorded trace to a state

    def progress(self, state: Any) -> int:
        """Return the number of explained events, as the specification's `Progress` does."""
        at = state["at"]
        return int(at["steps"]) + sum(sum(map(_int, at[log].values())) for log in ("sent", "answered", "emitted"))

    def explains(self, state: Any) -> bool:
        """Return whether a state explains the whole trace, as the specification's `IsExplained` does."""
        if state["strayed"] != NONE or self._unexplained(state):
            return False
        if self.trace.order == "total" and state["at"]["steps"] != len(self.groups):
            return False
        return not self.trace.quiet or not self._waits(state)

    @staticmethod
    def _waits(state: Any) -> bool:
        queues = [*state["subscriptions"].values()]
        queues += [queue for of_route in state["responses"].values() for queue in of_route.values()]
        return any(queues)

    def _unexplained(self, state: Any) -> list[TraceEvent]:
        at = state["at"]
        first = [
            events[count] for (log, key), events in self.logs.items() if (count := at[log].get(key, 0)) < len(events)
        ]
        return sorted(first, key=lambda event: event.line)

    def refusal(self, state: Any, strays: Sequence[Any]) -> Refusal:
        """Return the refusal of the trace, from the state that explains most events."""
        possible = tuple(self._possible(state, strayed) for strayed in strays)
        unexplained = tuple(self._unexplained(state))
        if self.trace.order == "total":
            steps = state["at"]["steps"]
            explained = sum(1 + len(does) for _, does in self.groups[:steps])
            after = self.groups[steps - 1][0] if steps else None
            event, lacks = self._refused(steps, possible)
            if lacks:
                after = self.groups[steps][0]
        else:
            left = {id(one) for events in self.logs.values() for one in events}
            at = state["at"]
            done = {id(one) for (log, key), events in self.logs.items() for one in events[: at[log].get(key, 0)]}
            explained = len(left & done)
            event = self._contradicted(state, possible) or (unexplained[0] if unexplained else None)
            before = [one for one in self.trace.events if id(one) in done]
            after = before[-1] if before else None
            lacks = () if event is not None else tuple(one for way in possible for one in way.does)
        return Refusal(event, lacks, explained, len(self.trace.events), after, unexplained, possible)

    def _contradicted(self, state: Any, possible: Sequence[Possible]) -> TraceEvent | None:
        """Return the first event that contradicts the effect of a possible step, if any."""
        logs, found = self.logs, []
        for one in (one for way in possible for one in way.does):
            if one.kind == "subscription sent":
                log, key = "sent", self._right_name(one.foreign_key)
            else:
                log, key = ("answered" if one.kind == "response sent" else "emitted"), self.left_names[one.key]
            rest = logs.get((log, key), [])[state["at"][log][key] :]
            found += [event for event in rest[:1] if not _alike(event, one)]
        return min(found, key=lambda event: event.line, default=None)

    def _refused(self, steps: int, possible: Sequence[Possible]) -> tuple[TraceEvent | None, tuple[TraceEvent, ...]]:
        if steps == len(self.groups):
            return None, ()
        step, does = self.groups[steps]
        mine = [
            way
            for way in possible
            if (way.step.kind, way.step.key) == (step.kind, step.key)
            and (step.kind in ("left", "right") or way.step.foreign_key == step.foreign_key)
        ]
        if not mine:
            return step, ()
        left = list(mine[0].does)
        for one in does:
            same = next((other for other in left if _alike(one, other)), None)
            if same is None:
                return one, ()
            left.remove(same)
        return (None, tuple(left)) if left else (step, ())

    def _possible(self, state: Any, strayed: Any) -> Possible:
        kind = _KIND_OF[str(strayed["action"])]
        key = self._key(strayed["route"] if kind == "right" else strayed["key"])
        if kind in ("left", "right"):
            # A step's change of a table is the trace's next change of this table.
            name = strayed["route"] if kind == "right" else strayed["key"]
            step = self.logs[kind, name][state["at"][kind][name]]
        else:
            step = TraceEvent(0, kind, key or "", foreign_key=self._key(strayed["route"]))
        does = [
            *(
                TraceEvent(
                    0,
                    "subscription sent",
                    self._key(one["key"]) or "",
                    foreign_key=self._key(to),
                    instruction=str(one["instruction"]),
                    of=self.values[one["hash"]],
                )
                for to, one in strayed["sent"]
            ),
            *(
                TraceEvent(
                    0,
                    "response sent",
                    self._key(answer["key"]) or "",
                    foreign_key=self._key(answer["from"]),
                    value=self.values[answer["response"]["value"]],
                    of=self.values[answer["response"]["hash"]],
                )
                for answer in sorted(strayed["answers"], key=str)
            ),
            *(TraceEvent(0, "output", key or "", value=self._emitted(pair)) for pair in strayed["emitted"]),
        ]
        return Possible(step, tuple(does))

    def _emitted(self, pair: Any) -> Row:
        return None if pair == NONE else [self.values[pair["left"]], self.values[pair["right"]]]

    def _key(self, name: Any) -> Key | None:
        return None if name == NONE else self.keys[str(name)]


def _alike(recorded: TraceEvent, meant: TraceEvent) -> bool:
    """Return whether a recorded event, which may lack fields, may be the given event of the specification."""
    return (
        (recorded.kind, recorded.key, recorded.instruction) == (meant.kind, meant.key, meant.instruction)
        and _text(recorded.value) == _text(meant.value)
        and (recorded.foreign_key is UNKNOWN or recorded.kind == "output" or recorded.foreign_key == meant.foreign_key)
        and (recorded.of is UNKNOWN or _text(recorded.of) == _text(meant.of))
    )


def _grouped(events: Sequence[TraceEvent]) -> Iterator[tuple[TraceEvent, list[TraceEvent]]]:
    """Yield each step of a trace with the messages and outputs that the step causes."""
    group: tuple[TraceEvent, list[TraceEvent]] | None = None
    for event in events:
        if event.is_step:
            if group is not None:
                yield group
            group = event, []
        elif group is not None:
            group[1].append(event)
    if group is not None:
        yield group


def _record(fields: Mapping[str, TlaValue]) -> Function:
    return Function(fields.items())


def _text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def _int(value: TlaValue) -> int:
    assert isinstance(value, int)
    return value


# Traces of the protocol in Python


def record_trace(history: History, protocol: type[Protocol] = Protocol, named: str | None = None) -> JoinTrace:
    """Run a history with manual delivery on the protocol, and return the trace of this run.

    Args:
        history: The history of a foreign-key join.
        protocol: The protocol, or a variant of it.
        named: The specification's name for the protocol's instructions, or None for the history's option `protocol`.

    Raises:
        BadInput: A delivery's route has no waiting message.
    """
    definition: ForeignKeyJoin = operator_named(history.operator).declare(history.options)
    machine = protocol(definition, StreamTime())
    values: dict[bytes | None, Row] = {None: None}
    events: list[TraceEvent] = []

    def add(kind: EventKind, key: Key, **fields: Any) -> None:
        events.append(TraceEvent(len(events) + 2, kind, key, **fields))

    for line in history.lines:
        before = {route: list(messages) for route, messages in machine.waiting.items()}
        if isinstance(line, Record) and line.key is not None:
            if line.input == "left":
                values[digest_of(line.value)] = line.value
                add("left", line.key, value=line.value, foreign_key=definition.foreign_key_of(line.value))
            else:
                add("right", line.key, value=line.value)
            emitted: Sequence[Any] = machine.arrive(line)
        elif isinstance(line, Delivery):
            route: Route = (line.channel, line.foreign_key, line.key)
            if route in before:
                message = before[route].pop(0)
                kind: EventKind = "subscription delivered" if line.channel == "subscription" else "response delivered"
                add(kind, message.key, foreign_key=line.foreign_key)
            emitted = machine.deliver(*line)
        else:
            continue
        for now, messages in machine.waiting.items():
            for sent in list(messages)[len(before.get(now, ())) :]:
                of, to = values.get(sent.digest), None if sent.foreign_key == WITHOUT_KEY else sent.foreign_key
                if isinstance(sent, Subscription):
                    asked = sent.instruction.value
                    add("subscription sent", sent.key, foreign_key=to, instruction=asked, of=of)
                else:
                    add("response sent", sent.key, foreign_key=to, value=sent.value, of=of)
        for change in emitted:
            if isinstance(change, Change) and change.key is not None:
                add("output", change.key, value=change.value)
    return JoinTrace(
        definition.join,
        definition.protocol if named is None else named,
        definition.null_foreign_key,
        "total",
        not machine.waiting,
        tuple(events),
    )
