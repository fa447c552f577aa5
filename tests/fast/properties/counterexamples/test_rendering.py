from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_jobs import counterexample_of
from streamproof.properties.counterexamples.tables import BatchWatermarks, result_rows, results_table
from streamproof.properties.counterexamples.text import counterexample_text, versions
from streamproof.properties.generators.columns.formatting import cell, elapsed, shown_row
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.model import Arrival, Expected, JobHistory, Source
from streamproof.properties.outcomes.outcomes import Difference
from streamproof.properties.witnesses.run_options import RunOptions

SCHEMA = pa.schema([("user", pa.string()), ("at", pa.timestamp("us", "UTC"))])
CLICKS = Source("clicks", SCHEMA, "at", ("user",))
VIEWS = Source("views", SCHEMA, "at", ("user",))
SECOND = 1_000_000
START = 1_700_000_000 * SECOND


def at(seconds: float, user: Any = "a", input: str = "clicks") -> Arrival:
    return Arrival(input, {"user": user, "at": from_microseconds(START) + timedelta(seconds=seconds)})


def counterexample(
    *batches: list[Arrival], sources: tuple[Source, ...] = (CLICKS,), **more: Any
) -> Counterexample[JobHistory]:
    given: dict[str, Any] = {
        "expected": Expected("batches", [[] for _ in batches]),
        "emitted": [[{"n": 1}], *[[] for _ in batches[1:]]],
        "difference": Difference(0, [], [{"n": 1}]),
        "run": RunOptions(),
        "delays_us": {source.name: 5 * SECOND for source in sources},
    }
    clock = more.pop("clock", ())
    given |= more
    return counterexample_of(
        job="job (x.py:1)",
        oracle="the oracle",
        history=JobHistory(tuple(map(tuple, batches)), clock),
        sources=sources,
        unique=["user"],
        seed=0,
        **given,
    )


def test_the_first_lines_say_what_was_expected_what_came_and_of_which_rows() -> None:
    lines = counterexample_text(counterexample([at(0)], [at(10, "b"), at(1)])).splitlines()
    assert lines[:15] == [
        "violated: in batch 0 the oracle expects no such row, and job (x.py:1) emits n 1.",
        "",
        "Expected by the oracle, and emitted by job (x.py:1):",
        "                             n",
        "  batch 0   ≠ only emitted   1",
        "",
        "What arrives:",
        "            user   at                     late up to             watermark after",
        "  batch 0   'a'    2023-11-14 22:13:20Z                          2023-11-14 22:13:15Z",
        "  batch 1   'b'    2023-11-14 22:13:30Z   2023-11-14 22:13:15Z   2023-11-14 22:13:25Z",
        "            'a'    2023-11-14 22:13:21Z",
        "",
        "Event time, from 2023-11-14 22:13:20Z (● a row, ┊ the watermark after the batch):",
        "                        -5s   +0   +1s   +5s   +10s",
        "  batch 0   'a'               ●",
    ]


@pytest.mark.parametrize(
    ("run", "compared"),
    [
        (RunOptions(mode="update", trigger="available_now"), "mode update, trigger available_now"),
        (RunOptions(mode="complete", is_sink=True), "content of the sink at the end, trigger default"),
    ],
)
def test_the_last_line_says_the_seed_and_what_was_compared(run: RunOptions, compared: str) -> None:
    last = counterexample_text(counterexample([at(0)], run=run)).splitlines()[-1]
    assert last == f"Seed 0, {compared}; {versions()}."


def test_of_a_run_in_production_the_sentence_is_its_own_and_no_batch_is_shown_behind_its_rows() -> None:
    lines = counterexample_text(counterexample([at(0)], [], says="violated: the run wrote n 1.")).splitlines()
    assert lines[0] == "violated: the run wrote n 1."
    assert any(line.startswith("  batch 0") for line in lines)
    assert not any("batch 1" in line for line in lines[lines.index("What arrives:") :])


def test_a_row_behind_the_watermark_is_marked() -> None:
    text = counterexample_text(counterexample([at(0), at(60)], [at(55)], [at(54)]))
    assert "○ a row behind the watermark" in text
    assert text.count("○") == 3  # and in the legend
    assert "○" not in counterexample_text(counterexample([at(0), at(60)], [at(56)]))


def test_under_available_now_rows_are_late_one_batch_later() -> None:
    one = [[at(60)], [at(50)], [at(50)]]
    assert [mark.late_us for mark in counterexample(*one).watermarks] == [
        None,
        START + 55 * SECOND,
        START + 55 * SECOND,
    ]
    now = counterexample(*one, run=RunOptions(trigger="available_now"))
    assert [mark.late_us for mark in now.watermarks] == [None, None, START + 55 * SECOND]
    assert [mark.after_us for mark in now.watermarks] == [START + 55 * SECOND] * 3


