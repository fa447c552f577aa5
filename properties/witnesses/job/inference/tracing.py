"""Follows a query's event times, keys and payloads through its analyzed plan, back to the sources' columns."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from ....generators.columns.terms import COLUMN, CONSTANT, Term
from ..plan.expressions import TermReader, Tree, read_expression, trees_of
from ..plan.plans import class_of, columns_beside, members, session_zone, walk

PARSERS = {"JsonToStructs": "json", "CsvToStructs": "csv", "AvroDataToCatalyst": "avro"}
"""Expressions that parse a payload, each with the payload's form."""
_OF_FUNCTIONS = ("FlatMapGroups", "TransformWithStateIn")
_DEDUPLICATIONS = ("Deduplicate", "DeduplicateWithinWatermark")
_TOGETHER = ("Aggregate", "Distinct", "GlobalLimit", "LocalLimit", "Offset", *_DEDUPLICATIONS)
"""Operators whose output rows depend on several rows."""
_UNITS = {1_000: "ms", 1_000_000: "us"}
_EPOCHS = {"SecondsToTimestamp": "s", "MillisToTimestamp": "ms", "MicrosToTimestamp": "us"}
_PARSED_TIMES = ("ParseToTimestamp", "GetTimestamp", "ParseToDate", "UnixTimestamp", "ToUnixTimestamp")
_OF_WINDOWS = ("PreciseTimestampConversion", "SessionWindow", "TimeWindow")
_TIMESTAMPS = ("timestamp", "timestamp_ntz")
_BEHIND_HEADER = 6
"""The position of the first byte after Confluent's header."""
_ITEMS = ("ElementAt", "GetArrayItem")
_READING = (*PARSERS, "GetJsonObject")
_TEXTS = ("Cast", "Decode", "RegExpReplace", "StringDecode", "StringReplace", "StringTrim", "Substring", "UnBase64")
"""Expressions by which a job prepares a payload before parsing."""
SQL_TYPES = {"long": "bigint", "integer": "int", "short": "smallint", "byte": "tinyint"}
"""The type names in a plan's JSON that differ from DDL."""
_LETTERS = {
    **{"y": "%Y", "u": "%Y", "yyyy": "%Y", "uuuu": "%Y", "M": "%m", "MM": "%m", "MMM": "%b", "MMMM": "%B"},
    **{"d": "%d", "dd": "%d", "H": "%H", "HH": "%H", "h": "%I", "hh": "%I"},
    **{"m": "%M", "mm": "%M", "s": "%S", "ss": "%S", "SSSSSS": "%f", "a": "%p"},
    **{"X": "Z", "XX": "Z", "XXX": "Z", "Z": "+0000", "xx": "+0000", "xxx": "+00:00", "z": "UTC"},
    **{"S" * digits: "0" * digits for digits in (1, 2, 3, 4, 5, 9)},
}
"""`strftime` codes of the letters in Spark's time patterns; fractions without a code become zeros."""
_PART = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^']")
_OPTIONAL = re.compile(r"\[[^\]]*\]")
"""An optional part of a time pattern."""


class Place(NamedTuple):
    """A position in the rows of a source: a column, or a path within a payload.

    Attributes:
        source: The name of the input.
        column: The source's column.
        path: The names of the fields within the column, or within its parsed payload.
        parsed: Whether the column is a payload that the job parses.
    """

    source: str
    column: str
    path: tuple[str, ...] = ()
    parsed: bool = False


class TracedTime(NamedTuple):
    """A column with a watermark.

    Attributes:
        place: The column's place.
        form: The format of times that aren't timestamps, as `Input.time_format` (None: a timestamp, ISO 8601, or
            seconds).
        is_known: Whether the format could be read.
    """

    place: Place
    form: str | None = None
    is_known: bool = True


