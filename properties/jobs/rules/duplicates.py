"""The rules of deduplication, with a watermark or without."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....reference.core.errors import BadInput
from ....reference.spark import drop_duplicates as duplicates
from ....reference.spark.durations import Duration
from ...system.arguments import checked
from ...witnesses.run_options import Mode
from ..model import Source
from .declared import check_semantics, column_names, delays_of, look_for, named, only_input
from .rule import Rule, Stage, stepping


@dataclass(frozen=True)
class DropDuplicates(Rule):
    """A deduplication.

    Attributes:
        columns: The columns in which duplicates are equal; None for all.
        within_watermark: Whether a duplicate may come again once the watermark has passed it by the delay.
        input: The name of the input; None for the only one.
    """

    columns: tuple[str, ...] | None
    within_watermark: bool
    input: str | None

    @property
    def distances_us(self) -> Sequence[int]:
        """The delay, in microseconds."""
        return sorted({*self.delays_us.values()} - {0})

    @property
    def allows_fewer_columns(self) -> bool:
        """Whether a job may select some of the columns: those in which duplicates differ are to be left out."""
        return True

    def stages(self, sources: Sequence[Source], mode: Mode, *, watermark: bool) -> list[Stage]:
        """Return the operator."""
        source = only_input(self.name, sources, self.input)
        columns = tuple(source.schema.names) if self.columns is None else self.columns
        look_for(self.name, source, columns)
        delay_us = self.delay_us_of(source.name)
        what = duplicates.DropDuplicates(columns, source.time, delay_us, self.within_watermark)
        start = stepping(lambda: duplicates.State(what).batch, source.name)
        return [Stage(start, what.asks_for_batch_without_data, frozenset({source.time}), source)]


@checked
def drop_duplicates(
    columns: str | Sequence[str] | None = None,
    delay: Duration | None = None,
    within_watermark: bool = False,
    *,
    input: str | None = None,
    semantics: str = "spark",
) -> DropDuplicates:
    """Expect `dropDuplicates(columns)`, or `dropDuplicatesWithinWatermark(columns)`: rows of the input.

    Of several duplicates in one batch Spark emits any, and this rule the first: let the job select only columns in
    which they are equal, where that matters. Those that it doesn't select aren't compared.

    Args:
        columns: The columns in which duplicates are equal; all by default.
        delay: The delay of the watermark, where there is one: then late rows are dropped. What was seen is forgotten
            only where the column of the event time is among the columns, or within the watermark.
        within_watermark: Whether a duplicate may come again once the watermark has passed the first by the delay.
        input: The input's name, where there are several.
        semantics: Whose rules: `spark`.

    Raises:
        BadInput: The delay can't be read, or is missing.
    """
    check_semantics("drop_duplicates", semantics)
    if within_watermark and delay is None:
        raise BadInput('drop_duplicates: within_watermark needs the delay of the watermark: give it delay="10 minutes"')
    given = None if columns is None else column_names("drop_duplicates", "columns", columns)
    return DropDuplicates(
        named(
            "drop_duplicates", columns=given and "+".join(given), delay=delay, within_watermark=within_watermark or None
        ),
        delays_of("drop_duplicates", delay),
        given,
        within_watermark,
        input,
    )
