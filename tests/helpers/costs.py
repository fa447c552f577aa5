"""Limits of the seconds of a case in each folder, the seconds that it last took, and the cases of tables in CI."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import partial

import pytest

LIMITS = {"fast": 5, "spark": 60, "exhaustive": 240, "weekly": 3600}
"""The seconds that a case may take on a machine with nothing else to do, set-up of a module included."""
KEPT = "streamproof/seconds"
"""Where pytest's cache keeps the seconds that each case last took."""


class CostLimits:
    """Notes what each case costs; with `--within-limits` a case over its folder's limit fails the collection."""

    def __init__(self, config: pytest.Config) -> None:
        self.config, self.seconds = config, defaultdict[str, float](float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration

    def pytest_sessionfinish(self) -> None:
        """Keep the seconds of this run beside those of cases that it didn't run."""
        cache = getattr(self.config, "cache", None)
        if cache is not None and self.seconds and not hasattr(self.config, "workerinput"):
            cache.set(KEPT, {**cache.get(KEPT, {}), **{one: round(took, 2) for one, took in self.seconds.items()}})

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if not self.config.getoption("--within-limits"):
            return
        cache = getattr(self.config, "cache", None)  # -p no:cacheprovider
        took = {} if cache is None else cache.get(KEPT, {})
        if not any(item.nodeid in took for item in session.items):
            raise pytest.UsageError("no test has run here: run `make test` and `make test-exhaustive` first")
        over = [
            f"{item.nodeid}: {took[item.nodeid]} s, and {folder} allows {limit}"
            for item in session.items
            if (limit := LIMITS.get(folder := folder_of(item.nodeid))) and took.get(item.nodeid, 0) > limit
        ]
        if over:
            raise pytest.UsageError("\n".join(["over the limit of their folder:", *over]))


def folder_of(test: str) -> str:
    """Return the folder below tests/ that a test stands in, given its id."""
    return test.split("/")[1]


def leave_to_weekly(items: Sequence[pytest.Function]) -> None:
    """Mark the cases of tables `weekly` that the table's mark `in_ci` doesn't name.

    Raises:
        UsageError: The mark names a case that the table hasn't; not if single cases were asked for on the command line.
    """
    unknown: dict[str, set[str]] = {}
    for item in items:
        for table in item.iter_markers("in_ci"):
            if not any("::" in asked for asked in item.config.args):
                unknown.setdefault(item.nodeid.partition("[")[0], {*table.args}).discard(item.callspec.id)
            if item.callspec.id not in table.args:
                item.add_marker(pytest.mark.weekly("CI runs those of the table that differ in kind"))
    for test, names in unknown.items():
        if names:
            message = f"in_ci of {test} names cases that aren't there: {', '.join(sorted(names))}"
            if not any(hasattr(item.config, "workerinput") for item in items):
                raise pytest.UsageError(message)
            for item in items:  # a worker that can't collect ends without a word
                if item.nodeid.startswith(f"{test}["):
                    item.runtest = partial(pytest.fail, message, pytrace=False)  # type: ignore[method-assign]
