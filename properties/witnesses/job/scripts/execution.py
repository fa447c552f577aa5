"""Runs a script in the check's session, with some methods of PySpark's classes replaced."""

from __future__ import annotations

import ast
import contextlib
import inspect
import io
import linecache
import re
import sys
import traceback
import types
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from unittest import mock

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from .....reference.core.errors import BadInput, StreamproofError
from ....system.installed.spark_versions import condition_of
from ....system.ipynb import SUFFIX, line_in, source_of
from ....system.visible import first_line, visible
from ...spark.engine import NO_LIMIT, Overdue, within
from ..declaring import PATCHING
from .absent import OF_MISSING
from .answers import answers
from .beside import package_of
from .lifting import Lift, ScriptSource, WaitsForQueries
from .notebooks import RUN, Notebook, Utilities, as_python, display, notebook_of
from .pipelines import declare_all, declaring
from .project import SUFFIXES

_UNLOADED = re.compile("(AVRO|PROTOBUF)_NOT_LOADED")
_STARTS = re.compile(r"\bwriteStream\b|\.toTable\(")


def run(lift: Lift) -> None:
    """Run the script until it ends, or waits for its queries.

    Raises:
        BadInput: The script fails before it starts a query, reads an unknown input, or writes outside its folder.
    """
    for name in lift.tables.frames:
        if name.isidentifier():
            lift.tables.frames[name].createOrReplaceTempView(name)
            lift.views.append(name)
            lift.answering.add(name)
    lift.change = lift.spark.conf.set
    printed = io.StringIO()
    with PATCHING, contextlib.ExitStack() as stack:
        for owner, methods in answers(lift):
            for name, method in methods.items():
                stack.enter_context(mock.patch.object(owner, name, method, create=True))
        stack.enter_context(contextlib.redirect_stdout(io.StringIO()))
        stack.enter_context(contextlib.redirect_stderr(printed))
        stack.enter_context(lift.source.surroundings())
        stack.enter_context(lift.around(anew=not callable(lift.source.code)))
        _execute(lift, printed)
    if lift.error is not None:
        raise lift.error
    unread = [*lift.inputs.unread(), *lift.tables.unread()]
    # after an error, unread inputs are no mistake: the script may read them after the failed line
    if unread and lift.writes and lift.raised is None:
        reads = [str(read) for reads in (lift.inputs, lift.tables) for each in reads.taken.values() for read in each]
        raise BadInput(
            f"{lift.source.where} doesn't read {', '.join(map(repr, unread))}, which {lift.source.remedies.given} "
            f"gives: it reads {', '.join(reads) or 'nothing'}"
        )


def _execute(lift: Lift, printed: io.StringIO) -> None:
    where = lift.source.where
    try:
        with within(lift.seconds):
            _declaring(lift)
    except WaitsForQueries:
        pass
    except Overdue as overdue:
        if lift.seconds == NO_LIMIT:  # the time limit of the enclosing check, which reports it
            raise
        raise BadInput(
            f"{where} neither ends nor waits for its queries within {lift.seconds:g} s{overdue}: don't run the slow "
            "code when the file is imported, and check one of its functions, FILE.py:FUNCTION"
        ) from None
    except SystemExit as ended:
        if not lift.writes:
            said = printed.getvalue().strip().splitlines()[-1:]
            raise BadInput(
                f"{where} ends with exit({ended.code!r}){_at(lift, ended)} before it starts a query"
                f"{': ' + visible(said[0]) if said else ''}; {lift.source.remedies.arguments}"
            ) from None
    except StreamproofError as error:
        lift.error = lift.error or error
    except Exception as error:
        lift.raised = error
        if lift.error is None and not lift.writes:
            raise BadInput(_raised(lift, error)) from error
        source, _ = _place(lift, error)
        # The text of a pipeline project's file doesn't show the flows that follow.
        if source is not lift.source or _STARTS.search(_rest(lift, error)):
            lift.unfinished = BadInput(
                f"{_raised(lift, error)}; the script starts queries there or later: fix the script, or name the query "
                f"to check, {lift.source.remedies.query}"
            )
        at = _at(lift, error).removeprefix(", in ") or "its end"
        raised = f"{type(error).__name__}: {first_line(error)}"
        lift.notes.append(f"{source.where}: the code after {at}, where the script raised {raised}")


