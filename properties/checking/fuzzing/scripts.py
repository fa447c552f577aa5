"""Writes a finding as a plain PySpark script, which prints both results, and exits with 1 if the results differ."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from ....reference.spark.plans import Lookup, Node, Scan
from ....reference.spark.subtraction import Subtraction
from ...generators.columns.forms.rows import from_microseconds
from ...generators.plans.drawing import TABLE, Query
from ...generators.plans.texts import processor, statements, table_values
from ...witnesses.plans.running import SETTINGS, settings_of
from ...witnesses.spark.session import DEFAULT_STORE
from .cases import PlanCase, RowBag
from .judging import BATCH, REFERENCE, REFUSED, Finding

CONFIRM_SECONDS = 180.0
WIDTH = 120
"""The largest number of characters in a line of a script."""
_PLAN = 105
"""The largest number of characters of a plan's expression that still fits into a line of a script."""
_MINUTE = "2026-01-01 00:00:"
"""The minute that most times of a small case share; the script writes this minute only once."""
_PACKAGE = "org.apache.spark.sql.catalyst.optimizer."
_ALWAYS = {"spark.sql.shuffle.partitions": "1"}
_DEFAULTS = {**DEFAULT_STORE, **_ALWAYS}
"""The values of session settings that a script leaves out."""
_TOGETHER = {"spark.sql.streaming.pollingDelay": "1s"}
"""How long (s) a running query sleeps without data; it reads all files written within this time in one batch."""


def script_of(finding: Finding, settings: Mapping[str, str] | None = None) -> str:
    """Return a finding as a script; the script exits with 1 if Spark's rows differ or a query fails, otherwise with 0.

    For each batch, the script starts a query with the trigger `availableNow`, which stops after the batch. If the
    difference needs certain restarts or failures, a single query runs all batches instead. That query stops or fails in
    the batches that the script lists.

    Args:
        finding: The finding. The script of a small case has 15 to 24 lines; a `StatefulProcessor` adds 10 lines.
        settings: Further settings of the session.
    """
    case, other = finding.case, finding.other or finding.case
    inputs = sorted({*case.query.inputs, *other.query.inputs})
    batches = [(at, batch) for at, batch in enumerate(case.batches) if any(name in batch for name in inputs)]
    columns = [name for name in case.columns or () if name in (other.columns or ())]
    nodes = [node for plan in (case.query.plan, other.query.plan) for node in plan.walk()]
    all_of_both = columns == [*case.query.plan.columns] == [*other.query.plan.columns]
    shown = "*" if all_of_both else ",".join(columns) or "1"
    is_batch = finding.relation in (BATCH, REFUSED)
    restarts = [] if is_batch else [one.how.restarts for one in (case, other)]
    numbers = [at for at, _ in batches]
    stops = [sorted({*map(numbers.index, one & {*numbers}), len(numbers) - 1}) for one in restarts]
    deaths = (
        []
        if is_batch
        else [{numbers.index(at): to for at, to in one.how.deaths.items() if at in numbers} for one in (case, other)]
    )
    dies = any(deaths)
    stops = stops if dies or len({*restarts}) > 1 else []
    ways = [] if is_batch else _ways(case, other)
    results = [] if is_batch else _results(finding, numbers, stops, deaths, ways)
    text = _template().render(
        title="\n".join(textwrap.wrap(_title(finding), WIDTH - 8)),
        configuration=json.dumps(_configuration(case, other, settings or {}) | (_TOGETHER if stops else {})),
        table=table_values(TABLE) if any(isinstance(node, Lookup | Subtraction) for node in nodes) else "",
        processor=processor(case.query.plan, other.query.plan),
        batches=json.dumps([{name: _rows(batch[name]) for name in inputs if name in batch} for _, batch in batches]),
        plans=_plans(case.query.plan, other.query.plan, inputs),
        inputs=", ".join(inputs),
        names="".join(inputs),
        shown=f"\"replace(string(struct({shown})), '{_MINUTE}')\"",
        is_batch=is_batch,
        is_refused=finding.relation is REFUSED,
        is_alone=finding.relation is REFERENCE and not stops,
        mode=case.query.mode,
        stops=stops,
        dies=dies,
        changed=any("settings=" in result for _, result in results),
        results=results,
    )
    return "\n".join(part for line in text.splitlines() if line for part in wrapped(line)) + "\n"


def confirmed_script(finding: Finding, python: str = sys.executable) -> tuple[str, bool]:
    """Return a finding's script, and whether a run of the script shows the difference; if not, try further settings."""
    script = script_of(finding)
    if is_confirmed(script, python):
        return script, True
    fuller = script_of(finding, SETTINGS)
    return (fuller, True) if is_confirmed(fuller, python) else (script, False)


