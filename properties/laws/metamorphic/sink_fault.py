"""The law that a fault other than a crash doesn't change the rows that a sink contains at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ...witnesses.job.dying.faults import AT_LINES, FAULTS
from ...witnesses.job.query.faulted_sink import CHOSEN
from ...witnesses.job.running import QueryOutput
from ...witnesses.run_options import RunOptions
from ..variation import Invariant, Variation


class SinkFaultLaw(Invariant):
    """The law that a fault changes none of the rows that a sink contains at the end.

    Args:
        fault: The fault's name.
    """

    given: ClassVar[Any] = ()

    def __init__(self, fault: str) -> None:
        self.fault, self.of_jobs = fault, f"the fault {fault}"

    def variations(self, run: RunOptions) -> list[Variation]:
        """Return the variations for the fault: several if the fault happens at lines of the sink's function, otherwise
        one.
        """
        return [self.variation(run, at) for at in (CHOSEN if self.fault in AT_LINES else CHOSEN[:1])]

    def variation(self, run: RunOptions, given: Sequence[Sequence[int]]) -> Variation:
        """Return a variation with the fault in the given batches, each at a line of the sink's function; by default,
        the query chooses them.
        """
        at: tuple[tuple[int, int], ...] = tuple((batch, line) for batch, line in given)
        if any(type(number) is not int or number < 0 for pair in at for number in pair):
            raise ValueError(given)

        def parts(output: QueryOutput) -> list[Variation]:
            met = output.fault.lines
            return [self.variation(run, [pair]) for pair in met] if at in CHOSEN or len(at) > 1 else []

        return Variation(
            replace(run, fault=self.fault, fault_at=at),
            self.of_jobs,
            [[*pair] for pair in at],
            f"under the fault {self.fault} ({FAULTS[self.fault].says})",
            "without the fault",
            "end",
            parts=parts,
        )


SINK_FAULTS = {name: SinkFaultLaw(name) for name in FAULTS}
"""The law of each fault, by the fault's name."""
