"""Counterexamples of operators, saved by several processes at once, and by processes that are killed."""

from __future__ import annotations

from pathlib import Path

from store_of_jobs_setup import run
from streamproof.properties.counterexamples.of_operators import saved
from streamproof.properties.counterexamples.store import METADATA


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "table_table_join").iterdir())


SAVING = """
import os, sys
from itertools import count
from pathlib import Path
from store_of_jobs_setup import die_at
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.counterexamples.store import remove_folder
from streamproof.reference.core.history import parse_history

HEADER = '{"operator": "table_table_join", "options": {}}\\n'
RECORD = '{"input": "left", "key": "a", "value": %d, "timestamp": 0}\\n'

def save(folder, value):
    one = Counterexample(law="changelog", history=parse_history(HEADER + RECORD % value))
    return FolderStore(folder).write_history(one, {"counterexample.txt": "f" * 10_000})
"""
FOUR_AT_ONCE = f"""{SAVING}
ready, go = os.pipe()
for process in range(4):
    if not os.fork():
        os.close(go)
        os.read(ready, 1)
        shared = list(range(1000, 1010))
        for value in [*range(50 * process, 50 * process + 50), *(shared if process % 2 else shared[::-1])]:
            save(Path(sys.argv[1]), value)
        os._exit(0)
os.close(go)
print([os.wait()[1] for _ in range(4)])
"""
KILLED = f"""{SAVING}
for moment in count(1):
    if not os.fork():
        folder = Path(sys.argv[1]) / str(moment)
        larger = save(folder, 1)
        die_at(moment)
        smaller = save(folder, 2)
        remove_folder(larger)
        os._exit(0)
    if os.wait()[1] == 0:
        break
print(moment)
"""


def test_two_hundred_saved_by_four_processes_at_once_are_all_there(tmp_path: Path) -> None:
    assert run(FOUR_AT_ONCE, tmp_path) == "[0, 0, 0, 0]\n"
    found = [found.history.records[0].value for found in saved(tmp_path, "table_table_join")]
    assert sorted(found) == [*range(200), *range(1000, 1010)]
    assert {len(list(path.iterdir())) for path in (tmp_path / "table_table_join").iterdir()} == {3}
    assert len(names(tmp_path)) == 210, "nothing hidden is left"


def test_a_process_that_is_killed_at_any_file_operation_leaves_whole_folders_and_loses_none(tmp_path: Path) -> None:
    moments = int(run(KILLED, tmp_path))
    assert moments > 20
    for moment in range(1, moments + 1):
        found = [found.history.records[0].value for found in saved(tmp_path / str(moment), "table_table_join")]
        assert found in ([1], [2], [1, 2], [2, 1]), moment
        assert not any(name.startswith(".") for name in names(tmp_path / str(moment))), "what it left is swept"
        for path in (tmp_path / str(moment) / "table_table_join").iterdir():
            assert {file.name for file in path.iterdir()} == {METADATA, "counterexample.txt", "history.jsonl"}
            assert len((path / "counterexample.txt").read_text()) == 10_000
    assert found == [2], "who isn't killed has replaced the larger one by the smaller"
