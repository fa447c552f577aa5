"""The target of a sink: each query has a separate target, which the check reads at the end."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from .....reference.core.errors import BadInput
from ....generators.columns.forms.rows import Row
from ....generators.columns.schemas import arrow_schema, needs_spark
from .types import with_types


@dataclass(frozen=True)
class SinkStore(ABC):
    """A kind of store, with the types and names of its columns.

    Attributes:
        schema: The types of columns that the store keeps as other types (None: no such columns).
        without: The columns that don't belong to the result.
        name: The sink's name in messages, such as `Sink.json`.
        file: The name of the target in the query's folder.
    """

    schema: Any = None
    without: Sequence[str] = ()
    name: ClassVar[str]
    file: ClassVar[str] = "result"

    def __post_init__(self) -> None:
        if self.schema is not None and not needs_spark(self.schema):
            self._types()

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[str]:
        """Create the target of a query, yield the target, and remove its parts outside the query's folder.

        Raises:
            BadInput: The target can't be created.
        """
        yield str(folder / self.file)

    @abstractmethod
    def rows(self, target: str) -> list[Row]:
        """Return the rows in the target, with all columns; none if nothing was written.

        Raises:
            BadInput: The rows can't be read, or other tables than the named table contain rows.
        """

    def read(self, target: str) -> list[Row]:
        """Return the rows of the result.

        Raises:
            BadInput: The rows can't be read, a column is missing, or a value has another type than its column.
        """
        rows = self.rows(target)
        if not rows:
            return []
        types = None if self.schema is None else self._types()
        for column in [*self.without, *(types.names if types is not None else ())]:
            if column not in rows[0] and not (column not in self.without and self.leaves_nulls_out):
                raise BadInput(
                    f"{self.name}: the target has no column {column!r}, but has {', '.join(map(repr, rows[0]))}: name "
                    "only its columns in schema= and without="
                )
        if types is not None:
            rows = with_types(rows, types, self.name)
        return [{name: value for name, value in row.items() if name not in self.without} for row in rows]

    @property
    def leaves_nulls_out(self) -> bool:
        """Return whether a column may be missing from all rows because its values are null."""
        return False

    def _types(self) -> Any:
        try:
            return arrow_schema(self.schema)
        except BadInput as error:
            raise BadInput(f"{self.name}: {error.message}") from None
