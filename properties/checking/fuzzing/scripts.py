"""A finding as a plain PySpark script: it prints both results, and exits with 1 if they differ."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TypeGuard

from jinja2 import Environment, StrictUndefined

from ....reference.spark.plans import Lookup
from ....reference.spark.subtraction import Subtraction
from ...generators.columns.forms.rows import from_microseconds
from ...generators.plans.drawing import TABLE
from ...generators.plans.texts import statements
from .cases import Case
from .judging import BATCH, REFERENCE, REFUSED, Finding

CONFIRM_SECONDS = 180.0
_TEMPLATE = '''"""{{ title }}"""
import json, pathlib, sys, tempfile
from pyspark.sql import SparkSession, functions as F

spark = SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1).getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
{% for name, value in settings -%}
spark.conf.set("{{ name }}", "{{ value }}")
{% endfor -%}
{% if table -%}
table = spark.sql("select * from values {{ table }} as t(tk, x)")
{% endif -%}
BATCHES = [
{%- for batch in batches %}
    {{ batch }},
{%- endfor %}
]

{% for query in queries %}
def {{ query.name }}({{ inputs }}):
{%- for statement in query.statements[:-1] %}
    {{ statement }}
{%- endfor %}
    return {{ query.statements[-1].removeprefix("result = ") }}.select({{ columns }})

{% endfor %}
def stream(query, **settings):
    folder, out = pathlib.Path(tempfile.mkdtemp()), []
    for name, value in settings.items():
        spark.conf.set(name.replace("__", "."), value)
    for number, batch in enumerate(BATCHES):
        out.append([])
        for name in {{ names }}:
            (folder / name).mkdir(exist_ok=True)
            if name in batch:
                rows = [dict(zip(("h", "k", "ts", "v"), row)) for row in batch[name]]
                (folder / name / f"{number}.json").write_text("\\n".join(map(json.dumps, rows)))
        read = spark.readStream.schema("h int, k string, ts timestamp, v int")
        writer = query(*(read.json(str(folder / name)) for name in {{ names }})).writeStream
        writer = writer.outputMode("{{ mode }}").option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(lambda rows, _: out[-1].extend(sorted(str(tuple(row)) for row in rows.collect())))
        writer.trigger(availableNow=True).start().awaitTermination()
    return [sorted(rows) for rows in out]

{% if batch %}
def batch(query):
    every = {name: [row for one in BATCHES for row in one.get(name, [])] for name in {{ names }}}
    frames = [spark.createDataFrame(rows, "h int, k string, t string, v int") for rows in every.values()]
    frames = [frame.selectExpr("h", "k", "cast(t as timestamp) as ts", "v") for frame in frames]
    return sorted(str(tuple(row)) for row in query(*frames).collect())

{% endif %}
wanted = {{ wanted }}
found = {{ found }}
print("{{ says[0] }}:", wanted)
print("{{ says[1] }}:", found)
sys.exit(wanted != found)
'''


def script_of(finding: Finding) -> str:
    """Return a finding as a script."""
    case, other = finding.case, finding.other
    query = case.query
    columns = [name for name in case.columns or () if other is None or name in (other.columns or ())]
    plans = [("query", query.plan)]
    if other is not None and other.query is not query:
        plans.append(("other", other.query.plan))
    wanted, found = "stream(query)", "stream(query)"
    says = ("as it is written", "as Spark runs it")
    if finding.relation is REFERENCE:
        wanted = repr([sorted(str(_shown(row)) for row in bag.elements()) for bag in finding.wanted])
    elif finding.relation in (BATCH, REFUSED):
        wanted, found = "batch(query)", "sorted(row for rows in stream(query) for row in rows)"
        says = ("the batch query", "the streaming query")
    elif other is not None:
        settings = {name: value for name, value in other.how.settings.items() if name not in case.how.settings}
        given = ", ".join(f'{name.replace(".", "__")}="{value}"' for name, value in settings.items())
        found = f"stream({plans[-1][0]}{', ' * bool(given)}{given})"
        says = ("one way", finding.relation.name)
    own = {} if query.without_data else {"spark.sql.streaming.noDataMicroBatches.enabled": "false"}
    is_looked_up = any(isinstance(node, Lookup | Subtraction) for _, plan in plans for node in plan.walk())
    values = ", ".join(f"({_literal(row['tk'])}, {_literal(row['x'])})" for row in TABLE)
    environment = Environment(undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False)
    return environment.from_string(_TEMPLATE).render(
        title=_title(finding),
        settings=[*{**own, **case.how.settings}.items()],
        table=values if is_looked_up else "",
        batches=[_batch(case, number) for number in range(len(case.batches))],
        queries=[{"name": name, "statements": statements(plan, most=200)} for name, plan in plans],
        inputs=", ".join(query.inputs),
        names=tuple(query.inputs),
        columns=", ".join(f'"{name}"' for name in columns) or "F.lit(1)",
        mode=query.mode,
        batch=finding.relation in (BATCH, REFUSED),
        wanted=wanted,
        found=found,
        says=says,
    )


def _title(finding: Finding) -> str:
    named = "; ".join(f"{one.name} ({one.ticket})" for one in finding.named)
    return f"{named or 'A difference without a name'}, found by: {finding.relation.name}."


def _shown(row: tuple[object, ...]) -> tuple[object, ...]:
    return tuple(from_microseconds(value).replace(tzinfo=None) if _is_time(value) else value for value in row)


def _is_time(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and value > 10**14  # no other number of a plan is as large


def _batch(case: Case, number: int) -> str:
    rows = {
        name: [(row["h"], row["k"], _text(row["ts"]), row["v"]) for row in of_input]
        for name, of_input in case.batches[number].items()
    }
    return repr({name: of_input for name, of_input in rows.items() if name in case.query.inputs})


def _text(time_us: int) -> str:
    return from_microseconds(time_us).replace(tzinfo=None).isoformat(sep=" ")


def _literal(value: object) -> str:
    return "null" if value is None else repr(value)


def is_confirmed(script: str, python: str = sys.executable) -> bool:
    """Run a script in a process and a session of its own; return whether it shows the difference."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "finding.py"
        path.write_text(script, encoding="utf-8")
        try:
            done = subprocess.run([python, str(path)], capture_output=True, timeout=CONFIRM_SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return False
    return done.returncode == 1 and b"Traceback" not in done.stderr
