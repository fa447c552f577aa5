"""Which code is the user's: not Python's, a library's or ours."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import CodeType

_OURS = Path(__file__).resolve().parents[3]
_LIBRARIES = (
    *(Path(sysconfig.get_paths()[name]) for name in ("stdlib", "purelib", "platlib")),
    *(_OURS / name for name in ("properties", "reference", "spark_impl", "streamproof")),
)
"""The folders of code that isn't the user's."""
NO_FILE = str(_LIBRARIES[0] / "built in")
OF_CLASSES = ("__module__", "__qualname__", "__doc__", "__annotations__", "__firstlineno__", "__static_attributes__")
"""Members of a class that Python adds, and that no code of the user's compares with."""


def is_users_class(kind: type) -> bool:
    """Return whether a class is the user's."""
    module = sys.modules.get(kind.__module__)
    file = getattr(module, "__file__", None)
    return kind.__module__ == "__main__" or (file is not None and is_users_file(file))


def is_users_file(file: str) -> bool:
    """Return whether a file has code of the user's."""
    path = Path(file).resolve()
    return not any(path.is_relative_to(folder) for folder in _LIBRARIES)


def names_of(code: CodeType) -> Iterator[str]:
    """Return the names of globals, attributes and modules that code and the functions within it refer to."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from names_of(constant)
