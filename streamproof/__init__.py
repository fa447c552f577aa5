"""The public door of streamproof: the names in `__all__`. Every other module and name may change without notice.

Check a job of your own against the reference of an operator, in a test or anywhere:

    from streamproof import conforms

    conforms(my_job, {"gap_ms": 10, "grace_ms": 5})

- Checking: `conforms` (a job), `check` (an operator's Spark implementation), `assert_holds` (one counterexample again).
- Histories: `Record`, `History`, `parse_history`, `read_history`, and `play`, which runs one on the reference.
- Definitions of the ten operators: `SessionWindows`, `WindowAggregate`, `RangeAggregate`, `StreamStreamJoin`,
  `StreamTableJoin`, `TableTableJoin`, `TableAggregate`, `WindowedTable`, `ForeignKeyJoin`, `OneToManyJoin`.
- An operator of your own: its reference (`Definition`, `Operator`, `Clock`, `Accepted`, `Change`, `Dropped`), and what
  it declares (`Registration`, `OptionSpace`, `Domain`, `Number`, `Coverage`, `FreeOrder`, `Binding`, `Mutant`), which
  `register` makes known; `unpack_state` reads the state of a query that operators share.
- Errors: `StreamproofError`, of which `BadInput` and `MissingTool` are kinds; `Inconclusive`, an AssertionError.

The operators themselves, for production use, are in `streamproof.spark_impl`, a module each.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import extend_path
from typing import TYPE_CHECKING, Any

# In a clone this folder would otherwise hide the modules that the workers of a cluster are sent.
__path__ = extend_path(__path__, __name__)

if TYPE_CHECKING:
    from .properties.generators.registering import register
    from .properties.registration.bindings import Binding
    from .properties.registration.coverage import Coverage
    from .properties.registration.domain import Domain, Number
    from .properties.registration.mutants import Mutant
    from .properties.registration.options import OptionSpace
    from .properties.registration.registration import FreeOrder, Registration
    from .properties.testing.conformance import Inconclusive
    from .properties.testing.conformance import assert_conforms as conforms
    from .properties.testing.gate import check
    from .properties.testing.recheck import assert_holds
    from .reference.core.clocks import Clock
    from .reference.core.errors import BadInput, MissingTool, StreamproofError
    from .reference.core.history import History, parse_history, read_history
    from .reference.core.operator import Operator
    from .reference.core.play import play
    from .reference.core.records import Accepted, Change, Dropped, Record
    from .reference.definitions.aggregates import TableAggregate
    from .reference.definitions.declarations import Definition
    from .reference.definitions.joins import (
        ForeignKeyJoin,
        OneToManyJoin,
        StreamStreamJoin,
        StreamTableJoin,
        TableTableJoin,
    )
    from .reference.definitions.windows import RangeAggregate, SessionWindows, WindowAggregate, WindowedTable
    from .spark_impl.runtime.shared import unpack_state

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
    "MissingTool",
    "Mutant",
    "Number",
    "OneToManyJoin",
    "Operator",
    "OptionSpace",
    "RangeAggregate",
    "Record",
    "Registration",
    "SessionWindows",
    "StreamStreamJoin",
    "StreamTableJoin",
    "StreamproofError",
    "TableAggregate",
    "TableTableJoin",
    "WindowAggregate",
    "WindowedTable",
    "__version__",
    "assert_holds",
    "check",
    "conforms",
    "parse_history",
    "play",
    "read_history",
    "register",
    "unpack_state",
]

# Imported when they are first asked for: PySpark, PyArrow and Hypothesis take seconds, and Spark's workers need none.
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
    ".properties.testing.conformance": ("Inconclusive", "conforms"),
    ".reference.core.clocks": ("Clock",),
    ".reference.core.errors": ("BadInput", "MissingTool", "StreamproofError"),
    ".reference.core.history": ("History", "parse_history", "read_history"),
    ".reference.core.operator": ("Operator",),
    ".reference.core.play": ("play",),
    ".reference.core.records": ("Accepted", "Change", "Dropped", "Record"),
    ".reference.definitions.aggregates": ("TableAggregate",),
    ".reference.definitions.declarations": ("Definition",),
    ".reference.definitions.joins": (
        "ForeignKeyJoin",
        "OneToManyJoin",
        "StreamStreamJoin",
        "StreamTableJoin",
        "TableTableJoin",
    ),
    ".reference.definitions.windows": ("RangeAggregate", "SessionWindows", "WindowAggregate", "WindowedTable"),
    ".spark_impl.runtime.shared": ("unpack_state",),
}
_HOME = {name: module for module, names in _HOMES.items() for name in names}
_INSIDE = {"conforms": "assert_conforms"}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        found: Any = version("streamproof")
    elif name in _HOME:
        found = getattr(import_module(_HOME[name], __name__), _INSIDE.get(name, name))
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