def _declaring(lift: Lift) -> None:
    """Run the script, and start the queries of the pipeline that the script declares."""
    code, pipeline = lift.source.code, lift.pipeline
    with declaring(pipeline):
        if callable(code):
            _call(lift)
        elif code.suffix in SUFFIXES:
            declare_all(pipeline, code)
        else:
            _exec(lift)
    pipeline.start()


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
    lift.text = as_python(_text_of(lift.source), lift.note_line)
    module, utilities = types.ModuleType("__main__"), Utilities(lift)
    folders = [path.parent]

    def run_other(given: str) -> None:
        other, parameters = notebook_of(given, folders[-1])
        if other is None:
            lift.missing.append(given.strip())
            lift.note(f"%run{given} isn't run: there is no such notebook next to the script")
            return
        utilities.widgets.defaults.update(parameters)
        folders.append(other.parent)
        exec(compile(as_python(source_of(other), lift.note_line), str(other), "exec"), vars(module))
        folders.pop()

    spark = lift.spark
    named = {"spark": spark, "display": partial(display, lift), "dbutils": utilities, "sql": spark.sql}
    named |= {"table": spark.table, "displayHTML": lambda *_: None, "getArgument": utilities.widgets.get}
    if isinstance(spark, SparkSession):  # Spark Connect has no SparkContext
        named["sc"] = spark.sparkContext
    named |= {"__file__": str(path), "__package__": package_of(path, lift.text), RUN: run_other}
    vars(module).update({"get_ipython": lambda: Notebook(lift, run_other), **named, **lift.source.names})
    folder = str(path.parent.resolve())
    # so that workers also import from the script's folder
    sys.path[:] = [folder, *(entry for entry in sys.path if entry != folder)]
    of_platform = types.ModuleType("pyspark.dbutils")
    vars(of_platform)["DBUtils"] = lambda *_: utilities
    code = compile(lift.text, str(path), "exec")
    if path.suffix == SUFFIX:
        linecache.cache[str(path)] = len(lift.text), None, lift.text.splitlines(keepends=True), str(path)
    with _in_place_of({"__main__": module, "pyspark.dbutils": of_platform}):
        exec(code, vars(module))


@contextlib.contextmanager
def _in_place_of(modules: Mapping[str, types.ModuleType]) -> Iterator[None]:
    """Let imports within the block find these modules; modules imported in addition stay."""
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def compiled(source: ScriptSource) -> types.CodeType:
    """Return the code of a script's file.

    Raises:
        SyntaxError: The file isn't valid Python.
    """
    return compile(as_python(_text_of(source), lambda *_: None), str(source.code), "exec")


def _text_of(source: ScriptSource) -> str:
    assert isinstance(source.code, Path)
    return source_of(source.code) if source.text is None else source.text


def _place(lift: Lift, error: BaseException) -> tuple[ScriptSource, int]:
    """Return the file of the script or project that raised an error, and the line; 0: the line is unknown."""
    source, declared = lift.source, 0
    if lift.failed is not None and lift.failed[0] is error:
        _, source, declared = lift.failed
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == source.file]
    return source, line_in(source.file, frames[-1].lineno or 0) if frames else declared


def _at(lift: Lift, error: BaseException) -> str:
    _, line = _place(lift, error)
    return f", in line {line}" if line else ""


def _rest(lift: Lift, error: BaseException) -> str:
    """Return the script's text from the statement that raised an error to the end."""
    code, (_, line) = lift.source.code, _place(lift, error)
    if callable(code):
        lines, first = inspect.getsourcelines(inspect.unwrap(code))
        return "".join(lines[max(line - first, 0) :])
    text = lift.text
    if not line:  # the line is unknown, so any query may follow
        return text
    # Python reports the first line of a long statement, or the line of one of its calls.
    statements = [one for one in ast.walk(ast.parse(text)) if isinstance(one, ast.stmt)]
    begun = [one.lineno for one in statements if one.lineno <= line <= (one.end_lineno or 0)]
    return "\n".join(text.splitlines()[max(begun, default=line) - 1 :])


def _raised(lift: Lift, error: Exception) -> str:
    source, _ = _place(lift, error)
    where = source.where
    if isinstance(error, SyntaxError):
        line = line_in(source.file, error.lineno or 0)
        at = f", in line {line}" if line else ""  # an error of an unknown encoding has no line
        return f"{where} isn't valid Python: {error.msg}{at}"
    message = f"{where} raised {type(error).__name__}{_at(lift, error)}: {first_line(error).rstrip('.;')}"
    if isinstance(error, NameError) and lift.missing:
        return (
            f"{message}; the script runs the notebook {visible(lift.missing[-1])}, which is missing: export it beside "
            "the script"
        )
    if isinstance(error, NameError):
        return f"{message}; {lift.source.remedies.name_of(str(error.name))}"
    if ModuleNotFoundError in (type(error), type(error.__context__)) or OF_MISSING in str(error):
        return f"{message}; {lift.source.remedies.package}"
    condition = (condition_of(error) if isinstance(error, PySparkException) else None) or ""
    if (library := _UNLOADED.match(condition)) is not None:
        package = f"org.apache.spark:spark-{library[1].lower()}_2.13:{lift.spark.version}"
        return f"{message}; start it with PYSPARK_SUBMIT_ARGS='--packages {package} pyspark-shell'"
    if isinstance(error, FileNotFoundError) or condition == "PATH_NOT_FOUND":
        return f"{message}; put the file there, or beside the script"
    return message
