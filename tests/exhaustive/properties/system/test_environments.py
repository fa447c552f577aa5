"""Environments of other PySparks: which are refused, and that nothing half-made is left."""

from __future__ import annotations

from pathlib import Path

import pytest
from streamproof import BadInput
from streamproof.properties.system.installed import environments
from streamproof.properties.system.installed.environments import python_of


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the environments of this test."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "streamproof" / "environments"


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if not path.name.endswith(".lock"))


def test_a_version_that_pip_does_not_find_is_refused_by_its_last_line(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(environments, "PYSPARKS", {"4.1": (environments._HERE,)})
    with pytest.raises(BadInput, match=r"PySpark 4\.1\.77 can't be .*: pip install: .*pyspark==4\.1\.77: give a"):
        python_of("4.1.77")
    assert names(cache) == []
