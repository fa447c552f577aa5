"""The command `mcp`, which gives agents tools to check their jobs (Model Context Protocol)."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ....reference.core.errors import BadInput, StreamproofError, import_extra
from ....reference.core.files import read_text

ENTRY: Sequence[str] = (sys.executable, "-m", "streamproof")
"""The command that runs a check in a separate process, which imports edited jobs again, and keeps their prints out of
the protocol.
"""
INSTRUCTIONS = (
    "Checks streaming jobs of Spark on random histories, with late, out-of-order and repeated events. Check a job "
    "after each change of it; if it is violated, explain the counterexample, and repair the job."
)
SIDES = (
    "In the tables `≠ only expected` marks a row that the job lacks, `≠ only emitted` a row that it shouldn't emit. "
    "`late up to` is the watermark by which a batch counts rows as late."
)


def mcp() -> None:
    """Serve the tools check, explain and counterexample to an agent over stdin and stdout (Model Context Protocol)."""
    server().run()


def server() -> Any:
    """Return the server with its tools.

    Raises:
        MissingTool: The extra `mcp` isn't installed.
    """
    sdk = import_extra("mcp.server", "mcp", "`streamproof mcp`")
    made = sdk.MCPServer("streamproof", instructions=INSTRUCTIONS, version=version("streamproof"))
    for tool in (check, explain, counterexample):
        made.add_tool(_anticipated(tool))
    return made


def check(
    job: str,
    histories: int | None = None,
    reads: dict[str, str] | None = None,
    keys: list[str] | None = None,
    expect: str | None = None,
    seconds: float | None = None,
) -> dict[str, Any]:
    """Check a streaming job of Spark on random histories; it takes up to two minutes.

    Args:
        job: The path of a script, or `module:function`.
        histories: The number of histories; 300 by default.
        reads: The columns of each input, by its name, such as {"clicks": "user string, at timestamp"}. A script needs
            no columns, because the check infers the script's inputs.
        keys: The key columns of each input, such as ["user"]: one text for all inputs, or one text for each input.
        expect: The source of the expected result: the text `batch` (the same job on a batch), a file of SQL, or
            `module:name` of a rule. Without `expect`, the check tests that restarts, crashes and other batches don't
            change the output.
        seconds: The time limit.

    Returns:
        The report: the `verdict` (conforms, violated, inconclusive), the unchecked parts (`not_checked`) of each of
        `checks`, and for each counterexample (`found`) the `sentence`, the `arrivals`, the `rows`, and the `path` for
        `explain`.
    """
    words = [job]
    for name, columns in (reads or {}).items():
        words += ["--input", f"{name}={columns}"]
    for key in keys or ():
        words += ["--key", key]
    for option, value in (("--histories", histories), ("--expect", expect), ("--seconds", seconds)):
        words += [] if value is None else [option, str(value)]
    command = [*ENTRY, "check", "--format", "json", *words]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, encoding="utf-8")
    if not done.stdout:
        raise StreamproofError((done.stderr.splitlines() or ["no message"])[-1].removeprefix("error: "))
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def explain(path: str) -> str:
    """Explain a counterexample: the expected rows, the actual rows, the arrivals, and the meaning of its law.

    Args:
        path: The folder of the counterexample, as `path` of a check's `found`.
    """
    from ...counterexamples.store import TEXT, read_metadata
    from ...laws.all import LAWS, OF_JOBS, UPGRADE

    folder = _folder(path)
    law = str(read_metadata(folder).get("law", ""))
    of_jobs = {getattr(one, "of_jobs", ""): one for one in (*LAWS["spark"].values(), *OF_JOBS, UPGRADE)}
    known = of_jobs.get(law) or LAWS["spark"].get(law) or LAWS["reference"].get(law)
    says = getattr(known, "says", "") or f"{law} must not change the result"
    means = f"The job is compared with {law}." if known is None else f"The law {law!r}: {says}."
    return f"{read_text(folder / TEXT).rstrip()}\n\n{means}\n{SIDES}\n"


def counterexample(path: str) -> dict[str, Any]:
    """Return the history of a counterexample as rows, with its run options.

    Args:
        path: The folder of the counterexample, as `path` of a check's `found`.

    Returns:
        `header` (the inputs and their columns), `arrivals` (each row with its input, each cut between batches, each
        heartbeat of the clock), and `metadata` (law, job, seed, versions).
    """
    from ...counterexamples.store import HISTORY, read_metadata

    folder = _folder(path)
    header, *arrivals = map(json.loads, read_text(folder / HISTORY).splitlines())
    return {"header": header, "arrivals": arrivals, "metadata": read_metadata(folder)}


def _folder(path: str) -> Path:
    """Return a counterexample's folder.

    Raises:
        BadInput: The folder contains no counterexample.
    """
    from ...counterexamples.store import METADATA

    folder = Path(path)
    if not (folder / METADATA).is_file():
        raise BadInput(f"{path}: the folder contains no counterexample: give a path that a check prints")
    return folder


def _anticipated(tool: Callable[..., Any]) -> Callable[..., Any]:
    """Return a tool that passes its errors to the agent; the SDK withholds errors of other types."""
    failed = import_extra("mcp.server.mcpserver.exceptions", "mcp", "`streamproof mcp`").ToolError

    @wraps(tool)
    def called(*arguments: Any, **named: Any) -> Any:
        try:
            return tool(*arguments, **named)
        except StreamproofError as error:
            raise failed(error.message) from None

    return called
