"""Packing: histories in one query and back, and what can't be packed or read back."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from streamproof.properties.generators.columns.forms.rows import from_microseconds
from streamproof.properties.generators.columns.histories.drawing import draw_histories
from streamproof.properties.generators.columns.inputs import Input, ResolvedInput
from streamproof.properties.generators.columns.key_spaces import (
    MOST,
    identity_column,
    key_space,
    shared_identities,
    why_alone,
)
from streamproof.properties.generators.columns.model import Arrival, JobHistory
from streamproof.properties.generators.columns.packing import UnreadableKey, pack, pack_tables, unpack
from streamproof.properties.generators.columns.resolving import resolve, resolve_all
from streamproof.properties.generators.columns.values import plain_values
from streamproof.reference.core.errors import BadInput

MINUTE = 60_000_000


def drawn(inputs: list[ResolvedInput], count: int = 60) -> list[JobHistory]:
    return draw_histories(inputs, [10 * MINUTE], count, 0)


USERS = resolve(Input("user string, at timestamp", key="user"))


def of_user(user: Any) -> JobHistory:
    """A history of one row."""
    return JobHistory(((Arrival("events", {"user": user, "at": from_microseconds(5)}),),), (5,))


OF_A = of_user("a")


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    columns = [plain_values(table.column(name)) for name in table.schema.names]
    return [dict(zip(table.schema.names, row, strict=True)) for row in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("schema", "key", "carrier"),
    [
        ("user string, at timestamp, amount double", "user", "user"),
        ("id bigint, at timestamp_ntz, xs array<string>", "id", "id"),
        ("id int, at timestamp, m map<string, int>", "id", "id"),
        ("day date, id int, at timestamp", ("day", "id"), "id"),
        ("id int, user string, at timestamp, n bigint", ("id", "n", "user"), "user"),
        ("id int, n bigint, at timestamp, b boolean", ("id", "n"), "n"),
    ],
)
def test_what_is_packed_unpacks_to_every_history_as_it_was(schema: str, key: Any, carrier: str) -> None:
    given = resolve(Input(schema, key=key))
    histories = drawn([given])
    assert key_space([given.source]).columns == {"events": carrier}
    batches = pack(histories, [given])
    for number, tables in enumerate(batches):
        assert tables["events"].schema == given.source.schema
        back = unpack(rows_of(tables["events"]), histories, [given.source], [carrier])
        for history, rows in zip(histories, back, strict=True):
            assert sorted(map(repr, rows)) == sorted(repr(dict(row)) for _, row in history.batches[number])


ORDERS = "shop string, at timestamp, order string, n bigint"


@pytest.mark.parametrize(
    ("schema", "identity", "column", "shared"),
    [
        (ORDERS, ("order",), "order", []),
        (ORDERS, ("n", "order"), "order", []),
        (ORDERS, ("shop", "order"), None, []),
        (ORDERS, (), None, []),
        (ORDERS, ("n",), None, ["n"]),
        (ORDERS.replace("shop string", "shop bigint"), ("order", "n"), None, ["order", "n"]),
    ],
)
def test_events_of_two_histories_have_other_identities(
    schema: str, identity: tuple[str, ...], column: str | None, shared: list[str]
) -> None:
    given = resolve(Input(schema, key="shop", identity=identity))
    assert identity_column(given, key_space([given.source])) == column
    assert shared_identities([given]) == shared
    histories = drawn([given])
    (tables, *_) = pack(histories, [given])
    rows = rows_of(tables["events"])
    assert rows
    assert column is None or all(row[column][:6] == row["shop"][:6] for row in rows)
    back = unpack(rows, histories, [given.source], ["shop"])
    for history, own in zip(histories, back, strict=True):
        assert sorted(map(repr, own)) == sorted(repr(dict(row)) for _, row in history.batches[0])


def test_an_identity_that_the_user_lists_as_null_stays_null_and_none_is_drawn_otherwise() -> None:
    def identities(**more: Any) -> set[Any]:
        given = resolve(Input(ORDERS, key="shop", identity="order", **more))
        return {row["order"] for row in rows_of(pack(drawn([given]), [given])[0]["events"])}

    assert None in identities(values={"order": ["a", None]})
    # The key's column with the history's number isn't part of the identity, though another column of the key is.
    of_two = resolve(Input(ORDERS, key=["n", "shop"], identity=["n", "order"]))
    assert identity_column(of_two, key_space([of_two.source])) == "order"
    assert all(row["order"] for row in rows_of(pack(drawn([of_two]), [of_two])[0]["events"]))
    assert None not in identities()


def test_the_order_of_rows_is_the_seeds() -> None:
    histories = drawn([USERS])
    first, again, other = (pack(histories, [USERS], seed) for seed in (1, 1, 2))
    assert first == again != other
    assert all(
        sorted(map(str, rows_of(one["events"]))) == sorted(map(str, rows_of(two["events"])))
        for one, two in zip(first, other, strict=True)
    )


def test_negative_keys_and_the_ends_of_a_range_come_back() -> None:
    for schema, stride in (("k bigint, at timestamp", 1 << 40), ("k int, at timestamp", 1 << 14)):
        space = key_space([resolve(Input(schema, key="k")).source])
        for number in (1, 77, MOST):
            for value in (0, 1, -1, -stride // 2, stride // 2 - 1):
                assert space.unpacked(space.packed(number, value)) == (number, value)
                assert -(2 ** (31 if "int" in schema and "big" not in schema else 63)) <= space.packed(number, value)
        plain = (0, 5, -1, stride // 2 - 1, -stride, True, 1.5, None, "00001|a")
        assert [space.unpacked(value) for value in plain] == [None] * len(plain)
        with pytest.raises(BadInput, match="outside of"):
            space.packed(1, stride // 2)
        assert space.packed(MOST, stride // 2 - 1) < (2**31 if stride == 1 << 14 else 2**63)


@pytest.mark.parametrize("kind", ["date", "double", "boolean", "smallint", "decimal(10,0)", "binary", "timestamp"])
def test_a_key_without_room_says_why(kind: str) -> None:
    given = resolve(Input(f"k {kind}, at timestamp", time="at", key="k"))
    assert "no key column of text, int or bigint" in str(why_alone([given]))
    with pytest.raises(BadInput, match="in a separate query"):
        pack(drawn([given], 2), [given])


def test_inputs_without_a_key_or_with_the_users_own_run_alone() -> None:
    assert why_alone([resolve(Input("user string, at timestamp"))]) == (
        "input events has no key; each history then runs in a separate query"
    )
    assert "keys that the test gives" in str(why_alone([resolve(Input("u string, at timestamp", key="u", keys=["a"]))]))
    assert why_alone([resolve(Input("u string, at timestamp", key="u"))]) is None


def test_inputs_keep_the_number_in_the_column_that_they_share() -> None:
    def columns(*keys: tuple[str, Any]) -> dict[str, str]:
        inputs = resolve_all(
            [Input(schema + ", at timestamp", key=key, name=f"i{n}") for n, (schema, key) in enumerate(keys)]
        )
        return dict(key_space([given.source for given in inputs]).columns)

    shared = columns(("id int, user string", ("id", "user")), ("user string, id bigint", ("user", "id")))
    assert shared == {"i0": "user", "i1": "user"}
    assert columns(("id int", "id"), ("number bigint", "number")) == {"i0": "id", "i1": "number"}
    with pytest.raises(BadInput, match="no column of the key in common"):
        columns(("id int", "id"), ("name string", "name"))


def test_ranges_of_int_and_bigint_are_the_same_where_they_are_joined() -> None:
    inputs = resolve_all([Input("k int, at timestamp", key="k"), Input("k bigint, at timestamp", key="k", name="more")])
    assert key_space([given.source for given in inputs]).stride == 1 << 14


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("A", "the key 'A' (str) in the column 'user', which isn't a key that it was given (such as '00001|a')"),
        ("00001|A", "the key '00001|A'"),
        ("00009|a", "the key '00009|a'"),
        (7, "the key 7 (int)"),
        (None, "whose key is null, user None, n 1"),
    ],
)
def test_a_key_that_cannot_be_read_back_is_shown(value: Any, said: str) -> None:
    with pytest.raises(BadInput) as raised:
        unpack([{"user": value, "n": 1}], [OF_A], [USERS.source], ["user"])
    assert said in raised.value.message


def test_after_an_outer_join_the_key_of_one_side_is_enough() -> None:

    def back(**row: Any) -> list[list[Any]]:
        return unpack([row], [OF_A, OF_A], [USERS.source], ["user", "buyer"])

    assert back(user=None, buyer="00002|a") == [[], [{"user": None, "buyer": "a"}]]
    assert back(user="00001|a", buyer="00001|a") == [[{"user": "a", "buyer": "a"}], []]
    with pytest.raises(BadInput, match="the keys of two histories, numbers 1 and 2"):
        back(user="00001|a", buyer="00002|a")
    with pytest.raises(BadInput, match="no column 'buyer': it has user; select the key"):
        back(user="00001|a")


@pytest.mark.parametrize(("kind", "key"), [("string", "a"), ("string", "00001|a"), ("bigint", 7), ("int", -1)])
def test_a_key_is_read_back_wherever_the_job_has_put_it(kind: str, key: Any) -> None:
    given = resolve(Input(f"user {kind}, at timestamp", key="user"))
    history = of_user(key)
    (tables,) = pack([history] * 3, [given])
    users = tables["events"].column("user").to_pylist()
    rows = [
        {"user": user, "who": user, "nested": {"of": [user, None]}, "n": number} for number, user in enumerate(users)
    ]
    wanted = {"user": key, "who": key, "nested": {"of": [key, None]}}
    of_each = unpack(rows, [history] * 3, [given.source], ["user"])
    assert [[{**row, "n": 0} for row in of] for of in of_each] == [[{**wanted, "n": 0}]] * 3


def test_a_number_that_is_no_key_everywhere_stays_as_it_is() -> None:
    given, history = resolve(Input("user int, at timestamp", key="user")), of_user(1)
    (tables,) = pack([history] * 2, [given])
    users = tables["events"].column("user").to_pylist()
    rows = [{"user": user, "total": users[0]} for user in users]
    assert unpack(rows, [history] * 2, [given.source], ["user"]) == [[{"user": 1, "total": users[0]}]] * 2


@pytest.mark.parametrize(
    ("packed", "unpacked"),
    [
        ({"user": "00001|a", "label": "00001|a: 3"}, {"user": "a", "label": "a: 3"}),
        ({"user": "00001|a", "other": "00002|a"}, {"user": "a", "other": "00002|a"}),
    ],
    ids=["made of its own key", "of another history's key, so that the difference shows"],
)
def test_a_text_is_unpacked_where_it_is_made_of_the_history_s_own_key(
    packed: dict[str, Any], unpacked: dict[str, Any]
) -> None:
    assert unpack([packed], [OF_A] * 2, [USERS.source], ["user"]) == [[unpacked], []]


def test_a_null_key_is_not_packed() -> None:
    with pytest.raises(BadInput, match="a null key doesn't show its history"):
        pack([of_user(None)], [USERS])


def test_histories_of_different_clocks_are_not_packed() -> None:
    with pytest.raises(ValueError, match="no one clock schedule"):
        pack([JobHistory(((),), (5,)), JobHistory(((),), (6,))], [USERS])


def test_each_history_has_a_table_of_keys_under_its_own_keys_and_gets_back_its_rows() -> None:
    source = USERS.source
    tables = {"names": pa.table({"id": [1, 2], "user": ["a", "b"]}), "days": pa.table({"user": ["a"]})}
    packed = pack_tables(tables, {"names": "user"}, 2, [source])
    assert packed["days"] is tables["days"]
    assert packed["names"].schema == tables["names"].schema
    rows = packed["names"].to_pylist()
    assert [row["id"] for row in rows] == [1, 2, 1, 2]
    assert len({row["user"] for row in rows}) == 4
    silent = JobHistory(((),), (5,))
    assert unpack(rows, [silent] * 2, [source], ["user"], {"a", "b"}) == [tables["names"].to_pylist()] * 2
    with pytest.raises(UnreadableKey):
        unpack(rows, [silent] * 2, [source], ["user"])


@pytest.mark.parametrize(
    ("schema", "keys", "said"),
    [
        ("user string, at timestamp", ["a", None], "a null key"),
        ("user string, at timestamp", [1], "can't be kept apart"),
        ("user bigint, at timestamp", ["a"], "can't be kept apart"),
        ("user bigint, at timestamp", [1 << 50], "outside of"),
        ("user string, at timestamp", ["a"] * 200_000, "a table names of 200000 rows each"),
    ],
)
def test_a_table_of_keys_that_cant_be_kept_apart_lets_histories_run_alone(
    schema: str, keys: list[Any], said: str
) -> None:
    source = resolve(Input(schema, key="user")).source
    with pytest.raises(UnreadableKey, match=said):
        pack_tables({"names": pa.table({"user": keys})}, {"names": "user"}, 2, [source])
