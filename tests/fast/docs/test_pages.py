"""The documentation: its samples run, its commands exist, its histories give what it shows, its links work."""

from __future__ import annotations

import ast
import json
import re
import shlex
import textwrap
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


def test_the_readme_has_at_most_70_lines() -> None:
    assert len(text_of("README.md").splitlines()) <= 70


def test_the_pages_have_at_most_220_kb() -> None:
    assert sum(len(page.read_bytes()) for page in (ROOT / "docs").rglob("*.md")) <= 220_000


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


@pytest.mark.parametrize("page", ["docs/verdicts.md"])
def test_the_test_to_paste_is_shown_as_it_is_printed(page: str) -> None:
    from streamproof.properties.counterexamples.counterexample import Counterexample
    from streamproof.properties.counterexamples.text import test_to_paste

    (shown,) = (block.text for block in blocks_of(page) if "test to paste of" in block.notes)
    history = parse_history(shown.split('"""')[1])
    side = "reference", Outcome.of_play(history.name, play(history))
    counterexample = Counterexample(
        law="changelog", sentence="", history=history, expected=side, actual=side, differences=[], mutant="merges_one"
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
    assert commands or "/streamproof@v" in block.text  # whose inputs tests/fast/release/test_workflows.py compares
    for words in commands:
        parse(words[1:])


def test_every_operator_is_on_its_page_with_each_of_its_options() -> None:
    table, options = text_of("docs/operators.md").split("## Options\n")
    listed = dict(re.findall(r"^`(\w+)`\n:   (.*?)(?=^`|\Z)", options, re.DOTALL | re.MULTILINE))
    assert list(listed) == list(OPERATORS)
    for name, said in listed.items():
        known = {field.name.removesuffix("_") for field in fields(operator_named(name).definition)}
        assert known - set(re.findall(r"`(\w+)`", said)) == set(), name
        assert f"\n| `{name}` | " in table


def test_the_divergences_are_those_that_are_known() -> None:
    from streamproof.properties.witnesses.kafka.divergences import DIVERGENCES

    table = text_of("docs/kafka.md").split("<!-- divergences -->")[1].split("```")[0]
    assert re.findall(r"^\| `([a-z-]+)`", table, re.MULTILINE) == list(DIVERGENCES)


def test_the_table_of_kafkas_releases_says_what_is_known_of_each() -> None:
    from streamproof.properties.models.races import is_in
    from streamproof.properties.witnesses.kafka.divergences import DIVERGENCES, REPAIRED
    from streamproof.properties.witnesses.kafka.versions import RELEASES
    from streamproof.specs.races import RACES

    header, _, *rows = text_of("docs/kafka.md").split("<!-- releases -->\n\n")[1].split("\n\n")[0].splitlines()
    groups = [cell.split(", ") for cell in header.strip("| ").split(" | ")[1:]]
    assert sorted(version for group in groups for version in group) == sorted(RELEASES)
    cells = [(name.split("`")[1], said) for name, *said in (re.split(r" ?\| ?", row.strip("| ")) for row in rows)]
    found = {name: dict(zip(map(tuple, groups), said, strict=True)) for name, said in cells}
    every = {**DIVERGENCES, **REPAIRED}
    assert [*found] == [name for name in (*every, *RACES) if name in found]
    assert [*RACES] == [name for name in found if name not in every]
    for name, divergence in every.items():
        known = {version: "yes" if divergence.is_in(version) else "no" for version in RELEASES}
        assert {known[version] for version in RELEASES} == {"yes"} or name in found, name
        said = {version: cell for group, cell in found.get(name, {}).items() for version in group}
        assert said in ({}, known), name
    for name, race in RACES.items():
        wrong = {version: not cell.startswith("0 of") for group, cell in found[name].items() for version in group}
        assert wrong == {version: is_in(race, version) for version in RELEASES}, name


def test_the_tables_of_benchmarks_and_sinks_are_those_of_what_is_kept() -> None:
    from benchmarks.table import pages

    assert {path.name: path.read_text(encoding="utf-8") == text for path, text in pages().items()} == {
        "benchmarks.md": True,
        "sinks.md": True,
    }


def test_the_figures_that_the_page_leaves_out_are_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from benchmarks.command_line import app as benchmarks
    from benchmarks.table import RESULTS

    benchmarks(["table", "--all"], standalone_mode=False)
    printed = capsys.readouterr().out
    figures = json.loads(RESULTS.read_text(encoding="utf-8"))["figures"]
    assert len([figure for figure in figures if "main" in figure]) < len(figures) / 4
    assert [figure["figure"] for figure in figures if f"{figure['figure']} | " not in printed] == []


def test_the_registration_that_is_shown_is_the_one_that_the_tests_check() -> None:
    (block,) = (block for block in blocks_of("docs/own_operator.md") if "sp.register(" in block.text)
    shown = textwrap.indent(block.text.replace("sp.register(", "return sp.register(", 1), "    ")
    assert text_of("tests/helpers/deduplicate.py").endswith(shown), "copy it into the page's first sample"


def test_the_fields_of_a_registration_are_on_its_page() -> None:
    from streamproof import Registration

    declared = text_of("docs/own_operator.md").split("## What a registration declares")[1].split("\n## ")[0]
    assert {field.name for field in fields(Registration)} - set(re.findall(r"`(\w+)`", declared)) == set()


ON_REFERENCE_ALONE = {"cuts", "order", "keys", "repeats"}
"""The laws that ask Spark what they ask the reference, and only with `--all-laws`; they have one section."""


def laws_on_the_page() -> dict[tuple[str, str], str]:
    """Return the sections of the laws by part and name, each in one line."""
    found = {}
    for part, subject in (("Laws of the reference", "reference"), ("Laws of an implementation", "spark")):
        text = text_of("docs/laws.md").split(f"\n## {part}\n")[1].split("\n## ")[0]
        for section in text.split("\n### ")[1:]:
            name, _, said = section.partition("\n")
            found[subject, name] = " ".join(said.split())
    return found


def test_every_law_has_its_section_with_what_it_says() -> None:
    from streamproof.properties.laws.all import OF_REFERENCE, ON_SPARK
    from streamproof.properties.registration.registration import registered

    page = laws_on_the_page()
    assert list(page) == [
        *(("reference", law.name) for law in OF_REFERENCE),
        *(("spark", law.name) for law in ON_SPARK if law.name not in ON_REFERENCE_ALONE),
    ]
    for subject, laws in (("reference", OF_REFERENCE), ("spark", ON_SPARK)):
        for law in laws:
            asked = [registration for registration in registered().values() if law.not_checked(registration) is None]
            section = page.get((subject, law.name)) or page["reference", law.name]
            sentences = {law.sentence(registration) for registration in asked}
            assert len(sentences) > 1 or re.search(rf"\b{sentences.pop()}[.;: ]", section), law.name


def test_the_mutants_that_laws_are_said_to_kill_exist() -> None:
    from streamproof.properties.registration.registration import registered

    mutants = {name for registration in registered().values() for name in registration.mutants}
    killed = [
        name for said in laws_on_the_page().values() for name in re.findall(r"`(\w+)`", said.split("**Kills**")[-1])
    ]
    assert len(killed) > 10
    assert set(killed) - mutants == set()


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
    assert len(quoted) > 25
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
