"""Steps of a behaviour for readers: the action with its parameters, and its changes as paths into nested values.

A TLC state repeats every variable, changed or not. A reader wants the difference: the new row, the sent message, the
delivered message. This code works for any module, and reads names and comments from the module's text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from .pytla import Function, Step, TlaValue, Trace, to_tla

ChangedHow = Literal["set", "appended", "taken", "removed", "joined", "left", "new", "gone"]

ROW_FIELDS = range(2, 5)
"""The number of plain fields of a record that counts as a row; a changed row is shown whole."""
_DEEPEST_CALL = 6
_COMMENTS_AT_THE_END = re.compile(r"(?:[ \t]*(?:\(\*(?:(?!\*\)).)*\*\)[ \t]*|\\\*[^\n]*)\n)+\Z", re.DOTALL)


@dataclass(frozen=True)
class ChangedVariable:
    """One difference between two states.

    Attributes:
        variable: The variable.
        keys: The path to the changed value, from the outside in; empty for the whole variable.
        kind: The kind of change: `set` (another value), `appended` to a sequence, `taken` from a sequence's head,
            `removed` from another position, `joined` or `left` a set, `new` or `gone` key of a function.
        before: The value before the change, or the taken, removed or gone part.
        after: The value after the change, or the appended, joined or new part.
    """

    variable: str
    keys: tuple[TlaValue, ...]
    kind: ChangedHow
    before: TlaValue | None
    after: TlaValue | None

    @property
    def path(self) -> str:
        """The path of the difference in TLA+, such as `responses["r1"]["l"]`."""
        return self.variable + "".join(f"[{written(key)}]" for key in self.keys)

    @property
    def text(self) -> str:
        """The difference in one line, such as `left["l"]: None → [version |-> 1]` or, with a removed part, `- 1`."""
        return f"{self.path}: {self.difference}"

    @property
    def difference(self) -> str:
        """The difference without its path."""
        before = "" if self.before is None else written(self.before)
        after = "" if self.after is None else written(self.after)
        match self.kind:
            case "set":
                return f"{before} → {after}"
            case "appended" | "joined" | "new":
                return f"+ {after}"
            case "taken" | "left" | "gone":
                return f"- {before}"
            case "removed":
                return f"- {before} (not the head)"


class ReadableStep(NamedTuple):
    """A step of a behaviour as people read it: its number, its action with parameters, and its changes."""

    number: int
    action: str
    changes: tuple[ChangedVariable, ...]


@dataclass(frozen=True)
class ModuleDefinition:
    """A definition of a module.

    Attributes:
        name: Its name.
        parameters: The names of its parameters.
        body: The text of the definition after `==`.
        comment: The comment before the definition, in one line; empty: no comment.
        path: The file.
        line: The line on which the definition starts, from 1.
    """

    name: str
    parameters: tuple[str, ...]
    body: str
    comment: str
    path: Path
    line: int


@dataclass(frozen=True)
class ModuleText:
    """The parts of a module's text that readers of its behaviours need.

    Attributes:
        definitions: The definitions of the module, by name.
        variables: The variables of the module, in the order of their declaration.
    """

    definitions: Mapping[str, ModuleDefinition]
    variables: tuple[str, ...]

    def ordered(self, state: Mapping[str, TlaValue]) -> dict[str, TlaValue]:
        """Return the variables of a state in the order of their declaration; TLC's order differs."""
        index = {name: number for number, name in enumerate(self.variables)}
        return dict(sorted(state.items(), key=lambda item: index.get(item[0], len(index))))


def changes(before: Mapping[str, TlaValue], after: Mapping[str, TlaValue]) -> tuple[ChangedVariable, ...]:
    """Return the differences between two states, in the order of the second state's variables."""
    return tuple(
        change for name, value in after.items() if name in before for change in _between(name, (), before[name], value)
    )


def written(value: TlaValue) -> str:
    """Write a value in TLA+, with a record's fields in their own order, which `to_tla` sorts."""
    match value:
        case Function() if value and all(isinstance(name, str) and name.isidentifier() for name in value):
            return f"[{', '.join(f'{name} |-> {written(within)}' for name, within in value.items())}]"
        case tuple():
            return f"<<{', '.join(map(written, value))}>>"
        case frozenset():
            return f"{{{', '.join(written(within) for within in sorted(value, key=to_tla))}}}"
    return to_tla(value)


def readable_steps(
    trace: Trace, text: ModuleText, write: Callable[[TlaValue], str] | None = None
) -> tuple[ReadableStep, ...]:
    """Return the steps of a behaviour after the initial state, with actions as calls (see `called`).

    Args:
        trace: The behaviour.
        text: The text of the behaviour's module.
        write: A function that writes a value; TLA+ by default.
    """
    steps = []
    for before, step in zip(trace.steps, trace.steps[1:], strict=False):
        found = changes(before.state, text.ordered(step.state))
        steps.append(ReadableStep(step.number, called(step, found, text, write), found))
    return tuple(steps)


