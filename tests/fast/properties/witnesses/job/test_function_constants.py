"""The constants in the code of functions, which no plan shows."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

import history_lines
from streamproof.properties.witnesses.job.function_constants import MAX_CONSTANTS, constants_in

LIMIT = 4_711
KINDS = ("gold", "silver")
TABLE = {"bronze": 12}


def helper(value: int) -> bool:
    """Says 99 in its document."""
    return value > LIMIT or str(value) in KINDS


class Base:
    floor = 17

    def low(self, value: float) -> bool:
        return value < 2.5


class Processor(Base):
    """Looks for 98."""

    def __init__(self, most: int) -> None:
        self.most = most

    def rows(self, rows: list[int]) -> list[Any]:
        def inner(row: int) -> bool:
            return row == 333 or helper(row) or TABLE.get(str(row)) is None

        return [json.dumps(row) for row in rows if inner(row) and row in {5, 6}]


class Refusing:
    @property
    def __dict__(self) -> Any:
        raise RuntimeError


def of_a_module(value: float) -> bool:
    return value > history_lines.LATEST


def job(amount: int) -> list[Any]:
    def nested(row: int) -> bool:
        return row > 55

    return [Processor(1234), nested, 77, amount > 88]


def test_constants_are_found_in_classes_their_instances_nested_functions_and_globals() -> None:
    found = constants_in([Processor(1234)])
    assert {4_711, "gold", "silver", "bronze", 12, 17, 2.5, 1234, 333, 5, 6} <= {*found}
    assert not {0, 1, "", None} & {*found}
    assert not any("98" in str(value) or "99" in str(value) for value in found)
    assert found == constants_in([Processor(1234)])
    assert 4_711 in constants_in([partial(helper)])


def test_constants_of_a_user_s_module_are_found_by_their_names() -> None:
    assert constants_in([of_a_module]) == [history_lines.LATEST]


def test_the_constants_of_a_job_itself_are_left_out_where_its_plan_shows_them() -> None:
    assert {55, 77, 88, 333} <= {*constants_in([job])}
    found = constants_in([job], without=job)
    assert {55, 333} <= {*found}
    assert not {77, 88} & {*found}


def test_a_statement_has_the_numbers_and_texts_in_it() -> None:
    statement = "SELECT * FROM orders1 WHERE amount > 1_000 AND kind = 'it''s' AND rate < 0.25 AND n = 3"
    assert constants_in([statement]) == [1_000, "it's", 0.25, 3]
    assert constants_in(["paid"]) == ["paid"]


def test_code_of_libraries_is_not_followed_and_constants_have_an_end() -> None:
    assert constants_in([json.dumps, json.JSONDecoder(), 5.5]) == [5.5]
    assert len(constants_in([[*range(10_000)]])) == MAX_CONSTANTS
    assert constants_in([Refusing(), 5.5]) == [5.5]
    loop: list[Any] = []
    loop.append(loop)
    assert constants_in([loop]) == []


def test_a_module_s_code_has_its_constants() -> None:
    assert constants_in([compile("LIMIT = 42\ndef f(x):\n    return x > 43", "script.py", "exec")]) == [42, 43]


def test_zero_one_and_an_empty_text_are_no_constants_and_others_are() -> None:
    assert constants_in([lambda x: x in (0, 1, -1, "", True, None), 0, 1, -1, "", "a > 0 OR b = 1 OR c = ''"]) == [
        "a > 0 OR b = 1 OR c = ''"
    ]
    assert constants_in([2, -2, 0.5, "0", " "]) == [2, -2, 0.5, "0", " "]


def test_what_an_object_of_the_user_s_refers_to_is_looked_at() -> None:
    class Limits:
        least = 111

        def __init__(self) -> None:
            self.most = 222

        @staticmethod
        def of_all() -> int:
            return 333

        @classmethod
        def of_class(cls) -> int:
            return 444

        @property
        def middle(self) -> int:
            return 555

        @middle.setter
        def middle(self, value: int) -> None:
            self.other = 666

    def with_default(value: Any, limit: int = 777) -> Any:
        return value > limit

    limits = Limits()
    for root, wanted in (
        (limits, {111, 222, 333, 444, 555, 666}),
        (Limits, {111, 333, 444, 555, 666}),
        (limits.of_class, {111, 333, 444, 555, 666}),
        (partial(with_default, 888, limit=999), {777, 888, 999}),
        ([11, (12, {13}), {"key": 14}], {11, 12, 13, 14, "key"}),
        (frozenset({15}), {15}),
    ):
        found = {*constants_in([root])}
        assert wanted <= found, (root, found)


def closing(limit: Any) -> Any:
    def inner(row: int) -> bool:
        return row > limit

    if limit is None:
        del limit  # the closure has no value
    return inner


def with_defaults(row: int, most: int = 4_001, *kinds: str, least: int = 4_002, of: Any = (4_003, "iron")) -> bool:
    return least < row < most


def test_constants_in_closures_and_in_defaults_of_parameters_are_found() -> None:
    assert constants_in([closing(4_321)]) == [4_321]
    assert constants_in([closing(helper)]) == constants_in([helper])
    assert constants_in([closing(None)]) == []
    assert {*constants_in([with_defaults])} == {4_001, 4_002, 4_003, "iron"}
