"""A module as parsed by SANY, the parser of the TLA+ tools: definitions with resolved names.

SANY writes XML (`tla2sany.xml.XMLExporter`), which `parse_module` converts to a small tree. The tree contains no
standard modules: their operators are known by name, like built-in operators.
"""

from __future__ import annotations

import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from .errors import ParseFailed, TimedOut
from .results import Location
from .tlc.process import TimeUp, private_folder, started
from .tlc.tools import Tools, check_jar

STANDARD = ("Naturals", "Integers", "Sequences", "FiniteSets", "TLC", "Reals", "Bags", "Json", "TLCExt")
"""The modules whose operators are known by name."""

SECONDS = 120
"""SANY's timeout (s); it usually needs one second."""

SymbolKind: TypeAlias = Literal["built-in", "defined", "constant", "variable", "parameter"]
_KINDS: Mapping[str, SymbolKind] = {
    "BuiltInKindRef": "built-in",
    "UserDefinedOpKindRef": "defined",
    "OpDeclNodeRef": "constant",
    "FormalParamNodeRef": "parameter",
}


@dataclass(frozen=True, slots=True)
class Constant:
    """A number or a string."""

    value: int | str
    location: Location


@dataclass(frozen=True, slots=True)
class Bound:
    r"""Parameters that range over a set, as in `x, y \in S`."""

    parameters: tuple[str, ...]
    set: TlaExpression


@dataclass(frozen=True, slots=True)
class Apply:
    r"""An operator with its operands, or a name, which is an operator without operands.

    Attributes:
        operator: Its name: `$FcnApply`, `\land`, `Len`, `Send`; for a parameter or a definition in a LET, its identity.
        kind: What it is.
        operands: The operands of the operator, in order.
        bounds: The parameters that the operator binds, each with its set.
        level: 0 for a constant, 1 with variables, 2 with primes, 3 for a temporal formula.
        location: Where it stands.
    """

    operator: str
    kind: SymbolKind
    operands: tuple[TlaExpression, ...]
    bounds: tuple[Bound, ...]
    level: int
    location: Location


@dataclass(frozen=True, slots=True)
class Let:
    """LET … IN: the definitions, and the expression in which they hold."""

    definitions: tuple[str, ...]
    body: TlaExpression
    location: Location


@dataclass(frozen=True, slots=True)
class At:
    """The `@` of an EXCEPT."""

    location: Location


TlaExpression: TypeAlias = Constant | Apply | Let | At


class TlaDefinition(NamedTuple):
    """A definition: its name, the identities of its parameters, and its body."""

    name: str
    parameters: tuple[str, ...]
    body: TlaExpression
    location: Location


@dataclass(frozen=True)
class Syntax:
    """A module and its extended modules.

    Attributes:
        constants: The constants' names, in the order of their declaration.
        variables: The variables' names, in the order of their declaration.
        definitions: The definitions by identity. `named` finds a definition by name.
        parameters: The name of each parameter, by identity.
    """

    constants: tuple[str, ...]
    variables: tuple[str, ...]
    definitions: Mapping[str, TlaDefinition]
    parameters: Mapping[str, str]

    def named(self, name: str) -> TlaDefinition:
        """Find a definition of the module by its name.

        Raises:
            KeyError: The module has no definition of this name.
        """
        for definition in self.definitions.values():
            if definition.name == name:
                return definition
        raise KeyError(name)


def parse_module(module: Path, tools: Tools) -> Syntax:
    """Parse a module and its extended modules, from its folder, with SANY.

    Raises:
        ParseFailed: The module isn't TLA+; the message contains SANY's message.
        TimedOut: SANY takes more than 120 s.
        MissingJava: There is no Java at the path given.
        MissingJar: The jar is missing or damaged.
    """
    check_jar(tools)
    # -o means offline: otherwise SANY fetches the schema from a site that no longer exists.
    arguments = ["-o", "-I", str(module.parent.resolve()), str(module.resolve())]
    with private_folder() as folder, started(tools, folder, (), arguments, "tla2sany.xml.XMLExporter") as java:
        try:
            lines = list(java.lines(time.monotonic() + SECONDS))
        except TimeUp:
            raise TimedOut(f"SANY takes more than {SECONDS} s: is the machine busy?", file=module) from None
        code, errors = java.exit_code(), java.standard_error().splitlines()
    start = next((number for number, line in enumerate(lines) if line.startswith("<?xml")), None)
    if code or start is None:
        raise ParseFailed(_message(errors + lines), file=module)
    return _Reader(ElementTree.fromstring("\n".join(lines[start:]).encode())).syntax()


def _message(lines: list[str]) -> str:
    """Shorten SANY's message to its own lines, without Java's trace."""
    kept = [
        line.strip()
        for line in lines
        if line.strip()
        and not line.startswith(("\tat ", "Semantic processing", "Parsing file", "Exception in", "Caused"))
    ]
    return "SANY can't parse it: " + " ".join(kept[:8])[:600]


class _Reader:
    """Converts SANY's XML to the tree."""

    def __init__(self, root: ElementTree.Element) -> None:
        context = root.find("context")
        assert context is not None
        self.entries = {_text(entry, "UID"): next(child for child in entry if child.tag != "UID") for entry in context}
        self.standard: set[str] = set()

    def syntax(self) -> Syntax:
        declared = [entry for entry in self.entries.values() if entry.tag == "OpDeclNode"]
        definitions = {}
        for identity, entry in self.entries.items():
            if entry.tag == "UserDefinedOpKind" and _location(entry).module not in STANDARD:
                definitions[identity] = self._definition(entry)
        return Syntax(
            tuple(_text(entry, "uniquename") for entry in declared if _text(entry, "kind") == "2"),
            tuple(_text(entry, "uniquename") for entry in declared if _text(entry, "kind") == "3"),
            definitions,
            {uid: _text(e, "uniquename") for uid, e in self.entries.items() if e.tag == "FormalParamNode"},
        )

    def _definition(self, entry: ElementTree.Element) -> TlaDefinition:
        body = entry.find("body")
        assert body is not None
        parameters = tuple(
            _text(parameter, "UID") for parameter in entry.iterfind("params/leibnizparam/FormalParamNodeRef")
        )
        return TlaDefinition(_text(entry, "uniquename"), parameters, self._expression(body[0]), _location(entry))

    def _expression(self, node: ElementTree.Element) -> TlaExpression:
        match node.tag:
            case "OpApplNode":
                return self._application(node)
            case "NumeralNode":
                return Constant(int(_text(node, "IntValue")), _location(node))
            case "StringNode":
                value = node.find("StringValue")
                return Constant((value.text if value is not None else node.text) or "", _location(node))
            case "LetInNode":
                body, definitions = node.find("body"), node.find("opDefs")
                assert body is not None
                assert definitions is not None
                names = tuple(_text(reference, "UID") for reference in definitions)
                return Let(names, self._expression(body[0]), _location(node))
            case "AtNode":
                return At(_location(node))
            case "OpArgNode":
                return self._reference(node.find("argument"), _location(node))
        where = _location(node)
        raise ParseFailed(f"{where}: a {node.tag} isn't supported: rewrite the expression without it", line=where.line)

    def _reference(self, argument: ElementTree.Element | None, location: Location) -> Apply:
        assert argument is not None
        name, kind = self._operator(argument[0])
        return Apply(name, kind, (), (), 0, location)

    def _application(self, node: ElementTree.Element) -> Apply:
        operator, operands = node.find("operator"), node.find("operands")
        assert operator is not None
        assert operands is not None
        name, kind = self._operator(operator[0])
        bounds = tuple(
            Bound(
                tuple(_text(reference, "UID") for reference in bound.iterfind("FormalParamNodeRef")),
                self._expression(bound[-1]),
            )
            for bound in node.iterfind("boundSymbols/bound")
        )
        level = int(node.findtext("level") or 0)
        return Apply(name, kind, tuple(map(self._expression, operands)), bounds, level, _location(node))

    def _operator(self, reference: ElementTree.Element) -> tuple[str, SymbolKind]:
        identity, kind = _text(reference, "UID"), _KINDS[reference.tag]
        entry = self.entries[identity]
        name = _text(entry, "uniquename")
        if kind == "constant":
            return name, "constant" if _text(entry, "kind") == "2" else "variable"
        if kind == "defined" and _location(entry).module in STANDARD:
            return name, "built-in"
        return (name if kind == "built-in" else identity), kind


def _text(node: ElementTree.Element, tag: str) -> str:
    text = node.findtext(tag)
    assert text is not None, f"SANY wrote a {node.tag} without a {tag}"
    return text


def _location(node: ElementTree.Element) -> Location:
    place = node.find("location")
    if place is None:
        return Location("", 0, 0, 0, 0)
    line, column = place.find("line"), place.find("column")
    assert line is not None
    assert column is not None
    numbers = [int(_text(part, end)) for end in ("begin", "end") for part in (line, column)]
    return Location(_text(place, "filename"), *numbers)