def ending(trace: Trace) -> str:
    """Return a sentence on how a counterexample continues for ever, or an empty text if it ends."""
    if trace.stutters:
        return "then nothing more happens, for ever (stuttering)"
    if trace.loop is not None:
        return f"then back to step {trace.loop}, and so on for ever"
    return ""


def called(
    step: Step, found: Sequence[ChangedVariable], text: ModuleText, write: Callable[[TlaValue], str] | None = None
) -> str:
    """Return a step's action with the parameters that its changes show: `DeliverResponse("r1", _)`.

    TLC reports an action without its parameters. If the action's definition, or a definition that it calls, contains
    `[variable EXCEPT ![key] = new]` with the parameters `key` and `new`, then `key` is the changed key of that
    variable, and `new` is its new value.

    Args:
        step: The step.
        found: Its changes.
        text: The text of the behaviour's module.
        write: A function that writes a value; TLA+ by default.
    """
    write = write or written
    action = step.action or "an action without a name"
    definition = text.definitions.get(action)
    if definition is None or not definition.parameters:
        return action
    known: dict[str, set[str]] = {}
    own = {name: name for name in definition.parameters}
    assignments = _assignments(definition, own, text.definitions, _DEEPEST_CALL)
    # Assignments under a condition are tried last, because another branch may have been taken.
    for variable, names, value, certain in sorted(assignments, key=lambda one: not one.certain):
        of_variable = [change.keys for change in found if change.variable == variable]
        for index, name in enumerate(names):
            _narrow(known, name, {write(keys[index]) for keys in of_variable if len(keys) > index}, certain)
        deep = [keys[: len(names)] for keys in of_variable if len(keys) >= len(names)]
        _narrow(known, value, {write(_at(step.state[variable], keys)) for keys in deep}, certain)
    candidates = [known.get(name, set()) for name in definition.parameters]
    if not any(len(one) == 1 for one in candidates):
        return action
    return f"{action}({', '.join(min(one) if len(one) == 1 else '_' for one in candidates)})"


def read_module(module: Path) -> ModuleText:
    """Read a module, and the modules beside it that it extends.

    An unreadable file adds nothing, because TLC has already reported the file.
    """
    found: dict[str, ModuleDefinition] = {}
    variables: list[str] = []
    waiting, seen = [module], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        try:
            text = path.read_text(encoding="utf-8", errors="replace")
        except OSError:
            continue
        for definition in _definitions(text, path):
            found.setdefault(definition.name, definition)
        for names in re.findall(r"^VARIABLES?\s+(\w+(?:\s*,\s*\w+)*)", _without_comments(text), re.MULTILINE):
            variables += re.split(r"\s*,\s*", names)
        for names in re.findall(r"^EXTENDS\s+(\w+(?:\s*,\s*\w+)*)", text, re.MULTILINE):
            waiting += [
                beside for name in re.split(r"\s*,\s*", names) if (beside := path.with_name(f"{name}.tla")).is_file()
            ]
    return ModuleText(found, tuple(variables))


def _between(variable: str, keys: tuple[TlaValue, ...], before: TlaValue, after: TlaValue) -> Iterator[ChangedVariable]:
    if _same(before, after):
        return
    if isinstance(before, Function) and isinstance(after, Function) and not (keys and _is_row(before, after)):
        yield from _between_functions(variable, keys, before, after)
    elif isinstance(before, tuple) and isinstance(after, tuple):
        yield from _between_sequences(variable, keys, before, after)
    elif isinstance(before, frozenset) and isinstance(after, frozenset):
        for value in sorted(before - after, key=to_tla):
            yield ChangedVariable(variable, keys, "left", value, None)
        for value in sorted(after - before, key=to_tla):
            yield ChangedVariable(variable, keys, "joined", None, value)
    else:
        yield ChangedVariable(variable, keys, "set", before, after)


def _same(one: TlaValue, other: TlaValue) -> bool:
    # In Python True equals 1, but in TLA+ TRUE doesn't equal 1.
    return one == other and to_tla(one) == to_tla(other)


def _is_row(before: Function, after: Function) -> bool:
    return all(
        len(row) in ROW_FIELDS
        and all(isinstance(name, str) for name in row)
        and not any(isinstance(value, Function | tuple | frozenset) for value in row.values())
        for row in (before, after)
    )


def _between_functions(
    variable: str, keys: tuple[TlaValue, ...], before: Function, after: Function
) -> Iterator[ChangedVariable]:
    if not any(key in after for key in before):
        yield ChangedVariable(variable, keys, "set", before, after)
        return
    for key, value in before.items():
        if key in after:
            yield from _between(variable, (*keys, key), value, after[key])
        else:
            yield ChangedVariable(variable, (*keys, key), "gone", value, None)
    for key, value in after.items():
        if key not in before:
            yield ChangedVariable(variable, (*keys, key), "new", None, value)


