"""Damaged recordings, and recordings where others are: each is one message that names file, line and remedy."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from faults import Fault, listing
from faults_of_recordings_setup import (
    FAULTS,
    GOOD,
    answer,
    line,
)
from streamproof.properties.cli import app
from streamproof.properties.report.recordings import recorded


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_damaged_recording_is_one_message_that_names_file_line_and_remedy(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Within this process, where fifty cases take a moment."""
    for name, content in fault.given.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    fault.prepare(tmp_path)
    before = {name: (tmp_path / name).is_file() and (tmp_path / name).read_bytes() for name in listing(tmp_path)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["streamproof", *fault.command])
    with pytest.raises(SystemExit) as ended:
        app.main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (fault.exit, "")
    assert re.fullmatch(fault.says + "\n", said.err), said.err
    assert listing(tmp_path) == list(before)
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items() if content is not False)


def test_what_the_faults_are_made_of_is_readable_without_them(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(GOOD + answer(window=[0, 0]) + line(grain="batch", on="spark"))
    assert len(list(recorded(tmp_path / "r.jsonl"))) == 3
