"""Examines cohorts on Spark: runs them, and says of every history which laws it breaks."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..reference.histories import History
from ..reference.play import Played, play
from .cohorts import Cohort, cohorts_of, owner
from .laws import same_entries, state_left, table_at_every_cut
from .outcomes import Difference, Outcome, differences
from .shrinking import shrink, trimmed, without_heartbeats
from .spark_witness import MANY_KEYS, PLAIN, Plan, run_cohort
from .streams import StreamOutput

TIMED = ("session_windows", "stream_stream_join", "window_aggregate", "windowed_table")
"""The operators with timers."""
FINE_GROUPS = 1024
"""Over so many state groups their keys are spread: a key without a timer is served by those that share its group."""

Broken = dict[str, list[Difference]]
Ask = Callable[[Sequence[History], str, Plan], list[bool]]


@dataclass
class Examination:
    """One cohort's run.

    Attributes:
        cohort: What was run.
        played: The reference's play of each history.
        outcomes: Spark's outcome of each history.
        output: What the query wrote.
        broken: For each history, the laws it breaks and how.
    """

    cohort: Cohort
    played: list[Played]
    outcomes: list[Outcome]
    output: StreamOutput
    broken: list[Broken] = field(default_factory=list)

    @property
    def leftover(self) -> list[list[str]]:
        """For each history, its keys whose state is left."""
        keys: list[list[str]] = [[] for _ in self.cohort.histories]
        for row in self.output.leftover:
            for group in row["value"]["keys"]:  # type: ignore[index]
                if (owned := owner(group["key_0"])) is not None:
                    keys[owned[0]].append(owned[1])
        return keys

    def part(self, count: int) -> Examination:
        """The examination of the cohort's first histories, not judged."""
        cohort = replace(self.cohort, histories=self.cohort.histories[:count])
        return Examination(cohort, self.played[:count], self.outcomes[:count], self.output)


def examine(cohort: Cohort, plan: Plan = PLAIN, fine: bool = True) -> Examination:
    """Run a cohort, and judge each history by the changelog, the table at every cut and, where it's read, the state.

    Args:
        cohort: What is run.
        plan: How it is run.
        fine: Whether the keys of an operator with timers are spread over many state groups, so that a timer that is
            missing shows; it costs half as much again.
    """
    spread = fine and plan.state_groups is None and cohort.operator in TIMED
    if spread and len(cohort.histories) > MANY_KEYS:
        plan = replace(plan, state_groups=FINE_GROUPS)
    outcomes, output = run_cohort(cohort, plan)
    examination = Examination(cohort, [play(history) for history in cohort.histories], outcomes, output)
    leftover = examination.leftover if plan.read_state else None
    for place, history in enumerate(cohort.histories):
        played, outcome = examination.played[place], outcomes[place]
        broken: Broken = {}
        found = differences(Outcome.of_play(history.name, played), outcome)
        if found:
            broken["changelog"] = found
        found = table_at_every_cut(history, played, outcome)
        if found:
            broken["table at every cut"] = found
        if leftover is not None and leftover[place]:
            broken["state"] = state_left(history.name, leftover[place])
        examination.broken.append(broken)
    return examination


@dataclass
class Restarted:
    """A cohort that was stopped, restarted, and crashed once between output and commit."""

    broken: list[Broken]
    situations: Counter[str]
    outcomes: list[Outcome] = field(default_factory=list)


def examine_restart(plain: Examination, plan: Plan, stop_after: int, crash_in: int) -> Restarted:
    """Run a cohort again with a stop and a crash, and judge each history against its plain run."""
    outcomes, output = run_cohort(
        plain.cohort, replace(plan, stop_after=stop_after, crash_in=crash_in, read_state=False)
    )
    replayed_wrongly = _replayed_wrongly(output)
    situations: Counter[str] = Counter({"batch replayed": len(output.replayed)})
    broken: list[Broken] = []
    for place, history in enumerate(plain.cohort.histories):
        found: Broken = {}
        parted = same_entries(plain.outcomes[place], outcomes[place])
        if parted:
            found["restart"] = parted
        keys = sorted(replayed_wrongly[place])
        if keys:
            found["replay"] = [
                Difference(history.name, key, crash_in, "written first", "written otherwise") for key in keys
            ]
        situations["changes after the restart"] += any(entry.batch > stop_after for entry in outcomes[place].entries)
        broken.append(found)
    return Restarted(broken, situations, outcomes)


def _replayed_wrongly(output: StreamOutput) -> dict[int, set[str]]:
    wrong: dict[int, set[str]] = defaultdict(set)
    for before, after in output.replayed:
        # Rows of different keys may swap places between two runs of a batch; rows of one key may not.
        first, second = (_rows_by_key(table.to_pylist()) for table in (before, after))
        for key in first.keys() | second.keys():
            if first.get(key) != second.get(key) and (owned := owner(key)) is not None:
                wrong[owned[0]].add(owned[1])
    return wrong


def _rows_by_key(rows: Iterable[dict[str, object]]) -> dict[str, list[dict[str, object]]]:
    by_key: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        by_key[str(row["key"])].append({name: value for name, value in row.items() if name != "ordinal"})
    return by_key


def breaks(histories: Sequence[History], law: str, plan: Plan = PLAIN) -> list[bool]:
    """Say of each history whether it breaks `changelog`, `table at every cut` or `state` under a plan."""
    answers = [False] * len(histories)
    for cohort, places in cohorts_of(histories):
        examination = examine(cohort, replace(plan, read_state=law == "state"))
        for place, broken in zip(places, examination.broken, strict=True):
            answers[place] = law in broken
    return answers


def shrunk(history: History, law: str, plan: Plan = PLAIN, ask: Ask = breaks) -> tuple[History, bool]:
    """Confirm alone that a history breaks a law, and shrink it.

    Returns:
        The smallest history found, and whether it breaks the law alone; the history as it was, where it doesn't.
    """
    if not breaks([history], law, plan)[0]:
        return history, False
    smallest = shrink(history, lambda candidates: ask(candidates, law, plan))
    for plainer in (without_heartbeats(smallest), trimmed(smallest)):
        if plainer.lines != smallest.lines and breaks([plainer], law, plan)[0]:
            return plainer, True
    return smallest, True
