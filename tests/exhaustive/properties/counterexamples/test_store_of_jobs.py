"""How counterexamples of jobs are saved, read, kept while they are shrunk, and forgotten."""

from __future__ import annotations

from pathlib import Path

from store_of_jobs_setup import metadata, run, saved

SCRIPT = """
import os, sys
from itertools import count
from pathlib import Path
from store_of_jobs_setup import PLAIN, counterexample, die_at, history, store_in

counterexample(history(1)).text  # imports what it needs
for moment in count(1):
    if not os.fork():
        checking = store_in(Path(sys.argv[1]) / str(moment))
        kept = checking.keep(history(9), PLAIN)
        die_at(moment)
        checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
        os._exit(0)
    if os.wait()[1] == 0:
        break
print(moment)
"""
AT_ONCE = """
import os, sys
from pathlib import Path
from store_of_jobs_setup import PLAIN, counterexample, history, store_in

for process in range(4):
    if not os.fork():
        for round in range(10):
            checking = store_in(Path(sys.argv[1]))
            kept = checking.keep(history(20 + 10 * process + round), PLAIN)
            checking.violation(counterexample(history(1 + (process + round) % 8)), "", kept)
        os._exit(0)
print([os.wait()[1] for _ in range(4)])
"""


def test_a_process_that_is_killed_at_any_file_operation_leaves_whole_folders_and_loses_none(tmp_path: Path) -> None:
    moments = int(run(SCRIPT, tmp_path))
    assert moments > 20
    for moment in range(1, moments + 1):
        folder = tmp_path / str(moment)
        found = sorted(len(one.arrivals) for one in saved(folder))
        assert found in ([9], [2], [2, 9]), moment
        for path in folder.iterdir():
            assert not path.name.startswith("."), "what it left is swept"
            assert len([*path.iterdir()]) == 3
            assert metadata(path)["subject"] == "job"
    assert found == [2], "who isn't killed has replaced the larger one by the smaller"


def test_four_processes_save_into_one_folder_at_once(tmp_path: Path) -> None:
    assert run(AT_ONCE, tmp_path) == "[0, 0, 0, 0]\n"
    assert sorted(len(one.arrivals) for one in saved(tmp_path)) == [*range(1, 9)]
    assert {len([*path.iterdir()]) for path in tmp_path.iterdir()} == {3}
    assert len([*tmp_path.iterdir()]) == 8, "nothing hidden is left"
