from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from streamproof.specs.pytla.errors import TlcError, ValueSyntaxError
from streamproof.specs.pytla.values import MAX_INTERVAL, Function, ModelValue, parse_state, parse_value, to_tla

A, B = ModelValue("a"), ModelValue("b")

names = st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,3}", fullmatch=True).filter(lambda name: name not in ("TRUE", "FALSE"))
texts = st.text('ab 1",:>@=\\/\n\t\f\r{}<>()[]|-', max_size=6)
# No booleans beside integers within one set or function: Python holds True for 1, and TLC refuses to compare them.
leaves = st.integers() | texts | st.builds(ModelValue, names)
values = st.recursive(
    leaves | st.booleans().map(lambda truth: (truth,)),
    lambda inner: (
        st.frozensets(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(inner, inner, max_size=3).map(Function)
        | st.dictionaries(names, inner, max_size=3).map(Function)
    ),
    max_leaves=8,
)


@given(values)
def test_what_is_written_is_read_back(value):
    assert parse_value(to_tla(value)) == value


@given(values)
def test_equal_values_are_written_the_same(value):
    assert to_tla(parse_value(to_tla(value))) == to_tla(value)


@given(st.dictionaries(names, values, min_size=1, max_size=3))
def test_a_state_is_read_as_its_variables(state):
    text = "\n".join(f"/\\ {name} = {to_tla(value)}" for name, value in state.items())
    assert parse_state(text) == state


@given(values, st.data())
def test_line_breaks_between_words_change_nothing(value, data):
    words = to_tla(value)
    spaces = [index for index, character in enumerate(words) if character == " "]
    chosen = data.draw(st.sets(st.sampled_from(spaces))) if spaces and '"' not in words else set()
    broken = "".join("\n      " if index in chosen else character for index, character in enumerate(words))
    assert parse_value(broken) == value


# As TLC 2.15 printed them.
SAMPLES = {
    "<<>>": (),
    "<< >>": (),
    "{}": frozenset(),
    "1..3": frozenset({1, 2, 3}),
    "-5..-3": frozenset({-5, -4, -3}),
    "3..2": frozenset(),
    "{a, b}": frozenset({A, B}),
    "(a :> 1 @@ b :> 1)": Function({A: 1, B: 1}),
    "(1 :> 1 @@ 5 :> 5)": Function({1: 1, 5: 5}),
    '[a |-> "q\\"uo\\\\te\\n\\ttab"]': Function({"a": 'q"uo\\te\n\ttab'}),
    '("c" :> 2 @@ "a b" :> 2)': Function({"c": 2, "a b": 2}),
    '<<1, -2, <<"s">>>>': (1, -2, ("s",)),
    "[a |-> -1, b |-> TRUE, c |-> FALSE]": Function({"a": -1, "b": True, "c": False}),
    "{{}, {1}, {2}, {1, 2}}": frozenset({frozenset(), frozenset({1}), frozenset({2}), frozenset({1, 2})}),
    "(<<1, a>> :> [z |-> {}])": Function({(1, A): Function({"z": frozenset()})}),
    "(FALSE :> FALSE @@ TRUE :> TRUE)": Function({False: False, True: True}),
    "(-2 :> -2 @@ -1 :> -1 @@ 0 :> 0)": Function({-2: -2, -1: -1, 0: 0}),
    '<<"two  spaces", "a,b }] >> /\\\\ x = 3">>': ("two  spaces", "a,b }] >> /\\ x = 3"),
    '"a\\f\\r\\tb"': "a\f\r\tb",
    "TRUE": True,
    "-7": -7,
}


@pytest.mark.parametrize("text", SAMPLES)
def test_tlc_s_own_notation_is_read(text):
    assert parse_value(text) == SAMPLES[text]


def test_a_long_value_is_read_over_its_lines():
    text = """[ left |-> None,
  right |->
      ( a :>
            << "aaaaaaaaaaaaaaaaaaaaaaaaa",
               "cccccccccccccc" >> @@
        b :>
            << "bbbbbbbbbbbbbb" >> ),
  w |->
      {(a :> "aaaaaaaaaaaaaaaaaaaaaaaaa" @@ b :> "aaaaaaaaaaaaaaaaaaaaaaaaa")} ]"""
    long = "a" * 25
    assert parse_value(text) == Function(
        {
            "left": ModelValue("None"),
            "right": Function({A: (long, "c" * 14), B: ("b" * 14,)}),
            "w": frozenset({Function({A: long, B: long})}),
        }
    )


def test_booleans_are_read_as_booleans():
    assert parse_value("TRUE") is True
    assert parse_value("<<FALSE, 0>>")[0] is False


@pytest.mark.parametrize(
    ("text", "line", "column", "said"),
    [
        ("<<1, ", 1, 6, "expected a value, found the end"),
        ("{1 2}", 1, 4, "expected `}`, found '2'"),
        ('"open', 1, 1, "can't read"),
        ("[a |-> ]", 1, 8, "expected a value"),
        ("[1 |-> 2]", 1, 2, "expected the name of a field"),
        ("(a :> 1 @@ b)", 1, 13, "expected `:>`"),
        ("<<1,\n  ?>>", 2, 3, "can't read '?>>'"),
        ("1 2", 1, 3, "expected the end"),
        ("", 1, 1, "expected a value"),
        ('"a\\q"', 1, 1, "the escape"),
        ("1..x", 1, 4, "expected a number"),
        (f"1..{MAX_INTERVAL + 1}", 1, 1, "more than"),
    ],
)
def test_what_is_no_value_is_reported_with_its_position(text, line, column, said):
    with pytest.raises(ValueSyntaxError, match=r"line \d+, column \d+: ") as caught:
        parse_value(text)
    assert (caught.value.line, caught.value.column) == (line, column)
    assert said in str(caught.value)
    assert isinstance(caught.value, TlcError)


def test_a_state_may_have_one_variable_without_a_conjunction_and_strings_that_look_like_conjuncts():
    assert parse_state("x = <<1>>\n") == {"x": (1,)}
    assert parse_state('/\\ a = "x\\n/\\\\ b = 2"\n/\\ c = 3') == {"a": "x\n/\\ b = 2", "c": 3}


@pytest.mark.parametrize(
    ("text", "position", "said"),
    [("<<1>>", (1, 1), "expected a variable"), ("/\\ a = 1\n/\\ b = << 1,\n  ? >>", (3, 3), "can't read")],
)
def test_what_is_no_state_is_reported_with_its_line_in_the_state(text, position, said):
    with pytest.raises(ValueSyntaxError, match=said) as caught:
        parse_state(text)
    assert (caught.value.line, caught.value.column) == position


def test_values_that_repeat_are_the_same_object():
    known = {}
    first, second = parse_state("/\\ a = {1}\n/\\ b = 2", known), parse_state("/\\ a = {1}\n/\\ b = 3", known)
    assert first["a"] is second["a"]


def test_a_sequence_is_a_function_over_its_places():
    assert Function({1: "x", 2: "y"}) == ("x", "y")
    assert ("x", "y") in [Function({2: "y", 1: "x"})]
    assert hash(Function({1: "x", 2: "y"})) == hash(("x", "y"))
    assert Function() == ()
    assert Function({0: "x"}) != ("x",)
    assert Function({True: "x"}) != ("x",)
    assert parse_value('(1 :> "x" @@ 2 :> "y")') == ("x", "y")
    assert to_tla(Function({1: "x"})) == '<<"x">>'


def test_a_function_is_a_hashable_mapping():
    function = Function({"left": 1, "right": 2})
    assert function["left"] == 1
    assert dict(function) == {"left": 1, "right": 2} == function
    assert hash(function) == hash(Function({"right": 2, "left": 1}))
    assert str(function) == "[left |-> 1, right |-> 2]"
    assert function != 3
    with pytest.raises(TypeError):
        function["left"] = 3


def test_the_left_side_of_a_merge_wins():
    assert parse_value("(a :> 1 @@ b :> 2 @@ a :> 3)") == Function({A: 1, B: 2})


def test_a_model_value_equals_no_string():
    assert ModelValue("a") == parse_value("a") != "a"
    assert str(ModelValue("a")) == "a"


@pytest.mark.parametrize("value", [None, 1.5, [1], {1}, {"a": 1}])
def test_only_tla_values_are_written(value):
    with pytest.raises(TypeError, match="not a TLA\\+ value"):
        to_tla(value)


def test_a_string_with_a_control_character_is_refused():
    with pytest.raises(ValueError, match="control character"):
        to_tla("a\0b")


def test_values_that_lie_deep_in_each_other_are_written_back_at_once():
    text = "{" * 90 + "}" * 90
    assert to_tla(parse_value(text)) == text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("(" * 3000, "line 1, column 101: values are nested more than 100 levels deep"),
        ("{" * 3000, "values are nested more than 100 levels deep"),
        ("<<1, " + "9" * 5000 + ">>", "line 1, column 6: a number of 5000 digits is beyond TLC's"),
        ("1.." + "9" * 5000, "a number of 5000 digits"),
        ('<<"a", "\x1b[2J">>', r"line 1, column 8: the control character '\\x1b' in a string"),
    ],
)
def test_what_no_tlc_writes_is_refused_by_its_position(text, said):
    with pytest.raises(ValueSyntaxError, match=said):
        parse_value(text)
