"""A job's queries read a plan once, where its text tells that it is the same: without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof import Input
from streamproof.properties.generators.columns.resolving import resolve_all
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.query import declaration
from streamproof.properties.witnesses.job.query.declaration import JobDeclaration


@pytest.mark.parametrize(
    ("texts", "plan", "times_read"),
    [
        (["Filter (user#1 = a)", "Filter (user#7 = a)"], Plan(), 1),
        (["Filter (n#1L > n#2L)", "Filter (n#8L > n#9L)"], Plan(), 1),
        (["Filter (user#1 = user#2)", "Filter (user#1 = user#1)"], Plan(), 2),
        (["Scan /tmp/one/input", "Scan /tmp/two/input"], Plan(), 1),
        (["Filter (n#1 > 1)", "Filter (n#1 > 2)"], Plan(), 2),
        (["Project [a#1, ... 3 more fields]"] * 2, Plan(), 2),
        (["Join"] * 2, Plan(looked_up=(("user", 1),)), 2),
        (["State"] * 2, Plan(initial_keys=[frozenset({1})]), 2),
    ],
    ids=["numbers", "longs", "sides", "folders", "literals", "a cut text", "a lookup", "an initial state"],
)
def test_a_plan_is_read_once_if_its_text_is_the_same(
    monkeypatch: pytest.MonkeyPatch, texts: list[str], plan: Plan, times_read: int
) -> None:
    read: list[str] = []

    def plan_of(analyzed: Any, *how: str) -> Plan:
        read.append(analyzed.toString())
        return plan

    monkeypatch.setattr(declaration, "plan_of", plan_of)
    runnable = SimpleNamespace(plans={})
    spark = SimpleNamespace(conf={})
    for text, folder in zip(texts, ("/tmp/one", "/tmp/two"), strict=True):
        query: Any = SimpleNamespace(folder=Path(folder), runnable=runnable, spark=spark, mode="append")
        assert JobDeclaration.plan_of(query, SimpleNamespace(toString=lambda text=text: text)) == plan
    assert len(read) == times_read


def test_a_version_in_another_mode_has_a_plan_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[str] = []
    monkeypatch.setattr(declaration, "plan_of", lambda analyzed, clock, mode, policy: read.append(mode) or Plan())
    query: Any = SimpleNamespace(
        folder=Path("/tmp"), runnable=SimpleNamespace(plans={}), spark=SimpleNamespace(conf={})
    )
    for query.mode in ("append", "update", "append"):
        JobDeclaration.plan_of(query, SimpleNamespace(toString=lambda: "Filter (n#1 > 1)"))
    assert read == ["append", "update"]


@pytest.mark.parametrize(
    ("columns", "key", "nullable"),
    [
        ("user string, at timestamp, Amount int", "user", {"amount"}),
        ("user string NOT NULL, at timestamp, amount int NOT NULL", "user", set()),
        ("user string, item int, at timestamp, amount int", ["user", "item"], {"user", "item", "amount"}),
    ],
)
def test_a_divergence_may_need_a_null_in_any_column_but_the_event_time_and_a_key_of_one(
    columns: str, key: Any, nullable: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(declaration, "divergences_of", lambda *given: asked.append(given[-1]) or ["found"])
    sources = [one.source for one in resolve_all([Input(columns, key=key, name="clicks")], 0)]
    made: Any = SimpleNamespace(runnable=SimpleNamespace(sources=sources), spark=None)
    assert JobDeclaration.divergences_of(made, None) == ["found"]
    assert asked == [nullable]
