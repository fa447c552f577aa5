"""How counterexamples of jobs are saved, read, kept while they are shrunk, and forgotten."""

from __future__ import annotations

import ast
import errno
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.counterexamples import store
from streamproof.properties.counterexamples.of_jobs import JobCounterexample, JobStore, saved_histories
from streamproof.properties.counterexamples.text import versions
from streamproof.properties.generators.columns.histories.text import to_text
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.laws.expected.comparison import RowDifference
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.reference.core.errors import BadInput

CLICKS = resolve(Input("user string, at timestamp, amount decimal(5,2) not null", key="user")).source
PLAIN = RunOptions()


def history(rows: int, **more: Any) -> JobHistory:
    values = {"at": datetime(2024, 1, 15, 12, tzinfo=UTC), "amount": Decimal("1.00")}
    return JobHistory((tuple(Arrival("events", {"user": f"{row}", **values}) for row in range(rows)),), **more)


def store_in(folder: Path | None, seed: int = 7) -> JobStore:
    return JobStore(folder, [CLICKS], job="visits (shop.py:3)", oracle="the SQL statement", seed=seed)


def counterexample(of: JobHistory, **more: Any) -> JobCounterexample:
    given: dict[str, Any] = {"difference": RowDifference(0, [{"n": 1}], []), "run": PLAIN, "seed": 7, **more}
    return JobCounterexample(
        job="visits (shop.py:3)",
        oracle="the SQL statement",
        history=of,
        sources=[CLICKS],
        expected=Expected("batches", [[{"n": 1}]]),
        emitted=[[]],
        unique=None,
        **given,
    )


def saved(folder: Path) -> list[JobHistory]:
    return saved_histories((), folder, [CLICKS])


def metadata(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "counterexample.json").read_text(encoding="utf-8"))
    return read


def test_a_counterexample_is_saved_as_history_text_and_metadata(tmp_path: Path) -> None:
    one = counterexample(history(2), run=RunOptions(mode="update", settings={"spark.sql.session.timeZone": "UTC"}))
    said, path = store_in(tmp_path).violation(one, "1 of 300 histories differs.")
    assert path is not None
    assert re.fullmatch(r"job-[0-9a-f]{12}", path.name)
    assert said.startswith(one.text)
    assert f"Saved in {path}, and run first the next time." in said
    assert sorted(file.name for file in path.iterdir()) == [
        "counterexample.json",
        "counterexample.txt",
        "history.jsonl",
    ]
    assert (path / "history.jsonl").read_text() == to_text(history(2), [CLICKS])
    assert (path / "counterexample.txt").read_text() == one.text + "\n"
    assert metadata(path) == {
        "law": "the SQL statement",
        "subject": "job",
        "job": "visits (shop.py:3)",
        "confirmed": True,
        "seed": 7,
        "versions": versions(),
        "trigger": "default",
        "mode": "update",
        "settings": {"spark.sql.session.timeZone": "UTC"},
        "way": {},
    }


def test_what_violates_an_invariant_says_which_and_how_the_query_was_run(tmp_path: Path) -> None:
    of_crash = history(1, variation={"law": "a crash", "given": [[0, True, "before its output"]]})
    run = RunOptions(crash_in=(Crash(0, True, "before its output"),), seconds=5)
    _, path = store_in(tmp_path).violation(counterexample(of_crash, run=run, difference=None), "1 of 9 differs.")
    assert path is not None
    assert (metadata(path)["law"], metadata(path)["confirmed"]) == ("a crash", False)
    assert metadata(path)["way"] == {"crash_in": [[0, True, "before its output"]]}
    (back,) = saved(tmp_path)
    assert back.variation == of_crash.variation


def test_what_makes_a_query_fail_is_saved_as_any_counterexample(tmp_path: Path) -> None:
    said = store_in(tmp_path).failure(history(1), PLAIN, "visits: it fails")
    (path,) = tmp_path.iterdir()
    assert (path / "counterexample.txt").read_text() == said.partition("\n\nSaved in")[0] + "\n"
    assert metadata(path)["confirmed"]
    assert saved(tmp_path) == [history(1)]


