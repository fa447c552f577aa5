"""Finds the constants in the code of a user's functions, such as a processor's limits, which no plan shows."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import islice
from types import CodeType, FunctionType, MethodType
from typing import Any

from .users_code import OF_CLASSES, is_users_class, is_users_file, is_users_module, names_of

MAX_CONSTANTS = 100
MAX_OBJECTS = 10_000
"""The limit on inspected objects."""
MAX_MEMBERS = 1_000
"""The limit on inspected elements of a collection."""
MAX_TEXT = 40
"""The largest length of a text that is a constant; longer texts are searched for constants."""
_PLAIN = (0, 1, -1, "")
"""Constants that are left out, because the drawn values of each type include them."""
_IN_TEXT = re.compile(r"'((?:[^']|'')*)'|(?<![\w.])(\d+(?:_\d+)*(?:\.\d+)?)(?![\w.])")
"""A text or number literal in an SQL statement."""


def constants_in(roots: Iterable[Any], *, without: Any = None) -> list[Any]:
    """Return the numbers and texts in the code that a user's objects run, in the order of the search.

    The search follows the functions, methods and classes that the code names, but not the functions and classes of
    libraries.

    Args:
        roots: Functions, classes, instances, compiled code, or SQL statements.
        without: A function whose own constants are left out; the constants of its nested functions count.
    """
    found: dict[str, Any] = {}
    seen: set[int] = set()
    waiting = [*roots]
    own = getattr(inspect.unwrap(without), "__code__", None) if callable(without) else None
    while waiting and len(found) < MAX_CONSTANTS and len(seen) < MAX_OBJECTS:
        root = waiting.pop(0)
        if id(root) in seen:
            continue
        seen.add(id(root))
        if isinstance(root, (bool, int, float, str)):
            values = [root]
        else:
            try:
                values, more = _within(root, own)
            except Exception:  # skip the object: its attributes may raise any exception
                continue
            waiting += more
        found.update({repr(value): value for one in values for value in _plain(one) if value not in _PLAIN})
    return [*found.values()][:MAX_CONSTANTS]


def _plain(value: Any) -> Iterator[Any]:
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        yield value
    elif isinstance(value, str):
        if len(value) <= MAX_TEXT and "\n" not in value:
            yield value
        if " " in value.strip():
            for text, number in _IN_TEXT.findall(value):
                yield float(number) if "." in number else int(number) if number else text.replace("''", "'")


def _within(root: Any, own: CodeType | None) -> tuple[list[Any], list[Any]]:
    """Return the constants of an object's code, and the objects that the object refers to."""
    if isinstance(root, CodeType):
        return [*_of_code(root, own)], []
    if isinstance(root, MethodType):
        return [], [root.__func__, root.__self__]
    if isinstance(root, partial):
        return [], [root.func, *root.args, *root.keywords.values()]
    if isinstance(root, (tuple, list, frozenset, set)):
        return [], [*islice(root, MAX_MEMBERS)]
    if isinstance(root, dict):
        return [], [one for pair in islice(root.items(), MAX_MEMBERS) for one in pair]
    if isinstance(root, FunctionType):
        return _of_function(inspect.unwrap(root), own)
    if isinstance(root, (staticmethod, classmethod)):
        return [], [root.__func__]
    if isinstance(root, property):
        return [], [one for one in (root.fget, root.fset) if one is not None]
    if isinstance(root, type):
        members = [value for name, value in vars(root).items() if name not in OF_CLASSES]
        return ([], [*members, *root.__bases__]) if is_users_class(root) else ([], [])
    if is_users_class(type(root)):
        return [], [type(root), *getattr(root, "__dict__", {}).values()]
    return [], []


def _of_function(function: Any, own: CodeType | None) -> tuple[list[Any], list[Any]]:
    code = getattr(function, "__code__", None)
    if code is None or not is_users_file(code.co_filename):
        return [], []
    constants, names = [*_of_code(code, own)], {*names_of(code)}
    globals_ = function.__globals__
    referred = [globals_[name] for name in sorted(names) if name in globals_]
    modules = [*filter(is_users_module, referred)]
    referred += [getattr(module, name) for module in modules for name in sorted(names) if hasattr(module, name)]
    for cell in function.__closure__ or ():
        try:
            referred.append(cell.cell_contents)
        except ValueError:  # skip a closure variable that has no value yet
            continue
    return constants, [*referred, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]


def _of_code(code: CodeType, own: CodeType | None) -> Iterator[Any]:
    constants = code.co_consts
    is_doc = code.co_flags & inspect.CO_OPTIMIZED and constants and isinstance(constants[0], str) and _has_doc(code)
    for constant in constants[1:] if is_doc else constants:
        if isinstance(constant, CodeType):
            yield from _of_code(constant, own)
        elif code is not own:
            yield from constant if isinstance(constant, (tuple, frozenset)) else (constant,)


def _has_doc(code: CodeType) -> bool:
    """Return whether a function's first constant is its docstring."""
    return not hasattr(inspect, "CO_HAS_DOCSTRING") or bool(code.co_flags & inspect.CO_HAS_DOCSTRING)
