"""Foreign-key joins on Spark: each left row refers, by a part of its value, to one right row.

The join is one query of three stages (`foreign_keys.stages`). The sender sends each left row with its subscription, so
the query reads each input once. `decoupled_foreign_key_join` runs the stages in three queries. Source: KIP-213,
"Workflow", "Original Value Hash", "Tombstones & Foreign Key Changes".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from pyspark.sql import DataFrame

from ..reference.definitions.joins import ForeignKeyJoin
from .foreign_keys.referring import referring_tables
from .foreign_keys.stages import ForeignKeyStages, foreign_key_tables
from .runtime.columns import ColumnLike
from .runtime.inputs import JoinInputLike
from .runtime.keyed import InitialState, staged


def foreign_key_join(
    left: JoinInputLike,
    right: JoinInputLike,
    *,
    foreign_key: ColumnLike | Sequence[ColumnLike],
    join: Literal["inner", "left"] = "inner",
    null_foreign_key: Literal["ignore", "keep"] = "ignore",
    protocol: Literal["kip", "answer"] = "kip",
    report_dropped: bool = False,
    state_groups: int | None = None,
    initial_state: InitialState = None,
    logic: Callable[[ForeignKeyJoin], ForeignKeyStages] | None = None,
) -> DataFrame:
    """Join each row of a table with the referenced row of another table; return the changelog by left key.

    A batch delivers all its messages, in the order of arrival of the rows that caused the messages. Delivery is thus
    immediate, and the protocol's races can't happen. Without an order of arrival, a right row comes before a left row
    with the same timestamp.

    Args:
        left: The referring table; see `inputs.table`.
        right: The referenced table.
        foreign_key: The right key that a left row refers to, such as `F.col("value.artist")`: columns of the right
            key's types. If a column is null, the row has no foreign key; a tombstone's foreign key is ignored.
        join: `inner` or `left`.
        null_foreign_key: `ignore` or `keep`; see `ForeignKeyJoin`.
        protocol: `kip` or `answer`; see `ForeignKeyJoin`. Without races the two protocols differ only in redundant
            tombstones.
        report_dropped: Whether the changelog also contains dropped rows; a dropped right row has no left key.
        state_groups: The number of groups of keys in each stage; see `keyed`. The state is as large as both tables, and
            stores each left row's foreign key twice more. The subscriptions to one foreign key are read and written
            together.
        initial_state: An initial state for each stage; see `keyed`.
        logic: Makes the logic of each stage, by default `foreign_key_stages`; mutation testing passes logic with a bug.

    Returns:
        The columns of `keyed`'s changelog, by left key and without windows: `value struct<left, right>` is null in a
        tombstone. A streaming result is in append mode.

    Raises:
        BadInput: A column is missing or of the wrong type, the foreign key and the right key have different types, or
            the join or an option is unknown.

    Source: KIP-213.
    """
    tables = foreign_key_tables(
        referring_tables(left, right, foreign_key),
        ForeignKeyJoin("foreign_key", join, null_foreign_key, protocol),
        report_dropped=report_dropped,
        state_groups=state_groups,
        logic=logic,
    )
    stages = [tables.sender(), tables.right([tables.rights]), tables.receiver([])]
    return staged(stages, value_type=tables.result_type, initial_state=initial_state, **tables.settings)