def test_the_same_history_again_gets_todays_text_and_a_saved_one_keeps_its_seed(tmp_path: Path) -> None:
    _, path = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    (back,) = saved(tmp_path)
    assert back.seed == 7
    other = counterexample(back, difference=RowDifference(None, [], [{"n": 5}]), seed=7)
    assert store_in(tmp_path, seed=8).violation(other, "1 of 1 still differs.")[1] == path
    assert path is not None
    assert "emits n 5." in (path / "counterexample.txt").read_text()
    assert metadata(path)["seed"] == 7
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_of_an_earlier_version_is_read_and_gets_metadata_when_it_is_found_again(tmp_path: Path) -> None:
    _, path = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    assert path is not None
    (path / "counterexample.json").unlink()
    unshrunk = tmp_path / f"{path.name}.unshrunk"
    unshrunk.mkdir()
    (unshrunk / "history.jsonl").write_text(to_text(history(9), [CLICKS]))
    back = saved(tmp_path)
    assert back == [history(2), history(9)]
    assert [one.seed for one in back] == [None, None]
    assert store_in(tmp_path).violation(counterexample(history(2)), "1 of 2 still differ.")[1] == path
    assert metadata(path)["law"] == "the SQL statement"


@pytest.mark.parametrize(
    "content", [b"", b'{"law": "chan', b"[]", b"\xff\xfe", b"{}", b'{"seed": true}', b'{"seed": "7", "colour": 1}']
)
def test_metadata_of_another_version_or_damaged_ones_hinder_no_replay(tmp_path: Path, content: bytes) -> None:
    _, path = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    assert path is not None
    (path / "counterexample.json").write_bytes(content)
    (back,) = saved(tmp_path)
    assert (back, back.seed) == (history(2), None)


def test_what_somebody_changed_is_not_overwritten(tmp_path: Path) -> None:
    _, path = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    assert path is not None
    (path / "history.jsonl").write_text(to_text(history(3), [CLICKS]))
    said, second = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    assert second == path.with_name(f"{path.name}-2")
    assert f"Saved in {second}," in said
    assert saved(tmp_path) == [history(3), history(2)]


def test_a_history_whose_folder_has_metadata_alone_is_refused_with_the_remedy(tmp_path: Path) -> None:
    _, path = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    assert path is not None
    (path / "history.jsonl").unlink()
    with pytest.raises(BadInput, match=rf"^{path}/history\.jsonl: can't be read .*; or remove {path}, if the job's"):
        saved(tmp_path)


# While it is shrunk.


def test_a_history_is_on_disk_before_it_is_shrunk_and_forgotten_when_a_smaller_one_is_saved(tmp_path: Path) -> None:
    checking = store_in(tmp_path)
    kept = checking.keep(history(100), PLAIN)
    assert kept is not None
    assert saved(tmp_path) == [history(100)]
    assert not metadata(kept)["confirmed"]
    assert "The check ended before it had shrunk it" in (kept / "counterexample.txt").read_text()
    _, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
    assert [*tmp_path.iterdir()] == [path]
    assert saved(tmp_path) == [history(2)]


def test_a_history_that_can_t_be_made_smaller_stays_and_is_confirmed(tmp_path: Path) -> None:
    checking = store_in(tmp_path)
    kept = checking.keep(history(2), PLAIN)
    _, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
    assert path == kept is not None
    assert metadata(path)["confirmed"]
    assert (path / "counterexample.txt").read_text() == counterexample(history(2)).text + "\n"


def test_what_another_check_saved_is_neither_changed_nor_forgotten(tmp_path: Path) -> None:
    _, path = store_in(tmp_path).violation(counterexample(history(9)), "1 of 300 histories differs.")
    assert path is not None
    before = {file: file.read_text() for file in path.iterdir()}
    checking = store_in(tmp_path, seed=8)
    kept = checking.keep(history(9), PLAIN)
    checking.forget(kept)
    checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
    assert {file: file.read_text() for file in path.iterdir()} == before
    assert {len(one.arrivals) for one in saved(tmp_path)} == {9, 2}


