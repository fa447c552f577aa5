"""The documentation: its samples run, its commands exist, its histories give what it shows, its links work."""

from __future__ import annotations

import ast
import json
import re
import shlex
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
import typer
from doc_pages import (
    BLOCKS,
    MODULES,
    PAGES,
    ROOT,
    Block,
    anchors_of,
    blocks_of,
    fences_of,
    links_of,
    pages_of_python,
    printed_by,
    prose_of,
    run_python,
    text_of,
    write_files,
    written_in,
)
from streamproof.properties.cli import app
from streamproof.properties.outcomes.outcomes import Outcome
from streamproof.reference.core.history import parse_history
from streamproof.reference.core.operator import OPERATORS, operator_named
from streamproof.reference.core.play import play

STREAMPROOF = typer.main.get_command(app.app)
LANGUAGES = {"python", "console", "json", "text", "yaml", "toml", "java"}


def test_every_block_says_what_it_is_written_in() -> None:
    assert [str(block) for block in BLOCKS if block.language not in LANGUAGES] == []


RUN_BY = {
    "python": {"file", "not run"},
    "console": {"run", "not run"},
    "json": {"file"},
    "text": {"file", "printed by", "test to paste of", "message", "not run"},
}
"""By language, what says how a block is run, or why it isn't; a Python block that says neither is run as it stands."""


def test_every_block_is_run_or_says_why_it_is_not() -> None:
    loose = [
        str(block)
        for block in BLOCKS
        if not block.notes.keys() & RUN_BY.get(block.language, {"copy of", "not run"})
        and (block.language != "python" or not block.notes.keys() <= {"spark", "tlc"})
    ]
    assert loose == []
    assert [str(block) for block in BLOCKS if block.notes.get("not run") == ""] == []


@pytest.mark.parametrize("page", PAGES)
def test_every_fence_is_one_that_the_tests_see(page: str) -> None:
    assert fences_of(page) == 2 * len(blocks_of(page)), "begin fences in the first column, with three backticks"


def test_what_is_shown_as_printed_belongs_to_a_module_above_it() -> None:
    shown = [block for block in BLOCKS if "printed by" in block.notes]
    owned = [printed for module in MODULES if (printed := printed_by(module)) is not None]
    assert [str(block) for block in shown if block not in owned] == []


def test_a_copy_of_a_file_is_the_file() -> None:
    copies = [block for block in BLOCKS if "copy of" in block.notes]
    assert [str(block) for block in copies if block.text != text_of(block.notes["copy of"])] == []


def test_the_readme_has_at_most_120_lines() -> None:
    assert len(text_of("README.md").splitlines()) <= 120


@pytest.mark.parametrize("page", PAGES)
def test_relative_links_lead_to_files_and_headings_that_exist(page: str) -> None:
    broken = []
    for target, anchor in links_of(page):
        path = (ROOT / page).parent / target if target else ROOT / page
        there = path.exists() and path.resolve().is_relative_to(ROOT)
        if not there or (anchor and anchor not in anchors_of(str(path.resolve().relative_to(ROOT)))):
            broken.append(f"{target}#{anchor}")
    assert broken == []


@pytest.mark.parametrize("page", [page for page in PAGES if page.startswith("docs/")])
def test_every_page_is_in_the_site_and_in_the_index_or_the_api(page: str) -> None:
    assert re.search(rf": {re.escape(page.removeprefix('docs/'))}$", text_of("mkdocs.yml"), re.MULTILINE)
    if page != "docs/index.md":
        assert page.removeprefix("docs/") in {target for target, _ in links_of("docs/index.md")}


def test_no_page_cites_what_a_reader_does_not_have() -> None:
    cited = re.compile(r"\bfacts/|\bseeds/|\bthe seed's\b|\bof the seed\b|\bthe seed rejects\b")
    assert [page for page in PAGES if cited.search(text_of(page))] == []


