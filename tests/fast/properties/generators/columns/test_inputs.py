"""A job's inputs as a user gives them: what they become, and what is said of those that can't be used."""

from __future__ import annotations

import gzip
import sys
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import strategies as st
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import (
    ArrayType,
    IntegerType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
    VariantType,
)
from streamproof.properties.checking.jobs.job import check_job
from streamproof.properties.generators.columns import resolving
from streamproof.properties.generators.columns.inputs import Input, values_hint
from streamproof.properties.generators.columns.resolving import resolve, resolve_all
from streamproof.properties.generators.columns.schemas import arrow_schema
from streamproof.reference.core.errors import BadInput

CLICKS = "user string, at timestamp, amount bigint"
AT = datetime(2024, 5, 1, 12, tzinfo=UTC)


def test_a_schema_as_text_is_read_without_spark() -> None:
    schema = arrow_schema(
        "user STRING NOT NULL, `the time` Timestamp, xs array<struct<a: int, b: map<string, decimal(10,2)>>>, n dec"
    )
    assert schema.names == ["user", "the time", "xs", "n"]
    assert schema.field("user").type == pa.string()
    assert not schema.field("user").nullable
    assert schema.field("the time").type == pa.timestamp("us", "UTC")
    assert schema.field("xs").type.value_type.field("b").type.item_type == pa.decimal128(10, 2)
    assert schema.field("n").type == pa.decimal128(10, 0)


def test_a_schema_comes_as_text_as_struct_type_or_as_arrow_schema() -> None:
    struct = StructType([StructField("k", IntegerType(), False), StructField("at", TimestampType())])
    as_arrow = pa.schema([pa.field("k", pa.int32(), False), pa.field("at", pa.timestamp("ns", "Europe/Berlin"))])
    text = "k int not null, at timestamp"
    assert arrow_schema(struct) == arrow_schema(as_arrow) == arrow_schema(text)


def test_an_event_time_may_have_a_dot_in_its_name() -> None:
    assert resolve(Input("`a.b` timestamp, a int", time="a.b")).source.time == "a.b"


def test_a_key_is_one_column_several_or_none() -> None:
    assert resolve(Input(CLICKS, key="user")).source.key == ("user",)
    assert resolve(Input(CLICKS, key=["user", "amount"])).source.key == ("user", "amount")
    assert resolve(Input(CLICKS)).source.key == ()


def test_real_keys_are_tuples_of_the_key() -> None:
    assert resolve(Input(CLICKS, key="user", keys=["a", "b"])).keys == (("a",), ("b",))
    assert resolve(Input(CLICKS, key=("user", "amount"), keys=[("a", 1), ("b", None)])).keys == (("a", 1), ("b", None))


def test_values_are_a_sequence_or_a_strategy() -> None:
    given = Input(
        "user string, at timestamp, amount decimal(10,2), state string",
        key="user",
        values={"amount": [1, Decimal("2.5")], "state": st.sampled_from(["paid", "open"])},
    )
    pools = resolve(given).pools
    assert pools["amount"] == (Decimal("1.00"), Decimal("2.50"))
    assert set(pools["state"]) == {"paid", "open"}


def test_a_nested_value_may_have_another_form_than_arrow_s() -> None:
    given = Input("at timestamp, v array<int>, w struct<a: int>", values={"v": [(1, 2)], "w": [{}]})
    assert resolve(given).pools == {"v": ([1, 2],), "w": ({"a": None},)}


def test_the_same_seed_draws_the_same_from_a_strategy() -> None:
    given = Input(CLICKS, key="user", values={"amount": st.integers(-(10**6), 10**6)})
    assert resolve(given, 1).pools == resolve(given, 1).pools != resolve(given, 2).pools


@pytest.mark.parametrize("form", ["parquet", "csv", "pandas", "arrow"])
def test_a_sample_gives_schema_and_rows(form: str, tmp_path: Path) -> None:
    times = pa.array([AT, AT], pa.timestamp("us", "UTC"))
    table = pa.table({"user": ["a", "b"], "at": times, "amount": [1, 2]})
    sample: object = table
    if form == "parquet":
        pyarrow.parquet.write_table(table, tmp_path / "clicks.parquet")
        sample = tmp_path / "clicks.parquet"
    elif form == "csv":
        (tmp_path / "clicks.csv").write_text("user,at,amount\na,2024-05-01 12:00:00,1\nb,2024-05-01 12:00:00,2\n")
        sample = str(tmp_path / "clicks.csv")
    elif form == "pandas":
        sample = pd.DataFrame({"user": ["a", "b"], "at": pd.to_datetime([AT, AT]).tz_localize(None), "amount": [1, 2]})
    resolved = resolve(Input(sample=sample, time="at", key="user"))
    assert resolved.source.schema == arrow_schema(CLICKS)
    assert list(resolved.sample) == [{"user": "a", "at": AT, "amount": 1}, {"user": "b", "at": AT, "amount": 2}]


def test_a_sample_is_cast_to_the_schema_beside_it() -> None:
    table = pa.table({"more": [0], "amount": pa.array([3], pa.int32()), "at": pa.array([AT]), "user": ["a"]})
    (row,) = resolve(Input(CLICKS, key="user", sample=table)).sample
    assert row == {"user": "a", "at": AT, "amount": 3}


def test_of_a_large_sample_rows_are_taken_all_over_it() -> None:
    count = 5000
    table = pa.table({"user": ["a"] * count, "at": pa.array([AT] * count), "amount": range(count)})
    amounts = [row["amount"] for row in resolve(Input(sample=table, key="user")).sample]
    assert len(amounts) == 1000
    assert max(amounts) > 4900


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (Input(), "input events has neither schema nor sample: give a schema such as"),
        (Input(7), "input events: schema is a int: give a DDL string"),
        (Input("user string, at timestamp, USER int"), "input events: the schema has the column 'user' twice"),
        (Input(StructType([])), "has no columns: name them"),
        (
            Input(CLICKS, "when"),
            "input events: there is no column 'when', named as the event time: it has user, at, amount",
        ),
        (
            Input(CLICKS, "amount"),
            "input events: the event time 'amount' is int64, and its unit isn't known: give time_format=\"s\", ",
        ),
        (Input("a int"), 'event time? no column is a timestamp: name it, Input(…, time="a"), and'),
        (Input("b timestamp, c timestamp"), 'event time? b, c are timestamps: name it, Input(…, time="b"), and'),
        (Input(CLICKS, key="users"), "input events: there is no column 'users', named as the key: it has user"),
        (Input(CLICKS, key="at"), "'at' is both its event time and in its key"),
        (Input(CLICKS, key=7), "key is 7: name one or more columns of user, at, amount"),
        (Input(CLICKS, values=[7]), "values is [7]: give a mapping from some of user, at, amount"),
        (Input(CLICKS, key=("user", "user")), "key names a column twice"),
        (Input(CLICKS, key="user", keys=[]), "keys is []: give a list"),
        (Input(CLICKS, key="user", keys="ab"), "keys is 'ab': give a list"),
        (Input(CLICKS, keys=["a"]), "has keys but no key"),
        (Input(CLICKS, key="user", keys=[7]), "keys has 7, which isn't of type string"),
        (Input(CLICKS, key=("user", "amount"), keys=["a"]), "keys has 'a': give a tuple of user, amount"),
        (Input("u string not null, at timestamp", key="u", keys=[None]), "isn't nullable"),
        (Input(CLICKS, values={"amounts": [1]}), "there is no column 'amounts', named in values"),
        (Input(CLICKS, values={"at": [AT]}), "values names the event time 'at'"),
        (Input(CLICKS, values={"amount": []}), "values['amount'] has no values"),
        (Input(CLICKS, values={"amount": 7}), "values['amount'] is 7: give a Hypothesis strategy or a list"),
        (Input(CLICKS, values={"amount": ["x"]}), "values['amount'] has 'x', which isn't of type int64"),
        (Input(CLICKS, values={"amount": [1.5]}), "values['amount'] has 1.5, which becomes 1 as int64"),
        (
            Input(CLICKS, values={"amount": [2**63]}),
            "values['amount'] has 9223372036854775808, which isn't of type int64",
        ),
        (Input(CLICKS, values={"amount": st.nothing()}), "values['amount'] can't be drawn from"),
        (Input(CLICKS, key="user", values={"user": ["a", None]}), "values['user'] has null, and 'user' is in the key"),
        (Input("u string, at timestamp, t timestamp", "at", values={"t": [datetime(2024, 5, 1)]}), "give it a zone"),
        (
            Input(pa.schema([("n", pa.uint64()), ("at", pa.timestamp("us"))])),
            "Spark has no type for the Arrow type uint64",
        ),
        *(
            (
                Input(pa.schema([("n", kind), ("at", pa.timestamp("us"))])),
                f"'n' has the type {shown}, which Arrow can't",
            )
            for kind, shown in (
                (pa.decimal256(40, 2), "decimal(40,2)"),
                (pa.list_(pa.decimal256(40, 2)), "array<decimal(40,2)>"),
                (pa.decimal128(10, -2), "decimal(10,-2)"),
                (pa.list_(pa.decimal128(10, -2)), "array<decimal(10,-2)>"),
            )
        ),
        (Input(sample="nowhere.parquet"), "the sample nowhere.parquet can't be read"),
        (Input(sample=[{"a": 1}]), "the sample is a list: give the path"),
        (Input(sample=pd.DataFrame({"user": [], "at": []})), "the sample has no rows"),
        (Input(sample=pd.DataFrame({"user": ["a"]}), time="at"), "there is no column 'at', named as the event time"),
        (Input(CLICKS, sample=pd.DataFrame({"user": ["a"], "amount": [1]})), "the sample lacks the column 'at'"),
        (Input(CLICKS, sample=pd.DataFrame({"user": ["a"], "at": [AT], "amount": ["x"]})), "doesn't fit int64"),
        (
            Input("at timestamp, __streamproof_time int"),
            "is a name that streamproof reserves: rename it",
        ),
        (Input("at timestamp, `__STREAMPROOF_clock` int"), "is a name that streamproof reserves: rename it"),
        (
            Input(CLICKS, values={"amount": st.integers().map(lambda number: 1 // 0)}),
            "values['amount'] can't be drawn from: ZeroDivisionError: integer division or modulo by zero;",
        ),
        (
            Input(CLICKS, values={"amount": st.integers().map(lambda number: sys.exit(number))}),
            "the strategy of values['amount'] ended the program with exit(0): return",
        ),
        *(
            (
                Input(StructType([StructField("at", TimestampType()), StructField("v", kind)])),
                "give another type",  # Arrow would change it
            )
            for kind in (VariantType(), VarcharType(3), StringType("UTF8_LCASE"), ArrayType(VariantType()))
        ),
    ],
)
def test_an_input_that_cannot_be_used_is_named_with_the_remedy(given: Input, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        resolve(given)
    assert said in raised.value.message
    assert "input events" in raised.value.message


def test_a_type_without_values_needs_a_sample_or_the_user_s_values(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resolving, "unsupported", lambda kind: kind if kind == pa.binary() else None)
    sample = pa.table({"at": [AT], "v": [b"x"]})
    with pytest.raises(BadInput, match="no values can be drawn for the column 'v' of the type binary: give some"):
        resolve(Input(sample.schema))
    assert resolve(Input(sample=sample)).sample[0]["v"] == b"x"
    assert resolve(Input(sample.schema, values={"v": [b"y"]})).pools == {"v": (b"y",)}


@pytest.mark.parametrize("kind", ["timestamp", "timestamp_ntz", "map<string, array<struct<a: decimal(5,1)>>>", "date"])
def test_a_type_is_what_spark_makes_of_its_table(kind: str) -> None:
    (field,) = from_arrow_schema(arrow_schema(f"v {kind}")).fields
    assert field.dataType.simpleString() == kind.replace(" ", "")


class Unknown:
    """What nothing knows, shown alike in every process: workers must collect the same tests."""

    def __repr__(self) -> str:
        return "unknown"


UNKNOWN = Unknown()
STRANGE = (None, 0, 1.5, "", "x", b"x", [], ["x"], [None], {}, {"x": 1}, {"amount": "x"}, {"amount": UNKNOWN}, UNKNOWN)


@pytest.mark.parametrize("field", ["time", "key", "name", "keys", "values", "sample"])
@pytest.mark.parametrize("value", STRANGE, ids=range(len(STRANGE)))
def test_whatever_is_given_is_taken_or_refused_in_one_line(field: str, value: object) -> None:
    given: dict[str, Any] = {"schema": CLICKS, "time": "at", "key": "user", field: value}
    said = "input events: taken"
    try:
        resolve(Input(**given))
    except BadInput as error:
        said = error.message
    assert "\n" not in said
    assert said.startswith(("input ", "an input's name"))


@pytest.mark.parametrize("given", ["values", "keys"])
def test_of_more_values_than_fit_into_the_memory_some_are_taken(given: str) -> None:
    amounts = range(10**12)
    resolved = resolve(Input(CLICKS, key="amount", **{given: {"amount": amounts} if given == "values" else amounts}))
    taken = resolved.pools["amount"] if given == "values" else [key for (key,) in resolved.keys]
    assert len(taken) == 1000
    assert {0, 10**12 - 1} <= {*taken}


def test_a_sample_may_be_compressed(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "clicks.csv.gz", "wt") as file:
        file.write("user,at,amount\na,2024-05-01 12:00:00,1\n")
    assert resolve(Input(sample=tmp_path / "clicks.csv.gz", key="user")).sample[0]["at"] == AT


def test_two_inputs_have_two_names() -> None:
    with pytest.raises(BadInput, match="two inputs have the name 'events'"):
        resolve_all([Input(CLICKS), Input(CLICKS)])
    assert [given.name for given in resolve_all([Input(CLICKS), Input(CLICKS, name="more")])] == ["events", "more"]


def test_a_hint_lists_values_of_a_column_of_the_job_s_own() -> None:
    inputs = [resolve(Input("user string, at timestamp, amounts int, amount int", key="user"))]
    assert values_hint(inputs, "sum(amount) > 7") == 'values={"amount": […]}'
    assert values_hint(inputs) == 'values={"amounts": […]}'
    assert values_hint([resolve(Input("user string, at timestamp", key="user"))]) == "keys=[…]"


def test_names_that_differ_in_case_alone_are_one_to_sql() -> None:
    with pytest.raises(BadInput, match=r"two inputs have the name 'a' and 'A' \(SQL ignores case\): give each"):
        resolve_all([Input(CLICKS, name="a"), Input(CLICKS, name="A")])
    with pytest.raises(BadInput, match="two inputs or static tables have the name 'events' and 'Events'"):
        check_job(lambda events, static: events, Input(CLICKS), expect="select 1", static={"Events": [{"id": 1}]})


def test_a_bare_schema_is_no_input() -> None:
    with pytest.raises(BadInput, match="wrap its schema as Input"):
        resolve_all([CLICKS])  # type: ignore[list-item]
    with pytest.raises(BadInput, match="no input"):
        resolve_all([])
