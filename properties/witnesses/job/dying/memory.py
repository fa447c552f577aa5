"""Restores the values that a job's code keeps in memory, as if each start of the job's query were a new process.

A dead process loses its globals, class attributes, closures, caches and open transactions. A check restarts a query in
the same process, so the check itself restores the original values. The check doesn't restore values that only the
reader of a sink's target uses: the target outlives the process.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import gc
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterator, MutableMapping, MutableSequence, MutableSet, Sequence
from types import CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, TypeAlias

from ..users_code import OF_CLASSES, is_users_class, is_users_file, is_users_module, names_of, users_modules

MAX_OBJECTS = 50_000
"""The largest number of inspected objects."""
_MISSING = object()
_CODE = (FunctionType, type, ModuleType, MethodType, staticmethod, classmethod, property)
"""Types of code objects, which mutants change; the check doesn't restore these objects."""
_PLAIN = (str, bytes, int, float, complex, type(None))
_LOCKS = (type(threading.Lock()), type(threading.RLock()))
_OF_THREADS = (threading.Condition, threading.Event, threading.Semaphore, threading.Barrier)
_BUILT_IN = (dict, list, set, bytearray, deque)
PutBack: TypeAlias = Callable[[], bool]
"""Restores a value; returns whether the value had changed."""


class Memory:
    """The values that jobs' code keeps in this process.

    Attributes:
        modules: The names of the modules imported before the jobs ran; the jobs themselves import the other modules.
    """

    def __init__(self) -> None:
        self.modules = frozenset(sys.modules)
        self._seen: dict[int, Any] = {}  # keeps the objects alive, so that no other object gets the same id
        self._kept: list[PutBack] = []

    def __reduce__(self) -> tuple[type[Memory], tuple[()]]:
        """Pickle this object without the recorded values, because another process has other values."""
        return Memory, ()

    def learn(self, job: Any, *targets: Any) -> None:
        """Record the values that a job's code refers to, before the job's first run; keep the values recorded earlier.

        Args:
            job: A user's function, a callable object, or the code of a script.
            targets: Objects that represent the sink's target, such as the function that reads the target.
        """
        for root, keeps in [*((target, False) for target in targets), (job, True)]:
            waiting = deque([root])
            while waiting and len(self._seen) < MAX_OBJECTS:
                value = waiting.popleft()
                if id(value) in self._seen or type(value) in _PLAIN:
                    continue
                self._seen[id(value)] = value
                try:
                    put_back, more = _within(value)
                except Exception:  # skip the object: its attributes may raise any exception
                    continue
                self._kept += put_back if keeps else ()
                waiting += more

    def put_back(self) -> None:
        """Restore all values, roll back transactions, and unload the modules that the jobs imported."""
        changed = False
        for put in self._kept:
            with contextlib.suppress(Exception):  # such as a closed connection, or a collection that refuses a member
                changed |= put()
        for name in users_modules({*sys.modules} - self.modules):
            del sys.modules[name]
            changed = True
        if changed:  # collect unreferenced connections, which still hold their locks
            gc.collect()


def _within(value: Any) -> tuple[list[PutBack], list[Any]]:
    """Return the functions that restore an object's values, and the objects that the object refers to."""
    if isinstance(value, MethodType):
        return [], [value.__func__, value.__self__]
    if isinstance(value, functools.partial):
        return [], [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, (staticmethod, classmethod)):
        return [], [value.__func__]
    if isinstance(value, property):
        return [], [value.fget, value.fset]
    if isinstance(value, (tuple, frozenset)):
        return [], [*value]
    if isinstance(value, FunctionType):
        return _of_function(value)
    if isinstance(value, CodeType):
        return _of_code(value, {})
    if isinstance(value, type):
        return _of_class(value) if is_users_class(value) else ([], [])
    if hasattr(type(value), "cache_clear") and isinstance(getattr(value, "__wrapped__", None), FunctionType):
        return [functools.partial(_emptied, value)], [value.__wrapped__]
    put: list[PutBack] = []
    more: list[Any] = []
    if isinstance(value, _BUILT_IN) or _is_collection(value):
        put.append(functools.partial(_refilled, value, [*(value.items() if hasattr(value, "items") else value)]))
        more += [*value.values()] if hasattr(value, "values") else [*value]
    if isinstance(value, _LOCKS):
        put.append(functools.partial(_released, value))
    if is_users_class(type(value)) or isinstance(value, _OF_THREADS):
        names = [name for kind in type(value).__mro__ for name in _slots_of(kind)]
        put += [_attribute(value, name) for name in names]
        more += [type(value), *(getattr(value, name, None) for name in names)]
        if hasattr(value, "__dict__"):
            own, more_own = _within(value.__dict__)
            put, more = [*put, *own], [*more, *more_own]
    elif not isinstance(value, _CODE):  # a library's object may refer to functions of the user
        functions = (FunctionType, MethodType, functools.partial)
        more += [one for one in getattr(value, "__dict__", {}).values() if isinstance(one, functions)]
    if callable(getattr(type(value), "rollback", None)):
        put.append(functools.partial(_rolled_back, value))
    return put, more


