"""Environments of other PySparks, made by the real pip."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamproof import BadInput
from streamproof.properties.system.installed import environments
from streamproof.properties.system.installed.environments import python_of


def test_a_version_that_pip_does_not_find_is_refused_by_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(environments, "PYSPARKS", {"4.1": (environments._HERE,)})
    with pytest.raises(BadInput, match=r"PySpark 4\.1\.77 can't be .*: pip install: .*pyspark==4\.1\.77: give a"):
        python_of("4.1.77")
    assert {path.suffix for path in (tmp_path / "streamproof" / "environments").iterdir()} <= {".lock"}
