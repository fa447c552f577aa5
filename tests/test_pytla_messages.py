"""What is made of TLC's messages, held against output that TLC 2.15 really gave."""

from __future__ import annotations

import time

import pytest
from streamproof.specs.pytla.conclude import Case, conclude, trace_of
from streamproof.specs.pytla.configuration import Configuration
from streamproof.specs.pytla.errors import (
    AssumptionFailed,
    ConfigurationFailed,
    DeadlockReached,
    EvaluationFailed,
    MissingJar,
    MissingJava,
    OutOfMemory,
    ParseFailed,
    StateSpaceTooLarge,
    TlcCrashed,
)
from streamproof.specs.pytla.messages import MessageReader
from streamproof.specs.pytla.models import Model
from streamproof.specs.pytla.modules import Modules
from streamproof.specs.pytla.output import KEPT_LINES, Output, listen
from streamproof.specs.pytla.results import Coverage, Location

MODULE = """\
---- MODULE M ----
EXTENDS Integers
CONSTANT N
VARIABLE x
ASSUME N >
  5
Init == x = 0
Next == x' = x + 1
Low == x < 3
Up == [][x' > x]_x
Live == <>(x = 5)
====
"""
CONFIGURATION = """\
INIT Init
NEXT Next
CONSTANT N = 3
INVARIANTS Low
  Nope
PROPERTY Up Live
"""


def message(code, text, severity=0):
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


INITIALLY = "current state is not a legal state\nWhile working on the initial state:\n/\\ x = 0\n/\\ y = null"
NESTED = "0. Line 7, column 9 to line 8, column 21 in M\n1. Line 7, column 12 to line 7, column 38 in M"
ASSERTED = message(2132, "Assert evaluated to FALSE").rstrip()
UP = "<Up line 8, col 1 to line 8, col 5 of module M>"
STATES = message(2217, "1: <Initial predicate>\nx = 0\n", 4) + message(
    2217, "2: <Next line 8, col 9 to line 8, col 18 of module M>\nx = 1\n", 4
)
COUNTS = (
    message(2200, "Progress(3) at 2026-11-21 13:33:28: 4 states generated (84 s/min), "
                  "3 distinct states found (42 ds/min), 1 states left on queue.")
    + message(2199, "4 states generated, 3 distinct states found, 1 states left on queue.")
    + message(2194, "The depth of the complete state graph search is 2.")
)  # fmt: skip
SUCCESS = message(2193, "Model checking completed. No error has been found.")


@pytest.fixture
def concluded(tmp_path):
    """The result of a recorded output, under the module and the configuration above."""

    def conclude_(text, *, exit_code=0, standard_error="", max_distinct=None, configuration=CONFIGURATION):
        (tmp_path / "M.tla").write_text(MODULE)
        (tmp_path / "M.cfg").write_text(configuration)
        model = Model(tmp_path / "M.tla", tmp_path / "M.cfg")
        modules = Modules(files={"M": model.module, "Integers": None})
        modules.take_in("M", MODULE)
        output = Output(time.monotonic())
        listen(output, text.splitlines(), None)
        output.ended(exit_code, standard_error)
        return conclude(Case(model, Configuration(model.configuration), modules, max_distinct), output)

    return conclude_


def test_a_message_is_given_when_it_ends():
    reader = MessageReader()
    assert reader.feed("@!@!@STARTMSG 2185:0 @!@!@") is None
    assert reader.feed("Starting...") is None
    assert reader.feed("@!@!@ENDMSG 2185 @!@!@").text == "Starting..."
    assert reader.feed("Parsing file M.tla") == "Parsing file M.tla"


def test_a_message_within_a_message_is_part_of_it_and_of_its_text():
    reader = MessageReader()
    *_, outer = map(reader.feed, (
        "@!@!@STARTMSG 1000:1 @!@!@", "The exception was", ": @!@!@STARTMSG 2132:0 @!@!@", "Assert evaluated to FALSE",
        "@!@!@ENDMSG 2132 @!@!@", "@!@!@ENDMSG 1000 @!@!@",
    ))  # fmt: skip
    assert outer.text == "The exception was\n: \nAssert evaluated to FALSE"
    assert [part.code for part in outer.parts] == [2132]
    assert outer.codes() == {1000, 2132}


def test_a_printed_string_that_looks_like_a_mark_is_none():
    reader = MessageReader()
    line = '"a @!@!@STARTMSG 2193:0 @!@!@"  TRUE'
    assert reader.feed(line) == line


