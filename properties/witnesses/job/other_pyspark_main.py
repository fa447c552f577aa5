"""The program of a process with another PySpark: answers the requests of `other_pyspark` until the parent process ends.

Usage: `python -P -m streamproof.properties.witnesses.job.other_pyspark_main DESCRIPTOR`, with the descriptor of an open
socket.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pickle
import socket
import sys
import threading
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from ....reference.core.errors import BadInput, StreamproofError
from ...system.exits import without_exit
from ...system.visible import first_line
from .other_pyspark import dumped, loaded
from .scripts.script import Script

_LEAVE = os._exit  # the original, because `without_exit` temporarily replaces `os._exit`


def main(descriptor: int) -> None:
    """Answer requests until the parent process closes the connection."""
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    with socket.socket(fileno=descriptor) as connection, connection.makefile("rwb") as file:
        while True:
            try:
                modules, content = pickle.load(file)
            except EOFError:
                return
            pickle.dump(_answered(modules, content), file)
            file.flush()


def _end_with(parent: int) -> None:
    """End this process and its JVM within a second after the parent process."""
    while os.getppid() == parent:
        time.sleep(1)
    _LEAVE(1)


def _answered(modules: Mapping[str, str], content: bytes) -> bytes:
    """Return the answer to a pickled request, or the error."""
    try:
        for name, path in modules.items():
            _import(name, Path(path))
        request = loaded(content)
        return dumped((_answer_to(request), None))
    except StreamproofError as error:
        return dumped((None, (type(error), error.message, error.details, getattr(error, "cause", None))))
    except Exception as error:
        traceback.print_exc()
        return dumped((None, (StreamproofError, f"{type(error).__name__}: {first_line(error)}", "", None)))


def _answer_to(request: Any) -> Any:
    job = getattr(getattr(request, "runner", None), "job", None)
    script = getattr(getattr(job, "start", None), "script", job)
    try:
        return request.answer()
    finally:
        # The next request contains a new copy of the script, which has no record of this run.
        if isinstance(script, Script) and script.found.last is not None:
            script.found.last.undo()


def _import(name: str, path: Path) -> None:
    """Import a user's module by its name, or by its file if Python can't find the name (such as pytest's tests).

    Raises:
        BadInput: The module raises an exception.
    """
    if name in sys.modules:
        return
    try:
        with without_exit(str(path)):
            try:
                importlib.import_module(name)
            except ModuleNotFoundError as error:
                if error.name is None or not f"{name}.".startswith(f"{error.name}."):
                    raise
                _import_file(name, path)
    except StreamproofError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInput(
            f"importing {path} raised {type(error).__name__}: {first_line(error)}, in line {frame.lineno} of "
            f"{frame.filename}"
        ) from error


def _import_file(name: str, path: Path) -> None:
    from pyspark import cloudpickle

    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    added, package = {name: module}, name
    while package := package.rpartition(".")[0]:
        if package not in sys.modules:
            added[package] = ModuleType(package)  # a stand-in, because pickle imports parent packages first
    sys.modules.update(added)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        for one in added:
            del sys.modules[one]
        raise
    cloudpickle.register_pickle_by_value(module)  # Spark's workers can't import the module by its name, either


if __name__ == "__main__":
    main(int(sys.argv[1]))
