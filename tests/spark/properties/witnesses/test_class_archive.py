from __future__ import annotations

import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from streamproof.properties.witnesses.spark.platform.class_archive import archive_of
from streamproof.specs.java import find_java


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_the_archive_that_was_made_for_the_tests_is_used(spark: SparkSession) -> None:
    java = find_java()
    archive = archive_of(java)
    asked, able = Path(sys.prefix, ".classes").exists(), (java.home / "lib/server/classes.jsa").exists()
    if not archive.is_file() and not (asked and able):
        pytest.skip("there is none: `make test` makes it where Java can")
    process = spark._jvm.java.lang.ProcessHandle.current().pid()
    assert str(archive) in Path(f"/proc/{process}/maps").read_text()