@dataclass
class Payload:
    """A payload that the job parses.

    Attributes:
        form: "json", "csv", "avro", or "split" for a text with separators.
        schema: The schema: the text of an Avro schema, else the JSON form of a Spark type.
        fields: The fields that the job extracts one by one, each with the name of its type.
        has_header: Whether the job cuts off the 5-byte header of a schema registry's clients.
        separator: The separator of the parts of a split text.
        names: The names that the job assigns to the parts of a split text.
    """

    form: str
    schema: Any = None
    has_header: bool = False
    separator: str = ""
    names: dict[tuple[str, ...], str] = field(default_factory=dict)
    fields: dict[tuple[str, ...], str] = field(default_factory=dict)


class Split(NamedTuple):
    """A part of a text that a job extracts.

    Attributes:
        place: The text's place.
        separator: The separator of the text's parts.
        number: The part's number, from 0.
        kind: The type to which the job casts the part.
    """

    place: Place
    separator: str
    number: int
    kind: str


@dataclass(frozen=True)
class Traced:
    """The columns, event times and keys of a query's sources, as far as the query's plan shows them.

    Attributes:
        sources: The names of the inputs that the query reads.
        payloads: The payloads, by their positions in the sources.
        times: The columns of the query's watermarks.
        groups: For each grouping operator, the names of the inputs that it reads, and the source positions of its
            grouping columns.
        kept: The source positions of the result's columns.
        casts: The types to which the job casts a value, by the value's source position.
        other_times: The columns of the query's windows, and the texts and numbers that the job parses as times.
        identities: For each deduplication of a single input's rows, the source positions of the compared columns.
        splits: The text parts that the job extracts.
    """

    sources: Sequence[str]
    payloads: Mapping[Place, Payload]
    times: Sequence[TracedTime]
    groups: Sequence[tuple[frozenset[str], Sequence[Place]]]
    kept: Sequence[Place]
    casts: Mapping[Place, frozenset[str]]
    other_times: Sequence[TracedTime]
    identities: Sequence[Sequence[Place]] = ()
    splits: Sequence[Split] = ()


def traced(analyzed: Any, names: Mapping[str, str]) -> Traced:
    """Trace an analyzed plan.

    Args:
        analyzed: The plan, such as `frame._jdf.queryExecution().analyzed()`.
        names: The name of each input, by the folder of its empty frame.
    """
    tracer = _Tracer(analyzed, names)
    output = [tracer.places(column) for column in members(analyzed.output())]
    return Traced(
        tracer.sources,
        tracer.payloads(),
        [*dict.fromkeys(tracer.event_times())],
        [*tracer.groups()],
        [*dict.fromkeys(place for places in output for place in places)],
        tracer.casts(),
        [*dict.fromkeys(tracer.other_times())],
        [*tracer.identities()],
        [*tracer.splits()],
    )


