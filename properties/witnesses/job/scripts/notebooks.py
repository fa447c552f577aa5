"""Stand-ins for a notebook's platform, such as `dbutils`, `display`, magics, and the other notebooks that a notebook
runs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ....system.ipynb import SUFFIX
from ....system.visible import visible
from ...spark.platform.connect import to_check
from .writes import Write

if TYPE_CHECKING:
    from .lifting import Lift

RUN = "__streamproof_run__"
"""The name of the function that runs another notebook instead of a magic."""
SECRET = "secret"
"""The value of each secret of a notebook."""
_MAGIC = re.compile(r"#\s*MAGIC\s+[%!]+(\w+)\b(.*)")
_RUN = re.compile(r"\s*(\"[^\"]+\"|'[^']+'|\S+)(.*)")
_PARAMETER = re.compile(r"\$(\w+)\s*=\s*(\"[^\"]*\"|'[^']*'|\S+)")
_SHELL = re.compile(r"[%!]+\w.*")
_NOTED = ("bash", "conda", "configure", "fs", "pip", "r", "scala", "script", "sh", "sql", "writefile")
"""Magics with an effect; other magics name the language of a cell."""


def as_python(text: str, note: Callable[[int, str], None]) -> str:
    """Return the text of an exported notebook, with calls in place of the magics that run other notebooks.

    Args:
        text: The text.
        note: Called with the number and text of each line that isn't run.
    """
    try:
        compile(text, "", "exec")
        magics = re.compile(r"(?!)")
    except (SyntaxError, ValueError):
        magics = _SHELL  # a notebook's cell magics, such as %pip
    lines = text.split("\n")
    for number, line in enumerate(lines):
        found = _MAGIC.match(line) or (magics.match(line) and re.match(r"%(run)\b(.*)", line))
        if found and found[1] == "run":
            lines[number] = f"{RUN}({found[2]!r})"
        elif found or magics.match(line):
            lines[number] = f"# {line}"
            shown = re.sub(r"#\s*MAGIC\s+", "", line)
            if not found or found[1] in _NOTED or shown.startswith("!"):
                note(number + 1, shown)
    return "\n".join(lines)


def notebook_of(given: str, folder: Path) -> tuple[Path | None, dict[str, str]]:
    """Return the file of a notebook that another notebook runs, or None if the file is missing, and its parameters."""
    found = _RUN.match(given)
    if found is None:
        return None, {}
    name = found[1].strip("\"'")
    parameters = {key: value.strip("\"'") for key, value in _PARAMETER.findall(found[2])}
    # A workspace path, such as /Repos/me/setup, may exist next to the notebook.
    places = [folder / name, folder / Path(name).name]
    files = [place.with_name(place.name + ending) for place in places for ending in (".py", SUFFIX, "")]
    return next((file for file in files if file.is_file() and file.suffix in (".py", SUFFIX)), None), parameters


class Notebook:
    """Stands in for IPython, which an exported notebook calls for magics.

    Args:
        lift: The run of the notebook.
        run: Runs another notebook.
    """

    def __init__(self, lift: Lift, run: Callable[[str], None]) -> None:
        self._lift, self._run = lift, run

    def __getattr__(self, name: str) -> Callable[..., None]:
        def skip(*arguments: Any) -> None:
            if name in ("run_line_magic", "magic") and arguments[:1] == ("run",):
                self._run(str(arguments[1]))
            else:
                self._lift.note(f"{visible(' '.join(map(str, arguments)))} isn't run")

        return skip


def display(lift: Lift, shown: Any = None, *arguments: Any, **named: Any) -> None:
    """Stand in for a notebook's `display`, which starts a query for a streaming DataFrame."""
    if hasattr(shown, "isStreaming"):
        name = str(named.get("streamName") or "")
        shown = to_check(shown)
        lift.writes.append(Write(shown, name=name, format="display" if shown.isStreaming else "shown", line=lift.line))


class _Group:
    """A part of `dbutils`, such as `dbutils.fs`: unknown methods do nothing, and the check records their calls."""

    def __init__(self, lift: Lift, name: str) -> None:
        self._lift, self._name = lift, name

    def __getattr__(self, name: str) -> Callable[..., None]:
        if name.startswith("__"):
            raise AttributeError(name)

        def skip(*arguments: Any, **named: Any) -> None:
            self._lift.note(f"dbutils.{self._name}.{name}(…) isn't run")

        return skip


class _Widgets(_Group):
    def __init__(self, lift: Lift) -> None:
        super().__init__(lift, "widgets")
        self.defaults: dict[str, str] = {}

    def text(self, name: str, defaultValue: Any = "", *arguments: Any, **named: Any) -> None:
        """Record a widget's default."""
        self.defaults.setdefault(name, str(defaultValue))

    dropdown = combobox = multiselect = text

    def get(self, name: str) -> str:
        """Return a widget's value: the user's value, or the default."""
        values = self.getAll()
        if name not in values:
            where = f"line {self._lift.line} of {self._lift.source.where}"
            raise self._lift.refuse(
                f"{where} asks for the widget {visible(name)}, which has no default: give its value, Script(…, "
                f"widgets={{{visible(name)!r}: …}})"
            )
        return values[name]

    getArgument = get

    def getAll(self) -> dict[str, str]:
        """Return the values of all widgets."""
        return {**self.defaults, **{name: str(value) for name, value in self._lift.source.widgets.items()}}

    def remove(self, name: str = "") -> None:
        """Leave a widget unchanged."""

    removeAll = remove


class _Files(_Group):
    def ls(self, path: str) -> list[Any]:
        """Return no files."""
        return []

    def mounts(self) -> list[Any]:
        """Return no mounted folders."""
        return []

    def head(self, file: str, *arguments: Any) -> str:
        """Return an empty text."""
        return ""


class _Secrets(_Group):
    def get(self, scope: str = "", key: str = "") -> str:
        """Return a placeholder of a secret."""
        return SECRET

    def getBytes(self, scope: str = "", key: str = "") -> bytes:
        """Return a placeholder of a secret."""
        return SECRET.encode()

    def list(self, scope: str = "") -> Sequence[Any]:
        """Return no secrets."""
        return []

    listScopes = list


class _Context:
    """Stands in for the context of a notebook on its platform."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *_: {"get": "", "toJson": "{}"}.get(name, self)


class _Notebooks(_Group):
    entry_point = _Context()

    def getContext(self) -> _Context:
        """Return the notebook's context, which is empty."""
        return self.entry_point

    def exit(self, value: Any = None) -> NoReturn:
        """End the notebook."""
        raise SystemExit(value)


class _TaskValues(_Group):
    def get(self, taskKey: str = "", key: str = "", default: Any = None, debugValue: Any = None) -> Any:
        """Return the default value, because no job runs the notebook."""
        return default if debugValue is None else debugValue

    def set(self, key: str = "", value: Any = None) -> None:
        """Ignore a value, because no job reads it."""


class _Jobs(_Group):
    def __init__(self, lift: Lift, name: str) -> None:
        super().__init__(lift, name)
        self.taskValues = _TaskValues(lift, f"{name}.taskValues")


class Utilities:
    """Stands in for `dbutils`.

    Args:
        lift: The run of the notebook.
    """

    def __init__(self, lift: Lift) -> None:
        self.widgets, self.fs, self.secrets = _Widgets(lift), _Files(lift, "fs"), _Secrets(lift, "secrets")
        self.notebook = _Notebooks(lift, "notebook")
        self.library, self.data = _Group(lift, "library"), _Group(lift, "data")
        self.jobs = _Jobs(lift, "jobs")
