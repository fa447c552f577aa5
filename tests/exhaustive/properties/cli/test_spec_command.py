"""`streamproof spec …`, as a user meets it. What runs TLC is marked `tlc` and runs it on modules of a few states."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple

import pytest
from commands import Command, caller
from streamproof.properties.cli.spec.commands import check as spec_check
from streamproof.properties.models import races, spec_replay, spec_replay_on_kafka
from streamproof.reference.core.errors import MissingTool
from streamproof.reference.core.history import History, read_history
from streamproof.reference.core.records import Record
from streamproof.specs import catalogue, checking, pytla, replay
from streamproof.specs.pytla import (
    Edge,
    ModelValue,
    Result,
    Simulation,
    StateGraph,
    Step,
    TlaValue,
    Tools,
    Trace,
)
from streamproof.specs.pytla import Model as TlaModel
from streamproof.specs.replay import Disagreement, ReplayResult

CLOCK = """---- MODULE Clock ----
EXTENDS Naturals
CONSTANTS Hours, Broken
VARIABLE hour
Init == hour = 0
(* The hour goes on. *)
Tick == hour < Hours /\\ hour' = hour + 1
Turn == hour = Hours /\\ ~Broken /\\ hour' = 0
Next == Tick \\/ Turn
Spec == Init /\\ [][Next]_hour
(* It is never noon. *)
BeforeNoon == hour < 12
====
"""
CONFIGURATION = "SPECIFICATION Spec\nCONSTANTS Hours = 3\n  Broken = FALSE\nINVARIANT BeforeNoon\n"
EXPECTED = {
    "path": "Clock.cfg",
    "says": "Hours go round.",
    "mode": "exhaustive search",
    "size": "small",
    "result": "success",
    "distinctStates": 4,
    "totalStates": 5,
    "stateDepth": 4,
    "runtime": "00:00:01",
}
LATE = {
    **EXPECTED,
    "path": "Clock_late.cfg",
    "says": "It gets noon.",
    "result": "safety failure",
    "property": "BeforeNoon",
    "traceLength": 13,
    "distinctStates": 13,
    "totalStates": 13,
    "stateDepth": 13,
}
STOPPED = {**LATE, "path": "Clock_stopped.cfg", "result": "deadlock failure", "traceLength": 4, "size": "large"}
NOON = Trace(
    (
        Step(1, "Initial", {"hour": 10}, None),
        Step(2, "Tick", {"hour": 11}, None),
        Step(3, "Tick", {"hour": 12}, None),
    )
)


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(monkeypatch, capsys, "spec")


@pytest.fixture
def clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A catalogue of one module, in a folder of its own."""
    (tmp_path / "Clock.tla").write_text(CLOCK)
    (tmp_path / "Clock.cfg").write_text(CONFIGURATION)
    (tmp_path / "Clock_late.cfg").write_text(CONFIGURATION.replace("Hours = 3", "Hours = 24"))
    (tmp_path / "Clock_stopped.cfg").write_text(CONFIGURATION.replace("Broken = FALSE", "Broken = TRUE"))
    expect(tmp_path, EXPECTED, LATE, {name: value for name, value in STOPPED.items() if name != "property"})
    monkeypatch.setattr(catalogue.catalogue, "__defaults__", (tmp_path / "manifest.json",))
    monkeypatch.setattr(catalogue.find_model, "__defaults__", (tmp_path / "manifest.json",))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def expect(folder: Path, *models: dict[str, Any]) -> None:
    entry = {"module": "Clock.tla", "title": "A clock", "source": "Lamport", "models": list(models)}
    (folder / "manifest.json").write_text(json.dumps({"specifications": [entry]}))


def result(outcome: Any = "passed", violated: str | None = None, trace: Trace | None = None, **counts: int) -> Result:
    found = {"distinct": 4, "generated": 5, "left_on_queue": 0, "depth": 4, **counts}
    return Result(outcome, violated, trace, seconds=0.5, **found)


VIOLATED = result("invariant", "BeforeNoon", NOON)
DEADLOCKED = pytla.DeadlockReached("stuck", result("deadlock", None, NOON))


class Asked(NamedTuple):
    """What TLC was asked."""

    model: TlaModel
    options: dict[str, Any]


@pytest.fixture
def tlc(clock: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Asked]]:
    """Makes TLC answer something, an exception or a result for each model in turn; gives what it was asked."""

    def answers(*given: Result | Exception) -> list[Asked]:
        waiting, asked = list(given), []

        def check(model: TlaModel, tools: Tools, **options: Any) -> Result:
            asked.append(Asked(model, options))
            answer = waiting.pop(0)
            if isinstance(answer, BaseException):
                raise answer
            return answer

        monkeypatch.setattr(pytla, "check", check)
        monkeypatch.setattr(spec_check, "available_cores", lambda: 1)
        monkeypatch.setattr(checking, "find_tools", lambda: Tools(Path("java"), Path("jar")))
        return asked

    return answers


def test_the_list_says_what_is_expected_of_each_model(clock: Path, command: Command) -> None:
    said = command("list")
    assert said.code == 0
    for text in ("Clock_late", "It gets noon.", "BeforeNoon violated in 13 states", "a deadlock in 4 states", "large"):
        assert text in said.out


def test_all_small_models_are_checked_and_nothing_else(command: Command, tlc: Any) -> None:
    asked = tlc(result(), VIOLATED)
    command("check")
    assert [one.model.configuration.name for one in asked] == ["Clock.cfg", "Clock_late.cfg"]
    assert {one.options["workers"] for one in asked} == {1}


def test_a_model_is_checked_whatever_its_size(command: Command, tlc: Any) -> None:
    asked = tlc(DEADLOCKED)
    command("check", "Clock_stopped")
    assert [one.model.configuration.name for one in asked] == ["Clock_stopped.cfg"]


def test_what_is_as_expected_exits_0_in_one_line_a_model(clock: Path, command: Command, tlc: Any) -> None:
    expect(clock, EXPECTED, {**LATE, "traceLength": 3, "distinctStates": 4, "totalStates": 5, "stateDepth": 4})
    tlc(result(), VIOLATED)
    said = command("check")
    assert said.code == 0
    first, second, last = said.out.splitlines()
    assert first.startswith("conforms     Clock      passes; 4 distinct states of 5 generated, depth 4; 0.5 s")
    assert second.startswith("conforms     Clock_late violates BeforeNoon in 3 states, as it should;")
    assert last.startswith("2 models: 2 conform; ")


def test_an_expected_counterexample_is_printed_step_by_step_if_asked(clock: Path, command: Command, tlc: Any) -> None:
    expect(clock, {**LATE, "traceLength": 3, "distinctStates": 4, "totalStates": 5, "stateDepth": 4})
    tlc(VIOLATED)
    said = command("check", "--trace")
    assert said.code == 0
    line = CLOCK[: CLOCK.index("BeforeNoon")].count("\n") + 1
    assert f"violated: BeforeNoon (Clock.tla, line {line})" in said.out
    assert "It is never noon." in said.out
    assert " 1  initial state\n        hour = 10\n   2  Tick\n        hour: 10 → 11\n   3  Tick" in said.out


AT_NOON = {"distinct": 13, "generated": 13, "depth": 13}


@pytest.mark.parametrize(
    ("model", "found", "text"),
    [
        ("Clock", VIOLATED, "the result is safety failure, but the manifest says success"),
        (
            "Clock",
            result("temporal property", "Ticks", NOON),
            "the result is liveness failure, but the manifest says success",
        ),
        ("Clock", result(distinct=5), "the number of distinct states is 5, but the manifest says 4"),
        ("Clock", result(generated=1500), "the number of generated states is 1,500, but the manifest says 5"),
        ("Clock", result(depth=3), "the depth is 3, but the manifest says 4"),
        ("Clock_late", result(), "the result is success, but the manifest says safety failure"),
        (
            "Clock_late",
            result("invariant", "Types", NOON, **AT_NOON),
            "the violated property is Types, but the manifest says BeforeNoon",
        ),
        (
            "Clock_late",
            result("invariant", "BeforeNoon", NOON, **AT_NOON),
            "the counterexample's length is 3, but the manifest says 13",
        ),
    ],
)
def test_what_is_not_as_expected_is_a_violation(
    command: Command, tlc: Any, model: str, found: Result, text: str
) -> None:
    tlc(found)
    said = command("check", model)
    assert said.code == 1
    assert text in said.out
    assert said.out.startswith("violated")


