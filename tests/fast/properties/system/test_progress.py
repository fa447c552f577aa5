"""What a check is doing is told each ten seconds, by whatever clock."""

from __future__ import annotations

import pytest
from streamproof.properties.system import progress
from streamproof.properties.system.progress import EVERY_S, Heartbeat, doing, tell, telling


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_line_is_shown_each_ten_seconds_and_no_sooner() -> None:
    clock, lines = Clock(), list[str]()
    heartbeat = Heartbeat(lines.append, clock)
    for second in range(36):
        clock.now = 100.0 + second
        if second in (1, 3, 14):
            heartbeat.take(f"step {second}")
        heartbeat.beat()
    assert lines == ["step 3 (7 s)", "step 14 (6 s)", "step 14 (16 s)"]


def test_a_step_is_shown_at_once_if_a_line_is_due() -> None:
    clock, lines = Clock(), list[str]()
    heartbeat = Heartbeat(lines.append, clock)
    assert heartbeat.left_s == EVERY_S
    clock.now += 12
    heartbeat.beat()
    assert lines == []
    assert heartbeat.left_s < 1
    heartbeat.take("drawing")
    assert lines == ["drawing (0 s)"]
    assert heartbeat.left_s == EVERY_S


def test_a_thread_lets_it_beat_until_the_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "EVERY_S", 0)
    lines: list[str] = []
    beaten = progress.threading.Event()

    def show(line: str) -> None:
        lines.append(line)
        if len(lines) > 3:
            beaten.set()

    with telling(show):
        doing("running")
        beaten.wait()
    count = len(lines)
    doing("nobody is told")
    assert len(lines) == count
    assert {line.rpartition(" (")[0] for line in lines} == {"running"}


def test_what_a_user_should_know_at_once_is_told_or_logged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "_telling", None)
    lines: list[str] = []
    warnings: list[str] = []
    monkeypatch.setattr(progress._LOG, "warning", warnings.append)
    with telling(lines.append):
        tell("few histories")
    assert (lines, warnings) == (["few histories"], [])
    tell("few histories")
    assert (lines, warnings) == (["few histories"], ["few histories"])
