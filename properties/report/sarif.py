"""Write a report as SARIF 2.1.0, for code hosts: a rule for each violated law, a result for each violation."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import PurePath
from typing import Any, TypeAlias
from urllib.parse import quote

from ..checking.checked import Checked, LawCount
from .content import Content, Found, place_of
from .drawing import shortened
from .rendering import safe

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
MOST_CHARACTERS = 2_000
"""The largest number of characters of a message."""
LEVELS = {"violated": "error", "inconclusive": "warning"}
_Object: TypeAlias = dict[str, Any]


def sarif(content: Content) -> str:
    """Return a report as SARIF: a violated law is an error, an inconclusive law a warning, at the job's line."""
    failed = [(check, law) for check in content.checks for law in check.laws if law.verdict in LEVELS]
    rules = list(dict.fromkeys(_id(law.law) for _, law in failed))
    says = {_id(law.law): law.says for _, law in failed}
    driver = {
        "name": "streamproof",
        "version": version("streamproof"),
        "rules": [{"id": rule, "shortDescription": {"text": safe(says[rule]) or rule}} for rule in rules],
    }
    run = {
        "tool": {"driver": driver},
        "invocations": [{"executionSuccessful": not content.missing, **_notifications(content)}],
        "results": [one for check, law in failed for one in _results(check, law, content, rules)],
    }
    return json.dumps({"version": "2.1.0", "runs": [run], "$schema": SCHEMA}, indent=1) + "\n"


def _notifications(content: Content) -> _Object:
    said = [{"level": "warning", "message": {"text": _message(missing)}} for missing in content.missing]
    return {"toolExecutionNotifications": said} if said else {}


def _results(check: Checked, law: LawCount, content: Content, rules: list[str]) -> Iterator[_Object]:
    found = [one for one in content.found if (one.subject, one.law) == (check.name, law.law)]
    charts = [one for one in content.charts if (one.subject, one.law) == (check.name, law.law)]
    file, line = place_of(check.name)
    for one in found:
        yield _result(law, rules, one.sentence, *_place(one, file, line))
    for chart in charts if not found else ():
        yield _result(law, rules, chart.sentence or law.law, file, line)
    if not found and not charts:
        yield _result(law, rules, f"{check.name}: {law.verdict}: {law.reason or law.says or law.law}", file, line)


def _place(found: Found, file: str, line: int | None) -> tuple[str, int | None]:
    """Return the file and line of a counterexample's job; for an operator, its saved history."""
    if found.file or file:
        return (found.file, found.line) if found.file else (file, line)
    return (f"{found.path}/history.jsonl" if found.path else ""), None


def _result(law: LawCount, rules: list[str], text: str, file: str, line: int | None) -> _Object:
    rule = _id(law.law)
    result: _Object = {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": LEVELS[law.verdict],
        "message": {"text": _message(text)},
    }
    if file and not PurePath(file).is_absolute():  # a code host shows only files of the repository
        uri = quote(safe(PurePath(file).as_posix()))
        region = {"startLine": line or 1}
        result["locations"] = [{"physicalLocation": {"artifactLocation": {"uri": uri}, "region": region}}]
    return result


def _id(law: str) -> str:
    return safe(shortened(law, 200)) or "streamproof"


def _message(text: str) -> str:
    return safe(shortened(text, MOST_CHARACTERS)) or "no message"
