"""A micro-batch that is taken back from a checkpoint: its commit, and its state in every other partition."""

from __future__ import annotations

from pathlib import Path

from streamproof.properties.witnesses.job.dying.checkpoints import last_commit, undo_commit, undo_state


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_the_last_commit_is_the_largest_number_and_goes_with_its_checksum(tmp_path: Path) -> None:
    assert (last_commit(tmp_path), undo_commit(tmp_path)) == (-1, -1)
    made(tmp_path, "commits/9", "commits/10", "commits/.10.crc", "commits/.9.crc", "commits/metadata")
    assert [last_commit(tmp_path), undo_commit(tmp_path), last_commit(tmp_path)] == [10, 10, 9]
    assert {path.name for path in (tmp_path / "commits").iterdir()} == {"9", ".9.crc", "metadata"}
    assert [undo_commit(tmp_path), undo_commit(tmp_path)] == [9, -1]


def test_the_state_of_a_micro_batch_goes_from_every_other_partition_alone(tmp_path: Path) -> None:
    kept = {"state/0/0/4.delta", "state/0/1/41.delta", "state/0/1/3.delta", "state/0/_metadata/4.delta"}
    gone = {"state/0/1/4.delta", "state/0/1/4_a.zip", "state/1/3/left/4.snapshot"}
    made(tmp_path, *kept, *gone)
    undo_state(tmp_path, 3)
    assert {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*.*")} == kept
