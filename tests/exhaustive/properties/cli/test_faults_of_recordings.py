"""Damaged recordings, and recordings where others are: each is one message that names file, line and remedy."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import assert_ends_as_it_must
from faults_of_recordings_setup import (
    FAULTS,
)

IN_A_PROCESS = ("truncated", "an answer with a window of one", "a recording where another is")


@pytest.mark.parametrize("name", IN_A_PROCESS)
def test_a_damaged_recording_ends_a_process_too(name: str, tmp_path: Path) -> None:
    (fault,) = (fault for fault in FAULTS if fault.name == name)
    assert_ends_as_it_must(fault, tmp_path)
