"""The packed state of a group of keys, split into pages: a batch decodes only the pages of the keys that it processes.

A page that isn't decoded costs nothing, so a batch's cost depends on the batch's keys, not on the state's size.
"""

from __future__ import annotations

from collections.abc import Iterator
from zlib import crc32

import msgspec
import pyarrow as pa

KEYS_OF_PAGE = 16
"""The maximum of the average number of keys per page."""


class Stored(msgspec.Struct, array_like=True, gc=False):
    """The state of a key.

    Attributes:
        fields: The fields that the key's logic packed, as MessagePack.
        emitted: The clock (ms) up to which closed results have been emitted.
        due: The next time (ms) at which the key must be processed without a row, if any.
    """

    fields: msgspec.Raw
    emitted: int
    due: int | None


class Page(msgspec.Struct, array_like=True, gc=False):
    """An encoded page: the earliest due time of the page's keys (ms), and the keys as MessagePack."""

    due: int | None
    keys: bytes


class _Pages(msgspec.Struct, array_like=True, gc=False):
    count: int
    pages: list[Page]


Keys = dict[bytes, Stored]
_encode = msgspec.msgpack.Encoder().encode
_PAGES = msgspec.msgpack.Decoder(_Pages)
_KEYS = msgspec.msgpack.Decoder(Keys)
_NO_KEYS = _encode({})
_CODEC = pa.Codec("lz4")
_SIZE_BYTES, _MOST_TIMES = 8, 256
"""The length (bytes) of the uncompressed size before a compressed state; and the highest compression ratio of LZ4."""


class Pages:
    """The keys of a group of keys; a page of keys is decoded when one of these keys is read or due.

    Args:
        packed: The group's stored state, if any.
        keys_of_page: The maximum of the average number of keys per page.
    """

    def __init__(self, packed: bytes | None, keys_of_page: int = KEYS_OF_PAGE) -> None:
        found = _Pages(0, [Page(None, _NO_KEYS)]) if packed is None else _decompressed(packed)
        self.count, self.closed, self.keys_of_page = found.count, found.pages, keys_of_page
        self.opened: dict[int, Keys] = {}

    def page_of(self, key: bytes) -> Keys:
        """Return the page that contains a key's state, decoded."""
        # Choose the page by the hash's higher bits, because a group's keys may share the low 12 bits.
        return self.open((crc32(key) >> 12) % len(self.closed))

    def open(self, number: int) -> Keys:
        """Return a page of the group's state, decoded."""
        page = self.opened.get(number)
        if page is None:
            page = self.opened[number] = _KEYS.decode(self.closed[number].keys)
            self.count -= len(page)
        return page

    def due(self, clock: int) -> list[tuple[bytes, Keys]]:
        """List the keys that are due at a clock time (ms), each with the page that contains the key."""
        for number, page in enumerate(self.closed):
            if page.due is not None and page.due <= clock:
                self.open(number)
        return [
            (key, page)
            for page in self.opened.values()
            for key, stored in page.items()
            if stored.due is not None and stored.due <= clock
        ]

    def packed(self) -> tuple[bytes, int | None] | None:
        """Pack the group again, with its earliest due time (ms); None if no key is left."""
        count = self.count + sum(map(len, self.opened.values()))
        if not count:
            return None
        if not count <= self.keys_of_page * len(self.closed) <= 8 * count + self.keys_of_page:
            self.spread(max(1, 2 * count // self.keys_of_page))
        for number, page in self.opened.items():
            dues = [stored.due for stored in page.values() if stored.due is not None]
            self.closed[number] = Page(min(dues, default=None), _encode(page))
        first = min((page.due for page in self.closed if page.due is not None), default=None)
        return _compressed(_Pages(count, self.closed)), first

    def spread(self, pages: int) -> None:
        """Distribute all keys of the group over a number of pages."""
        keys = [found for number in range(len(self.closed)) for found in self.open(number).items()]
        self.closed, self.opened = [Page(None, _NO_KEYS)] * pages, {number: {} for number in range(pages)}
        for key, stored in keys:
            self.page_of(key)[key] = stored


def unpacked(packed: bytes) -> Iterator[tuple[bytes, Stored]]:
    """List the keys of a packed group, each with its stored state.

    Raises:
        ValueError: The binary isn't a state.
    """
    for page in _decompressed(packed).pages:
        yield from _KEYS.decode(page.keys).items()


def _compressed(pages: _Pages) -> bytes:
    """Compress a group's state with LZ4, which is ten times faster than Spark's transfer of the same bytes."""
    packed = _encode(pages)
    found: bytes = _CODEC.compress(packed, asbytes=True)
    return len(packed).to_bytes(_SIZE_BYTES) + found


def _decompressed(packed: bytes) -> _Pages:
    size = int.from_bytes(packed[:_SIZE_BYTES])
    try:
        if size > _MOST_TIMES * len(packed):
            raise OSError(f"it would have {size:,} bytes")
        return _PAGES.decode(_CODEC.decompress(packed[_SIZE_BYTES:], size, asbytes=True))
    except (OSError, msgspec.DecodeError) as error:
        raise ValueError(f"the binary isn't the state of a group of keys: {error}") from None
