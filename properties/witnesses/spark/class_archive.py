"""Java's archive of the classes that Spark loads: it saves a session and its first query a third of the CPU seconds.

`python -m streamproof.properties.witnesses.spark.class_archive` makes it for this Python's PySpark, as `make test`
does: that takes 70 CPU seconds once, which pays off at the tenth start, and 190 MB beside the installed packages. Java
ignores an archive that doesn't fit its release or Spark's jars; without an archive everything works, but starts later.
"""

from __future__ import annotations

import sys
from importlib.metadata import version
from pathlib import Path

from ....specs.java import Java, find_java
from ...system import requirements

DUMP_SECONDS = 300.0
"""The most time that Java may take to write the archive when it ends (s)."""


def archive_of(java: Java) -> Path:
    """Return the path of the archive for a Java and this Python's PySpark; it may not exist."""
    name = f"spark-{version('pyspark')}-java-{java.version}.jsa"
    return Path(sys.prefix, "share", "streamproof", name)


def java_options(java: Java) -> list[str]:
    """Return the options by which Java uses the archive; none without an archive."""
    archive = archive_of(java)
    return [f"-XX:SharedArchiveFile={archive}"] if archive.is_file() else []


def make_archive() -> Path | None:
    """Make the archive, by a query like a check's; return its path, or None: this Java can't make an archive.

    Raises:
        MissingTool: Spark couldn't be started.
        StreamproofError: The query failed.
        OSError: The archive can't be written.
    """
    from ...generators.cohorts import one_cohort
    from ...generators.draws import SCHEDULE, HistorySettings, draw_histories
    from ...registration.registration import registration_of
    from . import jvm
    from .session import JAVA_OPTIONS, spark_session
    from .witness import SPARK

    archive = archive_of(find_java(newest=requirements.newest_java()))
    archive.parent.mkdir(parents=True, exist_ok=True)
    made = archive.with_suffix(".part")
    for earlier in (archive, made):
        earlier.unlink(missing_ok=True)
    options = f'{JAVA_OPTIONS} "-XX:ArchiveClassesAtExit={made}"'
    session = spark_session(cores=2, settings={"spark.driver.extraJavaOptions": options})
    operator = "table_table_join"
    profile = HistorySettings(operator, registration_of(operator).profiles["inner"], SCHEDULE)
    SPARK.run(one_cohort([*draw_histories(profile, 20, seed=0)]))
    session.stop()
    jvm.end(DUMP_SECONDS)
    return made.replace(archive) if made.is_file() else None


if __name__ == "__main__":
    print(make_archive() or "This Java makes no archive of classes: Spark starts without one", file=sys.stderr)
