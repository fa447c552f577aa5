"""The judge of an upgrade: compares the rows that the upgraded job emits after the earlier version's last batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...generators.columns.model import Expected
from ...witnesses.job.witness import EmittedBatches
from ..variation import Variation
from .comparison import table_of
from .judging import Judge


@dataclass
class UpgradeJudge(Judge):
    """Compares the output of a job that continues from its earlier version's checkpoint, from the next batch on.

    In append mode, the upgraded job may emit a row in another batch than a run from the start, if both versions
    together emit the rows of the run from the start. For example, if the new version's watermark delay is shorter, a
    run from the start closes a window before the upgrade.

    Attributes:
        from_start: Whether the oracle returns the output of a run from the start, so that rows before the upgrade are
            compared too.
        moved: The number of comparisons in which the upgraded job emits rows in another batch than a run from the
            start.
    """

    from_start: bool = True
    moved: int = 0

    def side_by_side(
        self, expected: Sequence[Expected], emitted: Sequence[EmittedBatches], variation: Variation
    ) -> tuple[list[Expected], list[EmittedBatches]]:
        """Return the expected and the emitted rows after the upgrade; for a sink, or an oracle without batches, the
        rows at the end.
        """
        in_form, emitted = super().side_by_side(expected, emitted, variation)
        pairs = [self._after(*pair, variation) for pair in zip(in_form, emitted, strict=True)]
        return [one for one, _ in pairs], [rows for _, rows in pairs]

    def _after(
        self, expected: Expected, emitted: EmittedBatches, variation: Variation
    ) -> tuple[Expected, EmittedBatches]:
        if expected.comparing == "cuts":
            return Expected("end", expected.rows[-1:]), emitted
        if self.is_sink or expected.comparing == "end" or not variation.run.stop_after:
            return expected, emitted
        count = min(variation.run.stop_after[0] + 1, len(expected.rows))
        after = replace(expected, rows=[*[[]] * count, *expected.rows[count:]])
        emitted_after = [*[[]] * count, *emitted[count:]]
        if variation.run.mode == "append" and self.from_start:
            table = Expected("end", table_of(expected.rows, "append", None)[-1:])
            if self.difference(after, emitted_after, variation) and not self.difference(table, emitted, variation):
                self.moved += 1
                return after, [[*rows] for rows in after.rows]
        return after, emitted_after