def test_messages_cut_short_are_given_at_the_end():
    reader = MessageReader()
    for line in ("@!@!@STARTMSG 1000:1 @!@!@", "one", "@!@!@STARTMSG 2132:0 @!@!@", "two"):
        reader.feed(line)
    (cut,) = reader.rest()
    assert cut.text == "one\ntwo"


def test_a_run_without_errors_passes_with_its_counts(concluded):
    result = concluded(SUCCESS + COUNTS)
    assert result.passed
    assert result.violated is result.trace is None
    assert (result.generated, result.distinct, result.left_on_queue, result.depth) == (4, 3, 1, 2)


def test_counts_with_separators_are_read(concluded):
    text = "15,623 states generated (1,270 s/min), 6,875 distinct states found (1,270 ds/min), 0 states left on queue."
    result = concluded(SUCCESS + message(2200, f"Progress(11) at 2026-11-21 13:32:20: {text}"))
    assert (result.generated, result.distinct, result.depth) == (15623, 6875, 11)


def test_a_run_that_ends_without_saying_so_has_no_result(concluded):
    with pytest.raises(TlcCrashed, match="exit code 0 and no answer"):
        concluded(COUNTS)


def test_a_success_with_a_failing_exit_code_has_no_result(concluded):
    with pytest.raises(TlcCrashed, match="exit code 255"):
        concluded(SUCCESS + COUNTS, exit_code=255)


def test_a_run_without_a_state_has_shown_nothing(concluded):
    counts = message(2199, "0 states generated, 0 distinct states found, 0 states left on queue.")
    with pytest.raises(ConfigurationFailed, match=r"M\.tla:7:1: no state satisfies the initial predicate of Init"):
        concluded(SUCCESS + counts)


def test_a_violated_invariant_is_a_result_with_its_trace(concluded):
    result = concluded(message(2110, "Invariant Low is violated.", 1) + STATES + COUNTS, exit_code=12)
    assert (result.outcome, result.violated, result.passed) == ("invariant", "Low", False)
    first, second = result.trace.steps
    assert (first.number, first.action, first.state, first.location) == (1, "Initial", {"x": 0}, None)
    assert (second.number, second.action, second.state) == (2, "Next", {"x": 1})
    assert second.location == Location("M", 8, 9, 8, 18)
    assert len(result.trace) == 2


def test_an_invariant_violated_at_once_has_a_trace_of_one(concluded):
    result = concluded(message(2107, "Invariant Low is violated by the initial state:\nx = 0\n", 1), exit_code=12)
    assert (result.outcome, result.violated, len(result.trace)) == ("invariant", "Low", 1)
    assert result.trace.steps[0].state == {"x": 0}


def test_an_action_property_told_by_its_place_is_named(concluded):
    text = message(2112, "Action property line 10, col 10 to line 10, col 15 of module M is violated.", 1)
    result = concluded(text + STATES + COUNTS, exit_code=13)
    assert (result.outcome, result.violated) == ("action property", "Up")


def test_a_property_violated_by_the_initial_state_is_a_result(concluded):
    text = "Property line 11, col 9 to line 11, col 17 of module M is violated by the initial state:\nx = 0\n"
    result = concluded(message(2108, text, 1), exit_code=13)
    assert (result.outcome, result.violated, len(result.trace)) == ("temporal property", "Live", 1)


def test_of_several_temporal_properties_none_is_named(concluded):
    text = message(2116, "Temporal properties were violated.\n", 1) + STATES
    assert concluded(text + COUNTS, exit_code=13).violated is None
    one = concluded(text + COUNTS, exit_code=13, configuration="INIT Init\nNEXT Next\nCONSTANT N = 3\nPROPERTY Live\n")
    assert (one.outcome, one.violated) == ("temporal property", "Live")


def test_a_trace_may_stutter_or_return():
    reader = MessageReader()

    def read(text):
        return trace_of([said for line in (STATES + text).splitlines() if (said := reader.feed(line)) is not None])

    stuttering = read(message(2218, "3: Stuttering", 4))
    assert (stuttering.stutters, stuttering.loop, len(stuttering)) == (True, None, 2)
    back = read(message(2122, "1: Back to state: <Next line 7, col 9 to line 7, col 24 of module M>", 4))
    assert (back.stutters, back.loop, back.loop_action, len(back)) == (False, 1, "Next", 2)
    # A simulation leaves the action out.
    assert read(message(2122, "2: Back to state", 4)).loop == 2


