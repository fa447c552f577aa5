from __future__ import annotations

import pytest
from paths import ROOT
from streamproof.specs.pytla.errors import ConfigurationFailed
from streamproof.specs.pytla.inputs.configuration import Configuration, check_names, prepare
from streamproof.specs.pytla.inputs.models import Model
from streamproof.specs.pytla.inputs.modules import read_modules, without_comments
from streamproof.specs.pytla.tlc.tools import find_jar
from streamproof.specs.pytla.values import Function, ModelValue

MODULE = """\
---- MODULE Clock ----
EXTENDS Integers, Helper
(* CONSTANT NotThis *)
CONSTANTS
    Hours,      \\* how many; not "CONSTANT Nor, This"
    Start, Zone
VARIABLE hour
Init == hour = Start
Next == hour' = (hour + 1) % Hours
Twice(n) ==
    2 * n
Other == INSTANCE Elsewhere
---- MODULE Inner ----
CONSTANT Within
====
====
"""
HELPER = "---- MODULE Helper ----\nCONSTANT Offset, Op(_, _)\nLocal == 1\n====\n"
ELSEWHERE = "---- MODULE Elsewhere ----\nFar == 2\n====\n"
CONFIGURATION = """\
\\* CONSTANT Commented = 1
SPECIFICATION Spec
CONSTANTS Hours = 24  Start = {1, {2}}
    Zone <- [Helper]Local (* CONSTANT Inside = 2 *)
    Op(a, {b}) = "x y"
CONSTANT Offset = -3
INVARIANTS One
    Two
PROPERTIES Three SYMMETRY Four
VIEW Five
"""


@pytest.fixture
def model(tmp_path):
    (tmp_path / "Clock.tla").write_text(MODULE)
    (tmp_path / "Helper.tla").write_text(HELPER)
    (tmp_path / "Elsewhere.tla").write_text(ELSEWHERE)
    (tmp_path / "Clock.cfg").write_text(CONFIGURATION)
    return Model(tmp_path / "Clock.tla", tmp_path / "Clock.cfg")


def changed(model, **changes):
    return Model(**{**vars(model), **changes})


def written(model, **arguments):
    run = prepare(model, Configuration(model.configuration), max_distinct=None, **arguments)
    return run.files[run.configuration]


def test_a_configuration_is_read_by_keyword_and_a_name_found_at_its_line_and_column(model):
    configuration = Configuration(model.configuration)
    read = {
        "constants": ("Hours", "Start", "Zone", "Op", "Offset"),
        "invariants": ("One", "Two"),
        "properties": ("Three",),
        "symmetry": ("Four",),
        "specification": ("Spec",),
    }
    assert {keyword: configuration.names(keyword) for keyword in read} == read
    assert configuration.position_of("Two") == (8, 5)
    assert configuration.position_of("Op", "constants") == (5, 5)
    assert configuration.position_of("Commented") is None


def test_a_configuration_that_isn_t_there_is_reported(tmp_path):
    with pytest.raises(ConfigurationFailed, match=r"none\.cfg: the configuration can't be read"):
        Configuration(tmp_path / "none.cfg")


def test_without_changes_the_files_are_the_user_s(model):
    run = prepare(model, Configuration(model.configuration), max_distinct=None)
    assert run == ("Clock", "Clock.cfg", {"Clock.cfg": CONFIGURATION})


def test_a_value_that_a_configuration_can_write_is_written_there(model):
    constants = {
        "Hours": 12,
        "Start": frozenset({ModelValue("a"), ModelValue("b")}),
        "Zone": "here",
        "Offset": frozenset(),
    }
    text = written(changed(model, constants=constants))
    assert text.splitlines()[-4:] == [
        "CONSTANT Hours = 12",
        "CONSTANT Start = {a, b}",
        'CONSTANT Zone = "here"',
        "CONSTANT Offset = {}",
    ]
    assert "24" not in text
    assert "Helper" not in text
    assert "-3" not in text
    assert 'Op(a, {b}) = "x y"' in text
    assert text.splitlines()[6:8] == CONFIGURATION.splitlines()[6:8]


def test_any_other_value_is_defined_in_a_module_of_its_own(model):
    value = (-1, Function({ModelValue("a"): 'say "hi"'}))
    run = prepare(changed(model, constants={"Start": value}), Configuration(model.configuration), max_distinct=None)
    assert run.root == "PytlaModel"
    assert "CONSTANT Start <- Pytla_Start\nCONSTANT Pytla_model_value_a = a\n" in run.files["Clock.cfg"]
    assert 'Pytla_Start == <<-1, (Pytla_model_value_a :> "say \\"hi\\"")>>' in run.files["PytlaValues.tla"]
    assert run.files["PytlaModel.tla"].splitlines() == [
        "---- MODULE PytlaModel ----",
        "EXTENDS Clock",
        "CONSTANT Pytla_model_value_a",
        "Pytla == INSTANCE PytlaValues",
        "Pytla_Start == Pytla!Pytla_Start",
        "====",
    ]


