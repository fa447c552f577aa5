"""Prints how many mutants of each job in `examples/` the job's test kills, as a Markdown table.

`python -m benchmarks.mutants [JOB …]` prints the table, and to standard error each surviving mutant, with the reason.
"""

from __future__ import annotations

import os
import sys
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from streamproof import JobReport
from streamproof.properties.checking.jobs.reports import JudgedMutants

from .processes import CpuClock

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"
HEAD = "| job | its test expects | made | run | killed | survived | no difference | don't run | CPU s |"


class Measured(NamedTuple):
    """The mutants of a job, and the CPU seconds of their checks.

    Attributes:
        name: The name of the job's module.
        report: Their report.
        cpu_seconds: The CPU seconds of the process and its descendants, for the check of the job and its mutants.
    """

    name: str
    report: JudgedMutants
    cpu_seconds: float

    def __str__(self) -> str:
        fates, report = Counter(one.fate for one in self.report.judged), self.report
        run = len(report.judged) - fates["doesn't run"]
        alive = fates["survived"], fates["no difference"]
        counts = (len(report.judged), run, fates["killed"], *alive, fates["doesn't run"], round(self.cpu_seconds))
        return f"| `{self.name}` | {report.oracle} | {' | '.join(map(str, counts))} |"


def measured(name: str) -> Measured:
    """Check the mutants of an example as its test checks the job."""
    import test_examples

    job, check = next((module.job, check) for module, check in test_examples.EXAMPLES if module.__name__ == name)
    clock = CpuClock(os.getpid())
    before = sum(clock.read().values())
    report: JobReport = check(job, mutants=True)
    assert report.mutants is not None
    return Measured(name, report.mutants, sum(clock.read().values()) - before)


def main() -> None:
    """Print the table, and the surviving mutants."""
    sys.path.insert(0, str(EXAMPLES))
    import test_examples

    names = sys.argv[1:] or [module.__name__ for module, _ in test_examples.EXAMPLES]
    print(HEAD, "|---|---|---|---|---|---|---|---|---|", sep="\n", flush=True)
    for name in names:
        found = measured(name)
        print(found, flush=True)
        for mutant in found.report.survivors:
            print(f"{mutant.fate}: {mutant.mutant}; {mutant.why}.", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