def test_parameters_that_newer_versions_print_are_no_part_of_an_action_s_name():
    reader = MessageReader()
    text = message(2217, '2: <Send("a", 3) line 8, col 9 to line 8, col 18 of module M>\n/\\ x = 1\n/\\ y = 2\n', 4)
    (step,) = trace_of([said for line in text.splitlines() if (said := reader.feed(line)) is not None])
    assert (step.action, step.location.line, step.state) == ("Send", 8, {"x": 1, "y": 2})


def test_a_deadlock_is_an_error_with_the_result(concluded):
    with pytest.raises(DeadlockReached, match=r"M\.tla: a deadlock is reached after 2 states") as caught:
        concluded(message(2114, "Deadlock reached.", 1) + STATES + COUNTS, exit_code=11)
    assert caught.value.result.outcome == "deadlock"
    assert (len(caught.value.result.trace), caught.value.result.distinct) == (2, 3)


SYNTAX = """\
Parsing file /tmp/x/M.tla
***Parse Error***
Encountered "Beginning of definition" at line 8, column 1 and token "="

Residual stack trace follows:
ExtendableExpr starting at line 8, column 1.


Fatal errors while parsing TLA+ spec in file M

tla2sany.semantic.AbortException
*** Abort messages: 1

In module M

Could not parse module M from file M.tla


"""
SEMANTIC = """\
Parsing file /tmp/x/M.tla
Semantic processing of module Naturals
Semantic errors:

*** Errors: 2

line 7, col 14 to line 7, col 22 of module M

Unknown operator: `Undefined'.


line 7, col 26 to line 7, col 26 of module M

Unknown operator: `y'.



"""
FAILED_TO_PARSE = message(3002, "Parsing or semantic analysis failed.", 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (SYNTAX, r"M\.tla:8:1: Encountered \"Beginning of definition\" at line 8, column 1 and token \"=\""),
        (SEMANTIC, r"M\.tla:7:14: Unknown operator: `Undefined'\.\n.*M\.tla:7:26: Unknown operator: `y'\."),
        (
            "Parsing file M.tla\n***Parse Error***\n\n  Precedence conflict between ops \\land in block line 7, "
            "col 15 to line 7, col 16 of module M and \\lor.\n",
            r"M\.tla:7:15: Precedence conflict",
        ),
        (
            'Parsing file M.tla\nParsing file Extra.tla\n***Parse Error***\nWas expecting "==== or more Module body"\n'
            'Encountered "2" at line 3, column 8 and token "="\n\nResidual stack trace follows:\nModule definition',
            r'module Extra:3:8: Was expecting "==== or more Module body" Encountered "2"',
        ),
        (
            'Parsing file M.tla\nLexical error at line 3, column 11.  Encountered: "\\n" (10), after : ""\n\nFatal',
            r"M\.tla:3:11: Lexical error at line 3, column 11\.",
        ),
        (
            "*** Errors: 1\n\nline 3, col 10 to line 3, col 10 of module M\n\nMultiply-defined symbol 'x': this "
            "declaration conflicts \nwith the one at line 4, col 1 to line 4, col 6 of module Extra.\n\n\n"
            "*** Warnings: 1\n\nline 5, col 1 to line 5, col 6 of module M\n\nMultiple declarations.\n",
            r"M\.tla:3:10: Multiply-defined symbol 'x': this declaration conflicts with the one at line 4.*Extra\.$",
        ),
        ("Cannot find source file for module Other imported in module M.\n", r"M\.tla: there is no module Other"),
        ("File name 'M' does not match the name 'N' of the top level module it contains.\n", r"M\.tla: .* is named N"),
        ("Something new went wrong.\n", r"M\.tla: the module can't be parsed:\n(.|\n)*Something new"),
    ],
)
def test_a_module_that_is_not_tla_is_told_with_its_place(concluded, text, told):
    with pytest.raises(ParseFailed, match=told):
        concluded(text + FAILED_TO_PARSE, exit_code=150)


def test_a_value_from_python_that_the_parser_refuses_is_told_as_that(concluded):
    text = SYNTAX.replace("/M.tla", "/PytlaValues.tla")
    with pytest.raises(ConfigurationFailed, match="TLC can't read a value given from Python"):
        concluded(text + FAILED_TO_PARSE, exit_code=150)


