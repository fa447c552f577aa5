"""The law *labels*: each change has the right kind and cause, and a dropped row keeps its own timestamp."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

from ....reference.core.history import History
from ....reference.core.play import Played
from ....reference.core.records import Dropped
from ....spark_impl.runtime.logic import DROPPED, TOMBSTONE, UPDATE
from ...outcomes.outcomes import Difference, OutcomeStep, differing_steps
from ...witnesses.spark.answers import Label
from ...witnesses.spark.witness import QueryWitness
from ..base import BrokenCase, CannotRecheck, Comparison, Law, LawResult
from ..case import Case
from ..causes import played_with_causes
from ..runs import Kind, Run, Sample
from .judging import by_reference

CAUSED, CLOSED = "changes that a record sets off", "changes that the clock sets off"


class Labels(Law):
    """Compares the columns `change` and `cause`, and the timestamps of dropped rows, with the reference."""

    name = "labels"
    between = ("reference", "spark")
    says = "each change says whether it is an update or a tombstone, and which record set it off"
    is_plain = True
    follows_changelog = True

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.kind is Kind.RANDOM and sample.is_pooled

    def goals(self, sample: Sample) -> Sequence[str]:
        """Return the goals: records cause changes and, if the operator closes windows, the clock causes changes."""
        closes = sample.options.get("emit") == "close"
        return [CAUSED, *[CLOSED] * closes]

    def judge(self, run: Run, result: LawResult) -> Iterator[BrokenCase]:
        """Judge each drawn history of a run."""
        result.judged += run.drawn
        labels = run.answers.labels
        for index in range(run.drawn):
            history, played, outcome = run.histories[index], run.played[index], run.outcomes[index]
            expected = list(labels_of(history, played, run.causes[index]))
            result.covered.update({CLOSED if label.cause is None else CAUSED for label in expected})
            found = label_differences(history, expected, labels[index])
            if found:
                yield BrokenCase(Case(history), Comparison(by_reference(history, played), ("Spark", outcome), found))

    def recheck_together(self, histories: Sequence[History], witness: QueryWitness) -> list[Comparison]:
        """Run histories again in shared queries."""
        answers = witness.answers(histories)
        if not answers.labels:
            raise CannotRecheck("the law 'labels' is judged in shared queries, which this operator doesn't have")
        return [
            Comparison(
                by_reference(history),
                ("Spark", outcome),
                label_differences(history, expected_labels(history), labels),
            )
            for history, outcome, labels in zip(histories, answers.outcomes, answers.labels, strict=True)
        ]


def expected_labels(history: History) -> list[Label]:
    """Return the expected labels of a history's changes and dropped records."""
    return list(labels_of(history, *played_with_causes(history)))


def labels_of(history: History, played: Played, causes: Sequence[int | None]) -> Iterator[Label]:
    """Yield the expected label of each change and each dropped record in the reference's run."""
    for entry, cause in zip(played.entries, causes, strict=True):
        output = entry.output
        if isinstance(output, Dropped):
            timestamp = None if cause is None else history.records[cause].timestamp
            yield Label(entry.batch, output.key, DROPPED, cause, timestamp)
        else:
            yield Label(entry.batch, output.key, TOMBSTONE if output.value is None else UPDATE, cause)


def label_differences(history: History, expected: Iterable[Label], labels: Iterable[Label]) -> list[Difference]:
    """Return the differences between the expected and the actual labels of each key, in order."""
    return differing_steps(history.name, _steps(expected), _steps(labels))


def _steps(labels: Iterable[Label]) -> dict[OutcomeStep, list[str]]:
    steps: dict[OutcomeStep, list[str]] = defaultdict(list)
    for batch, key, change, cause, timestamp in labels:
        text = f"{change} by {'the clock' if cause is None else f'record {cause}'}"
        text += "" if timestamp is None else f" at {timestamp} ms"
        steps[batch, key, "dropped" if change == DROPPED else "changes"].append(text)
    return steps
