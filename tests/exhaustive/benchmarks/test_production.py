from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest
from paths import ROOT
from streamproof.reference.core.errors import MissingTool
from streamproof.spark_impl.inputs import table

from benchmarks.figures import Setting
from benchmarks.processes import OTHERS, WORKERS, CpuClock, doing, process_of
from benchmarks.production import production, sizes
from benchmarks.production.cases import (
    ARRIVED,
    AS_MANY,
    EARLIER,
    TODAY,
    joined,
    on_referring_sides,
    on_two_sides,
    over_state,
)
from benchmarks.production.earlier import COMMIT, lay_out
from benchmarks.production.production import through_figures
from benchmarks.production.sampling import seconds_by_stage, stage_of

SPENDS = """
import os, signal, sys, time
def spend():
    while time.process_time() < 0.5:
        pass
if sys.argv[1] == "ignored":
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
if not os.fork():
    spend()
    os._exit(0)
if sys.argv[1] == "waited for":
    os.wait()
print("spent", flush=True)
sys.stdin.read()
"""
FIGURES = {"today": 25.0, "ce10c6f": 100.0, "baseline": 21.0, "inputs": 5.0}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("parent", ["waited for", "ignored"])
def test_cpu_seconds_of_a_child_that_has_ended_count_though_its_parent_waits_for_none(parent: str) -> None:
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", SPENDS, parent], **pipes) as process:
        with CpuClock(process.pid).running() as clock:
            used, least = 0.0, 0.3
            end = time.monotonic() + 60
            while used < least and time.monotonic() < end:
                time.sleep(0.1)
                read = clock.read()
                used = read[WORKERS] if parent == "ignored" else sum(read.values())
            time.sleep(1)
            after = sum(clock.read().values())
        process.communicate()
    assert used >= least
    assert used <= after < 2


def test_a_process_is_read_whatever_it_calls_itself_and_a_thread_by_what_it_does() -> None:
    numbers = ["7", *"0" * 9, "300", "50", "20", "10", *"0" * 4, "99"]
    found = process_of(f"12 (a ) b) S {' '.join(numbers)} 0 0")
    assert (found.name, found.parent, found.started) == ("a ) b", 7, 99)
    assert found.alone == pytest.approx(350 / 30 * found.waited)
    assert [doing(name) for name in ("C2 CompilerThre", "stateConnection", "Executor task l", "dag-scheduler-e")] == [
        "compiler",
        "state",
        "tasks",
        OTHERS,
    ]


def test_the_figures_of_an_operator_are_those_of_made_up_seconds_and_are_held_against_their_targets() -> None:
    def measured(seconds: float) -> dict[str, Any]:
        # Half is Python's workers'; each of the four batches costs the same.
        used = [{"python": 0, "java": seconds * count / 8, "workers": seconds * count / 8} for count in (1, 2, 3, 4)]
        about = {"against": "Spark's own", "streaming": True, "results": {"today": (9, 0), "ce10c6f": (0, 0)}}
        return {
            **about,
            "used": used,
            "seconds": 1,
            "stages": {"in": 1, "state": 3},
            "threads": {"tasks": 1, "state": 1},
        }

    found = {form: [measured(seconds)] for form, seconds in FIGURES.items()}
    figures = {one.name: one for one in through_figures("session_windows", found, 1_000_000, 4)}
    assert figures["session_windows"].median == 40_000
    assert figures["session_windows, ce10c6f"].median == 10_000
    over = figures["session_windows over ce10c6f"], figures["session_windows over Spark's own"]
    assert [(one.median, one.reached) for one in over] == [(4, True), (pytest.approx(0.84), True)]
    assert figures["session_windows over ce10c6f, beyond what its inputs cost"].median == pytest.approx(95 / 20)
    growth = figures["session_windows, growth"], figures["session_windows, growth at the end"]
    assert [(one.median, one.reached) for one in growth] == [(pytest.approx(1), True)] * 2
    differing = (
        figures[f"session_windows, {side}: results that differ from the baseline's"]
        for side in FIGURES
        if side[0] in "t"
    )
    assert [one.reached for one in differing] == [True]
    # No result at all is no agreement.
    assert figures["session_windows, ce10c6f: results that differ from the baseline's"].reached is False
    assert figures["session_windows, workers: state"].median == pytest.approx(12.5 * 0.75)
    assert figures["session_windows, JVM: tasks"].median == pytest.approx(12.5 * 0.5)


def test_the_keys_of_a_state_each_come_once_and_then_as_many_again_whatever_their_number() -> None:
    different = set()
    for keys in (10_000, 30_000):
        columns = over_state(keys, (2_000, 500), AS_MANY)
        assert len(set(columns["key"][:keys])) == keys
        again = set(columns["key"][keys:])
        assert len(columns["key"]) == keys + 2_500
        assert again <= set(columns["key"][:keys])
        different.add(len(again))
        sides = on_two_sides(columns)
        assert sorted(np.concatenate([side["order"] for side in sides.values()])) == list(range(keys + 2_500))
    assert len(different) == 1