def test_counts_are_not_compared_with_more_workers(command: Command, tlc: Any) -> None:
    asked = tlc(result(distinct=99, generated=99), VIOLATED)
    said = command("check", "--workers", 4)
    assert said.code == 0
    assert asked[0].options["workers"] == 4
    assert "Counts aren't compared with 4 workers." in said.out


@pytest.mark.parametrize("jobs", [2, 9])
def test_models_checked_at_a_time_are_reported_in_their_order(
    command: Command, monkeypatch: pytest.MonkeyPatch, tlc: Any, jobs: int
) -> None:
    tlc()
    late_is_done = Event()

    def check(model: TlaModel, tools: Tools, **options: Any) -> Result:
        if model.configuration.stem == "Clock_late":
            late_is_done.set()
            return VIOLATED
        assert late_is_done.wait(60), "the second isn't checked before the first is done"
        return result()

    monkeypatch.setattr(pytla, "check", check)
    said = command("check", "--jobs", jobs)
    assert [line.split()[1] for line in said.out.splitlines() if line.startswith(("conf", "viol"))] == [
        "Clock",
        "Clock_late",
    ]


def test_an_error_in_one_of_many_ends_the_check(command: Command, monkeypatch: pytest.MonkeyPatch, tlc: Any) -> None:
    tlc()

    def check(model: TlaModel, tools: Tools, **options: Any) -> Result:
        raise pytla.ParseFailed(f"wrong in {model.configuration.stem}")

    monkeypatch.setattr(pytla, "check", check)
    said = command("check", "--jobs", 2)
    assert (said.code, said.out, said.err) == (3, "", "error: wrong in Clock\n")


def test_java_compiles_less_for_small_models_alone(
    clock: Path, command: Command, monkeypatch: pytest.MonkeyPatch, tlc: Any
) -> None:
    options = []
    tlc()

    def check(model: TlaModel, tools: Tools, **given: Any) -> Result:
        options.append(tools.options)
        return result()

    monkeypatch.setattr(pytla, "check", check)
    command("check", "Clock")
    command("check", "--size", "all", "--jobs", 1)
    command("check", clock / "Clock.tla")
    assert options == [checking.QUICK, *(checking.QUICK, checking.QUICK, ()), ()]


def test_with_another_constant_only_the_outcome_is_reported(command: Command, tlc: Any) -> None:
    asked = tlc(result(distinct=99), VIOLATED)
    assert command("check", "Clock", "--constant", "Hours=9", "--constant", 'Broken = {a, <<1, "b">>}').code == 0
    assert asked[0].model.constants == {"Hours": 9, "Broken": frozenset({ModelValue("a"), (1, "b")})}
    said = command("check", "Clock_late", "--constant", "Hours=9")
    assert said.code == 1
    assert "as it should" not in said.out
    assert "hour: 11 → 12" in said.out


def test_a_check_that_runs_out_of_time_is_inconclusive(command: Command, tlc: Any) -> None:
    asked = tlc(pytla.TimedOut("after 1 s: 17 states"), VIOLATED)
    said = command("check", "--timeout", 1, "--workers", 2)
    assert said.code == 2
    assert said.out.startswith("inconclusive Clock      after 1 s: 17 states")
    assert "1 conform, 1 inconclusive" in said.out
    assert asked[0].options["timeout"] == 1


