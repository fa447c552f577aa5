"""The run of the fuzzer, with processes that answer without Spark."""

import itertools
from collections import Counter
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.fuzzing import campaign
from streamproof.properties.checking.fuzzing.campaign import Options, Tally, run
from streamproof.properties.checking.fuzzing.corpus import SEEDS
from streamproof.properties.checking.fuzzing.seeds import Difference, Judged, Seed
from streamproof.reference.core.errors import BadInput, StreamproofError

Answer = Callable[[Seed], Judged]


def fake(answer: Answer, ended: list[str]) -> type:
    class Process:
        def __init__(self, python: object, version: str, start: object) -> None:
            self.version, self.process = version, self

        def __enter__(self) -> Any:
            return self

        def __exit__(self, *error: object) -> None:
            self.end(0)

        def end(self, seconds: float) -> None:
            ended.append(self.version)

        def poll(self) -> None:
            return None

        def ask(self, seed: Seed) -> Judged:
            return answer(seed)

    return Process


def ran(monkeypatch: pytest.MonkeyPatch, answer: Answer, **options: Any) -> tuple[Tally, list[Difference]]:
    tally, kept = Tally(), list[Difference]()
    monkeypatch.setattr(campaign, "PySparkProcess", fake(answer, []))
    milliseconds = itertools.count()  # a clock that each look at it moves
    monkeypatch.setattr(campaign, "time", SimpleNamespace(monotonic=lambda: next(milliseconds) / 1000))
    run(Options(minutes=0.02, jobs=1, **options), tally, lambda step: None, kept.append)
    return tally, kept


def judged(seed: Seed, *differences: Difference) -> Judged:
    return Judged(seed.seed, f"plan {seed.seed}", "rows", "", 10, Counter(reference=1), differences=[*differences])


def test_the_corpus_comes_first_and_then_the_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    tally, _ = ran(monkeypatch, lambda seed: [asked.append(seed.seed), judged(seed)][1], seed=7)  # type: ignore[func-returns-value, list-item]
    assert asked[: len(SEEDS) + 2] == [*SEEDS, "7", "8"]
    assert len(tally.plans) == len(asked) == tally.runs["reference"]


def test_a_finding_without_a_name_is_kept_at_once_and_one_with_a_name_is_shown_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answer(seed: Seed) -> Judged:
        script = "script" if seed.shows else ""
        found = Difference(seed.seed, "reference", ("a name",), "plan", script=script)
        return judged(seed, found, *[Difference(seed.seed, "batch", (), "plan", script="another")] * (seed.seed == "3"))

    tally, kept = ran(monkeypatch, answer)
    assert [one.seed for one in tally.unnamed] == ["3"]
    assert [one.script for one in kept if one.named and one.script] == ["script"]


def test_a_process_that_ends_is_a_finding_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(seed: Seed) -> Judged:
        if seed.seed == "2":
            raise StreamproofError("the process ended")
        return judged(seed)

    tally, _ = ran(monkeypatch, answer)
    assert [(one.seed, one.relation, one.error.split(": ")[1]) for one in tally.unnamed] == [
        ("2", "ended", "the process ended")
    ]
    assert "plan 3" in tally.plans


def test_rows_that_differ_on_another_pyspark_are_a_finding() -> None:
    seed = Seed("5", 10)
    here, there = judged(seed), judged(seed)
    there.digest = "other rows"
    assert [one.relation for one in campaign._compared(seed, [here, there], "4.1.4").differences] == [
        "another PySpark, 4.1.4"
    ]
    assert campaign._compared(seed, [here, here], "4.1.4").differences == []


def test_an_unknown_relation_is_refused_with_those_there_are() -> None:
    with pytest.raises(BadInput, match=r"--only is 'rocks': give one of reference, fewer columns, .*rocksdb"):
        run(Options(only="rocks"), Tally(), lambda step: None)


def test_what_never_came_up_is_named() -> None:
    tally = Tally(runs=Counter(restarts=1), pairs_of_operators={("windows", "deduplication")})
    assert "deduplication above windows" not in tally.never_seen
    assert {"windows above deduplication", "rocksdb"} <= {*tally.never_seen}
    assert "restarts" not in tally.never_seen
