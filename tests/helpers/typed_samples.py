"""Runs samples that a check of an operator draws, and nothing else of it, in several trees; prints how many violate.

`python -m typed_samples TREE:session_windows:0 TREE:table_table_join:3` asks the first operator in a layout of columns
by its number, and the other one in shared queries, which are played in memory. The samples in columns are those of
`streamproof check` at its default size and seed, of the shared ones only a part. All trees have one Spark session.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import Any
from unittest.mock import patch

DEFAULT, SOME, IN_MEMORY = 2000, 500, 3
"""So many histories a check draws; so many of them are played in memory, where an operator has this number."""
_OF_TREE = ("streamproof", "memory_runtime", "shared_player")


def violated(operator: str, number: int) -> int:
    """Return how many histories violate."""
    return violated_in_memory(operator) if number == IN_MEMORY else violated_in_columns(operator, number)


def violated_in_columns(operator: str, number: int) -> int:
    """Return how many histories violate the law *columns* in a layout."""
    from streamproof.properties.checking.samples import plan_of_their_own
    from streamproof.properties.generators.cohorts import cohorts_of
    from streamproof.properties.laws.all import law_named
    from streamproof.properties.laws.base import LawResult
    from streamproof.properties.laws.on_spark.columns import answers_in, layouts_of
    from streamproof.properties.laws.runs import Kind, TypedRun
    from streamproof.properties.registration.registration import registration_of
    from streamproof.properties.witnesses.spark.typed import TypedAnswer, TypedSparkWitness
    from streamproof.properties.witnesses.spark.witness import SPARK
    from streamproof.reference.core.play import Entry
    from streamproof.reference.core.records import Dropped

    def failed(self: Any, cohort: Any, run: Any, failure: Exception, count: int) -> list[TypedAnswer]:
        """Say of all histories that they fail, as the witness does after it has searched for one to blame."""
        from streamproof.properties.outcomes.outcomes import Grain, Outcome

        dropped = Entry(-1, 0, Dropped(None, f"failed: {failure}"))
        return [TypedAnswer(Outcome(one.name, Grain.BATCH, [dropped]), failed="together") for one in cohort.histories]

    registration, law, count = registration_of(operator), law_named("columns"), 0
    wanted = layouts_of(registration)[number].profile
    for sample in (draw() for draw in plan_of_their_own(registration, DEFAULT, 0)):
        if sample.kind is Kind.COLUMNS and sample.profile == wanted:
            ((cohort, _),) = cohorts_of(sample.histories, null_keys_alone=False)
            with patch.object(TypedSparkWitness, "_failed", failed):
                run = TypedRun(sample, answers_in(sample.more.layout, cohort, SPARK))
            found = [*law.judge(run, LawResult(law))]  # type: ignore[arg-type]
            count += len(found)
            for one in found[:1]:
                print(*one.comparison.differences[:2], sep="\n", file=sys.stderr)
    return count


def violated_in_memory(operator: str) -> int:
    """Return how many histories that share queries differ from the reference's, or have state left."""
    from memory_runtime import Memory
    from shared_player import play_all
    from streamproof.properties.checking.pools import pools_on_spark
    from streamproof.properties.laws.on_spark.labels import expected_labels, label_differences
    from streamproof.properties.laws.on_spark.state import unexplained
    from streamproof.properties.outcomes.outcomes import Outcome, differences
    from streamproof.properties.registration.registration import registration_of
    from streamproof.properties.witnesses.run_options import RunOptions
    from streamproof.properties.witnesses.spark.shared import GROUPS, Play
    from streamproof.reference.core.play import play

    # A mutant's timers may be in the past, or gone: that must show in what is emitted.
    Memory.registerTimer = lambda self, at: self.timers.add(at)  # type: ignore[method-assign]
    Memory.deleteTimer = lambda self, at: self.timers.discard(at)  # type: ignore[method-assign]
    count, groups = 0, GROUPS * SOME // DEFAULT  # so a group has as many keys as with all of them
    for pool in pools_on_spark([registration_of(operator)], SOME, 0):
        plays = [(sample, Play(history)) for sample in pool for history in sample.histories]
        ways = {way for sample in pool for name, ways in sample.ways.items() if name != "partitions" for way in ways}
        for way in (RunOptions(), *sorted(ways, key=repr)):
            answers = play_all([one for _, one in plays], replace(way, read_state=True, state_groups=groups))
            for index, (sample, one) in enumerate(plays):
                history = one.history
                ours = Outcome.of_play(history.name, play(history))
                wrong = [*differences(ours, answers.outcomes[index])]
                wrong += label_differences(history, expected_labels(history), answers.labels[index])
                left = sample.bounds_state and unexplained(history, answers.left[index])
                count += bool(wrong or left)
    return count


def _forget_tree() -> None:
    """Let what is imported next come from another tree; Spark's session stays."""
    for name in [name for name in sys.modules if name.partition(".")[0] in _OF_TREE]:
        del sys.modules[name]


def main() -> None:
    """Ask each of the arguments, and print what came of it as it comes."""
    session: Any = None
    path = list(sys.path)
    for argument in sys.argv[1:]:
        tree, operator, number = argument.rsplit(":", 2)
        _forget_tree()
        sys.path[:] = [tree, *path]
        if int(number) != IN_MEMORY:
            from streamproof.properties.witnesses.spark import session as of_tree

            if session is not None:
                of_tree._session = session
            else:
                session = of_tree.spark_session()
        print(json.dumps({"violated": violated(operator, int(number))}), flush=True)


if __name__ == "__main__":
    main()
