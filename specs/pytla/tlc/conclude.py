"""Converts TLC's output to a result, or to an exception with the location, the cause and the remedy."""

from __future__ import annotations

import difflib
import re
import signal
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, NoReturn, TypedDict

from ..errors import (
    AssumptionFailed,
    ConfigurationFailed,
    DeadlockReached,
    EndedBySignal,
    EvaluationFailed,
    FolderUnusable,
    LimitReached,
    MissingJar,
    MissingJava,
    OutOfMemory,
    ParseFailed,
    StateSpaceTooLarge,
    TlcCrashed,
    unreadable,
)
from ..inputs.configuration import BOUND, ROOT, VALUES, Configuration
from ..inputs.models import Model
from ..inputs.modules import Modules
from ..results import Location, Result, Step, TlcOutcome, Trace
from ..tlc_error import ValueSyntaxError
from ..values import TlaValue, parse_state
from .messages import BUG, ERROR, WARNING, TlcMessage
from .output import TlcOutput

ANSWERED = {0, *range(10, 15)}
"""The exit codes of a run that passed or found a violation."""

PARSE = {3000, 3001, 3002, 2171, 4000, 4001, 4002, 2119}
USAGE = {1101, 1102, *range(3100, 3115)}
CONFIGURATION = {*range(5001, 5007), *range(2222, 2244), 2245, 2280, 2281, 2146}
OUT_OF_MEMORY = {1001, 1002}
TOO_LARGE = {2172, 2265, 2282}
ASSUMPTION_FALSE, ASSUMPTION_UNEVALUATED = 2104, 2105
INVARIANT_INITIALLY, PROPERTY_INITIALLY = 2107, 2108
OUTCOMES: Mapping[int, TlcOutcome] = {
    2110: "invariant",
    INVARIANT_INITIALLY: "invariant",
    2112: "action property",
    2116: "temporal property",
    PROPERTY_INITIALLY: "temporal property",
    2114: "deadlock",
}
STATE, STATE_NAMELESS, STUTTERING, BACK = 2217, 2216, 2218, 2122
NESTED, FINGERPRINT = 2103, 2147
SUCCESS, NO_INITIAL_STATE = 2193, 2118
INITIAL_STATE, INCOMPLETE_INITIAL, INCOMPLETE_SUCCESSOR = 2102, 2106, 2109
LIVENESS_WITH_SYMMETRY = 2279

_LOCATION = re.compile(
    r"[Ll]ine (\d+), col(?:umn)? (\d+) to line (\d+), col(?:umn)? (\d+)(?: of module| in) ([A-Za-z0-9_]+)"
)
_STEP = re.compile(r"(\d+): (?:<(.*)>)?(.*)")
_ACTION = re.compile(r"(.*?) ?(?:\(.*\) ?)?(?=[Ll]ine \d|$)")
_BACK = re.compile(r"(\d+): Back to state(?::? <(.*)>)?")
_NAMED = re.compile(r"(?:[Ii]nvariant|[Pp]roperty|[Pp]roperties) (\S+) (?:is|was|were) violated")
_EXCEPTION = re.compile(
    r"TLC threw an unexpected exception\.\nThis was probably caused by an error in the spec or model\.\n"
    r"(?:See the User Output or TLC Console for clues to what happened\.\n)?"
    r"The exception was an? ([\w.$]+)\s*:?\s*(?:[\w.$]+(?:Exception|Error): )?"
)
# TLC's own exceptions when an expression can't be evaluated; any other exception is a bug in TLC.
_OWN_EXCEPTION = re.compile(r"(?:tlc2|util|tla2sany)\..*|java\.lang\.(?:RuntimeException|StackOverflowError)")


class Position(TypedDict, total=False):
    """The location of an error, in the arguments of the error classes."""

    file: Path | None
    module: str | None
    line: int | None
    column: int | None