def is_confirmed(script: str, python: str = sys.executable) -> bool:
    """Run a script in its own process and Spark session; return whether it shows the difference."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "finding.py"
        path.write_text(script, encoding="utf-8")
        try:
            done = subprocess.run([python, str(path)], capture_output=True, timeout=CONFIRM_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 1 and b"Traceback" not in done.stderr


@cache
def _template() -> Template:
    loader = FileSystemLoader(Path(__file__).parent)
    options: dict[str, Any] = {"undefined": StrictUndefined, "trim_blocks": True, "lstrip_blocks": True}
    return Environment(loader=loader, autoescape=False, **options).get_template("script.py.jinja")


def _title(finding: Finding) -> str:
    named = " and ".join(one.name for one in finding.named) or "an unexplained difference"
    found = f"{named[0].upper()}{named[1:]}, found by: {finding.relation.name}."
    return f"{found} Rows are h,k,ts,v; @ is {_MINUTE}"


def _configuration(case: PlanCase, other: PlanCase, settings: Mapping[str, str]) -> dict[str, str]:
    common = {name: value for name, value in case.how.settings.items() if other.how.settings.get(name) == value}
    of_query = settings_of(case.query).items() - settings_of(Query(Scan("a", ()))).items()
    return {**settings, **_ALWAYS, **dict(sorted(of_query)), **common}


def _ways(case: PlanCase, other: PlanCase) -> list[dict[str, str]]:
    """Return the settings in which the two cases differ; settings of the script's session are left out of the first
    case's settings.
    """
    both = [{**SETTINGS, **one.how.settings} for one in (case, other)]
    differing = [name for name in {**both[0], **both[1]} if both[0].get(name) != both[1].get(name)]
    ways = [{name: one[name] for name in differing if name in one} for one in both]
    return [{name: value for name, value in ways[0].items() if _DEFAULTS.get(name) != value}, ways[1]]


def _results(
    finding: Finding,
    numbers: Sequence[int],
    stops: Sequence[list[int]],
    deaths: Sequence[Mapping[int, str]],
    ways: Sequence[Mapping[str, str]],
) -> list[tuple[str, str]]:
    """Return the two results that the script prints, each with its name and its expression."""
    if finding.relation is REFERENCE:
        expected = json.dumps([_texts(finding.wanted[at]) for at in numbers])
        return [("as it is written", expected), ("as Spark runs the plan", _run("query", {}, stops[:1], deaths[0]))]
    other = finding.other or finding.case
    names = ("query", "query" if other.query.plan is finding.case.query.plan else "other")
    runs = [_run(names[at], ways[at], stops[at : at + 1], deaths[at]) for at in (0, 1)]
    return [("one way", runs[0]), (finding.relation.name, runs[1])]


def _run(query: str, settings: Mapping[str, str], stops: Sequence[list[int]], deaths: Mapping[int, str]) -> str:
    given = [query, *(f"{{{', '.join(map(str, one))}}}" for one in stops)]
    if deaths:
        given.append(f"dies={dict(deaths)}")
    if settings:
        items = ", ".join(f"{json.dumps(name)}: {_setting(value)}" for name, value in settings.items())
        given.append(f"settings={{{items}}}")
    return f"stream({', '.join(given)})"


def _setting(value: str) -> str:
    if _PACKAGE not in value:
        return json.dumps(value)
    rules = value.replace(_PACKAGE, "").replace(",", " ")
    return f'",".join("{_PACKAGE}" + rule for rule in "{rules}".split())'


def _plans(plan: Node, other: Node, inputs: Sequence[str]) -> list[tuple[str, list[str]]]:
    named = [("query", plan), *([] if other is plan else [("other", other)])]
    held = [{}, {id(plan): f"query({', '.join(inputs)})"}]
    return [
        (name, [line.removeprefix("result = ") for line in statements(one, _PLAN, variables)])
        for (name, one), variables in zip(named, held, strict=False)
    ]


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return input rows as lines of a file, without the part of the times that all rows share, and without line
    ends.
    """
    texts = [",".join("" if row[name] is None else _text(row[name]) for name in ("h", "k", "ts", "v")) for row in rows]
    return " ".join(text.replace(_MINUTE, "@").replace(" ", "T") for text in texts)


def _texts(bag: RowBag) -> list[str]:
    """Return the rows in the format of Spark's structs, without the date, hour and minute that all times share."""
    shown = (f"{{{', '.join(map(_text, row)) or 1}}}" for row in bag.elements())
    return sorted(text.replace(_MINUTE, "") for text in shown)


def _text(value: object) -> str:
    if not isinstance(value, int) or value < 10**14:  # an integer below 10**14 isn't a time
        return "null" if value is None else str(value)
    text = from_microseconds(value).strftime("%Y-%m-%d %H:%M:%S.%f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def wrapped(line: str) -> Iterator[str]:
    """Break a line of Python into lines of at most `WIDTH` characters, if its brackets and spaces allow breaks.

    A line ends between two arguments or elements. If a line would then be less than half full, it ends within a string
    instead.
    """
    breaks = [*_breaks(line)]
    opened, start = "", 0  # the start of the string that the last break divided, and the break's position
    while len(opened) + len(line) - start > WIDTH:
        room = start + WIDTH - len(opened)
        fitting = [(at, quote) for at, quote in breaks if start < at < room - bool(quote)]
        if not fitting:
            break
        outside = [at for at, quote in fitting if not quote]
        late = [at for at in outside if at > room - WIDTH // 2]
        commas = [at for at in late if line[at - 1] == ","]
        within = [(at, quote) for at, quote in fitting if quote]
        best = commas or late or ([] if within else outside)
        at, quote = (best[-1], "") if best else within[-1]
        yield opened + (line[start : at + 1] + quote if quote else line[start:at])
        opened, start = " " * (len(line) - len(line.lstrip()) + 4) + quote, at + 1
    yield opened + line[start:]


def _breaks(line: str) -> Iterator[tuple[int, str]]:
    """Yield the spaces within brackets at which a line may end, each with the quote character if the space is in a
    string.
    """
    depth, quote, is_formatted = 0, "", False
    for at, character in enumerate(line):
        if character in "\"'" and quote in ("", character):
            quote, is_formatted = "" if quote else character, line[at - 1] == "f"
        elif not quote:
            depth += (character in "([{") - (character in ")]}")
        if character == " " and depth and not (quote and is_formatted):
            yield at, quote
