from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.counterexamples import of_operators, store
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_operators import FolderStore, saved
from streamproof.properties.counterexamples.store import METADATA, Refresh, put, remove_folder, sweep
from streamproof.properties.laws.all import Subject
from streamproof.properties.witnesses.run_options import Crash, RunOptions
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History, parse_history

HEADER = '{"operator": "table_table_join", "options": {}, "clock": "batch"}\n'
RECORD = '{"input": "left", "key": "a", "value": %d, "timestamp": 0}\n'


def history(value: int = 0) -> History:
    return parse_history(HEADER + RECORD % value)


def known(value: int = 0, **changed: Any) -> Counterexample[History]:
    return replace(Counterexample(law="changelog", history=history(value), seed=7, versions="v"), **changed)


def save(folder: Path, value: int = 0, **changed: Any) -> Path:
    return FolderStore(folder).write_history(known(value, **changed), {"counterexample.txt": f"{value}\n"})


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "table_table_join").iterdir())


# Names, and what is there already.


def test_a_folder_is_named_by_its_law_and_twelve_digits_of_its_content(tmp_path: Path) -> None:
    path = save(tmp_path, law="table at every cut")
    assert path == tmp_path / "table_table_join" / "table-at-every-cut-2502da81116f"


@pytest.mark.parametrize(
    "changed",
    [{"law": "state"}, {"subject": "reference"}, {"mutant": "m"}, {"original": history(5)}, {"original": history()}],
)
def test_whatever_makes_a_counterexample_another_gives_it_a_folder_of_its_own(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    assert save(tmp_path) != save(tmp_path, **changed)
    assert len(list(saved(tmp_path, "table_table_join"))) == 2


def test_what_makes_a_counterexample_another_makes_its_name_another() -> None:
    way = RunOptions(stop_after=(1,))
    others: list[dict[str, Any]] = [
        {"law": "state"},
        {"subject": "reference"},
        {"mutant": "m"},
        {"original": history()},
        {"original": history(5)},
        {"way": way},
    ]
    assert len({known().name, known(1).name, *(known(**one).name for one in others)}) == 2 + len(others)
    assert known(seed=8, confirmed=False, sentence="violated").name == known().name


def test_the_same_one_again_leaves_what_is_there(tmp_path: Path) -> None:
    first, second = FolderStore(tmp_path), FolderStore(tmp_path)
    path, again = first.write_history(known(), {}), second.write_history(known(seed=8), {})
    assert (path, len(first._written), second._written) == (again, 1, {})
    assert json.loads((path / "counterexample.json").read_text())["seed"] == 7
    assert names(tmp_path) == [path.name]


def test_what_somebody_changed_is_not_overwritten(tmp_path: Path) -> None:
    path = save(tmp_path)
    (path / "history.jsonl").write_text(history(9).to_text())
    second = save(tmp_path)
    assert second == path.with_name(f"{path.name}-2")
    assert [found.history.records[0].value for found in saved(tmp_path, "table_table_join")] == [9, 0]
    assert save(tmp_path) == second, "and the third time it is there"


def test_a_file_of_that_name_is_not_overwritten(tmp_path: Path) -> None:
    path = save(tmp_path)
    remove_folder(path)
    path.write_text("mine")
    assert save(tmp_path).name == f"{path.name}-2"
    assert path.read_text() == "mine"


# What is read back.


def test_history_and_metadata_are_read_back(tmp_path: Path) -> None:
    before = known(2, mutant="forgetful", confirmed=False, original=history(3), subject="reference")
    path = FolderStore(tmp_path).write_history(before, {})
    assert sorted(file.name for file in path.iterdir()) == ["counterexample.json", "history.jsonl", "original.jsonl"]
    assert list(saved(tmp_path, "table_table_join")) == [replace(before, folder=path)]


def test_the_metadata_are_json_with_sorted_keys(tmp_path: Path) -> None:
    text = (save(tmp_path) / "counterexample.json").read_text(encoding="utf-8")
    assert list(json.loads(text).items()) == [
        ("confirmed", True),
        ("law", "changelog"),
        ("mutant", None),
        ("operator", "table_table_join"),
        ("original", False),
        ("seed", 7),
        ("subject", "spark"),
        ("versions", "v"),
        ("way", None),
    ]


@pytest.mark.parametrize(
    "way",
    [
        RunOptions(stop_after=(1, 1)),
        RunOptions(crash_in=(Crash(0), Crash(3), Crash(3))),
        RunOptions(crash_in=(Crash(1), Crash(1, False, "before its output"))),
        RunOptions(partitions=5, state_groups=3),
        RunOptions(read_state=True),
    ],
)
def test_the_way_in_which_a_history_was_run_again_is_read_back(tmp_path: Path, way: RunOptions) -> None:
    save(tmp_path, law="restart", way=way)
    (found,) = saved(tmp_path, "table_table_join")
    assert found.way == way


def test_one_of_a_version_that_saved_no_way_is_read_and_is_the_same_one(tmp_path: Path) -> None:
    path = save(tmp_path, law="restart")
    content = json.loads((path / METADATA).read_text())
    del content["way"]
    (path / METADATA).write_text(json.dumps(content))
    (found,) = saved(tmp_path, "table_table_join")
    assert found.way is None
    assert save(tmp_path, law="restart") == path


@pytest.mark.parametrize(
    ("name", "clock", "law", "subject"),
    [
        ("changelog-3-records", "batch", "changelog", "spark"),
        ("table-at-every-cut-12-records", "batch", "table at every cut", "spark"),
        ("fold-is-meaning-1-records", "stream_time", "fold is meaning", "reference"),
    ],
)
def test_a_folder_of_an_earlier_version_is_read(
    tmp_path: Path, name: str, clock: str, law: str, subject: Subject
) -> None:
    path = tmp_path / "table_table_join" / name
    path.mkdir(parents=True)
    before = replace(history(), clock=clock)
    (path / "history.jsonl").write_text(before.to_text())
    assert list(saved(tmp_path, "table_table_join")) == [
        Counterexample(law=law, history=before, subject=subject, folder=path)
    ]


DAMAGED_METADATA = {
    "empty": (b"", "not JSON"),
    "half": (b'{"law": "chan', "not JSON"),
    "a list": (b"[]", "list instead of an object"),
    "not UTF-8": (b"\xff\xfe", "not UTF-8 at byte 0"),
    "nested": (b"[" * 100_000, "not JSON"),
    "a field missing": (b'{"law": "changelog"}', "without the field 'subject'"),
    "a law that is no text": (b'{"law": 1}', "law is 1, and must be str"),
}


@pytest.mark.parametrize("case", DAMAGED_METADATA)
def test_damaged_metadata_are_refused_by_file_with_the_remedy(tmp_path: Path, case: str) -> None:
    path = save(tmp_path)
    content, says = DAMAGED_METADATA[case]
    (path / "counterexample.json").write_bytes(content)
    with pytest.raises(BadInput) as refused:
        list(saved(tmp_path, "table_table_join"))
    assert str(refused.value).startswith(f"{path / 'counterexample.json'}: {says}")
    assert str(refused.value).endswith(f"; or remove the folder {path}, a damaged counterexample")


def test_metadata_that_never_end_are_refused(tmp_path: Path) -> None:
    file = save(tmp_path) / "counterexample.json"
    file.unlink()
    file.symlink_to("/dev/zero")
    with pytest.raises(BadInput, match="a device or a socket, which may never end"):
        list(saved(tmp_path, "table_table_join"))


def test_others_may_read_what_the_umask_lets_them(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        assert save(tmp_path).stat().st_mode & 0o777 == 0o755
    finally:
        os.umask(before)


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"subject": "kafka"}, "subject is 'kafka', not spark or reference"),
        ({"operator": "table_aggregate"}, "operator is 'table_aggregate', not table_table_join"),
        ({"seed": True}, "seed is True, and must be int or null"),
        ({"confirmed": 1}, "confirmed is 1, and must be bool"),
        ({"mutant": []}, "mutant is \\[\\], and must be str or null"),
        ({"original": True}, "original.jsonl: can't be read"),
        ({"way": [1]}, r"way: \[1\] isn't valid as run options: use an object with some of stop_after, crash_in, "),
        ({"way": {"stop": [1]}}, "way: an option 'stop' isn't valid as run options"),
        ({"way": {"stop_after": 1}}, "way: stop_after is 1, and must be a list of batches, numbers from 0 on"),
        ({"way": {"crash_in": [-1]}}, r"way: crash_in is \[-1\], and must be a list of batches"),
        ({"way": {"crash_in": [True]}}, r"way: crash_in is \[True\]"),
        ({"way": {"crash_in": [[1, True, "later"]]}}, r"way: crash_in is \[\[1, True, 'later'\]\]"),
        ({"way": {"partitions": 0}}, "way: partitions is 0, and must be a number from 1 on, or null"),
        ({"way": {"read_state": 1}}, "way: read_state is 1, and must be true or false"),
    ],
)
def test_wrong_metadata_are_refused_with_the_remedy(tmp_path: Path, changed: dict[str, Any], says: str) -> None:
    file = save(tmp_path, law="restart") / "counterexample.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed}))
    with pytest.raises(BadInput, match=says):
        list(saved(tmp_path, "table_table_join"))


