"""The wrapper on the real TLC; each test that starts it is marked, and takes a second or two."""

from __future__ import annotations

import contextlib
import os
import select
import tempfile
import textwrap
from pathlib import Path

import pytest
from streamproof.reference.core.errors import MissingTool
from streamproof.specs.java import find_java
from streamproof.specs.pytla import (
    ConfigurationFailed,
    Edge,
    Function,
    Location,
    Model,
    ModelValue,
    ParseFailed,
    StateSpaceTooLarge,
    TimedOut,
    TlcCrashed,
    Tools,
    check,
    find_jar,
    simulate,
    state_graph,
)
from streamproof.specs.pytla.tlc.process import JavaProcess, TimeUp

COUNTER = """\
---- MODULE Counter ----
EXTENDS Integers, TLC, Extra
CONSTANTS Last, Label
VARIABLES n, seen
Init == n = 0 /\\ seen = Label
Up == n < Last /\\ n' = n + 1 /\\ seen' = Wrap(seen, n)
Never == n = -1 /\\ UNCHANGED <<n, seen>>
Finished == n = Last /\\ PrintT("done @!@!@") /\\ UNCHANGED <<n, seen>>
Next == Up \\/ Never \\/ Finished
Spec == Init /\\ [][Next]_<<n, seen>>
FairSpec == Spec /\\ WF_<<n, seen>>(Next)
Low == n < 3
Steady == [][n' # 2]_<<n, seen>>
Arrives == <>(n = 7)
Symmetric == {}
====
"""
EXTRA = "---- MODULE Extra ----\nEXTENDS Integers\nWrap(value, by) == IF by < 2 THEN value ELSE <<value, by>>\n====\n"
CONFIGURATION = 'SPECIFICATION Spec\nCONSTANTS\n    Last = 4\n    Label = "a"\nINVARIANT Low\n'
ENDLESS = """\
---- MODULE Endless ----
EXTENDS Integers
VARIABLE n
Init == n = 0
Next == \\E by \\in 1..10 : n' = (n * 7 + by) % 1000000000
====
"""


@pytest.fixture(scope="module")
def tools():
    try:
        java = find_java(11).executable
    except MissingTool:
        pytest.skip("no Java")
    return Tools(java, find_jar(), ("-XX:TieredStopAtLevel=1",))


@pytest.fixture(autouse=True)
def runs(monkeypatch, tmp_path):
    """The folder that private folders are made in; whatever a test does, it is empty at the end."""
    folder = tmp_path / "runs"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.iterdir()) == []


def model(folder, text, configuration="INIT Init\nNEXT Next\n", **changes):
    """A model of a module named as its first line says."""
    text = textwrap.dedent(text)
    name = text.split()[2]
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.tla").write_text(text)
    (folder / "Extra.tla").write_text(EXTRA)
    (folder / f"{name}.cfg").write_text(configuration)
    return Model(folder / f"{name}.tla", folder / f"{name}.cfg", **changes)


def counter(folder, **changes):
    return model(folder, COUNTER, CONFIGURATION, **changes)


def endless(folder):
    return model(folder, ENDLESS, deadlock=False)


def one_step(folder, next_, *, extends="Integers", more="", **changes):
    text = f"---- MODULE Step ----\nEXTENDS {extends}\nVARIABLE n\nInit == n = 0\nNext == {next_}\n{more}\n====\n"
    return model(folder, text, **changes)


def test_a_model_that_holds_passes_with_counts_coverage_and_progress(tools, tmp_path):
    reported = []
    result = check(counter(tmp_path, invariants=()), tools, coverage=True, progress=reported.append)
    assert (result.outcome, result.passed, result.violated, result.trace) == ("passed", True, None, None)
    assert (result.distinct, result.generated, result.left_on_queue, result.depth) == (5, 6, 0, 5)
    assert result.coverage["Up"] == (4, 4)
    assert result.coverage["Never"] == (0, 0)
    assert result.seconds > 0
    assert [progress.phase for progress in reported][:2] == ["initial states", "searching"]
    assert reported[-1].distinct == 5


def test_a_violated_invariant_comes_with_values_actions_and_positions(tools, tmp_path):
    label = (Function({ModelValue("m"): frozenset({-1, 2})}), Function({"text": 'say "\\*hi*\\"\n', "on": True}), ())
    given = counter(tmp_path, constants={"Last": 9, "Label": label})
    result = check(given, tools, workers="auto")
    assert (result.outcome, result.violated) == ("invariant", "Low")
    assert [step.action for step in result.trace] == ["Initial", "Up", "Up", "Up"]
    assert result.trace.steps[1].state == {"n": 1, "seen": label}
    assert result.trace.steps[3].state == {"n": 3, "seen": (label, 2)}
    assert result.trace.steps[1].location == Location("Counter", 6, 7, 6, 53)
    assert given.module.read_text() == COUNTER
    assert given.configuration.read_text() == CONFIGURATION


def test_a_module_that_isn_t_there_is_reported_where_it_is_named(tools, tmp_path):
    with pytest.raises(ParseFailed, match=r"Step\.tla:2:19: there is no module Nowhere"):
        check(one_step(tmp_path, "n' = n", extends="Integers, Nowhere"), tools)


