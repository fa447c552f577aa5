"""The command `sinks`: what it prints of the cells, how it exits, and what it refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from commands import Command, caller
from streamproof.properties.checking.sinks import table
from streamproof.properties.checking.sinks.contracts import SinkContract
from streamproof.properties.checking.sinks.faults import Fault
from streamproof.properties.checking.sinks.table import Asked, Cell, PlayedFault
from streamproof.properties.system.installed.requirements import installed

DOUBLED = PlayedFault({"doubled": 34}, {"doubled": "batch 1: a"})
Found = Callable[[str, str], tuple[PlayedFault | None, PlayedFault | None]]


@pytest.fixture
def sinks(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return caller(monkeypatch, capsys, "sinks")


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Callable[[Found], None]:
    """Let cells be found without Spark."""

    def let(found: Found) -> None:
        def play(asked: Asked, cells: list[Cell], show: object, save: object) -> None:
            cells[:] = [
                Cell(sink, fault, unfit=why)
                if (why := fault.unfit(sink))
                else Cell(sink, fault, *found(sink.name, fault.name))
                for sink in asked.sinks
                for fault in asked.faults
            ]

        monkeypatch.setattr(table, "play", play)

    return let


def test_a_doubled_cell_has_its_smallest_history_its_cause_and_its_command(
    sinks: Command, played: Callable[[Found], None]
) -> None:
    played(lambda sink, fault: (DOUBLED, DOUBLED))
    said = sinks("append", "--fault", "repeated-batch")
    assert said.code == 0, "it promises each row at least once"
    assert "append, repeated-batch: doubled 34; it promises at least once" in said.out
    assert "  the smallest history doubled: batch 1: a\n" in said.out
    assert "Spark runs the batch again" in said.out
    assert "https://spark.apache.org" in said.out
    assert "  streamproof sinks append --fault repeated-batch\n" in said.out
    assert "1 of 1 cells were played, 1 of them with a simulated and a real fault: 1 agree, 0 differ." in said.out


def test_a_broken_promise_exits_1_and_no_played_cell_2(sinks: Command, played: Callable[[Found], None]) -> None:
    played(lambda sink, fault: (DOUBLED, None))
    broken = sinks("overwrite", "append", "--fault", "repeated-batch")
    assert (broken.code, "1 break a documented promise" in broken.out) == (1, True)
    played(lambda sink, fault: (None, PlayedFault(unmet="no process can be traced")))
    nothing = sinks("overwrite", "--fault", "repeated-batch")
    assert nothing.code == 2
    assert "Not played, no process can be traced: overwrite repeated-batch." in nothing.out
    played(lambda sink, fault: (PlayedFault(), PlayedFault()))
    assert sinks("overwrite", "--fault", "repeated-batch").code == 0


def test_ways_that_differ_are_named(sinks: Command, played: Callable[[Found], None]) -> None:
    played(lambda sink, fault: (PlayedFault(), DOUBLED))
    said = sinks("append", "--fault", "zombie")
    assert "  by hand: kept; killed: doubled\n" in said.out
    assert "D 34?" in said.out
    within = sinks("append", "--fault", "death-within-write").out
    assert "  the same defect in public: https://issues.apache.org/jira/browse/SPARK-29037\n" in within
    assert "  by hand: kept; killed: doubled: an exception lets Spark abort the job" in within
    assert "getAllCommittedTaskPaths" in within
    assert "0 agree, 1 differ" in said.out
    assert "The slowest" not in said.out
    played(lambda sink, fault: (replace(DOUBLED, cpu_seconds=7.6), None))
    slowest = "The slowest, streamproof sinks append --fault zombie, took 8 CPU seconds."
    assert sinks("append", "--fault", "zombie").out.endswith(f"{slowest}\n")


def test_the_table_has_a_row_for_each_sink_and_a_number_for_each_fault(
    sinks: Command, played: Callable[[Found], None]
) -> None:
    played(lambda sink, fault: (DOUBLED if sink == "append" else PlayedFault(), None))
    said = sinks()
    (row,) = [line for line in said.out.splitlines() if line.startswith("│ append ")]
    assert row.count("D 34") == 12
    assert "1: death-before-write, 2: death-within-write" in said.out
    assert "Not played, its query keeps no state: file-parquet death-before-upload" in said.out


def test_the_json_has_each_cell_and_what_was_asked(
    sinks: Command, played: Callable[[Found], None], tmp_path: Path
) -> None:
    played(lambda sink, fault: (DOUBLED, None))
    file = tmp_path / "sinks.json"
    sinks("append", "--fault", "zombie", "--histories", 500, "--seed", 3, "--json", file)
    content = json.loads(file.read_text())
    assert (content["histories"], content["seed"], [*content["faults"]]) == (500, 3, ["zombie"])
    assert content["cells"][0]["command"] == "streamproof sinks append --fault zombie"
    assert content["cells"][0]["counts"] == {"doubled": 34}
    assert content["cells"][0]["ways"]["by hand"]["smallest"] == {"doubled": "batch 1: a"}


def test_a_command_goes_on_with_the_cells_that_its_file_lacks(
    sinks: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file, done = tmp_path / "sinks.json", []
    monkeypatch.setattr(table, "_killed", lambda asked, group: [DOUBLED for _ in group])
    monkeypatch.setattr(table, "_traced", lambda *given: PlayedFault())

    def by_hand(asked: Asked, sink: SinkContract, fault: Fault) -> PlayedFault:
        if len(done) == 3:
            raise MemoryError
        done.append(f"{sink.name} {fault.name}")
        return DOUBLED

    monkeypatch.setattr(table, "_by_hand", by_hand)
    sinks("append", "overwrite", "--fault", "zombie", "--fault", "two-queries", "--json", file)
    assert done == ["append zombie", "append two-queries", "overwrite zombie"]
    done.clear()
    said = sinks("overwrite", "--fault", "zombie", "--fault", "two-queries", "--json", file)
    assert done == ["overwrite two-queries"]
    assert "2 of 2 cells were played, 1 of them with a simulated and a real fault" in said.out
    cells = {(cell["sink"], cell["fault"]): [*cell["ways"]] for cell in json.loads(file.read_text())["cells"]}
    assert [*cells.items()] == [
        (("append", "zombie"), ["by hand"]),
        (("append", "two-queries"), ["by hand"]),
        (("overwrite", "zombie"), ["by hand", "killed"]),
        (("overwrite", "two-queries"), ["by hand"]),
    ]
    assert "append, zombie" not in said.out


def test_a_full_disk_is_named_before_anything_is_played(sinks: Command, played: Callable[[Found], None]) -> None:
    played(lambda sink, fault: pytest.fail("a cell was played"))
    said = sinks("append", "--fault", "zombie", "--json", "/dev/full")
    full = "error: --json /dev/full: it can't be written: No space left on device"
    assert (said.code, said.out, said.err.strip()) == (3, "", full)


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("mine", "it isn't a file of this command: name another file"),
        ('{"cells": []}', "it isn't a file of this command: name another file"),
        ({"histories": 7}, "its cells were played with histories 7: name another file"),
        ({"pyspark": "3.5.1", "seed": 2}, "its cells were played with pyspark 3.5.1, seed 2: name another file"),
    ],
)
def test_a_file_of_other_cells_is_refused_and_left_as_it_is(
    content: str | dict[str, object], says: str, sinks: Command, tmp_path: Path
) -> None:
    file = tmp_path / "sinks.json"
    if not isinstance(content, str):
        same = {"pyspark": installed("pyspark"), "histories": 60, "seed": 0, "cells": []}
        content = json.dumps({**same, **content})
    file.write_text(content)
    said = sinks("append", "--fault", "zombie", "--json", file)
    assert (said.code, said.out, said.err.strip()) == (3, "", f"error: --json {file}: {says}")
    assert file.read_text() == content


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["parquet"], "error: there is no sink 'parquet': name one of file-parquet, "),
        (["kafka"], "error: the sink kafka can't be tested: "),
        (["append", "--fault", "fire"], "error: there is no fault 'fire': name one of death-before-write, "),
        (["append", "--folder", "missing"], "error: --folder missing: give an empty folder"),
        (["append", "--json", "missing/a.json"], "error: --json missing/a.json: there is no folder missing"),
        (["append", "--histories", "0"], "error: Invalid value for '--histories'"),
    ],
)
def test_bad_input_is_refused_by_name_before_anything_starts(
    words: list[str], says: str, sinks: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    said = sinks(*words)
    assert (said.code, said.out) == (3, "")
    assert said.err.startswith(says)


def test_a_folder_with_files_is_refused_and_left_as_it_is(sinks: Command, tmp_path: Path) -> None:
    (tmp_path / "ledger").write_text("mine")
    said = sinks("append", "--folder", tmp_path)
    assert said.code == 3
    assert "nothing is written next to existing files" in said.err
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("ledger", "mine")]


def test_what_was_found_is_printed_whatever_ends_the_command(sinks: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def play(asked: Asked, cells: list[Cell], show: object, save: object) -> None:
        cells.append(Cell(asked.sinks[0], asked.faults[0], DOUBLED))
        raise MemoryError

    monkeypatch.setattr(table, "play", play)
    said = sinks("append", "--fault", "zombie")
    assert said.code == 3
    assert "append, zombie: doubled 34" in said.out


def test_sinks_and_faults_are_listed_with_those_that_are_not_played(sinks: Command) -> None:
    said = sinks("--list")
    assert said.code == 0
    assert "foreachBatch overwrites a folder that is named after the batch" in said.out
    assert "an old query continues after its successor" in said.out
    assert "no release of Delta supports PySpark 4.3" in said.out