@pytest.mark.parametrize(
    "failure",
    [
        pytla.ParseFailed("was expecting an expression", file=Path("Clock.tla"), line=4, column=7),
        pytla.ConfigurationFailed("the constant Hour isn't in the module", file=Path("Clock.cfg"), line=2),
        pytla.OutOfMemory("Java had too little memory"),
        pytla.MissingJar("tla2tools.jar isn't on this machine"),
    ],
)
def test_what_keeps_tlc_from_an_answer_is_one_message(command: Command, tlc: Any, failure: Exception) -> None:
    tlc(failure)
    said = command("check", "Clock")
    assert (said.code, said.out, said.err) == (3, "", f"error: {failure}\n")


def test_results_are_written_as_json(clock: Path, command: Command, tlc: Any) -> None:
    tlc(result(distinct=5), VIOLATED)
    command("check", "--json", "found.json")
    first, second = json.loads((clock / "found.json").read_text())
    assert first["verdict"] == "violated"
    assert first["unexpected"] == ["the number of distinct states is 5, but the manifest says 4"]
    assert (first["distinctStates"], first["totalStates"], first["stateDepth"]) == (5, 5, 4)
    assert first["trace"] is None
    assert second["property"] == "BeforeNoon"
    assert second["trace"][2] == {"step": 3, "action": "Tick", "state": {"hour": "12"}}


def test_what_was_found_before_an_error_is_on_disk(clock: Path, command: Command, tlc: Any) -> None:
    tlc(result(), KeyboardInterrupt())
    assert command("check", "--json", "found.json").code == 3
    assert [one["model"] for one in json.loads((clock / "found.json").read_text())] == ["Clock"]


def test_a_counterexample_is_drawn(clock: Path, command: Command, tlc: Any) -> None:
    tlc(VIOLATED)
    said = command("check", "Clock_late", "--chart", "noon.svg")
    assert "noon.svg: the counterexample, 3 states" in said.err
    drawn = (clock / "noon.svg").read_text()
    assert "Clock_late: It gets noon." in drawn
    assert "hour: 11 → 12" in drawn


def test_nothing_is_drawn_without_a_counterexample(clock: Path, command: Command, tlc: Any) -> None:
    tlc(result())
    said = command("check", "Clock", "--chart", "noon.svg")
    assert said.code == 3
    assert "noon.svg: not written, because Clock has no counterexample" in said.err
    assert not (clock / "noon.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "Clok"], "no model is called 'Clok': did you mean Clock"),
        (["check", "--constant", "Hours=1"], "--constant is for a single model: name the model"),
        (["check", "--chart", "a.svg"], "--chart is for a single model: name the model"),
        (["check", "Clock", "--constant", "Hours"], "--constant Hours: not NAME=VALUE"),
        (["check", "Clock", "--constant", "Hours=<<1"], "--constant Hours=<<1: "),
        (["check", "Clock", "--config", "Clock.cfg"], "--config goes with a .tla file of your own"),
        (["check", "--config", "Clock.cfg"], "--config is for a .tla file of your own: name the file"),
        (["check", "Clock", "--no-deadlock"], "--no-deadlock goes with a .tla file of your own"),
        (["check", "Clock.cfg"], "name the .tla file, and name this configuration with --config"),
        (["check", "Nowhere.tla"], "Nowhere.tla: no such file"),
        (["check", "Clock.tla", "--config", "Nowhere.cfg"], "Nowhere.cfg: no such file: name one with --config"),
        (["replay", "Clock"], "the behaviours of Clock can't be replayed"),
        (["simulate", "Clock", "--behaviours", "0"], "--behaviours"),
    ],
)
def test_bad_input_is_one_message(command: Command, tlc: Any, arguments: list[str], message: str) -> None:
    tlc()
    said = command(*arguments)
    assert said.code == 3
    assert said.out == ""
    assert said.err.startswith("error: ")
    assert message in said.err


