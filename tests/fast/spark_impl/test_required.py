"""The operators refuse an older PySpark, in one message, before anything is run."""

from __future__ import annotations

import pytest
import streamproof
from streamproof import MissingTool, check
from streamproof.properties.cli.failures import explained
from streamproof.reference.core.errors import missing_spark, needing_spark
from streamproof.spark_impl.runtime import required


@pytest.mark.parametrize("found", ["3.5.9", "4.0.0", "4.2.1"])
def test_an_older_pyspark_is_refused_with_what_it_is_good_for(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(required, "version", lambda name: found)
    with pytest.raises(MissingTool, match=rf"need PySpark 4\.3 or newer, but {found} is installed: .*check_job"):
        check("session_windows", histories=10)


@pytest.mark.parametrize("found", ["4.3.0", "4.3.0.dev1", "4.10.0", "5.0.0"])
def test_the_newest_and_those_after_it_are_not_refused(monkeypatch: pytest.MonkeyPatch, found: str) -> None:
    monkeypatch.setattr(required, "version", lambda name: found)
    required.require_pyspark()


@pytest.mark.parametrize("module", ["pyspark", "pyspark.sql.functions", "py4j"])
def test_an_import_without_pyspark_names_the_extra_that_brings_it(module: str) -> None:
    remedy = r"needs PySpark, which isn't installed: .* install 'streamproof\[spark\]'$"
    with pytest.raises(MissingTool, match=remedy), needing_spark():
        raise ModuleNotFoundError(f"No module named {module!r}", name=module)
    assert explained(ModuleNotFoundError(name=module)).message == str(missing_spark(ModuleNotFoundError(name=module)))


@pytest.mark.parametrize("error", [ModuleNotFoundError("delta", name="delta"), ImportError("torn", name="pyspark")])
def test_another_import_that_fails_is_not_blamed_on_pyspark(error: ImportError) -> None:
    assert missing_spark(error) is None
    with pytest.raises(ImportError) as raised, needing_spark():
        raise error
    assert raised.value is error


def test_a_public_name_whose_module_needs_pyspark_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, package: str) -> None:
        raise ModuleNotFoundError(name="pyspark")

    monkeypatch.setattr(streamproof, "import_module", missing)
    with pytest.raises(MissingTool, match="this needs PySpark"):
        streamproof.__getattr__("Input")
