"""A job goes on from the checkpoints that older PySparks have left (tests/helpers/old_checkpoints.py)."""

from __future__ import annotations

from pathlib import Path

import pytest
from old_checkpoints import AFTER, FOLDER, Stored, run_on

CHECKPOINTS = sorted(FOLDER.glob("*.zip"))


def test_there_is_a_checkpoint_of_each_kind() -> None:
    assert {path.stem.rpartition(".")[0] for path in CHECKPOINTS} == {"3.5", "4.0", "4.1", "4.2"}


@pytest.mark.parametrize("path", CHECKPOINTS, ids=lambda path: path.stem)
def test_a_windowed_sum_goes_on_from_the_checkpoint_of(path: Path) -> None:
    output = run_on(Stored(path.stem))
    after = [sorted((row["user"], row["hour"], row["total"]) for row in rows) for rows in output.batches[2:]]
    assert after == [sorted(rows) for rows in AFTER]
    assert output.stateful