class _Tracer:
    def __init__(self, analyzed: Any, names: Mapping[str, str]) -> None:
        self.nodes = [(class_of(node), node) for node in walk(analyzed)]
        self.names = names
        given: dict[int, tuple[tuple[str, ...], str]] = {}
        for name, node in self.nodes:
            if name.startswith("StreamingRelation"):
                source = self.source_of(node)
                given |= {column.exprId().id(): ((source,), str(column.name())) for column in members(node.output())}
        self.sources = [*dict.fromkeys(names[0] for names, _ in given.values())]
        self.trees: list[list[Tree]] = []
        for _, node in self.nodes:
            self.trees += [trees_of(read_expression(one)) for one in members(node.expressions())]
        roots = [trees[-1] for trees in self.trees if trees]
        made = {root.node["exprId"]["id"]: root for root in roots if root.kind == "Alias"} | dict(self.exploded())
        beside = columns_beside(self.nodes)
        count = 1 + max(map(len, beside.values()), default=0)
        self.readers = [TermReader(given, made, beside, index, session_zone()) for index in range(count)]

    def exploded(self) -> Iterator[tuple[int, Tree]]:
        """Yield the id of each column of an array's elements, and its expression under the column's name."""
        for name, node in self.nodes:
            if name == "Generate" and class_of(node.generator()) == "Explode":
                generator = trees_of(read_expression(node.generator()))[-1]
                for column in members(node.generatorOutput()):
                    yield column.exprId().id(), Tree({"name": str(column.name())}, [generator])

    def source_of(self, relation: Any) -> str:
        """Return the name of the input that a relation of the plan reads."""
        path = relation.dataSource().options().get("path")
        return self.names.get(Path(path.get()).name, "") if path.isDefined() else ""

    def terms(self, tree: Tree) -> list[Term]:
        """Return a tree as terms of the sources' columns: a single term, or a term for each input of a union."""
        terms = (reader.read(tree) for reader in self.readers)
        return [*dict.fromkeys(term for term in terms if term is not None)]

    def places(self, expression: Any) -> list[Place]:
        """Return the source positions whose values an expression returns unchanged."""
        found = (place_of(term) for term in self.terms(trees_of(read_expression(expression))[-1]))
        return [*dict.fromkeys(place for place in found if place is not None)]

    def payloads(self) -> dict[Place, Payload]:
        found: dict[Place, Payload] = {}
        for trees in self.trees:
            kinds = _casts_in(trees)
            for tree in trees:
                if tree.kind not in (*_READING, *_ITEMS):
                    continue
                for term in self.terms(tree):
                    place = place_of(term)
                    if place is None or not place.parsed or (tree.kind in _ITEMS and separator_of(term) is None):
                        continue
                    whole = place._replace(path=())
                    form = "split" if tree.kind in _ITEMS else PARSERS.get(tree.kind, "json")
                    payload = found.setdefault(whole, Payload(form))
                    if form == "split":
                        payload.separator = separator_of(term) or ""
                        self._name(payload, place.path, trees)
                    if tree.kind in PARSERS:
                        schema = tree.node.get("jsonFormatSchema") or tree.node.get("schema")
                        payload.schema = _merged(payload.schema, schema)
                        payload.has_header |= _cuts_header(term)
                    else:
                        payload.fields[place.path] = kinds.get(id(tree), "string")
        return found

    @staticmethod
    def _name(payload: Payload, path: tuple[str, ...], trees: Sequence[Tree]) -> None:
        """Name a part of a payload after the column that contains the part."""
        root = trees[-1]
        if root.kind == "Alias" and sum(tree.kind in _ITEMS for tree in trees) == 1:
            payload.names.setdefault(path, str(root.node["name"]))

    def splits(self) -> Iterator[Split]:
        for trees in self.trees:
            kinds = _casts_in(trees)
            for tree in trees:
                for term in self.terms(tree) if tree.kind in _ITEMS else ():
                    if (separator := separator_of(term)) is None:
                        continue
                    place = place_of(_payload_of(term.children[0].children[0]))
                    if place is not None:
                        yield Split(place, separator, _number_of(term), kinds.get(id(tree), "string"))

    def casts(self) -> dict[Place, frozenset[str]]:
        found: dict[Place, set[str]] = {}
        for tree in (tree for trees in self.trees for tree in trees if tree.kind == "Cast"):
            kind = tree.node["dataType"]
            for term in self.terms(tree.children[0]) if isinstance(kind, str) else ():
                if (place := place_of(term)) is not None and term.kind != "Cast":
                    found.setdefault(place, set()).add(SQL_TYPES.get(kind, kind))
        return {place: frozenset(kinds) for place, kinds in found.items()}

    def event_times(self) -> Iterator[TracedTime]:
        for name, node in self.nodes:
            if name == "EventTimeWatermark":
                for term in self.terms(trees_of(read_expression(node.eventTime()))[-1]):
                    if (time := time_of(term)) is not None:
                        yield time

    def other_times(self) -> Iterator[TracedTime]:
        """Yield the columns of windows, then the values that the job converts to times, each with the format tried
        first.
        """
        # outer expressions first, because the outermost conversion contains the source's format
        trees = [tree for trees in self.trees for tree in reversed(trees)]
        for kinds in (_OF_WINDOWS, (*_EPOCHS, *_PARSED_TIMES, "Cast")):
            for tree in trees:
                if tree.kind in kinds and (tree.kind != "Cast" or tree.node["dataType"] in _TIMESTAMPS):
                    yield from (time for term in self.terms(tree) if (time := time_of(term)) is not None)

    def identities(self) -> Iterator[Sequence[Place]]:
        """Yield the source positions of each deduplication's columns, if each column has exactly one position."""
        for name, node in self.nodes:
            if name in _DEDUPLICATIONS:
                terms = [self.terms(trees_of(read_expression(column))[-1]) for column in members(node.keys())]
                times = [time_of(each[0]) for each in terms if len(each) == 1]
                places = [time.place for time in times if time is not None]
                if len(places) == len(terms) and len({place.source for place in places}) == 1:
                    yield places

    def groups(self) -> Iterator[tuple[frozenset[str], Sequence[Place]]]:
        for name, node in self.nodes:
            if name == "Join" and all(map(_streams, members(node.children()))):
                places = [*self._joined(node)]
            elif name in _TOGETHER or name.startswith(_OF_FUNCTIONS):
                places = [place for column in self._columns_of(name, node) for place in self._alone(column)]
            else:
                continue
            below = frozenset(self.source_of(one) for one in walk(node) if class_of(one).startswith("StreamingRel"))
            if below:
                yield below, [*dict.fromkeys(places)]

    def _alone(self, column: Any) -> Iterator[Place]:
        """Yield a column's position in each source; skip a source in which the column has several positions."""
        places = self.places(column)
        for place in places:
            if [one.source for one in places].count(place.source) == 1:
                yield place

    def _columns_of(self, name: str, node: Any) -> Iterator[Any]:
        """Yield the expressions by which an operator groups or joins rows."""
        if name == "Aggregate":
            yield from members(node.groupingExpressions())
        elif name in _DEDUPLICATIONS:
            yield from members(node.keys())
        elif name == "Distinct":
            yield from members(node.output())
        elif name.startswith("TransformWithStateIn"):
            yield from [*members(node.children().apply(0).output())][: node.groupingAttributesLen()]
        elif name.startswith(_OF_FUNCTIONS):
            yield from members(node.groupingAttributes())

    def _joined(self, node: Any) -> Iterator[Place]:
        """Yield the source positions of the columns in the equality conditions of a stream-stream join."""
        sides = [*_equal(node.condition().get())] if node.condition().isDefined() else []
        for one, other in sides:
            places = [*self._alone(one), *self._alone(other)]
            # A self-join by two different columns: no column identifies the rows that match.
            yield from (
                place for place in places if {each for each in places if each.source == place.source} == {place}
            )