def _of_function(function: Any) -> tuple[list[PutBack], list[Any]]:
    more = [function.__wrapped__] if hasattr(function, "__wrapped__") else []
    put: list[PutBack] = []
    for cell in function.__closure__ or ():
        more += _contents(cell)
        put.append(functools.partial(_cell_put_back, cell, _contents(cell)))
    if not is_users_file(function.__code__.co_filename):
        return [], more  # only the closure of a library's decorator matters: it may contain the user's function
    more += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values(), function.__dict__]
    put_globals, more_globals = _of_code(function.__code__, function.__globals__, more)
    return [*put, *put_globals], [*more, *more_globals]


def _of_code(code: CodeType, own: dict[str, Any], enclosed: Sequence[Any] = ()) -> tuple[list[PutBack], list[Any]]:
    """Return the restoring functions and the objects, for the globals and modules that code names."""
    names = sorted({*names_of(code)})
    spaces = [own]
    modules = [sys.modules.get(name) for name in names]  # modules that the code may import
    for module in [*modules, *enclosed, *(own.get(name) for name in names)]:
        spaces += _spaces_of(module, names)
    bindings = [(space, name) for space in {id(space): space for space in spaces}.values() for name in names]
    put = [functools.partial(_bound_again, space, name, space.get(name, _MISSING)) for space, name in bindings]
    return [*put], [space[name] for space, name in bindings if name in space]


def _spaces_of(module: Any, names: Sequence[str]) -> Iterator[dict[str, Any]]:
    """Yield the namespaces of a user's module, and of the modules that code reaches through it."""
    waiting, seen = [module], set()
    while waiting:
        module = waiting.pop()
        if is_users_module(module) and id(module) not in seen:
            seen.add(id(module))
            yield vars(module)
            waiting += [vars(module)[name] for name in names if name in vars(module)]


def _of_class(kind: type) -> tuple[list[PutBack], list[Any]]:
    def put_back() -> bool:
        found = members()
        for name in {*found, *given}:
            if name not in given:
                delattr(kind, name)
            elif found.get(name, _MISSING) is not given[name] and not isinstance(given[name], _CODE):
                setattr(kind, name, given[name])
        return found != given

    def members() -> dict[str, Any]:
        return {name: value for name, value in vars(kind).items() if name not in OF_CLASSES}

    given = members()
    return [put_back], [*given.values(), *kind.__bases__]


def _refilled(collection: Any, given: list[Any]) -> bool:
    now = [*(collection.items() if hasattr(collection, "items") else collection)]
    if len(now) == len(given) and all(_is_same(old, new) for old, new in zip(given, now, strict=True)):
        return False
    collection.clear()
    if isinstance(collection, MutableSet):
        for member in given:
            collection.add(member)
    elif hasattr(collection, "items"):
        for key, value in given:
            collection[key] = value
    else:
        collection.extend(given)
    return True


def _is_same(one: Any, other: Any) -> bool:
    pair = isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other)
    if pair:
        return all(map(_is_same, one, other))
    return one is other or (isinstance(one, _PLAIN) and type(one) is type(other) and one == other)


def _is_collection(value: Any) -> bool:
    """Return whether an object is a library's pure collection of values, such as a cache, and not a file."""
    if not isinstance(value, (MutableMapping, MutableSequence, MutableSet)) or hasattr(type(value), "close"):
        return False
    copy.deepcopy(value)  # raises if the object can't be copied
    return True


def _slots_of(kind: type) -> list[str]:
    slots = vars(kind).get("__slots__", ())
    names = [slots] if isinstance(slots, str) else [*slots]
    own = f"_{kind.__name__.lstrip('_')}"  # Python stores a private slot under the name of its class
    return [f"{own}{name}" if name.startswith("__") else name for name in names if not name.endswith("__")]


def _attribute(value: Any, name: str) -> PutBack:
    given = getattr(value, name, _MISSING)

    def put_back() -> bool:
        if (now := getattr(value, name, _MISSING)) is given:
            return False
        object.__delattr__(value, name) if given is _MISSING else object.__setattr__(value, name, given)
        return now is not given

    return put_back


def _bound_again(space: dict[str, Any], name: str, given: Any) -> bool:
    if space.get(name, _MISSING) is given or isinstance(given, _CODE):
        return False
    if given is _MISSING:
        del space[name]
    else:
        space[name] = given
    return True


def _contents(cell: CellType) -> list[Any]:
    try:
        return [cell.cell_contents]
    except ValueError:  # a closure variable may have no value yet
        return []


def _cell_put_back(cell: CellType, given: list[Any]) -> bool:
    now = _contents(cell)
    if [*map(id, now)] == [*map(id, given)] or (given and isinstance(given[0], _CODE)):
        return False
    if given:
        cell.cell_contents = given[0]
    else:
        del cell.cell_contents
    return True


def _emptied(cached: Any) -> bool:
    cached.cache_clear()
    return False


def _released(lock: Any) -> bool:
    """Release a lock: a thread that died within `with` still holds it."""
    lock.release() if hasattr(lock, "locked") and lock.locked() else lock._release_save()
    return False


def _rolled_back(connection: Any) -> bool:
    connection.rollback()
    return False
