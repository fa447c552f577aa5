"""The run of the fuzzer, with processes that answer without Spark."""

import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.checking.fuzzing import campaign
from streamproof.properties.checking.fuzzing.campaign import CampaignOptions, Tally, run
from streamproof.properties.checking.fuzzing.corpus import SEEDS
from streamproof.properties.checking.fuzzing.seeds import Judged, ReportedFinding, Seed
from streamproof.properties.system.installed.requirements import installed
from streamproof.reference.core.errors import BadInput, StreamproofError

Answer = Callable[[Seed], Judged]
THERE = "4.1.4"


def fake(answer: Answer, ended: list[str], there: Answer | None = None) -> type:
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
            return there(seed) if there and self.version == THERE else answer(seed)

    return Process


def count_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a clock go on by 0.2 ms for each look at it, however busy the machine is."""
    looks = itertools.count()
    monkeypatch.setattr(campaign, "time", SimpleNamespace(monotonic=lambda: next(looks) / 5000))


def ran(monkeypatch: pytest.MonkeyPatch, answer: Answer, **options: Any) -> tuple[Tally, list[ReportedFinding]]:
    tally, kept = Tally(), list[ReportedFinding]()
    monkeypatch.setattr(campaign, "PySparkProcess", fake(answer, []))
    count_looks(monkeypatch)
    run(CampaignOptions(minutes=0.02, jobs=1, **options), tally, lambda step: None, kept.append)
    return tally, kept


def judged(seed: Seed, *differences: ReportedFinding) -> Judged:
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
        found = ReportedFinding(seed.seed, "reference", ("a name",), "plan", script=script)
        return judged(
            seed, found, *[ReportedFinding(seed.seed, "batch", (), "plan", script="another")] * (seed.seed == "3")
        )

    tally, kept = ran(monkeypatch, answer)
    assert [one.seed for one in tally.unnamed] == ["3"]
    assert [one.script for one in kept if one.named and one.script] == ["script"]


def test_a_divergence_that_has_a_script_is_not_shown_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(seed: Seed) -> Judged:
        named = ("a name",) if len(seed.seed) % 2 else ("another", "and more")
        return judged(seed, ReportedFinding(seed.seed, "batch", named, "plan", script=" ".join(seed.shows)))

    _, kept = ran(monkeypatch, answer, shown=frozenset({"another_and_more"}))
    assert {one.named for one in kept if one.script} == {("a name",)}


def test_no_script_of_a_divergence_is_begun_long_after_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaign, "SHOWING", 0.0)
    _, kept = ran(
        monkeypatch,
        lambda seed: judged(seed, ReportedFinding(seed.seed, "batch", ("a name",), "plan", "", " ".join(seed.shows))),
    )
    assert kept
    assert not any(one.script for one in kept)


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


@pytest.mark.parametrize(("load", "factor"), [(0.5, 1.0), (3.0, 1.5), (100.0, 4.0)])
def test_a_busy_machine_extends_the_limit_of_a_seed(
    monkeypatch: pytest.MonkeyPatch, load: float, factor: float
) -> None:
    monkeypatch.setattr(campaign.os, "getloadavg", lambda: (load, 0.0, 0.0))
    monkeypatch.setattr(campaign.os, "cpu_count", lambda: 2)
    assert campaign.patience() == factor


def test_each_seed_is_judged_by_a_process_of_either_pyspark(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    def there(seed: Seed) -> Judged:
        if seed.seed == "2":
            raise StreamproofError("the process ended")
        done = judged(seed, *[ReportedFinding(seed.seed, "batch", ("a name",), "plan")] * (seed.seed == "3"))
        return replace(done, digest="other rows" if seed.seed in ("3", "4") else done.digest)

    monkeypatch.setattr(campaign, "PySparkProcess", fake(judged, ended, there))
    monkeypatch.setattr(campaign, "python_of", lambda version: Path(version))
    count_looks(monkeypatch)
    tally = Tally()
    run(CampaignOptions(minutes=0.02, jobs=1, against=THERE), tally, lambda step: None)
    found = [(one.seed, one.relation, one.named) for one in tally.differences]
    assert found[:4] == [
        ("2", f"ended, {THERE}", ()),
        ("3", f"batch, {THERE}", ("a name",)),
        ("3", f"another PySpark, {THERE}", ("a name",)),
        ("4", f"another PySpark, {THERE}", ()),
    ]
    assert tally.runs["another PySpark"] == tally.runs["reference"] > len(SEEDS) + 4
    assert THERE in ended


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ("newest", "--against is 'newest': give the version of a PySpark"),
        ("3.4.1", "--against is 3.4.1, but only PySpark 3.5, 4.0, 4.1, 4.2 and 4.3 are supported: give such a version"),
        (installed("pyspark"), "the PySpark that is judged: give another version"),
    ],
)
def test_a_pyspark_that_cannot_be_compared_with_is_refused(version: str, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        run(CampaignOptions(against=version), Tally(), lambda step: None)


def test_a_plan_that_one_pyspark_alone_refuses_is_counted() -> None:
    seed = Seed("5", 10)
    here, there = judged(seed), replace(judged(seed), digest="", refusals=Counter(UNSUPPORTED=1))
    assert campaign._compared(seed, [here, there], THERE).refusals == {"UNSUPPORTED only by PySpark 4.1.4": 1}
    assert campaign._compared(seed, [there, here], THERE).refusals == {
        "UNSUPPORTED": 1,
        "UNSUPPORTED not by PySpark 4.1.4": 1,
    }
    assert campaign._compared(seed, [there, there], THERE).refusals == {"UNSUPPORTED": 1}


def test_rows_that_differ_on_another_pyspark_are_a_finding() -> None:
    seed = Seed("5", 10)
    here, there = judged(seed), judged(seed)
    there.digest = "other rows"
    assert [one.relation for one in campaign._compared(seed, [here, there], "4.1.4").differences] == [
        "another PySpark, 4.1.4"
    ]
    assert campaign._compared(seed, [here, here], "4.1.4").differences == []


def test_an_older_pyspark_is_judged_alone_and_its_plans_are_drawn_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked, ended = list[str](), list[str]()
    monkeypatch.setattr(campaign, "python_of", lambda version: Path(version))
    answer = lambda seed: [asked.append(seed.seed), judged(seed)][1]  # type: ignore[func-returns-value]  # noqa: E731
    monkeypatch.setattr(campaign, "PySparkProcess", fake(answer, ended))  # type: ignore[arg-type]
    count_looks(monkeypatch)
    run(CampaignOptions(minutes=0.02, jobs=1, seed=7, pyspark=THERE, corpus=False), Tally(), lambda step: None)
    assert asked[:2] == ["7", "8"]
    assert {*ended} == {THERE}


def test_an_unknown_relation_is_refused_with_those_there_are() -> None:
    relations = "give one of reference, chains, equivalence, fewer columns, .*rocksdb"
    with pytest.raises(BadInput, match=f"--only is 'rocks': {relations}"):
        run(CampaignOptions(only="rocks"), Tally(), lambda step: None)


def test_what_never_came_up_is_named() -> None:
    tally = Tally(runs=Counter(restarts=1), pairs_of_operators={("windows", "deduplication")})
    assert "deduplication above windows" not in tally.never_seen
    assert {"windows above deduplication", "limit above windows", "rocksdb"} <= {*tally.never_seen}
    assert "restarts" not in tally.never_seen
