"""What is no module, or no configuration, is refused before Java starts, by file and line."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest
from streamproof.specs.pytla.errors import ConfigurationFailed, ParseFailed
from streamproof.specs.pytla.inputs import sources
from streamproof.specs.pytla.inputs.configuration import Configuration
from streamproof.specs.pytla.inputs.modules import Modules, read_modules

GOOD = "---- MODULE Good ----\nVARIABLE x\nInit == x = 0\nNext == x' = x\n====\n"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    """A jar without standard modules."""
    with zipfile.ZipFile(tmp_path / "some.jar", "w") as archive:
        archive.writestr("nothing", "")
    return tmp_path / "some.jar"


def read(folder: Path, jar: Path, content: str | bytes) -> Modules:
    path = folder / "Good.tla"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_modules(path, jar)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", r"Good\.tla:1: it isn't a TLA\+ module: it has no line `---- MODULE Good ----`"),
        ("hello\nthere\n", r"Good\.tla:1: it isn't a TLA\+ module"),
        (GOOD.replace("Good", "Other"), r"Good\.tla:1:13: the module in it is named Other: a file and its module"),
        ("\n" + GOOD.replace("Good", "go-od"), r"Good\.tla:2:13: go-od isn't a module name"),
        (GOOD.encode("utf-16"), r"Good\.tla:1: it is UTF-16, which TLC can't read: save it as UTF-8"),
        (b"---- MODULE\nGood \x00\xff ----", r"Good\.tla:2: it has a NUL byte, so it isn't text"),
    ],
)
def test_what_is_no_module_is_refused(tmp_path: Path, jar: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(ParseFailed, match=said):
        read(tmp_path, jar, content)


@pytest.mark.parametrize(
    "content",
    [
        GOOD.encode("utf-8-sig"),
        GOOD.replace("\n", "\r\n"),
        f"A preface, with (* in it.\n{GOOD}(* the end *)\n",
        GOOD.replace(" Good ", "Good").replace("MODULE", "MODULE "),
        "---- MODULE Good ----\nVARIABLE x\n====\n",
    ],
)
def test_what_tlc_takes_is_taken(tmp_path: Path, jar: Path, content: str | bytes) -> None:
    assert read(tmp_path, jar, content).complete


def test_a_module_that_is_extended_is_refused_alike(tmp_path: Path, jar: Path) -> None:
    (tmp_path / "Empty.tla").touch()
    with pytest.raises(ParseFailed, match=r"Empty\.tla:1: it isn't a TLA\+ module"):
        read(tmp_path, jar, GOOD.replace("VARIABLE", "EXTENDS Empty\nVARIABLE"))


def test_a_file_without_an_end_is_refused(tmp_path: Path, jar: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "LARGEST", 1 << 20)
    with pytest.raises(ParseFailed, match="larger than 1 MiB, too large for a module"):
        read(tmp_path, jar, GOOD + " " * (1 << 20))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("INIT Init\n".encode("utf-16"), r"Good\.cfg:1: it is UTF-16"),
        (b"INIT Init\n\0\1\2", r"Good\.cfg:2: it has a NUL byte, so it isn't text: name a configuration"),
    ],
)
def test_what_is_no_configuration_is_refused(tmp_path: Path, content: bytes, said: str) -> None:
    (tmp_path / "Good.cfg").write_bytes(content)
    with pytest.raises(ConfigurationFailed, match=said):
        Configuration(tmp_path / "Good.cfg")
