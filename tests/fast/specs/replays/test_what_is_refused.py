"""A step, a module or constants that a replay doesn't know are refused, whichever module is replayed."""

from __future__ import annotations

import re
from functools import partial

import pytest
from replayed_modules import FOREIGN_KEYS, ONE_TO_MANY, SESSIONS, STREAMS, TABLES, Replayable
from streamproof.reference.core.errors import BadInput
from streamproof.specs.pytla import Step, TlaValue, Trace
from streamproof.specs.replay import replay
from streamproof.specs.replays import stream_stream_join_mutants, table_table_join_mutants
from tla_models import FOLDER

RECORD = '[key |-> "a", timestamp |-> {}, clock |-> {}, number |-> 1]'
SEVERAL, BOTH, NO_STEP = (
    "several records arrive at once",
    "both tables change at once",
    "no action of the module makes this",
)
NO_ACTION, NO_VALUE = "the module has no such action", "a value isn't one of the module's"
LEFT_ROW = '[l |-> [version |-> 1, foreign_key |-> "r"]]'


# A row is called by its module.
of_each = partial(pytest.mark.parametrize, ids=lambda given: given.name if isinstance(given, Replayable) else None)


@of_each(
    ("module", "action", "changed", "why"),
    [
        (SESSIONS, "Arrive", {"accepted": f"{{{RECORD.format(0, 0)}, {RECORD.format(1, 0)}}}"}, SEVERAL),
        (SESSIONS, "Arrive", {"emitted": "[a |-> {[start |-> 0, end |-> 0, count |-> 1]}]"}, NO_STEP),
        (SESSIONS, "UpdateLeft", {"clock": "1"}, NO_ACTION),
        (SESSIONS, "Arrive", {"clock": "None"}, "the clock is None, not a number"),
        (SESSIONS, "Arrive", {"store": "{}"}, NO_VALUE),
        (SESSIONS, "Arrive", {"emitted": '[a |-> {"b"}]'}, NO_VALUE),
        (STREAMS, "Arrive", {"emitted": "<<[left |-> 1, right |-> None]>>"}, NO_VALUE),
        (STREAMS, "Arrive", {"clock": "3"}, NO_STEP),
        (STREAMS, "UpdateLeft", {"clock": "1"}, NO_ACTION),
        (STREAMS, "Arrive", {"buffer": "{}"}, NO_VALUE),
        (TABLES, "Take", {"tables": "[left |-> [k |-> 1], right |-> [k |-> None]]"}, NO_STEP),
        (TABLES, "Arrive", {"tables": "[left |-> [k |-> 1], right |-> [k |-> None]]"}, NO_ACTION),
        (TABLES, "Take", {"tables": "{}"}, NO_VALUE),
        (TABLES, "Take", {"result": "[k |-> 1]"}, NO_VALUE),
        (ONE_TO_MANY, "UpdateLeft", {"left_changes": "1", "right_changes": "1"}, BOTH),
        (ONE_TO_MANY, "DeliverRow", {"left": LEFT_ROW}, NO_STEP),
        (ONE_TO_MANY, "Arrive", {"left_changes": "1"}, NO_ACTION),
        (ONE_TO_MANY, "DeliverRow", {"rows": "1"}, NO_VALUE),
    ],
)
def test_a_step_that_no_action_makes_is_refused_by_its_number(
    module: Replayable, action: str, changed: dict[str, str], why: str
) -> None:
    with pytest.raises(BadInput, match=rf"^step 2 \({action}\): {why}.*: replay only behaviours of {module.name}"):
        module.replayed((action, changed))


@of_each(
    ("module", "variable"),
    [
        (SESSIONS, "accepted"),
        (STREAMS, "arrived"),
        (TABLES, "emitted"),
        (ONE_TO_MANY, "collected"),
        (FOREIGN_KEYS, "left"),
    ],
)
def test_the_behaviour_of_another_module_is_refused(module: Replayable, variable: str) -> None:
    other = Trace((Step(1, "Initial", {"sessions": 1}),))
    with pytest.raises(BadInput, match=rf"^step 1 \(Initial\): it has no variable {variable}"):
        replay([other], module.constants, module.name)


@of_each(
    ("module", "name"),
    [(SESSIONS, "Gap"), (STREAMS, "Grace"), (TABLES, "Join"), (ONE_TO_MANY, "Join"), (FOREIGN_KEYS, "Join")],
)
def test_a_missing_constant_is_refused(module: Replayable, name: str) -> None:
    with pytest.raises(BadInput, match=rf"^the constant {name} of {module.name} is missing: give all constants"):
        replay([], {other: value for other, value in module.constants.items() if other != name}, module.name)


@of_each(
    ("module", "constants", "says"),
    [
        (SESSIONS, {"Mutant": "typo"}, "^SessionWindows has no mutant 'typo': use one of none, gap exclusive"),
        (SESSIONS, {"Clock": "sundial"}, "unknown clock 'sundial'"),
        (STREAMS, {"Mutant": "typo"}, "^StreamStreamJoin has no mutant 'typo': use one of none, pair for every w"),
        (TABLES, {"Mutant": "typo"}, "^TableTableJoin has no mutant 'typo': use one of none, left tombstone ignored"),
        (TABLES, {"Tombstones": "never"}, "^Tombstones of TableTableJoin is 'never': use again or once"),
        (FOREIGN_KEYS, {"Mutant": "typo"}, "^ForeignKeyJoin has no mutant 'typo': use one of none, no hash check"),
        (FOREIGN_KEYS, {"Join": "rigth"}, "unknown join 'rigth'"),
        (
            ONE_TO_MANY,
            {"Mutant": "old key kept"},
            "^the reference can't be the mutant 'old key kept', because it has no m",
        ),
    ],
)
def test_a_constant_of_another_value_is_refused(module: Replayable, constants: dict[str, TlaValue], says: str) -> None:
    traces = [module.trace()] if "Clock" in constants else []
    with pytest.raises(BadInput, match=says):
        replay(traces, {**module.constants, **constants}, module.name)


@of_each(
    ("module", "mutants"),
    [(STREAMS.name, stream_stream_join_mutants.MUTANTS), (TABLES.name, table_table_join_mutants.MUTANTS)],
)
def test_every_mutant_of_the_module_is_a_bug_of_the_reference_and_has_a_model(
    module: str, mutants: dict[str, object]
) -> None:
    named = re.search(r"Mutants == \{(.*?)\n\n", (FOLDER / module / f"{module}.tla").read_text(), re.DOTALL)
    assert named is not None
    assert re.findall(r'^    "(.*?)"', named[1], re.MULTILINE) == [*mutants]
    for mutant in set(mutants) - {"none"}:
        assert (FOLDER / module / f"{module}_mutant_{mutant.replace(' ', '_')}.cfg").exists()
