"""Environments of other PySpark versions: venv and pip create each once, in the user's cache folder.

An environment contains PySpark and streamproof's dependencies. The environment searches for all other modules,
including streamproof's, in the folders that the starting process passes to its Python (`module_path.BEHIND`).
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from platformdirs import user_cache_path

from ....reference.core.errors import BadInput
from ..arguments import short
from ..files import HIDDEN
from ..locks import hold
from ..progress import doing
from ..visible import first_line
from .module_path import BEHIND
from .requirements import PACKAGES, PROTOBUFS, PYARROWS, PYSPARKS, installed, listed, minor, release

_HERE = ".".join(map(str, sys.version_info[:2]))
_WRITTEN = "requirements.txt"
"""The file in an environment with the requested packages, and `_BEHIND`; this file is written last."""
_BYTES = 1_000_000_000
"""The disk space that an environment needs (bytes)."""
_BEHIND = f"""\
import os, site; [*map(site.addsitedir, filter(None, os.environ.get("{BEHIND}", "").split(os.pathsep)))]
"""
"""A line that Python runs at startup in an environment."""


_NOTE = f"# {_BEHIND}"


def require_supported(name: str, version: str) -> None:
    """Refuse an unsupported version of PySpark; `name` is the argument's name in messages.

    Raises:
        BadInput: The version isn't supported; the message contains the remedy.
    """
    _require_version(name, version)
    if minor(version) not in PYSPARKS:
        raise BadInput(f"{name} is {version}, but only PySpark {listed(PYSPARKS)} are supported: give such a version")


def require_earlier(version: str) -> None:
    """Refuse a version of PySpark that isn't supported, or is newer than the installed PySpark.

    Raises:
        BadInput: The text isn't a version, or the version is unsupported or newer; the message contains the remedy.
    """
    _require_version("from_pyspark", version)
    here = installed("pyspark")
    if release(version) > release(here)[: len(release(version))]:
        raise BadInput(
            f"from_pyspark is {version}, but the installed PySpark {here} can't continue from the checkpoint of a "
            f"newer Spark: install PySpark {version} or newer, or give an older version"
        )
    require_supported("from_pyspark", version)


def _require_version(name: str, version: str) -> None:
    if not re.fullmatch(r"\d+\.\d+(\.\d+)?", version):
        raise BadInput(f'{name} is {short(version)}: give the version of a PySpark, such as "4.1.4"')


def python_of(version: str) -> Path:
    """Return the Python of an environment with a PySpark; the environment is created if missing.

    For the installed PySpark, this is the Python of this process.

    Args:
        version: The version; two numbers, such as 4.1, mean their newest release.

    Raises:
        BadInput: There is no Python for this PySpark, or the environment can't be created; an incomplete environment is
            removed.
    """
    if release(installed("pyspark"))[: len(release(version))] == release(version):
        return Path(sys.executable)
    python, program = _python_for(version)
    folder = user_cache_path("streamproof") / "environments" / f"pyspark-{version}-python-{python}"
    wanted = "".join(f"{one}\n" for one in _requirements(version))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (folder.parent / f"{folder.name}.lock").open("a") as lock:
            hold(lock.fileno())  # waits if another process creates it
            if not _is_whole(folder, wanted):
                _require_room(folder.parent)
                _make(folder, program, wanted, version)
    except OSError as error:
        raise BadInput(
            f"the environment of PySpark {version} can't be made in {folder.parent}: {error.strerror or error}: make "
            "room there, or set XDG_CACHE_HOME to another folder"
        ) from None
    return _program(folder)


def _program(folder: Path) -> Path:
    return folder / "bin" / "python"


def _is_whole(folder: Path, wanted: str) -> bool:
    """Return whether an environment contains the requested packages, and its Python still exists."""
    written = folder / _WRITTEN
    return _program(folder).is_file() and written.is_file() and written.read_text(encoding="utf-8") == wanted + _NOTE


def _python_for(version: str) -> tuple[str, str]:
    """Return the version and the program of a Python for a PySpark: this Python, or another Python on PATH.

    Raises:
        BadInput: There is none.
    """
    pythons = PYSPARKS[minor(version)]
    if _HERE in pythons:
        return _HERE, sys.executable
    for python in reversed(pythons):
        program = shutil.which(f"python{python}")
        if program is not None and _ended(_run(program, "-c", "")) is None:
            return python, program
    names = " or ".join(f"python{python}" for python in pythons)
    raise BadInput(
        f"PySpark {version} runs on Python {listed(pythons)}, this is Python {_HERE}, and PATH contains no {names}: "
        f"install Python {pythons[-1]}, or run the check with it"
    )


def _requirements(version: str) -> Iterator[str]:
    """Yield the packages of an environment with their versions: PySpark, and streamproof's dependencies."""
    line = minor(version)
    bounds = {**PACKAGES, "pyarrow": (PACKAGES["pyarrow"][0], PYARROWS.get(line))}
    bounds["protobuf"] = (PROTOBUFS.get(line, PACKAGES["protobuf"][0]), PACKAGES["protobuf"][1])
    yield f"pyspark=={version}{'' if len(release(version)) > 2 else '.*'}"
    for name, (lowest, too_new) in bounds.items():
        if name != "pyspark":
            yield f"{name}>={lowest}" + (f",<{too_new}" if too_new else "")
    try:
        others = requires("streamproof") or []
    except PackageNotFoundError:
        return
    yield from (one for one in others if ";" not in one and re.split(r"[^\w-]", one)[0] not in bounds)


def _require_room(folder: Path) -> None:
    """Make sure that an environment fits on a folder's disk, because pip and venv don't always report a full disk.

    Raises:
        OSError: It doesn't.
    """
    free = shutil.disk_usage(folder).free
    if free < _BYTES:
        raise OSError(errno.ENOSPC, f"it takes {_BYTES // 10**6} MB, and {free // 10**6} MB are free")


def _make(folder: Path, program: str, wanted: str, version: str) -> None:
    """Create an environment under a temporary name, and rename it once it is complete.

    Raises:
        BadInput: venv or pip failed.
    """
    hidden = folder.with_name(f"{HIDDEN}{folder.name}")
    doing(f"creating an environment with PySpark {version}, once: this takes minutes, and 1 GB in {folder.parent}")
    shutil.rmtree(hidden, ignore_errors=True)  # partial, left by a killed process
    try:
        _require(_run(program, "-m", "venv", str(hidden)), version, f"{program} -m venv")
        packages = wanted.splitlines()
        done = _run(str(_program(hidden)), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages)
        _require(done, version, "pip install")
        (found,) = hidden.glob("lib/python*/site-packages")
        (found / "streamproof_behind.pth").write_text(_BEHIND, encoding="utf-8")
        (hidden / _WRITTEN).write_text(wanted + _NOTE, encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        hidden.rename(folder)
    except BaseException:
        shutil.rmtree(hidden, ignore_errors=True)
        raise


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=environment
    )


def _ended(done: subprocess.CompletedProcess[str]) -> str | None:
    """Return the line in which a program reported its failure; None if the program succeeded."""
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in [*done.stdout.splitlines(), *done.stderr.splitlines()] if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")]
    return first_line((errors or lines or [f"exit code {done.returncode}"])[-1]).removeprefix("ERROR: ")


def _require(done: subprocess.CompletedProcess[str], version: str, command: str) -> None:
    if (why := _ended(done)) is not None:
        raise BadInput(
            f"PySpark {version} can't be installed into a separate environment: {command}: {why.rstrip('.')}: give an "
            "existing version, and check the network and pip's settings"
        )
