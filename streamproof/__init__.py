"""The public names of streamproof, as listed in `__all__`. All other modules and names may change without notice.

This checks a streaming job of your own, over random histories of its input columns, in a test or in a script:

    from streamproof import Input, check_job, session_windows

    clicks = Input("user string, at timestamp", key="user")
    check_job(my_job, clicks, expect=session_windows(gap="30 minutes", delay="10 minutes"))

- Checks of a job: `check_job` compares a job with an oracle, and `invariants` compares a job with itself. `upgrade`
  runs a new version on an old checkpoint, and `replay` checks a run in production. `Job` holds the arguments of these
  four functions for several checks. Each check returns a `JobReport`. `write_report` writes reports as HTML, text,
  JSON and JUnit XML.
- Descriptions of a job: `Input` describes an input's columns, and `avro` an Avro payload. `Sink` describes a job that
  writes its result itself, and `Script` an unchanged script.
- Oracles: the rules of Spark's operators are `session_windows`, `windows`, `drop_duplicates`, `stream_join`,
  `static_join` and `union`. `reference_of` uses one of the twelve operators. `scd1` and `scd2` describe tables of
  change events. `sql`, `as_batch` and `other_job` run a statement or a job. A function or a class also works as an
  oracle; `Watermark` tells such a class which rows Spark drops as late.
- Checks of an operator: `check` checks an operator's Spark implementation, and `assert_holds` checks one law on one
  history.
- Histories: `Record`, `History`, `parse_history`, `read_history`, and `play`, which runs a history on the reference.
- Definitions of the twelve operators: `SessionWindows`, `WindowAggregate`, `RangeAggregate`, `StreamStreamJoin`,
  `StreamTableJoin`, `TableTableJoin`, `TableAggregate`, `WindowedTable`, `ForeignKeyJoin`, `OneToManyJoin`, `Scd1`,
  `Scd2`.
- An operator of your own: its reference (`Definition`, `Operator`, `Clock`, `Accepted`, `Change`, `Dropped`), and its
  declaration (`Registration`, `OptionSpace`, `Domain`, `Number`, `Coverage`, `FreeOrder`, `Binding`, `Mutant`), which
  `register` takes.
- Errors: `BadInput` and `MissingTool` are subclasses of `StreamproofError`. `Violated`, `UpgradeRefused` and
  `Inconclusive` are subclasses of `AssertionError`.

For production, `streamproof.spark_impl` has one module for each operator. In `streamproof.spark_impl.inputs`, `table`
and `stream` describe the inputs of joins. `read_state` reads an operator's state from a checkpoint.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

# Also import from the modules that Spark sends to a cluster's workers, which this folder of a clone would hide.
__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from .properties.checking.jobs.job import Job, check_job, invariants, replay, upgrade
    from .properties.checking.jobs.reports import JobReport
    from .properties.checking.jobs.verdicts import Inconclusive, UpgradeRefused, Violated
    from .properties.generators.columns.forms.avro import avro
    from .properties.generators.columns.inputs import Input
    from .properties.generators.registering import register
    from .properties.laws.expected.changes import scd1, scd2
    from .properties.laws.expected.oracles import as_batch, other_job, sql
    from .properties.laws.expected.reference import reference_of
    from .properties.laws.expected.rules import (
        drop_duplicates,
        session_windows,
        static_join,
        stream_join,
        union,
        windows,
    )
    from .properties.registration.bindings import Binding
    from .properties.registration.coverage import Coverage
    from .properties.registration.domain import Domain, Number
    from .properties.registration.mutants import Mutant
    from .properties.registration.options import OptionSpace
    from .properties.registration.registration import FreeOrder, Registration
    from .properties.report.making import write_report
    from .properties.testing.gate import check
    from .properties.testing.recheck import assert_holds
    from .properties.witnesses.job.scripts.script import Script
    from .properties.witnesses.job.sinks.sink import Sink
    from .reference.core.clocks import Clock
    from .reference.core.errors import BadInput, MissingTool, StreamproofError
    from .reference.core.history import History, parse_history, read_history
    from .reference.core.operator import Operator
    from .reference.core.play import play
    from .reference.core.records import Accepted, Change, Dropped, Record
    from .reference.definitions.aggregates import TableAggregate
    from .reference.definitions.changes import Scd1, Scd2
    from .reference.definitions.declarations import Definition
    from .reference.definitions.joins import (
        ForeignKeyJoin,
        OneToManyJoin,
        StreamStreamJoin,
        StreamTableJoin,
        TableTableJoin,
    )
    from .reference.definitions.windows import RangeAggregate, SessionWindows, WindowAggregate, WindowedTable
    from .reference.spark.watermarks import Watermark
    from .spark_impl.runtime.state import read_state

    __version__: str

__all__ = [
    "Accepted",
    "BadInput",
    "Binding",
    "Change",
    "Clock",
    "Coverage",
    "Definition",
    "Domain",
    "Dropped",
    "ForeignKeyJoin",
    "FreeOrder",
    "History",
    "Inconclusive",
    "Input",
    "Job",
    "JobReport",
    "MissingTool",
    "Mutant",
    "Number",
    "OneToManyJoin",
    "Operator",
    "OptionSpace",
    "RangeAggregate",
    "Record",
    "Registration",
    "Scd1",
    "Scd2",
    "Script",
    "SessionWindows",
    "Sink",
    "StreamStreamJoin",
    "StreamTableJoin",
    "StreamproofError",
    "TableAggregate",
    "TableTableJoin",
    "UpgradeRefused",
    "Violated",
    "Watermark",
    "WindowAggregate",
    "WindowedTable",
    "__version__",
    "as_batch",
    "assert_holds",
    "avro",
    "check",
    "check_job",
    "drop_duplicates",
    "invariants",
    "other_job",
    "parse_history",
    "play",
    "read_history",
    "read_state",
    "reference_of",
    "register",
    "replay",
    "scd1",
    "scd2",
    "session_windows",
    "sql",
    "static_join",
    "stream_join",
    "union",
    "upgrade",
    "windows",
    "write_report",
]

# Names are imported on first use, because PySpark, PyArrow and Hypothesis take seconds, and Spark's workers need none.
_HOMES = {
    ".properties.registration.bindings": ("Binding",),
    ".properties.registration.coverage": ("Coverage",),
    ".properties.registration.domain": ("Domain", "Number"),
    ".properties.registration.mutants": ("Mutant",),
    ".properties.registration.options": ("OptionSpace",),
    ".properties.generators.registering": ("register",),
    ".properties.registration.registration": ("FreeOrder", "Registration"),
    ".properties.testing.gate": ("check",),
    ".properties.testing.recheck": ("assert_holds",),
    ".properties.checking.jobs.job": ("Job", "check_job", "invariants", "replay", "upgrade"),
    ".properties.checking.jobs.reports": ("JobReport",),
    ".properties.checking.jobs.verdicts": ("Inconclusive", "UpgradeRefused", "Violated"),
    ".properties.generators.columns.forms.avro": ("avro",),
    ".properties.generators.columns.inputs": ("Input",),
    ".properties.laws.expected.changes": ("scd1", "scd2"),
    ".properties.laws.expected.oracles": ("as_batch", "other_job", "sql"),
    ".properties.laws.expected.reference": ("reference_of",),
    ".properties.laws.expected.rules": (
        "drop_duplicates",
        "session_windows",
        "static_join",
        "stream_join",
        "union",
        "windows",
    ),
    ".properties.witnesses.job.scripts.script": ("Script",),
    ".properties.witnesses.job.sinks.sink": ("Sink",),
    ".properties.report.making": ("write_report",),
    ".reference.core.clocks": ("Clock",),
    ".reference.core.errors": ("BadInput", "MissingTool", "StreamproofError"),
    ".reference.core.history": ("History", "parse_history", "read_history"),
    ".reference.core.operator": ("Operator",),
    ".reference.core.play": ("play",),
    ".reference.core.records": ("Accepted", "Change", "Dropped", "Record"),
    ".reference.definitions.aggregates": ("TableAggregate",),
    ".reference.definitions.changes": ("Scd1", "Scd2"),
    ".reference.definitions.declarations": ("Definition",),
    ".reference.definitions.joins": (
        "ForeignKeyJoin",
        "OneToManyJoin",
        "StreamStreamJoin",
        "StreamTableJoin",
        "TableTableJoin",
    ),
    ".reference.definitions.windows": ("RangeAggregate", "SessionWindows", "WindowAggregate", "WindowedTable"),
    ".reference.spark.watermarks": ("Watermark",),
    ".spark_impl.runtime.state": ("read_state",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("streamproof")
    elif name in _HOME:
        from .reference.core.errors import needing_spark

        with needing_spark():
            found = getattr(import_module(_HOME[name], __name__), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
