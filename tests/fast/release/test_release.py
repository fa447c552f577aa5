"""The files of a release: those that need no build are checked here, the rest by `make release-check`."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
from doc_pages import ROOT, text_of

yaml = pytest.importorskip("yaml", reason="comes with the extra tests")


def loaded(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


release = loaded(ROOT / "tests/release/check.py")


def test_the_versions_agree() -> None:
    release.check_versions()


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("CHANGELOG.md", "## [", "## [9.9.9] - 2026-01-31\n\n## ["),
        ("CITATION.cff", "version: 0", "version: 9"),
        ("CITATION.cff", 'date-released: "2', 'date-released: "3'),
    ],
)
def test_a_version_or_a_day_that_differs_is_named(
    monkeypatch: pytest.MonkeyPatch, file: str, old: str, new: str
) -> None:
    def changed(name: str) -> str:
        return text_of(name).replace(old, new, 1) if name == file else text_of(name)

    monkeypatch.setattr(release, "text_of", changed)
    with pytest.raises(release.NotReady, match=re.escape(file)):
        release.check_versions()


def test_the_changelog_keeps_its_form() -> None:
    headings = re.findall(r"^## (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert headings[0] == "[Unreleased]"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading) for heading in headings[1:])
    kinds = re.findall(r"^### (.+)$", text_of("CHANGELOG.md"), re.MULTILINE)
    assert set(kinds) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def test_the_citation_names_what_a_citation_needs() -> None:
    citation = yaml.safe_load(text_of("CITATION.cff"))
    assert {"cff-version", "message", "title", "authors", "version", "date-released", "license"} <= set(citation)


FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))


@pytest.mark.parametrize("path", [path for path in FORMS if path.name != "config.yml"], ids=lambda path: path.name)
def test_an_issue_form_is_one_that_github_takes(path: Path) -> None:
    form = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert {"name", "description", "body"} <= set(form)
    fields = [field for field in form["body"] if field["type"] != "markdown"]
    assert {field["type"] for field in fields} <= {"checkboxes", "dropdown", "input", "textarea"}
    assert len({field["id"] for field in fields}) == len(fields)
    assert all(field["attributes"]["label"] for field in fields)
    assert all(field["attributes"]["options"] for field in fields if field["type"] == "dropdown")


def test_the_package_page_has_no_link_that_leads_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("setuptools.setup", lambda **given: None)
    page = loaded(ROOT / "setup.py").package_page()
    assert release.LINK.findall(text_of("README.md")) != []
    assert release.LINK.findall(page) == []
    assert "(https://" in page or "Start here" in page


PROJECT = tomllib.loads(text_of("pyproject.toml"))["project"]
OF_CONDA = {"duckdb": "python-duckdb"}
"""By the name of a package in pyproject.toml its name in conda, where that differs."""


def named_by_conda(requirement: str) -> str:
    name, bounds = re.fullmatch(r"([\w-]+)(.*)", requirement).groups()  # type: ignore[union-attr]
    return f"{OF_CONDA.get(name, name)} {bounds}"


def test_the_recipe_of_conda_has_the_project_s_version_dependencies_and_command() -> None:
    recipe = yaml.safe_load(text_of("conda/recipe.yaml"))
    assert recipe["context"]["version"] == PROJECT["version"]
    python, *packages = recipe["requirements"]["run"]
    assert python == f"python {PROJECT['requires-python']}"
    assert packages == [*map(named_by_conda, PROJECT["dependencies"])]
    assert recipe["requirements"]["run_constraints"] == [
        *map(named_by_conda, PROJECT["optional-dependencies"]["spark"])
    ]
    assert recipe["build"]["python"]["entry_points"] == [" = ".join(one) for one in PROJECT["scripts"].items()]
    assert recipe["about"]["summary"] == PROJECT["description"]
    (backend,) = tomllib.loads(text_of("pyproject.toml"))["build-system"]["requires"]
    assert named_by_conda(backend) in recipe["requirements"]["host"]


@pytest.mark.parametrize("file", ["docs/verdicts.md", "examples/template/.github/workflows/streamproof.yml"])
def test_the_action_is_used_in_the_project_s_version_with_inputs_that_it_has(file: str) -> None:
    text = text_of(file)
    assert re.findall(r"/streamproof@v([\d.]+)", text) == [PROJECT["version"]]
    pins = re.findall(r"streamproof==([\d.]+)", text)
    assert {*pins} <= {PROJECT["version"]}
    if file.endswith(".yml"):
        steps = yaml.safe_load(text)["jobs"]["check"]["steps"]
        (used,) = (one for one in steps if "/streamproof@" in one.get("uses", ""))
        assert {*used["with"]} <= {*yaml.safe_load(text_of("action.yml"))["inputs"]}
        folder = ROOT / "examples" / "template"
        assert [job for job in used["with"]["jobs"].split() if not (folder / job).is_file()] == []


def test_the_readme_of_the_template_has_at_most_twenty_lines() -> None:
    assert len(text_of("examples/template/README.md").splitlines()) <= 20
