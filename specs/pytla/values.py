"""TLA+ values as Python values, in TLC's notation.

A set is a `frozenset`, a sequence or tuple a `tuple`, any other function a `Function`; a record is a `Function` whose
keys are strings. In TLA+ a sequence is a function over 1..n, and here the two are equal, too.

In Python `True == 1`. TLC refuses to compare TRUE and 1, so no TLC set or function contains both values.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, Union

from .tlc_error import ValueSyntaxError

MAX_INTERVAL = 1_000_000
"""The largest number of elements of an interval, which is TLC's limit for sets."""

MAX_DEPTH = 100
"""The largest depth of nested values."""

MAX_DIGITS = 100
"""The largest number of digits in a number; TLC's numbers have far fewer digits."""


@dataclass(frozen=True, slots=True)
class ModelValue:
    """A value that is only equal to itself, identified by its name."""

    name: str

    def __str__(self) -> str:
        return self.name


class Function(Mapping["TlaValue", "TlaValue"]):
    """A function with a finite domain, immutable and hashable: `f[x]` applies the function, and iteration yields the
    domain.

    A function is equal to any mapping with the same items, and to a tuple if its domain is 1..n.
    """

    __slots__ = ("_hash", "_items")

    def __init__(self, items: Mapping[TlaValue, TlaValue] | Iterable[tuple[TlaValue, TlaValue]] = ()) -> None:
        self._items: dict[TlaValue, TlaValue] = dict(items)
        self._hash: int | None = None

    def __getitem__(self, argument: TlaValue) -> TlaValue:
        return self._items[argument]

    def __iter__(self) -> Iterator[TlaValue]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Function):
            return self._items == other._items
        if isinstance(other, tuple):
            return self.as_sequence() == other
        if isinstance(other, Mapping):
            return self._items == dict(other.items())
        return NotImplemented

    def __hash__(self) -> int:
        if self._hash is None:
            sequence = self.as_sequence()
            self._hash = hash(frozenset(self._items.items()) if sequence is None else sequence)
        return self._hash

    def __repr__(self) -> str:
        return f"Function({self._items!r})"

    def __str__(self) -> str:
        return to_tla(self)

    def as_sequence(self) -> tuple[TlaValue, ...] | None:
        """The values of the function in order if the domain is 1..n, otherwise None."""
        found: list[TlaValue] = []
        for index in range(1, len(self._items) + 1):
            if index not in self._items:
                return None
            found.append(self._items[index])
        # In Python True equals the key 1, but True isn't an index of a sequence.
        return None if any(isinstance(key, bool) for key in self._items) else tuple(found)


TlaValue: TypeAlias = Union[bool, int, str, ModelValue, "frozenset[TlaValue]", "tuple[TlaValue, ...]", Function]
"""The value of a TLA+ variable or constant."""


def parse_value(text: str) -> TlaValue:
    """Return the value of `text`, which is in TLC's notation, on one or several lines.

    Raises:
        ValueSyntaxError: The text isn't a value, or contains an interval of more than `MAX_INTERVAL` elements.
    """
    return _Parser(text).whole()


def parse_state(text: str, known: dict[str, tuple[str, TlaValue]] | None = None) -> dict[str, TlaValue]:
    r"""Return the variables of a state in TLC's notation: `/\ a = 1` and `/\ b = <<>>` on a line each, or only `a = 1`.

    `known` caches parsed values by their text; pass the same dictionary to read many states quickly.

    Raises:
        ValueSyntaxError: The text isn't a state; the error contains the line in `text`.
    """
    known = {} if known is None else known
    state: dict[str, TlaValue] = {}
    # A long value continues on indented lines, and strings contain no line breaks, so a conjunct starts at `/\`.
    start = len(text) - len(text.lstrip())
    for part in re.split(r"\n(?=/\\ )", text.strip()):
        found = known.get(part)
        if found is None:
            found = known[part] = _conjunct(part, text, start)
        state[found[0]] = found[1]
        start += len(part) + 1
    return state


def to_tla(value: TlaValue) -> str:
    """Return `value` in TLC's notation, on one line; `parse_value` is the inverse function. Equal sets have equal
    texts.

    Raises:
        TypeError: The argument isn't a `Value`.
        ValueError: A string has a control character that TLA+ can't write.
    """
    match value:
        case bool():
            return "TRUE" if value else "FALSE"
        case int() | ModelValue():
            return str(value)
        case str():
            return _quoted(value)
        case frozenset():
            return "{" + ", ".join(text for *_, text in sorted(map(_sortable, value))) + "}"
        case tuple():
            return "<<" + ", ".join(map(to_tla, value)) + ">>"
        case Function():
            return _function_to_tla(value)
    raise TypeError(
        f"{value!r} is a {type(value).__name__}, not a TLA+ value: use bool, int, str, ModelValue, frozenset, tuple "
        "or Function"
    )


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\f": "\\f", "\r": "\\r"}
_UNESCAPES = {written[1]: character for character, written in _ESCAPES.items()}
_IDENTIFIER = re.compile(r"[0-9]*[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_TOKEN = re.compile(
    r"""\s*(?:
    (?P<string>"(?:[^"\\\n]|\\.)*")
  | (?P<name>[0-9]*[A-Za-z_][A-Za-z0-9_]*)
  | (?P<number>-?[0-9]+)
  | (?P<sign><<|>>|\|->|:>|@@|\.\.|[{}\[\](),=]|/\\)
  | (?P<end>\Z)
    )""",
    re.VERBOSE | re.ASCII,
)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_CONJUNCT = re.compile(r"\s*(?:/\\)?\s*([0-9]*[A-Za-z_][A-Za-z0-9_]*)\s*=", re.ASCII)


def _conjunct(part: str, text: str, start: int) -> tuple[str, TlaValue]:
    head = _CONJUNCT.match(part)
    try:
        if head is None:
            raise _Unreadable("expected a variable and `=`", 0)
        return head[1], _Parser(part, head.end()).read()
    except _Unreadable as error:
        raise error.at(text, start) from None


def _quoted(text: str) -> str:
    written = "".join(_ESCAPES.get(character, character) for character in text)
    for character in written:
        if character < " " or character == "\x7f":
            raise ValueError(f"The string {text!r} has the control character {character!r}, which TLA+ can't write")
    return f'"{written}"'


def _function_to_tla(function: Function) -> str:
    sequence = function.as_sequence()
    if sequence is not None:
        return to_tla(sequence)
    if all(isinstance(key, str) and _IDENTIFIER.fullmatch(key) for key in function):
        fields = sorted((str(key), to_tla(value)) for key, value in function.items())
        return "[" + ", ".join(f"{name} |-> {value}" for name, value in fields) + "]"
    pairs = sorted((_sortable(argument), to_tla(value)) for argument, value in function.items())
    return "(" + " @@ ".join(f"{argument} :> {value}" for (*_, argument), value in pairs) + ")"


def _sortable(value: TlaValue) -> tuple[bool, int, str]:
    """Return a sort key for any value and its text: integers by size, then all other values by text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (False, value, str(value))
    return (True, 0, to_tla(value))


class _Unreadable(Exception):
    """A syntax error at an offset, raised before the surrounding text is known."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset

    def at(self, text: str, start: int = 0) -> ValueSyntaxError:
        before = text[: start + self.offset]
        return ValueSyntaxError(self.message, before.count("\n") + 1, len(before) - before.rfind("\n"))


