"""The ten scripts of `examples/`, right and with their bug: which notes each gets without an expectation."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from streamproof.properties.checking.jobs.arguments import check_options
from streamproof.properties.checking.jobs.conclusion import notes_on
from streamproof.properties.checking.jobs.invariants import Invariants
from streamproof.properties.cli.commands.inferred import inferred_scripts
from streamproof.properties.cli.commands.job import JobOptions
from test_scripts import CHECKS, SCRIPTS

LATE, WAITS = "drops late rows", "rows wait"
RIGHT: Mapping[str, list[str]] = {
    "hourly_revenue": ["event time among the keys", LATE, WAITS],
    "page_views": [LATE, WAITS],
    "resent_events": [LATE],
    "order_shipments": [LATE, LATE, WAITS],
}
"""The notes on the right scripts that get some."""
OF_BUG: Mapping[str, str] = {
    "page_views": "order of rows",
    "order_regions": "rows without a partner",
    "resent_events": "event time among the keys",
    "order_shipments": "outer join filtered",
}
"""The note that a script gets with its bug alone."""


def names(script: Path) -> list[str]:
    (one,) = inferred_scripts(str(script), JobOptions())
    checking = Invariants(check_options(one.script, [], {}, {}))
    return [note[len("Note (") : note.index(")")] for note in notes_on(checking.checks[0].judge)]


def broken(name: str, folder: Path) -> Path:
    text = (SCRIPTS / f"{name}.py").read_text()
    for right, wrong in next(changes for check, changes in CHECKS.items() if check.__name__ == name):
        text = text.replace(right, wrong)
    path = folder / f"{name}.py"
    path.write_text(text)
    return path


each = pytest.mark.parametrize("name", [check.__name__ for check in CHECKS])
few = pytest.mark.in_ci("resent_events", "order_shipments", "order_regions")


@each
@few
def test_the_notes_on_a_right_script(name: str) -> None:
    assert names(SCRIPTS / f"{name}.py") == RIGHT.get(name, [])


@each
@few
def test_the_notes_on_a_script_with_its_bug(name: str, tmp_path: Path) -> None:
    of_bug = [OF_BUG[name]] if name in OF_BUG else []
    assert names(broken(name, tmp_path)) == [*of_bug, *RIGHT.get(name, [])]
