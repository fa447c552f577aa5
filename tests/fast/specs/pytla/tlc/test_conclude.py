"""The result of a run that passed or violated something, of output that TLC 2.15 really printed."""

from __future__ import annotations

import pytest
from streamproof.specs.pytla.errors import ConfigurationFailed, DeadlockReached, TlcCrashed
from streamproof.specs.pytla.results import ActionCounts, Location
from streamproof.specs.pytla.tlc.conclude import trace_of
from streamproof.specs.pytla.tlc.messages import MessageReader
from tlc_output import COUNTS, STATES, SUCCESS, UP, message


def test_a_run_without_errors_passes_with_its_counts(concluded):
    result = concluded(SUCCESS + COUNTS)
    assert result.passed
    assert result.violated is result.trace is None
    assert (result.generated, result.distinct, result.left_on_queue, result.depth) == (4, 3, 1, 2)


def test_counts_with_separators_are_read(concluded):
    text = "15,623 states generated (1,270 s/min), 6,875 distinct states found (1,270 ds/min), 0 states left on queue."
    result = concluded(SUCCESS + message(2200, f"Progress(11) at 2026-11-21 13:32:20: {text}"))
    assert (result.generated, result.distinct, result.depth) == (15623, 6875, 11)


@pytest.mark.parametrize(
    ("text", "exit_code", "reported"),
    [(COUNTS, 0, "exit code 0 and no answer"), (SUCCESS + COUNTS, 255, "exit code 255")],
)
def test_a_run_that_ends_without_saying_so_or_fails_has_no_result(concluded, text, exit_code, reported):
    with pytest.raises(TlcCrashed, match=reported):
        concluded(text, exit_code=exit_code)


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


def test_an_action_property_reported_by_its_position_is_named(concluded):
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
        "Init": ActionCounts(1, 1),
        "Up": ActionCounts(2, 3),
        "Next": ActionCounts(0, 3),
    }
