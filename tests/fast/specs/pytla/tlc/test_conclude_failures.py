"""The error of a run that gave no answer, of output that TLC 2.15 really printed."""

from __future__ import annotations

import pytest
from streamproof.specs.pytla.errors import (
    AssumptionFailed,
    ConfigurationFailed,
    EvaluationFailed,
    MissingJar,
    MissingJava,
    OutOfMemory,
    ParseFailed,
    StateSpaceTooLarge,
    TlcCrashed,
)
from tlc_output import ASSERTED, COUNTS, INITIALLY, NESTED, STATES, SUCCESS, message

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
    ("text", "reported"),
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
def test_a_module_that_is_not_tla_is_reported_with_its_position(concluded, text, reported):
    with pytest.raises(ParseFailed, match=reported):
        concluded(text + FAILED_TO_PARSE, exit_code=150)


def test_a_value_from_python_that_the_parser_refuses_is_reported_as_that(concluded):
    text = SYNTAX.replace("/M.tla", "/PytlaValues.tla")
    with pytest.raises(ConfigurationFailed, match="TLC can't read a value given from Python"):
        concluded(text + FAILED_TO_PARSE, exit_code=150)


@pytest.mark.parametrize(
    ("code", "text", "reported"),
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
def test_a_configuration_that_tlc_refuses_is_reported_with_its_position(concluded, code, text, reported):
    with pytest.raises(ConfigurationFailed, match=reported):
        concluded(message(code, text, 1), exit_code=151)


def test_a_configuration_with_a_syntax_error_is_reported_with_its_line(concluded):
    inner = message(
        5006, "TLC found an error in the configuration file at line 4\nIt was expecting = or <-, but did not find it."
    )
    text = "TLC threw an unexpected exception.\nThe exception was a tlc2.tool.ConfigFileException\n: " + inner.rstrip()
    with pytest.raises(ConfigurationFailed, match=r"M\.cfg:4: It was expecting = or <-"):
        concluded(message(1000, text, 1), exit_code=255)


def test_a_false_assumption_is_reported_with_its_text(concluded):
    text = message(2104, "Assumption line 5, col 8 to line 6, col 3 of module M is false.", 1)
    with pytest.raises(AssumptionFailed, match=r"M\.tla:5:8: this assumption is false under M\.cfg: N > 5\."):
        concluded(text, exit_code=10)


THROWN = (
    "TLC threw an unexpected exception.\nThis was probably caused by an error in the spec or model.\n"
    "See the User Output or TLC Console for clues to what happened.\nThe exception was a "
)


@pytest.mark.parametrize(
    ("text", "reported", "length"),
    [
        (
            message(1000, f"{THROWN}java.lang.RuntimeException\n: Attempted to apply tuple\n<<1>>\nto integer 2.", 1)
            + STATES
            + message(2147, "Fingerprint Stack Trace:\n0) line 8, col 9 to line 8, col 12 of module M", 1),
            r"M\.tla:8:9: Attempted to apply tuple <<1>> to integer 2\. It happens after the 2 states",
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
def test_what_can_t_be_evaluated_is_reported_with_its_position(concluded, text, reported, length):
    with pytest.raises(EvaluationFailed, match=reported) as caught:
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
    ("text", "arguments", "error", "reported"),
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
        (
            "",
            {"standard_error": "Error: Could not find or load main class tlc2.TLC"},
            MissingJar,
            "doesn't contain TLC",
        ),
    ],
)
def test_what_keeps_java_from_running_is_reported(concluded, text, arguments, error, reported):
    with pytest.raises(error, match=reported):
        concluded(text, **{"exit_code": 1, **arguments})


def test_what_a_module_prints_is_no_error(concluded):
    printed = '"java.lang.OutOfMemoryError"  TRUE\n"Error: Could not find or load main class"\n'
    assert concluded(printed + SUCCESS + COUNTS).passed
