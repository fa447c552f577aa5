"""The command `spec validate`: what is printed of a trace, and how it exits."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import TRACE, Command, caller


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in TRACE))
    return caller(monkeypatch, capsys, "spec", "validate")


def test_tlc_is_asked(said: Command) -> None:
    code, out, _ = said("trace.jsonl")
    assert (code, out.strip()) == (0, "conforms trace.jsonl: 2 events; protocol kafka 4.3, 2 states")
    code, out, _ = said("trace.jsonl", "--protocol", "answer")
    assert code == 1
    assert "line 3 (subscription sent, l to r: PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE) is refused" in out