def test_a_module_of_the_user_needs_no_catalogue(clock: Path, command: Command, tlc: Any) -> None:
    (clock / "manifest.json").unlink()
    asked = tlc(result(distinct=99))
    said = command("check", clock / "Clock.tla", "--config", clock / "Clock_late.cfg", "--no-deadlock")
    assert said.code == 0
    assert "Clock_late passes; 99 distinct states" in said.out
    assert asked[0].model == TlaModel(clock / "Clock.tla", clock / "Clock_late.cfg", {}, deadlock=False)


def simulated(monkeypatch: pytest.MonkeyPatch, *found: Any) -> None:
    monkeypatch.setattr(checking, "find_tools", lambda: Tools(Path("java"), Path("jar")))

    def simulate(model: TlaModel, tools: Tools, **options: Any) -> Simulation:
        if isinstance(found[0], Exception):
            raise found[0]
        return Simulation(found[0], (NOON, NOON))

    monkeypatch.setattr(pytla, "simulate", simulate)


@pytest.mark.parametrize(
    ("model", "found", "code", "text"),
    [
        ("Clock", result(), 0, "conforms Clock: 2 behaviours of 3 to 3 states; no property is violated in them;"),
        ("Clock", VIOLATED, 1, "hour: 11 → 12"),
        ("Clock_late", VIOLATED, 0, "violates BeforeNoon, as it should"),
        ("Clock_late", result("invariant", "Types", NOON), 1, "violates Types"),
        ("Clock_late", result(), 2, "BeforeNoon violated in 13 states was expected"),
        (
            "Clock",
            DEADLOCKED,
            1,
            "deadlock: the last state has no next one",
        ),
        ("Clock_stopped", DEADLOCKED, 0, "as it should"),
    ],
)
def test_a_simulation_reports_what_it_walked(
    clock: Path, command: Command, monkeypatch: pytest.MonkeyPatch, model: str, found: Any, code: int, text: str
) -> None:
    simulated(monkeypatch, found)
    said = command("simulate", model)
    assert text in said.out
    assert said.code == code


GRAPH_OF_FOUR = StateGraph(
    states=[{"hour": 0}, {"hour": 1}, {"hour": 2}, {"hour": 3}],
    initial=(0,),
    edges=[Edge(0, "Tick", 1), Edge(0, "Leap", 2), Edge(1, "Tick", 2), Edge(2, "Tick", 3)],
)
GRAPH_OF_ALL_DAYS = StateGraph(
    states=[{"hour": 0}, {"hour": 1}], initial=(0,), edges=[Edge(0, "Tick", 1), Edge(1, "Turn", 0)]
)


def graph_of(monkeypatch: pytest.MonkeyPatch, graph: StateGraph) -> None:
    monkeypatch.setattr(checking, "find_tools", lambda: Tools(Path("java"), Path("jar")))
    monkeypatch.setattr(pytla, "state_graph", lambda model, tools, **options: graph)


