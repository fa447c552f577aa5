"""Damaged recordings, and recordings where others are: each is one message that names file, line and remedy."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from faults import Fault, listing
from streamproof.properties.cli import app
from streamproof.properties.report.recordings import recorded

HISTORY = '{"operator": "table_table_join", "options": {}}\n{"input": "left", "key": "a", "value": 1, "timestamp": 0}\n'
ANSWER = {"arrival": 0, "key": "a", "value": [1, None], "timestamp": 0}
RECORDED = {"name": "h0", "on": "reference", "grain": "arrival", "history": HISTORY, "seed": 0, "answer": []}
GOOD = json.dumps(RECORDED) + "\n"
ANEW = "; or record it again with `streamproof regress record`"


def line(**changed: Any) -> str:
    return json.dumps({**RECORDED, **changed}) + "\n"


def without(name: str) -> str:
    return json.dumps({one: value for one, value in RECORDED.items() if one != name}) + "\n"


def answer(**changed: Any) -> str:
    return line(answer=[{**ANSWER, **changed}])


def answer_without(name: str) -> str:
    return line(answer=[{one: value for one, value in ANSWER.items() if one != name}])


def damaged(name: str, content: str | bytes, says: str, number: int = 2) -> Fault:
    """A recording whose last line is damaged; a good one comes before it."""
    given = content if number == 1 else (GOOD.encode() + (content if isinstance(content, bytes) else content.encode()))
    return Fault(
        name,
        ("regress", "check", "r.jsonl"),
        rf"error: r\.jsonl: line {number}: {says}{ANEW}",
        given={"r.jsonl": given},
    )


LIST_OF_KNOWN = "use one of reference, spark, spark-native, duckdb, kafka, kafka-broker, protocol"
FAULTS = [
    damaged("empty", "", "empty: name a recording", 1),
    damaged("truncated", GOOD[:100], "not JSON: .* at column .*: write one JSON object a line"),
    damaged("not JSON", "hello\n", "not JSON: .*"),
    damaged("a byte order mark", "\ufeff" + GOOD, "begins with a byte order mark: .*", 1),
    damaged("not UTF-8", b'{"name": "\xff"}\n', "not UTF-8 at byte 10 of the line: save the file as UTF-8"),
    damaged("JSON of another type", "[1, 2]\n", "a line must be a JSON object, not list: .*"),
    damaged("NaN", '{"name": NaN}\n', "NaN isn't a JSON value: .*"),
    *(damaged(f"without {name}", without(name), f"without '{name}': add it") for name in RECORDED if name != "seed"),
    damaged("a name that is no text", line(name=["h"]), r"the name \['h'\] is not a string: .*"),
    damaged("an empty name", line(name=""), "the name is empty: .*"),
    damaged("on unknown", line(on="flink"), f"unknown on 'flink': {LIST_OF_KNOWN}"),
    damaged("a grain unknown", line(grain="hour"), "unknown grain 'hour': use one of arrival, batch, end"),
    damaged("a seed that is no number", line(seed="7"), "the seed '7' is not a whole number: .*"),
    damaged("a history that is no text", line(history={}), r"the history \{\} is not a string: .*"),
    damaged("a history that is none", line(history="{"), "history: line 1: not JSON: .*"),
    damaged("a history of an unknown operator", line(history='{"operator": "x"}'), "history: line 1: unknown oper.*"),
    damaged("an answer that is no list", line(answer={}), r"the answer \{\} is not a list: .*"),
    damaged("an answer of text", line(answer=["a"]), "answer 0: 'a' instead of an object: .*"),
    *(damaged(f"an answer without {name}", answer_without(name), f"answer 0: without '{name}': .*") for name in ANSWER),
    damaged("an answer with a key that is no text", answer(key=1), "answer 0: the key 1 is not a string or null: .*"),
    damaged("an answer with a window of one", answer(window=[1]), r"answer 0: the window \[1\] isn't \[start, end\].*"),
    damaged("an answer with a window of three", answer(window=[1, 2, 3]), r"answer 0: the window \[1, 2, 3\] isn't .*"),
    damaged("an answer with a window that is none", answer(window=5), "answer 0: the window 5 is not a list: .*"),
    damaged("an answer with a window that ends first", answer(window=[9, 1]), r"answer 0: the window \[9, 1\] is.*"),
    damaged("an answer with a timestamp of text", answer(timestamp="0"), "answer 0: the timestamp '0' is not a .*"),
    damaged("a truth value for an arrival", answer(arrival=True), "answer 0: the arrival True is not a whole .*"),
    damaged("a negative arrival", answer(arrival=-1), "answer 0: arrival -1 of a history with 1, .*"),
    damaged("an arrival beyond the history", answer(arrival=1), "answer 0: arrival 1 of a history with 1, .*"),
    damaged(
        "a batch beyond the history",
        line(grain="batch", answer=[{**ANSWER, "batch": 1}]),
        "answer 0: batch 1 of a history with 1, .*",
    ),
    damaged(
        "a dropped record at the end",
        line(grain="end", answer=[{"key": "a", "dropped": "late"}]),
        "answer 0: a dropped record in a result: .*",
    ),
    damaged(
        "a table with two rows of a key", line(grain="end", answer=[ANSWER] * 2), "the answer contains two rows of .*"
    ),
    Fault(
        "a folder that is called like a recording",
        ("regress", "check", "."),
        r"error: r\.jsonl: can't be read \(Is a directory\): .*",
        prepare=lambda folder: (folder / "r.jsonl").mkdir(),
    ),
    Fault(
        "a recording that is packed",
        ("regress", "check", "r.jsonl"),
        r"error: r\.jsonl: a gzip file, and not JSON Lines: .*",
        given={"r.jsonl": b"\x1f\x8b\x08\0"},
    ),
    Fault(
        "a recording that never ends",
        ("regress", "check", "/dev/zero"),
        r"error: /dev/zero: a device or a socket, which may never end: .*",
    ),
    Fault(
        "a recording where another is",
        ("regress", "record", "there", "table_table_join", "--histories", "3", "--seed", "2"),
        r"error: there/table_table_join-left\.jsonl: contains a recording on kafka with seed 1, not the "
        "recording with seed 2: choose another folder, or replace it with --force",
        given={"there/table_table_join-left.jsonl": line(on="kafka", seed=1)},
    ),
    Fault(
        "a recording where a file of the user's is",
        ("regress", "record", ".", "table_table_join", "--histories", "3"),
        r"error: table_table_join-outer\.jsonl: contains other content than a recording, .* --force",
        given={"table_table_join-outer.jsonl": "mine"},
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_damaged_recording_is_one_message_that_names_file_line_and_remedy(
    fault: Fault, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, content in fault.given.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    fault.prepare(tmp_path)
    before = {name: (tmp_path / name).is_file() and (tmp_path / name).read_bytes() for name in listing(tmp_path)}
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["streamproof", *fault.command])
    with pytest.raises(SystemExit) as ended:
        app.main()
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (fault.exit, "")
    assert re.fullmatch(fault.says + "\n", said.err), said.err
    assert listing(tmp_path) == list(before)
    assert all((tmp_path / name).read_bytes() == content for name, content in before.items() if content is not False)


def test_what_the_faults_are_made_of_is_readable_without_them(tmp_path: Path) -> None:
    (tmp_path / "r.jsonl").write_text(GOOD + answer(window=[0, 0]) + line(grain="batch", on="spark"))
    assert len(list(recorded(tmp_path / "r.jsonl"))) == 3