@pytest.mark.parametrize(
    ("code", "text", "told"),
    [
        (
            2222,
            "The constant parameter N is not assigned a value by the configuration file.",
            r"M\.tla:3:10: the constant N has no value: add `CONSTANT N = …` to .*M\.cfg",
        ),
        (
            2229,
            "The invariant Nope specified in the configuration file\nis not defined in the specification.",
            r"M\.cfg:5:3: the invariant Nope isn't defined in M",
        ),
        (2228, "The operator Init requires no arguments.", r"M\.cfg:1:6: The operator Init requires no arguments\."),
        (
            2231,
            "The configuration file did not specify the initial state predicate.",
            r"M\.cfg: The configuration file",
        ),
        (
            2281,
            "The configuration file substitutes constant N with non-constant Pytla_N.",
            r"M\.tla: TLC can't evaluate the value given for the constant N",
        ),
    ],
)
def test_a_configuration_that_tlc_refuses_is_told_with_its_place(concluded, code, text, told):
    with pytest.raises(ConfigurationFailed, match=told):
        concluded(message(code, text, 1), exit_code=151)


def test_a_configuration_with_a_syntax_error_is_told_with_its_line(concluded):
    inner = message(
        5006, "TLC found an error in the configuration file at line 4\nIt was expecting = or <-, but did not find it."
    )
    text = "TLC threw an unexpected exception.\nThe exception was a tlc2.tool.ConfigFileException\n: " + inner.rstrip()
    with pytest.raises(ConfigurationFailed, match=r"M\.cfg:4: It was expecting = or <-"):
        concluded(message(1000, text, 1), exit_code=255)


def test_a_false_assumption_is_told_with_its_text(concluded):
    text = message(2104, "Assumption line 5, col 8 to line 6, col 3 of module M is false.", 1)
    with pytest.raises(AssumptionFailed, match=r"M\.tla:5:8: this assumption is false under M\.cfg: N > 5\."):
        concluded(text, exit_code=10)


THROWN = (
    "TLC threw an unexpected exception.\nThis was probably caused by an error in the spec or model.\n"
    "See the User Output or TLC Console for clues to what happened.\nThe exception was a "
)


@pytest.mark.parametrize(
    ("text", "told", "length"),
    [
        (
            message(1000, f"{THROWN}java.lang.RuntimeException\n: Attempted to apply tuple\n<<1>>\nto integer 2.", 1)
            + STATES
            + message(2147, "Fingerprint Stack Trace:\n0) line 8, col 9 to line 8, col 12 of module M", 1),
            r"M\.tla:8:9: Attempted to apply tuple <<1>> to integer 2\. It came up after the 2 states",
            2,
        ),
        (
            message(1000, f"{THROWN}tlc2.tool.EvalException\n: {ASSERTED}", 1) + message(2103, NESTED, 1),
            r"M\.tla:7:12: Assert evaluated to FALSE\.$",
            None,
        ),
        (
            message(2111, "Evaluating invariant Low failed.\nAttempted to compare.", 1) + STATES,
            r"M\.tla:9:1: Evaluating invariant Low failed\. Attempted to compare\.",
            2,
        ),
        (
            message(2105, "Evaluating assumption line 5, col 8 to line 6, col 3 of module M failed.\n"
                    + message(2266, "The second argument of > should be an integer").rstrip(), 1),
            r"M\.tla:5:8: the assumption can't be evaluated: The second argument of > should be an integer\.",
            None,
        ),
        (
            message(2102, INITIALLY, 1),
            r"M\.tla:7:1: the initial predicate leaves y without a value\.",
            None,
        ),
        (
            message(2109, "Successor state is not completely specified by the next-state action.", 1) + STATES,
            r"M\.tla:8:9: Successor state is not completely specified",
            2,
        ),
        (
            message(1000, f"{THROWN}java.lang.StackOverflowError\njava.lang.StackOverflowError\n\tat tlc2.X", 1),
            r"M\.tla: a recursion is too deep",
            None,
        ),
    ],
)  # fmt: skip
def test_what_can_t_be_evaluated_is_told_with_its_place(concluded, text, told, length):
    with pytest.raises(EvaluationFailed, match=told) as caught:
        concluded(text + COUNTS, exit_code=75)
    assert (caught.value.trace and len(caught.value.trace)) == length


def test_a_set_beyond_tlc_s_bound_is_a_state_space_too_large(concluded):
    text = (
        f"{THROWN}java.lang.RuntimeException\n: util.WrongInvocationException: "
        "Attempted to construct a set with too many elements (>1000000)."
    )
    with pytest.raises(StateSpaceTooLarge, match=r"M\.tla: Attempted to construct a set with too many elements"):
        concluded(message(1000, text, 1), exit_code=75)


def test_more_states_than_allowed_are_refused_even_if_all_were_found(concluded):
    with pytest.raises(StateSpaceTooLarge, match="more than 2 distinct states") as caught:
        concluded(SUCCESS + COUNTS, max_distinct=2)
    assert caught.value.progress.distinct == 3
    assert concluded(SUCCESS + COUNTS, max_distinct=3).passed