OF_ANOTHER_VERSION = "streamproof 0.0.7, pyspark 4.3.0, Python 3.11.2"


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"law": None}, "law is None, and must be str: write it as it was"),
        ({"subject": "flink"}, "subject is 'flink', not spark or reference: write it as it was"),
    ],
)
def test_a_format_of_another_version_is_named_as_that_and_new_ones_are_kept(
    tmp_path: Path, changed: dict[str, Any], says: str
) -> None:
    path = save(tmp_path)
    file = path / "counterexample.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **changed, "versions": OF_ANOTHER_VERSION}))
    with pytest.raises(BadInput) as refused:
        list(saved(tmp_path, "table_table_join"))
    remedy = f"or remove the folder {path}, a counterexample of streamproof 0.0.7, which this version can't read"
    assert str(refused.value) == f"{file}: {says}; {remedy}"

    before = file.read_bytes()
    assert save(tmp_path, 1) not in (path, save(tmp_path))
    assert file.read_bytes() == before
    remove_folder(path)
    assert sorted(one.history.records[0].value for one in saved(tmp_path, "table_table_join")) == [0, 1]


def test_metadata_with_more_than_this_version_knows_are_read(tmp_path: Path) -> None:
    file = save(tmp_path) / "counterexample.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "versions": OF_ANOTHER_VERSION, "colour": "red"}))
    (found,) = saved(tmp_path, "table_table_join")
    assert found.versions == OF_ANOTHER_VERSION


