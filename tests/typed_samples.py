"""Runs the samples in typed columns that a check draws, and nothing else of it; prints how many histories violate.

`python -m typed_samples session_windows:0,2 table_table_join` asks the first operator in two layouts by number, the
other in all. The samples are those of `streamproof check` at its default size and seed.
"""

from __future__ import annotations

import json
import sys

from streamproof.properties.generators.cohorts import cohorts_of
from streamproof.properties.laws.all import law_named
from streamproof.properties.laws.base import LawResult
from streamproof.properties.laws.on_spark.columns import answers_in, layouts_of
from streamproof.properties.laws.runs import Kind, TypedRun
from streamproof.properties.registration.registration import registration_of
from streamproof.properties.runner.samples import plan_of_their_own
from streamproof.properties.witnesses.spark.witness import SPARK

DEFAULT = 2000
"""So many histories a check draws."""


def violated(operator: str, numbers: list[int], histories: int = DEFAULT) -> int:
    """Return how many histories violate the law *columns*, in some of the layouts; none says all of them."""
    registration, law = registration_of(operator), law_named("columns")
    wanted = [one.profile for number, one in enumerate(layouts_of(registration)) if not numbers or number in numbers]
    count = 0
    for sample in (draw() for draw in plan_of_their_own(registration, histories, 0)):
        if sample.kind is Kind.COLUMNS and sample.profile in wanted:
            ((cohort, _),) = cohorts_of(sample.histories, null_keys_alone=False)
            run = TypedRun(sample, answers_in(sample.more.layout, cohort, SPARK))
            count += len(list(law.judge(run, LawResult(law))))  # type: ignore[arg-type]
    return count


if __name__ == "__main__":
    found = {}
    for argument in sys.argv[1:]:
        name, _, chosen = argument.partition(":")
        found[name] = violated(name, [int(number) for number in chosen.split(",") if number])
    print(json.dumps(found))
