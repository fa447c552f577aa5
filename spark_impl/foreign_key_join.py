"""Foreign-key joins on Spark: each left row refers, by a part of its value, to one right row.

One query of three stages (`foreign_key_stages`). A left row is sent along with its subscription, so that each input is
read once, even if it is another join's changelog. In three queries: `decoupled_foreign_key_join`.
Source: KIP-213, "Workflow", "Original Value Hash", "Tombstones & Foreign Key Changes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pyspark.sql import DataFrame

from ..reference.definitions.joins import ForeignKeyJoin
from .foreign_key_stages import ForeignKeyStages, foreign_key_tables
from .runtime.columns import ColumnLike
from .runtime.keyed import InitialState, staged


def foreign_key_join(
    left: DataFrame,
    right: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike],
    timestamp: ColumnLike,
    value: ColumnLike,
    foreign_key: ColumnLike | Sequence[ColumnLike],
    order: ColumnLike | None = None,
    right_key: ColumnLike | Sequence[ColumnLike] | None = None,
    right_timestamp: ColumnLike | None = None,
    right_value: ColumnLike | None = None,
    right_order: ColumnLike | None = None,
    join: Literal["inner", "left"] = "inner",
    null_foreign_key: Literal["ignore", "keep"] = "ignore",
    protocol: Literal["kip", "answer"] = "kip",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[ForeignKeyJoin], ForeignKeyStages] | None = None,
) -> DataFrame:
    """Join each row of a table with the row of another that it refers to, and return the changelog by left key.

    All messages of a batch are delivered in it, in the order in which the rows that set them off arrived: the changelog
    is that of immediate delivery, and none of the protocol's races can happen.

    Args:
        left: The changes of the referring table, streaming or batch: a row whose value is null deletes its key.
        right: The changes of the table referred to.
        key: The left key: one or several columns. A row in which one of them is null is dropped.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. It becomes the
            changes' timestamp: of two rows of a key the one that arrives last counts.
        value: The column that holds a row's value; several can be put into a struct.
        foreign_key: What a left row refers to, such as `F.col("value.artist")`: one or several columns, of the types of
            the right key. Where one of them is null the row has no foreign key; a tombstone's plays no part.
        order: The order of arrival across both inputs, such as an offset; by default a batch is in timestamp order, of
            equal ones the right row first.
        right_key: The right key, where its name differs from the left one's; likewise the other `right_…`.
        right_timestamp: Its event time.
        right_value: Its value.
        right_order: Its order of arrival.
        join: `inner` or `left`.
        null_foreign_key: `ignore` or `keep`; see `ForeignKeyJoin`.
        protocol: `kip` or `answer`; see `ForeignKeyJoin`. Without races they differ only in redundant tombstones.
        report_dropped: Whether rows that were dropped are emitted too; a right row is emitted without a left key.
        state_groups: As in `keyed`, for each stage. The state is as large as both tables, and each left row's foreign
            key, stored twice more; the subscriptions to one foreign key are read and written together.
        initial_state: As in `keyed`, for each stage.
        logic: Makes the logic of each stage, of a declaration; `foreign_key_stages` by default, another for mutants.

    Returns:
        As `keyed`, without windows, under the left key: `value struct<left, right>` is null in a tombstone. A streaming
        result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the foreign key is of another type than the right key, or
            there is no such join or option.

    Source: KIP-213.
    """
    declared = ForeignKeyJoin("foreign_key", join, null_foreign_key, protocol)
    tables = foreign_key_tables(
        left,
        right,
        key=key,
        timestamp=timestamp,
        value=value,
        order=order,
        foreign_key=foreign_key,
        right_key=right_key,
        right_timestamp=right_timestamp,
        right_value=right_value,
        right_order=right_order,
        join=declared,
        report_dropped=report_dropped,
        state_groups=state_groups,
        logic=logic,
    )
    stages = [tables.sender(), tables.right([tables.rights]), tables.receiver([])]
    return staged(stages, value_type=tables.result_type, initial_state=initial_state, **tables.settings)
