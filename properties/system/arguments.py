"""Check users' arguments against the types in a function's signature."""

from __future__ import annotations

import builtins
import contextlib
import inspect
import os
import reprlib
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from math import inf
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, Unpack, get_args, get_origin, get_type_hints

from ...reference.core.errors import BadInput, StreamproofError
from .visible import visible

_Callee = TypeVar("_Callee", bound=Callable[..., Any])
_WORDS = {
    Any: "anything",
    NoneType: "None",
    bool: "True or False",
    float: "a number",
    int: "a whole number",
    str: "a text",
}
_NOT_THE_USERS = (__name__.partition(".")[0], "pyspark", "py4j", "contextlib", "functools")
_SHORT = reprlib.Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 60


def checked(callee: _Callee) -> _Callee:
    """Make a function, or a dataclass, refuse arguments of types other than in its signature.

    Error messages escape invisible characters, because the user chooses the names of inputs, columns, functions and
    files. A value passes unchecked if its type is imported only for type checkers, or if its argument is variadic
    (except for `**given: Unpack[…]`).
    """
    if isinstance(callee, type):
        callee.__init__ = checked(callee.__init__)  # type: ignore[misc]
        return callee
    name, names = callee.__qualname__.removesuffix(".__init__"), _Names(callee.__globals__)
    signature = _unpacked(inspect.signature(callee), names)

    @wraps(callee)
    def with_checked(*arguments: Any, **named: Any) -> Any:
        __tracebackhide__ = True
        try:
            given = signature.bind(*arguments, **named).arguments
        except TypeError as error:
            takes = [parameter for parameter in signature.parameters if parameter != "self"]
            unknown = [argument for argument in named if argument not in takes]
            why = f"got an unexpected keyword argument {unknown[0]!r}" if unknown else str(error)
            raise TypeError(f"{name}: {why}; it takes {', '.join(takes)}") from None
        for argument, value in given.items():
            parameter = signature.parameters[argument]
            several = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
            if parameter.annotation is not parameter.empty and not several:
                kind = _resolved(parameter.annotation, names)
                if not fits(value, kind):
                    raise BadInput(f"{name}: {argument} is {short(value)}: give {in_words(kind)}")
        try:
            return callee(*arguments, **named)
        except StreamproofError as error:
            error.message, error.details = visible(error.message, lines=True), visible(error.details, lines=True)
            error.args = (visible(error, lines=True),)
            # Keep only the user's own lines in the traceback, because the message already says what is wrong.
            raise error.with_traceback(None) from _from_users_code(error.__cause__)
        except AssertionError as error:
            error.args = tuple(visible(one, lines=True) if isinstance(one, str) else one for one in error.args)
            raise

    vars(with_checked)["__signature__"] = signature
    return with_checked  # type: ignore[return-value]


def _unpacked(signature: inspect.Signature, names: _Names) -> inspect.Signature:
    """Return a signature extended by the keys of the TypedDict that declares its further keyword arguments."""
    found = []
    for parameter in signature.parameters.values():
        kind = _resolved(parameter.annotation, names) if parameter.kind is parameter.VAR_KEYWORD else None
        if get_origin(kind) is Unpack:
            (keys,) = get_args(kind)
            defaults = defaults_of(keys)
            found += [
                inspect.Parameter(key, parameter.KEYWORD_ONLY, default=defaults[key], annotation=of)
                for key, of in get_type_hints(keys).items()
            ]
        else:
            found.append(parameter)
    return signature.replace(parameters=found)


def defaults_of(keys: Any) -> dict[str, Any]:
    """Return the defaults of keyword arguments in a TypedDict, each declared as `Annotated[type, default]`."""
    return {key: of.__metadata__[0] for key, of in get_type_hints(keys, include_extras=True).items()}


def _from_users_code(error: BaseException | None) -> BaseException | None:
    """Return an error with the traceback from the user's first line on; None for Spark's errors, or without one."""
    if type(error).__module__.startswith("pyspark."):
        return None  # Spark's message has the reason and the line
    at = None if error is None else error.__traceback__
    while at is not None and str(at.tb_frame.f_globals.get("__name__")).partition(".")[0] in _NOT_THE_USERS:
        at = at.tb_next
    return None if error is None or at is None else error.with_traceback(at)


class _Names(dict[str, Any]):
    """The names of a module; a missing name, such as an import only for type checkers, is `Any`."""

    def __missing__(self, name: str) -> Any:
        return getattr(builtins, name, Any)


def _resolved(annotation: Any, names: _Names) -> Any:
    return _resolved(eval(annotation, {}, names), names) if isinstance(annotation, str) else annotation


def fits(value: Any, kind: Any) -> bool:
    """Return whether a value has an annotated type; booleans and NaN aren't numbers."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, one) for one in inner)
    if origin is Literal:
        return any(type(value) is type(one) and value == one for one in inner)
    if origin is Callable:
        return callable(value)
    if origin is tuple:
        return isinstance(value, tuple) and len(value) == len(inner) and all(map(fits, value, inner))
    if origin is Mapping:
        is_one = isinstance(value, Mapping)
        return is_one and all(fits(key, inner[0]) and fits(item, inner[1]) for key, item in value.items())
    if origin is Sequence:
        is_one = isinstance(value, Sequence) and not isinstance(value, (str, bytes))
        return is_one and (inner[0] is Any or all(fits(member, inner[0]) for member in value))
    if kind in (int, float):
        number = isinstance(value, (int, kind)) and not isinstance(value, bool)
        return number and -inf < value < inf
    known = origin or kind
    return known is Any or not isinstance(known, type) or isinstance(value, known)


def in_words(kind: Any) -> str:
    """Return a type in words, such as `a list, a text each or None`."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        durations = {str, timedelta} <= {*inner}
        others = [one for one in inner if not durations or one not in (str, timedelta)]
        return " or ".join(['a duration such as "10 minutes"'] * durations + [*map(in_words, others)])
    if origin is Literal:
        return f"one of {', '.join(map(str, inner))}"
    if origin is Callable:
        return "a function"
    if origin is Mapping:
        return f"a dict from {in_words(inner[0])} to {in_words(inner[1])}"
    if origin is Sequence:
        return "a list" if inner[0] is Any else f"a list, {in_words(inner[0])} each"
    if origin is tuple:
        return f"a tuple of {' and '.join(map(in_words, inner))}"
    known = origin or kind
    return _WORDS.get(known) or f"a {known.__name__}"


def folder_at(path: str | Path) -> Path:
    """Return the path of a folder.

    Raises:
        BadInput: The value can't be the path of a folder.
    """
    with contextlib.suppress(UnicodeError):
        if b"\0" not in os.fsencode(path):
            return Path(path)
    raise BadInput(f"folder is {short(str(path))}, which can't be a folder's path: name another folder")


def short(value: Any) -> str:
    """Return a value as a message shows it: shortened if it is long, with invisible characters escaped."""
    try:
        return visible(_SHORT.repr(value))
    except ValueError:  # an integer of over 4,300 digits
        return f"a {type(value).__name__} that can't be shown"
