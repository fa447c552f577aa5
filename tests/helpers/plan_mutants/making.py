"""The form of a planted bug: a method of the reference of plans that is replaced for a while."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from streamproof.reference.spark.expressions import Expression
from streamproof.reference.spark.plans import Node

Method: TypeAlias = Callable[..., Any]


class Mutant(NamedTuple):
    """A reference with one method replaced.

    Attributes:
        says: The bug, in a sentence.
        owner: The class of the method.
        method: The name of the method or property.
        wrong: Takes the right method, or the getter of a property; returns the method in its place.
        at: Says whether the bug can be seen at a node of a plan; None: at all that the class is for.
    """

    says: str
    owner: type
    method: str
    wrong: Callable[[Method], Method]
    at: Callable[[Node], bool] | None = None

    @contextmanager
    def planted(self) -> Iterator[None]:
        """Replace the method for a while."""
        own = self.method in vars(self.owner)
        right: Any = vars(self.owner).get(self.method) or getattr(self.owner, self.method)
        is_property = isinstance(right, property)
        wrong: Any = self.wrong(right.fget if is_property else right)
        setattr(self.owner, self.method, property(wrong) if is_property else wrong)
        try:
            yield
        finally:
            setattr(self.owner, self.method, right) if own else delattr(self.owner, self.method)


def returning(says: str, owner: type, method: str, change: Callable[[Any], Any]) -> Mutant:
    """Return a mutant whose method returns something else, made of its right result."""
    return Mutant(says, owner, method, lambda right: lambda *given: change(right(*given)))


def function(says: str, name: str, wrong: Method) -> Mutant:
    """Return a mutant with another function in expressions."""

    def method(right: Method) -> Method:
        def of(self: Expression, row: Mapping[str, Any]) -> Any:
            return wrong(*(each.of(row) for each in self.inputs)) if self.function == name else right(self, row)

        return of

    return Mutant(says, Expression, "of", method)


def shifted(says: str, owner: type, late_ms: int = 0, eviction_ms: int = 0) -> Mutant:
    """Return a mutant with other watermarks of an operator; a difference as large as the time puts them at 1970."""
    return Mutant(
        says,
        owner,
        "batch",
        lambda right: (
            lambda self, *given: right(self, *given[:-2], max(given[-2] + late_ms, 0), max(given[-1] + eviction_ms, 0))
        ),
    )


def filtered(says: str, owner: type, keeps: Callable[[Any, Any, int], bool], late: bool = True) -> Mutant:
    """Return a mutant of an operator that takes fewer rows, or by another rule of late rows than its own."""
    return Mutant(
        says,
        owner,
        "batch",
        lambda right: (
            lambda self, rows, late_ms, eviction_ms: right(
                self, [row for row in rows if keeps(self, row, late_ms)], late_ms if late else 0, eviction_ms
            )
        ),
    )


def declared(says: str, owner: type, method: str, name: str, **other: Callable[[Any], Any]) -> Mutant:
    """Return a mutant one of whose methods takes the declaration, an attribute or the object itself, for another."""

    def wrong(right: Method) -> Method:
        def called(self: Any, *given: Any) -> Any:
            own = getattr(self, name) if name else self
            changed = replace(own, **{one: change(getattr(own, one)) for one, change in other.items()})
            if not name:
                return right(changed, *given)
            setattr(self, name, changed)
            try:
                return right(self, *given)
            finally:
                setattr(self, name, own)

        return called

    return Mutant(says, owner, method, wrong)