def test_behaviours_are_counted(clock: Path, command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    graph_of(monkeypatch, GRAPH_OF_FOUR)
    counted = "Clock: 4 states, 4 edges, 2 behaviours from start to end"
    assert command("behaviours", "Clock", "--count").out == f"{counted}.\n"
    assert command("behaviours", "Clock").out == f"{counted}, 2 of them cover every edge.\n"


@pytest.mark.parametrize("cover", ["edges", "all", "random"])
def test_behaviours_are_written_one_a_line(
    clock: Path, command: Command, monkeypatch: pytest.MonkeyPatch, cover: str
) -> None:
    graph_of(monkeypatch, GRAPH_OF_FOUR)
    said = command("behaviours", "Clock", "--cover", cover, "--out", "behaviours")
    assert said.code == 0
    written = [json.loads(line) for line in (clock / "behaviours" / f"Clock-{cover}.jsonl").read_text().splitlines()]
    assert sorted([step["action"] for step in one] for one in written) == [
        ["Initial", "Leap", "Tick"],
        ["Initial", "Tick", "Tick", "Tick"],
    ]
    assert all(one[-1] == {"step": len(one), "action": "Tick", "state": {"hour": "3"}} for one in written)


def test_a_model_with_endless_behaviours_is_reported(
    clock: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph_of(monkeypatch, GRAPH_OF_ALL_DAYS)
    said = command("behaviours", "Clock", "--out", "behaviours")
    assert said.code == 3
    assert "the state graph has a cycle of 2 states" in said.err
    assert not (clock / "behaviours").exists()


@pytest.fixture
def replaying(clock: Path, monkeypatch: pytest.MonkeyPatch) -> list[Disagreement]:
    """Lets the behaviours of the clock be replayed, as histories of session windows; they disagree as chosen."""
    found: list[Disagreement] = []

    def answer(traces: Iterable[Trace], constants: Mapping[str, TlaValue], module: str) -> ReplayResult:
        assert (module, constants) == ("Clock", {"Hours": 3, "Broken": False})
        taken = list(traces)
        return ReplayResult(len(taken), sum(len(trace) - 1 for trace in taken), tuple(found))

    def history_of(trace: Trace, constants: Mapping[str, TlaValue], module: str) -> History:
        lines = tuple(Record("events", "a", step.action, step.number) for step in trace.steps[1:])
        return History("session_windows", {"gap_ms": 10}, lines)

    monkeypatch.setattr(replay, "replay", answer)
    monkeypatch.setattr(replay, "history_of", history_of)
    monkeypatch.setattr(replay, "replay_named", lambda module: None)
    monkeypatch.setattr(spec_replay, "replay_on_spark", answer)
    monkeypatch.setattr(spec_replay_on_kafka, "replay_on_kafka", answer)
    graph_of(monkeypatch, GRAPH_OF_FOUR)
    return found


@pytest.mark.parametrize("on", ["reference", "spark", "kafka"])
def test_a_replay_without_disagreement_conforms(command: Command, replaying: list[Disagreement], on: str) -> None:
    said = command("replay", "Clock", "--on", on, "--cover", "all")
    assert said.code == 0
    assert f"conforms Clock on {on}: 2 behaviours (all), 5 actions, 0 disagreements" in said.out


@pytest.mark.parametrize(
    ("model", "version", "remedy"), [("3_9_safe_left", "4.3.1", "3.9.0"), ("4_3_left", "3.9.0", "4.3.1")]
)
def test_a_release_of_kafka_is_not_asked_about_anothers_instructions(
    command: Command, model: str, version: str, remedy: str
) -> None:
    said = command("replay", f"ForeignKeyJoin_kafka_{model}", "--on", "kafka", "--kafka-version", version)
    assert said.code == 3
    assert f"error: Kafka {version} has other instructions than the model's" in said.err
    assert said.err.rstrip().endswith(f"use --kafka-version {remedy}")


def test_a_disagreement_is_printed_up_to_its_step_and_saved(
    clock: Path, command: Command, replaying: list[Disagreement]
) -> None:
    replaying.append(Disagreement(2, 2, "Leap", "the hour", 7, 2))
    said = command("replay", "Clock", "--cover", "all")
    assert said.code == 1
    assert "1 disagreement" in said.out
    assert "behaviour 2, step 2 (Leap): the hour: the replay has 7, the model 2" in said.out
    assert "2  Leap\n        hour: 0 → 2" in said.out
    assert "hour: 2 → 3" not in said.out
    (saved,) = (clock / ".streamproof" / "counterexamples" / "session_windows").glob("replay-Clock-*/history.jsonl")
    assert f"saved as {saved.relative_to(clock)}" in said.err
    assert [record.value for record in read_history(saved).records] == ["Leap", "Tick"]


def test_a_disagreement_that_can_not_be_saved_is_one_still(command: Command, replaying: list[Disagreement]) -> None:
    replaying.append(Disagreement(1, 2, "Tick", "the hour", 7, 2))
    said = command("replay", "Clock", "--findings", "Clock.tla")
    assert said.code == 1
    assert "not saved as a history: Clock.tla/session_windows/replay-Clock-" in said.err
    assert ": can't be written (Not a directory)" in said.err


def test_behaviours_are_written_as_history_files(clock: Path, command: Command, replaying: list[Disagreement]) -> None:
    said = command("replay", "Clock", "--write", "histories")
    assert "histories: 2 history files" in said.err
    assert [path.name for path in sorted((clock / "histories").iterdir())] == ["Clock-1.jsonl", "Clock-2.jsonl"]
    assert read_history(clock / "histories" / "Clock-1.jsonl").operator == "session_windows"


def test_of_a_model_that_fails_the_counterexample_is_replayed(
    command: Command, replaying: list[Disagreement], tlc: Any
) -> None:
    tlc(DEADLOCKED, result())
    said = command("replay", "Clock_stopped", "--constant", "Broken=FALSE")
    assert "2 behaviours (covering every edge)" in said.out, "nothing is expected of other constants"


# Files of the user's.


OWN = {
    "Clock.tla": None,
    "history.jsonl": '{"operator": "session_windows", "options": {"gap_ms": 1}}\n',
    "drawing.svg": "<svg xmlns='http://www.w3.org/2000/svg'/>",
    "figures.json": '[{"model": "T"}]',
    "binary.json": "\udcff\udc80",
    "Clock_late-edges.jsonl": '{"some": "lines"}\n',
    "Clock_late-1.jsonl": '{"some": "lines"}\n',
}
"""Files that streamproof didn't make; a text that is None is there already."""


@pytest.fixture
def own(clock: Path) -> dict[str, bytes]:
    """The user's own files, with what is in them."""
    for name, text in OWN.items():
        if text is not None:
            (clock / name).write_text(text, encoding="utf-8", errors="surrogateescape")
    return {name: (clock / name).read_bytes() for name in OWN}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["check", "Clock_late", "--chart", "Clock.tla"], "Clock.tla: the name of a chart must end in .svg"),
        (["check", "Clock_late", "--chart", "new.png"], "new.png: the name of a chart must end in .svg"),
        (["check", "Clock_late", "--chart", "drawing.svg"], "drawing.svg: it exists already, and isn't a chart of"),
        (["check", "--json", "history.jsonl"], "history.jsonl: the name of a report must end in .json"),
        (["check", "--json", "figures.json"], "figures.json: it exists already, and isn't a report of"),
        (["check", "--json", "binary.json"], "binary.json: it exists already, and isn't a report of"),
        (["behaviours", "Clock_late", "--out", "."], "Clock_late-edges.jsonl: it exists already, and isn't a file of"),
        (["check", "--json", "new/found"], "new/found: the name of a report must end in .json"),
        (["check", "--json", f"{'n' * 300}.json"], "can't be written (File name too long)"),
        (["check", "--json", "Clock.tla/found.json"], "Clock.tla isn't a folder"),
        (["check", "--json", "new\n\x1b[2Jfound"], r"new\n\x1b[2Jfound: the name of a report must end in .json"),
    ],
)
def test_a_file_of_the_user_s_is_not_replaced_and_nothing_is_run(
    clock: Path, command: Command, tlc: Any, own: dict[str, bytes], arguments: list[str], said: str
) -> None:
    asked = tlc()
    before = sorted(clock.iterdir())
    ended = command(*arguments)
    assert (ended.code, ended.out, asked) == (3, "", [])
    assert said in ended.err
    if "exists already" in said or "must end in" in said:
        assert "--force" in ended.err
    assert {name: (clock / name).read_bytes() for name in own} == own
    assert sorted(clock.iterdir()) == before


