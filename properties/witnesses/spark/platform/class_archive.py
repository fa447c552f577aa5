"""Java's archive of the classes that Spark loads, which saves a quarter of the CPU seconds of a process's first check.

`make_class_archive` creates the archive. Java ignores an archive that doesn't fit its release, or the paths and times
of Spark's jars, as in a copied environment; without an archive Spark works, too, but starts later.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from .....specs.java import JavaHome

MAKES_ARCHIVE = "streamproof.properties.witnesses.spark.make_class_archive"
"""The module that makes the archive, as a command of Python."""


def archive_of(java: JavaHome) -> Path:
    """Return the path of the archive for a Java and this Python's PySpark; it may not exist."""
    name = f"spark-{version('pyspark')}-java-{java.version}.jsa"
    return Path(sys.prefix, "share", "streamproof", name)


def java_options(java: JavaHome) -> list[str]:
    """Return the options with which Java uses the archive; none without an archive."""
    archive = archive_of(java)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []
