"""The public names: what `import streamproof` gives, and what it costs."""

from __future__ import annotations

import ast
import inspect
import pickle
import subprocess
import sys
import tomllib
import traceback
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
import streamproof
from paths import ROOT
from streamproof.properties.system.arguments import checked
from streamproof.reference.core.operator import OPERATORS

HEAVY = ("pyspark", "pandas", "numpy", "pyarrow", "duckdb", "hypothesis", "typer", "rich", "pytest", "jinja2")


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, timeout=600)


@pytest.mark.parametrize("name", streamproof.__all__)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(streamproof, name) is not None
    assert name in dir(streamproof)


@pytest.mark.parametrize("name", [name for name in streamproof.__all__ if name != "__version__"])
def test_every_public_name_is_documented_under_the_name_that_it_has(name: str) -> None:
    found = getattr(streamproof, name)
    assert inspect.getdoc(found)
    assert found.__name__ == name


def test_the_names_that_type_checkers_see_are_those_that_are_imported() -> None:
    tree = ast.parse(Path(streamproof.__file__).read_text(encoding="utf-8"))
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        (node.module, alias.name, alias.asname or alias.name)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    imported = {
        (module.removeprefix("."), name, name) for module, names in streamproof._HOMES.items() for name in names
    }
    assert seen == imported
    assert {name for _, _, name in seen} | {"__version__"} == {*streamproof.__all__}


def test_everything_public_is_named_in_the_documentation_of_the_package() -> None:
    assert streamproof.__doc__ is not None
    missing = [name for name in streamproof.__all__ if f"`{name}`" not in streamproof.__doc__]
    assert missing == ["__version__"]


def test_the_definition_of_every_operator_is_public() -> None:
    assert {operator.definition.__name__ for operator in OPERATORS.values()} <= {*streamproof.__all__}


def test_importing_the_package_imports_nothing_heavy_and_nothing_of_its_own() -> None:
    done = run("-c", "import sys, streamproof; print([*sys.modules])")
    modules = ast.literal_eval(done.stdout)
    assert not {*HEAVY} & {*modules}
    assert [module for module in modules if module.startswith("streamproof.")] == []


def test_histories_are_played_without_anything_heavy() -> None:
    done = run(
        "-c",
        "import sys; from streamproof import History, Operator, Record, SessionWindows, play; print([*sys.modules])",
    )
    assert not {*HEAVY} - {"pytest"} & {*ast.literal_eval(done.stdout)}


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'streamproof' has no attribute 'nothing'"):
        streamproof.nothing  # noqa: B018
    with pytest.raises(ImportError, match="cannot import name 'nothing'"):
        exec("from streamproof import nothing")


def test_the_version_is_that_of_the_installed_package() -> None:
    assert streamproof.__version__ == version("streamproof")


def test_the_package_is_typed() -> None:
    assert Path(streamproof.__file__).with_name("py.typed").is_file()


def test_the_package_is_run_as_the_command() -> None:
    done = run("-m", "streamproof", "--help")
    assert done.returncode == 0, done.stderr
    assert "check" in done.stdout


def test_every_folder_of_modules_is_listed_as_a_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["setuptools"]
    folders = {
        ".".join((package, *file.parent.relative_to(ROOT / home).parts))
        for package, home in project["package-dir"].items()
        for file in (ROOT / home).rglob("*.py")
    }
    assert sorted(project["packages"]) == sorted(folders)


def test_errors_are_named_by_the_module_from_which_users_import_them() -> None:
    errors = [one for name in streamproof.__all__ if isinstance(one := getattr(streamproof, name), type)]
    errors = [one for one in errors if issubclass(one, Exception)]
    assert len(errors) == 6
    assert {one.__module__ for one in errors} == {"streamproof"}
    assert pickle.loads(pickle.dumps(streamproof.BadInput("no"))).message == "no"


def failing(clicks: Any) -> Any:
    return clicks["nope"]


def test_a_refusal_has_the_users_lines_alone_in_its_traceback() -> None:
    with pytest.raises(streamproof.BadInput) as raised:
        streamproof.check_job(failing, streamproof.Input("user string", key="user"), expect=failing, histories=0)
    own = [entry.path.name for entry in raised.traceback]
    assert own == ["test_door.py", "arguments.py"]  # which pytest hides

    @checked
    def call(function: Any) -> Any:
        try:
            return function({})
        except KeyError as error:
            raise streamproof.BadInput("it failed") from error

    with pytest.raises(streamproof.BadInput) as raised:
        call(failing)
    cause = raised.value.__cause__
    assert isinstance(cause, KeyError)
    assert [frame.name for frame in traceback.extract_tb(cause.__traceback__)][-1] == "failing"