def test_a_clock_moves_the_watermark_without_rows() -> None:
    moved = counterexample([], [at(0)], clock=(START + 60 * SECOND, START + 90 * SECOND))
    assert moved.watermarks == [
        BatchWatermarks(None, START + 55 * SECOND),
        BatchWatermarks(START + 55 * SECOND, START + 85 * SECOND),
    ]
    assert "no rows" not in counterexample_text(moved).splitlines()[0]
    assert "event time reached" in counterexample_text(moved)


def test_the_watermark_of_two_inputs_is_that_of_the_slower_one() -> None:
    text = counterexample_text(counterexample([at(0), at(60, "b", "views")], sources=(CLICKS, VIEWS)))
    assert "views 'b'" in text
    assert "┊" in text
    delays = {"clicks": 5 * SECOND, "views": 10 * SECOND}
    for seconds, given, before in ((60, {}, 5), (2, {"delays_us": delays}, 8)):
        both = counterexample([at(0), at(seconds, "b", "views")], sources=(CLICKS, VIEWS), **given)
        assert both.watermarks == [BatchWatermarks(None, START - before * SECOND)]


def test_without_a_known_delay_no_watermark_is_shown() -> None:
    text = counterexample_text(counterexample([at(0)], delays_us=None))
    assert "watermark" not in text


def test_a_null_event_time_and_a_null_key_are_shown() -> None:
    text = counterexample_text(counterexample([Arrival("clicks", {"user": None, "at": None}), at(0)]))
    assert "null   null" in text


def test_event_times_without_a_zone_are_shown_as_they_are() -> None:
    clicks = replace(CLICKS, schema=SCHEMA.set(1, pa.field("at", pa.timestamp("us"))))
    rows = [Arrival(name, {**row, "at": row["at"].replace(tzinfo=None)}) for name, row in (at(0), at(60))]
    shown = counterexample(rows, sources=(clicks,))
    assert shown.watermarks == [BatchWatermarks(None, START + 55 * SECOND)]
    assert "'a'    2023-11-14 22:13:20   2023-11-14 22:14:15Z" in counterexample_text(shown)
    assert "Event time, from 2023-11-14 22:13:20Z" in counterexample_text(shown)


def test_what_is_large_is_cut_and_says_by_how_much() -> None:
    many = counterexample([at(number) for number in range(10_000)])
    assert "… and 9,960 more rows" in counterexample_text(many)
    assert "Event time, from" not in counterexample_text(many)
    assert len(counterexample_text(many)) < 10_000
    assert cell("x" * 1_000) == f"'{'x' * 39}… (1,002 characters)"


def test_rows_that_are_the_same_are_left_out_before_rows_that_differ() -> None:
    expected = [{"n": number} for number in range(1_000)]
    lines = results_table(result_rows([expected], [expected[:-1]], ["at the end"]))
    assert lines[-2:] == ["  at the end   ≠ only expected   999", "  … and 999 rows that are the same"]


@pytest.mark.parametrize(
    ("expected", "emitted", "sides"),
    [
        ([1, 2], [2, 1], ["both", "both"]),
        ([1, 1], [1], ["only expected", "both"]),
        ([1], [1, 1], ["both", "only emitted"]),
        ([1], [2], ["only expected", "only emitted"]),
        ([], [], []),
    ],
)
def test_rows_are_paired_as_bags(expected: list[int], emitted: list[int], sides: list[str]) -> None:
    rows = result_rows([[{"n": n} for n in expected]], [[{"n": n} for n in emitted]], ["batch 0"])
    assert [row.side for row in rows] == sides


def test_a_hostile_name_controls_no_terminal() -> None:
    lines = results_table(result_rows([[{"[red]n\x1b[31m": "\x1b[31m"}]], [[]], ["batch 0"]))
    assert lines[0].split() == [r"[red]n\x1b[31m"]
    assert "\x1b" not in "\n".join([*lines, shown_row({"\x1b[31m": "\x1b[31m"})])


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0, "+0"),
        (1, "+1µs"),
        (-1_000, "-1ms"),
        (1_920_001_000, "+32m 1ms"),
        (86_400_000_000 * 2 + 3_600_000_000, "+2d 1h"),
    ],
)
def test_a_duration_is_told_in_its_units(time_us: int, text: str) -> None:
    assert elapsed(time_us) == text
