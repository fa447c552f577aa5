"""Java's archive of the classes that Spark loads: it saves a session and its first query a third of the CPU seconds.

`make_class_archive` makes it. Java ignores an archive that doesn't fit its release or Spark's jars; without an archive
everything works, but starts later.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from .....specs.java import JavaHome


def archive_of(java: JavaHome) -> Path:
    """Return the path of the archive for a Java and this Python's PySpark; it may not exist."""
    name = f"spark-{version('pyspark')}-java-{java.version}.jsa"
    return Path(sys.prefix, "share", "streamproof", name)


def java_options(java: JavaHome) -> list[str]:
    """Return the options by which Java uses the archive; none without an archive."""
    archive = archive_of(java)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []
