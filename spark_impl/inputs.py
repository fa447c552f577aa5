"""The inputs of joins: a DataFrame, and its columns for key, event time, value and order of arrival."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame

from .runtime.columns import ColumnLike
from .runtime.inputs import JoinInput


def table(
    frame: DataFrame,
    *,
    key: ColumnLike | Sequence[ColumnLike] = "key",
    timestamp: ColumnLike = "timestamp",
    value: ColumnLike | None = None,
    order: ColumnLike | None = None,
) -> JoinInput:
    """Name the columns of a DataFrame that a join reads; a bare DataFrame means `table(frame)`.

    The join validates the columns, and its error messages name the side.

    Args:
        frame: The records of a stream, or the changes of a table, streaming or batch. In a table, the last arrival of a
            key is its row, and a null value deletes the row. In a stream, a record without a value is dropped.
        key: One or several columns, of the same types on both sides. A row with a null key column is dropped.
        timestamp: Event time: a timestamp column (cut to ms), or a bigint column of ms since 1970. A row without a
            timestamp is dropped.
        value: The column of a row's value; a struct can combine several columns. The default is `value`; a
            `windowed_table` that counts needs no value.
        order: The order of arrival across both inputs, such as an offset, or `place` of a changelog (see `keyed`). By
            default a batch is in timestamp order.
    """
    return JoinInput(frame, key, timestamp, value, order)


stream = table
"""The same as `table`, for an input that is a stream."""
