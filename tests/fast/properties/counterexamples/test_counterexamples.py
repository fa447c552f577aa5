from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from math import nan
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.counterexamples.counterexample import NOT_RECHECKED, Counterexample, verdict_sentence
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.counterexamples.text import counterexample_text, side_by_side, versions
from streamproof.properties.counterexamples.text import test_to_paste as to_paste
from streamproof.properties.laws.base import Comparison
from streamproof.properties.outcomes.notation import both_shown, shown
from streamproof.properties.outcomes.outcomes import Difference, Grain, Outcome, differences
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.play import Entry, play
from streamproof.reference.core.records import Change, Dropped, Output

HISTORY = """\
{"operator": "session_windows", "options": {"gap_ms": 10, "aggregate": "list"}, "clock": "batch"}
{"input": "events", "key": "a", "value": 0, "timestamp": 0}
{"heartbeat": 5}
{"cut": true}
{"input": "events", "key": "b", "value": 0, "timestamp": 9}
{"input": "events", "key": "a", "value": 1, "timestamp": 10}
"""
ONE = Change("a", (0, 0), [0], 0)
GONE = Change("a", (0, 0), None, 0)
TWO = Change("a", (0, 10), [0, 1], 10)
OTHER = Change("b", (9, 9), [0], 9)


def by_batch(*entries: tuple[int, Output], knows_dropped: bool = True) -> Outcome:
    return Outcome("h", Grain.BATCH, [Entry(-1, batch, output) for batch, output in entries], None, knows_dropped)


STORES: dict[Path, FolderStore] = {}


def save(one: Counterexample, folder: Path) -> Path:
    return STORES.setdefault(folder, FolderStore(folder)).save(one)


def forget(path: Path) -> None:
    for one in STORES.values():
        one.forget(path)


def sentence(says: str, witness: str, difference: Difference) -> str:
    nothing = Outcome("h", Grain.END, final={})
    return verdict_sentence(says, Comparison(("reference", nothing), (witness, nothing), [difference]))


def counterexample(text: str = HISTORY, right: Outcome | None = None, **changed: Any) -> Counterexample:
    """Spark forgets the tombstone."""
    history = parse_history(text, "h")
    reference = Outcome.of_play("h", play(history))
    outcome = right or by_batch((0, ONE), (1, OTHER), (1, TWO))
    found = differences(reference, outcome)
    verdict = sentence("the changelog is the reference's", "Spark", found[0])
    whole = Counterexample(
        law="changelog",
        sentence=verdict,
        history=history,
        expected=("reference", reference),
        actual=("Spark", outcome),
        differences=found,
        seed=7,
    )
    return replace(whole, **changed)


def emitted(left: Any, right: Any, when: int | None = 1) -> str:
    return sentence("all is well", "Spark", Difference(when, left, right, "a", "h"))


class Alike:
    """Its text is that of another type."""

    def __repr__(self) -> str:
        return "same"


class AlikeToo(Alike):
    """Of another type."""


# Outputs and the verdict in one sentence.


@pytest.mark.parametrize(
    ("output", "text"),
    [
        (TWO, "a@[0,10]=[0, 1]"),
        (GONE, "∅ a@[0,0]"),
        (TWO._replace(timestamp=7), "a@[0,10]=[0, 1] at 7"),
        (GONE._replace(timestamp=7), "∅ a@[0,0] at 7"),
        (Change("a", None, 1, 5), "a=1 at 5"),
        (Change("a", None, None, 5), "∅ a at 5"),
        (Dropped("a", "late"), "dropped a (late)"),
        (Dropped(None, "null key"), "dropped None (null key)"),
        ("written first", "written first"),
    ],
)
def test_an_output_is_shown_as_in_the_facts(output: Any, text: str) -> None:
    assert shown(output) == text


@pytest.mark.parametrize(
    ("left", "right", "where", "one", "other"),
    [
        ([ONE, GONE, TWO], [ONE, GONE, OTHER], "in batch 1, after 2 equal changes,", "a@[0,10]=[0, 1]", "b@[9,9]=[0]"),
        ([ONE, GONE], [ONE], "in batch 1, after 1 equal changes,", "∅ a@[0,0]", "nothing"),
        ([ONE], [ONE, ONE], "in batch 1, after 1 equal changes,", "nothing", "a@[0,0]=[0]"),
        ([], [ONE], "in batch 1", "nothing", "a@[0,0]=[0]"),
        (TWO, None, "at the end", "a@[0,10]=[0, 1]", "nothing"),
    ],
)
def test_the_first_change_that_differs_is_named_and_equal_ones_before_it_are_counted(
    left: Any, right: Any, where: str, one: str, other: str
) -> None:
    said = emitted(left, right, None if where == "at the end" else 1)
    assert said == f"violated: all is well; but for key a {where} the reference emits {one}, and Spark {other}."


