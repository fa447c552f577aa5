"""The columns of a source without a schema, learned from Spark's errors."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job.inference.learning import Lacking, lacking


def other_types(expression: str, types: str) -> Any:
    said = {"sqlExpr": f'"{expression}"', "dataType": types}
    condition = "DATATYPE_MISMATCH.DATA_DIFF_TYPES"
    return SimpleNamespace(getCondition=lambda: condition, getMessageParameters=lambda: said, __cause__=None)


@pytest.mark.parametrize(
    ("expression", "types", "learned"),
    [
        ("least(100.0, humidity)", '["DOUBLE", "STRING"]', Lacking("humidity", "double")),
        ("greatest(0, `air temperature`)", '["INT", "STRING"]', Lacking("air temperature", "int")),
        ("coalesce(cast(a), b)", '["DOUBLE", "STRING"]', None),
        ("coalesce(a, x)", '["STRING", "STRING"]', None),
    ],
)
def test_the_only_column_of_a_call_has_the_type_of_its_other_arguments(
    expression: str, types: str, learned: Lacking | None
) -> None:
    assert lacking(other_types(expression, types)) == learned


@pytest.mark.parametrize(
    ("condition", "said", "learned"),
    [
        ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", {"objectName": "`user`"}, Lacking("user")),
        (
            "UNRESOLVED_COLUMN.WITH_SUGGESTION",
            {"objectName": "`e`.`user name`", "suggestion": "`a`, `b c`"},
            Lacking("user name", beside=frozenset({"a", "b c"})),
        ),
        ("UNRESOLVED_USING_COLUMN_FOR_JOIN", {"colName": "`user`"}, Lacking("user")),
        ("ATTRIBUTE_NOT_SUPPORTED", {"attr_name": "user"}, Lacking("user")),
        ("FIELD_NOT_FOUND", {"fieldName": "`user`"}, Lacking("user")),
        (
            "UNRESOLVED_COLUMN_AMONG_FIELD_NAMES",
            {"colName": "user", "fieldNames": "at, n"},
            Lacking("user", beside=frozenset({"at", "n"})),
        ),
        ("UNRESOLVED_COLUMN.WITHOUT_SUGGESTION", {}, None),
        ("EVENT_TIME_IS_NOT_ON_TIMESTAMP_TYPE", {"eventName": "`at`", "eventType": "x"}, Lacking("at", "timestamp")),
        (
            "DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE",
            {"inputSql": '"amount"', "requiredType": '("DOUBLE" or "DECIMAL")'},
            Lacking("amount", "double"),
        ),
        ("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", {"inputSql": '"tags"', "requiredType": '"ARRAY"'}, None),
        ("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", {"inputSql": '"tags"', "requiredType": '"MAP"'}, None),
        ("DATATYPE_MISMATCH.UNEXPECTED_INPUT_TYPE", {"requiredType": '"INT"'}, None),
        ("TABLE_OR_VIEW_NOT_FOUND", {"objectName": "`t`"}, None),
    ],
)
def test_the_column_that_is_missing_is_the_one_that_spark_names(
    condition: str, said: dict[str, str], learned: Lacking | None
) -> None:
    error: Any = SimpleNamespace(getCondition=lambda: condition, getMessageParameters=lambda: said, __cause__=None)
    older: Any = SimpleNamespace(getErrorClass=lambda: condition, getMessageParameters=lambda: said, __cause__=None)
    around: Any = SimpleNamespace(__cause__=error)
    assert [lacking(one) for one in (error, older, around)] == [learned] * 3
    assert lacking(None) is None
