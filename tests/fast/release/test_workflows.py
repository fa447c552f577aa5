"""The action, the workflow and the hooks: each command, option, input and file that they name exists."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from doc_pages import ROOT, blocks_of, text_of
from streamproof.properties.cli.app import app

yaml = pytest.importorskip("yaml", reason="comes with the extra tests")
ACTION = yaml.safe_load(text_of("action.yml"))
HOOKS = yaml.safe_load(text_of(".pre-commit-config.yaml"))
USED = [*ACTION["runs"]["steps"], *yaml.safe_load(text_of(".github/workflows/ci.yml"))["jobs"]["ci"]["steps"]]


def step(name: str) -> dict[str, Any]:
    return next(one for one in ACTION["runs"]["steps"] if one.get("name") == name)


def test_every_input_of_the_action_is_used_and_every_one_that_is_used_exists() -> None:
    assert {*re.findall(r"inputs\.([\w-]+)", str(ACTION["runs"]))} == {*ACTION["inputs"]}
    assert {*re.findall(r"inputs\.([\w-]+)", str(ACTION["outputs"]))} <= {*ACTION["inputs"]}
    assert all(one["description"] for one in ACTION["inputs"].values())
    assert [name for name, one in ACTION["inputs"].items() if "default" not in one] == ["jobs"]


def test_each_step_runs_in_a_shell_or_uses_an_action_of_a_version() -> None:
    for one in USED:
        assert ("run" in one) != ("uses" in one)
        assert re.fullmatch(r"[\w-]+/[\w./-]+@v\d+", one.get("uses", "a/b@v1"))
    assert [one for one in ACTION["runs"]["steps"] if "run" in one and one["shell"] != "bash"] == []


def test_no_input_is_pasted_into_a_script() -> None:
    assert [one["run"] for one in USED if "${{" in one.get("run", "")] == []


def test_the_command_of_the_action_has_its_options() -> None:
    (line,) = (line for line in step("Check")["run"].splitlines() if line.strip().startswith("streamproof "))
    words = [word for word in shlex.split(line.partition("<")[0]) if word != "${options[@]}"]
    command = typer.main.get_command(app).commands[words[1]]  # type: ignore[attr-defined]
    command.make_context(words[1], words[2:])


FAKE = """#!/bin/sh
echo "$*" >> "$LOG"
cat > /dev/null
case $2 in *conforms*) exit 0;; *violated*) exit 1;; *unclear*) exit 2;; *) exit 3;; esac
"""


@pytest.mark.parametrize(
    ("jobs", "code"),
    [
        (["conforms.py"], 0),
        (["unclear.py", "conforms.py"], 2),
        (["violated.py", "unclear.py"], 1),
        (["unclear.py", "violated.py", "conforms.py"], 1),
        (["broken.py", "violated.py", "unclear.py"], 3),
        (["violated.py", "", "shop.jobs:broken"], 3),
    ],
)
def test_every_job_is_checked_and_the_worst_verdict_is_the_exit(tmp_path: Path, jobs: list[str], code: int) -> None:
    (tmp_path / "streamproof").write_text(FAKE)
    (tmp_path / "streamproof").chmod(0o755)
    log = tmp_path / "log"
    given = {"JOBS": "\n".join(jobs) + "\n", "OPTIONS": "--seed 7", "REPORT": "out", "LOG": str(log)}
    path = f"{tmp_path}{os.pathsep}{os.environ['PATH']}"
    # As GitHub runs a step of bash.
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step("Check")["run"]]
    done = subprocess.run(command, env={**os.environ, **given, "PATH": path}, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    folders = [re.sub("[/:]", "-", job) for job in jobs if job]
    wanted = [f"check {job} --seed 7 --report out/{to}" for job, to in zip(filter(None, jobs), folders, strict=True)]
    assert log.read_text().splitlines() == wanted


def test_the_workflow_runs_what_continuous_integration_runs() -> None:
    (command,) = (one["run"] for one in USED if one.get("run", "").startswith(".ci"))
    assert os.access(ROOT / command, os.X_OK)


def test_the_page_shows_the_action_with_inputs_that_it_has() -> None:
    (block,) = (block for block in blocks_of("docs/verdicts.md") if block.language == "yaml")
    (used,) = (
        one for one in yaml.safe_load(block.text)["jobs"]["check"]["steps"] if "streamproof@" in one.get("uses", "")
    )
    assert {*used["with"]} <= {*ACTION["inputs"]}
    table = re.findall(r"^\| (`.*?`) \|", text_of("docs/verdicts.md").split("\n## GitHub Actions\n")[1], re.MULTILINE)
    assert [name for cell in table for name in re.findall(r"`([\w-]+)`", cell)] == [*ACTION["inputs"]]


def hook(name: str) -> dict[str, Any]:
    return next(one for repo in HOOKS["repos"] for one in repo["hooks"] if one["id"] == name)


@pytest.mark.parametrize(
    ("message", "is_refused"),
    [
        ("x" * 72, False),
        ("x" * 73, True),
        ("Short subject\n\n" + "a long line of the body " * 9, False),
        ("x" * 72 + "\n" + "y" * 72, False),
    ],
)
def test_a_subject_of_over_72_characters_is_refused(message: str, is_refused: bool) -> None:
    subject = hook("subject")
    assert (subject["language"], subject["args"], subject["stages"]) == ("pygrep", ["--multiline"], ["commit-msg"])
    assert "commit-msg" in HOOKS["default_install_hook_types"]
    # As pygrep searches a file with --multiline.
    found = re.compile(subject["entry"].encode(), re.MULTILINE | re.DOTALL).search(message.encode())
    assert (found is not None) == is_refused


def test_the_hooks_run_the_ruff_that_make_lint_runs() -> None:
    (repo,) = (one for one in HOOKS["repos"] if "ruff" in one["repo"])
    assert f"ruff=={repo['rev'].removeprefix('v')}\n" in text_of("constraints.txt")