# Values of other types whose texts agree.


def change(value: Any) -> Change:
    return Change("a", (0, 0), value, 0)


ALIKE = [
    (1, "1", "1 (int)", "1 (str)"),
    (True, "True", "True (bool)", "True (str)"),
    (Decimal("0.1"), 0.1, "0.1 (Decimal)", "0.1 (float)"),
    (date(2020, 1, 2), "2020-01-02", "2020-01-02 (date)", "2020-01-02 (str)"),
    ([1], "[1]", "[1] (list)", "[1] (str)"),
    ([0, Alike(), "x"], [0, AlikeToo(), "x"], "[0, same (Alike), 'x']", "[0, same (AlikeToo), 'x']"),
    ({"x": [Alike()]}, {"x": [AlikeToo()]}, "{'x': [same (Alike)]}", "{'x': [same (AlikeToo)]}"),
]


@pytest.mark.parametrize(("one", "other", "left", "right"), ALIKE)
def test_where_texts_of_different_values_agree_their_types_are_shown(
    one: Any, other: Any, left: str, right: str
) -> None:
    assert shown(change(one)) == shown(change(other)), "or the case shows nothing"
    assert both_shown(change(one), change(other)) == (f"a@[0,0]={left}", f"a@[0,0]={right}")
    assert emitted([change(one)], [change(other)]).endswith(f"emits a@[0,0]={left}, and Spark a@[0,0]={right}.")
    by_step = side_by_side(("one", by_batch((0, change(one)))), ("two", by_batch((0, change(other)))), {"a"})
    ends = [Outcome("h", Grain.END, final={("a", (0, 0)): (value, 0)}) for value in (one, other)]
    at_end = side_by_side(("one", ends[0]), ("two", ends[1]), {"a"})
    assert by_step[1:] == [f"  ≠ batch 0    a@[0,0]={left}   a@[0,0]={right}"]
    assert at_end[1:] == [f"  ≠ at the end a@[0,0]={left}   a@[0,0]={right}"]


@pytest.mark.parametrize(("one", "other"), [(1, 1.0), ([1, {"x": 2}], [1.0, {"x": 2.0}]), (nan, -nan)])
def test_what_is_equal_is_neither_marked_nor_typed(one: Any, other: Any) -> None:
    left, right = by_batch((0, change(one))), by_batch((0, change(other)))
    assert differences(left, right) == []
    assert not any("≠" in line or "(" in line for line in side_by_side(("one", left), ("two", right), {"a"}))


# Both outcomes side by side.


def test_a_null_keys_dropped_records_are_shown_first() -> None:
    dropped = by_batch((0, Dropped("", "late")), (0, Dropped(None, "null key")))
    assert side_by_side(("one", dropped), ("two", by_batch()), {None, ""})[1:] == [
        "  ≠ batch 0    dropped None (null key)",
        "  ≠ batch 0    dropped  (late)",
    ]


def test_the_rows_of_its_keys_are_shown_at_the_end_in_their_order() -> None:
    table = Outcome(
        "h", Grain.END, final={("a", (0, 10)): ([0, 1], 10), ("a", (30, 30)): ([2], 30), ("b", (0, 0)): ([1], 0)}
    )
    assert side_by_side(("reference", by_batch((0, ONE), (1, GONE), (1, TWO))), ("DuckDB", table), {"a"}) == [
        "               reference         DuckDB",
        "    at the end a@[0,10]=[0, 1]   a@[0,10]=[0, 1]",
        "  ≠ at the end                   a@[30,30]=[2]",
    ]


def test_dropped_records_are_left_out_where_one_side_does_not_know_them() -> None:
    left = by_batch((0, Dropped("a", "late")), (0, ONE))
    lines = side_by_side(("reference", left), ("native", by_batch((0, ONE), knows_dropped=False)), {"a"})
    assert not any("≠" in line for line in lines)


# The text.


def test_the_text_has_verdict_history_outcomes_seed_and_versions() -> None:
    verdict, *lines = counterexample_text(counterexample()).splitlines()
    assert verdict == (
        "violated: the changelog is the reference's; but for key a in batch 1 "
        "the reference emits ∅ a@[0,0], and Spark a@[0,10]=[0, 1]."
    )
    assert lines == [
        "",
        "History:",
        *("    " + line for line in HISTORY.splitlines()),
        "",
        "               reference         Spark",
        "    batch 0    a@[0,0]=[0]       a@[0,0]=[0]",
        "  ≠ batch 1    ∅ a@[0,0]         a@[0,10]=[0, 1]",
        "  ≠            a@[0,10]=[0, 1]",
        "",
        f"Seed 7; {versions()}.",
    ]


def test_the_text_says_when_the_history_alone_does_not_show_it() -> None:
    unconfirmed = counterexample_text(counterexample(confirmed=False))
    assert "\nnot confirmed: outside its cohort, the history conforms" in unconfirmed
    assert unconfirmed.endswith(f"Seed 7; {versions()}.\n")
    unasked = counterexample_text(counterexample(confirmed=False, unconfirmed="no reason"))
    assert "\nnot confirmed: no reason. " in unasked
    assert "not confirmed" not in counterexample_text(counterexample())


def test_the_text_has_the_original_of_a_variant_before_it() -> None:
    lines = counterexample_text(counterexample(original=parse_history(HISTORY.replace("9", "8")))).splitlines()
    assert lines[lines.index("Original:") + 5] == "    " + HISTORY.splitlines()[4].replace("9", "8")
    assert lines.index("Original:") < lines.index("History:")


def test_the_versions_are_those_of_all_that_a_counterexample_depends_on() -> None:
    for name in ("streamproof", "pyspark", "duckdb", "hypothesis", "pandas", "pyarrow", "Python"):
        assert f"{name} " in versions()


# The test to paste.


def pasted(found: Counterexample) -> str:
    code = to_paste(found)
    assert code is not None
    return code


def names_of(code: str) -> dict[str, Any]:
    names: dict[str, Any] = {}
    exec(compile(code, "test_pasted.py", "exec"), names)
    return names


def test_the_test_to_paste_asks_the_law_that_found_it_about_all_that_it_needs() -> None:
    original = parse_history(HISTORY.replace("9", "8"))
    found = counterexample(law="keys", subject="reference", mutant="gap_exclusive", original=original)
    names = names_of(pasted(found))
    asked: list[Any] = []
    names["assert_holds"] = lambda *arguments, **named: asked.append((arguments, named))
    names["test_" + found.name.replace("-", "_")]()
    (((law, history), named),) = asked
    assert (law, parse_history(history)) == ("keys", found.history)
    assert parse_history(named.pop("original")) == original
    assert named == {"subject": "reference", "mutant": "gap_exclusive"}


def test_what_is_no_longer_confirmed_loses_its_test_and_says_why(tmp_path: Path) -> None:
    path = save(counterexample(), tmp_path)
    for reason in ("of no effect", "of another effect"):
        assert save(counterexample(confirmed=False, unconfirmed=reason), tmp_path) == path
        assert not [*path.glob("test_*.py")]
        assert f"not confirmed: {reason}." in (path / "counterexample.txt").read_text(encoding="utf-8")


def test_a_confirmed_one_stays_confirmed_until_its_law_has_been_asked_again(tmp_path: Path) -> None:
    path = save(counterexample(), tmp_path)
    before = {file: file.read_text(encoding="utf-8") for file in path.iterdir()}
    save(counterexample(confirmed=False, unconfirmed=NOT_RECHECKED), tmp_path)
    assert {file: file.read_text(encoding="utf-8") for file in path.iterdir()} == before


# On disk.


def test_a_counterexample_is_saved_as_history_text_metadata_and_test(tmp_path: Path) -> None:
    path = save(counterexample(), tmp_path)
    assert path == tmp_path / "session_windows" / counterexample().name
    metadata = json.loads((path / "counterexample.json").read_text(encoding="utf-8"))
    assert (metadata["law"], metadata["subject"], metadata["seed"]) == ("changelog", "spark", 7)
    assert {file.name: file.read_text(encoding="utf-8") for file in path.iterdir() if file.suffix != ".json"} == {
        "history.jsonl": HISTORY,
        "counterexample.txt": counterexample_text(counterexample()),
        f"test_{counterexample().name.replace('-', '_')}.py": to_paste(counterexample()),
    }


def test_a_folder_that_cannot_be_written_has_the_counterexample_in_the_message(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput) as refused:
        save(counterexample(), tmp_path / "file")
    assert str(refused.value).endswith(f"; the counterexample was:\n{counterexample_text(counterexample())}")
    assert f"session_windows/{counterexample().name}: can't be written (" in str(refused.value)
