"""Mutants in a line each: a logic whose bug is mixed in, is in what is declared, or is in what a method returns.

Their names are those that their module gives them: `logics_in` makes a mutant's name of that of its variable.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from ....spark_impl.runtime.logic import Arrived, Emitted, Key, Logic

Declared = TypeVar("Declared")


def logics_in(names: Mapping[str, Any], *right: type) -> list[type]:
    """Return the mutated logics that a module defines, in their order, each under its name in the module.

    Args:
        names: The module's `globals()`.
        right: The operator's own logics, of which they are subclasses.
    """
    logics = {name: one for name, one in names.items() if isinstance(one, type) and issubclass(one, right)}
    found = {name: logic for name, logic in logics.items() if logic not in right}
    if len(found) > len({*found.values()}):
        raise ValueError(f"{names['__name__']} has a mutant under two names")
    for name, logic in found.items():
        # Spark's workers import a class by its module and name.
        logic.__module__, logic.__name__, logic.__qualname__ = names["__name__"], name, name
    return list(found.values())


def mixed(logic: type, mixin: type, sentence: str | None = None, **members: Any) -> type:
    """Return a logic with a bug mixed in.

    Args:
        logic: The right logic.
        mixin: What has the bug.
        sentence: What is wrong; by default the first line of the mixin's docstring.
        members: What the mixin asks for.
    """
    return type(logic.__name__, (mixin, logic), {"__doc__": sentence or mixin.__doc__, **members})


def redeclaring(logic: Any, sentence: str, options: Callable[[Any], Mapping[str, Any]]) -> type:
    """Return a logic that takes its definition for another.

    Args:
        logic: The right logic.
        sentence: What is wrong.
        options: Of the definition: the options that it is taken to have.
    """

    def init(self: Any, definition: Any) -> None:
        logic.__init__(self, redeclared(definition, **options(definition)))

    return type(logic.__name__, (logic,), {"__doc__": sentence, "__init__": init})


def redeclared(definition: Declared, **options: Any) -> Declared:
    """Return a definition with other options, unchecked: a mutant's may be such as nobody could declare."""
    other = copy.copy(definition)
    for name, value in options.items():
        object.__setattr__(other, name, value)
    return other


def returning(logic: type, sentence: str, **bugs: Callable[[Any], Any]) -> type:
    """Return a logic of which some methods return something else.

    Args:
        logic: The right logic.
        sentence: What is wrong.
        bugs: By the name of a method, of what the right one returns: what is returned in its place.
    """

    def method(right: Callable[..., Any], bug: Callable[[Any], Any]) -> Callable[..., Any]:
        return lambda *arguments: bug(right(*arguments))

    wrong = {name: method(getattr(logic, name), bug) for name, bug in bugs.items()}
    return type(logic.__name__, (logic,), {"__doc__": sentence, **wrong})


class SharingState(Logic[Any]):
    """A row meets the state of the key that had the row before."""

    before: Any = None

    def take(self, key: Key, state: Any, row: Arrived, clock: int) -> list[Emitted]:
        met, self.before = (state if self.before is None else self.before), state
        return super().take(key, met, row, clock)
