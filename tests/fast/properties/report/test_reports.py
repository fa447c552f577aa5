"""Reports: a page that stands alone, text, JSON and JUnit XML, whatever users wrote."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from junitparser import Error, Failure, JUnitXml, Skipped
from report_contents import HOSTILE, SUBJECT, content_of, counterexample_of, found_of, history_of
from streamproof.properties.checking.report import Report
from streamproof.properties.laws.all import LAWS
from streamproof.properties.laws.base import LawResult
from streamproof.properties.report.content import Chart, Content
from streamproof.properties.report.junit import junit
from streamproof.properties.report.making import content, counterexample_found
from streamproof.properties.report.page import html, shown_lines, text
from streamproof.properties.report.sarif import sarif
from streamproof.properties.report.timelines import timeline_of
from streamproof.properties.report.writing import FORMATS, require_folder, to_json, write_content
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.history import History, parse_history
from streamproof.reference.core.records import Record

VOID = {"meta", "br", "img", "input", "link", "hr"}


class Page(HTMLParser):
    """A page's elements with their attributes and their own text; a tag that isn't closed fails."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None], list[str], str]] = []
        self.open: list[int] = []
        self.feed(page)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        parent = self.elements[self.open[-1]][0] if self.open else ""
        self.elements.append((tag, dict(attrs), [], parent))
        if tag not in VOID:
            self.open.append(len(self.elements) - 1)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.elements[self.open.pop()][0] == tag

    def handle_data(self, data: str) -> None:
        for number in self.open:
            self.elements[number][2].append(data)

    def all(self, tag: str) -> list[tuple[dict[str, str | None], str, str]]:
        return [(attributes, "".join(said), parent) for name, attributes, said, parent in self.elements if name == tag]


@pytest.fixture(scope="module")
def page() -> Page:
    return Page(html(content_of(found_of(history_of()), missing=["interrupted by SIGINT"])))


def test_the_page_says_its_language_its_title_and_where_its_parts_begin(page: Page) -> None:
    assert page.all("html")[0][0]["lang"] == "en"
    assert page.all("title")[0][1] == "✗ violated: streamproof report"
    assert [said for _, said, _ in page.all("h1")] == ["streamproof report"]
    heads = [int(name[1]) for name, *_ in page.elements if re.fullmatch("h[1-6]", name)]
    assert all(after - before <= 1 for before, after in itertools.pairwise(heads))
    assert [len(page.all(name)) for name in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]


def test_each_id_is_there_once_and_each_that_is_named_exists(page: Page) -> None:
    ids = [attributes["id"] for _, attributes, *_ in page.elements if "id" in attributes]
    assert len(ids) == len({*ids})
    named = [name for _, at, *_ in page.elements for name in (at.get("aria-labelledby") or "").split()]
    linked = [(at.get("href") or "").removeprefix("#") for at, *_ in page.all("a")]
    assert {*named, *linked} <= {*ids}


def test_every_drawing_has_a_title_and_a_description(page: Page) -> None:
    drawings = page.all("svg")
    assert len(drawings) == 1
    for attributes, said, _ in drawings:
        assert attributes["role"] == "img"
        title, description = (attributes["aria-labelledby"] or "").split()
        whole = {at.get("id"): text for name in ("title", "desc") for at, text, _ in page.all(name)}
        assert whole[title]
        assert "dropped: late" in whole[description]
        assert "late or dropped record" in said
        assert "watermark; hatched: behind it" in said
        assert "cut between batches" in said
        assert "≠ batch 1: the outcomes differ first" in said


def test_every_table_has_a_caption_and_heads_with_a_scope(page: Page) -> None:
    assert len(page.all("table")) == len(page.all("caption")) >= 4
    assert {attributes.get("scope") for attributes, *_ in page.all("th")} == {"col", "row"}


def test_what_scrolls_can_be_reached_and_has_a_name(page: Page) -> None:
    scrolling = [at for _, at, *_ in page.elements if at.get("class") == "scroll" or at.get("tabindex")]
    assert scrolling
    assert all(at["tabindex"] == "0" and at["role"] == "group" and at["aria-label"] for at in scrolling)


def test_the_page_asks_for_no_other_file_and_has_no_script(page: Page) -> None:
    asked = {"src", "href", "xlink:href", "data", "srcset", "poster"}
    links = [at[name] for _, at, *_ in page.elements for name in asked & at.keys()]
    assert links
    assert all((link or "").startswith("#") for link in links)
    assert page.all("script") == []
    styles = "".join(said for _, said, _ in page.all("style"))
    assert "@import" not in styles
    assert re.findall(r"url\((?!#)", styles) == []
    assert "prefers-color-scheme: dark" in styles


def test_the_first_difference_is_marked_in_words(page: Page) -> None:
    marked = [said for _, said, _ in page.all("tr") if "first difference" in said]
    assert len(marked) == 1
    assert "≠ batch 1" in marked[0]


