"""The structure of the packages: no file imports itself by way of others, and no folder has more modules than fit."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from paths import ROOT

PACKAGES = ("reference", "spark_impl", "properties", "specs", "streamproof", "benchmarks")
MOST_MODULES = 15


def modules(root: Path) -> dict[str, Path]:
    """Return the files of the packages by the names of their modules, those of packages included."""
    found = {}
    for file in (file for package in PACKAGES for file in (root / package).rglob("*.py")):
        path = file.relative_to(root).with_suffix("")
        parts = path.parts if path.parts[0] in ("streamproof", "benchmarks") else ("streamproof", *path.parts)
        found[".".join(parts).removesuffix(".__init__")] = file
    return found


def imported(module: str, files: Mapping[str, Path]) -> Iterator[str]:
    """Yield the modules of the packages that a module imports: at its top, for types alone, and in functions."""
    package = module if files[module].stem == "__init__" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(files[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in files)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: package.count(".") + 2 - node.level] if node.level else []
            base = ".".join([*above, *filter(None, [node.module])])
            names = (f"{base}.{alias.name}" for alias in node.names)
            yield from (name if name in files else base for name in names if name in files or base in files)


def circle(root: Path) -> list[str]:
    """Return the modules of a circle, each imported by the next; the last is the first. Empty without a circle."""
    files = modules(root)
    try:
        TopologicalSorter({module: {*imported(module, files)} - {module} for module in files}).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def large_folders(root: Path) -> dict[str, int]:
    """Return the folders with more modules than fit, with the number of their modules."""
    counts = Counter(file.parent for file in modules(root).values() if file.stem != "__init__")
    return {str(folder.relative_to(root)): count for folder, count in counts.items() if count > MOST_MODULES}


def test_no_file_imports_itself_by_way_of_others() -> None:
    assert circle(ROOT) == []


def test_no_folder_has_more_than_fifteen_modules() -> None:
    assert large_folders(ROOT) == {}, "divide it by what its modules are for"


@pytest.mark.parametrize(
    "back",
    [
        "from .. import a\n",
        "from ..a import x\n",
        "from streamproof.properties.a import x\n",
        "import streamproof.properties.a\n",
        "if TYPE_CHECKING:\n    from ..a import X\n",
        "def late():\n    from ..a import x\n",
    ],
)
def test_a_circle_is_found_whatever_its_imports_look_like(tmp_path: Path, back: str) -> None:
    inner = tmp_path / "properties" / "inner"
    inner.mkdir(parents=True)
    (inner / "__init__.py").touch()
    (inner.parent / "a.py").write_text("from .inner import b\nfrom .c import x\nimport os\n")
    (inner.parent / "c.py").touch()
    (inner / "b.py").write_text("from ..c import x\n")
    assert circle(tmp_path) == []
    (inner / "b.py").write_text(back)
    assert {*circle(tmp_path)} == {"streamproof.properties.a", "streamproof.properties.inner.b"}


def test_a_sixteenth_module_is_found(tmp_path: Path) -> None:
    (tmp_path / "benchmarks" / "inner").mkdir(parents=True)
    for name in ("__init__", "inner/other", *map(str, range(MOST_MODULES))):
        (tmp_path / "benchmarks" / f"{name}.py").touch()
    assert large_folders(tmp_path) == {}
    (tmp_path / "benchmarks" / "sixteenth.py").touch()
    assert large_folders(tmp_path) == {"benchmarks": 16}
