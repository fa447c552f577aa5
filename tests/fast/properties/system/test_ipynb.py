"""Notebooks of Jupyter's as scripts: their cells joined, their magics as comments, and the cell of each line."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from streamproof import Script
from streamproof.properties.generators.columns.inputs import Input
from streamproof.properties.system.ipynb import line_in, text_of_notebook
from streamproof.properties.witnesses.job.scripts.notebooks import as_python, notebook_of
from streamproof.reference.core.errors import BadInput


def notebook(folder: Path, *cells: str | list[str], **more: Any) -> Path:
    own = [{"cell_type": "code", "source": cell, "outputs": [], "metadata": {}} for cell in cells]
    text = {"cell_type": "markdown", "source": "# Text\n\nthat is no code"}
    path = folder / "job.ipynb"
    path.write_text(json.dumps({"cells": [text, *own, text], "nbformat": 4, "metadata": {}, **more}))
    return path


def test_the_code_cells_run_one_after_the_other(tmp_path: Path) -> None:
    path = notebook(tmp_path, "a = 1\nb = 2", "", ["c = [\n", "    a,\n", "]\n"], "d = b")
    assert text_of_notebook(path) == "a = 1\nb = 2\n\nc = [\n    a,\n]\n\nd = b"
    names: dict[str, Any] = {}
    exec(text_of_notebook(path), names)
    assert (names["c"], names["d"]) == ([1], 2)


def test_each_line_is_shown_with_its_cell(tmp_path: Path) -> None:
    cells = ["a = 1\nb = 2", "", "c = 3", "%pip install x\n\nd = 4"]
    path = notebook(tmp_path, *cells)
    expected = [
        f"{at} of code cell {cell}" for cell, own in enumerate(cells, 1) for at in range(1, own.count("\n") + 2)
    ]
    lines = [line_in(str(path), number) for number in range(1, len(expected) + 1)]
    assert [f"{line}" for line in lines] == [str(line) for line in lines] == expected
    assert lines == [*range(1, len(expected) + 1)]
    assert [str(copied(lines[2])) for copied in (copy.deepcopy, lambda one: pickle.loads(pickle.dumps(one)))] == [
        expected[2]
    ] * 2
    # A line that no cell has, and another file's.
    assert [str(line_in(str(path), number)) for number in (0, 8)] == ["0", "8"]
    assert [str(line_in(f"{tmp_path}/{name}", 1)) for name in ("job.py", "no.ipynb")] == ["1", "1"]


@pytest.mark.parametrize(
    ("cell", "run", "noted"),
    [
        ("%pip install x\na = 1", "a = 1", ["%pip install x"]),
        ("!ls\na = 1", "a = 1", ["!ls"]),
        ("pip install x-y\na = 1", "a = 1", ["%pip install x-y"]),
        ("pip = mv = 2\nmv or 2\n%pip install x\na = 1", "pip = mv = 2\nmv or 2\na = 1", ["%pip install x"]),
        ("%matplotlib inline\na = 1", "a = 1", []),
        ("%%time\na = 1", "a = 1", []),
        ("\n%%capture out\n%pip install x\na = 1", "a = 1", ["%pip install x"]),
        ("%python\na = 1", "a = 1", []),
        ("%sql\nSELECT 1", "", ["%sql"]),
        ("%%bash -e\nls", "", ["%bash -e"]),
        ("%%sql SELECT 1", "", ["%sql SELECT 1"]),
        ("%%configure -f\n{}", "", ["%configure -f"]),
        ("%md\nSome *text*!", "", []),
        ("%%html\n<b>!</b>", "", []),
        ("%run ./setup $a=1\na = 1", "__streamproof_run__(' ./setup $a=1')\na = 1", []),
        ("a = 7 \\\n%3", "a = 7 \\\n%3", []),
        ('text = """\n%sql\n"""', 'text = """\n%sql\n"""', []),
    ],
)
def test_a_magic_is_left_out_and_another_language_with_its_cell(
    cell: str, run: str, noted: list[str], tmp_path: Path
) -> None:
    path, notes = notebook(tmp_path, "before = 1", cell, "after = 1"), list[tuple[int, str]]()
    lines = as_python(text_of_notebook(path), lambda number, line: notes.append((number, line))).split("\n")
    assert [line for line in lines if line.strip() and not line.startswith("#")] == [
        *("before = 1", *(run.split("\n") if run else ()), "after = 1")
    ]
    assert len(lines) == cell.count("\n") + 3
    assert [line for _, line in notes] == noted
    assert {line_in(str(path), number).cell for number, _ in notes} <= {2}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "job.ipynb isn't a Jupyter notebook (Expecting property name"),
        ("[]", "job.ipynb isn't a notebook of Jupyter's format 4: save it"),
        ('{"worksheets": []}', "job.ipynb isn't a notebook of Jupyter's format 4: save it"),
        ('{"cells": [], "metadata": {"kernelspec": {"language": "scala"}}}', "job.ipynb is a notebook of scala: give"),
        ('{"cells": [], "metadata": {"language_info": {"name": "R"}}}', "job.ipynb is a notebook of r: give"),
    ],
)
def test_a_file_that_is_no_notebook_of_python_is_refused_in_a_line(text: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "job.ipynb").write_text(text)
    with pytest.raises(BadInput) as refusal:
        Script(tmp_path / "job.ipynb", {"orders": Input("id string, at timestamp", key="id")})
    assert reason in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_notebook_runs_another_one_beside_it(tmp_path: Path) -> None:
    path = notebook(tmp_path, "a = 1")
    for given in (" ./job", " job.ipynb $a=1", ' "./job"'):
        assert notebook_of(given, tmp_path)[0] == path
    (tmp_path / "job.py").write_text("a = 1")
    assert notebook_of(" ./job", tmp_path)[0] == tmp_path / "job.py"
