"""Spark's AutoCDC under the rules of change data: its classes run on a catalog in memory that takes MERGE."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from streamproof.properties.system.installed.requirements import release

HERE = Path(__file__).parent
JARS = Path(pyspark.__file__).parent / "jars"


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the catalog's classes."""
    if not (compiler := shutil.which("javac")):
        pytest.skip("javac, which compiles the catalog, isn't installed: AutoCDC isn't run")
    if release(pyspark.__version__) < (4, 3):
        pytest.skip("PySpark has both types of AutoCDC from 4.3 on")
    classes = tmp_path_factory.mktemp("classes")
    command = [compiler, "-nowarn", "-cp", f"{JARS}/*", "-d", classes, HERE / "MergeCatalog.java"]
    subprocess.run(command, check=True, capture_output=True)
    return classes


@pytest.mark.weekly("AutoCDC is Spark's: our commits don't change it, and type 2 takes minutes")
@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("agrees 1", "conforms to scd1(keys=id, sequence_by=seq, deletes=op = 'D') on 50 histories"),
        ("agrees 2", "conforms to scd2(keys=id, sequence_by=seq, deletes=op = 'D') on 50 histories"),
        ("dies 1", "a crash (10 histories)"),
        ("dies 2", "a crash (10 histories)"),
        ("ties 1", "[['x'], ['x'], ['y']]"),
        ("ties 2", "[[], [], ['x']]"),
    ],
)
def test_auto_cdc_keeps_dimensions_as_the_meaning_has_them_but_for_ties(catalog: Path, step: str, says: str) -> None:
    environment = {**os.environ, "PYSPARK_SUBMIT_ARGS": f"--driver-class-path {catalog} pyspark-shell"}
    command = [sys.executable, HERE / "run_auto_cdc.py", step]
    done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    assert says in done.stdout, done.stdout + done.stderr
