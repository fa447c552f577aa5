"""How the table-table join is asked: values travel as JSON text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...reference.joins import TableTableJoin
from ...spark_impl.table_table_join import table_table_join
from .common import KEY, ORDER, TIMESTAMP, VALUE, Binding, as_json, on, pair_from_json

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def _build(join: TableTableJoin, frame: DataFrame, logic: Any, state_groups: int | None) -> DataFrame:
    return table_table_join(
        on(frame, "left"),
        on(frame, "right"),
        key=KEY,
        timestamp=TIMESTAMP,
        value=VALUE,
        order=ORDER,
        join=join.join,
        report_dropped=True,
        state_groups=state_groups,
        logic=logic,
    )


BINDING = Binding(lambda join, records: [as_json()], _build, lambda join, value: pair_from_json(value))
