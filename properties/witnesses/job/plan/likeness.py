"""Finds queries of a script that compute the same rows, so that one check is enough for these queries."""

from __future__ import annotations

import re
from typing import Any

from .plans import class_of, members, walk

_OWN = re.compile(r'"id":(\d+)|#(\d+)|FileSource\[([^\]]*)\]|([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})')
"""The parts of a plan's text that differ between two calls of the same code: ids, folders of empty frames, UUIDs."""


def computes_same(one: Any, other: Any) -> bool:
    """Return whether two analyzed plans compute the same rows, of the same input or of inputs of the same columns."""
    if one.sameResult(other):
        return True
    return all(map(_is_told, (one, other))) and _text(one) == _text(other)


def _is_told(plan: Any) -> bool:
    """Return whether a plan's text describes the plan completely. The text lacks the rows of tables, and the code of
    functions.
    """
    leaves = [class_of(node) for node in walk(plan) if not [*members(node.children())]]
    return all(kind.startswith("StreamingRelation") for kind in leaves) and "UDF" not in plan.toJSON()


def _text(plan: Any) -> str:
    seen: dict[str, int] = {}

    def numbered(found: re.Match[str]) -> str:
        return f"#{seen.setdefault(next(filter(None, found.groups())), len(seen))}"

    # The JSON lacks the delays of watermarks, and Spark's other text lacks the columns after the 25th.
    return _OWN.sub(numbered, f"{plan.toJSON()}\n{plan.toString()}")
