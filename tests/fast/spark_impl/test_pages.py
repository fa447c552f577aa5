"""The packed state of a group: what is put is read again, and a batch opens only the pages that it concerns."""

from __future__ import annotations

import random

import msgspec
import pytest
from streamproof.spark_impl.runtime.codec import encode
from streamproof.spark_impl.runtime.pages import KEYS_OF_PAGE, Pages, Stored, unpacked


def stored(value: object, due: int | None = None) -> Stored:
    return Stored(msgspec.Raw(encode([value])), 0, due)


def read(packed: bytes | None) -> dict[bytes, tuple[bytes, int, int | None]]:
    return {} if packed is None else {key: (bytes(one.fields), one.emitted, one.due) for key, one in unpacked(packed)}


@pytest.mark.parametrize("seed", range(20))
def test_what_is_put_and_removed_is_what_a_dict_holds(seed: int) -> None:
    drawn = random.Random(seed)
    known: dict[bytes, tuple[bytes, int, int | None]] = {}
    packed: bytes | None = None
    for _ in range(40):
        pages = Pages(packed)
        grows = drawn.random() < 0.6
        for _ in range(drawn.choice((0, 1, 5, 100))):
            key = encode((drawn.randrange(400),))
            page = pages.page_of(key)
            assert (key in page) == (key in known)
            if grows:
                value, due = drawn.randrange(10**6), drawn.choice((None, drawn.randrange(100)))
                page[key] = stored(value, due)
                known[key] = (encode([value]), 0, due)
            else:
                page.pop(key, None)
                known.pop(key, None)
        found = pages.packed()
        packed = None if found is None else found[0]
        assert read(packed) == known
        dues = [due for _, _, due in known.values() if due is not None]
        assert (None if found is None else found[1]) == min(dues, default=None)


def test_the_keys_that_are_due_are_found_and_no_other_page_is_opened() -> None:
    pages = Pages(None)
    for number in range(1_000):
        key = encode((number,))
        pages.page_of(key)[key] = stored(number, 5 if number in (3, 500) else 50 + number)
    found = pages.packed()
    assert found is not None
    again = Pages(found[0])
    assert sorted(key for key, _ in again.due(5)) == sorted(encode((number,)) for number in (3, 500))
    assert len(again.opened) == 2
    assert len(again.closed) >= 1_000 / KEYS_OF_PAGE


def test_a_page_that_is_not_opened_is_stored_as_it_was() -> None:
    pages = Pages(None)
    for number in range(500):
        key = encode((number,))
        pages.page_of(key)[key] = stored(number)
    found = pages.packed()
    assert found is not None
    before = [page.keys for page in Pages(found[0]).closed]
    again = Pages(found[0])
    again.page_of(encode((7,)))[encode((7,))] = stored("other")
    changed = again.packed()
    assert changed is not None
    after = [page.keys for page in Pages(changed[0]).closed]
    assert sum(one != other for one, other in zip(before, after, strict=True)) == 1


def test_pages_grow_with_the_keys_and_shrink_again() -> None:
    packed, sizes = None, []
    for keep in (1, 100, 3_000, 100, 1):
        pages = Pages(packed)
        for number in range(3_000):
            key = encode((number,))
            page = pages.page_of(key)
            if number < keep:
                page[key] = stored(number)
            else:
                page.pop(key, None)
        found = pages.packed()
        assert found is not None
        packed = found[0]
        sizes.append(len(Pages(packed).closed))
        assert keep <= KEYS_OF_PAGE * sizes[-1]
    assert sizes[0] == sizes[-1] == 1
    assert sizes[2] > sizes[1] > 1
    assert sizes[3] < sizes[2]


def test_a_group_without_keys_has_no_state() -> None:
    pages = Pages(None)
    assert pages.due(100) == []
    assert pages.packed() is None


def test_a_state_that_compresses_well_is_read_again() -> None:
    pages, one = Pages(None), stored("y" * 2**22)
    pages.page_of(b"a")[b"a"] = one
    found = pages.packed()
    assert found is not None
    assert len(found[0]) < 2**15
    assert read(found[0]) == {b"a": (bytes(one.fields), 0, None)}


def test_what_is_no_state_is_refused() -> None:
    for wrong in (b"no state", b"no state at all", bytes(8)):
        with pytest.raises(ValueError, match="isn't the state of a group"):
            list(unpacked(wrong))
