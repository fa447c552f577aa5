"""Functions that make a mutant in one line: the bug is in a mixin, in the definition, or in a method's result.

`logics_in` names each mutant after its variable in the module.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ....spark_impl.runtime.logic import Arrived, Key, Logic, LogicOutput

Declared = TypeVar("Declared")


def logics_in(names: Mapping[str, Any], *right: type) -> list[type]:
    """Return a module's mutated logics by their names in the module, in order.

    Args:
        names: The module's `globals()`.
        right: The operator's own logics, whose subclasses are the mutants.
    """
    logics = {name: one for name, one in names.items() if isinstance(one, type) and issubclass(one, right)}
    found = {name: logic for name, logic in logics.items() if logic not in right}
    if len(found) > len({*found.values()}):
        raise ValueError(f"{names['__name__']} contains a mutant under two names")
    for name, logic in found.items():
        # Name the class after its variable, because Spark's workers import a class by its module and name.
        logic.__module__, logic.__name__, logic.__qualname__ = names["__name__"], name, name
    return list(found.values())


def mixed(logic: type, mixin: type, sentence: str | None = None, **members: Any) -> type:
    """Return a subclass of an operator's logic with a bug from a mixin.

    Args:
        logic: The correct logic.
        mixin: The class with the bug.
        sentence: The bug, in one sentence; by default the first line of the mixin's docstring.
        members: The methods and attributes that the mixin needs.
    """
    return type(logic.__name__, (mixin, logic), {"__doc__": sentence or mixin.__doc__, **members})


def redeclaring(logic: Any, sentence: str, options: Callable[[Any], Mapping[str, Any]]) -> type:
    """Return a subclass of an operator's logic that runs with a wrong definition.

    Args:
        logic: The correct logic.
        sentence: The bug, in one sentence.
        options: A function that takes the definition, and returns the options to replace.
    """

    def init(self: Any, definition: Any) -> None:
        logic.__init__(self, redeclared(definition, **options(definition)))

    return type(logic.__name__, (logic,), {"__doc__": sentence, "__init__": init})


def redeclared(definition: Declared, **options: Any) -> Declared:
    """Return a definition with other options; skip the validation, because a mutant may need invalid options."""
    other = copy.copy(definition)
    for name, value in options.items():
        object.__setattr__(other, name, value)
    return other


def returning(logic: type, sentence: str, **bugs: Callable[[Any], Any]) -> type:
    """Return a subclass of an operator's logic in which some methods return a wrong result.

    Args:
        logic: The correct logic.
        sentence: The bug, in one sentence.
        bugs: For each method's name, a function that takes the correct result, and returns the wrong result.
    """

    def method(right: Callable[..., Any], bug: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda *arguments: bug(right(*arguments))

    wrong = {name: method(getattr(logic, name), bug) for name, bug in bugs.items()}
    return type(logic.__name__, (logic,), {"__doc__": sentence, **wrong})


class SharingState(Logic[Any]):
    """A row is processed with the state of the previous row's key."""

    before: Any = None

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[LogicOutput]:
        met, self.before = (state if self.before is None else self.before), state
        return super().take(key, met, row, clock)