def test_histories_of_the_user_s_are_not_replaced(
    command: Command, clock: Path, own: dict[str, bytes], replaying: list[Disagreement]
) -> None:
    ended = command("replay", "Clock_late", "--write", ".")
    assert ended.code == 3
    assert "Clock_late-1.jsonl: it exists already, and isn't a history of streamproof" in ended.err
    assert (clock / "Clock_late-1.jsonl").read_bytes() == own["Clock_late-1.jsonl"]


def test_a_file_of_the_user_s_is_replaced_if_that_is_asked_for(
    clock: Path, command: Command, tlc: Any, own: dict[str, bytes]
) -> None:
    tlc(VIOLATED)
    files = ["--chart", "history.jsonl", "--json", "figures.json"]
    assert command("check", "Clock_late", *files, "--force").code == 1
    assert (clock / "history.jsonl").read_text().startswith("<svg ")
    assert json.loads((clock / "figures.json").read_text())[0]["model"] == "Clock_late"


def test_files_of_streamproof_s_are_replaced(clock: Path, command: Command, tlc: Any) -> None:
    tlc(*[VIOLATED] * 2, KeyboardInterrupt(), result())
    for _ in range(2):
        assert command("check", "Clock_late", "--chart", "new/noon.svg", "--json", "new/found.json").code == 1
    for _ in range(2):
        assert command("check", "Clock", "--json", "new/found.json").code in (0, 3)
    assert [path.name for path in (clock / "new").iterdir() if path.name not in ("noon.svg", "found.json")] == []