def test_what_was_expected_what_came_of_which_records_and_where_stand_above_the_drawing(page: Page) -> None:
    said = {name: text for (_, name, _), (_, text, _) in zip(page.all("dt"), page.all("dd"), strict=True)}
    assert said == {
        "Expected by reference": "a@[30,30]=1",
        "Came from Spark": "nothing",
        "First difference": "key a, batch 1",
        "Of these records": "a=0 at 0, a=1 at 10, a=2 at 20, a=0 at 30, 1 more",
    }


def test_each_witness_has_a_vote() -> None:
    votes = {vote.witness: vote for vote in found_of(history_of()).votes}
    assert votes["reference"].agrees is True
    assert votes["Spark"].agrees is False
    assert votes["duckdb"].says == "agrees with the expected outcome"
    assert votes["protocol"].says.startswith("not run: ")
    assert votes["kafka"].says == "not run: run `streamproof run history.jsonl --on kafka`"


def test_no_witness_is_asked_where_the_check_was_ended() -> None:
    votes = counterexample_found(counterexample_of(history_of()), SUBJECT, ask=False).votes
    assert [vote.witness for vote in votes if vote.agrees is not None] == ["reference", "Spark"]


@pytest.mark.parametrize("key", HOSTILE)
def test_what_users_wrote_is_escaped_in_every_file(key: str) -> None:
    history = history_of([key])
    one = replace(found_of(history_of()), timeline=timeline_of(history, 1, False), where=f"key {key}", sentence=key)
    one = replace(one, history=key, test=key, path=key, votes=[replace(one.votes[0], says=key)])
    said = content_of(
        replace(one, compared=[replace(one.compared[0], expected=key, actual=key)]), missing=[key], name=key
    )
    plain = Page(html(content_of(found_of(history_of()), missing=["x"])))
    hostile = Page(html(said))
    kinds = {name for name, *_ in plain.elements}
    assert {name for name, *_ in hostile.elements} <= kinds
    assert {name for _, at, *_ in hostile.elements for name in at if name.startswith("on")} == set()
    for file in (html(said), text(said), to_json(said), junit(said), sarif(said)):
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]", file)
    ElementTree.fromstring(junit(said))
    assert json.loads(to_json(said))["found"][0]["sentence"] == key


def test_the_json_has_the_whole_counterexample_and_the_page_a_part_of_a_long_one() -> None:
    history = history_of([f"k{number}" for number in range(2_500)], records=10_000)
    said = content_of(found_of(history))
    written = html(said)
    assert len(written) < 300_000
    assert "more lines, not drawn" in written
    assert "late or dropped record" in written
    assert "more lines: report.json contains all lines" in written
    (one,) = json.loads(to_json(said))["found"]
    assert parse_history(one["history"]) == history
    assert {*one["compared"][0]} == {"when", "expected", "actual", "differ"}


def test_long_comparisons_are_shown_around_the_first_difference() -> None:
    (line, *_) = found_of(history_of()).compared
    lines = [replace(line, when=str(number), differ=number >= 500) for number in range(1000)]
    before, shown, after = shown_lines(lines)
    assert (before, [int(one.when) for one in shown], after) == (470, [*range(470, 530)], 470)
    written = html(content_of(replace(found_of(history_of()), compared=lines)))
    assert written.count("⋮ 470 more lines, not shown") == 2
    assert re.findall(r"(\w+)</th>(?:(?!</tr>).)*≠ first difference", written) == ["500"]


def test_junit_has_a_suite_a_check_and_a_case_a_law() -> None:
    xml = JUnitXml.fromstring(junit(content_of(found_of(history_of()), missing=["interrupted"])))
    suite, other = list(xml)
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == (SUBJECT, 5, 1, 2, 1)
    assert (other.tests, other.failures) == (1, 0)
    results = {case.name: case.result for case in suite}
    assert isinstance(results["changelog"][0], Failure)
    assert "for key a in batch 1" in results["changelog"][0].message
    assert "Spark: nothing" in (results["changelog"][0].text or "")
    assert isinstance(results["duckdb"][0], Error)
    assert results["duckdb"][0].message == "unmet: gap + 1"
    assert results["restart"] == []
    assert isinstance(results["schedules"][0], Skipped)
    assert results["the whole check"][0].message == "not finished"


def test_the_text_says_all_that_the_page_says() -> None:
    said = text(content_of(found_of(history_of()), missing=["interrupted by SIGINT"]))
    assert said.startswith(
        "streamproof report: violated: 2 checks, 1 violated, 1 conforms\n\nMissing: interrupted by SIGINT\n"
    )
    for part in (
        "<- first difference",
        "duckdb: agrees with the expected outcome",
        "The test to paste:",
        "Seed 7.",
        "gap + 1",
    ):
        assert part in said


