"""Checks that run at the same time share a folder of counterexamples: each keeps what it finds, and reads whole ones.

The laws are stand-ins that histories break which have so many records: processes share a law, and so its smallest
counterexample too, which each of them comes to by way of larger ones that it takes away again.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from streamproof.properties.counterexamples.of_operators import saved

CHECKS, ROUNDS = 4, 6

CHECK = """
import json, os, sys
from collections.abc import Sequence
from pathlib import Path

from streamproof.properties.laws.base import Comparison
from streamproof.properties.laws.of_reference.judging import ReferenceLaw
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.checking import check
from streamproof.properties.outcomes.outcomes import Difference, Outcome


class FewRecords(ReferenceLaw):
    says, witness = "histories are short", "somebody"

    def __init__(self, least):
        self.least, self.name = least, f"fewer than {least} records"

    def goals(self, sample):
        return ()

    def outcomes(self, histories, played):
        return [Outcome.of_play(history.name, one) for history, one in zip(histories, played)]

    def differences(self, history, played, outcome):
        long = len(history.records) >= self.least
        return [Difference(0, [], [], "a", history.name)] if long else []


folder, checks, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
ready, go = os.pipe()
processes = []
for process in range(checks):
    out, written = os.pipe()
    if os.fork():
        os.close(written)
        processes.append(out)
        continue
    os.close(go)
    os.read(ready, 1)  # until all are there
    check.OF_REFERENCE = (FewRecords(1 + process % 2), FewRecords(3 + process))
    found = []
    try:
        for round in range(rounds):
            report = check.check_reference("table_table_join", FolderStore(folder), 20, 100 * process + round)
            found += [path.name for _, path in report.found]
        said = {"verdict": report.verdict, "found": found}
    except BaseException as error:
        said = {"verdict": repr(error), "found": found}
    os.write(written, json.dumps(said).encode())
    os._exit(0)
os.close(go)
for out in processes:
    print(os.fdopen(out).read())
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, object]]]:
    folder = tmp_path_factory.mktemp("counterexamples")
    words = [sys.executable, "-c", CHECK, str(folder), str(CHECKS), str(ROUNDS)]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, timeout=600)
    return folder, [json.loads(line) for line in ran.stdout.splitlines()]


def test_each_ends_with_its_verdict_and_no_error(folder: tuple[Path, list[dict[str, object]]]) -> None:
    assert [one["verdict"] for one in folder[1]] == ["violated"] * CHECKS


def test_what_each_reported_is_there_and_whole(folder: tuple[Path, list[dict[str, object]]]) -> None:
    there = {one.folder.name for one in saved(folder[0], "table_table_join")}
    for one in folder[1]:
        assert one["found"]
        assert set(one["found"]) <= there  # type: ignore[call-overload]


def test_nothing_else_is_left(folder: tuple[Path, list[dict[str, object]]]) -> None:
    found = list(saved(folder[0], "table_table_join"))
    laws = {one.law for one in found}
    assert laws == {f"fewer than {least} records" for least in (1, 2, *range(3, 3 + CHECKS))}
    assert all(one.confirmed for one in found), "what was asked again took the place of what was not"
    names = {path.name for path in (folder[0] / "table_table_join").iterdir()}
    assert names == {one.folder.name for one in found}
