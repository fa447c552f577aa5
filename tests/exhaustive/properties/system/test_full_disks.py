"""What the commands say where a disk fills: a small one of its own, where this user may mount one."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from faults import TIMEOUT_S, streamproof

HISTORY = """\
{"operator": "table_table_join", "options": {"join": "inner"}, "clock": "batch"}
{"input": "left", "key": "a", "value": 1, "timestamp": 1}
{"cut": true}
{"input": "right", "key": "a", "value": 2, "timestamp": 2}
"""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mounts a disk of a size; the test is skipped where that isn't permitted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mounted = []

    def mount(size: str) -> Path:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True
        )
        if made.returncode:
            pytest.skip(f"no disk can be mounted here: {made.stderr.strip()}")
        mounted.append(folder)
        return folder

    yield mount
    for one in mounted:
        subprocess.run(["umount", "--lazy", str(one)], check=True)


def run(folder: Path, *words: str, out: Path | None = None, **environment: str) -> tuple[int, str]:
    """Run a command; return its exit and what it said on stderr."""
    (folder / "h.jsonl").write_text(HISTORY)
    with (out or folder / "out").open("w") as stdout:
        ended = subprocess.run(
            streamproof(*words),
            cwd=folder,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
        )
    assert "Traceback" not in ended.stderr
    return ended.returncode, ended.stderr


def test_a_result_that_fills_a_disk_is_none(tmp_path: Path, disk: Callable[[str], Path]) -> None:
    folder = disk("150k")
    with contextlib.suppress(OSError), (folder / "taken").open("wb", buffering=0) as taken:
        while taken.write(bytes(4096)):
            pass
    code, said = run(tmp_path, "run", "h.jsonl", out=folder / "out")
    assert code == 3
    assert said.startswith("error: standard output can't be written (No space left on device): ")


def test_a_temporary_directory_that_fills_is_named(tmp_path: Path, disk: Callable[[str], Path]) -> None:
    folder = disk("150k")
    code, said = run(tmp_path, "run", "h.jsonl", "--on", "spark", TMPDIR=str(folder))
    assert code == 3, said
    error = next(line for line in said.splitlines() if line.startswith("error: "))
    assert re.search(rf"no space left in {folder}: free some, or name another folder with TMPDIR", error), said