@dataclass(frozen=True)
class RunFacts:
    """The facts about a run that are needed to explain its output."""

    model: Model
    configuration: Configuration
    modules: Modules
    max_distinct: int | None = None

    def position(self, location: Location | None) -> Position:
        """Return the location of an error in the user's file, or the whole module if it is unknown."""
        if location is None or location.module in (ROOT, VALUES):
            return {"file": self.model.module}
        file = self.modules.files.get(location.module)
        return {"file": file, "module": location.module, "line": location.line, "column": location.column}

    def definition(self, name: str | None) -> Location | None:
        """Return the location of a name's definition or declaration, or None if unknown."""
        found = self.modules.definitions.get(name or "") or self.modules.constants.get(name or "")
        return None if found is None else Location(found.module, found.line, found.column, found.end, 1)

    def initial_predicate(self) -> str | None:
        """The name of the initial predicate, or of the specification that contains it."""
        names = self.configuration.names("init") or self.configuration.names("specification")
        return names[0] if names else None

    def properties(self) -> tuple[str, ...]:
        """The names of the checked properties."""
        given = self.model.properties
        return self.configuration.names("properties") if given is None else given


def conclude(case: RunFacts, output: TlcOutput, *, exhaustive: bool = True) -> Result:
    """Return the result of a run.

    Args:
        case: The facts about the run.
        output: TLC's output.
        exhaustive: Whether TLC should explore every state, instead of random behaviours.

    Raises:
        TlcError: The run failed; the subclass fits the cause.
    """
    if output.exit_code not in ANSWERED:
        # Check the limits of the system first, because a lack of memory or disk space may cause any other message.
        _raise_if_limited(output)
        _raise_if_out_of_memory(case, output)
        _raise_if_not_started(output)
        _raise_if_ended_by_signal(case, output)
    errors = [message for message in output.messages if message.severity in (ERROR, BUG)]
    codes = set[int]().union(*(message.codes() for message in errors))
    if codes & PARSE or output.exit_code == 150:
        _raise_parse_failed(case, output)
    if codes & CONFIGURATION or output.exit_code == 151:
        _raise_configuration_failed(case, output, errors)
    for message in errors:
        if message.code == ASSUMPTION_FALSE:
            _raise_assumption_failed(case, message)
        if message.code == NO_INITIAL_STATE:  # only a simulation ends with this message
            raise no_initial_state(case)
    trace = trace_of(output.messages)
    for message in errors:
        outcome = OUTCOMES.get(message.code)
        if outcome is not None:
            return _violated(case, output, message, outcome, trace)
    if errors:
        _raise_evaluation_failed(case, output, errors, trace)
    if output.exit_code != 0 or (exhaustive and SUCCESS not in {message.code for message in output.messages}):
        raise _crashed(case, output)
    warned = {message.code for message in output.messages if message.severity == WARNING}
    if LIVENESS_WITH_SYMMETRY in warned:
        raise ConfigurationFailed(
            "a temporal property under SYMMETRY may seem to hold where it doesn't: check it without SYMMETRY.",
            file=case.configuration.path,
        )
    result = _result(output, "passed", None, None)
    if exhaustive and result.distinct == 0:
        raise no_initial_state(case)
    if case.max_distinct is not None and result.distinct > case.max_distinct:
        raise _too_many_states(case, output)
    return result


def trace_of(messages: Iterable[TlcMessage]) -> Trace | None:
    """Return the behaviour that the messages report, or None."""
    steps: list[Step] = []
    loop, loop_action, stutters = None, None, False
    for message in messages:
        if message.code in (STATE, STATE_NAMELESS):
            head, _, state = message.text.partition("\n")
            header = _STEP.match(head)
            if header is None:
                continue
            action, location = _action(header[2]) if header[2] else (None, None)
            steps.append(Step(int(header[1]), action, _state(header[3].strip() + "\n" + state, header[1]), location))
        elif message.code == STUTTERING:
            stutters = True
        elif message.code == BACK and (back := _BACK.match(message.text)):
            loop, loop_action = int(back[1]), _action(back[2])[0] if back[2] else None
        elif message.code in (INVARIANT_INITIALLY, PROPERTY_INITIALLY):
            _, _, state = message.text.partition("\n")
            steps.append(Step(1, "Initial", _state(state, "1")))
    return Trace(tuple(steps), loop, stutters, loop_action) if steps else None


def _state(text: str, number: str) -> Mapping[str, TlaValue]:
    try:
        return parse_state(text)
    except ValueSyntaxError as error:
        raise unreadable(f"state {number} of the behaviour that violates the model", error) from None


