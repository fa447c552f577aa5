"""Cases over the limit of their folder are named before a release, and those of a table that CI leaves are weekly."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from costs import KEPT, CostLimits, folder_of, leave_to_weekly


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


def test_seconds_of_set_up_call_and_teardown_add_up_and_stay_beside_those_of_other_runs() -> None:
    costs = limits()
    costs.config.cache.set(KEPT, {"tests/fast/a.py::old": 1})
    for took in (0.5, 2, 0.25):
        costs.pytest_runtest_logreport(SimpleNamespace(nodeid="tests/fast/a.py::new", duration=took))  # type: ignore[arg-type]
    costs.pytest_sessionfinish()
    assert costs.config.cache.get(KEPT, {}) == {"tests/fast/a.py::old": 1, "tests/fast/a.py::new": 2.75}


def test_a_process_of_many_leaves_the_seconds_to_the_process_that_started_it() -> None:
    costs = limits(workerinput={})
    costs.pytest_runtest_logreport(SimpleNamespace(nodeid="tests/fast/a.py::new", duration=1))  # type: ignore[arg-type]
    costs.pytest_sessionfinish()
    assert costs.config.cache == {}


def test_the_folder_of_a_test_is_that_below_tests() -> None:
    assert folder_of("tests/weekly/spark_impl/test_a.py::test_b[x/y]") == "weekly"


def test_without_the_seconds_of_any_test_the_limits_are_not_kept_but_unknown() -> None:
    costs = limits(within=True)
    costs.config.cache.set(KEPT, {"tests/fast/gone.py::one": 1})
    with pytest.raises(pytest.UsageError, match="no test has run here: run `make test`"):
        costs.pytest_collection_finish(SimpleNamespace(items=[SimpleNamespace(nodeid="tests/fast/a.py::one")]))  # type: ignore[arg-type]


@pytest.mark.parametrize(("seconds", "is_refused"), [(5, False), (5.1, True)])
def test_a_case_that_took_longer_than_its_folder_allows_fails_the_collection(seconds: float, is_refused: bool) -> None:
    costs = limits(within=True)
    costs.config.cache.set(KEPT, {"tests/fast/a.py::one": seconds, "tests/spark/a.py::one": 50})
    collected = SimpleNamespace(items=[SimpleNamespace(nodeid=one) for one in costs.config.cache[KEPT]])
    if is_refused:
        with pytest.raises(pytest.UsageError, match=r"tests/fast/a.py::one: 5.1 s, and fast allows 5"):
            costs.pytest_collection_finish(collected)  # type: ignore[arg-type]
    else:
        costs.pytest_collection_finish(collected)  # type: ignore[arg-type]


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