@pytest.mark.parametrize("block", written_in("python"), ids=str)
def test_python_compiles(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize("page", pages_of_python(None))
def test_python_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(blocks_of(page), tmp_path)
    monkeypatch.chdir(tmp_path)
    run_python(page, {"__name__": "sample"})


@pytest.mark.parametrize("page", ["docs/counterexamples.md"])
def test_the_test_to_paste_is_shown_as_it_is_printed(page: str) -> None:
    from streamproof.properties.counterexamples.counterexample import Counterexample
    from streamproof.properties.counterexamples.text import test_to_paste

    (shown,) = (block.text for block in blocks_of(page) if "test to paste of" in block.notes)
    history = parse_history(shown.split('"""')[1])
    side = "reference", Outcome.of_play(history.name, play(history))
    counterexample = Counterexample(
        law="changelog", sentence="", history=history, left=side, right=side, differences=[], mutant="merges_one"
    )
    assert test_to_paste(counterexample) == shown


def parse(words: list[str], command: Any = STREAMPROOF) -> None:
    """Parse a command line as `streamproof` does, and run nothing."""
    while hasattr(command, "commands"):
        command, words = command.commands[words[0]], words[1:]
    command.make_context(command.name, list(words))


@pytest.mark.parametrize(
    "command", sorted({command for block in written_in("console") for command, _ in block.commands})
)
def test_a_command_exists_with_its_options(command: str) -> None:
    words = shlex.split(command.removeprefix("time "))
    if words[0] == "streamproof":
        parse(words[1:])
    elif words[0] == "make":
        assert re.search(rf"^{words[1]}:.* ## ", text_of("Makefile"), re.MULTILINE)
    elif words[:3] == ["python", "-m", "benchmarks"]:
        from benchmarks.command_line import app as benchmarks

        parse(words[3:], typer.main.get_command(benchmarks))
    else:
        assert words[0] in ("pip", "pytest")


@pytest.mark.parametrize("page", PAGES)
def test_commands_that_are_named_in_the_text_exist(page: str) -> None:
    commands = STREAMPROOF.commands  # type: ignore[attr-defined]
    named = re.findall(r"`streamproof ([a-z-]+)", prose_of(page))
    assert [name for name in named if name not in commands] == []
    targets = re.findall(r"`make ([a-z-]+)`", prose_of(page))
    assert [name for name in targets if not re.search(rf"^{name}:.* ## ", text_of("Makefile"), re.MULTILINE)] == []


@pytest.mark.parametrize(
    "block", [block for block in written_in("json") if block.notes["file"].endswith(".jsonl")], ids=str
)
def test_a_json_block_of_lines_is_a_history_file(block: Block) -> None:
    assert parse_history(block.text, block.notes["file"].removesuffix(".jsonl"), str(block)).lines
    assert all(json.loads(line) for line in block.text.splitlines())


@pytest.mark.parametrize("block", written_in("yaml"), ids=str)
def test_a_yaml_block_can_be_read_and_its_commands_exist(block: Block) -> None:
    yaml = pytest.importorskip("yaml", reason="comes with the extra tests")
    steps = [step for job in yaml.safe_load(block.text).get("jobs", {}).values() for step in job["steps"]]
    commands = [shlex.split(step["run"]) for step in steps if step.get("run", "").startswith("streamproof ")]
    assert commands
    for words in commands:
        parse(words[1:])


def test_every_operator_is_in_the_tables_with_each_of_its_options() -> None:
    operators, format_page = text_of("docs/operators.md"), text_of("docs/history_files.md")
    tables = dict(re.findall(r"<!-- options: (\w+) -->\n(.*?)<!-- end -->", operators, re.DOTALL))
    assert set(tables) == set(OPERATORS)
    for name, table in tables.items():
        known = {field.name.removesuffix("_") for field in fields(operator_named(name).definition)}
        assert set(re.findall(r"^\| `(\w+)`", table, re.MULTILINE)) == known, "python docs/options.py writes them anew"
        assert f"`{name}`\n:   " in format_page
        assert f"\n| `{name}` | " in operators


def test_the_divergences_are_those_that_are_known() -> None:
    from streamproof.properties.witnesses.kafka.divergences import DIVERGENCES

    table = text_of("docs/divergences.md").split("<!-- divergences -->")[1].split("```")[0]
    assert re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE) == list(DIVERGENCES)


def test_the_table_of_kafkas_releases_says_what_is_known_of_each() -> None:
    from streamproof.properties.models.races import is_in
    from streamproof.properties.witnesses.kafka.divergences import DIVERGENCES, REPAIRED
    from streamproof.properties.witnesses.kafka.versions import RELEASES
    from streamproof.specs.races import RACES

    _, table = text_of("docs/divergences.md").split("| divergence or race | ")
    releases, _, *rows = table.split("\n\n")[0].splitlines()
    assert releases.removesuffix(" |").split(" | ") == [*RELEASES]
    found = {name.strip("`"): cells for name, *cells in (row.strip("| ").split(" | ") for row in rows)}
    every = {**DIVERGENCES, **REPAIRED}
    assert [*found] == [*every, *RACES]
    for name, one in every.items():
        assert found[name] == ["yes" if one.is_in(version) else "no" for version in RELEASES], name
    for name, race in RACES.items():
        assert [not cell.startswith("0 of") for cell in found[name]] == [is_in(race, each) for each in RELEASES], name


