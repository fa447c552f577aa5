"""An Iceberg table as a store: in a catalog in an SQLite file, or in a folder catalog (Spark's `hadoop`)."""

from __future__ import annotations

import contextlib
import re
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .....reference.core.errors import BadInput, import_extra
from ....generators.columns.forms.rows import Row
from ....system.visible import first_line
from ..rows import rows_of
from .store import SinkStore

_VERSION = re.compile(r"v(\d+)(\.gz)?\.metadata\.json")


@dataclass(frozen=True)
class IcebergTable(SinkStore):
    """An Iceberg table in a catalog whose warehouse is the target.

    Attributes:
        table: The table's name, with or without its namespace.
    """

    table: str = ""
    name = "Sink.iceberg"

    def __post_init__(self) -> None:
        super().__post_init__()
        import_extra("pyiceberg", "iceberg", self.name)

    @contextlib.contextmanager
    def at(self, folder: Path) -> Iterator[str]:
        """Create the warehouse's folder, because no catalog creates it, and yield the folder."""
        (folder / self.file).mkdir(exist_ok=True)
        yield str(folder / self.file)

    def rows(self, target: str) -> list[Row]:
        from pyiceberg.exceptions import NoSuchTableError, ValidationError
        from pyiceberg.table import StaticTable

        warehouse = Path(target)
        tables = {**dict(_of_catalogs(warehouse)), **dict(_of_folders(warehouse))}
        if not tables:
            return []
        found = [name for name in tables if name == self.table or name.rpartition(".")[2] == self.table]
        if len(found) != 1:
            there = "there is no" if not found else "there are several namespaces with a"
            raise BadInput(
                f"{self.name}: {there} table {self.table!r}; the target has {', '.join(map(repr, tables))}: name one "
                "of them with table=, or let start create the table in its target"
            )
        try:
            return [*rows_of(StaticTable.from_metadata(tables[found[0]]).scan().to_arrow())]
        except (NoSuchTableError, ValidationError, ValueError, OSError) as error:
            raise BadInput(f"{self.name}: pyiceberg can't read the table: {first_line(error)}") from None


def _of_catalogs(warehouse: Path) -> Iterator[tuple[str, str]]:
    """Yield the tables in the SQLite files of a warehouse, each with its committed metadata file."""
    for file in sorted(warehouse.glob("*.*")):
        if file.is_file() and file.read_bytes()[:15] == b"SQLite format 3":
            with contextlib.closing(sqlite3.connect(file)) as catalog, contextlib.suppress(sqlite3.OperationalError):
                yield from catalog.execute(
                    "SELECT table_namespace || '.' || table_name, metadata_location FROM iceberg_tables"
                )


def _of_folders(warehouse: Path) -> Iterator[tuple[str, str]]:
    """Yield the tables of a folder catalog, each with its newest metadata, which is the committed metadata."""
    newest: dict[Path, tuple[int, Path]] = {}
    for file in warehouse.rglob("metadata/v*.metadata.json"):
        if version := _VERSION.fullmatch(file.name):
            table = file.parent.parent
            newest[table] = max(newest.get(table, (-1, file)), (int(version[1]), file))
    for table, (_, file) in sorted(newest.items()):
        yield ".".join(table.relative_to(warehouse).parts), str(file)
