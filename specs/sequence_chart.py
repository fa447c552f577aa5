"""The message-sequence chart of a behaviour, as a self-contained SVG file.

Time runs downwards; each step of the behaviour is a band. A message is an arrow from the step of its sending to the
step of its delivery. Two crossing arrows show that a message overtakes another. A long arrow shows a stale message. A
module may have a `Description`, which names the module's channels and tables. The chart of a module without a
`Description` shows only the changes of the module's variables.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeAlias

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from .pytla import Function, ModelValue, TlaValue, Trace, to_tla
from .steps import ending, read_module, readable_steps, sequence_difference, written

ChartState: TypeAlias = Mapping[str, TlaValue]
ChartKeys: TypeAlias = tuple[TlaValue, ...]

LINE = 18
"""The height of a line of text, in pixels."""
MONOSPACE, SANS = 6.9, 6.6
"""The usual width of a character, in pixels; because fonts differ, all boxes have spare room."""
MARGIN = 24
_LONGEST_LINE = 110
NO_BREAK = "\u00a0"


@dataclass(frozen=True)
class Channel:
    """A variable that holds queues of messages, by key.

    Attributes:
        variable: The variable.
        depth: The number of nested keys that lead to a queue, which is a sequence, a set or a bag.
        sender: The sending lifeline; `{0}` and `{1}` stand for the keys.
        receiver: The receiving lifeline.
        lines: The text beside a message: `{name}` stands for a field of the message, `{0}` for a key, and `{it}` for
            the whole message.
        discards: A function of the keys, a delivered message, and the states before and after the delivery; it returns
            whether the receiver discards the message.
    """

    variable: str
    depth: int
    sender: str
    receiver: str
    lines: tuple[str, ...]
    discards: Callable[[ChartKeys, TlaValue, ChartState, ChartState], bool] = lambda keys, message, before, after: False


@dataclass(frozen=True)
class RowsVariable:
    """A variable that contains rows by key: a change is an event on a lifeline.

    Attributes:
        variable: The variable.
        depth: The number of nested keys that lead to a row.
        lane: The lifeline; `{0}` and `{1}` stand for the keys.
        line: The text of a changed row; `{it}` stands for the row.
        at_the_end: The text for each row below the chart.
        kind: `changed` from outside, `noted` by the protocol for itself, or an `output` of the operator.
        gone: The text for a row that becomes a model value, if that means a deletion; deleted rows aren't listed below
            the chart. If this text is empty, the chart shows the model value like any other value.
        emitter: The lifeline that emits the row, if another lifeline shows the row; an arrow leads from the emitting
            lifeline to the row.
    """

    variable: str
    depth: int
    lane: str
    line: str
    at_the_end: str
    kind: Literal["changed", "noted", "output"] = "changed"
    gone: str = ""
    emitter: str = ""


@dataclass(frozen=True)
class Description:
    """A description of how a chart shows a module's variables.

    Attributes:
        lanes: The lifelines from left to right; `{0}` stands for one lifeline per key.
        tables: The tables.
        channels: The channels.
        note: A sentence below the chart that explains the notation of values.
    """

    lanes: tuple[str, ...]
    tables: tuple[RowsVariable, ...]
    channels: tuple[Channel, ...]
    note: str = ""


def _stale(keys: ChartKeys, message: TlaValue, before: ChartState, after: ChartState) -> bool:
    """Return whether a response has another hash than the present row, and didn't change the result."""
    left = before["left"]
    row = left[keys[1]] if isinstance(left, Function) else None
    return isinstance(message, Function) and message["hash"] != row and before["result"] == after["result"]


def _older(keys: ChartKeys, message: TlaValue, before: ChartState, after: ChartState) -> bool:
    """Return whether the receiver discards a result because the result is older than the newest result so far."""
    newest = before["newest"]
    of_key = newest[keys[1]] if isinstance(newest, Function) else 0
    age = message["age"] if isinstance(message, Function) else 0
    return (
        isinstance(age, int) and isinstance(of_key, int) and age < of_key and before["collected"] == after["collected"]
    )