def _streams(plan: Any) -> bool:
    return bool(plan.isStreaming())


def _equal(condition: Any) -> Iterator[tuple[Any, Any]]:
    """Yield the two sides of each equality in a condition."""
    kind = class_of(condition)
    if kind == "And":
        for one in members(condition.children()):
            yield from _equal(one)
    elif kind in ("EqualTo", "EqualNullSafe"):
        left, right = members(condition.children())
        yield left, right


def _merged(one: Any, other: Any) -> Any:
    """Return the union of the fields of a payload's two schemas."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping) and "fields" in one and "fields" in other):
        return other if one is None else one
    names = {each["name"] for each in one["fields"]}
    return {**one, "fields": [*one["fields"], *(each for each in other["fields"] if each["name"] not in names)]}


def place_of(term: Term) -> Place | None:
    """Return the source position whose value a term returns, maybe with another type (None: no such position)."""
    if term.kind == COLUMN:
        (source,), column = term.value
        return Place(source, column)
    if not term.children:
        return None
    if separator_of(term) is not None:
        below = place_of(_payload_of(term.children[0].children[0]))
        if below is None or below.parsed:
            return None
        return below._replace(path=(str(_number_of(term)),), parsed=True)
    below = place_of(_payload_of(term.children[0]) if term.kind in _READING else term.children[0])
    if below is None:
        return None
    if term.kind == "Cast" or (term.kind == "Explode" and term.children[0].kind in PARSERS):
        return below
    if term.kind == "Field" and isinstance(term.value, str):
        return below._replace(path=(*below.path, term.value))
    if term.kind in PARSERS and not below.parsed:
        return below._replace(path=(), parsed=True)
    if term.kind == "GetJsonObject" and not below.parsed and term.children[1].kind == CONSTANT:
        path = str(term.children[1].value)
        if path.startswith("$.") and path[2:].replace(".", "").isidentifier():
            return below._replace(path=tuple(path[2:].split(".")), parsed=True)
    return None


def separator_of(term: Term) -> str | None:
    """Return the separator of the split text from which a term takes a part (None: the term takes no part of a
    text).
    """
    if term.kind not in _ITEMS or term.children[0].kind != "StringSplit":
        return None
    pattern, number = term.children[0].children[1], term.children[1]
    if pattern.kind != CONSTANT or not isinstance(number.value, int) or number.value < 0:
        return None
    text = re.sub(r"\\s[*+]?|\[ \]|[*+](?=$)", lambda found: "" if found[0].endswith("*") else " ", str(pattern.value))
    return re.sub(r"\\(.)|\[(.)\]", r"\1\2", text) or None


def _number_of(part: Term) -> int:
    """Return the index of a part of a text, from 0."""
    return int(part.children[1].value) - (part.kind == "ElementAt")


def _casts_in(trees: Sequence[Tree]) -> dict[int, str]:
    """Return the types to which an expression's trees are cast, by the trees' ids."""
    casts = (tree for tree in trees if tree.kind == "Cast" and isinstance(tree.node["dataType"], str))
    return {id(tree): cast.node["dataType"] for cast in casts for tree in cast.children}


def _payload_of(term: Term) -> Term:
    """Return the term of a parser's text or bytes, before cutting, trimming and decoding."""
    while term.kind in _TEXTS and term.children:
        term = term.children[0]
    return term


