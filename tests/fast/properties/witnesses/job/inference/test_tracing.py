"""How a query's event times, keys and payloads are followed through its plan, and the input that is made of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from given_plans import Expression, Operator, alias, column, literal, project, table, watermark
from memory_spark import memory_session
from pyspark.sql.types import StructType
from streamproof.properties.generators.columns.schemas import _of_ddl
from streamproof.properties.generators.columns.terms import COLUMN, CONSTANT, Term
from streamproof.properties.witnesses.job.inference import inputs
from streamproof.properties.witnesses.job.inference.inputs import (
    InferredInput,
    as_text,
    ddl,
    inferred_input,
    plain_name,
)
from streamproof.properties.witnesses.job.inference.tracing import (
    Payload,
    Place,
    Split,
    Traced,
    TracedTime,
    place_of,
    separator_of,
    strftime_of,
    time_of,
    traced,
)
from streamproof.properties.witnesses.job.scripts.reads import Read

VALUE, USER, AT, TEAM = column("value", 1), column("user", 2), column("at", 3), column("team", 4)


@pytest.fixture(autouse=True)
def session(tmp_path: Path) -> Iterator[None]:
    with memory_session(tmp_path):
        yield


def source(name: str, *columns: Expression) -> Operator:
    path = SimpleNamespace(isDefined=lambda: True, get=lambda: f"/run/{name}")
    of = SimpleNamespace(options=lambda: SimpleNamespace(get=lambda option: path))
    return Operator("StreamingRelation", output=columns, streams=True, dataSource=of)


EVENTS = source("in0", USER, AT, TEAM)
OTHERS = source("in1", column("user", 12), column("at", 13), column("team", 14))
KAFKA = source("in0", VALUE, column("key", 5), column("timestamp", 6))
NAMES = {"in0": "events", "in1": "others"}


def event(name: str, *path: str) -> Place:
    return Place("events", name, path)


def within(*path: str) -> Place:
    return Place("events", "value", path, parsed=True)


def follow(plan: Operator) -> Traced:
    return traced(plan, NAMES)


def json_of(*names: str, **node: Any) -> Expression:
    fields = [{"name": name, "type": "string", "nullable": True, "metadata": {}} for name in names]
    return Expression(
        "JsonToStructs",
        Expression("Cast", VALUE, dataType="string"),
        **{"schema": {"type": "struct", "fields": fields}, **node},
    )


def field_of(below: Expression, name: str) -> Expression:
    return Expression("GetStructField", below, name=name)


def test_the_columns_of_sources_are_places_and_renamed_columns_are_theirs() -> None:
    found = follow(project(EVENTS, alias(USER, "who", 20), AT, alias(Expression("Upper", TEAM), "team", 21)))
    assert (found.sources, found.kept) == (["events"], [event("user"), event("at")])
    assert (found.payloads, found.times, found.groups, found.casts, found.identities) == ({}, [], [], {}, [])


def test_a_union_s_columns_are_those_of_all_its_inputs() -> None:
    found = follow(Operator("Union", EVENTS, OTHERS))
    assert found.sources == ["events", "others"]
    assert found.kept == [*(Place(name, one) for one in ("user", "at", "team") for name in ("events", "others"))]


def test_a_payload_has_its_schema_its_fields_and_its_types() -> None:
    parsed = alias(json_of("user", "n"), "data", 20)
    data = column("data", 20)
    number = Expression("Cast", field_of(data, "n"), dataType="long")
    plan = project(project(KAFKA, parsed), alias(field_of(data, "user"), "who", 21), alias(number, "n", 22))
    found = follow(plan)
    ((place, payload),) = found.payloads.items()
    assert (place, payload.form, payload.has_header) == (within(), "json", False)
    assert (payload.fields, payload.names, payload.separator) == ({}, {}, "")  # its schema has them
    assert [one["name"] for one in payload.schema["fields"]] == ["user", "n"]
    assert found.kept == [within("user"), within("n")]
    assert found.casts == {within("n"): frozenset({"bigint"}), Place("events", "value"): frozenset({"string"})}


def test_a_value_that_is_cast_twice_has_the_first_type() -> None:
    twice = Expression("Cast", Expression("Cast", USER, dataType="string"), dataType="integer")
    found = follow(project(EVENTS, alias(twice, "n", 20), alias(Expression("Cast", USER, dataType="long"), "m", 21)))
    assert found.casts == {event("user"): frozenset({"string", "bigint"})}


def test_a_payload_that_is_parsed_twice_has_the_fields_of_both_schemas() -> None:
    found = follow(project(KAFKA, alias(json_of("a", "b"), "one", 20), alias(json_of("b", "c"), "other", 21)))
    (payload,) = found.payloads.values()
    assert [one["name"] for one in payload.schema["fields"]] == ["a", "b", "c"]


def test_single_fields_of_a_payload_have_the_types_to_which_they_are_cast() -> None:
    taken = {name: Expression("GetJsonObject", VALUE, literal(f"$.{name}", "string")) for name in ("a", "b.c", "[0]")}
    number = Expression("Cast", taken["a"], dataType="double")
    found = follow(project(KAFKA, alias(number, "a", 20), alias(taken["b.c"], "c", 21), alias(taken["[0]"], "d", 22)))
    (payload,) = found.payloads.values()
    assert (payload.form, payload.fields) == ("json", {("a",): "double", ("b", "c"): "string"})
    assert found.kept == [within("a"), within("b", "c")]


@pytest.mark.parametrize(("start", "has_header"), [(6, True), (7, False)])
def test_a_header_that_a_job_cuts_off_its_payload_is_known_by_its_length(start: int, has_header: bool) -> None:
    cut = Expression("Substring", VALUE, literal(start), literal(100))
    parsed = Expression("AvroDataToCatalyst", cut, jsonFormatSchema='{"type": "record"}')
    (payload,) = follow(project(KAFKA, alias(parsed, "data", 20))).payloads.values()
    assert (payload.form, payload.schema, payload.has_header) == ("avro", '{"type": "record"}', has_header)


def split_of(pattern: str = ",") -> Expression:
    return Expression("StringSplit", Expression("Cast", VALUE, dataType="string"), literal(pattern, "string"))


def test_the_parts_of_a_text_are_known_by_their_numbers_names_and_types() -> None:
    first = Expression("GetArrayItem", split_of(), literal(0))
    second = Expression("Cast", Expression("ElementAt", split_of(), literal(2)), dataType="integer")
    both = Expression("Concat", first, Expression("GetArrayItem", split_of(), literal(3)))
    found = follow(project(KAFKA, alias(first, "user", 20), alias(second, "n", 21), alias(both, "both", 22)))
    (payload,) = found.payloads.values()
    assert (payload.form, payload.separator) == ("split", ",")
    assert payload.fields == {("0",): "string", ("1",): "integer", ("3",): "string"}
    assert payload.names == {("0",): "user", ("1",): "n"}


def of_term(pattern: Any, number: Any, kind: str = "GetArrayItem", text: str = "StringSplit") -> Term:
    below = Term(text, (Term(COLUMN, (), (("events",), "value")), Term(CONSTANT, (), pattern)))
    return Term(kind, (below, Term(CONSTANT, (), number)))


@pytest.mark.parametrize(
    ("pattern", "number", "separator"),
    [
        (",", 0, ","),
        (r"\|", 1, "|"),
        ("[|]", 1, "|"),
        (r"\s+", 1, " "),
        (r"\s*", 1, ""),
        ("[ ]", 1, " "),
        (", *", 1, ", "),
        ("", 1, None),
        (",", -1, None),
        (",", "1", None),
    ],
)
def test_the_separator_of_parts_is_what_a_pattern_stands_for(pattern: str, number: Any, separator: str | None) -> None:
    assert separator_of(of_term(pattern, number)) == (separator or None)


def test_what_is_no_part_of_a_text_has_no_separator() -> None:
    assert separator_of(of_term(",", 0, "Add")) is None
    assert separator_of(of_term(",", 0, text="Upper")) is None
    assert (
        separator_of(Term("GetArrayItem", (Term("StringSplit", (COLUMN_TERM, COLUMN_TERM)), Term(CONSTANT, (), 0))))
        is None
    )
    assert place_of(of_term(",", 2)) == within("2")
    assert place_of(of_term(",", 2, "ElementAt")) == within("1")
    of_parsed = Term("StringSplit", (JSON, Term(CONSTANT, (), ",")))
    assert place_of(Term("GetArrayItem", (of_parsed, Term(CONSTANT, (), 0)))) is None


def constant(value: Any) -> Term:
    return Term(CONSTANT, (), value)


COLUMN_TERM = Term(COLUMN, (), (("events",), "value"))
JSON = Term("JsonToStructs", (Term("Cast", (COLUMN_TERM,), "string"),))


@pytest.mark.parametrize(
    ("term", "place"),
    [
        (COLUMN_TERM, Place("events", "value")),
        (Term("Cast", (COLUMN_TERM,), "string"), Place("events", "value")),
        (Term("Field", (COLUMN_TERM,), "a"), Place("events", "value", ("a",))),
        (Term("Field", (Term("Field", (JSON,), "a"),), "b"), within("a", "b")),
        (Term("Field", (JSON,), None), None),
        (JSON, within()),
        (Term("JsonToStructs", (Term("Field", (JSON,), "a"),)), None),
        (Term("JsonToStructs", (Term("StringTrim", (Term("Decode", (COLUMN_TERM,)),)),)), within()),
        (Term("Upper", (COLUMN_TERM,)), None),
        (Term("Made"), None),
        (Term("GetArrayItem", (Term("StringSplit", (Term("Made"), constant(","))), constant(0))), None),
        (Term("Cast", (Term("Made"),), "string"), None),
        (Term("GetJsonObject", (COLUMN_TERM, Term(CONSTANT, (), "$.a.b"))), within("a", "b")),
        (Term("GetJsonObject", (COLUMN_TERM, Term(CONSTANT, (), "a"))), None),
        (Term("GetJsonObject", (COLUMN_TERM, Term(CONSTANT, (), "$.a[0]"))), None),
        (Term("GetJsonObject", (COLUMN_TERM, COLUMN_TERM)), None),
    ],
)
def test_a_place_is_where_a_value_comes_from_as_it_is(term: Term, place: Place | None) -> None:
    assert place_of(term) == place


T = COLUMN_TERM
TIME = Place("events", "value")


@pytest.mark.parametrize(
    ("term", "time"),
    [
        (T, TracedTime(TIME)),
        (Term("MillisToTimestamp", (T,)), TracedTime(TIME, "ms")),
        (Term("MicrosToTimestamp", (T,)), TracedTime(TIME, "us")),
        (Term("SecondsToTimestamp", (T,)), TracedTime(TIME, "s")),
        (Term("MillisToTimestamp", (Term("Made"),)), None),
        (Term("ParseToTimestamp", (T,)), TracedTime(TIME)),
        (Term("GetTimestamp", (T, constant("yyyy-MM-dd"))), TracedTime(TIME, "%Y-%m-%d")),
        (Term("GetTimestamp", (T, constant("EEE"))), TracedTime(TIME, None, is_known=False)),
        (Term("GetTimestamp", (T, T)), TracedTime(TIME)),
        (Term("ToUnixTimestamp", (Term("Made"), constant("yyyy"))), None),
        (
            Term("Coalesce", (Term("Made"), Term("GetTimestamp", (T, constant("yyyy-MM-dd"))), T)),
            TracedTime(TIME, "%Y-%m-%d"),
        ),
        (Term("Coalesce", (Term("Made"),)), None),
        (Term("Divide", (T, constant(1_000))), TracedTime(TIME, "ms")),
        (Term("Divide", (T, Term("Cast", (constant(1_000_000),), "double"))), TracedTime(TIME, "us")),
        (Term("Divide", (T, constant(7))), TracedTime(TIME, None, is_known=False)),
        (Term("IntegralDivide", (T, T)), TracedTime(TIME, None, is_known=False)),
        (Term("IntegralDivide", (T, constant("1000"))), TracedTime(TIME, None, is_known=False)),
        (Term("Divide", (Term("Made"), constant(1_000))), None),
        (Term("Cast", (Term("Divide", (T, constant(1_000))),), "timestamp"), TracedTime(TIME, "ms")),
        (Term("FromUnixTime", (T,)), TracedTime(TIME, "s")),
        (Term("FromUnixTime", (Term("Floor", (Term("Divide", (T, constant(1_000))),)),)), TracedTime(TIME, "ms")),
        (Term("FromUnixTime", (Term("Made"),)), None),
        (Term("TimeWindow", (Term("MillisToTimestamp", (T,)),)), TracedTime(TIME, "ms")),
        (Term("Floor"), None),
        (Term("Upper", (T,)), None),
    ],
)
def test_an_event_time_has_its_place_and_the_form_that_its_source_has(term: Term, time: TracedTime | None) -> None:
    assert time_of(term) == time


@pytest.mark.parametrize(
    ("pattern", "form"),
    [
        ("yyyy-MM-dd HH:mm:ss", "%Y-%m-%d %H:%M:%S"),
        ("uuuu-MM-dd'T'HH:mm:ss.SSSSSSXXX", "%Y-%m-%dT%H:%M:%S.%fZ"),
        ("yyyyMMdd'Z'", "%Y%m%dZ"),
        ("d/M/yyyy hh:mm:ss a", "%d/%m/%Y %I:%M:%S %p"),
        ("yyyy-MM-dd'T'HH:mm:ss[.SSS]X", "%Y-%m-%dT%H:%M:%SZ"),
        ("yyyy-MM-dd HH:mm:ss.SSS", "%Y-%m-%d %H:%M:%S.000"),
        ("EEE dd", None),
        ("yyyy 'o''clock'", "%Y o'clock"),
        ("yyyy ''dd", "%Y '%d"),
        ("yyyy 'dd", None),
        ("", ""),
    ],
)
def test_a_pattern_of_spark_s_is_one_of_strftime_or_unknown(pattern: str, form: str | None) -> None:
    assert strftime_of(pattern) == form


def test_watermarks_windows_and_parsed_times_are_event_times() -> None:
    made = Expression("SecondsToTimestamp", TEAM)
    plan = watermark(project(EVENTS, USER, alias(made, "t", 20), AT), column("t", 20), 5)
    found = follow(Operator("Filter", plan, expressions=[Expression("TimeWindow", AT)]))
    assert found.times == [TracedTime(event("team"), "s")]
    assert found.other_times == [TracedTime(event("at")), TracedTime(event("team"), "s")]
    tried = [Expression("GetTimestamp", TEAM, literal(form, "string")) for form in ("yyyy-MM-dd", "dd.MM.yyyy")]
    of_forms = follow(project(EVENTS, alias(Expression("Coalesce", *tried), "t", 20))).other_times
    assert of_forms == [TracedTime(event("team"), "%Y-%m-%d"), TracedTime(event("team"), "%d.%m.%Y")]
    cast = follow(project(EVENTS, alias(Expression("Cast", TEAM, dataType="timestamp"), "t", 20)))
    assert cast.other_times == [TracedTime(event("team"))]
    other = follow(project(EVENTS, alias(Expression("Cast", TEAM, dataType="long"), "t", 20)))
    assert other.other_times == []


def test_a_function_that_returns_structs_has_no_place() -> None:
    made = Expression("PythonUDF", VALUE, dataType={"type": "struct", "fields": []})
    plan = project(project(KAFKA, alias(made, "row", 20)), alias(field_of(column("row", 20), "user"), "user", 21))
    assert follow(watermark(plan, column("user", 21), 5)).kept == []


def test_the_elements_of_an_array_that_is_a_payload_are_its_rows() -> None:
    of = {"type": "array", "containsNull": True, "elementType": _of_ddl("user string, n int").jsonValue()}  # type: ignore[attr-defined]
    explode = Expression("Explode", json_of(schema=of))
    exploded = Operator(
        "Generate", KAFKA, output=[VALUE, column("row", 30)], generator=explode, generatorOutput=[column("row", 30)]
    )
    exploded.used = [explode]
    found = follow(project(exploded, alias(field_of(column("row", 30), "user"), "user", 31)))
    assert (found.kept, found.payloads[within()].schema) == ([within("user")], of)
    words = Expression("Explode", split_of())
    of_words = Operator(
        "Generate", KAFKA, output=[column("word", 30)], generator=words, generatorOutput=[column("word", 30)]
    )
    assert follow(of_words).kept == []


def test_the_parts_that_are_taken_of_a_field_or_a_column_are_known() -> None:
    def part(of: Expression, number: int) -> Expression:
        return Expression("GetArrayItem", Expression("StringSplit", of, literal("_", "string")), literal(number))

    user = field_of(json_of("user"), "user")
    second = Expression("Cast", part(user, 1), dataType="integer")
    found = follow(project(KAFKA, alias(part(user, 0), "a", 20), alias(second, "b", 21)))
    assert found.splits == [Split(within("user"), "_", 0, "string"), Split(within("user"), "_", 1, "integer")]
    assert follow(project(EVENTS, alias(part(TEAM, 2), "c", 22))).splits == [Split(event("team"), "_", 2, "string")]
    assert follow(project(EVENTS, alias(part(Expression("Upper", TEAM), 2), "c", 22))).splits == []


def aggregate(below: Operator, *keys: Expression) -> Operator:
    return Operator("Aggregate", below, expressions=keys, groupingExpressions=[*keys])


GROUPED = {
    "Aggregate": aggregate(EVENTS, USER, Expression("Upper", TEAM)),
    "Deduplicate": Operator("Deduplicate", EVENTS, keys=[USER, AT]),
    "DeduplicateWithinWatermark": Operator("DeduplicateWithinWatermark", EVENTS, keys=[TEAM]),
    "Distinct": Operator("Distinct", EVENTS),
    "GlobalLimit": Operator("GlobalLimit", EVENTS),
    "FlatMapGroupsInPandas": Operator("FlatMapGroupsInPandas", EVENTS, groupingAttributes=[USER]),
    "TransformWithStateInPySpark": Operator("TransformWithStateInPySpark", EVENTS, groupingAttributesLen=2),
    "Filter": Operator("Filter", EVENTS),
    "of a table": aggregate(table(USER), USER),
}


@pytest.mark.parametrize(
    ("operator", "columns"),
    [
        ("Aggregate", ["user"]),
        ("Deduplicate", ["user", "at"]),
        ("DeduplicateWithinWatermark", ["team"]),
        ("Distinct", ["user", "at", "team"]),
        ("GlobalLimit", []),
        ("FlatMapGroupsInPandas", ["user"]),
        ("TransformWithStateInPySpark", ["user", "at"]),
        ("Filter", None),
        ("of a table", None),
    ],
)
def test_an_operator_brings_rows_together_by_the_places_of_its_keys(operator: str, columns: list[str] | None) -> None:
    groups = [] if columns is None else [(frozenset({"events"}), [event(name) for name in columns])]
    assert follow(GROUPED[operator]).groups == groups


def test_a_deduplication_of_one_input_identifies_its_events() -> None:
    assert follow(GROUPED["Deduplicate"]).identities == [[event("user"), event("at")]]
    made = Expression("SecondsToTimestamp", TEAM)
    assert follow(Operator("Deduplicate", EVENTS, keys=[made])).identities == [[event("team")]]
    assert follow(Operator("Deduplicate", EVENTS, keys=[USER, Expression("Upper", TEAM)])).identities == []
    assert follow(Operator("Deduplicate", Operator("Union", EVENTS, OTHERS), keys=[USER])).identities == []
    joined = Operator("Join", EVENTS, OTHERS, output=[USER, column("at", 13)])
    joined.given["condition"] = SimpleNamespace(isDefined=lambda: False)
    assert follow(Operator("Deduplicate", joined, keys=[USER, column("at", 13)])).identities == []


def joined(condition: Expression | None, other: Operator = OTHERS) -> Operator:
    given = SimpleNamespace(isDefined=lambda: condition is not None, get=lambda: condition)
    return Operator("Join", EVENTS, other, output=[*EVENTS.columns, *other.columns], condition=given)


def test_a_join_of_streams_brings_rows_together_by_its_equalities() -> None:
    user, at = column("user", 12), column("at", 13)
    equal = Expression("EqualTo", USER, user)
    both = Expression(
        "And", equal, Expression("And", Expression("LessThan", AT, at), Expression("EqualNullSafe", AT, at))
    )
    of_users = [event("user"), Place("others", "user")]
    whole = frozenset({"events", "others"})
    assert follow(joined(equal)).groups == [(whole, of_users)]
    assert follow(joined(both)).groups == [(whole, [*of_users, event("at"), Place("others", "at")])]
    assert follow(joined(Expression("Or", equal, equal))).groups == [(whole, [])]
    assert follow(joined(None)).groups == [(whole, [])]
    assert follow(joined(equal, table(user, at))).groups == []


def test_a_source_that_is_joined_with_itself_is_joined_by_one_column_or_by_none() -> None:
    again = source("in0", column("user", 12), column("at", 13), column("team", 14))
    same = joined(Expression("EqualTo", USER, column("user", 12)), again)
    assert follow(same).groups == [(frozenset({"events"}), [event("user")])]
    other = joined(Expression("EqualTo", USER, column("team", 14)), again)
    assert follow(other).groups == [(frozenset({"events"}), [])]
    assert follow(same).sources == ["events"]


def test_two_columns_of_one_source_in_a_union_tell_no_key() -> None:
    again = source("in0", column("team", 12))
    union = Operator("Union", project(EVENTS, USER), again)
    assert follow(aggregate(union, USER)).groups == [(frozenset({"events"}), [])]
    other = Operator("Union", project(EVENTS, USER), source("in1", column("team", 12)))
    assert follow(aggregate(other, USER)).groups == [
        (frozenset({"events", "others"}), [event("user"), Place("others", "team")])
    ]


# The input that is made of it.

COLUMNS = "user string, at timestamp, team string, n int"


def plan(**more: Any) -> Traced:
    given: dict[str, Any] = {"sources": ["events"], "payloads": {}, "times": [], "groups": [], "kept": []}
    return Traced(**{**given, "casts": {}, "other_times": [], **more})


def infer(query: Traced, columns: str = COLUMNS, read: Read | None = None, *others: Traced) -> InferredInput:
    kinds: Any = _of_ddl(columns)
    return inferred_input("events", read or Read("json", {}, "/in/events"), kinds, query, [query, *others])


def grouped(*columns: str) -> tuple[frozenset[str], list[Place]]:
    return frozenset({"events"}), [event(name) for name in columns]


ALL = [event(name) for name in ("n", "at", "team", "user")]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        (plan(), f'Input("{COLUMNS}")'),
        (plan(groups=[grouped("user")]), f'Input("{COLUMNS}", key="user")'),
        (plan(groups=[grouped("user", "team", "user")]), f'Input("{COLUMNS}", key=["user", "team"])'),
        (plan(groups=[grouped("user", "team"), grouped("team")]), f'Input("{COLUMNS}", key="team")'),
        (plan(groups=[grouped("user"), (frozenset({"others"}), [])]), f'Input("{COLUMNS}", key="user")'),
        (plan(groups=[grouped("user"), grouped()]), f'Input("{COLUMNS}")'),
        (plan(groups=[grouped("user", "at")], times=[TracedTime(event("at"))]), f'Input("{COLUMNS}", key="user")'),
        (plan(groups=[grouped("at", "team")]), f'Input("{COLUMNS}", key="team")'),
        (plan(kept=ALL), f'Input("{COLUMNS}", key="user")'),
        (plan(kept=ALL[:2]), f'Input("{COLUMNS}", key="n")'),
        (plan(kept=ALL[1:2]), f'Input("{COLUMNS}")'),
    ],
)
def test_the_key_is_what_all_operators_group_by_or_a_column_that_is_kept(query: Traced, text: str) -> None:
    assert infer(query).text == text


def test_of_the_columns_that_a_job_without_state_keeps_an_id_is_the_key() -> None:
    columns = "name string, order_id bigint, _corrupt_record string, price double, at timestamp"
    kept = [event(name) for name in ("name", "order_id", "_corrupt_record", "price", "at")]
    assert infer(plan(kept=kept), columns).input.key == "order_id"
    assert infer(plan(kept=[kept[0], kept[3]]), columns).input.key == "name"
    assert infer(plan(kept=kept[2:]), columns).input.key == ()


@pytest.mark.parametrize(
    ("columns", "query", "said", "guesses"),
    [
        ("user string, at timestamp", plan(times=[TracedTime(event("at"))]), "", 0),
        ("user string, at timestamp, b timestamp", plan(times=[TracedTime(event("b"))]), 'time="b"', 0),
        ("user string, at timestamp, b timestamp", plan(), 'time="at"', 1),
        ("user string, at timestamp, b timestamp", plan(other_times=[TracedTime(event("b"))]), 'time="b"', 0),
        ("user string, at timestamp, b bigint", plan(other_times=[TracedTime(event("b"), "s")]), "", 0),
        ("user string, at bigint", plan(times=[TracedTime(event("at"))]), 'time="at", time_format="s"', 0),
        ("user string, at bigint", plan(times=[TracedTime(event("at"), "ms")]), 'time="at", time_format="ms"', 0),
        ("user string, at string", plan(times=[TracedTime(event("at"))]), 'time="at"', 0),
        ("user string, at string", plan(times=[TracedTime(event("at"), None, False)]), 'time="at"', 1),
        ("user string, at bigint", plan(other_times=[TracedTime(event("at"), "ms")]), 'time="at", time_format="ms"', 0),
        ("user string, at bigint", plan(other_times=[TracedTime(event("at"), None, False)]), "time=False", 0),
        ("user string", plan(), "time=False", 0),
        ("user string, o struct<at: timestamp>", plan(times=[TracedTime(event("o", "at"))]), 'time="o.at"', 0),
        (
            "user string, o struct<at: bigint>",
            plan(times=[TracedTime(event("o", "at"))]),
            'time="o.at", time_format="s"',
            0,
        ),
    ],
)
def test_the_event_time_is_that_of_the_watermark_or_of_windows_or_the_first_timestamp(
    columns: str, query: Traced, said: str, guesses: int
) -> None:
    found = infer(query, columns)
    assert found.text == f'Input("{columns}"{", " * bool(said)}{said})'
    assert len(found.guesses) == guesses


def test_the_watermark_of_the_checked_query_comes_before_those_of_others() -> None:
    columns = "user string, at timestamp, b timestamp"
    other = plan(times=[TracedTime(event("at"))])
    assert infer(plan(times=[TracedTime(event("b"))]), columns, None, other).input.time == "b"
    assert infer(plan(), columns, None, other).input.time == "at"
    assert infer(plan(times=[TracedTime(Place("others", "b"))]), columns).input.time == "at"


def test_a_deduplication_says_what_makes_two_rows_an_event() -> None:
    found = infer(plan(identities=[[event("user"), event("at")]]))
    assert (found.input.identity, len(found.guesses)) == (("user", "at"), 1)
    assert infer(plan(identities=[[event("user")]])).input.identity == "user"
    everything = [event(name) for name in ("user", "at", "team", "n")]
    for no in ([everything], [[event("user"), event("nothing")]], [[Place("others", "user")]]):
        assert infer(plan(identities=no)).input.identity in ((), None), no


@pytest.mark.parametrize(
    ("columns", "identity", "key"),
    [
        ("user string, at timestamp, team string, n int", "user", "team"),
        ("user int, at timestamp, team string, n int", "user", ()),
        ("user string, at timestamp, team string, n int", "team", "team"),
    ],
)
def test_the_key_is_the_grouping_of_a_job_that_deduplicates_by_another_text(
    columns: str, identity: str, key: Any
) -> None:
    found = infer(plan(identities=[[event(identity)]], groups=[grouped(identity), grouped("team")]), columns).input
    assert (found.identity, found.key) == (identity, key)


def test_texts_that_a_job_reads_as_numbers_get_such_texts_and_are_no_keys() -> None:
    query = plan(casts={event("user"): frozenset({"double", "bigint"}), event("n"): frozenset({"bigint"})}, kept=ALL)
    found = infer(query)
    assert found.input.values == {"user": ("1", "2", "0", "-3")}
    assert found.input.key == "team"
    of_key = infer(plan(casts=query.casts, groups=[grouped("user")]))
    assert (of_key.input.key, of_key.input.values) == ((), {"user": ("1", "2", "0", "-3")})
    time = plan(casts={event("team"): frozenset({"date"})}, times=[TracedTime(event("team"), "%Y")])
    assert infer(time).input.values is None or not infer(time).input.values


KAFKA_READ = Read("kafka", {"subscribe": "events"})
KAFKA_COLUMNS = (
    "key binary, value binary, topic string, partition int, offset bigint, timestamp timestamp, timestampType int"
)


def payload(form: str = "json", schema: str | None = None, **more: Any) -> dict[Place, Payload]:
    fields = None if schema is None else _of_ddl(schema).jsonValue()  # type: ignore[attr-defined]
    return {within(): Payload(form, fields, **more)}


def infer_payload(query: Traced, *others: Traced) -> InferredInput:
    return infer(query, KAFKA_COLUMNS, KAFKA_READ, *others)


def test_a_record_s_payload_has_the_columns_of_its_schemas_and_of_single_fields() -> None:
    query = plan(
        payloads=payload(
            schema="user string, at timestamp", fields={("n",): "long", ("a", "b"): "string", ("user",): "int"}
        ),
        groups=[(frozenset({"events"}), [within("user")])],
    )
    found = infer_payload(query)
    columns = "user string, at timestamp, n bigint, a struct<b: string>"
    assert found.text == f'Input("{columns}", key="user", format="kafka")'
    both = infer_payload(query, plan(payloads=payload(schema="user string, more int")))
    assert both.input.schema == f"{columns}, more int"


def test_records_have_headers_where_the_script_asks_for_them() -> None:
    read = Read("kafka", {"subscribe": "events", "includeheaders": "True"})
    found = infer(plan(payloads=payload(schema="user string")), KAFKA_COLUMNS, read)
    assert found.text == 'Input("user string", format="kafka", headers=True)'
    assert found.input.headers is True


def test_a_record_without_a_known_payload_is_a_line_of_text() -> None:
    found = infer_payload(plan(groups=[(frozenset({"events"}), [event("value")])]))
    assert found.text == 'Input("line string", key="line", format="kafka", value="text")'
    assert infer_payload(plan(kept=[event("value")])).input.key == ()
    lines = infer(plan(), "value string", Read("text", {}, "/in/lines"))
    assert lines.text == 'Input("line string", format="text", value="text")'
    socket = infer(plan(), "value string", Read("socket", {}))
    assert 'format="text"' in socket.text


def test_a_record_s_key_is_a_column_where_rows_are_brought_together_by_it() -> None:
    parsed = payload(schema="user string")
    by_key = (frozenset({"events"}), [event("key"), within("user")])
    assert infer_payload(plan(payloads=parsed, groups=[by_key])).input.key == ("user", "key")
    found = infer_payload(plan(payloads=parsed, kept=[event("key"), within("user")]))
    assert (found.input.key, found.input.schema) == ("key", "key string, user string")
    own = infer_payload(plan(payloads=payload(schema="key string"), kept=[event("key")]))
    assert (own.input.key, own.input.schema) == ("key", "key string")


def test_a_payload_s_event_time_is_a_field_or_the_record_s_own() -> None:
    parsed = payload(schema="user string, at timestamp, n bigint")
    assert infer_payload(plan(payloads=parsed, times=[TracedTime(within("at"))])).input.time is None
    assert infer_payload(plan(payloads=parsed, times=[TracedTime(event("timestamp"))])).input.time == "timestamp"
    assert infer_payload(plan(payloads=parsed, times=[TracedTime(event("topic"))])).input.time is None
    number = infer_payload(plan(payloads=parsed, times=[TracedTime(within("n"), "ms")]))
    assert (number.input.time, number.input.time_format) == ("n", "ms")
    without = payload(schema="user string")
    assert infer_payload(plan(payloads=without, times=[TracedTime(event("timestamp"))])).input.time is None
    assert infer_payload(plan(payloads=without)).input.time is None


def test_texts_of_a_payload_that_are_cast_have_the_narrowest_of_the_types() -> None:
    parsed = payload(schema="user string, n string, m string")
    casts = {within("n"): frozenset({"double", "int"}), within("m"): frozenset({"string"})}
    found = infer_payload(plan(payloads=parsed, casts=casts))
    assert (found.input.schema, found.input.values) == ("user string, n int, m string", None)


def test_the_parts_of_a_text_are_columns_with_texts_without_separators() -> None:
    fields = {("0",): "string", ("2",): "long"}
    parsed = payload("split", separator="|", names={("0",): "user", ("2",): "n"}, fields=fields)
    found = infer_payload(plan(payloads=parsed, groups=[(frozenset({"events"}), [within("0")])]))
    assert found.input.schema == "user string, part1 string, n bigint"
    assert found.input.key == "user"
    assert found.input.values == {"part1": ("x", "y", "z", "A")}
    assert found.input.value({"user": "a", "part1": None, "n": 3}) == b"a||3"
    assert 'value=lambda row: "|".join(str(row[name]) for name in ["user", "part1", "n"]).encode()' in found.text
    twice = payload("split", separator="|", names={("0",): "n", ("1",): "n"}, fields={("0",): "long", ("1",): "long"})
    assert infer_payload(plan(payloads=twice)).input.schema == "part0 bigint, part1 bigint"


DEBEZIUM = "op string, before struct<id: int, name: string>, after struct<id: int, name: string>"


def test_changes_of_a_table_have_its_columns_and_its_primary_key() -> None:
    found = infer_payload(plan(payloads=payload(schema=DEBEZIUM)))
    assert found.text == 'Input("id int, name string", key="id", format="kafka", value="debezium")'
    assert [*found.guesses] == ["the table's primary key is id: set another with --key"]
    by_name = plan(payloads=payload(schema=DEBEZIUM), groups=[(frozenset({"events"}), [within("after", "name")])])
    assert (infer_payload(by_name).input.key, [*infer_payload(by_name).guesses]) == ("name", [])
    other = DEBEZIUM.replace("id: int, name", "name: string, order_id")
    assert infer_payload(plan(payloads=payload(schema=other))).input.key == "order_id"
    by_op = plan(payloads=payload(schema=DEBEZIUM), groups=[(frozenset({"events"}), [within("op")])])
    assert infer_payload(by_op).input.key == "id"


def test_a_csv_payload_is_said_to_be_one() -> None:
    assert infer_payload(plan(payloads=payload("csv", schema="user string"))).text == (
        'Input("user string", format="kafka", value="csv")'
    )


def test_another_option_of_an_input_is_said_in_its_text() -> None:
    found = infer(plan())
    other = found.with_option("key", "team")
    assert (other.input.key, other.text) == ("team", f'Input("{COLUMNS}", key="team")')
    assert as_text(other.input) == other.text


def test_columns_are_written_as_ddl_whatever_their_types() -> None:
    text = "`a b` string, s struct<`x-y`: int, z: array<map<string, int>>>, `ü` bigint"
    kinds: Any = _of_ddl(text)
    assert isinstance(kinds, StructType)
    assert ddl([*kinds]) == text


@pytest.mark.parametrize(
    ("name", "plain"),
    [
        ("/lake/events", "events"),
        ("/lake/events/*", "events"),
        ("shop.orders", "orders"),
        ("my-topic", "my_topic"),
        ("7days", "events_7days"),
        ("-", "events"),
        ("_x_", "x"),
    ],
)
def test_a_plain_name_is_the_last_part_as_sql_takes_it(name: str, plain: str) -> None:
    assert plain_name(name) == plain


def test_a_payload_whose_schema_is_no_struct_has_its_single_fields_alone() -> None:
    parsed = payload(fields={("n",): "long"})
    parsed[within()].schema = {"type": "array", "elementType": "string"}
    assert infer_payload(plan(payloads=parsed)).input.schema == "n bigint"


def infer_schema(schema: Any, **more: Any) -> InferredInput:
    return infer_payload(plan(payloads={within(): Payload("json", schema)}, **more))


def test_a_payload_that_is_an_array_of_rows_has_their_columns() -> None:
    rows = {"type": "array", "elementType": _of_ddl("user string, n int").jsonValue()}  # type: ignore[attr-defined]
    found = infer_schema(rows, groups=[(frozenset({"events"}), [within("user")])])
    assert found.text == 'Input("user string, n int", key="user", format="kafka", value="json_array")'
    assert found.input.value == "json_array"


def test_of_fields_that_differ_by_case_alone_the_first_is_drawn_and_that_is_told() -> None:
    found = infer_schema(_of_ddl("T string, n int, t string").jsonValue())  # type: ignore[attr-defined]
    assert found.input.schema == "T string, n int"
    assert [*found.guesses] == ["t of events is null, because its name differs from T only in case"]


def test_a_payload_that_is_a_map_has_any_names() -> None:
    found = infer_schema({"type": "map", "keyType": "string", "valueType": "long"})
    assert found.input.schema == "a bigint, b bigint"


def test_a_payload_of_which_no_field_is_known_is_any_text_and_that_is_told() -> None:
    for schema in (None, {"type": "array", "elementType": "string"}, {"type": "map", "valueType": {"type": "struct"}}):
        found = infer_schema(schema)
        assert found.text == 'Input("line string", format="kafka", value="text")', schema
        assert [*found.guesses] == [
            "the payload of events is any text, because its fields aren't known: set them with --input"
        ]


def test_single_fields_within_fields_make_structs() -> None:
    fields = {("a", "b"): "long", ("a", "c", "d"): "string", ("e",): "integer"}
    found = infer_payload(plan(payloads=payload(fields=fields)))
    assert found.input.schema == "a struct<b: bigint, c: struct<d: string>>, e int"


def test_texts_that_a_job_reads_as_times_are_times_in_the_form_that_it_tries_first() -> None:
    forms = [TracedTime(event("team"), "%d.%m.%Y"), TracedTime(event("team"), "%Y"), TracedTime(event("user"))]
    assert infer(plan(other_times=forms)).input.values == {
        "team": ["27.10.2024", "29.02.2024"],
        "user": ["2024-10-27T13:32:47.000000Z", "2024-02-29T00:00:00.000000Z"],
    }
    unknown = [TracedTime(event("team"), None, is_known=False), TracedTime(event("user"), "%H:%M")]
    assert infer(plan(other_times=unknown)).input.values is None
    parsed = payload(schema="user string, t string, at timestamp")
    found = infer_payload(plan(payloads=parsed, other_times=[TracedTime(within("t"), "%Y-%m-%d")]))
    assert found.input.values == {"t": ["2024-10-27", "2024-02-29"]}
    debezium = payload(schema=DEBEZIUM)
    changes = infer_payload(plan(payloads=debezium, other_times=[TracedTime(within("after", "name"), "%Y-%m-%d")]))
    assert changes.input.values is None
    only = plan(times=[TracedTime(event("team"), "%Y-%m-%d")], other_times=[TracedTime(event("team"), "%Y-%m-%d")])
    assert infer(only, "team string").input.values is None


def test_a_part_of_a_text_that_a_job_reads_as_a_time_is_one() -> None:
    parts = {(number,): "string" for number in "012"}
    parsed = payload("split", separator="|", names={("0",): "user", ("1",): "t", ("2",): "at"}, fields=parts)
    groups = [(frozenset({"events"}), [within("0")])]
    of_others = [TracedTime(within("1"), "%Y-%m-%d")]
    found = infer_payload(
        plan(payloads=parsed, groups=groups, times=[TracedTime(within("2"), "s")], other_times=of_others)
    )
    assert (found.input.time, found.input.values) == ("at", {"t": ["2024-10-27", "2024-02-29"]})


def test_texts_of_which_a_job_takes_parts_have_them_in_the_types_of_their_use() -> None:
    splits = [Split(event("team"), "_", 2, "integer"), Split(event("team"), "_", 0, "string")]
    assert infer(plan(splits=splits)).input.values == {"team": ["x_x_1", "y_y_2", "z_z_0"]}
    assert infer(plan(splits=[Split(event("n"), "_", 0, "string")])).input.values is None


def test_an_avro_payload_has_the_columns_of_its_schema_and_its_header(monkeypatch: pytest.MonkeyPatch) -> None:
    kinds: Any = _of_ddl("user string, n bigint")
    monkeypatch.setattr(inputs, "_of_avro", lambda schema: ((one.name, one.dataType) for one in kinds))
    text = (
        '{"type": "record", "name": "r", "fields": [{"name": "user", "type": "string"}, {"name": "n", "type": "long"}]}'
    )
    for has_header, said in ((False, f"avro({text!r})"), (True, f"avro({text!r}, schema_id=1)")):
        found = infer_payload(plan(payloads={within(): Payload("avro", text, has_header)}))
        assert found.text == f'Input("user string, n bigint", format="kafka", value={said})'