@pytest.mark.parametrize("arguments", [["simulate", "Clock"], ["behaviours", "Clock"], ["replay", "SessionWindows"]])
def test_whatever_runs_out_of_time_is_inconclusive(
    command: Command, monkeypatch: pytest.MonkeyPatch, arguments: list[str], clock: Path
) -> None:
    def time_is_up(*given: object, **options: object) -> None:
        raise pytla.TimedOut("stopped after 1 seconds", file=Path("some.cfg"))

    monkeypatch.setattr(checking, "find_tools", lambda: Tools(Path("java"), Path("jar")))
    monkeypatch.setattr(pytla, "simulate", time_is_up)
    monkeypatch.setattr(pytla, "state_graph", time_is_up)
    if arguments[0] == "replay":
        monkeypatch.undo()
        monkeypatch.setattr(pytla, "state_graph", time_is_up)
    ended = command(*arguments, "--timeout", "1")
    assert (ended.code, ended.out) == (2, f"inconclusive {arguments[1]}: some.cfg: stopped after 1 seconds\n")


def test_memory_is_the_heap_of_tlc(command: Command, monkeypatch: pytest.MonkeyPatch, tlc: Any) -> None:
    tlc()
    given: list[Tools] = []
    monkeypatch.setattr(pytla, "check", lambda model, tools, **options: given.append(tools) or result())
    command("check", "Clock", "--memory", "300")
    assert given[0].options == (*checking.QUICK, "-Xmx300m")


# spec races


def test_races_are_played_on_the_reference(command: Command) -> None:
    said = command("races", "lose-gain", "--every-interleaving")
    assert said.code == 0
    assert re.search(r"lose-gain .* 56 .* 5 .*l: \(a\|r1, x\) .*nothing", said.out)
    assert "conforms inner join on reference: 5 of 56 orders end wrong, in 1 of 1 race;" in said.out


def test_a_left_join_that_ends_wrong_is_a_violation(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    assert command("races", "lose-gain", "--join", "left").code == 0
    raced = races.raced

    def wrong(*arguments: Any, **named: Any) -> list[races.Raced]:
        return [one._replace(wrong=1) for one in raced(*arguments, **named)]

    monkeypatch.setattr(races, "raced", wrong)
    said = command("races", "lose-gain", "--join", "left")
    assert said.code == 1
    assert "violated left join on reference: 1 of 1 order end wrong" in said.out


def test_an_inner_join_that_ends_right_is_a_violation(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    raced = races.raced
    monkeypatch.setattr(
        races, "raced", lambda *given, **named: [one._replace(wrong=0) for one in raced(*given, **named)]
    )
    assert command("races", "lose-gain", "delete-insert").code == 1


def test_without_kafka_its_races_are_inconclusive(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*given: object, **named: Any) -> None:
        raise MissingTool("no jars: fetch them")

    monkeypatch.setattr(races, "raced", absent)
    said = command("races", "--on", "kafka")
    assert said.code == 2
    assert "Kafka Streams can't be asked: no jars: fetch them" in said.out
