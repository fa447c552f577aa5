from __future__ import annotations

import os
import stat
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from streamproof.properties.system import work
from streamproof.properties.system.work import (
    LOG_DAYS,
    logs_left,
    open_log,
    own_folder,
    remove_own,
    sweep,
    temporary_folder,
)

# A process that takes a folder of its own, prints it, and holds it until it is ended.
HOLDS = """
import sys
from pathlib import Path
from streamproof.properties.system.work import own_folder
shared = Path(sys.argv[1]) if len(sys.argv) > 1 else None
folder = own_folder(shared)
(folder / "file").write_text("x")
print(folder, flush=True)
sys.stdin.read()
"""
AGO = time.time() - (LOG_DAYS + 1) * 86_400


@pytest.fixture(autouse=True)
def temporary(tmp_path, monkeypatch):
    """A temporary directory for this test, in which this process has no folder yet."""
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(work, "_own", {})
    yield folder
    remove_own()


class Holding:
    """Another process that holds a folder."""

    def __init__(self, *shared: Path) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", HOLDS, *shared], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.process.stdout is not None
        self.folder = Path(self.process.stdout.readline().strip())

    def __enter__(self) -> Holding:
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.kill()
        self.process.communicate()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def users(temporary: Path) -> Path:
    return temporary / f"streamproof-{os.getuid()}"


def left_in(temporary: Path, name: str = "12-0a1b2c") -> Path:
    """Make a folder as a process leaves it that was killed."""
    left = users(temporary) / name
    left.mkdir(parents=True)
    (left / "owner").write_text("")
    return left


def test_a_process_has_one_folder_that_only_its_user_enters(temporary):
    folder = own_folder()
    assert folder == own_folder()
    assert folder.parent == users(temporary)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_it_is_removed_when_the_process_ends(temporary):
    with Holding() as holding:
        holding.process.communicate("")
        assert not holding.folder.exists()


def test_what_is_made_in_it_is_removed_with_its_block(temporary):
    with temporary_folder() as folder:
        (folder / "file").write_text("x")
        assert folder.parent == own_folder()
    assert not folder.exists()


def test_the_folder_of_a_killed_process_is_removed_by_the_next_one(temporary):
    with Holding() as holding:
        holding.kill()
        assert (holding.folder / "file").exists()
        assert own_folder().exists()
        assert not holding.folder.exists()


def test_a_folder_with_the_number_of_a_living_process_is_swept_if_nobody_holds_it(temporary):
    left = left_in(temporary, f"{os.getpid()}-0a1b2c")
    sweep()
    assert not left.exists()


def test_what_streamproof_did_not_make_stays(temporary):
    folder = users(temporary)
    (folder / "kept").mkdir(parents=True)
    (folder / "notes.txt").write_text("x")
    (folder / "12-0a1b2c").mkdir()
    (folder / "12-0a1b2c" / "file").write_text("no owner file")
    sweep()
    assert sorted(path.name for path in folder.iterdir()) == ["12-0a1b2c", "kept", "notes.txt"]


def test_a_link_is_not_followed(temporary, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "owner").write_text("")
    users(temporary).mkdir()
    (users(temporary) / "12-0a1b2c").symlink_to(theirs)
    sweep()
    assert (theirs / "owner").exists()


def test_a_linked_owner_file_is_not_followed(temporary, tmp_path):
    left = users(temporary) / "12-0a1b2c"
    left.mkdir(parents=True)
    (left / "owner").symlink_to(tmp_path / "elsewhere")
    sweep()
    assert left.exists()


def test_the_folder_of_another_user_stays(temporary, monkeypatch):
    left = left_in(temporary)
    user = os.getuid()
    monkeypatch.setattr(work, "_user", lambda: user + 1)
    monkeypatch.setattr(work, "user_folder", lambda: users(temporary))
    sweep()
    assert left.exists()


def test_in_a_shared_folder_only_those_of_this_machine_are_removed(tmp_path, monkeypatch):
    shared = tmp_path / "shared"
    shared.mkdir()
    with Holding(shared) as holding:
        holding.kill()
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr(work.socket, "gethostname", lambda: "elsewhere")
            sweep(shared)
            assert holding.folder.exists()
        sweep(shared)
        assert [*shared.iterdir()] == []


def test_in_a_shared_folder_a_log_stays(tmp_path):
    (tmp_path / "spark-1.log").write_text("x")
    os.utime(tmp_path / "spark-1.log", (AGO, AGO))
    sweep(tmp_path)
    assert (tmp_path / "spark-1.log").exists()


def test_a_log_stays_for_the_stated_days(temporary):
    folder = users(temporary)
    folder.mkdir()
    for name in ("spark-1.log", "kafka-1.log", "spark-2.log", "other.log"):
        (folder / name).write_text("x")
        if name != "spark-2.log":
            os.utime(folder / name, (AGO, AGO))
    sweep()
    assert sorted(path.name for path in folder.iterdir()) == ["other.log", "spark-2.log"]


def test_the_log_of_a_living_process_stays_however_old_it_is(temporary):
    path = users(temporary) / "spark-1.log"
    with open_log(path) as file:
        # A child that inherits the log holds it when this process has closed it.
        child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1, stdout=file)
    try:
        os.utime(path, (AGO, AGO))
        sweep()
        assert path.exists()
    finally:
        child.communicate()
    sweep()
    assert not path.exists()


def test_threads_of_a_process_share_its_folder(temporary):
    with ThreadPoolExecutor(8) as pool:
        assert len({*pool.map(lambda number: own_folder(), range(32))}) == 1


def test_a_fork_leaves_the_folder_of_its_parent(temporary):
    folder = own_folder()
    child = os.fork()
    if child == 0:
        remove_own()
        os._exit(0)
    os.waitpid(child, 0)
    assert folder.exists()


def test_the_logs_are_counted(temporary):
    users(temporary).mkdir()
    (users(temporary) / "spark-1.log").write_text("12345")
    assert logs_left() == (users(temporary), 1, 5)


def test_many_processes_that_begin_at_once_keep_their_folders(temporary):
    holding = [Holding() for _ in range(6)]
    try:
        assert all((one.folder / "file").exists() for one in holding)
        assert len({one.folder for one in holding}) == 6
    finally:
        for one in holding:
            one.__exit__()
