"""A key space gives each history its own keys, so that many histories of a job can share a query.

A key column contains the number of the history: text as a prefix (`00042|a`), integers as a separate range.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ....reference.core.errors import BadInput
from ...registration.key_space import prefixed_key
from .forms.rows import Row
from .inputs import ResolvedInput
from .model import Source

MOST = 99_999
"""The largest number of histories in a query; history numbers start at 1, so the number 0 marks an unpacked key."""
STRIDES: Sequence[tuple[pa.DataType, int]] = ((pa.int64(), 1 << 40), (pa.int32(), 1 << 14))
"""The size of a history's range of integers, by type; half of the integers are negative."""
ALONE = "each history then runs in a separate query"


@dataclass(frozen=True)
class KeySpace:
    """The key column that contains a history's number, and the encoding of the number.

    Attributes:
        columns: The column that contains the history's number, by input.
        stride: The size of a history's range of integers; 0 for text, which has a prefix.
    """

    columns: Mapping[str, str]
    stride: int

    def packed(self, number: int, value: Any) -> Any:
        """Return a key's value in the key space of a history.

        Raises:
            BadInput: The value is null, or an integer outside a history's range.
        """
        if value is None:
            raise BadInput(
                f"a null key doesn't show its history in a shared query: give the keys with keys=[…]; {ALONE}"
            )
        if not self.stride:
            return prefixed_key(number, value)
        if not -self.stride // 2 <= value < self.stride // 2:
            raise BadInput(
                f"the key {value} is outside of {-self.stride // 2} to {self.stride // 2 - 1}, a history's range in "
                f"a shared query: use smaller keys, or give them with keys=[…]; {ALONE}"
            )
        return number * self.stride + value

    def unpacked(self, value: Any) -> tuple[int, Any] | None:
        """Return a history's number and its own key; None if the value isn't a packed key.

        A record's key, which is text as bytes, is decoded first.
        """
        if isinstance(value, bytes):
            value = value.decode(errors="replace")
        if not self.stride:
            if isinstance(value, str) and len(value) > 5 and value[5] == "|" and value[:5].isdecimal():
                return int(value[:5]), value[6:]
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        number, rest = divmod(value + self.stride // 2, self.stride)
        return (number, rest - self.stride // 2) if 0 < number <= MOST else None

    def plain(self, row: Row) -> Row:
        """Return a row with the history's own keys instead of packed keys (keys that contain the history's number)."""
        carriers = {*self.columns.values()}
        unpacked = {name: self.unpacked(value) for name, value in row.items() if name in carriers}
        return {**row, **{name: both[1] for name, both in unpacked.items() if both is not None}}


def why_alone(inputs: Sequence[ResolvedInput]) -> str | None:
    """Return the reason why a job's histories can't share a query; None if the histories can share a query."""
    for given in inputs:
        if given.keys:
            return f"input {given.name} has keys that the test gives"
    try:
        key_space([given.source for given in inputs])
    except BadInput as error:
        return error.message
    return None


def key_space(sources: Sequence[Source]) -> KeySpace:
    """Choose the key column of a job's inputs that contains the history's number.

    Text is preferred to bigint, and bigint to int. The column has the same name, or else the same position in the key,
    in all inputs, so that rows still match in joins.

    Raises:
        BadInput: No key column can carry the number in all inputs.
    """
    for source in sources:
        if not source.key:
            raise BadInput(f"input {source.name} has no key; {ALONE}")
        if all(_stride(source, column) is None for column in source.key):
            kinds = ", ".join(f"{column} {source.schema.field(column).type}" for column in source.key)
            raise BadInput(
                f"input {source.name} has no key column of text, int or bigint that could carry a history's number: "
                f"{kinds}; {ALONE}"
            )
    names = [column for column in sources[0].key if all(column in source.key for source in sources)]
    positions = range(min(len(source.key) for source in sources))
    choices = [{source.name: name for source in sources} for name in names]
    choices += [{source.name: source.key[position] for source in sources} for position in positions]
    found = []
    for columns in choices:
        strides = {_stride(source, columns[source.name]) for source in sources}
        if None not in strides and (0 not in strides or len(strides) == 1):
            found.append(KeySpace(columns, min(stride for stride in strides if stride is not None)))
    if not found:
        keys = "; ".join(f"{source.name} {', '.join(source.key)}" for source in sources)
        raise BadInput(
            f"the inputs have no column of the key in common, all text or all integers, that could carry a history's "
            f"number: {keys}; {ALONE}"
        )
    order = [0, *(stride for _, stride in STRIDES)]
    return min(found, key=lambda space: order.index(space.stride))


def identity_column(given: ResolvedInput, space: KeySpace) -> str | None:
    """Return the text column of an input's identity that gets the prefix of a history, like the key.

    Without the prefix, rows of two histories could be copies of one event although they have different keys. Return
    None if the identity contains the key column, or no text column.
    """
    if space.stride or space.columns[given.name] in given.identity:
        return None
    return next((column for column in given.identity if _stride(given.source, column) == 0), None)


def shared_identities(inputs: Sequence[ResolvedInput]) -> list[str]:
    """Return the identity columns whose values may be equal in different histories of a shared query."""
    if not any(given.identity for given in inputs):
        return []
    space = key_space([given.source for given in inputs])
    return [
        column
        for given in inputs
        if space.columns[given.name] not in given.identity and identity_column(given, space) is None
        for column in given.identity
    ]


def key_family(source: Source, column: str, sources: Iterable[Source]) -> str:
    """Return a name for the key columns that get the same values: by type, and by column name or position."""
    kind = source.schema.field(column).type
    everywhere = all(column in other.key for other in sources)
    name = column if everywhere else source.key.index(column)
    return f"{name} {'integer' if pa.types.is_integer(kind) else kind}"


def _stride(source: Source, column: str) -> int | None:
    kind = source.schema.field(column).type
    if pa.types.is_string(kind):
        return 0
    return next((stride for integer, stride in STRIDES if kind == integer), None)