def test_the_table_of_benchmarks_is_that_of_the_figures_that_are_kept() -> None:
    from benchmarks.table import RESULTS, page

    text = text_of("docs/benchmarks.md")
    assert page(text, json.loads(RESULTS.read_text(encoding="utf-8"))) == text


def test_the_operator_of_ones_own_is_the_one_that_the_tests_check() -> None:
    (block,) = (block for block in blocks_of("docs/own_operator.md") if "file" in block.notes)
    assert block.text == text_of("tests/helpers/deduplicate.py"), (
        "copy tests/helpers/deduplicate.py into the page's first sample"
    )


def test_the_fields_of_a_registration_are_in_its_table_with_the_laws_that_need_them() -> None:
    from streamproof import Binding, Registration
    from streamproof.properties.laws.all import OF_REFERENCE, ON_SPARK

    text = text_of("docs/own_operator.md").split("<!-- registration -->")[1].split("\n\n```")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", text, re.MULTILINE))
    assert list(rows) == [field.name for field in fields(Registration)]
    optional: dict[str, Any] = {field.name: object() for field in fields(Registration) if field.default is None}
    build: Any = object()
    optional |= {"key_independence": object(), "without_late_data": {"plain": {}}, "spark": Binding(build, typed=build)}
    for name, without in rows.items():
        given = {field: value for field, value in optional.items() if field != name} | {"by_clock": lambda _: True}
        if name == "key_independence":
            given[name] = None
        registration = Registration(operator_named("session_windows"), {"plain": {"gap_ms": 10}}, **given)
        unasked = {law.name for law in (*ON_SPARK, *OF_REFERENCE) if law.not_checked(registration)}
        assert unasked == set(re.findall(r"`([\w ]+)`", without.partition("not checked: ")[2])), name


def laws_on_the_page() -> dict[tuple[str, str], str]:
    """Return the sections of the laws by part and name, each in one line."""
    found = {}
    for part, subject in (("Laws of the reference", "reference"), ("Laws of an implementation", "spark")):
        text = text_of("docs/laws.md").split(f"\n## {part}\n")[1].split("\n## ")[0]
        for section in text.split("\n### ")[1:]:
            name, _, said = section.partition("\n")
            found[subject, name] = " ".join(said.split())
    return {
        (part, name): f"{found['reference', name]} {said}" if "as of the reference" in said else said
        for (part, name), said in found.items()
    }


def test_every_law_has_its_section_with_what_it_says() -> None:
    from streamproof.properties.laws.all import OF_REFERENCE, ON_SPARK
    from streamproof.properties.registration.registration import registered

    page = laws_on_the_page()
    assert list(page) == [
        *(("reference", law.name) for law in OF_REFERENCE),
        *(("spark", law.name) for law in ON_SPARK),
    ]
    for subject, laws in (("reference", OF_REFERENCE), ("spark", ON_SPARK)):
        for law in laws:
            asked = [one for one in registered().values() if law.not_checked(one) is None]
            section = page[subject, law.name]
            assert [law.sentence(one) for one in asked if not re.search(rf"\b{law.sentence(one)}[.;: ]", section)] == []


def test_the_mutants_that_laws_are_said_to_kill_exist() -> None:
    from streamproof.properties.registration.registration import registered

    mutants = {name for registration in registered().values() for name in registration.mutants}
    killed = [
        name for said in laws_on_the_page().values() for name in re.findall(r"`(\w+)`", said.split("**Kills**")[-1])
    ]
    assert len(killed) > 10
    assert set(killed) - mutants == set()


def test_the_coverage_goals_of_operators_are_those_of_their_registrations() -> None:
    from streamproof.properties.generators.coverage import coverage_goals
    from streamproof.properties.generators.variety import DIFFERENT, REPEATED, UNORDERED
    from streamproof.properties.registration.registration import registered

    table = text_of("docs/laws.md").split("<!-- goals -->")[1].split("\n## ")[0]
    rows = {
        name: set(re.findall(r"`([^`]+)`", goals))
        for names, goals in re.findall(r"^\| (`.*`) \| (.*) \|$", table, re.MULTILINE)
        for name in re.findall(r"`(\w+)`", names)
    }
    everywhere = {"out of order", "two keys", "dropped: null key", "null key kept", UNORDERED, REPEATED, DIFFERENT}
    assert rows == {
        name: {
            goal
            for options in registration.profiles.values()
            for goal in coverage_goals(registration, registration.declare(options))
        }
        - everywhere
        for name, registration in registered().items()
    }