DESCRIPTIONS: dict[str, Description] = {
    "ForeignKeyJoin": Description(
        lanes=("result", "left", "right {0}"),
        tables=(
            RowsVariable("left", 1, "left", "{0} = {it}", "left {0} = {it}"),
            RowsVariable("right", 1, "right {0}", "{0} = {it}", "right {0} = {it}"),
            RowsVariable(
                "subscribed",
                2,
                "right {0}",
                "{1} subscribed with {it}",
                "{1} subscribed to {0} with {it}",
                "noted",
                "{1} unsubscribed",
            ),
            RowsVariable("result", 1, "result", "{0} = {it}", "result {0} = {it}", "output", emitter="left"),
        ),
        channels=(
            Channel("subscriptions", 1, "left", "right {0}", ("{instruction}", "{key}, hash {hash}")),
            Channel("responses", 2, "right {0}", "left", ("answer {value}", "to {1}, hash {hash}"), _stale),
        ),
        note="A left row is written (version, foreign key), a right row (version, key); a row is its own hash.",
    ),
    "OneToManyJoin": Description(
        lanes=("left", "right {0}", "collected"),
        tables=(
            RowsVariable("left", 1, "left", "{0} = {it}", "left {0} = {it}"),
            RowsVariable("right", 1, "right {0}", "{0} = {it}", "right {0} = {it}"),
            RowsVariable("kept", 2, "right {0}", "{1} kept: {row}", "{1} kept at {0}: {row}", "noted", "{1} not kept"),
            RowsVariable(
                "result", 2, "right {0}", "{0} {1} = {it}", "result {0} {1} = {it}", "output", "{0} {1} = None"
            ),
            RowsVariable(
                "collected", 2, "collected", "{0}: {1} = {it}", "collected {0}: {1} = {it}", "output", "{0}: {1} = None"
            ),
        ),
        channels=(
            Channel("rows", 1, "left", "right {0}", ("{key} = {row}", "age {age}")),
            Channel("results", 2, "right {0}", "collected", ("{value}", "to {1}, age {age}"), _older),
        ),
        note="A left row is written (version, foreign key), a right row (version, key). Age 0: no result is kept.",
    ),
    "TableTableJoin": Description(
        lanes=("left", "join", "right"),
        tables=(
            RowsVariable("tables", 2, "join", "{0} {1} = {it}", "{0} {1} = {it}", "noted", "{0} {1} = None"),
            RowsVariable("result", 1, "join", "result {0} = {it}", "result {0} = {it}", "output"),
        ),
        channels=(Channel("queue", 1, "{0}", "join", ("{key} = {value}",)),),
    ),
}


@dataclass
class _Message:
    channel: Channel
    keys: ChartKeys
    content: TlaValue
    sent_at: float
    delivered_at: float | None = None
    discarded: bool = False


@dataclass
class _Picture:
    """The chart's data for the template."""

    lanes: dict[str, float] = field(default_factory=dict)
    bands: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    arrows: list[dict[str, Any]] = field(default_factory=list)
    texts: list[dict[str, Any]] = field(default_factory=list)
    y: float = 0


def sequence_chart(trace: Trace, module: Path, title: str, violated: str = "", name: str = "chart") -> str:
    """Draw a behaviour.

    Args:
        trace: The behaviour.
        module: The file of its module: its name selects the description, and its text names the actions' parameters.
        title: The title.
        violated: The violated property, whose comment in the module is shown below it; or a sentence on another
            violation. Empty for none.
        name: The prefix of the chart's ids, and the scope of its styles, so that a page can contain several charts.

    Returns:
        Return the text of an SVG file, without references to other files.
    """
    text = read_module(module)
    description = DESCRIPTIONS.get(module.stem)
    if description is None or not _fits(description, trace.steps[0].state):
        description = None
    steps = readable_steps(trace, text, short)
    drawing = _Drawing(trace, description, {step.number: step.action for step in steps})
    if description is None:
        first = text.ordered(trace.steps[0].state)
        drawing.plain_step("initial state", 1, [f"{name} = {written(value)}" for name, value in first.items()])
        for step in steps:
            drawing.plain_step(step.action, step.number, [change.text for change in step.changes])
    else:
        drawing.steps()
    verdict = f"{violated} is violated" if violated.isidentifier() else violated
    said = text.definitions[violated].comment if violated in text.definitions else ""
    spoken = [f"{step.number}: {step.action}" for step in steps]
    return drawing.svg(name, title, verdict, said, ". ".join([*spoken, *filter(None, (verdict, said))]))


