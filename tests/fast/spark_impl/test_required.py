"""The operators refuse an older PySpark, in one message, before anything is run."""

from __future__ import annotations

import pytest
from streamproof import MissingTool, check
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
