"""A damaged counterexample ends a check with one message, whosever it is: it is neither passed over nor lost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from faults import Fault, assert_ends_as_it_must

FOLDER = ".streamproof/counterexamples/table_table_join/changelog-0123456789ab"
HISTORY = (
    '{"operator": "table_table_join", "options": {}, "clock": "batch"}\n'
    '{"input": "left", "key": "a", "value": 1, "timestamp": 0}\n'
)
METADATA = {
    "confirmed": True,
    "law": "changelog",
    "mutant": None,
    "operator": "table_table_join",
    "original": False,
    "seed": 0,
    "subject": "spark",
    "versions": "",
}
BY_REFERENCE = ("check", "table_table_join", "--only", "reference", "--histories", "4")
BY_SPARK = ("check", "table_table_join", "--only", "spark", "--histories", "4")


def damaged(name: str, command: tuple[str, ...], says: str, **files: str | bytes) -> Fault:
    content: dict[str, str | bytes] = {"history": HISTORY, "counterexample": json.dumps(METADATA), **files}
    names = {"history": "history.jsonl", "counterexample": "counterexample.json"}
    given = {f"{FOLDER}/{names[one]}": text for one, text in content.items()}
    return Fault(name, command, rf"error: {FOLDER}/{says}; or remove the folder {FOLDER}, a damaged .*", given=given)


FAULTS = [
    damaged("half a history, on Spark", BY_SPARK, r"history\.jsonl: line 2: not JSON: .*", history=HISTORY[:100]),
    damaged("half a history, by the reference", BY_REFERENCE, r"history\.jsonl: line 2: .*", history=HISTORY[:100]),
    damaged("an empty history", BY_REFERENCE, r"history\.jsonl: empty: .*", history=""),
    damaged("metadata that are not UTF-8", BY_REFERENCE, r"counterexample\.json: not UTF-8 .*", counterexample=b"\xff"),
    damaged("half of the metadata", BY_SPARK, r"counterexample\.json: not JSON .*", counterexample='{"law": "ch'),
    damaged(
        "metadata of another check",
        BY_REFERENCE,
        r"counterexample\.json: subject is 'kafka', not spark or reference or job: .*",
        counterexample=json.dumps({**METADATA, "subject": "kafka"}),
    ),
    damaged(
        "metadata with an original that isn't there",
        BY_REFERENCE,
        r"original\.jsonl: can't be read \(No such file or directory\): .*",
        counterexample=json.dumps({**METADATA, "original": True}),
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_damaged_counterexample_ends_a_check_with_its_file_and_the_remedy(fault: Fault, tmp_path: Path) -> None:
    assert_ends_as_it_must(fault, tmp_path)
