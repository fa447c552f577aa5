"""The command `check` of a script without further options: infers the script's inputs, keys and event times."""

from __future__ import annotations

import re
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ....reference.core.errors import BadInput, StreamproofError
from ...system.files import write_whole
from ...system.progress import doing as say
from ...system.time_limit import within_seconds
from ...system.visible import visible
from ...witnesses.job.scripts.project import project_of
from ..reporting import again
from ..terminal import messages, results
from .job import JobOptions, checking, exit_by_verdict, for_each, inputs_of, static_of

if TYPE_CHECKING:
    from ...report.making import JobOutcome
    from ...witnesses.job.inference.inferring import InferredQuery
    from ...witnesses.job.inference.inputs import InferredInput
    from ...witnesses.job.scripts.script import Script

SECONDS = 150.0
"""The default time limit of a script's checks, from the start of the command."""
SECONDS_OF_QUERY = 60.0
"""The time limit of each run of a query."""
OVERRIDES = ("key", "time", "time_format")
"""The options that override the inferred inputs."""


@dataclass(frozen=True)
class InferredScript:
    """A query of a script, as a job with inferred inputs.

    Attributes:
        script: The job.
        lines: The lines about the inferred inputs.
        reads: The Python code of the script's reads, by the names of the inputs.
        by_row: Whether each row of the query's result derives from a single row of an input.
        twin: The sentence that names the query that this query's check would repeat; empty: no such query.
    """

    script: Script
    lines: Sequence[str]
    reads: Mapping[str, str]
    by_row: bool = False
    twin: str = ""


def check_script(
    path: str,
    options: JobOptions,
    seed: int,
    folder: Path,
    report_to: Path | None,
    test: Path | None,
    *,
    as_json: bool = False,
) -> NoReturn:
    """Check each query of a script, and exit; the options override the inferred inputs.

    Args:
        path: The script.
        options: The further options of the command line.
        seed: The seed of the histories.
        folder: The folder of counterexamples.
        report_to: The report's folder (None: no report).
        test: The test module to write (None: no module).
        as_json: Whether to print the result as JSON.
    """
    command = again("check", [path], histories=options.histories, seed=seed)
    path = _file_of(path)
    if not messages.is_terminal:
        messages.out(f"checking {visible(path)}: Spark starts, then the script runs once without data")

    def check_of(common: Mapping[str, Any], outcomes: list[JobOutcome]) -> Callable[[], object]:
        return _checking(path, options, common, outcomes, test)

    exit_by_verdict(path, check_of, options, seed, folder, command, report_to, as_json=as_json)


def _file_of(path: str) -> str:
    """Return the file of a script, or the specification file of a pipeline project's folder.

    Raises:
        BadInput: The file doesn't exist.
    """
    found = project_of(Path(path)) or Path(path)
    if not found.is_file():
        raise BadInput(f"{visible(path)}: there is no such file: give the path of a script, or module:function")
    return str(found)


def _checking(
    path: str, options: JobOptions, common: Mapping[str, Any], outcomes: list[JobOutcome], target: Path | None
) -> Callable[[], object]:
    """Return a function that checks each query of a script in turn, and adds the results to the given list.

    Args:
        path: The script.
        options: The further options of the command line.
        common: The common arguments of all checks.
        outcomes: The list that receives the results.
        target: The test module to write (None: no module).

    Raises:
        StreamproofError: An input or the oracle can't be found, inferred or used; or no query can be checked.
    """
    from ...checking.jobs.verdicts import CheckFailed, Inconclusive

    begun = time.monotonic()
    say(f"reading {visible(path)}")
    scripts = inferred_scripts(path, options)
    for line in dict.fromkeys(line for one in scripts for line in one.lines):
        results.out(f"Inferred: {line}")
    for line in (one.twin for one in scripts if one.twin):
        results.out(f"Not run: {line}")
    if target is not None:
        write_test(target, path, scripts)
        results.out(f"Written to {visible(target)}")

    seconds = SECONDS if options.seconds is None else options.seconds
    common = {**common, "seconds": min(seconds, SECONDS_OF_QUERY)}

    def check() -> None:
        failed: list[CheckFailed] = []
        refused: list[StreamproofError] = []
        ends = (begun if options.seconds is None else time.monotonic()) + seconds
        # A query without state uses less than its share of the time, so the other queries get the rest.
        asked = sorted((one for one in scripts if not one.twin), key=lambda one: not one.by_row)
        for number, one in enumerate(asked):
            share = (ends - time.monotonic()) / (len(asked) - number)
            try:
                with within_seconds(share):
                    checking(path, one.script, options, common, outcomes)()
            except CheckFailed as found:
                failed.append(found)
            except StreamproofError as error:
                refused.append(error)
                failed.append(Inconclusive(f"inconclusive: not checked: {error.message}"))
        if len(refused) == len(asked):
            raise refused[0]
        # violations last, because the last error determines the verdict
        failed.sort(key=lambda one: not isinstance(one, Inconclusive))
        outcomes.extend(failed[:-1])
        if failed:
            raise failed[-1]

    return check


