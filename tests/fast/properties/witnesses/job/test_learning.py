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
