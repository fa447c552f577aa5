"""The check of an upgrade without Spark: its queries, its counterexamples, and what a function of both outputs gets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from memory_jobs import RUN, Batches, MemoryRunner, copy, options
from streamproof import BadInput, UpgradeRefused, Violated, as_batch
from streamproof.properties.checking.jobs.job_check import JobCheck
from streamproof.properties.checking.jobs.upgrade import Upgrades
from streamproof.properties.laws.expected.upgrading import UpgradeJudge
from streamproof.properties.laws.variation import Variation
from streamproof.properties.witnesses.job.running import Earlier, NotContinued, Output
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions
from streamproof.properties.witnesses.spark.failures import QueryFailed

Job = Callable[[Batches], Batches]


@dataclass(frozen=True)
class UpgradedRunner(MemoryRunner):
    """Runs the earlier version until the first stop, and then the job, which begins without state.

    Attributes:
        ran: Each run: the earlier job, if there is one, the job, and its stops.
    """

    ran: list[tuple[Job | None, Any, tuple[int, ...]]] = field(default_factory=list)

    def run(
        self, batches: Sequence[Mapping[str, pa.Table]], clock: Sequence[int] = (), run: RunOptions = PLAIN
    ) -> Output:
        earlier: Any = self.earlier and self.earlier.job
        self.ran.append((earlier, self.job, run.stop_after))
        if earlier is None:
            return super().run(batches, clock, run)
        count = run.stop_after[0] + 1
        output = super().run(batches[count:], clock, run)
        before = MemoryRunner(earlier, self.sources).run(batches[:count])
        output.batches[:0] = before.batches
        return output


def doubled(batches: Batches) -> Batches:
    return [[{**row, "amount": row["amount"] and 2 * row["amount"]} for row in rows] for rows in batches]


def first_of_user(batches: Batches) -> Batches:
    """Emit the first row of each user, which takes state."""
    seen: set[Any] = set()
    return [[row for row in rows if not (row["user"] in seen or seen.add(row["user"]))] for rows in batches]


def upgrades(old: Job, new: Job, expect: Any = None, run: RunOptions = RUN, **more: Any) -> Upgrades:
    given = options(new, more.pop("runner", UpgradedRunner), run=run, **more)  # type: ignore[arg-type]
    return Upgrades(given, Earlier(old), expect)  # type: ignore[arg-type]


def ran(checks: Upgrades) -> list[Any]:
    assert isinstance(checks.options.runner, UpgradedRunner)
    return checks.options.runner.ran


def test_one_run_from_the_start_serves_the_upgrades_after_all_batches() -> None:
    checks = upgrades(copy, copy)
    assert checks.report(40, ()).histories == 40
    from_start = (None, copy, (0, 1, 2))
    assert ran(checks) == [(copy, copy, (0,)), from_start, (copy, copy, (1,)), (copy, copy, (2,))]


@pytest.mark.parametrize("expect", [None, lambda old, new: new], ids=["from the start", "both"])
def test_a_run_from_the_start_has_no_other_stop_if_that_would_run_another_batch(expect: Any) -> None:
    checks = upgrades(copy, copy, expect, replace(RUN, trigger="available_now"))
    assert checks.report(40, ()).histories == 40
    each_cut = [[(copy, copy, (cut,)), *[(None, copy, (cut,))] * (1 if expect is None else 2)] for cut in range(3)]
    assert ran(checks) == [run for cut in each_cut for run in cut]


def test_a_function_is_given_the_outputs_of_both_versions_each_run_once_from_the_start() -> None:
    def doubles(old: Batches, new: Batches) -> Batches:
        assert len(old) == len(new)
        return doubled(old)

    checks = upgrades(copy, doubled, doubles)
    assert checks.report(40, ()).oracle == "the function doubles"
    from_start = [(None, copy, (0, 1, 2)), (None, doubled, (0, 1, 2))]
    assert ran(checks) == [
        (copy, doubled, (0,)),
        *from_start,
        (copy, doubled, (1,)),
        (copy, doubled, (2,)),
    ]


def test_a_function_that_expects_other_rows_or_returns_no_lists_is_named() -> None:
    def nothing(old: Batches, new: Batches) -> Batches:
        return [[] for _ in new]

    with pytest.raises(Violated, match="the function nothing expects no such row"):
        upgrades(copy, doubled, nothing).report(40, ())
    with pytest.raises(BadInput, match=r"given the rows of \d batches, and returned int: return a list of rows for"):
        upgrades(copy, copy, lambda old, new: 1).report(40, ())


def not_continued() -> NotContinued:
    refusal = NotContinued("the query failed")
    refusal.cause = "the state is of another form"
    return refusal


class Failing(UpgradedRunner):
    """It fails after an upgrade, and from the start where the job is `copy`."""

    def run(self, *given: Any, **more: Any) -> Output:
        if self.earlier is not None:
            raise not_continued()
        if self.job is copy:
            raise QueryFailed("it can't run at all")
        return super().run(*given, **more)


def test_a_job_that_can_not_go_on_is_refused_and_one_that_can_not_run_at_all_has_failed() -> None:
    with pytest.raises(UpgradeRefused, match=r"doubled.* can't go on from the checkpoint of .*copy.*: the state is of"):
        upgrades(copy, doubled, runner=Failing).report(40, ())
    with pytest.raises(QueryFailed, match="it can't run at all") as failed:
        upgrades(doubled, copy, runner=Failing).report(40, ())
    assert not isinstance(failed.value, UpgradeRefused)


def test_a_report_has_the_least_of_all_upgrades_and_the_limits_of_each() -> None:
    checks = upgrades(copy, copy)
    for number, check in enumerate(checks.checks):
        assert isinstance(check.judge, UpgradeJudge)
        check.judge.moved = 2**number
        check.judge.met.settings = {f"of.check.{number}": "1"}
    report = checks.report(40, ())
    assert (report.moved, [*report.expecting]) == (7, [0, 1, 2])
    assert [limit.count("of.check") for limit in report.limits] == [1, 1, 1]


def test_a_counterexample_is_saved_run_first_and_refused_by_other_checks(tmp_path: Path) -> None:
    with pytest.raises(Violated, match="give upgrade these examples") as found:
        upgrades(first_of_user, first_of_user, folder=tmp_path).report(40, ())
    assert found.value.path is not None
    assert len(found.value.counterexample.history.arrivals) == 2
    saved = [found.value.path / "history.jsonl"]
    for examples, folder in (((), tmp_path), (saved, None)):
        checks = upgrades(first_of_user, first_of_user, folder=folder)
        with pytest.raises(Violated, match="1 of 1 histories that were found before still differ"):
            checks.report(40, examples)
        first, *twice = [run for run in ran(checks) if run[0] is not None]
        assert first == (first_of_user, first_of_user, (0,))
        assert len(twice) == 2  # two runs alike tell columns that are others in each run
    with pytest.raises(BadInput, match=r"violates the invariant 'an upgrade' .* give it to upgrade\(…\)"):
        JobCheck(options(first_of_user), as_batch(), Variation(RUN)).replay(saved)