def _between_sequences(
    variable: str, keys: tuple[TlaValue, ...], before: tuple[TlaValue, ...], after: tuple[TlaValue, ...]
) -> Iterator[ChangedVariable]:
    gone, came = sequence_difference(before, after)
    if len(before) == len(after) and len(gone) == len(came) and gone != [0]:
        # The length is unchanged, so show the elements with another value.
        for number, (one, other) in enumerate(zip(before, after, strict=True), start=1):
            yield from _between(variable, (*keys, number), one, other)
    elif len(gone) == len(before) and len(came) == len(after) and before and after:
        yield ChangedVariable(variable, keys, "set", before, after)
    else:
        for index, number in enumerate(gone):
            yield ChangedVariable(variable, keys, "taken" if index == number else "removed", before[number], None)
        for value in came:
            yield ChangedVariable(variable, keys, "appended", None, value)


def sequence_difference(
    before: tuple[TlaValue, ...], after: tuple[TlaValue, ...]
) -> tuple[list[int], tuple[TlaValue, ...]]:
    """Return the difference between two queues: the indexes (from 0) of removed elements, and the appended elements.

    The number of appended elements is minimal, and the first of several equal elements is removed.
    """
    for count in range(len(after) + 1):
        kept, came = after[: len(after) - count], after[len(after) - count :]
        gone, at = [], len(kept)
        for number in reversed(range(len(before))):
            if at and _same(before[number], kept[at - 1]):
                at -= 1
            else:
                gone.append(number)
        if at == 0:
            return gone[::-1], came
    raise AssertionError("a queue without elements is a part of any queue")


def _narrow(known: dict[str, set[str]], name: str | None, values: set[str], certain: bool) -> None:
    """Narrow the possible values of a parameter; an unchanged variable adds no information."""
    if name is not None and values:
        both = known.get(name, values) & values
        if both or certain:
            known[name] = both


def _at(value: TlaValue, keys: Sequence[TlaValue]) -> TlaValue:
    for key in keys:
        if isinstance(value, Function):
            value = value[key]
        elif isinstance(value, tuple) and isinstance(key, int):
            value = value[key - 1]
    return value


class _Assignment(NamedTuple):
    """A variable that an action changes at some keys; keys and new value are known if they are the action's parameters.

    `certain` means that the assignment isn't inside an IF or a CASE.
    """

    variable: str
    keys: tuple[str | None, ...]
    value: str | None
    certain: bool


def _assignments(
    definition: ModuleDefinition, own: Mapping[str, str], definitions: Mapping[str, ModuleDefinition], depth: int
) -> Iterator[_Assignment]:
    """Yield the assignments in a definition's body; `own` maps a name in the body to the action's parameter."""
    body = definition.body
    for changed in re.finditer(r"\b(\w+)'\s*=", body):
        rest = body[changed.end() :]
        following = re.search(r"\b\w+'\s*=", rest)
        within = rest[: following.start() if following else None]
        for keys, value in re.findall(r"!((?:\[\s*\w+\s*\])+)\s*=\s*(?:(\w+)\s*[,\]])?", within):
            certain = within.lstrip().startswith("[") and not re.search(r"\b(?:IF|CASE)\b", within)
            at = tuple(own.get(name) for name in re.findall(r"\w+", keys))
            yield _Assignment(changed[1], at, own.get(value), certain)
    if depth:
        for call in re.finditer(r"\b(\w+)\(", body):
            callee = definitions.get(call[1])
            if callee is not None and callee.name != definition.name:
                given = _arguments(body[call.end() :])
                passed = {
                    formal: own[actual]
                    for formal, actual in zip(callee.parameters, given, strict=False)
                    if actual in own
                }
                if passed:
                    yield from _assignments(callee, passed, definitions, depth - 1)


def _arguments(text: str) -> list[str]:
    """Return the arguments of a call, from the text after its opening parenthesis."""
    arguments, nested = [""], 0
    for character in text:
        if character in "([{":
            nested += 1
        elif character in ")]}":
            if nested == 0:
                break
            nested -= 1
        if character == "," and nested == 0:
            arguments.append("")
        else:
            arguments[-1] += character
    return [argument.strip() for argument in arguments]


def _definitions(text: str, path: Path) -> Iterator[ModuleDefinition]:
    heads = list(re.finditer(r"^([A-Za-z_]\w*)(?:\(([^()]*)\))?[ \t]*==", text, re.MULTILINE))
    for head, following in zip(heads, [*heads[1:], None], strict=True):
        rest = text[head.end() : following.start() if following else None]
        body = re.split(r"^(?:----|====)", rest, maxsplit=1, flags=re.MULTILINE)[0]
        parameters = tuple(name.strip() for name in head[2].split(",")) if head[2] else ()
        yield ModuleDefinition(
            head[1], parameters, _without_comments(body), _comment_before(text[: head.start()]), path,
            text.count("\n", 0, head.start()) + 1,
        )  # fmt: skip


def _without_comments(text: str) -> str:
    return re.sub(r"\(\*.*?\*\)|\\\*[^\n]*", "", text, flags=re.DOTALL)


def _comment_before(text: str) -> str:
    """Return the comment directly above a definition, without an empty line between them."""
    block = _COMMENTS_AT_THE_END.search(text)
    said = re.sub(r"\(\*|\*\)|\\\*", " ", block[0]) if block else ""
    return " ".join(said.split())
