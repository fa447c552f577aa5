"""Create Java's archive of the classes that Spark loads, with a query like a check's query.

`python -m streamproof.properties.witnesses.spark.make_class_archive` creates the archive for this Python's PySpark, as
`make test` does. The creation takes 70 CPU seconds once, which pays off at the tenth start, and 190 MB beside the
installed packages.
"""

from __future__ import annotations

import sys
from pathlib import Path

from ....specs.java import find_java
from ...generators.cohorts import one_cohort
from ...generators.draws import SCHEDULE, HistorySettings, draw_histories
from ...registration.registration import registration_of
from ...system.installed import requirements
from .platform import jvm
from .platform.class_archive import archive_of
from .session import JAVA_OPTIONS, spark_session
from .witness import SPARK

DUMP_SECONDS = 300.0
"""Java's timeout for writing the archive when it ends (s)."""


def make_archive() -> Path | None:
    """Create the archive with a query like a check's; return its path, or None if this Java can't create archives.

    Raises:
        MissingTool: Spark didn't start.
        StreamproofError: The query failed.
        OSError: The archive can't be written.
    """
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
    print(make_archive() or "This Java creates no archive of classes: Spark starts without it", file=sys.stderr)