@pytest.mark.parametrize("operator", ["session_windows", "range_aggregate", "stream_stream_join", "foreign_key_join"])
def test_the_coverage_goals_of_laws_on_spark_are_those_that_they_ask_for(operator: str) -> None:
    from streamproof.properties.checking.samples import plan_on_spark
    from streamproof.properties.generators.coverage import goals
    from streamproof.properties.laws.all import ON_SPARK
    from streamproof.properties.registration.registration import registration_of

    registration, page = registration_of(operator), laws_on_the_page()
    own = {goal for options in registration.profiles.values() for goal in goals(operator, options)}
    for draw in plan_on_spark(registration, 1, seed=0):
        sample = draw()
        for law in ON_SPARK:
            if law.is_asked_of(sample):
                asked = {re.sub(r"( \([^()]*\))+$", "", goal) for goal in law.goals(sample)} - own
                assert {goal for goal in asked if f"`{goal}`" not in page["spark", law.name]} == set(), law.name


def test_the_contracts_and_layers_in_architecture_are_those_that_are_checked() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layout = text_of("ARCHITECTURE.md").split("## The folders")[1].split("\n## ")[0]
    named = re.findall(r"(?<!\*)\*([^*]+)\*(?!\*)", " ".join(layout.split("`make lint` checks")[1].split()))
    known = [contract["name"] for contract in contracts]
    assert len(named) > 5
    assert [name for name in named if not any(one.startswith(name) for one in known)] == []
    (layers,) = (contract["layers"] for contract in contracts if contract["name"] == "properties in layers")
    rows = layout.split("The layers of `properties/`")[1].split("`make lint`")[0]
    listed = [re.findall(r"`(\w+)/`", cell) for cell in re.findall(r"^\| (`[^|]*) \|", rows, re.MULTILINE)]
    assert [set(names) for names in listed] == [set(layer.split(" | ")) for layer in layers]


def test_no_contract_has_an_exception() -> None:
    contracts = tomllib.loads(text_of("pyproject.toml"))["tool"]["importlinter"]["contracts"]
    allowed = {contract["name"]: contract["ignore_imports"] for contract in contracts if "ignore_imports" in contract}
    # import-linter has no list of what may be imported: these definitions are the contract's own words.
    assert [*allowed] == ["spark_impl imports the definitions in reference, never its behaviour"]


def test_every_public_name_has_an_entry_in_the_api() -> None:
    import streamproof

    entries = re.findall(r"^::: streamproof\.(\w+)$", text_of("docs/api/streamproof.md"), re.MULTILINE)
    assert sorted(entries) == sorted(set(streamproof.__all__) - {"__version__"})


OF_INPUT = "input …: "
"""Begins each message about an input; one place puts it before them."""


def literals_of(path: Path) -> list[str]:
    """Return the texts in a module, with `…` for what is put into them."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found.append(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            found.append("".join(map(str, parts)))
    return found


def test_each_message_under_troubleshooting_is_one_that_the_source_has() -> None:
    quoted = re.findall(r"^\*\*`(.+)`\*\*$", text_of("docs/troubleshooting.md"), re.MULTILINE)
    assert len(quoted) > 30
    begins = [OF_INPUT, *(max(re.split('…|"', message.removeprefix(OF_INPUT)), key=len)[:16] for message in quoted)]
    files = [path for folder in ("properties", "specs") for path in (ROOT / folder).rglob("*.py")]
    near = [path for path in files if any(begin in path.read_text(encoding="utf-8") for begin in begins)]
    texts = [text for path in near for text in literals_of(path)]
    assert OF_INPUT + "…" in texts
    unknown = []
    for message in quoted:
        parts = message.removeprefix(OF_INPUT).split("…")
        pattern = re.compile(".*?".join(map(re.escape, parts)), re.DOTALL)
        likely = (text for text in texts if all(part in text for part in parts))
        if len(message.replace("…", "")) < 20 or not any(map(pattern.search, likely)):
            unknown.append(message)
    assert unknown == []
