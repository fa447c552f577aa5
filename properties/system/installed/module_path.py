"""The folders from which this process imports, for another Python that imports the same modules."""

from __future__ import annotations

import os
import sys
import sysconfig
from itertools import takewhile
from types import ModuleType

BEHIND = "STREAMPROOF_PATH_BEHIND"
"""The environment variable with the folders that streamproof's environments search after their own packages."""


def in_front() -> list[str]:
    """Return the folders before the standard library in the path, which pytest, `python FILE` and PYTHONPATH add."""
    zipped = f"python{sys.version_info.major}{sys.version_info.minor}.zip"
    found = takewhile(lambda entry: os.path.basename(entry) != zipped, sys.path)
    return [*dict.fromkeys(os.path.abspath(entry) for entry in found)]


def modules_in_front() -> list[ModuleType]:
    """Return the imported top-level modules in the folders of `in_front`, without streamproof."""
    folders, own = {*in_front()}, __name__.partition(".")[0]
    found = []
    for name, module in [*sys.modules.items()]:
        if "." in name or name in (own, "__main__"):
            continue
        files = [*getattr(module, "__path__", ())] or [getattr(module, "__file__", None) or ""]
        if any(os.path.dirname(os.path.abspath(file)) in folders for file in files if file):
            found.append(module)
    return found


def behind() -> list[str]:
    """Return the folders after the standard library in the path: the folders of installed packages."""
    standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    first = [*in_front(), *standard, *(os.path.join(folder, "lib-dynload") for folder in standard)]
    found = dict.fromkeys(os.path.abspath(entry) for entry in sys.path)
    return [entry for entry in found if entry not in first and os.path.isdir(entry)]
