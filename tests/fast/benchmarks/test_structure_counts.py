"""The counts of the project's structure: which files run, and which classes there are."""

from __future__ import annotations

import threading

import pytest
import typer
from notation import history_of
from streamproof import play

from benchmarks.structure import KINDS, ROOT, classes, files_of, main, named_twice, sources, types_of


def test_a_file_counts_if_a_function_of_it_runs_in_any_thread() -> None:
    def work() -> None:
        thread = threading.Thread(target=lambda: play(history))
        thread.start()
        thread.join()

    history = history_of("a@0", "session_windows")
    found = files_of(work)
    assert {"reference/core/play.py", "reference/session_windows.py"} <= {*found}
    assert "reference/stream_stream_join.py" not in found
    assert not any(file.startswith("tests") for file in found)


def test_a_class_and_an_alias_are_found_under_their_names() -> None:
    records = "reference/core/records.py"
    found = classes([ROOT / records])
    assert (found["TableKey"], found["Record"]) == ([records], [records])


def test_an_alias_without_its_word_is_found_and_an_option_of_a_command_is_not() -> None:
    assert classes([ROOT / "specs/steps.py"])["ChangedHow"] == ["specs/steps.py"]
    assert "Force" not in classes([ROOT / "properties/cli/spec/options.py"])


def test_there_is_one_counterexample_one_difference_and_no_name_for_two_things() -> None:
    known = classes(sources())
    for kind in ("row", "history", "difference", "counterexample"):
        found = types_of(kind, known)
        assert 0 < len(found) <= KINDS[kind][0], found
    assert named_twice(known) == []


def test_an_operator_and_its_implementation_may_share_a_name_and_others_may_not() -> None:
    files = ["reference/a.py", "spark_impl/a.py"]
    assert named_twice({"Buffered": files, "Behaviour": ["reference/a.py", "reference/b.py"], "_One": ["a", "b"]}) == []
    three = {"Buffered": [*files, "specs/a.py"]}
    assert named_twice(three) == ["Buffered: reference/a.py, spark_impl/a.py, specs/a.py"]
    assert named_twice({"State": ["reference/a.py", "specs/a.py"]}) == ["State: reference/a.py, specs/a.py"]


def test_an_unknown_check_is_refused_before_anything_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.BadParameter, match="'x' isn't a check: use one of README's check"):
        main(check="x")
    assert capsys.readouterr().out == ""
