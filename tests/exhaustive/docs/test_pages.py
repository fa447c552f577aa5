"""The documentation: its samples run, its commands exist, its histories give what it shows, its links work."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest
from doc_pages import BLOCKS, ROOT, blocks_of, pages_of_python, run_python, write_files
from streamproof.properties.cli import app


@pytest.mark.parametrize("page", pages_of_python("tlc"))
def test_python_runs_on_tlc(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    run_python(page, {"__name__": "sample"})


def as_pattern(shown: list[str]) -> str:
    """Return a pattern of what is shown as printed, in which a line `…` stands for what is left out."""
    return "".join("(?s:.*)" if line == "…" else re.escape(f"{line}\n") for line in shown)


# The command lines of a page, those of TLC apart.
RUN = sorted({(block.page, block.notes["run"] == "tlc") for block in BLOCKS if "run" in block.notes})


@pytest.mark.parametrize(("page", "on_tlc"), RUN, ids=[f"{page}-{on_tlc}" for page, on_tlc in RUN])
@pytest.mark.in_ci(*[f"{page}-{on_tlc}" for page, on_tlc in RUN if page != "README.md"])
def test_commands_print_what_is_shown(
    page: str, on_tlc: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = blocks_of(page)
    write_files(blocks, tmp_path)
    (tmp_path / "tests").symlink_to(ROOT / "tests")
    monkeypatch.chdir(tmp_path)
    wrong = []
    for block in blocks:
        for command, shown in (
            block.commands if "run" in block.notes and (block.notes["run"] == "tlc") == on_tlc else []
        ):
            monkeypatch.setattr(sys, "argv", shlex.split(command))
            with pytest.raises(SystemExit) as ended:
                app.main()
            out, err = capsys.readouterr()
            expected = block.notes["run"].removeprefix("exit ")
            if expected != "any exit" and ended.value.code != (int(expected) if expected.isdigit() else 0):
                wrong.append(f"{block}: {command} exits {ended.value.code}: {err}")
            elif shown and not re.fullmatch(as_pattern(shown), out):
                wrong.append(f"{block}: {command} prints\n{out}")
    assert wrong == []