def _action(text: str) -> tuple[str, Location | None]:
    """Return the name and the location in `UpdateLeft line 139, col 5 to line 140, col 54 of module ForeignKeyJoin`."""
    if text.startswith("Initial predicate"):
        return "Initial", None
    name = _ACTION.match(text)
    return (name[1] if name is not None and name[1] else text), _location(text)


def _location(text: str) -> Location | None:
    found = _LOCATION.search(text)
    return None if found is None else Location(found[5], *(int(found[group]) for group in range(1, 5)))


def _result(output: TlcOutput, outcome: TlcOutcome, violated: str | None, trace: Trace | None) -> Result:
    reported = output.progress
    return Result(
        outcome,
        violated,
        trace,
        distinct=reported.distinct,
        generated=reported.generated,
        left_on_queue=reported.left_on_queue,
        depth=reported.depth,
        seconds=output.seconds,
        coverage=dict(output.coverage),
        warnings=tuple(message.text for message in output.messages if message.severity == WARNING),
    )


def _violated(
    case: RunFacts, output: TlcOutput, message: TlcMessage, outcome: TlcOutcome, trace: Trace | None
) -> Result:
    if outcome == "deadlock":
        length = f"after {len(trace)} states " if trace is not None else ""
        raise DeadlockReached(
            f"a deadlock is reached {length}under {case.configuration.path.name}: the last state has no successor. "
            "If the model may end there, add a step that changes nothing, or don't check for deadlocks.",
            _result(output, outcome, None, trace),
            file=case.model.module,
        )
    name = _NAMED.search(message.text)
    if name is not None and name[1] == BOUND:
        raise _too_many_states(case, output)
    return _result(output, outcome, name[1] if name is not None else _property_at(case, message), trace)


def _property_at(case: RunFacts, message: TlcMessage) -> str | None:
    """Return the violated property that TLC doesn't name: the only property, or the property at TLC's location."""
    names = case.properties()
    if len(names) == 1:
        return names[0]
    location = _location(message.text)
    if location is None:
        return None
    for name in names:
        found = case.definition(name)
        if found is not None and found.module == location.module and found.line <= location.line <= found.end_line:
            return name
    return None


def _too_many_states(case: RunFacts, output: TlcOutput) -> StateSpaceTooLarge:
    error = StateSpaceTooLarge(
        f"there are more than {case.max_distinct} distinct states: allow more, or make the constants smaller.",
        file=case.configuration.path,
    )
    error.progress = output.progress
    return error


_FULL = ("No space left on device", "Disk quota exceeded", "File too large")
_FEW_THREADS = ("unable to create native thread", "unable to create new native thread", "Cannot create VM thread")
_FEW_BYTES = (
    "insufficient memory for the Java Runtime",
    "failed to map segment",
    "Could not allocate compressed class",
)


def _raise_if_limited(output: TlcOutput) -> None:
    """Raise the error for a limit of the system, which neither the model nor TLC has caused."""
    texts = [message.text for message in output.messages if message.severity in (ERROR, BUG)]
    printed = "\n".join([*texts, *output.lines[-50:], output.standard_error])

    def has(some: tuple[str, ...]) -> bool:
        return any(text in printed for text in some)

    if has(_FULL):
        raise FolderUnusable(
            f"no room is left in {tempfile.gettempdir()}, where TLC keeps the states: make room, or let TMPDIR name a "
            "folder with more."
        )
    if has(("Too many open files",)):
        raise LimitReached("Java may open too few files: raise the limit, which `ulimit -n` shows.")
    if has(_FEW_THREADS):
        raise LimitReached(
            "Java can't start another thread: raise the limit, which `ulimit -u` shows, or use fewer workers."
        )
    if has(_FEW_BYTES):
        raise OutOfMemory(
            "Java got too little memory from the system: raise the limit, which `ulimit -v` shows, end other programs, "
            "or give Java a smaller heap (`--memory`, or memory_mb)."
        )


def _raise_if_ended_by_signal(case: RunFacts, output: TlcOutput) -> None:
    if output.exit_code >= 0:
        return
    name = signal.Signals(-output.exit_code).name
    crashed = name in ("SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP")
    error = EndedBySignal(
        (
            f"Java crashed ({name}){_how_far(output)}, which no model should make it do: run it again, with another "
            "Java if it crashes again."
            if crashed
            else f"Another process or a person ended Java ({name}){_how_far(output)}: run it again."
        ),
        file=case.configuration.path,
    )
    error.signal = name
    raise error


def _how_far(output: TlcOutput) -> str:
    distinct = output.progress.distinct
    return f" at {distinct} distinct states" if distinct else ""


def _raise_if_out_of_memory(case: RunFacts, output: TlcOutput) -> None:
    printed = "\n".join(output.lines[-50:]) + output.standard_error
    exhausted = "OutOfMemoryError" in printed or any(
        OUT_OF_MEMORY & message.codes() or "OutOfMemoryError" in message.text
        for message in output.messages
        if message.severity == ERROR
    )
    killed = output.exit_code == -signal.SIGKILL
    if exhausted or killed:
        what, remedy = "Java ran out of memory", "allow a larger heap (`--memory`, or memory_mb)"
        if killed and not exhausted:
            what = "Java was killed from outside (SIGKILL), as a system does when its memory runs out"
            remedy = "free memory, allow a smaller heap (`--memory`, or memory_mb)"
        raise OutOfMemory(
            f"{what}{_how_far(output)}: {remedy}, or make the model's constants smaller.",
            file=case.configuration.path,
        )


_HEAP_REFUSED = (
    "Invalid maximum heap size",
    "Invalid initial heap size",
    "Too small maximum heap",
    "Could not reserve enough",
    "Initial heap size set to a larger value",
    "GC triggered before VM initialization",
    "exceeds the maximum representable size",
)


def _raise_if_not_started(output: TlcOutput) -> None:
    said = "\n".join([output.standard_error, *output.lines[:20]]).strip()
    if "UnsupportedClassVersionError" in said:
        raise MissingJava("this Java is too old for this tla2tools.jar: name a newer one.")
    if "Could not find or load main class" in said or "Invalid or corrupt jarfile" in said:
        raise MissingJar("the jar doesn't contain TLC: it should be tla2tools.jar.")
    if any(text in said for text in _HEAP_REFUSED):
        raise OutOfMemory(
            f"Java can't allocate a heap of the requested size: {_sentence(said)} Request another size (`--memory`, or "
            "memory_mb), and look at JAVA_TOOL_OPTIONS and `ulimit -v`."
        )


def _raise_parse_failed(case: RunFacts, output: TlcOutput) -> NoReturn:
    problems = _problems(case, output.lines)
    if not problems:
        raise ParseFailed(f"the module can't be parsed:\n{output.tail()}", file=case.model.module)
    first = problems[0]
    if first.module in (ROOT, VALUES):
        raise ConfigurationFailed(f"TLC can't read a value given from Python: {first.what}", file=case.model.module)
    failures = [ParseFailed(problem.what, **case.position(problem.location())) for problem in problems]
    raise ParseFailed("\n".join([first.what, *map(str, failures[1:])]), **case.position(first.location()))


_HEADINGS_OF_COMPLAINTS = {"***Parse Error***": "syntax", "*** Errors": "semantic"}
_HEADINGS = (*_HEADINGS_OF_COMPLAINTS, "***", "Residual stack", "Fatal errors", "Semantic ")
_PARSED = re.compile(r"Parsing file .*?([A-Za-z0-9_]+)\.tla\b")
_AT = re.compile(r"at line (\d+),? col(?:umn)? (\d+)")
_NO_SOURCE = re.compile(r"Cannot find source file for module (\w+)(?: imported in module (\w+))?")
_OTHER_NAME = re.compile(r"File name '(\w+)' does not match the name '(\w+)'")


class Problem(NamedTuple):
    """One error message of the TLA+ parser."""

    module: str | None
    line: int | None
    column: int | None
    what: str

    def location(self) -> Location | None:
        """The location of the complaint, or None if the parser printed no location."""
        if self.module is None or self.line is None or self.column is None:
            return None
        return Location(self.module, self.line, self.column, self.line, self.column)


