"""A process is killed at its n-th operation on the files of a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from streamproof.properties.checking.sinks import tracing

pytestmark = pytest.mark.skipif(bool(tracing.why_not()), reason=tracing.why_not())
WRITES = """
import os, runpy, sys
runpy.run_path(sys.argv[1])["begin"]()
for name in "ab":
    with open(f"{sys.argv[2]}/{name}.tmp", "w") as file:
        file.write(name)
    os.rename(f"{sys.argv[2]}/{name}.tmp", f"{sys.argv[2]}/{name}")
print("not in the folder", file=sys.stderr)
sys.exit(3)
"""


def traced(number: int, folder: Path) -> dict[str, object]:
    command = [sys.executable, "-S", "-c", WRITES, tracing.__file__, str(folder)]
    program = [sys.executable, "-S", tracing.__file__, str(number), str(folder), *command]
    ended = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, object] = json.loads(ended.stdout)
    return found


def test_the_operations_on_the_files_of_the_folder_are_counted(tmp_path: Path) -> None:
    assert traced(0, tmp_path) == {"operations": 4, "exit": 3}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


@pytest.mark.parametrize(
    ("number", "where", "left"),
    [
        (1, "write a.tmp", {"a.tmp": ""}),
        (2, "rename a.tmp", {"a.tmp": "a"}),
        (3, "write b.tmp", {"a": "a", "b.tmp": ""}),
    ],
)
def test_the_operation_at_which_a_process_is_killed_is_not_done(
    number: int, where: str, left: dict[str, str], tmp_path: Path
) -> None:
    assert traced(number, tmp_path) == {"operations": number, "killed at": where}
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == left
