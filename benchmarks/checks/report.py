"""Measures a report of 100,000 histories: its size, its opening time in a browser, and axe's violations.

The browser is Chromium, if there is one; axe-core is the file that the environment variable AXE names, such as
`node_modules/axe-core/axe.min.js`. Without a browser and axe, the benchmark measures only the size, and says so.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import replace
from html import unescape
from pathlib import Path

from streamproof.properties.checking.check import Check
from streamproof.properties.checking.report import Report
from streamproof.properties.checking.samples import plan_of_reference
from streamproof.properties.counterexamples.counterexample import Counterexample
from streamproof.properties.counterexamples.of_operators import FolderStore
from streamproof.properties.laws.all import OF_REFERENCE
from streamproof.properties.laws.base import OWN
from streamproof.properties.outcomes.outcomes import Outcome, differences
from streamproof.properties.registration.registration import registered, registration_of
from streamproof.properties.report.content import Content
from streamproof.properties.report.making import content, counterexample_found
from streamproof.properties.report.writing import write_content
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.play import play
from streamproof.reference.core.records import Record

from ..figures import Figure, Setting, Target, figure

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "chrome")
VIEWS = {"desktop": "1280,900", "phone": "390,844"}
SCHEMES = ("light", "dark")
SPENT = """<script>
addEventListener("load", () => setTimeout(() => {
  const times = performance.timing
  document.body.append(`spent ${times.loadEventEnd - times.navigationStart} ms`)
}))
</script>"""
ASKED = """<script>
addEventListener("load", () => axe.run({resultTypes: ["violations"]}).then(found => {
  document.body.append(`found ${JSON.stringify(found.violations.map(one => one.id))}`)
}))
</script>"""
MEBIBYTE = 1 << 20


def run(setting: Setting) -> list[Figure]:
    """Measure the report; if the machine lacks a browser or axe, name the missing tool, and skip its part."""
    with tempfile.TemporaryDirectory(prefix="streamproof-") as name:
        folder = Path(name)
        said = _checked(setting, folder / "found")
        page = write_content(folder / "report", said)
        histories = sum(check.histories for check in said.checks)
        sizes = f"{histories:,} histories, {len(said.found)} counterexamples, one of {_longest(said):,} records"
        whole = sum(path.stat().st_size for path in page.parent.iterdir()) / MEBIBYTE
        figures = [
            figure("the report, its four files", "MB", [whole], sizes, Target("under", 5)),
            figure("its page", "MB", [page.stat().st_size / MEBIBYTE], sizes),
        ]
        browser = next(filter(None, map(shutil.which, BROWSERS)), None)
        if browser is None:
            setting.progress(f"skipped: opening the page, and axe: none of {', '.join(BROWSERS)} is on this machine")
            return figures
        opened = [_opened(browser, page, folder) for _ in range(setting.times(5))]
        figures.append(figure("opening its page in Chromium", "seconds", opened, sizes, Target("under", 1)))
        axe = os.environ.get("AXE")
        if not axe or not Path(axe).is_file():
            setting.progress("skipped: axe: AXE names no axe.min.js")
            return figures
        found = [_violations(browser, page, folder, Path(axe), size, dark) for size in VIEWS for dark in SCHEMES]
        views = f"{', '.join(VIEWS)}; {', '.join(SCHEMES)}"
        return [*figures, figure("violations that axe finds", "violations", found, views, Target("at most", 0))]


def _checked(setting: Setting, folder: Path) -> Content:
    names = setting.among([*registered()])
    each = setting.size(100_000, 200) // len(names)
    reports = []
    # Only use the reference, because other witnesses take most of the time and add only one line each to the report.
    laws = [law for law in OF_REFERENCE if law.between == ("reference",)]
    for name in names:
        setting.progress(f"{name}: {each:,} histories on the reference")
        registration, report = registration_of(name), Report(name, [], 0, subject="the reference")
        check = Check(registration, report, laws, "reference", FolderStore(folder), setting.progress, OWN)
        check.run(draw() for draw in plan_of_reference(registration, each, 0))
        reports.append(report)
    said = content(reports, "streamproof check --only reference")
    long = counterexample_found(_counterexample(setting.size(10_000, 100)), said.checks[0].name)
    return replace(said, found=[long, *said.found])


def _counterexample(records: int) -> Counterexample:
    """Return an invented counterexample with this many records."""
    lines = [Record("events", f"k{number // 4}", number, 10 * number) for number in range(records)]
    options = {"gap_ms": 7, "grace_ms": 0, "aggregate": "count"}
    history = History("session_windows", options, (*lines[: records // 2], CUT, *lines[records // 2 :]), "batch")
    expected = Outcome.of_play("history", play(history))
    actual = replace(expected, entries=expected.entries[: records // 2])
    found = differences(expected, actual)
    return Counterexample(
        law="changelog",
        sentence="violated: half of it is missing.",
        history=history,
        left=("reference", expected),
        right=("Spark", actual),
        differences=found,
        seed=0,
    )


def _longest(said: Content) -> int:
    return max(len(one.timeline.steps) for one in said.found)


def _opened(browser: str, page: Path, folder: Path) -> float:
    """Return the time (s) from the request of a page to its load event."""
    said = _dumped(browser, page.read_text(), folder, VIEWS["desktop"], SPENT)
    found = re.search(r"spent (\d+)", said)
    assert found is not None, said[-500:]
    return int(found[1]) / 1000


def _violations(browser: str, page: Path, folder: Path, axe: Path, size: str, scheme: str) -> int:
    """Return the number of violations that axe finds on a page with everything expanded."""
    text = page.read_text().replace("<details>", "<details open>")
    text = text.replace("(prefers-color-scheme: dark)", "all" if scheme == "dark" else "not all")
    script = f"<script>{axe.read_text()}</script>{ASKED}"
    said = _dumped(browser, text, folder, VIEWS[size], script)
    found = re.search(r"found (\[[^<]*\])", said)
    assert found is not None, said[-500:]
    return len(json.loads(unescape(found[1])))


def _dumped(browser: str, page: str, folder: Path, size: str, script: str) -> str:
    """Return the content of a page in a browser after its final script."""
    path = folder / "page.html"
    path.write_text(page.replace("</body>", f"{script}</body>"))
    words = [browser, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={size}"]
    words += ["--virtual-time-budget=60000", f"--user-data-dir={folder / 'browser'}"]
    words += ["--dump-dom", path.as_uri()]
    return subprocess.run(words, capture_output=True, text=True, check=True, timeout=300).stdout
