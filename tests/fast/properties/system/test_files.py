from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from streamproof.properties.report.recordings import record
from streamproof.properties.system import files
from streamproof.properties.system.files import whole_file, write_whole
from streamproof.reference.core.errors import BadInput


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_file_is_written_and_its_folders_are_made(tmp_path: Path) -> None:
    write_whole(tmp_path / "a" / "b" / "file", "ü\n")
    assert (tmp_path / "a" / "b" / "file").read_bytes() == "ü\n".encode()
    assert names(tmp_path / "a" / "b") == ["file"]


def test_until_it_is_whole_the_old_file_stands(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with whole_file(path) as file:
        file.write("new")
        file.flush()
        assert path.read_text() == "old"
    assert path.read_text() == "new"


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt(), ValueError()])
def test_a_failure_leaves_the_old_file_and_nothing_hidden(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(type(error)), whole_file(path) as file:  # noqa: PT012
        file.write("half")
        raise error
    assert (names(tmp_path), path.read_text()) == (["file"], "old")


def test_a_file_has_the_rights_that_any_new_file_has(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_whole(tmp_path / "whole", "")
    plain, whole = (stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "whole"))
    assert plain == whole


def test_a_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_whole(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_a_device_is_written_to_and_not_replaced() -> None:
    write_whole(Path("/dev/null"), "text")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_two_that_write_one_file_leave_one_of_the_two(tmp_path: Path) -> None:
    path = tmp_path / "file"
    with whole_file(path) as first, whole_file(path) as second:
        first.write("first")
        second.write("second")
    assert (names(tmp_path), path.read_text()) == (["file"], "first")


KILLED = """
import os, signal, sys
from pathlib import Path
from streamproof.properties.system.files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write("half")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_there(tmp_path: Path) -> None:
    command = [sys.executable, "-c", KILLED, tmp_path / "file"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        writer.stdout.readline()
        write_whole(tmp_path / "other", "")
        assert len([name for name in names(tmp_path) if name.startswith(".writing-")]) == 1, "it is still being written"
        writer.communicate("")
    assert writer.returncode == -signal.SIGKILL
    assert len([name for name in names(tmp_path) if name.startswith(".writing-")]) == 1
    write_whole(tmp_path / "other", "")
    assert names(tmp_path) == ["other"]


@pytest.mark.parametrize("name", [".writing-notes", ".writing-12-0a1b2c3d.txt", "12-0a1b2c3d"])
def test_a_file_that_others_called_like_one_that_is_not_whole_stays(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("")
    write_whole(tmp_path / "file", "")
    assert names(tmp_path) == sorted([name, "file"])


def test_neither_a_link_nor_a_pipe_nor_a_folder_is_removed(tmp_path: Path) -> None:
    left = [f".writing-12-0a1b2c3{number}" for number in range(3)]
    (tmp_path / "theirs").write_text("")
    (tmp_path / left[0]).symlink_to(tmp_path / "theirs")
    os.mkfifo(tmp_path / left[1])
    (tmp_path / left[2]).mkdir()
    write_whole(tmp_path / "file", "")
    assert names(tmp_path) == sorted([*left, "file", "theirs"])


def test_one_that_is_swept_before_it_is_held_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hold, swept = files.hold, []

    def sweeping(descriptor: int) -> bool:
        if not swept:
            swept.extend(tmp_path.glob(".writing-*"))
            files.sweep_files(tmp_path)
        return hold(descriptor)

    monkeypatch.setattr(files, "hold", sweeping)
    write_whole(tmp_path / "file", "text")
    assert len(swept) == 1
    assert (names(tmp_path), (tmp_path / "file").read_text()) == (["file"], "text")


def test_a_recording_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(BadInput, match="can't be written"):
            record(tmp_path / "r.jsonl", "x" * 2000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == []
