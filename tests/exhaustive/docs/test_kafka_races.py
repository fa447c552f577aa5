"""The Java program that docs/kafka.md links to: on a broker it ends as the page says."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest
from doc_pages import ROOT, text_of
from streamproof.properties.witnesses.kafka.jvm import kafka_jars
from streamproof.properties.witnesses.kafka_broker.broker import broker_jars, own_broker
from streamproof.reference.core.errors import MissingTool
from streamproof.specs.java import find_java

PAGE, PROGRAM = "docs/kafka.md", ROOT / "specs/ForeignKeyJoin/StaleForeignKeyJoin.java"
SECONDS = 300


@pytest.mark.weekly("a broker and a Java compiler, for a page that seldom changes")
def test_the_page_s_program_shows_a_row_that_is_gone_for_ever(tmp_path: Path) -> None:
    java = find_java().executable
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    if "jdk.compiler" not in modules:
        pytest.skip(f"{java} has no compiler (jdk.compiler)")
    try:
        jars = [f"{folder}{os.sep}*" for folder in (broker_jars(), kafka_jars())]
    except MissingTool as error:
        pytest.skip(str(error))
    (printed,) = re.findall(r"It ends with `(was .*?)`", text_of(PAGE))
    with own_broker() as cluster:
        done = subprocess.run(
            [java, "-cp", os.pathsep.join(jars), PROGRAM, cluster.bootstrap],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    assert f"expected [a|r1, x, null], {printed}\n" in done.stdout, done.stderr[-2000:]
