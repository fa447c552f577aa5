"""The command as a user calls it, in the process of the test."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from streamproof.properties.cli import app


class Said(NamedTuple):
    """How the command ended and what it printed."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Command = Callable[..., Said]


def caller(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *first: str) -> Command:
    """Return a function that calls the command with these arguments before its own."""

    def call(*arguments: object) -> Said:
        monkeypatch.setattr(sys, "argv", ["streamproof", *first, *map(str, arguments)])
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            app.main()
        code = ended.value.code
        assert isinstance(code, int)
        return Said(code, *capsys.readouterr())

    return call


SENT = {"event": "subscription sent", "foreign_key": "r", "key": "l"}
TRACE: list[dict[str, Any]] = [
    {"trace": "foreign_key_join", "join": "inner", "protocol": "kafka 4.3", "order": "total"},
    {"event": "left", "key": "l", "value": {"fk": "r"}, "foreign_key": "r"},
    {**SENT, "instruction": "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"},
]
"""A trace for `spec validate`."""
