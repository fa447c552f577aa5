"""What the laws share that run a part of the first sample again, in another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ...witnesses.base import RunOptions
from ..base import Law
from ..runs import Kind, Sample


class RerunLaw(Law):
    """A law that is asked of a part of the histories, run again.

    Attributes:
        goal: What must show in a run again before the law has shown anything.
        ways: How the histories are run again, where that is the same each time.
        of_all: Whether it is asked of every definition that shares a query, not of the first profile alone.
    """

    goal: ClassVar[str]
    ways: ClassVar[Sequence[RunOptions]] = ()
    of_all: ClassVar[bool] = False

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.kind is Kind.RANDOM and (sample.is_first or (self.of_all and sample.is_pooled))

    def goals(self, sample: Sample) -> Sequence[str]:
        return [self.goal]
