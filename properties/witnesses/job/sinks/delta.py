"""A Delta table as a store."""

from __future__ import annotations

from dataclasses import dataclass

from .....reference.core.errors import BadInput, import_extra
from ....generators.columns.forms.rows import Row
from ....system.visible import first_line
from ..rows import rows_of
from .store import SinkStore


@dataclass(frozen=True)
class DeltaTable(SinkStore):
    """A Delta table in a folder."""

    name = "Sink.delta"

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("deltalake", "delta", self.name)

    def rows(self, target: str) -> list[Row]:
        import deltalake

        if not deltalake.DeltaTable.is_deltatable(target):
            return []
        try:
            return [*rows_of(deltalake.DeltaTable(target).to_pyarrow_table())]
        except deltalake.exceptions.DeltaError as error:
            raise BadInput(f"{self.name}: deltalake can't read the table: {first_line(error)}") from None
