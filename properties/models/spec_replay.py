"""Replays TLC's behaviours on Spark: after each action, what Spark has emitted must be what the model says.

A behaviour of the foreign-key join is played in three queries, message by message: after each action the result as
emitted so far, and the messages that wait on each route, are compared with the model's. Its record changes alone are
then played in one query, whose result after each change must be the join of the model's tables.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Entry
from ...reference.core.records import Accepted, Key, Record, fold
from ...specs.pytla import Step, Trace
from ...specs.replay import Disagreement, Replayed
from ...specs.replays.common import Action, Constants, difference, steps_of
from ...specs.replays.foreign_key_join import MODULE as FOREIGN_KEY_JOIN
from ...specs.replays.foreign_key_join import ForeignKeyJoinReplay, contrast
from ...specs.replays.foreign_key_kafka import KAFKA
from ..generators.cohorts import with_clock_advances
from ..registration.mutants import MakeLogic
from ..registration.registration import registration_of
from ..witnesses.messages import Staged, Waiting
from ..witnesses.spark.staged import play_staged
from ..witnesses.spark.witness import SPARK

COHORT = 2_400
"""How many behaviours are played together at most."""


class Case(NamedTuple):
    """A behaviour to replay.

    Attributes:
        trace: The behaviour.
        constants: The constants of its model. Where they name a mutant, Spark has the same bug.
        fused: Whether its record changes are played in one query, too; without messages that wait there are no races.
    """

    trace: Trace
    constants: Constants
    fused: bool = True


def replay_on_spark(traces: Iterable[Trace], constants: Constants, module: str) -> Replayed:
    """Replay behaviours on Spark, action by action.

    Where the constants name a mutant, it is Spark with the same bug. And where they mean other code than the right one,
    the inner join of `kip` for example, the same history is played on the right code, too (`Contrast.right`), whose
    result must end as the join of the tables.

    Args:
        traces: The behaviours.
        constants: The constants of their model.
        module: The name of its module.

    Raises:
        BadInput: The module, or the mutant, can't be replayed on Spark; or a step can't be read.
        StreamproofError: A query failed, or Spark couldn't be started.
    """
    return replay_cases_on_spark([Case(trace, constants) for trace in traces], module)


def replay_cases_on_spark(cases: Sequence[Case], module: str) -> Replayed:
    """Replay behaviours of several models together, which saves queries; see `replay_on_spark`."""
    if module not in ON_SPARK:
        raise BadInput(f"the behaviours of {module} can't be replayed on Spark: use one of {', '.join(ON_SPARK)}")
    return ON_SPARK[module](cases)


class _Behaviour(NamedTuple):
    """A behaviour of the foreign-key join, as it is played."""

    number: int
    case: Case
    of_module: ForeignKeyJoinReplay
    steps: list[tuple[Step, Action]]
    history: History


def _replay_foreign_key_join(cases: Sequence[Case]) -> Replayed:
    behaviours = _behaviours(cases)
    found: list[Disagreement | None] = []
    for start in range(0, len(behaviours), COHORT):
        found += _staged_disagreements(behaviours[start : start + COHORT])
    found += _fused_disagreements([one for one in behaviours if one.case.fused and one.of_module.code == "none"])
    first: dict[int, Disagreement] = {}
    for one in found:
        if one is not None:
            first.setdefault(one.behaviour, one)
    actions = sum(len(one.steps) for one in behaviours)
    return Replayed(len(behaviours), actions, tuple(first[number] for number in sorted(first)))


ON_SPARK: Mapping[str, Callable[[Sequence[Case]], Replayed]] = {FOREIGN_KEY_JOIN: _replay_foreign_key_join}
"""How the behaviours of each module are replayed on Spark."""


def _behaviours(cases: Sequence[Case]) -> list[_Behaviour]:
    readers: dict[int, ForeignKeyJoinReplay] = {}
    behaviours = []
    for number, case in enumerate(cases, 1):
        of_module = readers.get(id(case.constants)) or ForeignKeyJoinReplay(case.constants)
        readers[id(case.constants)] = of_module
        logics = _logics(of_module.operator)
        if of_module.code not in logics:
            if of_module.code in KAFKA:
                raise BadInput(
                    f"Spark doesn't have the instructions of {of_module.code!r}: replay its behaviours on the reference"
                )
            raise BadInput(
                f"Spark can't have the bug {of_module.code!r}: replay its behaviours on the reference, "
                f"or use one of {', '.join(logics)}"
            )
        steps = list(steps_of(case.trace, of_module))
        history = History(of_module.operator, of_module.options, tuple(action.line for _, action in steps))
        behaviours.append(_Behaviour(number, case, of_module, steps, history))
    return behaviours


def _logics(operator: str) -> Mapping[str, MakeLogic]:
    protocol = registration_of(operator).protocol
    assert protocol is not None  # the operators of `ON_SPARK` have one
    return protocol.specified()


# In three queries.


def _staged_disagreements(behaviours: Sequence[_Behaviour]) -> list[Disagreement | None]:
    rights = [one for one in behaviours if not one.of_module.is_right]
    right_histories = [contrast(one.case.trace, one.case.constants).right for one in rights]
    histories = [*(one.history for one in behaviours), *right_histories]
    codes = [*((one, one.of_module.code) for one in behaviours), *((one, "none") for one in rights)]
    logics = [_logics(one.of_module.operator)[code] for one, code in codes]
    # A delivery for which nothing waits is no error here: what waits is compared.
    staged = play_staged(histories, logics, strict=False)
    count = len(behaviours)
    return [
        *(_staged_disagreement(*both) for both in zip(behaviours, staged[:count], strict=True)),
        *(_right_disagreement(*all_) for all_ in zip(rights, right_histories, staged[count:], strict=True)),
    ]


def _staged_disagreement(behaviour: _Behaviour, staged: Staged) -> Disagreement | None:
    emitted = tables_of(staged.outcome.entries, lambda entry: entry.arrival, len(behaviour.steps))
    for (step, _), result, waiting in zip(behaviour.steps, emitted, staged.waiting, strict=True):
        model = behaviour.of_module.expected(step)
        expected = {"waiting": contents_of(model["waiting"]), "result": model["result"]}
        found = difference({"waiting": messages_of(waiting), "result": result}, expected)
        if found is not None:
            return Disagreement.after(behaviour.number, step, found)
    return None


def _right_disagreement(behaviour: _Behaviour, history: History, staged: Staged) -> Disagreement | None:
    accepted = [Accepted(record, 0) for record in history.records]
    operator = operator_named(history.operator)
    meant = operator.meaning(operator.declare(history.options), accepted, 0)
    assert isinstance(meant, dict)
    entries = [entry._replace(arrival=0) for entry in staged.outcome.entries]
    (result,) = tables_of(entries, lambda entry: entry.arrival, 1)
    found = difference({"result": result}, {"result": {key: value for (key, _), (value, _) in meant.items()}})
    if found is None:
        return None
    step, _ = behaviour.steps[-1]
    return Disagreement.after(
        behaviour.number, step, found._replace(what=f"{found.what}, at the end on the right code")
    )


def contents_of(waiting: Mapping[Any, Sequence[Mapping[str, Any]]]) -> dict[Any, list[Any]]:
    """Return what waits in the model, each message as others show it: without its hash, which is another one there."""
    return {route: [_content(route[2], one) for one in messages] for route, messages in waiting.items()}


def _content(to: Key | None, message: Mapping[str, Any]) -> tuple[Key, Any]:
    return (message["key"], message["asks"]) if to is None else (to, message["brings"])


def messages_of(waiting: Waiting) -> dict[Any, list[Any]]:
    """Return what waits, each message as `contents_of` has it."""
    return {route: [(one.key, one.content) for one in messages] for route, messages in waiting.items()}


def tables_of(entries: Sequence[Entry], when: Callable[[Entry], int], count: int) -> list[dict[Key | None, Any]]:
    """Return the table after each arrival, or after each batch."""
    emitted: dict[int, list[Entry]] = {}
    for entry in entries:
        emitted.setdefault(when(entry), []).append(entry)
    table: Any = {}
    tables = []
    for number in range(count):
        fold((entry.output for entry in emitted.get(number, ())), table)
        tables.append({key: value for (key, _), (value, _) in table.items()})
    return tables


# In one query.


def _fused_disagreements(behaviours: Sequence[_Behaviour]) -> list[Disagreement]:
    """Play the record changes of behaviours alone, each sequence once, and compare each result with the join."""
    firsts: dict[str, tuple[History, _Behaviour]] = {}
    longest = max((len(one.history.records) for one in behaviours), default=0)
    for one in behaviours:
        history = _fused_history(one.history, longest)
        firsts.setdefault(history.to_text(), (history, one))
    outcomes = SPARK.evaluate([history for history, _ in firsts.values()])
    disagreements = []
    for (_, behaviour), outcome in zip(firsts.values(), outcomes, strict=True):
        changes = [step for step, action in behaviour.steps if isinstance(action.line, Record)]
        tables = tables_of(outcome.entries, lambda entry: entry.batch, len(changes))
        for step, result in zip(changes, tables, strict=True):
            found = difference({"result": result}, {"result": behaviour.of_module.joined(step)})
            if found is not None:
                in_one_query = found._replace(what=f"{found.what}, in one query")
                disagreements.append(Disagreement.after(behaviour.number, step, in_one_query))
                break
    return disagreements


def _fused_history(history: History, batches: int) -> History:
    """Return the record changes alone, one a batch, under the clock that all have."""
    options = {name: value for name, value in history.options.items() if name != "delivery"}
    records = [[record] for record in history.records]
    lines = with_clock_advances([*records, *([] for _ in range(batches - len(records)))], range(1, batches + 1))
    return History(history.operator, options, lines)
