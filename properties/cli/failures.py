"""Explain unexpected failures of the machine, of the JVM, or of streamproof itself."""

from __future__ import annotations

import errno
import os
import traceback
from importlib.metadata import version
from pathlib import Path

from ...reference.core.errors import BadInput, MissingTool, StreamproofError, missing_spark
from ...specs.java import low_limits
from ..system.standard_streams import OutputLost
from ..system.visible import first_line
from ..witnesses.kafka import jvm as kafka_jvm
from ..witnesses.spark import session as spark_session
from ..witnesses.spark.platform.disk import no_space

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_MAPPING = ("failed to map segment", "cannot allocate memory", "Cannot allocate memory")


def explained(error: Exception) -> StreamproofError:
    """Explain an exception that ended a command; never raise.

    The function returns an error of streamproof's own types unchanged. For a failure of the machine, the message names
    the cause and the fix. Any other exception is a bug of streamproof: its traceback is written to a file, which the
    message names.
    """
    if isinstance(error, BadInput | MissingTool | OutputLost):
        return error
    if (missing := missing_spark(error)) is not None:  # first, because the next tests import Spark's client
        return missing
    dead = spark_session.why_jvm_died(error) or kafka_jvm.why_kafka_died(error)
    if dead is not None:
        return StreamproofError(dead)
    if isinstance(error, StreamproofError):
        return error
    if isinstance(error, MemoryError) or (
        isinstance(error, ImportError) and any(how in str(error) for how in _MAPPING)
    ):
        return StreamproofError(f"out of memory ({type(error).__name__}): {_remedy_for_memory()}")
    if isinstance(error, OSError):
        return StreamproofError(_of_system(error))
    return _internal(error)


def _remedy_for_memory() -> str:
    return low_limits() or "give the machine more memory, or ask for fewer histories"


def _of_system(error: OSError) -> str:
    reason = error.strerror or str(error) or type(error).__name__
    where = f"{error.filename}: " if error.filename is not None else ""
    if error.errno == errno.EFBIG:
        return f"{where}{no_space('File too large')}"
    if error.errno in _FULL:
        return f"{where}{no_space('No space left on device', spark_session.work_folder())}"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        return f"{where}{reason} (`ulimit -n`): raise it with `ulimit -n 4096`"
    if error.errno == errno.ENOMEM:
        return f"{where}out of memory: {_remedy_for_memory()}"
    if "usable temporary directory" in reason:
        return f"{reason}: set TMPDIR to a folder that can be written and has room, and `ulimit -f unlimited`"
    return f"{where}{reason}: check the path, its permissions and its disk"


def _internal(error: Exception) -> StreamproofError:
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if Path(__file__).parents[2] in Path(frame.filename).parents] or list(frames)
    where = f"{Path(ours[-1].filename).name}, line {ours[-1].lineno}" if ours else "no line known"
    said = first_line(error)[:300] or "no message"
    what = f"a fault of streamproof itself, and no verdict: {type(error).__name__}: {said} ({where})"
    try:
        path = spark_session.default_log_path().with_name(f"error-{os.getpid()}.txt")
        text = "".join(traceback.format_exception(error))
        path.write_text(f"streamproof {version('streamproof')}\n{text}", encoding="utf-8", errors="backslashreplace")
    except Exception:  # such as a full disk; the message names the cause
        return StreamproofError(f"{what}; please report it")
    return StreamproofError(f"{what}; please report it with {path}")
