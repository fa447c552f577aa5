"""Runs a script in the check's session: PySpark's own classes, of which some methods answer for the check."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import re
import sys
import tokenize
import traceback
import types
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from pyspark.sql import SparkSession

from .....reference.core.errors import BadInput, StreamproofError
from ....system.visible import first_line, visible
from ...spark.platform.connect import to_check
from ..declaring import PATCHING
from .answers import Notebook, answers
from .lifting import Lift, Source, Waiting
from .writes import Write

_STARTS = re.compile(r"\bwriteStream\b|\.toTable\(")
_MAGIC = re.compile(r"#\s*MAGIC\s+%(run|sql|scala|r|sh|pip|fs)\b.*")


def run(lift: Lift) -> None:
    """Run the script until it ends, or waits.

    Raises:
        BadInput: It fails before it starts a query, reads what isn't given, or writes outside of its folder.
    """
    for name in lift.tables.frames:
        if name.isidentifier():
            lift.tables.frames[name].createOrReplaceTempView(name)
            lift.views.append(name)
    lift.change = lift.spark.conf.set
    printed = io.StringIO()
    with PATCHING, contextlib.ExitStack() as stack:
        for owner, methods in answers(lift):
            stack.enter_context(mock.patch.multiple(owner, **methods))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(lift.source.surroundings())
        _execute(lift, printed)
    if lift.error is not None:
        raise lift.error
    unread = [*lift.inputs.unread(), *lift.tables.unread()]
    if unread and lift.writes:
        reads = [str(read) for reads in (lift.inputs, lift.tables) for each in reads.taken.values() for read in each]
        raise BadInput(
            f"{lift.source.where} doesn't read {', '.join(map(repr, unread))} of reads=: it reads "
            f"{', '.join(reads) or 'nothing'}"
        )


def _execute(lift: Lift, printed: io.StringIO) -> None:
    where = lift.source.where
    try:
        _call(lift) if callable(lift.source.code) else _exec(lift)
    except Waiting:
        pass
    except SystemExit as ended:
        if not lift.writes:
            said = printed.getvalue().strip().splitlines()[-1:]
            raise BadInput(
                f"{where} ends with exit({ended.code!r}){_at(lift, ended)} before it starts a query"
                f"{': ' + visible(said[0]) if said else ''}; give its arguments with args=[…], and its environment "
                "with env={…}"
            ) from None
    except StreamproofError as error:
        lift.error = lift.error or error
    except Exception as error:
        if lift.error is None and not lift.writes:
            raise BadInput(_raised(lift, error)) from error
        if _STARTS.search(_rest(lift, error)):
            lift.unfinished = BadInput(
                f"{_raised(lift, error)}; it has queries that it starts there or later: mend it, or name the query to "
                "check, Script(…, query=0)"
            )
        at = _at(lift, error).removeprefix(", in ") or "its end"
        lift.notes.append(f"{where}: what follows {at}, where it raised {type(error).__name__}: {first_line(error)}")


def _call(lift: Lift) -> None:
    assert callable(lift.source.code)
    parameters = inspect.signature(lift.source.code).parameters
    if len(parameters) > 1:
        raise BadInput(
            f"{lift.source.where} takes {', '.join(parameters)}: give a function without parameters, or with one "
            "for the Spark session"
        )
    lift.source.code(*[lift.spark] * len(parameters))


def _exec(lift: Lift) -> None:
    path = lift.source.code
    assert isinstance(path, Path)
    module = types.ModuleType("__main__")
    named = {"spark": lift.spark, "display": partial(_display, lift)}
    if isinstance(lift.spark, SparkSession):  # Connect has no context
        named["sc"] = lift.spark.sparkContext
    vars(module).update({"__file__": str(path), "get_ipython": lambda: Notebook(lift), **named})
    vars(module).update(lift.source.names)
    text = _text_of(lift.source)
    for number, line in enumerate(text.splitlines(), 1):
        if _MAGIC.match(line):
            lift.notes.append(f"line {number} of {lift.source.where}: {visible(line.lstrip('# '))} isn't run")
    folder = str(path.parent.resolve())
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]  # the workers import from there, too
    code = compiled(lift.source)
    with mock.patch.dict(sys.modules, {"__main__": module}):
        exec(code, vars(module))


def compiled(source: Source) -> types.CodeType:
    """Return the code of a script's file.

    Raises:
        SyntaxError: It isn't Python.
    """
    return compile(_text_of(source), str(source.code), "exec")


def _text_of(source: Source) -> str:
    assert isinstance(source.code, Path)
    return source_of(source.code) if source.text is None else source.text


def source_of(path: Path) -> str:
    """Return the text of a file of Python, in the encoding that it declares, as Python reads it.

    Raises:
        SyntaxError: The encoding is unknown, or the file isn't in it.
    """
    with tokenize.open(path) as file:
        return file.read()


def _line(lift: Lift, error: BaseException) -> int:
    """Return the script's line in which an error was raised; 0 if none is known."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == lift.source.file]
    return (frames[-1].lineno or 0) if frames else 0


def _at(lift: Lift, error: BaseException) -> str:
    line = _line(lift, error)
    return f", in line {line}" if line else ""


def _rest(lift: Lift, error: BaseException) -> str:
    """Return the script's text from the statement on that raised an error."""
    code, line = lift.source.code, _line(lift, error)
    if callable(code):
        lines, first = inspect.getsourcelines(inspect.unwrap(code))
        return "".join(lines[max(line - first, 0) :])
    text = _text_of(lift.source)
    # A statement of several lines is said to fail in its first, or in the line of one of its calls.
    statements = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.stmt)]
    begun = [one.lineno for one in statements if one.lineno <= line <= (one.end_lineno or 0)]
    return "\n".join(text.splitlines()[max(begun, default=line) - 1 :])


def _raised(lift: Lift, error: Exception) -> str:
    where = lift.source.where
    if isinstance(error, SyntaxError):
        at = f", in line {error.lineno}" if error.lineno else ""  # an unknown encoding has none
        return f"{where} is no Python: {error.msg}{at}"
    message = f"{where} raised {type(error).__name__}{_at(lift, error)}: {first_line(error).rstrip('.')}"
    if isinstance(error, NameError):
        return f"{message}; give what its platform has with globals={{{visible(error.name)!r}: …}}"
    if isinstance(error, ModuleNotFoundError):
        return f"{message}; install it, or give a stand-in in sys.modules"
    return message


def _display(lift: Lift, shown: Any = None, *arguments: Any, **named: Any) -> None:
    """Stand in for a notebook's `display`, which starts a query of a DataFrame that streams."""
    if hasattr(shown, "isStreaming"):
        name = str(named.get("streamName") or "")
        shown = to_check(shown)
        lift.writes.append(Write(shown, name=name, format="display" if shown.isStreaming else "shown", line=lift.line))
