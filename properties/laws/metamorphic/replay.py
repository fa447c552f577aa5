"""The law *replay*: a batch that runs again after a crash between output and commit writes the same again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ....reference.core.records import Key
from ...generators.cohorts import Cohort
from ...registration.key_space import owner
from ...witnesses.base import PLAIN
from ...witnesses.outcomes import Difference, Outcome
from ...witnesses.spark.query import StreamOutput
from ...witnesses.spark.witness import QueryWitness
from ..base import Comparison, LawResult, Violation, violations
from ..runs import Run
from .reruns import RerunLaw
from .restart import STOPPED_AND_CRASHED


class Replay(RerunLaw):
    """Rows of different keys may be swapped between two runs of a batch; rows of one key may not."""

    name = "replay"
    says = "a batch replayed after a crash between output and commit changes nothing downstream"
    goal = "batch replayed"

    def judge(self, run: Run, result: LawResult) -> Iterator[Violation]:
        """Compare what the crashed batch wrote at first with what it wrote again."""
        outcomes, output, first = run.again(STOPPED_AND_CRASHED)
        result.judged += len(outcomes)
        result.covered[self.goal] += len(output.replayed)
        yield from violations(run.histories, _compared(run.outcomes, outcomes, output, first))

    def recheck_cohort(self, cohort: Cohort, witness: QueryWitness) -> list[Comparison]:
        """Run a cohort without and with a crash."""
        plain, _ = witness.run(cohort, PLAIN)
        restarted, output = witness.run(cohort, STOPPED_AND_CRASHED)
        return _compared(plain, restarted, output)


def _compared(
    plain: Sequence[Outcome], restarted: Sequence[Outcome], output: StreamOutput, first: int = 0
) -> list[Comparison]:
    """Compare what was written twice; `first` is the index in the cohort of the first of these outcomes."""
    wrong, batch = keys_replayed_otherwise(output), STOPPED_AND_CRASHED.crash_in
    comparisons = []
    for index, (before, after) in enumerate(zip(plain, restarted, strict=False), first):
        keys = sorted(wrong[index])
        found = [Difference(after.history, key, batch, "written first", "written otherwise") for key in keys]
        sides = ("Spark without a restart", before), ("Spark with a stop and a crash", after)
        comparisons.append(Comparison(*sides, found))
    return comparisons


def keys_replayed_otherwise(output: StreamOutput) -> dict[int, set[Key]]:
    """Return by the history's index in its cohort the keys whose rows a replayed batch wrote otherwise."""
    wrong: dict[int, set[Key]] = defaultdict(set)
    for before, after in output.replayed:
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
