"""What a public function of `spark_impl` declares to Spark under a definition, and histories played through it.

Without Spark: columns are Spark Connect's, which need no server, and what would run is kept instead.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from typing import Any

import pytest
from memory_runtime import Groups, Row, came, sent
from pyspark.sql import Column
from pyspark.sql import types as T
from pyspark.sql.pandas.types import from_arrow_type
from streamproof.properties.generators.cohorts import clock_schedule, record_batches
from streamproof.properties.outcomes.outcomes import Grain, Outcome
from streamproof.properties.registration.bindings import KEY, ORDER, TIMESTAMP, Field
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.registration.shared import SharedOutput
from streamproof.properties.witnesses.spark.witness import binding_of
from streamproof.reference.core.history import History
from streamproof.reference.core.play import Entry
from streamproof.reference.core.records import Change, Dropped, Record
from streamproof.spark_impl.runtime import keyed
from streamproof.spark_impl.runtime.codec import column_of, encode
from streamproof.spark_impl.runtime.processor import KeyedProcessor, Stage

JSON = ("value", "member")
"""What a cohort's columns hold as JSON texts."""
INITIAL_STATE = "a result of read_state"
_DDL = {"int": T.IntegerType(), "bigint": T.LongType(), "string": T.StringType()}


@dataclass
class Frame:
    """Columns by name: as much of a DataFrame as a declaration looks at.

    Attributes:
        schema: The columns.
        still: The inputs whose rows are no stream, once they are filtered out.
        isStreaming: Whether it is a stream.
    """

    schema: T.StructType
    still: Sequence[str] = ()
    isStreaming: bool = True

    @property
    def columns(self) -> list[str]:
        return self.schema.names

    def select(self, *columns: str | Column) -> Frame:
        return replace(self, schema=T.StructType([self._field(one) for one in columns]))

    def filter(self, condition: Column) -> Frame:
        return replace(self, isStreaming=self.isStreaming and not any(one in str(condition) for one in self.still))

    def unionByName(self, other: Frame) -> Frame:
        return self

    withColumn = withColumns = withColumnsRenamed = withWatermark = mapInArrow = lambda self, *columns: self

    def _field(self, column: str | Column) -> T.StructField:
        shown = column if isinstance(column, str) else str(column)[len("Column<'") : -len("'>")]
        of, _, name = shown.rpartition(" AS ")
        found = [one.dataType for one in self.schema.fields if one.name == (of or name)]
        return T.StructField(name, found[0] if found else T.IntegerType())


@dataclass
class Declared:
    """The declaration of a stage.

    Attributes:
        definitions: The definitions that a logic was made of.
        stages: The stages that Spark would run.
        timed: Whether each of them has a clock and timers.
        declaration: The text by which checkpoints are told apart.
        initial_state: What it is to begin with.
        value: The type of the emitted values.
        fields: The cohort's further columns.
    """

    definition: Any
    fields: Sequence[Field]
    definitions: list[Any] = field(default_factory=list)
    stages: list[Stage] = field(default_factory=list)
    timed: list[bool] = field(default_factory=list)
    declaration: str = ""
    initial_state: Any = None
    value: T.DataType = field(default_factory=T.NullType)


