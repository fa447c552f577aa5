"""The command `spec validate`: what is printed of a trace, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import TRACE, Command, caller
from streamproof.specs import checking, validation
from streamproof.specs.pytla import TimedOut, Tools
from streamproof.specs.traces import JoinTrace, TraceEvent
from streamproof.specs.validation import Possible, Refusal, Validated


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in TRACE))
    return caller(monkeypatch, capsys, "spec", "validate")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes TLC answer something; gives the traces that it was asked about."""

    def answer(given: Validated | Exception) -> list[JoinTrace]:
        asked: list[JoinTrace] = []

        def validate(trace: JoinTrace, *_: object) -> Validated:
            asked.append(trace)
            if isinstance(given, Exception):
                raise given
            return given

        monkeypatch.setattr(validation, "validate", validate)
        monkeypatch.setattr(checking, "find_tools", lambda: Tools(Path("java"), Path("jar")))
        return asked

    return answer


def test_a_trace_without_events_is_inconclusive(said: Command, answers: Any) -> None:
    answers(Validated(0, 0, 0, ()))
    code, out, _ = said("trace.jsonl")
    assert (code, out.strip()) == (2, "inconclusive trace.jsonl: 0 events; protocol kafka 4.3, 0 states")


def test_a_trace_that_is_explained_conforms(said: Command, answers: Any) -> None:
    asked = answers(Validated(1, 2, 3, ()))
    code, out, _ = said("trace.jsonl")
    assert (code, out.strip()) == (0, "conforms trace.jsonl: 2 events; protocol kafka 4.3, 3 states")
    assert asked[0].protocol == "kafka 4.3"


def test_a_refused_line_is_a_violation_with_what_could_have_happened(said: Command, answers: Any) -> None:
    left, sent = TraceEvent(2, "left", "l", "r"), TraceEvent(3, "subscription sent", "l", "r", instruction="X")
    possible = Possible(left, (TraceEvent(0, "subscription sent", "l", "r", instruction="Y"),))
    refusal = Refusal(sent, (), 0, 2, None, (sent,), (possible,))
    asked = answers(Validated(3, 2, 1, (refusal, refusal)))
    code, out, _ = said("trace.jsonl", "--protocol", "kafka 3.9")
    assert code == 1
    assert out.splitlines()[:4] == [
        "violated trace.jsonl: 2 events in 3 parts without a key in common, 2 parts refused; "
        "protocol kafka 3.9, 1 state",
        "  line 3 (subscription sent, l to r: X) is refused",
        "  explained: 0 of 2 events",
        "  possible: left l = ∅: subscription sent, l to r: Y",
    ]
    assert asked[0].protocol == "kafka 3.9"


def test_what_is_not_known_in_time_is_inconclusive(said: Command, answers: Any) -> None:
    answers(TimedOut("stopped after 1 seconds"))
    code, out, _ = said("trace.jsonl", "--timeout", "1")
    assert code == 2
    assert "inconclusive trace.jsonl: " in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.jsonl"], "none.jsonl: can't be read (No such file or directory)"),
        (["."], ".: can't be read (Is a directory)"),
        (["broken.jsonl"], "broken.jsonl: line 1: not a header, which begins with"),
    ],
)
def test_what_is_no_trace_is_one_message(said: Command, arguments: list[str], message: str, tmp_path: Path) -> None:
    (tmp_path / "broken.jsonl").write_text('{"operator": "foreign_key_join", "options": {}}\n')
    code, out, err = said(*arguments)
    assert (code, out) == (3, "")
    assert message in err
    assert "Traceback" not in err
