"""What the laws share that run a part of the first sample again, in another way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from ..base import Law
from ..runs import Kind, Sample


class RerunLaw(Law):
    """A law that is asked of the operator's first profile, in queries of its own.

    Attributes:
        goal: What must show in a run again before the law has shown anything.
    """

    goal: ClassVar[str]

    def is_asked_of(self, sample: Sample) -> bool:
        return sample.kind is Kind.RANDOM and sample.is_first

    def goals(self, sample: Sample) -> Sequence[str]:
        return [self.goal]
