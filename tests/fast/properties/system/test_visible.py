"""Nothing that a file, a name or an argument says reaches a terminal raw."""

from __future__ import annotations

import io
import json
import unicodedata

import pytest
from rich.table import Table
from streamproof.properties.cli import terminal
from streamproof.properties.counterexamples.counterexample import Counterexample, verdict_sentence
from streamproof.properties.counterexamples.text import counterexample_text, side_by_side
from streamproof.properties.laws.base import Comparison
from streamproof.properties.outcomes.notation import shown
from streamproof.properties.outcomes.outcomes import Difference, Grain, Outcome
from streamproof.properties.system.visible import json_line, visible
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import Entry
from streamproof.reference.core.records import Change, Dropped

HOSTILE = "\x1b[31m\x07\r\n\x00\x7f\x9b2J\u061c\u200f\u2028\u202e\u2066\ufeff\udcff\ud800\U000e0041[red]:warning:"
ESCAPED = r"\x1b[31m\x07\r\n\x00\x7f\x9b2J\u061c\u200f\u2028\u202e\u2066\ufeff\xff\ud800\U000e0041[red]:warning:"


def is_clean(text: str) -> bool:
    """Whether nothing but newlines steers a terminal."""
    unseen = {"Cc", "Cs", "Cf", "Zl", "Zp"}
    return all(unicodedata.category(character) not in unseen for character in text.replace("\n", ""))


def test_what_cannot_be_seen_is_escaped() -> None:
    assert visible(HOSTILE) == ESCAPED


def test_text_that_can_be_seen_stays_as_it_is() -> None:
    text = "naïve ∅ a@[0,10]=2 日本 👩\u200d👩 \\n"
    assert visible(text) == text


def test_every_control_character_is_escaped() -> None:
    assert all(is_clean(visible(chr(code))) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cc")


def test_newlines_and_tabs_of_a_text_of_lines_stay() -> None:
    assert visible("a\tb\n\x1b[0m\r", lines=True) == "a\tb\n\\x1b[0m\\r"


def test_a_line_of_json_reads_back_the_same_and_is_clean() -> None:
    line = json_line({HOSTILE: [HOSTILE, "é"]})
    assert json.loads(line) == {HOSTILE: [HOSTILE, "é"]}
    assert is_clean(line)
    assert "é" in line


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (Change(HOSTILE, (0, 10), 2, 10), f"{ESCAPED}@[0,10]=2"),
        (Change("a", (0, 10), HOSTILE, 10), f"a@[0,10]={ESCAPED}"),
        (Change(HOSTILE, None, None, 7), f"∅ {ESCAPED} at 7"),
        (Dropped(HOSTILE, "late"), f"dropped {ESCAPED} (late)"),
        (HOSTILE, ESCAPED),
    ],
)
def test_an_output_is_shown_clean(output: object, text: str) -> None:
    assert shown(output) == text


def outcome(value: int) -> Outcome:
    return Outcome("h", Grain.BATCH, [Entry(0, 0, Change(HOSTILE, (0, 0), value, 0))])


def test_a_counterexample_is_reported_clean() -> None:
    key = HOSTILE.replace("\ud800", "").replace("\udcff", "")
    history = parse_history(
        '{"operator": "session_windows", "options": {"gap_ms": 10}}\n'
        + json.dumps({"input": "events", "key": key, "value": 1, "timestamp": 0})
    )
    difference = Difference(0, [Change(HOSTILE, None, 1, 0)], [], HOSTILE, "h")
    sides = ("reference", outcome(1)), ("Spark", outcome(2))
    said = verdict_sentence("the law", Comparison(*sides, [difference]))
    counterexample = Counterexample(
        law="changelog",
        sentence=said,
        history=history,
        expected=sides[0],
        actual=sides[1],
        differences=[difference],
        seed=0,
    )
    assert is_clean(said)
    assert said.count("\n") == 0
    assert is_clean(counterexample_text(counterexample))
    assert len(side_by_side(*(("reference", outcome(1)), ("Spark", outcome(2))), {HOSTILE})) == 2


def test_a_console_shows_strings_and_cells_clean(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.StringIO()
    console = terminal._Console(file=written, width=400, emoji=False, highlight=False)
    table = Table(HOSTILE.replace("[red]", ""), title=HOSTILE.replace("[red]", ""))
    table.add_row(HOSTILE.replace("[red]", ""))
    console.print(HOSTILE, markup=False, soft_wrap=True)
    console.print(table)
    assert is_clean(written.getvalue())
    assert "[red]:warning:" in written.getvalue()


def test_a_step_is_shown_clean(capsys: pytest.CaptureFixture[str]) -> None:
    with terminal.steps() as progress:
        progress(HOSTILE)
    assert is_clean(capsys.readouterr().err)
