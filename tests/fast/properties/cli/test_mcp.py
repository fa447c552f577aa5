"""`streamproof mcp`: its tools, by the SDK's client in memory."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from streamproof.properties.cli.commands import mcp as command
from streamproof.reference.core.errors import MissingTool

sdk = pytest.importorskip("mcp", reason="comes with the extra mcp")

HISTORY = """\
{"job": "h1", "inputs": {"clicks": "user string"}}
{"input": "clicks", "row": {"user": "a"}}
{"cut": true}
"""
METADATA = {"law": "the order within a batch", "job": "visits.py", "seed": 7}


@pytest.fixture
def saved(tmp_path: Path) -> str:
    (tmp_path / "history.jsonl").write_text(HISTORY)
    (tmp_path / "counterexample.txt").write_text("violated: …\n")
    (tmp_path / "counterexample.json").write_text(json.dumps(METADATA))
    return str(tmp_path)


def called(tool: str, **arguments: Any) -> Any:
    async def call() -> Any:
        async with sdk.Client(command.server()) as client:
            return await client.call_tool(tool, arguments)

    return asyncio.run(call())


def printing(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    monkeypatch.setattr(command, "ENTRY", (sys.executable, "-S", "-c", f"import json, sys; {code}"))


def test_the_tools_say_what_they_take() -> None:
    async def list_them() -> Any:
        async with sdk.Client(command.server()) as client:
            return (await client.list_tools()).tools

    tools = {tool.name: tool for tool in asyncio.run(list_them())}
    assert {*tools} == {"check", "explain", "counterexample"}
    assert all(tool.description for tool in tools.values())
    assert tools["check"].input_schema["required"] == ["job"]
    assert {*tools["check"].input_schema["properties"]} == {"job", "histories", "reads", "keys", "expect", "seconds"}


def test_check_runs_the_command_and_returns_its_report(monkeypatch: pytest.MonkeyPatch) -> None:
    printing(monkeypatch, 'print("a message", file=sys.stderr); print(json.dumps({"verdict": sys.argv[1:]}))')
    done = called("check", job="visits.py", histories=9, reads={"clicks": "user string"}, keys=["user"], expect="batch")
    assert not done.is_error
    assert done.structured_content["verdict"] == [
        *("check", "--format", "json", "visits.py", "--input", "clicks=user string", "--key", "user"),
        *("--histories", "9", "--expect", "batch"),
    ]


def test_a_check_that_could_not_run_is_an_error_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    printing(monkeypatch, 'print("starting\\nerror: there is no such file", file=sys.stderr); sys.exit(3)')
    done = called("check", job="visits.py")
    assert done.is_error
    assert done.content[0].text == "Error executing tool check: there is no such file"


def test_explain_has_the_text_and_what_the_law_says(saved: str) -> None:
    (content,) = called("explain", path=saved).content
    law = "The law 'the order within a batch': the order within a batch must not change the result."
    assert content.text == f"violated: …\n\n{law}\n{command.SIDES}\n"


@pytest.mark.parametrize(
    ("law", "means"),
    [
        ("the SQL statement", "The job is compared with the SQL statement."),
        ("a restart", "The law 'a restart': stopping at a batch and restarting from the checkpoint changes nothing."),
        ("an upgrade", "The law 'an upgrade': an upgrade must not change the result."),
        ("fold is meaning", "The law 'fold is meaning': "),
    ],
)
def test_explain_says_what_each_law_means(saved: str, law: str, means: str) -> None:
    Path(saved, "counterexample.json").write_text(json.dumps({"law": law}))
    assert means in command.explain(saved)


def test_counterexample_has_the_history_as_rows(saved: str) -> None:
    assert called("counterexample", path=saved).structured_content == {
        "header": {"job": "h1", "inputs": {"clicks": "user string"}},
        "arrivals": [{"input": "clicks", "row": {"user": "a"}}, {"cut": True}],
        "metadata": METADATA,
    }


@pytest.mark.parametrize("tool", ["explain", "counterexample"])
def test_a_folder_without_a_counterexample_is_an_error_with_the_remedy(tool: str, tmp_path: Path) -> None:
    done = called(tool, path=str(tmp_path))
    assert done.is_error
    wanted = f"{tmp_path}: the folder contains no counterexample: give a path that a check prints"
    assert done.content[0].text == f"Error executing tool {tool}: {wanted}"


def test_without_the_sdk_the_command_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.server", None)
    with pytest.raises(MissingTool, match=r"`streamproof mcp` needs mcp.server.*install 'streamproof\[mcp\]'"):
        command.mcp()
