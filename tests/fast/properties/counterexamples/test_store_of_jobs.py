"""How counterexamples of jobs are saved, read, kept while they are shrunk, and forgotten."""

from __future__ import annotations

import ast
import errno
import os
import re
from pathlib import Path

import pytest
from store_of_jobs_setup import CLICKS, PLAIN, counterexample, history, metadata, saved, store_in
from streamproof.properties.counterexamples import store
from streamproof.properties.counterexamples.of_jobs import saved_histories
from streamproof.properties.counterexamples.text import counterexample_text, versions
from streamproof.properties.generators.columns.histories.text import to_text
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.reference.core.errors import BadInput


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The folder of a counterexample of two rows that a check has saved."""
    _, path = store_in(tmp_path).violation(counterexample(history(2)), "1 of 300 histories differs.")
    assert path is not None
    return path


def test_a_counterexample_is_saved_as_history_text_and_metadata(tmp_path: Path) -> None:
    one = counterexample(history(2), run=RunOptions(mode="update", settings={"spark.sql.session.timeZone": "UTC"}))
    said, path = store_in(tmp_path).violation(one, "1 of 300 histories differs.")
    assert path is not None
    assert re.fullmatch(r"job-[0-9a-f]{12}", path.name)
    assert said.startswith(counterexample_text(one))
    assert f"Saved in {path}; the next check runs it first." in said
    assert {file.name for file in path.iterdir()} == {"counterexample.json", "counterexample.txt", "history.jsonl"}
    assert (path / "history.jsonl").read_text() == to_text(history(2), [CLICKS])
    assert (path / "counterexample.txt").read_text() == counterexample_text(one) + "\n"
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


def test_the_same_history_again_gets_todays_text_and_a_saved_one_keeps_its_seed(tmp_path: Path, path: Path) -> None:
    (back,) = saved(tmp_path)
    assert back.seed == 7
    other = counterexample(back, difference=Difference(None, [], [{"n": 5}]), seed=7)
    assert store_in(tmp_path, seed=8).violation(other, "1 of 1 still differs.")[1] == path
    assert "emits n 5." in (path / "counterexample.txt").read_text()
    assert metadata(path)["seed"] == 7
    assert [*tmp_path.iterdir()] == [path]


def test_a_folder_of_an_earlier_version_is_read_and_gets_metadata_when_it_is_found_again(
    tmp_path: Path, path: Path
) -> None:
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
def test_metadata_of_another_version_or_damaged_ones_hinder_no_replay(
    tmp_path: Path, path: Path, content: bytes
) -> None:
    (path / "counterexample.json").write_bytes(content)
    (back,) = saved(tmp_path)
    assert (back, back.seed) == (history(2), None)


def test_a_history_whose_folder_has_metadata_alone_is_refused_with_the_remedy(tmp_path: Path, path: Path) -> None:
    (path / "history.jsonl").unlink()
    with pytest.raises(BadInput, match=rf"^{path}/history\.jsonl: can't be read .*; or remove {path}, if the job's"):
        saved(tmp_path)


def test_a_history_is_on_disk_before_it_is_shrunk_and_forgotten_when_a_smaller_one_is_saved(tmp_path: Path) -> None:
    checking = store_in(tmp_path)
    kept = checking.keep(history(100), PLAIN)
    assert kept is not None
    assert saved(tmp_path) == [history(100)]
    assert not metadata(kept)["confirmed"]
    assert "The check ended before it had shrunk the history" in (kept / "counterexample.txt").read_text()
    _, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
    assert [*tmp_path.iterdir()] == [path]
    assert saved(tmp_path) == [history(2)]


def test_a_history_that_was_found_before_keeps_its_seed_before_it_is_shrunk_too(tmp_path: Path) -> None:
    for seed, saved_seed in ((None, 8), (5, 5)):
        kept = store_in(tmp_path / f"{seed}", seed=8).keep(history(3, seed=seed), PLAIN)
        assert kept is not None
        assert metadata(kept)["seed"] == saved_seed


def test_a_history_that_can_t_be_made_smaller_stays_and_is_confirmed(tmp_path: Path) -> None:
    checking = store_in(tmp_path)
    kept = checking.keep(history(2), PLAIN)
    _, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.", kept)
    assert path == kept is not None
    assert metadata(path)["confirmed"]
    assert (path / "counterexample.txt").read_text() == counterexample_text(counterexample(history(2))) + "\n"


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


@pytest.mark.parametrize("rows", [1, 100])
def test_a_history_that_can_t_be_saved_is_printed_whole(tmp_path: Path, rows: int) -> None:
    (tmp_path / "file").write_text("")
    checking = store_in(tmp_path / "file")
    assert checking.keep(history(rows), PLAIN) is None
    said = checking.failure(history(rows), PLAIN, "it fails")
    assert re.search(r"The history can't be saved in /.*/file/job-\w+ \(.+\): copy it from below", said)
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
    assert "(No space left on device): copy it from below." in said
    assert [*tmp_path.iterdir()] == [kept]
    assert saved(tmp_path) == [history(9)]


def test_where_there_is_no_folder_nothing_is_saved(tmp_path: Path) -> None:
    checking = store_in(None)
    assert checking.keep(history(9), PLAIN) is None
    said, path = checking.violation(counterexample(history(2)), "9 of 300 histories differ.")
    assert path is None
    assert "saved" not in said.lower()