def _cuts_header(term: Term) -> bool:
    while term.children and term.kind != "Substring":
        term = term.children[0]
    return term.kind == "Substring" and term.children[1].value == _BEHIND_HEADER


def time_of(term: Term) -> TracedTime | None:
    """Return the source position of an event time, and the time's format there (None: no unique position)."""
    if (place := place_of(term)) is not None:
        return TracedTime(place)
    if term.kind == "Coalesce":
        return next((time for child in term.children if (time := time_of(child)) is not None), None)
    if term.kind in _EPOCHS and (place := place_of(term.children[0])) is not None:
        return TracedTime(place, _EPOCHS[term.kind])
    if term.kind in _PARSED_TIMES and (place := place_of(term.children[0])) is not None:
        patterns = [one.value for one in term.children[1:] if one.kind == CONSTANT]
        form = strftime_of(str(patterns[0])) if patterns else None
        return TracedTime(place, form, is_known=not patterns or form is not None)
    if term.kind in ("Divide", "IntegralDivide") and (place := place_of(term.children[0])) is not None:
        unit = term.children[1]
        while unit.kind == "Cast":
            unit = unit.children[0]
        form = _UNITS.get(int(unit.value)) if unit.kind == CONSTANT and isinstance(unit.value, (int, float)) else None
        return TracedTime(place, form, is_known=form is not None)
    if term.kind in ("Cast", "FromUnixTime", "Floor", "Round", *_OF_WINDOWS) and term.children:
        found = time_of(term.children[0])
        if found is not None and term.kind == "FromUnixTime" and found.form is None:
            return found._replace(form="s")
        return found
    return None


def strftime_of(pattern: str) -> str | None:
    """Return Spark's time pattern as a `strftime` pattern (None: a part has no `strftime` code)."""
    made, pattern = "", _OPTIONAL.sub("", pattern)
    while pattern:
        part = _PART.match(pattern)
        if part is None or (part[2] and part[0] not in _LETTERS):
            return None
        made += _LETTERS.get(part[0], part[0]) if part[1] is None else part[1].replace("''", "'") or "'"
        pattern = pattern[part.end() :]
    return made
