"""Where what a check is doing is shown: on the standard error of pytest, and of commands without a terminal."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.cli.terminal import StepDisplay, logged_by
from streamproof.properties.system import progress
from streamproof.properties.system.progress import doing, tell
from streamproof.properties.testing.pytest_plugin import STDERR, pytest_runtest_protocol


def test_pytest_shows_it_though_a_test_s_output_is_captured() -> None:
    reading, writing = os.pipe()
    item: Any = SimpleNamespace(config=SimpleNamespace(stash={STDERR: writing}))
    running = pytest_runtest_protocol(item)
    next(running)
    tell("few\x1b histories")
    with pytest.raises(StopIteration):
        running.send(True)
    os.close(writing)
    with open(reading, "rb") as shown:
        assert shown.read() == b"\nstreamproof: few\\x1b histories\n"


def test_pytest_runs_tests_where_there_is_no_standard_error() -> None:
    running = pytest_runtest_protocol(SimpleNamespace(config=SimpleNamespace(stash={})))  # type: ignore[arg-type]
    next(running)
    with pytest.raises(StopIteration):
        running.send(True)


@pytest.mark.parametrize(("every_s", "shown"), [(0, "drawing (0 s)"), (10, "")])
def test_a_command_without_a_terminal_shows_a_line_once_one_is_due(
    every_s: float, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "EVERY_S", every_s)
    with logged_by(StepDisplay(None)):
        doing("drawing")
    assert capsys.readouterr().err.partition("\n")[0] == shown