def test_invariants_and_properties_replace_the_configuration_s(model):
    text = written(changed(model, invariants=("Mine",), properties=()))
    assert text.endswith("INVARIANT Mine\n")
    assert not {"One", "Two", "INVARIANTS", "Three", "PROPERTIES"} & set(text.split())
    assert "SYMMETRY Four" in text


def test_sections_can_be_left_out(model):
    text = written(model, drop=("invariants", "properties", "symmetry", "view"))
    assert not {"INVARIANTS", "PROPERTIES", "SYMMETRY", "VIEW", "One", "Three", "Four", "Five"} & set(text.split())
    assert len(text.splitlines()) == len(CONFIGURATION.splitlines())


def test_a_configuration_without_its_extension_is_given_it(model, tmp_path):
    other = tmp_path / "model.txt"
    other.write_text(CONFIGURATION)
    assert prepare(changed(model, configuration=other), Configuration(other), max_distinct=None)[1] == "model.txt.cfg"


@pytest.mark.parametrize(
    ("value", "reported"),
    [
        (2**31, "beyond TLC's integers"),
        ((1, -(2**31) - 1), "beyond TLC's integers"),
        ("naïve", "ASCII"),
        ("a\0", "control character"),
        (Function({ModelValue("two words"): 1}), "must be a word"),
        (ModelValue("INVARIANT"), "must be a word"),
        (1.5, "a float, not a TLA\\+ value"),
        (frozenset({None}), "a NoneType, not a TLA\\+ value"),
    ],
)
def test_a_value_that_tlc_can_t_have_is_refused_by_the_constant_s_name(model, value, reported):
    with pytest.raises(ConfigurationFailed, match=f"Clock.tla: the value given for constant Hours .*{reported}"):
        written(changed(model, constants={"Hours": value}))


def test_constants_and_definitions_are_those_of_the_module_and_what_it_extends(model):
    modules = read_modules(model.module, find_jar())
    assert set(modules.constants) == {"Hours", "Start", "Zone", "Offset", "Op", "Within"}
    assert {"Init", "Next", "Twice", "Other", "Local", "Nat", "Int"} <= set(modules.definitions)
    assert "Far" not in modules.definitions
    assert modules.complete


def test_positions_are_reported_with_the_module(model):
    modules = read_modules(model.module, find_jar())
    assert modules.constants["Start"][:3] == ("Clock", 6, 5)
    assert modules.constants["Offset"][:3] == ("Helper", 2, 10)
    assert modules.definitions["Twice"] == ("Clock", 10, 1, 11)
    assert modules.files["Helper"] == model.module.parent / "Helper.tla"
    assert modules.files["Integers"] is None


def test_a_missing_module_is_known_by_where_it_is_named(model):
    (model.module.parent / "Helper.tla").unlink()
    modules = read_modules(model.module, find_jar())
    assert not modules.complete
    assert modules.first_mention("Helper") == (2, 19)


def test_comments_and_strings_are_blanked_in_place():
    text = 'a (* b (* c *)\nd *) e \\* f\n"g\\"h" i'
    plain = without_comments(text)
    assert plain.split() == ["a", "e", "i"]
    assert [plain.index(letter) for letter in "aei"] == [text.index(letter) for letter in "aei"]
    assert plain.count("\n") == 2


def test_a_constant_given_from_python_that_doesn_t_exist_is_reported_with_the_nearest(model):
    wrong = changed(model, constants={"Hour": 3})
    with pytest.raises(ConfigurationFailed, match=r"Clock\.tla: there is no constant Hour \(did you mean Hours\?\)"):
        check_names(wrong, Configuration(model.configuration), read_modules(model.module, find_jar()))


def test_a_constant_of_the_configuration_that_doesn_t_exist_is_reported_with_its_line(model):
    model.configuration.write_text("CONSTANTS Hours = 24\n  Stat = 3\n")
    with pytest.raises(ConfigurationFailed, match=r"Clock\.cfg:2:3: .* no constant Stat \(did you mean Start\?\)"):
        check_names(model, Configuration(model.configuration), read_modules(model.module, find_jar()))


@pytest.mark.parametrize(
    "constants",
    ["Hours = 24\n  h1 = h1", "Nat <- Local  Twice <- Local"],
    ids=["announce a model value", "replace a definition"],
)
def test_a_configuration_may(model, constants):
    model.configuration.write_text(f"CONSTANTS {constants}\n")
    check_names(model, Configuration(model.configuration), read_modules(model.module, find_jar()))


def test_the_specifications_of_the_project_have_known_constants():
    folder = ROOT / "specs"
    modules = {path: read_modules(path, find_jar()) for path in folder.glob("*/*.tla")}
    assert modules
    for path in sorted(folder.glob("*/*.cfg")):
        module = path.with_name(f"{path.stem.partition('_')[0]}.tla")
        check_names(Model(module, path), Configuration(path), modules[module])