def _problems(case: RunFacts, lines: list[str]) -> list[Problem]:
    """Return the parser's complaints, in order, each once."""
    found: dict[Problem, None] = {}
    module: str | None = None
    section = ""
    location: Location | None = None
    complaint: list[str] = []

    def end_complaint() -> None:
        text = " ".join(complaint)
        at = location if section == "semantic" else _location(text)
        spot = _AT.search(text)
        if at is not None:
            found[Problem(at.module, at.line, at.column, text)] = None
        elif spot is not None:
            found[Problem(module, int(spot[1]), int(spot[2]), text)] = None
        elif text:
            found[Problem(module, None, None, text)] = None
        complaint.clear()

    for line in [*lines, ""]:
        text = line.strip()
        heading = text.startswith(_HEADINGS) or text.startswith("Parsing file")
        if complaint and (not text or heading):
            end_complaint()
            section = section if section == "semantic" else ""
        if parsed := _PARSED.match(text):
            module, section = parsed[1], ""
        elif heading:
            section, location = _HEADINGS_OF_COMPLAINTS.get(text.partition(":")[0], ""), None
        elif no_source := _NO_SOURCE.search(text):
            line_of, column_of = case.modules.first_mention(no_source[1]) or (None, None)
            what = f"there is no module {no_source[1]}, neither beside this one nor among the standard modules."
            found[Problem(no_source[2], line_of, column_of, what)] = None
        elif other_name := _OTHER_NAME.search(text):
            what = f"the module in it is named {other_name[2]}: a file and its module must have the same name."
            found[Problem(other_name[1], None, None, what)] = None
        elif text.startswith("Lexical error"):
            complaint, section = [text], "syntax"
        elif section == "semantic" and (at := _LOCATION.match(text)) is not None and at[0] == text and not complaint:
            location = _location(text)
        elif section and text:
            complaint.append(text)
    return list(found)


def _raise_configuration_failed(case: RunFacts, output: TlcOutput, errors: list[TlcMessage]) -> NoReturn:
    path = case.configuration.path
    message = _innermost(errors, CONFIGURATION)
    text = message.text if message is not None else output.tail()
    if unvalued := re.search(r"constant parameter (\S+) is not assigned", text):
        name = unvalued[1]
        raise ConfigurationFailed(
            f"the constant {name} has no value: add `CONSTANT {name} = …` to {path}, or give one from Python.",
            **case.position(case.definition(name)),
        )
    if undefined := re.search(r"The (?:\w+ )*?(\w+) (\S+) specified in the configuration file\s+is not defined", text):
        kind, name = undefined[1], undefined[2]
        near = difflib.get_close_matches(name, case.modules.definitions, 1)
        hint = f" (did you mean {near[0]}?)" if near else ""
        what = f"the {kind} {name} isn't defined in {case.model.module.stem}{hint}."
        position = case.configuration.position_of(name)
        if position is None or name in (*(case.model.invariants or ()), *(case.model.properties or ())):
            raise ConfigurationFailed(what, file=case.model.module)
        raise ConfigurationFailed(what, file=path, line=position[0], column=position[1])
    if generated := re.search(r"constant (\S+) with non-constant Pytla_", text):
        value = case.model.constants.get(generated[1])
        raise ConfigurationFailed(
            f"TLC can't evaluate the value given for the constant {generated[1]}, {value!r}: in one set all elements "
            "must be comparable, numbers with numbers and strings with strings.",
            file=case.model.module,
        )
    if at_line := re.search(r"(?:at|on) line (\d+)\s*", text):
        what = re.sub(r"^.*?(?:at|on) line \d+[.\s]*", "", text, flags=re.DOTALL)
        raise ConfigurationFailed(_sentence(what or text), file=path, line=int(at_line[1]))
    if "did not specify the initial state predicate" in text:
        raise ConfigurationFailed(
            "The configuration file doesn't say which behaviours the model has: add a line `SPECIFICATION Spec`, or "
            "INIT and NEXT.",
            file=path,
        )
    for entry in case.configuration.entries:
        if re.search(rf"(?<!\w){re.escape(entry.name)}(?!\w)", text):
            line, column = case.configuration.position_of(entry.name, entry.section) or (None, None)
            raise ConfigurationFailed(_sentence(text), file=path, line=line, column=column)
    raise ConfigurationFailed(_sentence(text), file=path)


def _raise_assumption_failed(case: RunFacts, message: TlcMessage) -> NoReturn:
    location = _location(message.text)
    source = "" if location is None else _source(case, location)
    raise AssumptionFailed(
        f"this assumption is false under {case.configuration.path.name}{f': {source}' if source else ''}. "
        "Change the constants, or the assumption.",
        **case.position(location),
    )