def short(value: TlaValue) -> str:
    """Write a value briefly: a row as its fields, `(1, r1)`, and a pair of rows as `[(1, r1), (1, r1)]`."""
    match value:
        case bool():
            return to_tla(value)
        case str():
            return value
        case ModelValue():
            return str(value)
        case Function() if set(value) == {"left", "right"}:
            return f"[{short(value['left'])}, {short(value['right'])}]"
        case Function() if all(isinstance(name, str) for name in value):
            return f"({', '.join(map(short, value.values()))})"
        case tuple():
            return f"⟨{', '.join(map(short, value))}⟩"
        case frozenset():
            return f"{{{', '.join(sorted(map(short, value)))}}}"
    return to_tla(value)


class _Drawing:
    """Draws a chart from top to bottom; all methods share the current height."""

    def __init__(self, trace: Trace, description: Description | None, actions: Mapping[int, str]) -> None:
        self.trace, self.description, self.actions = trace, description, actions
        self.picture = _Picture()
        self.messages: list[_Message] = []
        self.step_column = MARGIN + 34 + max([90, *(MONOSPACE * len(action) for action in actions.values())])
        self.right_edge = self.step_column
        self.gap = 0.0
        if description is not None:
            self._place_lanes(description)

    # -- lifelines ---------------------------------------------------------------------------------------------------

    def _place_lanes(self, description: Description) -> None:
        names = [name for template in description.lanes for name in self._lanes_of(template, description)]
        self.gap = 60 + MONOSPACE * max([18, *self._label_lengths(description)])
        pills = (len(_filled(table.line, keys, row)) for table, keys, row in self._rows_of(names[0]))
        x = self.step_column + 30 + max([60.0, *(MONOSPACE * length / 2 for length in pills)])
        for name in names:
            self.picture.lanes[name] = x
            x += self.gap * (0.75 if name == "result" else 1)
        self.right_edge = x - self.gap / 2

    def _lanes_of(self, template: str, description: Description) -> list[str]:
        if "{" not in template:
            return [template]
        # Only keys with events have a lifeline.
        names = set()
        for step in self.trace.steps:
            for table in description.tables:
                first = dict(_leaves(self.trace.steps[0].state[table.variable], table.depth))
                for keys, row in _leaves(step.state[table.variable], table.depth):
                    if template in (table.lane, table.emitter) and (_is_there(row) or first.get(keys) != row):
                        names.add(_filled(template, keys, None))
            for channel in description.channels:
                for keys, queue in _leaves(step.state[channel.variable], channel.depth):
                    if template in (channel.sender, channel.receiver) and _in_order(queue):
                        names.add(_filled(template, keys, None))
        return sorted(names, key=_natural)

    def _rows_of(self, lane: str) -> Iterator[tuple[RowsVariable, ChartKeys, TlaValue]]:
        """Return every row that is ever shown on a lifeline."""
        for step in self.trace.steps:
            for table in self.description.tables if self.description else ():
                for keys, row in _leaves(step.state[table.variable], table.depth):
                    if _filled(table.lane, keys, None) == lane:
                        yield table, keys, row

    def _label_lengths(self, description: Description) -> Iterator[int]:
        for step in self.trace.steps:
            for channel in description.channels:
                for keys, queue in _leaves(step.state[channel.variable], channel.depth):
                    for message in _in_order(queue):
                        yield from (len(_filled(line, keys, message)) for line in channel.lines)

    # -- steps -------------------------------------------------------------------------------------------------------

    def steps(self) -> None:
        """Draw every step: its deliveries, changes, messages and outputs."""
        assert self.description is not None
        first = self.trace.steps[0].state
        band = self._open_band("initial state", 1)
        for table in self.description.tables:
            for keys, row in _leaves(first[table.variable], table.depth):
                if _is_there(row):
                    self._event(table, keys, row)
        for channel in self.description.channels:
            for keys, queue in _leaves(first[channel.variable], channel.depth):
                for message in _in_order(queue):
                    self._send(channel, keys, message)
        self._close_band(band)
        for before, step in zip(self.trace.steps, self.trace.steps[1:], strict=False):
            band = self._open_band(self.actions[step.number], step.number)
            self._step(before.state, step.state)
            self._close_band(band)

    def _step(self, before: ChartState, after: ChartState) -> None:
        assert self.description is not None
        sent: list[tuple[Channel, ChartKeys, TlaValue]] = []
        for channel in self.description.channels:
            now = dict(_leaves(after[channel.variable], channel.depth))
            for keys, queue in _leaves(before[channel.variable], channel.depth):
                gone, came = _difference(queue, now.get(keys, ()))
                waiting = [
                    message
                    for message in self.messages
                    if message.channel is channel and message.keys == keys and message.delivered_at is None
                ]
                for index in gone:
                    self._deliver(_taken(waiting, queue, index), before, after)
                sent += [(channel, keys, message) for message in came]
            old = dict(_leaves(before[channel.variable], channel.depth))
            sent += [(channel, keys, one) for keys, queue in now.items() if keys not in old for one in _in_order(queue)]
        for last in (False, True):
            for table in self.description.tables:
                if bool(table.emitter) is last:
                    rows = dict(_leaves(before[table.variable], table.depth))
                    for keys, row in _leaves(after[table.variable], table.depth):
                        if rows.get(keys) != row:
                            self._event(table, keys, row)
            if not last:
                for channel, keys, message in sent:
                    self._send(channel, keys, message)

    def plain_step(self, action: str, number: int, lines: Sequence[str]) -> None:
        """Draw a step of a module without a description: the action and the changes."""
        band = self._open_band(action, number)
        for line in lines:
            for part in textwrap.wrap(line, _LONGEST_LINE, subsequent_indent="    ", break_long_words=True) or [""]:
                indent = len(part) - len(part.lstrip())
                x = self.step_column + 30 + indent * MONOSPACE
                self.picture.texts.append({"x": x, "y": self._next_line() + 4, "text": part.strip()})
                self.right_edge = max(self.right_edge, x + MONOSPACE * len(part.strip()))
        self._close_band(band)

    def _open_band(self, action: str, number: int) -> dict[str, Any]:
        band = {"number": number, "action": action, "y": self.picture.y, "height": 0.0}
        self.picture.y += 8
        return band

    def _close_band(self, band: dict[str, Any]) -> None:
        self.picture.y = max(self.picture.y, band["y"] + 8 + LINE) + 6
        band["height"] = self.picture.y - band["y"]
        self.picture.bands.append(band)

    def _next_line(self) -> float:
        self.picture.y += LINE
        return self.picture.y - LINE / 2

    # -- events on the lifelines -------------------------------------------------------------------------------------

    def _lane(self, template: str, keys: ChartKeys) -> float:
        return self.picture.lanes[_filled(template, keys, None)]

    def _event(self, table: RowsVariable, keys: ChartKeys, row: TlaValue) -> None:
        line = table.gone if table.gone and isinstance(row, ModelValue) else table.line
        x, text = self._lane(table.lane, keys), _filled(line, keys, row)
        self.picture.y += 4
        y = self._next_line()
        self.picture.y += 4
        width = MONOSPACE * len(text) + 18
        self.picture.events.append({"x": x, "y": y, "text": text, "kind": table.kind, "width": width})
        if table.emitter:
            start = self._lane(table.emitter, keys)
            end = x + width / 2 if start > x else x - width / 2
            self.picture.arrows.append(_arrow("output", start, y, end, y, ()))
        self.right_edge = max(self.right_edge, x + width / 2)

    def _send(self, channel: Channel, keys: ChartKeys, message: TlaValue) -> None:
        self.picture.y += LINE * len(channel.lines)
        self.messages.append(_Message(channel, keys, message, self.picture.y))
        self.picture.y += 6

    def _deliver(self, message: _Message, before: ChartState, after: ChartState) -> None:
        message.delivered_at = self._next_line()
        message.discarded = message.channel.discards(message.keys, message.content, before, after)

    # -- the file ----------------------------------------------------------------------------------------------------

    def svg(self, name: str, title: str, verdict: str, said: str, spoken: str) -> str:
        """Return the file: lifelines to the end of the last step, then waiting messages, then the verdict."""
        picture = self.picture
        still_waiting = any(message.delivered_at is None for message in self.messages)
        picture.y += 26 if still_waiting else 10
        for message in self.messages:
            self._draw_message(message, picture.y - 4)
        width = max(self.right_edge, MARGIN + 11 * len(title), self.step_column + 330) + MARGIN
        top = 60.0 + (46 if picture.lanes else 0)
        footer, box, bottom = self._footer(width, top + picture.y, verdict, said)
        environment = Environment(
            loader=FileSystemLoader(Path(__file__).parent),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=_finished,
        )
        return environment.get_template("sequence_chart.svg.jinja").render(
            name=name,
            title=title,
            spoken=spoken,
            width=width,
            height=bottom + MARGIN,
            top=top,
            bottom=picture.y,
            margin=float(MARGIN),
            lanes=picture.lanes,
            bands=picture.bands,
            events=picture.events,
            arrows=picture.arrows,
            texts=picture.texts,
            loop_band=next((band for band in picture.bands if band["number"] == self.trace.loop), None),
            footer=footer,
            verdict_height=box,
        )

    def _footer(self, width: float, y: float, verdict: str, said: str) -> tuple[list[dict[str, Any]], float, float]:
        """Return the lines below the chart, the height of the box around the verdict, and the bottom of the lines."""
        fits = int((width - 2 * MARGIN - 30) / SANS)
        lines: list[dict[str, Any]] = []

        def write(text: str, kind: str, style: str, indent: float) -> None:
            nonlocal y
            for line in textwrap.wrap(text, fits):
                y += LINE + 2
                lines.append({"text": line, "kind": kind, "style": style, "indent": indent, "y": y})
                kind = "more"

        y += 4
        write(ending(self.trace), "ending", "faint", 0.0)
        write(self._still_waiting(), "waiting", "faint", 0.0)
        write(self._at_the_end(), "end", "faint", 0.0)
        write(self.description.note if self.description else "", "note", "faint", 0.0)
        if not verdict:
            return lines, 0.0, y
        y += 22
        above = y
        write(verdict, "verdict", "verdict", 14.0)
        write(said, "said", "ink", 14.0)
        return lines, y - above + 14, y + 10

    def _draw_message(self, message: _Message, bottom: float) -> None:
        start, end = (
            self._lane(message.channel.sender, message.keys),
            self._lane(message.channel.receiver, message.keys),
        )
        lines = tuple(_filled(line, message.keys, message.content) for line in message.channel.lines)
        forward = 1 if end > start else -1
        if message.delivered_at is None:
            # The message is still waiting, so its arrow ends at the last step.
            drawn = _arrow("waiting", start, message.sent_at, end - forward * 14, bottom, lines)
        else:
            kind = "discarded" if message.discarded else "back" if forward < 0 else "forth"
            drawn = _arrow(kind, start, message.sent_at, end, message.delivered_at, lines)
        self.picture.arrows.append(drawn)

    def _still_waiting(self) -> str:
        count = sum(message.delivered_at is None for message in self.messages)
        return f"{count} {'message is' if count == 1 else 'messages are'} still waiting (dashed)." if count else ""

    def _at_the_end(self) -> str:
        if self.description is None:
            return ""
        last = self.trace.steps[-1].state
        rows = [
            _filled(table.at_the_end, keys, row)
            for table in self.description.tables
            for keys, row in _leaves(last[table.variable], table.depth)
            if not (table.gone and isinstance(row, ModelValue))
        ]
        # A row in the text isn't split at a line end.
        return f"At the end: {'; '.join(one.replace(' ', NO_BREAK) for one in rows)}."


