"""An event time within a struct, such as `meta.at`: a column in histories, and a struct member in the job's input."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from .....reference.core.errors import BadInput
from .rows import Row


@dataclass(frozen=True)
class TimePlace:
    """The path of the event time within a struct.

    Attributes:
        path: The names of the enclosing columns, and the member's own name.
        columns: The declared columns.
        name: The name of the event-time column in histories.
    """

    path: tuple[str, ...]
    columns: pa.Schema
    name: str

    def nested(self, row: Row) -> Row:
        """Return a row with its event time in the struct."""
        time, first = row[self.name], self.columns.field(self.path[0])
        rest = {name: value for name, value in row.items() if name != self.name}
        return {**rest, first.name: _with(first.type, rest.get(first.name), self.path[1:], time)}

    def flat(self, row: Row) -> Row:
        """Return a row with its event time in the histories' column."""
        value: Any = row
        for name in self.path:
            value = None if value is None else value[name]
        kept = {name: each for name, each in row.items() if name != self.path[0]}
        rest = _without(row[self.path[0]], self.path[1:])
        return {**kept, **({self.path[0]: rest} if rest else {}), self.name: value}


def _with(kind: pa.DataType, value: Mapping[str, Any] | None, path: tuple[str, ...], time: Any) -> Any:
    if not path:
        return time
    found = {field.name: (value or {}).get(field.name) for field in kind}
    return {**found, path[0]: _with(kind.field(path[0]).type, found[path[0]], path[1:], time)}


def _without(value: Mapping[str, Any] | None, path: tuple[str, ...]) -> Mapping[str, Any] | None:
    if value is None or not path:
        return None
    rest = _without(value[path[0]], path[1:])
    kept = {name: each for name, each in value.items() if name != path[0]}
    return kept if rest is None else {**kept, path[0]: rest}


def place_of(time: str, columns: pa.Schema) -> tuple[TimePlace, pa.Schema]:
    """Return the path of an event time in a struct, and the columns of histories, including the event time.

    Args:
        time: The dotted path of the event time.
        columns: The declared columns.

    Raises:
        BadInput: The member doesn't exist, or is in a list or a map.
    """
    path, kind = tuple(time.split(".")), pa.struct([*columns])
    for name in path:
        names = [field.name for field in kind] if pa.types.is_struct(kind) else []
        if name not in names:
            raise BadInput(
                f"there is no column {time!r}, named as the event time: {name!r} isn't among {', '.join(names) or kind}"
            )
        kind = kind.field(name).type
    others = [field.name for field in columns if field.name != path[0]]
    own = path[-1] if path[-1] not in (*others, path[0]) else time
    rest = _less(columns.field(path[0]), path[1:])
    kept = [rest if field.name == path[0] else field for field in columns]
    return TimePlace(path, columns, own), pa.schema(
        [*(field for field in kept if field is not None), pa.field(own, kind)]
    )


def _less(field: pa.Field, path: tuple[str, ...]) -> pa.Field | None:
    """Return a struct column without one of its members; None if the column has no other member."""
    if not path:
        return None
    members = [_less(one, path[1:]) if one.name == path[0] else one for one in field.type]
    left = [one for one in members if one is not None]
    return field.with_type(pa.struct(left)) if left else None
