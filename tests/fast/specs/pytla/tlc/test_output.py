"""What is kept of TLC's output while it runs."""

from __future__ import annotations

import time

from streamproof.specs.pytla.tlc.output import KEPT_LINES, Output, listen
from tlc_output import COUNTS, message


def test_progress_is_reported_by_phase_and_report():
    reported = []
    text = (
        message(2187, "Running breadth-first search Model-Checking")
        + message(2189, "Computing initial states...")
        + message(2190, "Finished computing initial states: 1 distinct state generated")
        + message(2192, "Checking temporal properties for the complete state space with 3 total distinct states")
        + message(2267, "Finished checking temporal properties in 00s")
        + COUNTS
    )
    listen(Output(time.monotonic()), text.splitlines(), reported.append)
    phases = [progress.phase for progress in reported]
    assert phases[:4] == ["initial states", "searching", "temporal properties", "searching"]
    assert (reported[-1].distinct, reported[-1].generated, reported[-1].depth) == (3, 4, 2)


def test_of_much_that_a_module_prints_the_start_and_the_end_are_kept():
    output = Output(time.monotonic())
    listen(output, (f"<<{number}>>" for number in range(100 * KEPT_LINES)), None)
    assert output.lines[0] == "<<0>>"
    assert output.lines[-1] == f"<<{100 * KEPT_LINES - 1}>>"
    assert len(output.lines) <= 3 * KEPT_LINES
