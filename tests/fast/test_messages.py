"""Messages that no other test reads: each says what is wrong, and what to do about it."""

from __future__ import annotations

import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from memory_jobs import CLICKS
from notation import history_of
from streamproof import Input
from streamproof.properties.cli.spec.commands import validate
from streamproof.properties.generators.cohorts import one_cohort
from streamproof.properties.generators.columns import packing
from streamproof.properties.generators.columns.model import JobHistory
from streamproof.properties.generators.columns.resolving import resolve, resolve_all
from streamproof.properties.laws.on_spark.retention import RetentionLaw
from streamproof.properties.operators.mutants.making import logics_in
from streamproof.properties.witnesses.spark.session import _opened
from streamproof.reference.core.errors import BadInput
from streamproof.specs.traces import read_trace

SESSIONS = "session_windows"


class Logic:
    """What mutants are made of."""


class Mutant(Logic):
    """A mutant."""


def sampled(**columns: list[Any]) -> Input:
    return Input(sample=pd.DataFrame(columns), time="at")


def packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packing, "MOST", 1)
    packing.pack([JobHistory(((),))] * 2, resolve_all([CLICKS]))


@pytest.mark.parametrize(
    ("call", "error", "said"),
    [
        (
            lambda: resolve(Input("user string, at timestamp", key="user", values={"user": []})),
            BadInput,
            "has no values: give one or more",
        ),
        (
            lambda: resolve(sampled(at=pd.to_datetime(["2024-01-01", "2024-01-02"]), amount=[1, "x"])),
            BadInput,
            "the sample's columns have mixed types: .*; give each column one type",
        ),
        (
            lambda: one_cohort([history_of("a@0", SESSIONS), history_of("a@0", SESSIONS, grace_ms=5)]),
            ValueError,
            "2 histories make 2 cohorts, not one",
        ),
        (
            lambda: logics_in({"__name__": "mutants", "one": Mutant, "other": Mutant}, Logic),
            ValueError,
            "mutants contains a mutant under two names",
        ),
    ],
)
def test_what_cannot_be_used_is_named_with_the_remedy(
    call: Callable[[], Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        call()


def test_more_histories_than_a_query_takes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(BadInput, match="2 histories don't fit into one query: check 1 or fewer at once"):
        packed(monkeypatch)


def test_a_trace_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "trace.jsonl").write_bytes(b"\xff")
    with pytest.raises(BadInput, match=r"trace\.jsonl: not UTF-8: a trace is JSON, with one event per line"):
        read_trace(tmp_path / "trace.jsonl")


def test_a_log_of_spark_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"Spark's log can't be written to .*: Is a directory; name another file\."):
        _opened(tmp_path)


def test_a_part_of_a_trace_that_is_refused_says_how_far_it_was_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(validate.results, "out", lambda text, **style: said.append(text))
    after = types.SimpleNamespace(line=7)
    validate._print_refusal(types.SimpleNamespace(explained=3, events=1000, after=after, possible=[]))  # type: ignore[arg-type]
    assert said[1:] == ["  explained: 3 of 1,000 events, the last on line 7", "  possible: nothing"]


def test_the_law_of_retention_says_what_it_asks() -> None:
    assert RetentionLaw().says == "within its retention a row counts as if it were kept for ever, and then it is gone"
