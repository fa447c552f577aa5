"""Replay TLC's behaviours (sequences of actions) on Spark: after each action, Spark's output must match the model.

A behaviour of the foreign-key join is played in three queries, message by message. After each action, the result and
the waiting messages of each route must equal the model's. Then the behaviour's record changes are played in one query,
whose result after each change must be the join of the model's tables.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.play import Entry
from ...reference.core.records import Key, Output, Record, fold
from ...specs.pytla import Step, Trace
from ...specs.races import OPERATOR, meant, values_of
from ...specs.replay import Disagreement, ReplayResult
from ...specs.replays.common import Action, ModelConstants, difference, steps_of
from ...specs.replays.foreign_key_join import MODULE, ForeignKeyJoinReplay, contrast
from ...specs.replays.foreign_key_kafka import KAFKA
from ..generators.cohorts import with_clock_advances
from ..registration.mutants import MakeLogic
from ..registration.registration import registration_of
from ..witnesses.messages import WaitingMessage
from ..witnesses.spark.staged import play_staged
from ..witnesses.spark.witness import SPARK

ShownTable: TypeAlias = Mapping[Any, Any]
"""The values of a result, by key."""
Waits: TypeAlias = Mapping[Any, Sequence[WaitingMessage]]
"""The waiting messages, by route."""
COHORT = 2_400
"""The largest number of behaviours to play together."""


class ReplayedBehaviour(NamedTuple):
    """A behaviour to replay.

    Attributes:
        trace: The behaviour.
        constants: The constants of the behaviour's model. If the constants name a mutant, Spark runs the mutant.
        fused: Whether the record changes are also played in one query, where no message waits, so there are no races.
    """

    trace: Trace
    constants: ModelConstants
    fused: bool = True


def replay_on_spark(traces: Iterable[Trace], constants: ModelConstants, module: str) -> ReplayResult:
    """Replay behaviours on Spark, action by action.

    If the constants name a mutant, Spark runs the mutant. If the constants select code with races, such as the inner
    join of `kip`, the history is also played on code without races (`Contrast.right`). Its result at the end must be
    the join of the tables.

    Args:
        traces: The behaviours.
        constants: The constants of the behaviours' model.
        module: The name of the model's TLA+ module.

    Raises:
        BadInput: The module or the mutant has no replay on Spark, or a step is unreadable.
        StreamproofError: A query failed, or Spark didn't start.
    """
    return replay_cases_on_spark([ReplayedBehaviour(trace, constants) for trace in traces], module)


def replay_cases_on_spark(cases: Sequence[ReplayedBehaviour], module: str) -> ReplayResult:
    """Replay behaviours of several models together, with fewer queries; see `replay_on_spark`."""
    if module != MODULE:
        raise BadInput(f"the behaviours of {module} can't be replayed on Spark: use one of {MODULE}")
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
    return ReplayResult(len(behaviours), actions, tuple(first[number] for number in sorted(first)))


@dataclass
class Behaviour:
    """A behaviour of the foreign-key join, which can be compared with the code's output.

    Attributes:
        number: The behaviour's number among the replayed behaviours, from 1.
        of_module: The reader of the TLA+ module's behaviours.
        steps: The steps of the behaviour, each with its action.
    """

    number: int
    of_module: ForeignKeyJoinReplay
    steps: Sequence[tuple[Step, Action]]

    def first_disagreement(self, shown: Iterable[ShownTable], waiting: Iterable[Waits]) -> Disagreement | None:
        """Return the first disagreement of the values and waiting messages after each step with the model."""
        for (step, _), result, waits in zip(self.steps, shown, waiting, strict=True):
            model = self.of_module.expected(step)
            # Leave out the hashes, because the model computes hashes in its own way.
            expected = {route: [_content(route[2], one) for one in queue] for route, queue in model["waiting"].items()}
            seen = {route: [(one.key, one.content) for one in queue] for route, queue in waits.items()}
            found = difference({"waiting": seen, "result": result}, {"waiting": expected, "result": model["result"]})
            if found is not None:
                return Disagreement.after(self.number, step, found)
        return None

    def disagreement(
        self, result: ShownTable, expected: ShownTable, when: str, after: Step | None = None
    ) -> Disagreement | None:
        """Return the disagreement of a result with the expected result after a step, by default after the last step."""
        found = difference({"result": result}, {"result": expected})
        if found is None:
            return None
        return Disagreement.after(self.number, after or self.steps[-1][0], found._replace(what=f"{found.what}, {when}"))


def _content(to: Key | None, message: Mapping[str, Any]) -> tuple[Key, Any]:
    return (message["key"], message["asks"]) if to is None else (to, message["brings"])


@dataclass
class _Behaviour(Behaviour):
    """A behaviour with the history to play on Spark."""

    case: ReplayedBehaviour
    history: History


def _behaviours(cases: Sequence[ReplayedBehaviour]) -> list[_Behaviour]:
    readers: dict[int, ForeignKeyJoinReplay] = {}
    behaviours, logics = [], _logics()
    for number, case in enumerate(cases, 1):
        of_module = readers.get(id(case.constants)) or ForeignKeyJoinReplay(case.constants)
        readers[id(case.constants)] = of_module
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
        behaviours.append(_Behaviour(number, of_module, steps, case, history))
    return behaviours


def _logics() -> Mapping[str, MakeLogic]:
    protocol = registration_of(OPERATOR).protocol
    assert protocol is not None
    return protocol.specified()


def _staged_disagreements(behaviours: Sequence[_Behaviour]) -> list[Disagreement | None]:
    rights = [one for one in behaviours if not one.of_module.is_right]
    right_histories = [contrast(one.case.trace, one.case.constants).right for one in rights]
    histories = [*(one.history for one in behaviours), *right_histories]
    codes = [*(one.of_module.code for one in behaviours), *("none" for _ in rights)]
    logics = _logics()
    # strict=False, because the comparison of waiting messages reports a delivery without a message.
    staged = play_staged(histories, [logics[code] for code in codes], strict=False)
    found, count = [], len(behaviours)
    for one, played in zip(behaviours, staged[:count], strict=True):
        emitted = tables_of(played.outcome.entries, lambda entry: entry.arrival, len(one.steps))
        found.append(one.first_disagreement(emitted, played.waiting))
    for one, history, played in zip(rights, right_histories, staged[count:], strict=True):
        result = table_of(played.outcome.entries)
        found.append(one.disagreement(result, values_of(meant(history)), "at the end on the right code"))
    return found


def table_of(entries: Sequence[Entry]) -> ShownTable:
    """Return the final values, by key."""
    return values_of(fold(entry.output for entry in entries))


def tables_of(entries: Sequence[Entry], when: Callable[[Entry], int], count: int) -> list[ShownTable]:
    """Return the table after each arrival, or after each batch."""
    table: Any = {}
    by_step: dict[int, list[Output]] = defaultdict(list)
    for entry in entries:
        by_step[when(entry)].append(entry.output)
    return [values_of(fold(by_step[number], table)) for number in range(count)]


def _fused_disagreements(behaviours: Sequence[_Behaviour]) -> list[Disagreement]:
    """Run the record changes of all behaviours in one query, equal changes only once; compare the results with the
    join.
    """
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
            found = behaviour.disagreement(result, behaviour.of_module.joined(step), "in one query", step)
            if found is not None:
                disagreements.append(found)
                break
    return disagreements


def _fused_history(history: History, batches: int) -> History:
    """Return the record changes of a history, one in each batch, under a common clock."""
    options = {name: value for name, value in history.options.items() if name != "delivery"}
    records = [[record] for record in history.records]
    lines = with_clock_advances([*records, *([] for _ in range(batches - len(records)))], range(1, batches + 1))
    return History(history.operator, options, lines)
