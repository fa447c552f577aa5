"""The modules of the catalogue whose behaviours are replayed: constants, an initial state, and what tests ask."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streamproof.reference.core.history import History
from streamproof.specs.pytla import ModelValue, TlaValue, Trace
from streamproof.specs.replay import Disagreement, ReplayResult, history_of, replay
from tla_models import trace_of

Step = tuple[str, dict[str, str]]


@dataclass(frozen=True)
class Replayable:
    """A module, the constants of one of its models, and the initial state as TLC writes it."""

    name: str
    constants: Mapping[str, TlaValue]
    initial: Mapping[str, str]
    changed: Mapping[str, str] = field(default_factory=dict)
    """Variables that the initial state has otherwise."""

    def trace(self, *steps: Step) -> Trace:
        """Return the behaviour of some steps from the initial state."""
        return trace_of(*steps, initial={**self.initial, **self.changed})

    def history(self, *steps: Step, **constants: TlaValue) -> History:
        """Return the history of a behaviour, with some constants overridden."""
        return history_of(self.trace(*steps), {**self.constants, **constants}, self.name)

    def replayed(self, *steps: Step, **constants: TlaValue) -> ReplayResult:
        """Replay a behaviour, with some constants overridden."""
        return replay([self.trace(*steps)], {**self.constants, **constants}, self.name)

    def disagreement(self, *steps: Step, **constants: TlaValue) -> Disagreement:
        """Return the only disagreement of a behaviour, with some constants overridden."""
        replayed = self.replayed(*steps, **constants)
        assert replayed.behaviours == 1
        (found,) = replayed.disagreements
        return found


SESSIONS = Replayable(
    "SessionWindows",
    {
        "Gap": 1,
        "Grace": 1,
        "Retention": 2,
        "Clock": "stream_time",
        "Emit": "update",
        "Late": "merged",
        "Closed": "final",
        "Mutant": "none",
    },
    {
        "store": "[a |-> {}]",
        "emitted": "[a |-> {}]",
        "clock": "0",
        "largest": "0",
        "emissions": "0",
        "accepted": "{}",
        "dropped": "{}",
    },
)
STREAMS = Replayable(
    "StreamStreamJoin",
    {
        "Before": 0,
        "After": 1,
        "Grace": 1,
        "Clock": "stream_time",
        "Join": "outer",
        "Emit": "close",
        "Mutant": "none",
    },
    {"arrived": "<<>>", "clock": "0", "buffer": "[left |-> <<>>, right |-> <<>>]", "emitted": "<<>>"},
)
TABLES = Replayable(
    "TableTableJoin",
    {"Join": "left", "Tombstones": "again", "Mutant": "none"},
    {
        "log": "[left |-> <<>>, right |-> <<>>]",
        "queue": "[left |-> <<>>, right |-> <<>>]",
        "tables": "[left |-> [k |-> None], right |-> [k |-> None]]",
        "result": "[k |-> None]",
        "emitted": "<<>>",
    },
)
NOTHING = '(None :> [l |-> None] @@ "r" :> [l |-> None])'
ONE_TO_MANY = Replayable(
    "OneToManyJoin",
    {
        "Join": "left",
        "Protocol": "kip",
        "NullForeignKey": "ignore",
        "Mutant": "none",
        "None": ModelValue("None"),
    },
    {
        "left": "[l |-> None]",
        "right": "[r |-> None]",
        "rows": '(None :> <<>> @@ "r" :> <<>>)',
        "kept": NOTHING,
        "result": NOTHING,
        "results": '(None :> [l |-> <<>>] @@ "r" :> [l |-> <<>>])',
        "collected": '[l |-> (None :> None @@ "r" :> None)]',
        "newest": "[l |-> 0]",
        "left_changes": "0",
        "right_changes": "0",
    },
)
NO_FOREIGN_KEYS = {
    "left": "[l |-> None]",
    "right": "[r1 |-> None, r2 |-> None]",
    "subscribed": "[r1 |-> [l |-> None], r2 |-> [l |-> None]]",
    "subscriptions": "[r1 |-> <<>>, r2 |-> <<>>]",
    "responses": "[r1 |-> [l |-> <<>>], r2 |-> [l |-> <<>>]]",
    "result": "[l |-> None]",
}
"""The first state of the foreign-key join of a left row and two right rows."""
FOREIGN_KEYS = Replayable(
    "ForeignKeyJoin",
    {
        "Join": "inner",
        "Protocol": "kip",
        "NullForeignKey": "ignore",
        "Mutant": "none",
        "None": ModelValue("None"),
    },
    {**NO_FOREIGN_KEYS, "left_changes": "0", "right_changes": "0", "together": "{}"},
)
