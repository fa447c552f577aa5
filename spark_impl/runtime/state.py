"""Read the state that an operator has stored in a checkpoint."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ...reference.core.errors import BadInput
from .codec import column_of, decoder, key_decoder, python_type, spark_type
from .pages import unpacked
from .processor import DECLARATION, PACKED, STATE


def read_state(checkpoint: str, *, operator: int = 0, batch: int | None = None) -> DataFrame:
    """Read the state that one of the twelve operators has stored in a checkpoint, one row for each key.

    Args:
        checkpoint: The folder of the query's checkpoint, on any file system that Spark knows.
        operator: The number of the stateful operator in the query, as Spark's state data source counts them: 0 is the
            last operator. Each stage of an operator in stages counts: in a foreign-key join 2 is the first stage, 0 the
            last.
        batch: The batch after which the state is read; by default the last committed batch.

    Returns:
        `key struct` (the key's columns), `state struct` (the fields that the operator stores, times in ms), `closed
        timestamp` (the time up to which the clock has closed windows of the key), `due timestamp` (the next time at
        which the key is processed without a row, or null) and `packed binary` (the stored fields, which an operator's
        `initial_state` accepts).

    Raises:
        BadInput: The checkpoint is missing, lacks the batch or the operator, or the operator isn't one of streamproof's
            twelve.
    """
    spark = SparkSession.active()
    reader = spark.read.format("statestore").option("path", checkpoint).option("operatorId", operator)
    reader = reader if batch is None else reader.option("batchId", batch)
    try:
        texts = reader.option("stateVarName", DECLARATION).load()
        declared = texts.select(F.substring_index("value.text", "\n", -1)).first()
        stored = None if declared is None else declared[0]
        groups = reader.option("stateVarName", STATE).load().select(f"value.{PACKED}")
    except (PySparkException, Py4JJavaError) as error:
        raise BadInput(
            f"checkpoint: {checkpoint} has no state of a streamproof operator under the number {operator}: "
            f"{str(error).splitlines()[0][:200]}: give the folder that was the query's checkpointLocation"
        ) from None
    if stored is None:
        raise BadInput(f"checkpoint: {checkpoint} has no committed batch yet: run the query first")
    kinds = spark_type(T.StructType.fromJson(json.loads(stored)))
    assert isinstance(kinds, T.StructType)
    schema = T.StructType(kinds.fields).add("closed", "long").add("due", "long").add("packed", "binary")
    return groups.mapInArrow(_UnpackState(schema), schema).withColumns(
        {name: F.timestamp_millis(name) for name in ("closed", "due")}
    )


@dataclass(frozen=True)
class _UnpackState:
    """Unpacks the states of groups into the columns of `schema`."""

    schema: T.StructType

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        key, state, *_ = (field.dataType for field in self.schema.fields)
        assert isinstance(key, T.StructType)
        assert isinstance(state, T.StructType)
        read_key = key_decoder([field.dataType for field in key.fields]).decode
        read_fields = decoder(*(python_type(field.dataType) for field in state.fields)).decode
        for batch in batches:
            rows = [
                (read_key(of_key), read_fields(stored.fields), stored.emitted, stored.due, bytes(stored.fields))
                for packed in batch.column(0).to_pylist()
                for of_key, stored in unpacked(packed)
            ]
            columns = zip(*rows, strict=True) if rows else [()] * len(self.schema.fields)
            arrays = [
                column_of(list(column), field.dataType)
                for column, field in zip(columns, self.schema.fields, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(arrays, names=self.schema.names)
