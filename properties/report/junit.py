"""Write a report as JUnit XML: a suite for each check, a test case for each of its laws."""

from __future__ import annotations

import re

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from ..checking.checked import Checked, LawCount
from .content import Content, Found
from .drawing import shortened
from .rendering import safe

MOST_CHARACTERS = 20_000
"""The largest number of characters of a counterexample."""


def junit(content: Content) -> str:
    """Return a report as JUnit XML.

    A violated law is a failure, an inconclusive or missing law an error, and an unchecked law is skipped.
    """
    xml = JUnitXml("streamproof")
    for check in content.checks:
        xml.add_testsuite(_suite(check, content))
    xml.update_statistics()
    text: str = xml.tostring().decode()
    return text + "\n"


def _suite(check: Checked, content: Content) -> TestSuite:
    suite = TestSuite(safe(check.name))
    suite.add_property("versions", safe(content.versions))
    if check.seeds:
        suite.add_property("seeds", safe(check.seeds))
    name = re.sub(r"[^\w.]+", "_", f"streamproof.{check.name}")
    each = check.seconds / max(1, len(check.laws))
    cases = [_case(law, check, content, name, each) for law in check.laws]
    if check.unfinished:
        case = TestCase("the whole check", name, 0)
        case.result = [Error(check.unfinished, "missing")]
        cases.append(case)
    suite.add_testcases(cases)
    return suite


def _case(law: LawCount, check: Checked, content: Content, name: str, seconds: float) -> TestCase:
    case = TestCase(safe(law.law), name, round(seconds, 3))
    why = safe(law.reason)
    if law.verdict == "violated":
        found = next((one for one in content.found if (one.subject, one.law) == (check.name, law.law)), None)
        chart = next((one for one in content.charts if (one.subject, one.law) == (check.name, law.law)), None)
        said = found.sentence if found else chart.sentence if chart else law.says
        failure = Failure(safe(shortened(said, 1000)), "violated")
        counted = f"violated by {law.violations:,} of {law.histories:,} {check.counted}"
        failure.text = safe(shortened("\n".join([counted, *(_lines(found) if found else [])]), MOST_CHARACTERS))
        case.result = [failure]
    elif law.verdict == "inconclusive":
        case.result = [Error(shortened(why, 1000), "inconclusive")]
    elif law.verdict == "not checked":
        case.result = [Skipped(shortened(why, 1000), "not checked")]
    return case


def _lines(found: Found) -> list[str]:
    lines = [found.where, ""]
    if found.first is not None:
        lines += [f"{found.expected_by}: {found.first.expected or 'nothing'}"]
        lines += [f"{found.actual_by}: {found.first.actual or 'nothing'}", ""]
    return [*lines, found.history]
