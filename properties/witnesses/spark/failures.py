"""Explain in one sentence why a query has no result: Spark refuses the query, the query fails, or the machine is too
busy.
"""

from __future__ import annotations

import contextlib
import logging
import re
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from ....reference.core.errors import BadInput, StreamproofError
from ...system.visible import first_line, visible_path
from ...system.work import temporary_folder
from .platform.disk import no_space
from .session import query_lock, spark_log_path, why_jvm_died, work_folder

Result = TypeVar("Result")

_PACKAGE = Path(__file__).resolve().parents[2]
_NOT_THE_USERS = (
    *("site-packages", "pyspark.zip", "<frozen", sysconfig.get_path("stdlib")),
    *(f"{_PACKAGE}/", f"{_PACKAGE.parent}/spark_impl/"),
)
"""Parts of paths in a traceback outside the user's code."""
TOO_BUSY = "Python worker failed to connect back"
"""Spark's error if a Python worker doesn't start within 10 s, as on a busy machine."""
_LOST = "Python worker exited unexpectedly"


class QueryFailed(StreamproofError):
    """A query failed because of its own code, not because the JVM died, a disk is full or the machine is too busy.

    Attributes:
        cause: The cause alone, as Spark or the code states it.
    """

    cause = ""


class MachineTooBusy(StreamproofError):
    """A Python worker didn't start within 10 s, Spark's timeout, which no setting changes."""


class WorkerLost(QueryFailed):
    """A Python worker process ended without an exception. Spark runs the worker's task four times on a cluster, and
    once locally.
    """


class PlannedCrash(Exception):
    """Raised at a query's planned crash."""


def in_own_folder(run: Callable[[Path], Result]) -> Result:
    """Call `run` with a separate folder; if the machine caused a failure, call it once more, with another folder.

    Spark may give a query a worker that is just ending because of another query's failure.
    """

    def once() -> Result:
        with temporary_folder(work_folder()) as folder:
            return run(folder)

    with query_lock():
        try:
            return once()
        except (MachineTooBusy, WorkerLost):
            return once()


@contextlib.contextmanager
def refused(refusal: str, remedies: Mapping[str, str]) -> Iterator[None]:
    """Convert Spark's refusal of a query to a BadInput with its reason and the remedy.

    Args:
        refusal: The beginning of the message, before the reason, such as `Spark refuses the query: `.
        remedies: The remedies, by a pattern to search for in the reason.
    """
    from pyspark.errors import AnalysisException

    try:
        yield
    except AnalysisException as error:
        said = first_line(error).rstrip(";. ")
        remedy = next((f": {remedy}" for pattern, remedy in remedies.items() if re.search(pattern, said)), "")
        raise BadInput(f"{refusal}{said}{remedy}") from None


@contextlib.contextmanager
def reported_failures(planned: bool = False) -> Iterator[None]:
    """Convert a query's failure to a `StreamproofError` with the cause; a planned crash isn't a failure."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import StreamingQueryException
    from pyspark.errors.exceptions.captured import CapturedException

    # py4j's client logs the traceback of each function that fails in a batch; our message is one line.
    log = logging.getLogger("py4j.clientserver")
    log.addFilter(_never)
    try:
        yield
    except (Py4JJavaError, CapturedException, StreamingQueryException) as error:
        said = str(error)
        if planned and PlannedCrash.__name__ in said:
            return
        if TOO_BUSY in said:
            raise MachineTooBusy(
                "this machine is too busy: Spark gives a Python worker 10 s to start, and it took longer, twice; "
                f"run again with fewer other programs (the log is {spark_log_path()})"
            ) from None
        full = no_space(said, work_folder())
        kind, cause = (StreamproofError, full) if full else (QueryFailed, _cause(said))
        if kind is QueryFailed and _LOST in said:
            kind, cause = WorkerLost, f"a Python worker ended without an exception, twice ({cause})"
        cause = f"{cause}{_user_line(said)}"
        failed = kind(f"the Spark query failed: {cause} (the log is {spark_log_path()})")
        if isinstance(failed, QueryFailed):
            failed.cause = cause
        raise failed from None
    except (Py4JError, ConnectionError, EOFError) as error:
        dead = why_jvm_died(error)
        if dead is None:
            raise
        raise StreamproofError(dead) from None
    finally:
        log.removeFilter(_never)


def is_users(path: str) -> bool:
    """Return whether a file in a traceback contains the user's own code."""
    return not any(part in path for part in _NOT_THE_USERS)


def _never(record: logging.LogRecord) -> bool:
    return False


def _user_line(text: str) -> str:
    """Return the innermost line of the user's own code in a worker's traceback, or an empty string."""
    frames = re.findall(r'^ *File "(.+?)", line (\d+), in (\S+)\n(?: +(.+))?', text, re.MULTILINE)
    own = [frame for frame in frames if is_users(frame[0])]
    if not own:
        return ""
    path, line, function, code = own[-1]
    return f", in {function} ({visible_path(path)}:{line})" + (f": `{code.strip()}`" if code else "")


def _cause(text: str) -> str:
    """Return the line with the cause of a query's failure: a worker's exception, if any."""
    raised = re.findall(r"^(?:\w+\.)*(\w*(?:Error|Exception|Exit|BadInput)): (.+)$", text, re.MULTILINE)
    reasons = [
        (kind, said) for kind, said in raised if kind not in ("PythonException", "SparkException", "Py4JJavaError")
    ]
    if not reasons:  # an exception of the JVM, whose innermost cause is the reason
        reasons = re.findall(r"^Caused by: (?:[\w$]+\.)*(\w+): (.+)$", text, re.MULTILINE)
    if reasons:
        kind, said = reasons[-1]
        return said if kind == "BadInput" else f"{kind}: {said}"
    clash = re.search(r"_SCHEMA_NOT_COMPATIBLE\] .+\n.+\n(Existing .+)", text)
    if clash:
        return (
            "the checkpoint was written under another declaration, with another key, value, aggregate or state_groups: "
            f"{clash[1].rstrip('.')}: declare the operator as before, or give the query a new checkpointLocation"
        )
    said = re.sub(r"^\[STREAM_FAILED\] .*? terminated with exception: | SQLSTATE: \w+$", "", first_line(text))
    return (said or "no message")[:500]
