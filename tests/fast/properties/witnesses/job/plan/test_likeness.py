"""Plans that compute the same rows: those of one frame, and those that the same code makes of two inputs."""

from __future__ import annotations

from typing import Any

import pytest
from given_plans import Expression, Operator, alias, column, literal, project, stream, table
from streamproof.properties.witnesses.job.plan.likeness import computes_same


def plan(first: int, limit: int = 3, folder: str = "in", of: Any = stream, kind: str = "GreaterThan") -> Operator:
    """Return a filter and a projection of an input whose columns have ids from `first` on."""
    user, n = column("user", first), column("n", first + 1)
    read = of(user, n)
    read.given["name"] = f"FileSource[/tmp/{folder}]"
    kept = Operator("Filter", read, expressions=[Expression(kind, n, literal(limit))])
    kept.given["name"] = f"{kind} {limit}"
    return project(kept, user, alias(n, "m", first + 2))


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (plan(1), plan(1), True),
        (plan(1), plan(41, folder="out"), True),
        (plan(1), plan(41, limit=4), False),
        (plan(1, of=table), plan(41, of=table), False),
        (plan(1, kind="PythonUDF"), plan(41, kind="PythonUDF"), False),
    ],
)
def test_plans_of_the_same_code_compute_the_same_unless_tables_or_functions_may_differ(
    one: Operator, other: Operator, same: bool
) -> None:
    assert computes_same(one, one)
    assert computes_same(one, other) == same


def test_a_column_stands_for_itself_alone() -> None:
    user, team = column("c", 1), column("c", 2)
    others = column("c", 7), column("c", 8)
    assert computes_same(project(stream(user, team), user), project(stream(*others), others[0]))
    assert not computes_same(project(stream(user, team), user), project(stream(user, team), team))
