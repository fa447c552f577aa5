from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest

from benchmarks.figures import Setting
from benchmarks.nexmark import nexmark


def test_forms_that_can_not_run_here_are_left_out_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nexmark.nexmark_kafka, "why_not", lambda: "there is no javac")
    monkeypatch.setattr(nexmark.nexmark_merge, "is_installed", lambda: False)
    monkeypatch.setattr(nexmark.nexmark_bytewax, "is_installed", lambda: True)
    nexmark._why_not_kafka.cache_clear()
    told: list[str] = []
    forms: Mapping[str, Sequence[str]] = {
        query: nexmark._forms(Setting(True, None, told.append), query) for query in ("q4", "q11", "q18", "q20")
    }
    nexmark._why_not_kafka.cache_clear()
    assert forms == {
        "q4": ["operators"],
        "q11": ["operators", "spark", "pandas", "bytewax"],
        "q18": ["operators", "spark", "pandas", "merge"],
        "q20": ["operators", "spark", "merge"],
    }
    assert told == [
        "q11: without Kafka Streams: there is no javac",
        "q18: without a merge into Delta: deltalake isn't installed",
        "q18: without Kafka Streams: there is no javac",
        "q20: without Kafka Streams: there is no javac",
    ]
