"""Bugs planted in the models of Spark's rules: each is seen on the histories of `benchmarks/agreement/spark_rules.py`.

There the models agree with Spark, so that a mutant that differs from its model here would differ from Spark.
"""

from __future__ import annotations

import math
import random
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

import pytest
from paths import ROOT
from streamproof.properties.generators.columns.model import Source
from streamproof.properties.laws.expected.rules import aggregations, rule, stream_joins
from streamproof.properties.witnesses.run_options import RunOptions
from streamproof.reference.spark import (
    drop_duplicates,
    execution,
    plans,
    session_windows,
    stream_join,
    watermarks,
    windows,
)

COHORTS, HISTORIES = 4, 150
SESSIONS, WINDOWS = "session_windows(gap=10", "windows(size=10 seconds, slide=4 seconds, start"
JOIN = "stream_join(join={}, on=key+sub, before=10"
OVER, NOW = "default", "available_now"
OWN = ("Execution", "SessionAggregation", "Windows", "micro_batches")
"""The names that other modules import from those of the models."""


class Mutant(NamedTuple):
    """A model with one thing changed, and a case in which that matters."""

    module: ModuleType
    says: str
    instead: str
    case: str
    trigger: str = OVER


MUTANTS = [
    Mutant(session_windows, "self.end(session) > late_ms", "self.end(session) >= late_ms", SESSIONS),
    Mutant(session_windows, "self.end(session) > late_ms", "session[-1][windows.time] > late_ms", SESSIONS),
    Mutant(session_windows, "self.end(session) > late_ms", "self.end(session) > eviction_ms", SESSIONS, NOW),
    Mutant(session_windows, "<= self.end(sessions[-1])", "< self.end(sessions[-1])", SESSIONS),
    Mutant(session_windows, "if self.end(one) <= eviction_ms", "if self.end(one) < eviction_ms", SESSIONS),
    Mutant(windows, "not late or ", "True or ", WINDOWS),
    Mutant(windows, "<= late_ms * 1_000", "< late_ms * 1_000", WINDOWS),
    Mutant(windows, "<= late_ms * 1_000", "<= eviction_ms * 1_000", WINDOWS, NOW),
    Mutant(windows, "<= eviction_ms * 1_000", "< eviction_ms * 1_000", WINDOWS),
    Mutant(windows, "<= eviction_ms * 1_000", "<= eviction_ms * 1_000 + 999", "windows(size=2500 microseconds"),
    Mutant(drop_duplicates, "time_us <= late_ms", "time_us < late_ms", "drop_duplicates(columns=key+at"),
    Mutant(drop_duplicates, "at > eviction_ms", "at >= eviction_ms", "drop_duplicates(columns=key, "),
    Mutant(drop_duplicates, "// 1_000 * 1_000", "", "drop_duplicates(columns=key+sub, delay=1500"),
    Mutant(stream_join, "] > late_ms * 1_000", "] >= late_ms * 1_000", JOIN.format("left")),
    Mutant(stream_join, "arriving[side], late_ms", "arriving[side], eviction_ms", JOIN.format("inner"), NOW),
    Mutant(stream_join, "/ 1_000) - 1", "/ 1_000)", JOIN.format("left")),
    Mutant(
        stream_join, "int((watermark_ms", "math.ceil((watermark_ms", "stream_join(join=right, on=key+sub, before=1500"
    ),
    Mutant(stream_join, "time_us <= until_ms", "time_us < until_ms", JOIN.format("full")),
    Mutant(stream_join, "after < -self.before_us", "after <= -self.before_us", JOIN.format("inner")),
    Mutant(stream_join, "after > self.after_us", "after >= self.after_us", JOIN.format("inner")),
    Mutant(stream_join, "elif not left.joined:", "else:", JOIN.format("left_semi")),
    Mutant(stream_join, 'nulls_equal = self.join == "full" if', "nulls_equal = False if", JOIN.format("full")),
    Mutant(stream_join, "outer and not kept.joined", "outer", JOIN.format("left")),
    Mutant(watermarks, "time_us // 1_000", "-(-time_us // 1_000)", SESSIONS),
    Mutant(watermarks, "time_us // 1_000", "(time_us + 1_000) // 1_000", SESSIONS),
    Mutant(watermarks, 'trigger == "default" or last', "last", SESSIONS),
    Mutant(watermarks, 'trigger == "default" or last', 'trigger == "default"', WINDOWS, NOW),
    Mutant(execution, "self.before_ms = self.watermark_ms", "pass", WINDOWS, NOW),
    Mutant(execution, "self.inputs_ms(self.before_ms), self", "self.inputs_ms(self.watermark_ms), self", WINDOWS, NOW),
]


def mutated(mutant: Mutant) -> ModuleType:
    """Return the module with the one thing changed."""
    file = mutant.module.__file__
    assert file is not None
    source = Path(file).read_text(encoding="utf-8")
    assert source.count(mutant.says), f"{mutant.module.__name__} no longer says {mutant.says!r}"
    module = ModuleType(mutant.module.__name__)
    module.__dict__.update(vars(mutant.module), math=math)
    exec(compile(source.replace(mutant.says, mutant.instead), file, "exec"), vars(module))
    return module


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.says.strip()} -> {mutant.instead.strip()}")
def test_a_planted_bug_is_seen(monkeypatch: pytest.MonkeyPatch, mutant: Mutant) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    from benchmarks.agreement import spark_rules

    case = next(case for case in spark_rules.CASES if case.name.startswith(mutant.case))
    sources = [Source(name, spark_rules.SCHEMA, "at", ("key",)) for name in case.inputs]
    drawn = random.Random(5)
    histories = [history for _ in range(COHORTS) for history in spark_rules.draw(case, HISTORIES, drawn)]
    way = RunOptions(trigger="available_now" if mutant.trigger == NOW else "default", mode=case.mode)
    right = case.rule.expected(histories, sources, way)
    module = mutated(mutant)
    changed = {id(value): vars(module)[name] for name, value in vars(mutant.module).items() if name in OWN}
    for user in (aggregations, plans, rule, stream_joins):
        for name, value in [*vars(user).items()]:
            if value is mutant.module or id(value) in changed:
                monkeypatch.setattr(user, name, module if value is mutant.module else changed[id(value)])
    wrong = case.rule.expected(histories, sources, way)
    assert [
        history
        for history, one, two in zip(histories, right, wrong, strict=True)
        if [*map(spark_rules.bag, one.rows)] != [*map(spark_rules.bag, two.rows)]
    ]
