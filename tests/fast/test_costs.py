"""Cases over the limit of their folder are named before a release, and those of a table that CI leaves are weekly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from costs import KEPT, CostLimits, leave_to_weekly


class Cache(dict[str, Any]):
    set = dict.__setitem__


class Case:
    """A case of a table, as pytest collects it."""

    def __init__(self, name: str, *in_ci: str, asked: str = "tests/exhaustive") -> None:
        self.nodeid, self.callspec = f"tests/exhaustive/test_a.py::test_table[{name}]", SimpleNamespace(id=name)
        self.config, self.marks = SimpleNamespace(args=[asked]), [pytest.mark.in_ci(*in_ci)]

    def iter_markers(self, name: str) -> list[Any]:
        return [one.mark for one in self.marks if one.name == name]

    def add_marker(self, mark: Any) -> None:
        self.marks.append(mark)


def limits(within: bool = False, **more: Any) -> CostLimits:
    return CostLimits(SimpleNamespace(cache=Cache(), getoption=lambda name: within, **more))  # type: ignore[arg-type]


def test_a_case_that_took_longer_than_its_folder_allows_fails_the_collection() -> None:
    costs, one, old = limits(within=True), "tests/fast/a.py::one[x/y]", "tests/spark/a.py::one"
    collected: Any = SimpleNamespace(items=[SimpleNamespace(nodeid=each) for each in (one, old)])
    with pytest.raises(pytest.UsageError, match="no test has run here: run `make test`"):
        costs.pytest_collection_finish(collected)
    costs.config.cache.set(KEPT, {old: 50})  # which another run has left
    for took in (0.5, 4.5, 0.1):
        costs.pytest_collection_finish(collected)
        costs.pytest_runtest_logreport(SimpleNamespace(nodeid=one, duration=took))  # type: ignore[arg-type]
        costs.pytest_sessionfinish()
    assert costs.config.cache.get(KEPT, {}) == {old: 50, one: 5.1}
    with pytest.raises(pytest.UsageError, match=r"tests/fast/a.py::one\[x/y\]: 5.1 s, and fast allows 5"):
        costs.pytest_collection_finish(collected)


def test_a_process_of_many_leaves_the_seconds_to_the_process_that_started_it() -> None:
    costs = limits(workerinput={})
    costs.pytest_runtest_logreport(SimpleNamespace(nodeid="tests/fast/a.py::new", duration=1))  # type: ignore[arg-type]
    costs.pytest_sessionfinish()
    assert costs.config.cache == {}


def test_cases_that_ci_does_not_run_are_weekly() -> None:
    cases = [Case(name, "b") for name in "abc"]
    leave_to_weekly(cases)  # type: ignore[arg-type]
    assert [bool(case.iter_markers("weekly")) for case in cases] == [True, False, True]


def test_a_case_that_is_not_there_is_named_unless_single_cases_were_asked_for() -> None:
    with pytest.raises(pytest.UsageError, match=r"test_table names cases that aren't there: z"):
        leave_to_weekly([Case("a", "a", "z")])  # type: ignore[list-item]
    leave_to_weekly([Case("a", "a", "z", asked="tests/exhaustive/test_a.py::test_table[a]")])  # type: ignore[list-item]


def test_a_worker_lets_the_table_fail_that_lacks_a_case_for_it_could_only_end_without_a_word() -> None:
    cases = [Case("a", "a", "b"), Case("c", "a", "b")]
    for case in cases:
        case.config.workerinput = {}
    leave_to_weekly(cases)  # type: ignore[arg-type]
    with pytest.raises(pytest.fail.Exception, match="test_table names cases that aren't there: b"):
        cases[0].runtest()  # type: ignore[attr-defined]