def test_a_property_that_isn_t_defined_is_reported_with_its_line(tools, tmp_path):
    given = model(tmp_path, COUNTER, CONFIGURATION + "PROPERTIES\n  Stedy\n")
    with pytest.raises(ConfigurationFailed, match=r"Counter\.cfg:7:3: the property Stedy .*did you mean Steady"):
        check(given, tools)


def test_too_many_states_stop_the_run(tools, tmp_path):
    with pytest.raises(StateSpaceTooLarge, match="more than 100 distinct states") as caught:
        check(endless(tmp_path), tools, max_distinct=100)
    assert caught.value.progress.distinct >= 100


def test_a_model_without_an_initial_state_shows_nothing(tools, tmp_path):
    given = one_step(tmp_path, "n' = n", more="Nothing == n = 0 /\\ n = 1")
    given.configuration.write_text("INIT Nothing\nNEXT Next\n")
    with pytest.raises(ConfigurationFailed, match=r"Step\.tla:6:1: no state satisfies the initial predicate"):
        check(given, tools)
    with pytest.raises(ConfigurationFailed, match=r"Step\.tla:6:1: no state satisfies the initial predicate"):
        simulate(given, tools, behaviours=2)


def test_a_simulation_walks_the_behaviours_asked_for(tools, tmp_path):
    simulation = simulate(counter(tmp_path, invariants=(), constants={"Label": 'a "b"'}), tools, behaviours=3, depth=4)
    assert simulation.result.passed
    assert len(simulation.behaviours) == 3
    for behaviour in simulation.behaviours:
        assert [step.state["n"] for step in behaviour] == [0, 1, 2, 3]
        assert [step.action for step in behaviour] == ["Initial", None, None, None]
        assert behaviour.steps[0].state["seen"] == 'a "b"'
    assert simulation.result.depth == 4


def test_a_simulation_that_meets_a_violation_has_its_trace(tools, tmp_path):
    simulation = simulate(counter(tmp_path), tools, behaviours=3)
    assert (simulation.result.outcome, simulation.result.violated) == ("invariant", "Low")
    assert [step.action for step in simulation.result.trace] == ["Initial", "Up", "Up", "Up"]


def test_a_state_graph_is_whole_and_has_its_behaviours(tools, tmp_path):
    configuration = CONFIGURATION + "SYMMETRY Symmetric\nPROPERTY Steady\n"
    graph = state_graph(model(tmp_path, COUNTER, configuration, constants={"Label": 'q"\\\n'}), tools)
    assert [state["n"] for state in graph.states] == [0, 1, 2, 3, 4]
    assert graph.states[0]["seen"] == 'q"\\\n'
    assert graph.edges == [Edge(state, "Up", state + 1) for state in range(4)]
    assert graph.count_behaviours() == len(list(graph.behaviours())) == len(graph.covering()) == 1


def test_a_module_of_the_user_s_is_never_written(tools, tmp_path):
    given = counter(tmp_path, constants={"Last": -1})
    (tmp_path / "PytlaModel.tla").write_text("the user's")
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\ncat PytlaModel.tla\n")
    java.chmod(0o755)
    with pytest.raises(TlcCrashed, match="EXTENDS Counter"):
        check(given, Tools(java, tools.jar))
    assert (tmp_path / "PytlaModel.tla").read_text() == "the user's"
    assert given.module.read_text() == COUNTER


def processes_of(folder):
    """A descriptor for each process that was started for a run in `folder`; it is readable when that has ended."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and f"-Djava.io.tmpdir={folder}" in (entry / "cmdline").read_text():
                found.append(os.pidfd_open(int(entry.name)))
    return found


def assert_ended(descriptors):
    assert descriptors
    for descriptor in descriptors:
        ended = select.poll()  # unlike select.select, it takes descriptors beyond 1,023
        ended.register(descriptor, select.POLLIN)
        assert ended.poll(300_000), "a process is left"
        os.close(descriptor)


needs_pidfd = pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="a process is watched by its pidfd, on Linux")


@needs_pidfd
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_a_cancelled_run_leaves_neither_process_nor_folder(tools, tmp_path, runs, error):
    seen = []

    def cancel(progress):
        if progress.phase == "searching":
            seen.extend(processes_of(runs))
            raise error

    with pytest.raises(error):
        check(endless(tmp_path), tools, progress=cancel)
    assert_ended(seen)
    assert list(runs.iterdir()) == []


@needs_pidfd
def test_a_run_whose_time_is_up_leaves_no_process_and_reports_how_far_it_was(tools, tmp_path, runs, monkeypatch):
    seen = []
    lines = JavaProcess.lines

    def watched(self, deadline):
        try:
            yield from lines(self, deadline)
        except TimeUp:
            seen.extend(processes_of(runs))
            raise

    monkeypatch.setattr(JavaProcess, "lines", watched)
    with pytest.raises(TimedOut, match=r"Endless\.cfg: stopped after 1\.5 seconds") as caught:
        check(endless(tmp_path), tools, timeout=1.5)
    assert_ended(seen)
    assert caught.value.progress.phase in ("parsing", "initial states", "searching")
