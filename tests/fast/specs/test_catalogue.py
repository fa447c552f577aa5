"""The catalogue of specifications, and what is reported of a wrong manifest."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamproof.reference.core.errors import BadInput
from streamproof.specs.catalogue import FOLDER, catalogue, find_model

PASSING = {
    "path": "Clock.cfg",
    "says": "Hours go round.",
    "mode": "exhaustive search",
    "size": "small",
    "result": "success",
    "distinctStates": 12,
    "totalStates": 24,
    "stateDepth": 12,
    "runtime": "00:00:01",
}
FAILING = {**PASSING, "path": "Clock_stops.cfg", "result": "liveness failure", "property": "Ticks", "traceLength": 3}


def manifest_of(folder: Path, *models: dict[str, Any], **specification: Any) -> Path:
    for file in ("Clock.tla", "Clock.cfg", "Clock_stops.cfg"):
        (folder / file).write_text("")
    entry = {"module": "Clock.tla", "title": "A clock", "source": "Lamport", "models": list(models), **specification}
    path = folder / "manifest.json"
    path.write_text(json.dumps({"specifications": [entry]}))
    return path


def without(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {key: value for key, value in entry.items() if key != name}


def test_a_model_is_read_with_all_that_is_expected_of_it(tmp_path: Path) -> None:
    (specification,) = catalogue(manifest_of(tmp_path, PASSING, FAILING))
    assert (specification.name, specification.title, specification.source) == ("Clock", "A clock", "Lamport")
    right, wrong = specification.models
    assert (right.name, right.module, right.configuration) == ("Clock", tmp_path / "Clock.tla", tmp_path / "Clock.cfg")
    assert (right.fails, right.violated, right.trace_length) == (False, None, None)
    assert (right.distinct, right.generated, right.depth) == (12, 24, 12)
    assert (wrong.fails, wrong.result, wrong.violated, wrong.trace_length) == (True, "liveness failure", "Ticks", 3)


def test_a_model_is_found_by_its_name(tmp_path: Path) -> None:
    assert find_model("Clock_stops", manifest_of(tmp_path, PASSING, FAILING)).violated == "Ticks"


@pytest.mark.parametrize("name", ["Clock_stop", "clock_STOPS", "stops"])
def test_an_unknown_name_lists_similar_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=f"no model is called '{name}'.*Clock_stops"):
        find_model(name, manifest_of(tmp_path, PASSING, FAILING))


def test_a_name_like_no_other_is_sent_to_the_list(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="`streamproof spec list` lists them"):
        find_model("xyz", manifest_of(tmp_path, PASSING))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({**PASSING, "path": "Clok.cfg"}, "the file .*Clok.cfg.* is missing"),
        ({**PASSING, "mode": "simulate"}, "its mode is 'simulate'"),
        ({**PASSING, "size": "medium"}, "its size is 'medium', but must be one of: small, large"),
        ({**PASSING, "result": "failure"}, "its result is 'failure'"),
        ({**PASSING, "distinctStates": "12"}, "'distinctStates' is \"12\", but must be a count"),
        ({**PASSING, "distinctStates": True}, "'distinctStates' is true, but must be a count"),
        ({**PASSING, "says": ""}, "'says' is \"\", but must be a text"),
        ({**PASSING, "property": "Ticks"}, "can't have 'property'"),
        ({**PASSING, "traceLength": 3}, "can't have 'traceLength'"),
        (without(PASSING, "path"), "'path' is missing"),
        (without(PASSING, "says"), "Clock.cfg.*'says' is missing"),
        (without(PASSING, "stateDepth"), "Clock.cfg.*'stateDepth' is missing"),
        (without(FAILING, "property"), "Clock_stops.cfg.*'property' is missing"),
        (without(FAILING, "traceLength"), "Clock_stops.cfg.*'traceLength' is missing"),
        ({**FAILING, "result": "deadlock failure"}, "can't have 'property'"),
    ],
)
def test_a_wrong_model_is_named(tmp_path: Path, entry: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=f"specification 1 \\(Clock.tla\\), model 1.*{message}"):
        catalogue(manifest_of(tmp_path, entry))


@pytest.mark.parametrize(
    ("specification", "message"),
    [
        ({"module": "Clok.tla"}, "specification 1 \\(Clok.tla\\): the file .* is missing"),
        ({"title": 3}, "'title' is 3, but must be a text"),
        ({"models": {}}, "'models' is {}, but must be a list"),
        ({"models": ["Clock.cfg"]}, "model 1: not an object"),
    ],
)
def test_a_wrong_specification_is_named(tmp_path: Path, specification: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        catalogue(manifest_of(tmp_path, **specification))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON"), ("[]", "not an object"), ("{}", "'specifications' is missing")]
)
def test_a_manifest_that_is_none_is_reported(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text)
    with pytest.raises(BadInput, match=message):
        catalogue(path)


def test_a_missing_manifest_is_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"manifest.json: can't be read \(No such file"):
        catalogue(tmp_path / "manifest.json")


def test_two_models_of_one_name_are_reported(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="two models are called Clock"):
        catalogue(manifest_of(tmp_path, PASSING, PASSING))


def test_every_module_and_every_configuration_is_in_the_manifest() -> None:
    listed = catalogue()
    assert {one.module.name for one in listed} == {path.name for path in FOLDER.glob("*/*.tla")}
    assert {model.configuration.name for one in listed for model in one.models} == {
        path.name for path in FOLDER.glob("*/*.cfg")
    }


def test_every_module_has_a_small_model_that_passes_and_one_that_fails() -> None:
    for one in catalogue():
        assert {model.fails for model in one.models if model.size == "small"} == {True, False}, one.name


def test_a_configuration_is_named_after_its_module() -> None:
    for one in catalogue():
        for model in one.models:
            assert model.name == one.name or model.name.startswith(f"{one.name}_")


def test_every_module_is_mentioned_in_the_chapter() -> None:
    chapter = (FOLDER / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in FOLDER.glob("*/*.tla") if path.stem not in chapter] == []
