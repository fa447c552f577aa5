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
from streamproof.properties.files import whole_file, write_whole
from streamproof.properties.regress import record
from streamproof.reference.errors import BadInput


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


FILLS = """
import resource, signal, sys
from pathlib import Path
from streamproof.properties.files import write_whole
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
write_whole(Path(sys.argv[1]), "x" * 100_000)
"""


def test_a_file_that_grows_too_large_leaves_nothing(tmp_path: Path) -> None:
    ended = subprocess.run([sys.executable, "-c", FILLS, tmp_path / "file"], capture_output=True, text=True)
    assert "File too large" in ended.stderr
    assert names(tmp_path) == []


def test_a_recording_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    from streamproof.properties.outcomes import Outcome
    from streamproof.reference.histories import parse_history
    from streamproof.reference.play import play

    header = '{"operator": "table_table_join", "options": {"join": "inner"}}\n'
    line = '{"input": "left", "key": "a", "value": "%s", "timestamp": 0}\n' % ("x" * 2000)
    history = parse_history(header + line, "h")
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        with pytest.raises(BadInput, match="can't be written"):
            record(tmp_path / "r.jsonl", "reference", [history], [Outcome.of_play("h", play(history))])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, handler)
    assert names(tmp_path) == []
