"""Parse a model's configuration file as far as overrides need, and rewrite the file for a run."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from ..errors import ConfigurationFailed
from ..values import Function, ModelValue, TlaValue, to_tla
from .models import Model
from .modules import Modules
from .sources import read_source

ROOT = "PytlaModel"
"""The generated module that extends the user's."""

VALUES = "PytlaValues"
"""The generated module with the values that a configuration file can't write."""

BOUND = "PytlaWithinBound"
"""The generated invariant that stops a run with too many states."""

_KEYWORDS = {
    "CONSTANT": "constants",
    "CONSTANTS": "constants",
    "INVARIANT": "invariants",
    "INVARIANTS": "invariants",
    "PROPERTY": "properties",
    "PROPERTIES": "properties",
    "SYMMETRY": "symmetry",
    "VIEW": "view",
    "INIT": "init",
    "NEXT": "next",
    "SPECIFICATION": "specification",
    "CONSTRAINT": "constraints",
    "CONSTRAINTS": "constraints",
    "ACTION_CONSTRAINT": "action constraints",
    "ACTION_CONSTRAINTS": "action constraints",
    "TYPE": "type",
    "TYPE_CONSTRAINT": "type",
    "ALIAS": "alias",
    "POSTCONDITION": "postcondition",
    "CHECK_DEADLOCK": "deadlock",
}
_TOKEN = re.compile(
    r"""\\\*[^\n]*|\(\*.*?\*\)|\s+|(?P<token>"(?:[^"\\\n]|\\.)*"|<-|[A-Za-z0-9_!]+|.)""", re.VERBOSE | re.DOTALL
)
_IDENTIFIER = re.compile(r"[0-9]*[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_LEAST, _GREATEST = -(2**31), 2**31 - 1


class Token(NamedTuple):
    """A word or sign of the file, with its offsets in the text."""

    text: str
    start: int
    end: int


@dataclass(frozen=True)
class ConfigurationEntry:
    """An entry under a keyword: a name of a list, or an assignment to a constant."""

    section: str
    name: str
    start: int
    end: int


class Configuration:
    """A configuration file as entries by keyword. The parser ignores errors in the file, because TLC reports them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = read_source(path, "configuration", ConfigurationFailed)
        self.entries: list[ConfigurationEntry] = []
        self._keywords: list[tuple[str, Token]] = []
        self._read()

    def names(self, section: str) -> tuple[str, ...]:
        """Return the names under the keywords of a section, in order."""
        return tuple(entry.name for entry in self.entries if entry.section == section)

    def position_of(self, name: str, section: str | None = None) -> tuple[int, int] | None:
        """Return the line and column of a name, or None if it is missing."""
        for entry in self.entries:
            if entry.name == name and section in (None, entry.section):
                before = self.text[: entry.start]
                return before.count("\n") + 1, len(before) - before.rfind("\n")
        return None

    def without(self, sections: Iterable[str], constants: Iterable[str]) -> str:
        """Return the text with sections and constants replaced by spaces, so that other words keep their offsets."""
        sections, constants = set(sections), set(constants)
        spans = [(keyword.start, keyword.end) for section, keyword in self._keywords if section in sections]
        spans += [
            (entry.start, entry.end)
            for entry in self.entries
            if entry.section in sections or (entry.section == "constants" and entry.name in constants)
        ]
        text = self.text
        for start, end in spans:
            text = text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]
        return text

    def _read(self) -> None:
        tokens = [
            Token(match["token"], match.start(), match.end()) for match in _TOKEN.finditer(self.text) if match["token"]
        ]
        at, section = 0, ""
        while at < len(tokens):
            token = tokens[at]
            if token.text in _KEYWORDS:
                section = _KEYWORDS[token.text]
                self._keywords.append((section, token))
                at += 1
                continue
            end = _end_of_assignment(tokens, at) if section == "constants" else at + 1
            self.entries.append(ConfigurationEntry(section, token.text, token.start, tokens[end - 1].end))
            at = end


def _end_of_assignment(tokens: list[Token], at: int) -> int:
    """Return the index after `Name = value`, `Name(args) = value`, `Name <- Name` or `Name <- [Module]Name`."""
    end = at + 1
    if end < len(tokens) and tokens[end].text == "(":
        end = _after_brackets(tokens, end)
    if end >= len(tokens) or tokens[end].text not in ("=", "<-"):
        return end
    end += 1
    if end < len(tokens) and tokens[end].text == "[":
        end = _after_brackets(tokens, end)
    if end < len(tokens) and tokens[end].text == "-":
        end += 1
    return _after_brackets(tokens, end) if end < len(tokens) else end


def _after_brackets(tokens: list[Token], at: int) -> int:
    """Return the index after the token at `at` or, for a bracket, after its closing bracket."""
    depth = 0
    while at < len(tokens):
        depth += (tokens[at].text in "([{") - (tokens[at].text in ")]}")
        at += 1
        if depth <= 0:
            break
    return at


class TlcRun(NamedTuple):
    """The input of a run of TLC: the root module's name, the configuration's name, and the files by name."""

    root: str
    configuration: str
    files: Mapping[str, str]


def check_names(model: Model, configuration: Configuration, modules: Modules) -> None:
    """Refuse an unknown constant, because TLC would ignore the constant.

    Args:
        model: The model, with overridden constants.
        configuration: Its configuration.
        modules: The model's module and all extended modules.

    Raises:
        ConfigurationFailed: A constant doesn't exist; the message names the most similar constant.
    """
    if not modules.complete:
        return  # a module is missing, which TLC will report
    constants = sorted(modules.constants)
    for name in model.constants:
        if name not in modules.constants:
            raise ConfigurationFailed(
                f"there is no constant {name}{_nearest(name, constants)}. {_listed(constants)}", file=model.module
            )
    known = set(constants) | set(modules.definitions)
    for entry in configuration.entries:
        if entry.section != "constants" or entry.name in known or not _IDENTIFIER.fullmatch(entry.name):
            continue
        # By convention `l1 = l1` declares a model value; the assignment has no other effect.
        if configuration.text[entry.start : entry.end].replace(" ", "") == f"{entry.name}={entry.name}":
            continue
        line, column = configuration.position_of(entry.name, "constants") or (None, None)
        raise ConfigurationFailed(
            f"the module {model.module.stem} has no constant {entry.name}{_nearest(entry.name, constants)}. "
            f"{_listed(constants)}",
            file=configuration.path,
            line=line,
            column=column,
        )


def prepare(
    model: Model, configuration: Configuration, *, max_distinct: int | None, drop: Sequence[str] = ()
) -> TlcRun:
    """Return the files for a run of `model`, without the sections in `drop`.

    If no override is needed, the root is the user's module with its own configuration.

    Args:
        model: The model.
        configuration: Its configuration.
        max_distinct: The largest number of distinct states, or None for no limit.
        drop: The sections of the configuration to leave out.

    Raises:
        ConfigurationFailed: TLC can't represent a value.
    """
    gone = set(drop)
    if model.invariants is not None:
        gone.add("invariants")
    if model.properties is not None:
        gone.add("properties")
    lines: list[str] = []
    definitions: dict[str, str] = {}
    model_values: set[str] = set()
    for constant, value in model.constants.items():
        _check(model, constant, value)
        if _is_simple(value):
            lines.append(f"CONSTANT {constant} = {to_tla(value)}")
        else:
            definitions[constant] = to_tla(_with_model_values(value, model_values))
            lines.append(f"CONSTANT {constant} <- Pytla_{constant}")
    lines += [f"CONSTANT Pytla_model_value_{value} = {value}" for value in sorted(model_values)]
    if "invariants" not in drop:
        lines += [f"INVARIANT {invariant}" for invariant in model.invariants or ()]
    if "properties" not in drop:
        lines += [f"PROPERTY {temporal}" for temporal in model.properties or ()]
    if max_distinct is not None:
        lines.append(f"INVARIANT {BOUND}")
    text = configuration.without(gone, model.constants)
    if lines:
        text = text.rstrip("\n") + "\n" + "\n".join(lines) + "\n"
    # TLC appends a missing extension to the name.
    name = f"{configuration.path.name.removesuffix('.cfg')}.cfg"
    files = {name: text}
    if not definitions and max_distinct is None:
        return TlcRun(model.module.stem, name, files)
    declared = [f"CONSTANT Pytla_model_value_{value}" for value in sorted(model_values)]
    values = [f"Pytla_{constant} == {written}" for constant, written in definitions.items()]
    if max_distinct is not None:
        values.append(f'{BOUND} == TLCGet("distinct") <= {max_distinct}')
    names = [*(f"Pytla_{constant}" for constant in definitions), *([BOUND] if max_distinct is not None else [])]
    # A named instance avoids clashes between names of the modules Integers and TLC and a user's names.
    root = [f"EXTENDS {model.module.stem}", *declared, f"Pytla == INSTANCE {VALUES}"]
    files[f"{ROOT}.tla"] = _module(ROOT, [*root, *(f"{defined} == Pytla!{defined}" for defined in names)])
    files[f"{VALUES}.tla"] = _module(VALUES, ["EXTENDS Integers, TLC", *declared, *values])
    return TlcRun(ROOT, name, files)


def _module(name: str, lines: list[str]) -> str:
    return "\n".join([f"---- MODULE {name} ----", *lines, "====", ""])


def _check(model: Model, name: str, value: TlaValue) -> None:
    def refuse(what: str) -> ConfigurationFailed:
        return ConfigurationFailed(f"the value given for constant {name} can't be used: {what}", file=model.module)

    match value:
        case bool():
            pass
        case int():
            if not _LEAST <= value <= _GREATEST:
                raise refuse(f"{value} is beyond TLC's integers, which are from {_LEAST} to {_GREATEST}.")
        case ModelValue():
            if not _IDENTIFIER.fullmatch(value.name) or value.name in _KEYWORDS:
                raise refuse(f"the name of a model value must be a word that isn't a keyword, not {value.name!r}.")
        case str():
            if not value.isascii():
                raise refuse(f"TLA+ only allows ASCII characters, but {value!r} contains others.")
            try:
                to_tla(value)
            except ValueError as error:
                raise refuse(f"{error}.") from None
        case frozenset() | tuple():
            for element in value:
                _check(model, name, element)
        case Function():
            for argument, result in value.items():
                _check(model, name, argument)
                _check(model, name, result)
        case _:
            raise refuse(f"{value!r} is a {type(value).__name__}, not a TLA+ value.")


def _is_simple(value: TlaValue) -> bool:
    """Return whether a configuration file can write the value."""
    match value:
        case bool() | ModelValue():
            return True
        case int():
            return value >= 0
        case str():
            return "\\" not in value and value.isprintable() and '"' not in value
        case frozenset():
            return all(map(_is_simple, value))
    return False


def _with_model_values(value: TlaValue, found: set[str]) -> TlaValue:
    """Return a value in which constants of the run replace the model values."""
    match value:
        case ModelValue():
            found.add(value.name)
            return ModelValue(f"Pytla_model_value_{value.name}")
        case frozenset():
            return frozenset(_with_model_values(element, found) for element in value)
        case tuple():
            return tuple(_with_model_values(element, found) for element in value)
        case Function():
            return Function(
                (_with_model_values(argument, found), _with_model_values(result, found))
                for argument, result in value.items()
            )
    return value


def _nearest(name: str, names: list[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f" (did you mean {near[0]}?)" if near else ""


def _listed(constants: list[str]) -> str:
    return f"Its constants are {', '.join(constants)}." if constants else "It has no constants."
