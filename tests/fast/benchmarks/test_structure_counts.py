"""The counts of the project's structure: which files run, and which classes there are."""

from __future__ import annotations

import threading

import pytest
import typer
from notation import history_of
from streamproof import play

from benchmarks.structure import ROOT, classes, files_of, main


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


def test_an_unknown_check_is_refused_before_anything_is_counted(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.BadParameter, match="'x' is no check: use one of README's check"):
        main(check="x")
    assert capsys.readouterr().out == ""