def inferred_scripts(path: str, options: JobOptions) -> list[InferredScript]:
    """Infer the inputs of each query of a script, or of the query that the options choose.

    Raises:
        BadInput: The file doesn't exist, the script fails, or an input can't be inferred.
    """
    from ...system.installed.spark_versions import frame_of_arrow
    from ...witnesses.job.inference.exploring import empty_frames
    from ...witnesses.job.inference.inferring import inferred_queries
    from ...witnesses.job.scripts.lifting import ScriptSource
    from ...witnesses.job.scripts.remedies import ON_COMMAND_LINE
    from ...witnesses.spark.session import spark_session

    given, tables = inputs_of(options), static_of(options.static)
    spark = spark_session(any_provider=True)
    with tempfile.TemporaryDirectory() as folder:
        frames = empty_frames(spark, given, Path(folder))
        rows = {name: frame_of_arrow(spark, one, Path(folder) / f"{name}.parquet") for name, one in tables.items()}
        source = ScriptSource(Path(path).resolve(), [*options.argument], remedies=ON_COMMAND_LINE)
        queries = inferred_queries(source, spark, frames, rows, only_some=options.query is not None)
    chosen = [query for query in queries if options.query in (None, query.write.name, str(query.index or 0))]
    if not chosen:
        raise BadInput(
            f"--query {options.query}: {visible(path)} starts {', '.join(str(query.write) for query in queries)}"
        )
    return [_script(path, query, options, chosen) for query in chosen]


def _script(path: str, query: InferredQuery, options: JobOptions, chosen: Sequence[InferredQuery]) -> InferredScript:
    from ...witnesses.job.scripts.script import Script

    inputs = _overridden(query, options)
    given = {one.name: one for one in inputs_of(options)}
    reads: dict[str, Any] = {**given, **{one.name: one.input for one in inputs}, **query.tables}
    source = query.source  # with placeholders for required arguments that the user didn't give
    script = Script(path, reads, query=query.index, args=source.args, env=source.env, widgets=source.widgets)
    lines = [f"{_at(path, one)} reads {one.read}: {one.text}" for one in inputs if one.name in query.own]
    lines += [guess for one in inputs if one.name in query.own for guess in one.guesses]
    shown = {one.name: one.text for one in inputs} | {
        name: repr(rows.to_pylist()) for name, rows in query.tables.items()
    }
    called = "" if query.index is None else f", query {query.index} {query.write}"
    twins = [one for one in chosen if one.write is query.twin]
    twin = f"query {query.index} {query.write}: it computes as query {twins[0].index} {twins[0].write}" if twins else ""
    return InferredScript(script.on_command_line(called), [*lines, *query.told], shown, query.by_row, twin)


def _at(path: str, one: InferredInput) -> str:
    where = one.read.where or visible(path)
    return f"line {one.read.line} of {where}" if one.read.line else where


def _overridden(query: InferredQuery, options: JobOptions) -> list[InferredInput]:
    """Return the inputs, with the values that the options override."""
    inputs = [*query.inputs.values()]
    for name in OVERRIDES if not options.input else ():
        said = for_each(f"--{name.replace('_', '-')}", getattr(options, name), len(inputs))
        for number, value in enumerate(said):
            if value is not None:
                given: Any = tuple(one.strip() for one in value.split(",")) if name == "key" else value
                inputs[number] = inputs[number].with_option(name, given)
    return inputs


def write_test(target: Path, path: str, scripts: Sequence[InferredScript]) -> None:
    """Write a test module that repeats this check of the script's queries.

    Raises:
        BadInput: The file exists, or can't be written.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    folder = FileSystemLoader(Path(__file__).parent)
    template = Environment(loader=folder, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    has_avro = any("avro(" in text for one in scripts for text in one.reads.values())
    made = template.get_template("test.py.jinja")
    if target.exists():
        raise BadInput(f"--write-test {visible(target)}: the file already exists: name another file")
    try:
        write_whole(target, made.render(path=path, scripts=scripts, has_avro=has_avro, name=_identifier(path)))
    except OSError as error:
        raise BadInput(f"--write-test {visible(target)}: it can't be written: {error.strerror}") from None


def _identifier(path: str) -> str:
    return re.sub(r"\W", "_", Path(path).stem)
