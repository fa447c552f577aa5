"""The command `spec validate`: what is printed of a trace, and how it exits."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from streamproof.properties.cli import app

SENT = {"event": "subscription sent", "foreign_key": "r", "key": "l"}
TRACE: list[dict[str, Any]] = [
    {"trace": "foreign_key_join", "join": "inner", "protocol": "kafka 4.3", "order": "total"},
    {"event": "left", "key": "l", "value": {"fk": "r"}, "foreign_key": "r"},
    {**SENT, "instruction": "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"},
]


class Said(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Any:
    monkeypatch.setattr(app, "_running_session", lambda: None)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trace.jsonl").write_text("".join(json.dumps(line) + "\n" for line in TRACE))

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["streamproof", "spec", "validate", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            app.main()
        assert isinstance(ended.value.code, int)
        return Said(ended.value.code, *capsys.readouterr())

    return call


def test_tlc_is_asked(said: Any) -> None:
    code, out, _ = said("trace.jsonl")
    assert (code, out.strip()) == (0, "conforms trace.jsonl: 2 events; protocol kafka 4.3, 2 states")
    code, out, _ = said("trace.jsonl", "--protocol", "answer")
    assert code == 1
    assert "line 3 (subscription sent, l to r: PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE) is refused" in out
