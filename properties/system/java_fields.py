"""Private fields of Java objects behind py4j, for classes without another access."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def private_fields(thing: Any, name: str) -> Iterator[Any]:
    """Yield the fields with a name that an object's class and superclasses declare, made accessible."""
    kind = thing.getClass()
    while kind is not None:
        for field in kind.getDeclaredFields():
            if field.getName() == name:
                field.setAccessible(True)
                yield field
        kind = kind.getSuperclass()