def test_an_exception_within_tlc_is_a_crash(concluded):
    text = message(1000, f"{THROWN}java.lang.NullPointerException\njava.lang.NullPointerException\n\tat tlc2.Y", 1)
    with pytest.raises(TlcCrashed, match=r"exit code 255(.|\n)*NullPointerException") as caught:
        concluded(text, exit_code=255)
    assert "NullPointerException" in caught.value.output


def test_arguments_that_another_version_refuses_are_no_fault_of_the_model(concluded):
    with pytest.raises(TlcCrashed, match="Unrecognized option"):
        concluded(message(1102, "Error: Unrecognized option: -new", 1), exit_code=1)


@pytest.mark.parametrize(
    ("text", "arguments", "error", "told"),
    [
        (
            "Terminating due to java.lang.OutOfMemoryError: Java heap space\n",
            {"exit_code": 3},
            OutOfMemory,
            "larger heap",
        ),
        (message(1001, "Java ran out of memory.", 1), {"exit_code": 153}, OutOfMemory, "larger heap"),
        ("", {"exit_code": -9}, OutOfMemory, "killed from outside"),
        ("Error occurred during initialization of VM\nToo small maximum heap\n", {"exit_code": 1}, OutOfMemory, "heap"),
        ("", {"standard_error": "java.lang.UnsupportedClassVersionError: tlc2/TLC"}, MissingJava, "too old"),
        ("", {"standard_error": "Error: Could not find or load main class tlc2.TLC"}, MissingJar, "no TLC in it"),
    ],
)
def test_what_keeps_java_from_running_is_told(concluded, text, arguments, error, told):
    with pytest.raises(error, match=told):
        concluded(text, **{"exit_code": 1, **arguments})


def test_what_a_module_prints_is_no_error(concluded):
    printed = '"java.lang.OutOfMemoryError"  TRUE\n"Error: Could not find or load main class"\n'
    assert concluded(printed + SUCCESS + COUNTS).passed


def test_a_temporal_property_that_passes_under_symmetry_has_shown_nothing(concluded):
    warning = message(2279, "Declaring symmetry during liveness checking is dangerous.", 3)
    with pytest.raises(ConfigurationFailed, match="check it without SYMMETRY"):
        concluded(warning + SUCCESS + COUNTS)


def test_other_warnings_are_part_of_the_result(concluded):
    assert concluded(message(2284, "Constraints are dangerous.", 3) + SUCCESS + COUNTS).warnings == (
        "Constraints are dangerous.",
    )


def test_the_last_coverage_counts_and_names_the_actions(concluded):
    early = message(2201, "The coverage statistics") + message(
        2772, "<Up line 8, col 1 to line 8, col 5 of module M>: 1:1"
    )
    late = message(2201, "The coverage statistics") + "".join(
        (
            message(2773, "<Init line 5, col 1 to line 5, col 4 of module M>: 1:1"),
            message(2772, f"{UP}: 2:3"),
            message(2221, "  line 8, col 10 to line 8, col 14 of module M: 3"),
            message(2772, "<Next line 9, col 1 to line 9, col 4 of module M (9 46 9 56)>: 0:3"),
        )
    )
    assert concluded(early + late + SUCCESS + COUNTS).coverage == {
        "Init": Coverage(1, 1),
        "Up": Coverage(2, 3),
        "Next": Coverage(0, 3),
    }


def test_progress_is_told_by_phase_and_report():
    told = []
    text = (
        message(2187, "Running breadth-first search Model-Checking")
        + message(2189, "Computing initial states...")
        + message(2190, "Finished computing initial states: 1 distinct state generated")
        + message(2192, "Checking temporal properties for the complete state space with 3 total distinct states")
        + message(2267, "Finished checking temporal properties in 00s")
        + COUNTS
    )
    listen(Output(time.monotonic()), text.splitlines(), told.append)
    phases = [progress.phase for progress in told]
    assert phases[:4] == ["initial states", "searching", "temporal properties", "searching"]
    assert (told[-1].distinct, told[-1].generated, told[-1].depth) == (3, 4, 2)


def test_of_much_that_a_module_prints_the_start_and_the_end_are_kept():
    output = Output(time.monotonic())
    listen(output, (f"<<{number}>>" for number in range(100 * KEPT_LINES)), None)
    assert output.lines[0] == "<<0>>"
    assert output.lines[-1] == f"<<{100 * KEPT_LINES - 1}>>"
    assert len(output.lines) <= 3 * KEPT_LINES
