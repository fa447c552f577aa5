"""The samples that are test modules: each is run as it stands, on one Spark session, and prints what its page shows."""

from __future__ import annotations

import inspect
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from doc_pages import MODULES, ROOT, Block, blocks_of, printed_by, write_files
from streamproof import check_job, invariants, upgrade
from streamproof.properties.checking.jobs import smallest
from streamproof.properties.witnesses.spark.platform.workers import import_as_here

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def one_line(text: str) -> str:
    """Return text without its line breaks, which a page has elsewhere than a terminal."""
    return " ".join(text.split())


@pytest.mark.parametrize("module", MODULES, ids=str)
@pytest.mark.in_ci("docs/jobs.md:9", "docs/start.md:45", "docs/start.md:85", "docs/start.md:115")
def test_a_test_module_does_what_its_page_says(
    module: Block,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = set(sys.modules)
    write_files([block for block in blocks_of(module.page) if block.line <= module.line], tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(smallest, "SHRINKING_S", 600)  # what is printed is the smallest, however busy the machine is
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(os.fspath(ROOT / "examples"))
    import_as_here(spark)  # a suite's workers start in its folder; these have started elsewhere
    names: dict[str, Any] = {"__name__": module.notes["file"].removesuffix(".py")}
    exec(compile(module.text, module.notes["file"], "exec"), names)
    checks = {"check_job": check_job, "invariants": invariants, "upgrade": upgrade}
    given = {**checks, "spark": spark}
    said, failed = "", []
    for name, test in names.items():
        if name.startswith("test_"):
            try:
                test(**{one: given[one] for one in inspect.signature(test).parameters})
            except AssertionError as error:
                failed.append(name)
                said += f"{error}\n"
            finally:
                for query in spark.streams.active:
                    query.stop()
    for loaded in set(sys.modules) - before:  # another page may have a module of the same name
        if (path := getattr(sys.modules[loaded], "__file__", None)) and Path(path).is_relative_to(tmp_path):
            del sys.modules[loaded]
    said = capsys.readouterr().out + said
    assert failed == module.notes.get("fails", "").replace(",", " ").split(), said
    shown = printed_by(module)
    if shown is not None:
        parts = [one_line(part) for part in shown.text.split("\n…\n")]
        assert [part for part in parts if part not in one_line(said)] == [], said
