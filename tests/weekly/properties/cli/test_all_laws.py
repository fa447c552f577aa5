"""All laws, also those that a check asks of the reference alone: what both keep, Spark is seen to keep."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Command, caller


@pytest.fixture
def check(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(monkeypatch, capsys, "check")


@pytest.mark.weekly("minutes of Spark: CI asks these laws of the reference")
def test_all_laws_hold_on_spark_for_all_operators_at_the_default_size(check: Command, tmp_path: Path) -> None:
    said = check("--all-laws", "--findings", tmp_path)
    assert said.code == 0, said.out
    assert "checked only on the reference" not in said.out