@pytest.mark.parametrize(("spread", "most"), [("uniform", range(100, 150)), ("skewed", range(900, 1100))])
def test_further_records_name_all_keys_alike_or_some_more_often(spread: str, most: range) -> None:
    keys, further = 100, 10_000
    columns = over_state(keys, (further // 2, further // 2), spread)
    named, counts = np.unique(columns["key"][keys:], return_counts=True)
    assert set(named) == set(columns["key"][:keys])
    # Uniform ones differ by chance alone; a tenth of the skewed ones name the first key.
    assert counts.max() in most


def test_rows_refer_to_a_tenth_as_many_others_of_which_some_change() -> None:
    sides = on_referring_sides(over_state(5_000, (5_000,), "uniform"))
    assert sorted(np.concatenate([side["order"] for side in sides.values()])) == list(range(10_000))
    referred = set(sides["left"]["refers"])
    assert 400 < len(referred) <= 500
    assert 100 < len(sides["right"]["key"]) < 300
    assert len(set(sides["right"]["key"]) & referred) > 50
    assert not sides["left"]["deleted"].any()


def test_a_batch_of_a_size_over_a_state_of_a_size_is_counted_after_the_first_turn(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []

    def measured(setting: Any, program: Any, module: str, words: Any) -> Any:
        asked.append((*words[:3], words[4]))
        cut = words.index("--")
        of_form = 2 if words[1] == "baseline" else 1
        keys, batches = map(int, words[5:cut]), [*map(int, words[cut + 1 :])]
        # The first turn costs more; a record costs more over more keys.
        costs = {
            many: [size * many / 1e6 * of_form * (9 if place < 3 else 1) for place, size in enumerate(batches)]
            for many in (10_000, 100_000, 1_000_000)
        }
        assert [*keys] == [10_000, 100_000, 1_000_000]
        return {"batches": {str(many): found for many, found in costs.items()}}

    monkeypatch.setattr(production, "measured", measured)
    figures = {one.name: one for one in sizes.run(Setting(False, 1, lambda step: None, "session_windows"))}
    one = figures["session_windows, skewed keys: a batch of 20,000 records over 100,000 keys"]
    assert (one.median, one.runs) == (pytest.approx(10), 3)
    over = "session_windows, uniform keys over Spark's session_window: a batch of 1,000 records over 1,000,000 keys"
    assert figures[over].median == pytest.approx(2)
    assert len(figures) == 2 * 9 * 3
    forms = ("today", "baseline")
    assert asked == [("over", form, "session_windows", spread) for spread in ("uniform", "skewed") for form in forms]


def test_a_join_is_declared_as_the_operators_of_each_form_take_it() -> None:
    def join(*inputs: Any, **options: Any) -> Any:
        return inputs, options

    frames: Any = {"left": "orders", "right": "customers"}
    declared = {"value": "amount", "right_value": "name", "join": "left"}
    tables = (table(frames["left"], value="amount", **ARRIVED), table(frames["right"], value="name", **ARRIVED))
    assert joined(join, frames, TODAY, **declared) == (tables, {"join": "left"})
    assert joined(join, frames, EARLIER, **declared) == (("orders", "customers"), {**declared, **ARRIVED, **EARLIER})
    (_, right), _ = joined(join, frames, TODAY, value="amount")
    assert right.value == "amount"


def test_each_case_can_be_declared_where_only_the_earlier_commit_is_imported(tmp_path: Path) -> None:
    try:
        environment = lay_out(COMMIT, tmp_path)
    except MissingTool as error:
        pytest.skip(str(error))
    script = "from benchmarks.production.run import CASES; print(len([case() for case in CASES.values()]))"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.stdout.split() == ["10"], ran.stderr


def test_a_commit_is_imported_from_where_it_is_laid_out_and_an_unknown_one_is_refused(tmp_path: Path) -> None:
    environment = lay_out("HEAD", tmp_path)
    script = "import streamproof.spark_impl as one, streamproof as all, benchmarks; print(one.__file__, all.__file__)"
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert ran.stdout.split() == [
        str(tmp_path / "streamproof" / name) for name in ("spark_impl/__init__.py", "__init__.py")
    ]
    with pytest.raises(MissingTool, match="commit 0123abc can't be read"):
        lay_out("0123abc", tmp_path)


def test_a_worker_notes_the_stage_of_the_innermost_frame_that_belongs_to_one(tmp_path: Path) -> None:
    def frame_of(*path: tuple[str, str]) -> FrameType:
        """Return the frame of functions that call one another, each of a file."""
        scope: dict[str, Any] = {"call": sys._getframe}
        for file, name in reversed(path):
            exec(compile(f"def {name}(inner=call):\n    return inner()", file, "exec"), scope)
            scope["call"] = scope[name]
        frame = scope["call"]()
        assert isinstance(frame, FrameType)
        return frame

    worker, state = "/pyspark/worker.py", "/pyspark/sql/streaming/value_state_client.py"
    logic = ("/x/spark_impl/session_windows.py", "take")
    assert stage_of(frame_of((worker, "dump_stream"), logic, (state, "get"))) == "state"
    assert stage_of(frame_of((worker, "dump_stream"), logic, (worker, "generate_data_batches"))) == "in"
    assert stage_of(frame_of((worker, "dump_stream"), logic, ("/json.py", "loads"))) == "logic"
    assert stage_of(frame_of((worker, "dump_stream"), ("/x/spark_impl/runtime/keyed.py", "save"))) == "runtime"
    assert stage_of(frame_of((worker, "dump_stream"))) == "out"
    assert stage_of(frame_of((worker, "main"))) == "the rest"

    script = f"""if True:
        import time
        from pathlib import Path
        from benchmarks.production.sampling import note
        note(Path({str(tmp_path)!r}))
        start = time.process_time()
        while time.process_time() < start + 0.7:
            pass
    """
    subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=True)
    noted = seconds_by_stage(tmp_path)
    assert set(noted) == {"the rest"}
    assert 0.2 < noted["the rest"] < 0.8
