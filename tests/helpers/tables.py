"""Tables of cases that each cost a query: CI runs a few of them that differ in kind, `make test-weekly` all."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import pytest

WEEKLY = pytest.mark.weekly("a query and more a case: CI runs those of the table that differ in kind")


def table(cases: Iterable[Any], in_ci: Callable[[Any], bool], name: Callable[[Any], str] | None = None) -> list[Any]:
    """Return the cases as parameters of a test, marked `weekly` but for those that CI runs.

    Args:
        cases: The cases, each a parameter or a tuple of them.
        in_ci: Whether CI runs a case.
        name: The case's name in the test's id.
    """
    return [
        pytest.param(
            *(case if isinstance(case, tuple) else (case,)),
            id=name(case) if name else None,
            marks=[] if in_ci(case) else WEEKLY,
        )
        for case in cases
    ]