@pytest.mark.parametrize("damage", ["{", "", "gone"])
def test_a_damaged_history_is_refused_by_file_with_the_remedy(tmp_path: Path, damage: str) -> None:
    path = save(tmp_path)
    (path / "history.jsonl").unlink() if damage == "gone" else (path / "history.jsonl").write_text(damage)
    with pytest.raises(BadInput, match=rf"^{path}/history\.jsonl: .*; or remove the folder {path}, a damaged"):
        list(saved(tmp_path, "table_table_join"))


def test_a_history_of_another_operator_is_refused(tmp_path: Path) -> None:
    path = save(tmp_path)
    (tmp_path / "table_aggregate").mkdir()
    path.rename(tmp_path / "table_aggregate" / path.name)
    with pytest.raises(BadInput, match="a history of table_table_join among those of table_aggregate"):
        list(saved(tmp_path, "table_aggregate"))


def test_what_is_no_counterexample_is_passed_over(tmp_path: Path) -> None:
    save(tmp_path)
    (tmp_path / "table_table_join" / "notes.txt").write_text("mine")
    (tmp_path / "table_table_join" / "empty").mkdir()
    assert len(list(saved(tmp_path, "table_table_join"))) == 1


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_where_nothing_is_saved_nothing_is_read(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    assert list(saved(tmp_path / folder, "table_table_join")) == []


# Interruptions, and others at the same time.


def test_what_a_dead_process_left_is_swept_and_what_a_live_one_writes_is_not(tmp_path: Path) -> None:
    parent = tmp_path / "table_table_join"
    (parent / ".writing-dead").mkdir(parents=True)
    (parent / ".writing-dead" / "history.jsonl").write_text("{")
    (parent / ".writing-12-0a1b2c3d").write_text("half")
    with store._hidden(parent) as live:
        sweep(parent)
        assert names(tmp_path) == [live.name]
    assert names(tmp_path) == []


def test_one_that_is_taken_away_is_gone_and_nothing_is_left(tmp_path: Path) -> None:
    path = save(tmp_path)
    remove_folder(path)
    remove_folder(path)
    remove_folder(tmp_path / "nowhere" / "x")
    assert names(tmp_path) == []


def test_one_that_is_taken_away_between_is_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path)

    def gone(folder: Path, *others: object) -> bool:
        remove_folder(folder)
        return False

    monkeypatch.setattr(store, "_is_same", gone)
    again = FolderStore(tmp_path)
    assert (again.write_history(known(), {}), len(again._written)) == (path, 1)


def test_what_another_process_has_found_meanwhile_is_not_forgotten(tmp_path: Path) -> None:
    both: list[tuple[Refresh, bool]] = [("unconfirmed", True), ("never", False)]
    for refresh, stays in both:
        mine, theirs = FolderStore(tmp_path / refresh), FolderStore(tmp_path / refresh)
        path = mine.write_history(known(confirmed=False), {}, "never")
        theirs.write_history(known(), {}, refresh)
        theirs.forget(path)
        mine.forget(path)
        assert path.exists() == stays


def test_one_that_is_taken_away_while_it_is_read_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = of_operators.read_history

    def read_and_gone(path: Path) -> History:
        found = read(path)
        remove_folder(path.parent)
        return found

    save(tmp_path)
    monkeypatch.setattr(of_operators, "read_history", read_and_gone)
    assert list(saved(tmp_path, "table_table_join")) == []


@pytest.mark.parametrize("refresh", ["never", "unconfirmed", "always"])
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("now", [True, False])
def test_the_same_one_gets_todays_metadata_and_text_when_they_are_asked_for(
    tmp_path: Path, before: bool, now: bool, refresh: Refresh
) -> None:
    for confirmed, text in ((before, "before"), (now, "now")):
        files = {"history.jsonl": "the same", "counterexample.txt": text}
        path, _ = put(tmp_path / "name", files, {"confirmed": confirmed}, refresh=refresh)
    is_refreshed = refresh == "always" or (refresh == "unconfirmed" and not (before and now))
    assert (path / "counterexample.txt").read_text() == ("now" if is_refreshed else "before")
    assert json.loads((path / METADATA).read_text()) == {"confirmed": now if is_refreshed else before}
    assert [path] == [*tmp_path.iterdir()]
