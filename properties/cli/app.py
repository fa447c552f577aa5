"""The command `streamproof`.

The exit code is 0 if the check conforms, 1 if it is violated, 2 if it is inconclusive, and 3 if it can't run.
"""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Callable
from functools import cache
from importlib import metadata
from typing import Annotated, Any, NoReturn

import typer

from ...reference.core.errors import BadInput
from ..system import signals
from ..system.standard_streams import OutputLost, prepare_streams
from ..system.visible import visible
from ..system.work import remove_own, sweep
from .commands.check import check
from .commands.compare import compare
from .commands.divergences import divergences
from .commands.doctor import doctor
from .commands.fuzz import fuzz
from .commands.mcp import mcp
from .commands.mutants import mutants
from .commands.races import races
from .commands.regress import regress
from .commands.replay import replay
from .commands.run import run
from .commands.sinks import sinks
from .commands.upgrade import upgrade
from .spec.app import specs
from .terminal import COULD_NOT_RUN, messages, results

INTERRUPTED = 130  # typer raises this exception at Ctrl-C

app = typer.Typer(
    help="Test Spark streaming jobs and stream operators on random histories, with late, out-of-order and repeated "
    "events. Exit codes: 0 conforms, 1 violated, 2 inconclusive, 3 could not run.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _print_version(asked: bool) -> None:
    if asked:
        results.print(f"streamproof {metadata.version('streamproof')}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """Handle the options of `streamproof` itself."""


for command in (check, upgrade, replay, run, compare, mutants, fuzz, divergences, sinks, mcp, doctor):
    app.command()(command)
app.command("broker-races")(races)
app.add_typer(specs, name="spec")
app.add_typer(regress, name="regress")


def main() -> NoReturn:
    """Run the command line: usage errors and bad input exit 3 with one message, and no traceback."""
    # The client of the JVM would log an interrupted call; streamproof reports the interruption once instead.
    logging.disable(logging.CRITICAL)
    code: int = COULD_NOT_RUN
    try:
        with signals.interrupting():
            prepare_streams()
            _require_working_directory()
            sweep()
            ended: int = _command()(prog_name="streamproof", standalone_mode=False) or 0
        if ended == INTERRUPTED:
            raise KeyboardInterrupt
        sys.stdout.flush()
        code = ended
    except typer.Exit as stop:
        code = stop.exit_code
    except (KeyboardInterrupt, typer.Abort):
        signals.leave()
        by = f" by {signals.received()}" if signals.received() not in ("", "SIGINT") else ""
        with contextlib.suppress(OSError):  # the terminal may be closed
            messages.print(f"interrupted{by}: the results so far are on disk", style="yellow")
    except SystemExit as error:  # user code or a library has called exit(), which is no verdict
        _say_error(f"there is no verdict: code that was called ended the program with exit({error.code!r})")
    except Exception as error:
        _say_why(error)
    _leave(code)


@cache
def _command() -> Callable[..., Any]:
    return typer.main.get_command(app)


def _say_why(error: Any) -> None:
    """Print why the command ended, either an error that the user can fix, or a bug of streamproof with its
    traceback.
    """
    from .failures import explained

    if hasattr(error, "format_message"):
        if message := error.format_message():  # empty for a command without arguments, which has printed its help
            context = getattr(error, "ctx", None)
            hint = f" (see `{context.command_path} --help`)" if context is not None else ""
            _say_error(f"{message}{hint}")
        return
    known = explained(error)
    _say_error(known.message)
    if known.details:
        messages.out(known.details)


def _say_error(text: str) -> None:
    messages.out(f"error: {visible(text)}", style="red")


def _require_working_directory() -> None:
    try:
        os.getcwd()
    except OSError as error:
        raise BadInput(
            f"the working directory no longer exists ({error.strerror}): change to an existing directory"
        ) from None


def _leave(code: int) -> NoReturn:
    signals.leave()
    if signals.received():
        _leave_at_once(code)
    try:
        sys.stdout.flush()
    except OutputLost as lost:
        code = COULD_NOT_RUN
        _say_error(lost.message)
    sys.stderr.flush()
    with contextlib.suppress(Exception):  # calls fail if the JVM has ended
        session = _running_session()
        if session is not None:
            with contextlib.suppress(Exception):
                _report_who_took_part(session)
            session.stop()
    sys.exit(code)


def _leave_at_once(code: int) -> NoReturn:
    """Exit after a signal: the JVMs are already killed, so no JVM is called."""
    jvm = sys.modules.get(f"{__package__.removesuffix('.cli')}.witnesses.spark.platform.jvm")
    if jvm is not None:
        jvm.end()
    remove_own()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _report_who_took_part(session: Any) -> None:
    """Print the number of tasks of each executor, because a run on a single executor doesn't test a cluster."""
    from ..witnesses.spark.platform.cluster import is_cluster, tasks_of_executors

    master = session.sparkContext.master
    if is_cluster(master):
        shares = ", ".join(f"executor {name} ran {count:,}" for name, count in tasks_of_executors(session).items())
        messages.out(f"tasks on {master}: {shares or 'none'}")


def _running_session() -> Any:
    spark = sys.modules.get("pyspark.sql")
    return None if spark is None else spark.SparkSession.getActiveSession()
