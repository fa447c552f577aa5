"""The Python of a local session's workers, set up for a fast start of stateful queries.

Spark puts a zip of PySpark first on the workers' module path, and Python compiles modules from a zip again in every
process: 0.7 s of a core for each start of a stateful query. This machine has the same PySpark installed, with compiled
modules.
"""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import Any

from ....system.installed.module_path import in_front
from ....system.installed.spark_versions import has_unix_sockets

_SCRIPT = """\
#!/bin/sh
# Starts Python without the copies of PySpark and Py4J that Spark brings along; what the user put on the path stays.
set -f
IFS=:
kept=
for entry in $PYTHONPATH; do
  case $entry in
    {home}/*) ;;
    *) kept=$kept${{kept:+:}}$entry ;;
  esac
done
PYTHONPATH=$kept
export PYTHONPATH
[ -n "$kept" ] || unset PYTHONPATH
exec {python} "$@"
"""

_LONGEST_SOCKET = 107 - len("/.01234567-89ab-cdef-0123-456789abcdef.sock")
"""The maximum length (bytes) of the path of a folder for Spark's Unix domain sockets."""


def quick_python(folder: Path) -> str:
    """Return the program that starts a worker's Python, a script created in `folder`, or this process's Python.

    The program is this process's Python if scripts can't run in the folder, or if Spark's PySpark differs from this
    process's PySpark.
    """
    import pyspark

    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    script = folder / "python"
    if os.name != "posix" or not Path(pyspark.__file__).is_file() or not home.samefile(Path(pyspark.__file__).parent):
        return sys.executable
    script.write_text(_SCRIPT.format(home=shlex.quote(str(home)), python=shlex.quote(sys.executable)))
    script.chmod(0o700)
    return str(script) if os.access(script, os.X_OK) else sys.executable


def start_quickly(session: Any, folder: Path) -> None:
    """Start a local session's workers with `quick_python`; the environment variable for Python keeps this process's
    Python.
    """
    session.sparkContext.pythonExec = quick_python(folder)


def import_as_here(session: Any) -> None:
    """Let the workers of later queries import this process's modules, such as a job in the folder of its test.

    pytest and other programs put folders before the standard library on the module path. A local session's workers lack
    these folders, so the workers couldn't import the folders' modules.
    """
    session.sparkContext.environment["PYTHONPATH"] = os.pathsep.join(in_front())


def socket_settings(folder: Path) -> dict[str, str]:
    """Return the settings with which workers and JVM use Unix sockets in `folder`; no settings if Unix sockets aren't
    possible.
    """
    if not has_unix_sockets() or not sys.platform.startswith("linux") or len(os.fsencode(folder)) > _LONGEST_SOCKET:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}