def declared(
    operator: str,
    options: Any,
    records: Sequence[Record] = (),
    still: Sequence[str] = (),
    has_clock: bool = False,
) -> Declared:
    """Call an operator's public function under options, as a cohort of these records calls it.

    Args:
        operator: The operator's name.
        options: Its options.
        records: The records.
        still: The inputs that are batch DataFrames.
        has_clock: Whether the inputs come from a timed operator.
    """
    binding, definition = binding_of(operator), registration_of(operator).declare(options)
    found = Declared(definition, binding.fields(definition, records))
    make = binding.shared.logic

    def logic(of: Any) -> Any:
        found.definitions.append(of)
        return make(of)

    def served(packed: Frame, processor: Any, timed: bool, initial_state: Any) -> Frame:
        assert (processor.stage.declaration is None) == processor.stage.ended  # a batch DataFrame has no checkpoint
        found.declaration = processor.stage.declaration or ""
        found.stages.append(replace(processor.stage, declaration=None))  # a group in memory has no guard
        found.timed.append(timed)
        return packed

    def unpacked(sent: Frame, keys: Any, value_type: T.DataType, *more: Any) -> Frame:
        found.value = value_type
        return Frame(T.StructType([*keys]).add("value", value_type).add("window", "string"))

    def initial_states(given: Any, stages: int, streaming: bool) -> list[Any]:
        found.initial_state = given
        return []

    kinds = {KEY: T.StringType(), TIMESTAMP: T.LongType(), ORDER: T.LongType(), "input": T.StringType()}
    kinds |= {one.name: from_arrow_type(one.type) for one in found.fields}
    frame = Frame(T.StructType([T.StructField(name, kind) for name, kind in kinds.items()]), still)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        patch.setattr(T.DataType, "fromDDL", _DDL.__getitem__)
        patch.setattr(keyed, "DataFrame", Frame)
        patch.setattr(keyed, "_initial_states", initial_states)
        patch.setattr(keyed, "_has_clock", lambda source: has_clock)
        patch.setattr(keyed, "_served", served)
        patch.setattr(keyed, "_unpacked", unpacked)
        module = import_module(f"streamproof.spark_impl.{operator}")
        patch.setattr(module, operator, partial(getattr(module, operator), initial_state=INITIAL_STATE))
        binding.build(definition, frame, logic, 1)
    return found


def played(
    history: History,
    one: Declared,
    see: Callable[[Stage, Groups], None] = lambda stage, groups: None,
    handed_over: Collection[int] = (),
    nan: int | None = None,
    timeless: bool = False,
) -> Outcome:
    """Play a history through the stages, in memory.

    Args:
        history: The history.
        one: Its declaration.
        see: Is shown what each stage has stored, after each batch.
        handed_over: The batches before which a new checkpoint takes the state over.
        nan: Texts are floating-point numbers in the columns, and the text of this rank in frequency is NaN.
        timeless: Whether a row without a time comes before each row, the same in all else.
    """
    spelled = None if nan is None else Spelled(history, nan)
    definition, shared = one.definition, binding_of(history.operator).shared
    groups = [Groups(1) for _ in one.stages]
    entries: list[Entry] = []
    schedule, order, last = clock_schedule(history), 0, len(history.batches) - 1
    for number, records in enumerate([*record_batches(history), []]):
        clock = schedule[number - 1] if number else 0
        if number in handed_over:
            groups = [_handed_over(*each) for each in zip(one.stages, groups, strict=True)]
        rows: list[list[Row]] = [[] for _ in one.stages]
        for record in records:
            value, stage = shared.content(definition, record)
            place = order if len(one.stages) == 1 else [order, record.timestamp, *[-1] * stage]
            sides = [side.name for side in one.stages[stage].sides]
            side = sides.index(record.input) if record.input in sides else len(sides) - 1
            packed = _typed(value, one.stages[stage].sides[side].value, one.fields)
            key = (record.key,)
            if spelled is not None:
                key, packed = spelled.written(key), spelled.written(packed)
            if timeless:
                rows[stage].append(Row(key, None, place, packed, side))
            rows[stage].append(Row(key, record.timestamp, place, packed, side))
            order += 1
        for at, (stage, timed) in enumerate(zip(one.stages, one.timed, strict=True)):
            binaries = groups[at].batch(stage, rows[at], clock if timed else 0)
            if at + 1 < len(one.stages):
                rows[at + 1] += [Row(*message, side=0) for message in sent(binaries)]
                continue
            for key, emitted, _ in came(binaries):
                if spelled is not None:
                    key, emitted = spelled.read(key), emitted._replace(value=spelled.read(emitted.value))
                column = column_of([emitted.value], one.value)
                assert _plain(column.to_pylist()[0]) == _plain(emitted.value)
                value = _untyped(emitted.value, one.fields)
                change = SharedOutput(0, key, emitted.start, emitted.end, value, *_rest(emitted))
                entries.append(_entry(min(number, last), definition, shared, change))
        for stage, stored in zip(one.stages, groups, strict=True):
            see(stage, stored)
    return Outcome(history.name, Grain.BATCH, entries, is_stream=definition.is_stream)


