"""Run the TLA+ tools from Python: check a model, simulate a model, and read all behaviours as typed values.

```python
from pathlib import Path
from pytla import Model, Tools, check, find_jar

model = Model(Path("Clock.tla"), Path("Clock.cfg"), constants={"Hours": 24})
result = check(model, Tools(Path("java"), find_jar()))
print(result.outcome, result.distinct)
```

`check` explores every state, `simulate` runs random behaviours, and `state_graph` returns every behaviour of a small
model. A violated property is a result, not an exception. A failure of TLC raises a `TlcError` with the location, the
cause and the remedy.
"""

from .cover import Edge
from .errors import (
    AssumptionFailed,
    ConfigurationFailed,
    CyclicGraph,
    DeadlockReached,
    EndedBySignal,
    EvaluationFailed,
    FolderUnusable,
    LimitReached,
    MissingJar,
    MissingJava,
    OutOfMemory,
    ParseFailed,
    StateSpaceTooLarge,
    TimedOut,
    TlcCrashed,
)
from .graph import StateGraph
from .inputs.models import Model
from .results import ActionCounts, Location, Progress, Result, Simulation, Step, Trace
from .run import check, simulate, state_graph
from .tlc.tools import Tools, find_jar
from .tlc_error import TlcError, ValueSyntaxError
from .values import Function, ModelValue, TlaValue, parse_state, parse_value, to_tla

__all__ = [
    "ActionCounts",
    "AssumptionFailed",
    "ConfigurationFailed",
    "CyclicGraph",
    "DeadlockReached",
    "Edge",
    "EndedBySignal",
    "EvaluationFailed",
    "FolderUnusable",
    "Function",
    "LimitReached",
    "Location",
    "MissingJar",
    "MissingJava",
    "Model",
    "ModelValue",
    "OutOfMemory",
    "ParseFailed",
    "Progress",
    "Result",
    "Simulation",
    "StateGraph",
    "StateSpaceTooLarge",
    "Step",
    "TimedOut",
    "TlaValue",
    "TlcCrashed",
    "TlcError",
    "Tools",
    "Trace",
    "ValueSyntaxError",
    "check",
    "find_jar",
    "parse_state",
    "parse_value",
    "simulate",
    "state_graph",
    "to_tla",
]
