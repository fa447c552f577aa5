"""Jupyter notebooks as scripts: their code cells, joined, and the cell of each line."""

from __future__ import annotations

import json
import re
import tokenize
from functools import lru_cache
from pathlib import Path
from typing import Any, Self

from ...reference.core.errors import BadInput
from .visible import visible, visible_path

SUFFIX = ".ipynb"
_MAGIC = re.compile(r"[%!]+\w.*")
_AUTOMATIC = re.compile(r"(?:pip3?|conda|mamba|cat|cd|cp|ls|mkdir|mv|rm)\s+[\w./~-].*")
"""Commands that IPython takes as magics without a sign."""
_CELL_MAGIC = re.compile(r"(%%?)(\w+)\b(.*)")
_PYTHON = ("capture", "debug", "local", "prun", "pyspark", "python", "python3", "spark", "time", "timeit")
"""Magics of cells that contain Python below the magic."""
_OF_A_LINE = ("cd", "conda", "config", "env", "fs", "load_ext", "matplotlib", "pip", "reload_ext", "run", "set_env")
"""Single-`%` magics that may precede Python; others declare the cell's language."""


class NotebookLine(int):
    """A line's number in a notebook's text; messages show its number within the cell.

    Attributes:
        cell: The number of the line's cell among the code cells.
        first: The number of the first line of the line's cell.
    """

    cell: int
    first: int

    def __new__(cls, number: int, cell: int, first: int) -> Self:
        """Make it."""
        line = super().__new__(cls, number)
        line.cell, line.first = cell, first
        return line

    def __getnewargs__(self) -> tuple[int, int, int]:  # type: ignore[override]
        """Return the arguments of `__new__`, for copies."""
        return int(self), self.cell, self.first

    def __str__(self) -> str:
        """Return the line's place in its cell."""
        return f"{self - self.first + 1} of code cell {self.cell}"

    def __format__(self, form: str) -> str:
        """Return the line's place in its cell."""
        return str(self)


def text_of_notebook(path: Path) -> str:
    """Return the code cells of a notebook as Python; magics become comments, as in Databricks' exports.

    Raises:
        BadInput: The file isn't a Python notebook, or has an old format.
    """
    return "\n".join(text for text in _cells(str(path), path.stat().st_mtime_ns))


def line_in(file: str, number: int) -> int:
    """Return the number of a line of a script; in a notebook, a `NotebookLine`."""
    path = Path(file)
    if path.suffix != SUFFIX or number < 1 or not path.is_file():
        return number
    first = 1
    for cell, text in enumerate(_cells(file, path.stat().st_mtime_ns), 1):
        after = first + text.count("\n") + 1
        if number < after:
            return NotebookLine(number, cell, first)
        first = after
    return number


@lru_cache(8)
def _cells(file: str, mtime_ns: int) -> list[str]:
    """Return the text of each code cell."""
    shown = visible_path(file)
    try:
        notebook = json.loads(Path(file).read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{shown} isn't a Jupyter notebook ({visible(error)}): give one, or a Python file") from None
    if not isinstance(notebook, dict) or not isinstance(notebook.get("cells"), list):
        raise BadInput(f"{shown} isn't a notebook of Jupyter's format 4: save it in a newer Jupyter, or as Python")
    language = _language(notebook)
    if language != "python":
        raise BadInput(f"{shown} is a notebook of {visible(language)}: give a Python notebook")
    cells = [one for one in notebook["cells"] if isinstance(one, dict) and one.get("cell_type") == "code"]
    return [_as_python("".join(one.get("source") or "")) for one in cells]


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata") or {}
    kernel, language = metadata.get("kernelspec") or {}, metadata.get("language_info") or {}
    named = str(kernel.get("language") or language.get("name") or "python").lower()
    return "python" if named in ("python", "ipython", "pyspark") else named


def _as_python(cell: str) -> str:
    lines = cell.split("\n")
    begun = next((number for number, line in enumerate(lines) if line.strip()), 0)
    magic = _CELL_MAGIC.fullmatch(lines[begun].strip())
    if magic is None or (magic[1] == "%" and magic[2] in _OF_A_LINE):
        return "\n".join(map(_without_magic, lines) if _needs_magic(cell) else lines)
    first = f"# MAGIC %{magic[2]}{magic[3]}"
    rest = lines[begun + 1 :]
    if magic[2] in _PYTHON:
        return "\n".join(
            [*lines[:begun], first, *_as_python("\n".join(rest)).split("\n")] if rest else [*lines[:begun], first]
        )
    return "\n".join([*lines[:begun], first, *(f"# {line}" for line in rest)])


def _without_magic(line: str) -> str:
    if _MAGIC.match(line):
        return f"# MAGIC {line}"
    return f"# MAGIC %{line}" if _AUTOMATIC.fullmatch(line) and _needs_magic(line) else line


def _needs_magic(cell: str) -> bool:
    try:
        compile(cell, "", "exec")
    except (SyntaxError, ValueError):
        return True
    return False


def source_of(path: Path) -> str:
    """Return the text of a notebook, or of a Python file in its declared encoding.

    Raises:
        SyntaxError: The encoding is unknown, or the file isn't in this encoding.
        BadInput: The file isn't a Python notebook.
    """
    if path.suffix == SUFFIX:
        return text_of_notebook(path)
    with tokenize.open(path) as file:
        return file.read()