def _arrow(kind: str, x: float, y: float, to_x: float, to_y: float, lines: tuple[str, ...]) -> dict[str, Any]:
    forward = to_x > x
    length = math.hypot(to_x - x, to_y - y)
    cross = 1 - 22 / length  # the cross of a discarded message is just before the arrowhead
    labels = [
        {"x": x + (10 if forward else -10), "y": y - 6 - 15 * (len(lines) - 1 - number), "text": line}
        for number, line in enumerate(lines)
    ]
    return {
        "kind": kind,
        "x": x,
        "y": y,
        "to_x": to_x,
        "to_y": to_y,
        "angle": math.degrees(math.atan2(to_y - y, to_x - x)),
        "cross_x": x + cross * (to_x - x),
        "cross_y": y + cross * (to_y - y),
        "forward": forward,
        "labels": labels,
    }


def _fits(description: Description, state: ChartState) -> bool:
    """Return whether a state has the described variables, because a user's module may have the same name."""
    parts: list[RowsVariable | Channel] = [*description.tables, *description.channels]
    return all(part.variable in state for part in parts)


def _is_there(row: TlaValue) -> bool:
    """Return whether a value of the initial state is a row, and not a word that means no row."""
    return isinstance(row, Function | tuple | frozenset) and bool(row)