def _raise_evaluation_failed(
    case: RunFacts, output: TlcOutput, errors: list[TlcMessage], trace: Trace | None
) -> NoReturn:
    first = next((message for message in errors if message.code not in (NESTED, FINGERPRINT)), errors[0])
    text = first.text
    thrown = _EXCEPTION.match(text)
    if first.severity == BUG or first.code in USAGE or (thrown is not None and not _OWN_EXCEPTION.fullmatch(thrown[1])):
        raise _crashed(case, output)
    if thrown is not None:
        text = text[thrown.end() :].strip()
        if "StackOverflowError" in thrown[1]:
            text = "a recursion is too deep: perhaps a recursive operator never ends."
    position = case.position(_failed_at(case, errors, trace))
    length = f" It happens after the {len(trace)} states of the trace." if trace is not None else ""
    if first.code == INITIAL_STATE and (unset := re.findall(r"^(?:/\\ )?(\w+) = null$", text, re.MULTILINE)):
        text = f"the initial predicate leaves {' and '.join(unset)} without a value."
    if first.code == ASSUMPTION_UNEVALUATED:
        text = re.sub(r"^Evaluating assumption .*? failed\.", "the assumption can't be evaluated:", text)
    what = _sentence(_unmarked(text))
    if first.codes() & TOO_LARGE or "too many elements" in text or "Overflow when computing" in text:
        raise StateSpaceTooLarge(f"{what} Make the set smaller, or the constants.", **position)
    error = EvaluationFailed(what + length, **position)
    error.trace = trace
    raise error


def _failed_at(case: RunFacts, errors: list[TlcMessage], trace: Trace | None) -> Location | None:
    """Return the location of a failed evaluation: the innermost expression that TLC names, otherwise the definition."""
    for code in (NESTED, FINGERPRINT):
        for message in errors:
            found = [_location(one[0]) for one in _LOCATION.finditer(message.text)] if message.code == code else []
            if found:
                return found[-1]
    for message in errors:
        if location := _location(message.text):
            return location
        if named := re.search(r"Evaluating (?:invariant|action property|property) (\S+) failed", message.text):
            return case.definition(named[1])
        if message.code == INCOMPLETE_SUCCESSOR and trace is not None:
            return trace.steps[-1].location
        if message.code in (INITIAL_STATE, INCOMPLETE_INITIAL):
            return case.definition(case.initial_predicate())
    return None


def no_initial_state(case: RunFacts) -> ConfigurationFailed:
    """Return the error for a run with nothing to check."""
    name = case.initial_predicate()
    return ConfigurationFailed(
        f"no state satisfies the initial predicate{f' of {name}' if name else ''}, so nothing was checked: "
        "change it, or the constants.",
        **case.position(case.definition(name)),
    )


def _crashed(case: RunFacts, output: TlcOutput) -> TlcCrashed:
    tail = output.tail()
    error = TlcCrashed(
        f"TLC ended with exit code {output.exit_code} and no answer. It may be a fault of TLC's: try another "
        f"tla2tools.jar, named by TLA2TOOLS_JAR. The end of its output:\n{tail}",
        file=case.model.module,
    )
    error.output = tail
    return error


def _innermost(errors: list[TlcMessage], codes: set[int]) -> TlcMessage | None:
    for message in errors:
        inner = _innermost(list(message.parts), codes)
        if inner is not None:
            return inner
        if message.code in codes:
            return message
    return None


def _source(case: RunFacts, location: Location) -> str:
    """Return the text at a location, on one line."""
    file = case.modules.files.get(location.module)
    if file is None:
        return ""
    lines = file.read_text(encoding="utf-8", errors="replace").splitlines()[location.line - 1 : location.end_line]
    if not lines:
        return ""
    lines[-1] = lines[-1][: location.end_column]
    lines[0] = lines[0][location.column - 1 :]
    return " ".join(" ".join(lines).split())


def _unmarked(text: str) -> str:
    return re.sub(r"@!@!@(?:STARTMSG|ENDMSG) .*?@!@!@\n?", "", text)


def _sentence(text: str) -> str:
    """Return TLC's text on one line, without the stack of a Java exception."""
    lines = [line.strip() for line in text.split("\n") if line.strip() and not line.startswith("\tat ")]
    joined = " ".join(lines)
    return joined if joined.endswith((".", ":", "!", "?")) else f"{joined}."