def test_one_that_agrees_alone_is_forgotten(tmp_path: Path) -> None:
    checking = store_in(tmp_path)
    checking.forget(checking.keep(history(9), PLAIN))
    assert [*tmp_path.iterdir()] == []


@pytest.mark.parametrize("rows", [1, 100])
def test_a_history_that_can_t_be_saved_is_printed_whole(tmp_path: Path, rows: int) -> None:
    (tmp_path / "file").write_text("")
    checking = store_in(tmp_path / "file")
    assert checking.keep(history(rows), PLAIN) is None
    said = checking.failure(history(rows), PLAIN, "it fails")
    assert re.search(r"It can't be saved in /.*/file/job-\w+ \(.+\): keep what stands below", said)
    (back,) = saved_histories(ast.literal_eval(said.partition("    examples=")[2]), None, [CLICKS])
    assert back == history(rows)


@pytest.mark.parametrize("file", ["history.jsonl", "counterexample.txt", "counterexample.json"])
def test_where_the_disk_is_full_nothing_is_left_and_the_larger_history_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    checking, write = store_in(tmp_path), store._write
    kept = checking.keep(history(9), PLAIN)

    def until_full(path: Path, text: str) -> None:
        if path.name == file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(path, text)

    monkeypatch.setattr(store, "_write", until_full)
    said, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
    assert path is None
    assert "(No space left on device): keep what stands below." in said
    assert [*tmp_path.iterdir()] == [kept]
    assert saved(tmp_path) == [history(9)]


def test_where_there_is_no_folder_nothing_is_saved(tmp_path: Path) -> None:
    checking = store_in(None)
    assert checking.keep(history(9), PLAIN) is None
    said, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.")
    assert path is None
    assert "saved" not in said.lower()


# Others at the same time, and killed processes.

SCRIPT = """
import os, signal, sys
from itertools import count
from pathlib import Path
from test_store_of_jobs import PLAIN, counterexample, history, store_in

def at(moment):
    left = moment
    def hook(event, arguments):
        nonlocal left
        if event.startswith(("os.", "shutil.", "tempfile.", "open", "fcntl.")):
            left -= 1
            if not left:
                os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)

counterexample(history(1)).text  # imports what it needs
for moment in count(1):
    if not os.fork():
        checking = store_in(Path(sys.argv[1]) / str(moment))
        kept = checking.keep(history(9), PLAIN)
        at(moment)
        checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
        os._exit(0)
    if os.wait()[1] == 0:
        break
print(moment)
"""
AT_ONCE = """
import os, sys
from pathlib import Path
from test_store_of_jobs import PLAIN, counterexample, history, store_in

for process in range(4):
    if not os.fork():
        for round in range(10):
            checking = store_in(Path(sys.argv[1]))
            kept = checking.keep(history(20 + 10 * process + round), PLAIN)
            checking.violation(counterexample(history(1 + (process + round) % 8)), "", kept)
        os._exit(0)
print([os.wait()[1] for _ in range(4)])
"""


def run(script: str, folder: Path) -> str:
    return subprocess.run(
        [sys.executable, "-c", script, os.fspath(folder)],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parent)},
    ).stdout


@pytest.mark.exhaustive
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


@pytest.mark.exhaustive
def test_four_processes_save_into_one_folder_at_once(tmp_path: Path) -> None:
    assert run(AT_ONCE, tmp_path) == "[0, 0, 0, 0]\n"
    assert sorted(len(one.arrivals) for one in saved(tmp_path)) == [*range(1, 9)]
    assert {len([*path.iterdir()]) for path in tmp_path.iterdir()} == {3}
    assert len([*tmp_path.iterdir()]) == 8, "nothing hidden is left"


def test_a_saved_history_has_no_seed_in_its_text() -> None:
    assert to_text(replace(history(1), seed=7), [CLICKS]) == to_text(history(1), [CLICKS])