class Spelled:
    """The texts of a history as floating-point numbers, and back.

    Args:
        history: The history; texts of its values' columns are texts of JSON too.
        nan: The rank of the text that is NaN, of the three most frequent.
    """

    def __init__(self, history: History, nan: int) -> None:
        frequent = [one for one, _ in Counter(_texts([[one.key, one.value] for one in history.records])).most_common(3)]
        texts = {json.dumps(one) for record in history.records for one in (record.value, *_members(record.value))}
        texts |= {*_texts([[one.key, one.value] for one in history.records])}
        self.numbers = {text: 1e300 * (2 + at) for at, text in enumerate(sorted(texts))}
        self.numbers[frequent[nan % len(frequent)]] = math.nan

    def written(self, value: Any) -> Any:
        """Return a value with numbers for texts."""
        return _mapped(value, lambda one: self._number(one) if isinstance(one, str) else one)

    def _number(self, text: str) -> float:
        # A column may hold a part of a value.
        return self.numbers.setdefault(text, 1e300 * (2 + len(self.numbers)))

    def read(self, value: Any) -> Any:
        """Undo `written`."""
        texts = {repr(number): text for text, number in self.numbers.items()}
        return _mapped(value, lambda one: texts.get(repr(one), one) if isinstance(one, float) else one)


def _members(value: Any) -> Iterator[Any]:
    for one in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield one
        yield from _members(one)


def _texts(value: Any) -> Iterator[str]:
    return (one for one in _members(value) if isinstance(one, str))


def _mapped(value: Any, change: Callable[[Any], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _mapped(one, change) for name, one in value.items()}
    return type(value)(_mapped(one, change) for one in value) if isinstance(value, list | tuple) else change(value)


def _handed_over(stage: Stage, groups: Groups) -> Groups:
    """Return the groups of a new checkpoint that begins with a state, which comes in two parts."""
    found = Groups(1)
    memory, processor = found.memories[0], KeyedProcessor(stage)
    processor.init(memory)  # type: ignore[arg-type]
    stored = [(encode(key), own.emitted, None, own.fields) for key, (own, _) in groups.stored().items()]
    for part in filter(None, (stored[:1], stored[1:])):
        processor.handleInitialState((0,), (0, encode([*zip(*part, strict=True)]), 0), memory)  # type: ignore[arg-type]
    return found


def _entry(batch: int, definition: Any, shared: Any, change: SharedOutput) -> Entry:
    key = shared.key(definition, change)
    if change.reason is not None:
        return Entry(-1, batch, Dropped(key, change.reason))
    window = (change.start, change.end) if shared.windowed(definition) and change.start is not None else None
    return Entry(-1, batch, Change(key, window, shared.decode(definition, change), change.timestamp))


def _rest(emitted: Any) -> Iterator[Any]:
    return iter((emitted.timestamp, emitted.change, emitted.reason, emitted.cause))


def _typed(value: Any, kind: T.DataType, fields: Sequence[Field]) -> Any:
    """Return a value as a logic gets it from a column of a type: a text of a JSON column is JSON."""
    if value is None or isinstance(kind, T.IntegerType):  # the column of a count has no values
        return None
    if isinstance(kind, T.StructType):
        members = value.values() if isinstance(value, dict) else value
        typed = [
            member if one.name.startswith(("to", "group")) else _typed(member, one.dataType, fields)
            for one, member in zip(kind.fields, members, strict=True)
        ]
        return dict(zip(kind.names, typed, strict=True)) if isinstance(value, dict) else typed
    if not isinstance(kind, T.StringType) or not any(one.holds in JSON for one in fields):
        return value
    return json.dumps(value)


def _untyped(value: Any, fields: Sequence[Field]) -> Any:
    """Undo `_typed` in a value that is emitted."""
    if isinstance(value, dict):
        return {name: _untyped(member, fields) for name, member in value.items()}
    if isinstance(value, list | tuple):
        return [_untyped(member, fields) for member in value]
    is_json = isinstance(value, str) and any(one.holds in JSON for one in fields)
    try:
        return json.loads(value) if is_json else value
    except ValueError:
        return value  # a key beside the value


def _plain(value: Any) -> Any:
    """Return a value whose structs are lists."""
    if isinstance(value, dict):
        value = [*value.values()]
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