class _Parser:
    """Parses a value by recursive descent."""

    def __init__(self, text: str, start: int = 0) -> None:
        self._text = text
        self._end = start
        self._start = start
        self._depth = 0
        self._kind = self._token = ""

    def whole(self) -> TlaValue:
        try:
            return self.read()
        except _Unreadable as error:
            raise error.at(self._text) from None

    def read(self) -> TlaValue:
        self._advance()
        value = self._value()
        if self._kind != "end":
            raise self._unexpected("the end")
        return value

    def _advance(self) -> None:
        token = _TOKEN.match(self._text, self._end)
        if token is None or token.lastgroup is None:
            rest = self._text[self._end :]
            raise _Unreadable(f"can't read {rest.strip()[:20]!r}", self._end + len(rest) - len(rest.lstrip()))
        self._kind = token.lastgroup
        self._token = token[token.lastgroup]
        self._start = token.start(token.lastgroup)
        self._end = token.end()

    def _unexpected(self, expected: str) -> _Unreadable:
        found = "the end" if self._kind == "end" else repr(self._token)
        return _Unreadable(f"expected {expected}, found {found}", self._start)

    def _take(self, sign: str) -> None:
        if self._kind != "sign" or self._token != sign:
            raise self._unexpected(f"`{sign}`")
        self._advance()

    def _sees(self, sign: str) -> bool:
        return self._kind == "sign" and self._token == sign

    def _value(self) -> TlaValue:
        kind, token = self._kind, self._token
        if kind == "number":
            return self._number_or_interval()
        if kind == "string":
            text = self._string(token)
            self._advance()
            return text
        if kind == "name":
            self._advance()
            return token == "TRUE" if token in ("TRUE", "FALSE") else ModelValue(token)
        if kind == "sign" and token in ("{", "<<", "[", "("):
            if self._depth == MAX_DEPTH:
                raise _Unreadable(f"values are nested more than {MAX_DEPTH} levels deep", self._start)
            self._depth += 1
            value = self._compound(token)
            self._depth -= 1
            return value
        raise self._unexpected("a value")

    def _compound(self, sign: str) -> TlaValue:
        match sign:
            case "{":
                return frozenset(self._list("{", "}"))
            case "<<":
                return tuple(self._list("<<", ">>"))
            case "[":
                return self._record()
        return self._function()

    def _string(self, token: str) -> str:
        start = self._start
        unseen = _CONTROL.search(token)
        if unseen is not None:
            raise _Unreadable(f"the control character {unseen[0]!r} in a string", start)
        if "\\" not in token:
            return token[1:-1]

        def character(escape: re.Match[str]) -> str:
            if escape[1] not in _UNESCAPES:
                raise _Unreadable(f"the escape {escape[0]!r} doesn't exist in TLA+", start)
            return _UNESCAPES[escape[1]]

        return re.sub(r"\\(.)", character, token[1:-1])

    def _number_or_interval(self) -> TlaValue:
        start = self._start
        first = self._integer()
        if not self._sees(".."):
            return first
        self._advance()
        if self._kind != "number":
            raise self._unexpected("a number")
        last = self._integer()
        if last - first >= MAX_INTERVAL:
            raise _Unreadable(f"the interval {first}..{last} has more than {MAX_INTERVAL} elements", start)
        return frozenset(range(first, last + 1))

    def _integer(self) -> int:
        if len(self._token) > MAX_DIGITS:
            raise _Unreadable(f"a number of {len(self._token)} digits is beyond TLC's", self._start)
        number = int(self._token)
        self._advance()
        return number

    def _list(self, opening: str, closing: str) -> list[TlaValue]:
        self._take(opening)
        elements: list[TlaValue] = []
        if not self._sees(closing):
            elements.append(self._value())
            while self._sees(","):
                self._advance()
                elements.append(self._value())
        self._take(closing)
        return elements

    def _record(self) -> TlaValue:
        fields: list[tuple[TlaValue, TlaValue]] = []
        self._advance()
        while True:
            name = self._token
            if self._kind != "name":
                raise self._unexpected("the name of a field")
            self._advance()
            self._take("|->")
            fields.append((name, self._value()))
            if not self._sees(","):
                break
            self._advance()
        self._take("]")
        return Function(fields)

    def _function(self) -> TlaValue:
        pairs: list[tuple[TlaValue, TlaValue]] = []
        self._advance()
        while True:
            argument = self._value()
            self._take(":>")
            pairs.append((argument, self._value()))
            if not self._sees("@@"):
                break
            self._advance()
        self._take(")")
        # If both sides of @@ contain an argument, the left side counts.
        function = Function(reversed(pairs)) if len({p[0] for p in pairs}) < len(pairs) else Function(pairs)
        sequence = function.as_sequence()
        return function if sequence is None else sequence