def _leaves(value: TlaValue, depth: int) -> Iterator[tuple[ChartKeys, TlaValue]]:
    """Yield the values below `depth` keys, each with its keys."""
    if depth == 0:
        yield (), value
        return
    inside = value.items() if isinstance(value, Function) else enumerate(value, 1) if isinstance(value, tuple) else ()
    for key, within in inside:
        for keys, leaf in _leaves(within, depth - 1):
            yield (key, *keys), leaf


def _in_order(queue: TlaValue) -> tuple[TlaValue, ...]:
    """Return the messages of a queue; sets and bags are sorted by text."""
    if isinstance(queue, tuple):
        return queue
    if isinstance(queue, frozenset):
        return tuple(sorted(queue, key=to_tla))
    if isinstance(queue, Function):
        copies = ((message, count) for message, count in queue.items() if isinstance(count, int))
        return tuple(message for message, count in sorted(copies, key=lambda one: to_tla(one[0])) for _ in range(count))
    return ()


def _difference(before: TlaValue, after: TlaValue) -> tuple[list[int], tuple[TlaValue, ...]]:
    """Return the indexes of the messages that were removed from a queue, and the messages that were added to it."""
    old, new = _in_order(before), _in_order(after)
    if isinstance(before, tuple):
        return sequence_difference(old, new)
    taken, put = Counter(old) - Counter(new), Counter(new) - Counter(old)
    indices = []
    for number, message in enumerate(old):
        if taken[message]:
            taken[message] -= 1
            indices.append(number)
    return indices, tuple(put.elements())


def _taken(waiting: list[_Message], queue: TlaValue, index: int) -> _Message:
    """Return the message at an index of a queue: sequences keep the order of sending, sets and bags have no order."""
    if isinstance(queue, tuple):
        return waiting[index]
    content = _in_order(queue)[index]
    return next(message for message in waiting if message.content == content and message.delivered_at is None)


def _filled(template: str, keys: ChartKeys, value: TlaValue | None) -> str:
    fields = {}
    if isinstance(value, Function):
        fields = {name: short(within) for name, within in value.items() if isinstance(name, str)}
    whole = "" if value is None else short(value)
    try:
        return template.format(*map(short, keys), it=whole, **fields)
    except (KeyError, IndexError):  # the message lacks a field of the template
        return whole


def _natural(name: str) -> list[tuple[str, int]]:
    """Return a sort key that sorts r2 before r10."""
    return [(letters, int(digits or 0)) for letters, digits in re.findall(r"(\D*)(\d*)", name)]


def _finished(value: Any) -> Any:
    """Convert a value for the template: round numbers to one decimal, and remove characters that XML forbids."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    if isinstance(value, str):
        return re.sub("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", value)
    return value