def test_behaviours_of_specifications_are_shown_as_charts_and_as_text() -> None:
    chart = Chart("Clock", "Never5", "It never is 5.", "<svg role='img'><title>A chart</title></svg>", ["1 <Init>"])
    page = Page(html(Content("violated", [], (), [chart])))
    assert [said for _, said, parent in page.all("title") if parent == "svg"] == ["A chart"]
    assert "1 <Init>" in "".join(said for _, said, _ in page.all("pre"))


@pytest.mark.parametrize(
    ("clock", "expected", "last"),
    [("batch", [0, 0, 0, 20, 20, 80], 80), ("stream_time", [0, 10, 20, 80, 80, 80], 80)],
)
def test_the_clock_is_what_each_arrival_was_judged_by(clock: str, expected: list[int], last: int) -> None:
    drawn = timeline_of(replace(history_of(), clock=clock), 1, False)
    assert [step.clock for step in drawn.steps] == expected
    assert drawn.last_clock == last


def test_of_one_batch_the_watermark_moves_at_its_end_alone() -> None:
    history = history_of()
    drawn = timeline_of(history.with_lines(history.lines[:3]), 0, False)
    assert [step.clock for step in drawn.steps] == [0, 0, 0]
    assert (drawn.last_clock, drawn.batches) == (20, 1)


def test_a_record_that_is_dropped_unseen_moves_no_clock() -> None:
    history = History("session_windows", {"gap_ms": 7}, (Record("events", None, 1, 500), Record("events", "a", 1, 3)))
    drawn = timeline_of(history, None, False)
    assert [(step.clock, step.remark) for step in drawn.steps] == [(0, "dropped: null key"), (3, "")]


def test_a_mutant_is_named() -> None:
    found = counterexample_found(replace(counterexample_of(history_of()), mutant="merges_one"), SUBJECT)
    assert found.actual_by == "Spark, the mutant merges_one"


def report_of(**changed: object) -> Report:
    laws = LAWS["reference"]
    results = [
        LawResult(laws["fold is meaning"], "it is", ("late", "gap"), 3),
        LawResult(laws["kafka"], "it emits", skipped="skipped: no Java"),
    ]
    results[0].covered["late"] = 2
    return replace(Report("session_windows", results, 4, subject="the reference", histories=3, rounds=1), **changed)


def test_a_report_of_the_gate_says_which_goals_were_met_and_what_was_skipped() -> None:
    check = report_of(not_checked={"protocol": "no messages"}).checked
    assert check.name == "session_windows, the reference"
    first, skipped, left_out = check.laws
    assert (first.verdict, first.why, dict(first.met), list(first.not_met)) == (
        "inconclusive",
        "coverage goals not met",
        {"late": 2},
        ["gap"],
    )
    assert (skipped.verdict, skipped.why, skipped.witnesses) == (
        "not checked",
        "skipped: no Java",
        ("reference", "kafka"),
    )
    assert (left_out.law, left_out.verdict, left_out.why) == ("protocol", "not checked", "no messages")


@pytest.mark.parametrize(
    ("report", "unfinished"),
    [(report_of(is_whole=True), ""), (report_of(), "not finished"), (report_of(results=[]), "not begun")],
)
def test_what_an_interruption_leaves_out_is_named(report: Report, unfinished: str) -> None:
    said = content([report], ended="interrupted by SIGINT")
    assert said.checks[0].unfinished == unfinished
    assert said.missing[0] == "interrupted by SIGINT"
    assert said.missing[1:] == ([f"session_windows, the reference: {unfinished}"] if unfinished else [])
    for file in (html(said), text(said), to_json(said), junit(said)):
        assert unfinished in file


def test_every_law_says_between_which_witnesses() -> None:
    known = {"reference", "spark", "spark-native", "duckdb", "kafka", "protocol"}
    for law in (*LAWS["spark"].values(), *LAWS["reference"].values()):
        assert law.between, law.name
        assert {*law.between} <= known, law.name


def test_a_report_is_replaced_by_the_next_one_and_nothing_else_is(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "report"
    require_folder(folder)
    assert write_content(folder, content_of()) == folder / "report.html"
    require_folder(folder)
    write_content(folder, content_of(found_of(history_of())))
    assert sorted(path.name for path in folder.iterdir()) == sorted(FORMATS)


@pytest.mark.parametrize("name", FORMATS)
def test_a_file_that_is_not_a_report_is_not_replaced(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("mine")
    with pytest.raises(BadInput, match=f"{re.escape(name)}: it exists already, and isn't a report of streamproof"):
        require_folder(tmp_path)
    assert (tmp_path / name).read_text() == "mine"


def test_a_folder_that_is_none_or_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="which isn't a folder: name a writable folder"):
        require_folder(tmp_path / "file")
    with pytest.raises(BadInput, match="can't be written"):
        require_folder(tmp_path / "file" / "below")
    with pytest.raises(BadInput, match=r"can't be written into /proc/none \("):
        write_content(Path("/proc/none"), content_of())
