"""The command `check` of a user's own job, such as `streamproof check shop.visits:visits --input "user string, …"`."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, get_type_hints

import typer

from ....reference.core.errors import BadInput, StreamproofError
from ....reference.core.files import read_text
from ...system import signals
from ...system.exits import without_exit
from ...system.progress import doing as say
from ...system.visible import visible
from ...witnesses.job.scripts.project import SUFFIXES, project_of
from .. import options as cli_options
from ..failures import explained
from ..reporting import again, reporting
from ..terminal import EXITS, STYLES, logged_by, results, steps

if TYPE_CHECKING:
    from ...generators.columns.inputs import Input
    from ...report.content import Content
    from ...report.making import JobOutcome
    from ...witnesses.job.scripts.script import Script

SECONDS = 120.0
OF_JOBS: Mapping[str, Any] = {
    "input": cli_options.Inputs,
    "key": cli_options.Keys,
    "time": cli_options.Times,
    "time_format": cli_options.TimeFormats,
    "format": cli_options.Formats,
    "value": cli_options.Values,
    "static": cli_options.Static,
    "expect": cli_options.Expect,
    "mode": cli_options.OutputMode,
    "trigger": cli_options.Trigger,
    "out_of_order": cli_options.OutOfOrder,
    "seconds": cli_options.Seconds,
    "query": cli_options.Query,
    "argument": cli_options.Arguments,
    "timeouts": cli_options.Timeouts,
    "verbose": cli_options.Verbose,
}
"""The types of the options of a job on the command line, which are the fields of `JobOptions`."""
TABLES = (".parquet", ".csv")
MAX_SCRIPTS_SHOWN = 5
_QUERY = "writeStream"
"""A text that every script with a query contains."""
_NAMED = re.compile(r"(\w+)=(.+)", re.DOTALL)
_OBJECT = re.compile(r"[\w./\\-]+:[A-Za-z_]\w*")


@dataclass(frozen=True)
class JobOptions:
    """The options of a job on the command line."""

    input: Sequence[str] = ()
    key: Sequence[str] = ()
    time: Sequence[str] = ()
    time_format: Sequence[str] = ()
    format: Sequence[str] = ()
    value: Sequence[str] = ()
    static: Sequence[str] = ()
    expect: str | None = None
    mode: str | None = None
    trigger: str = "default"
    out_of_order: str | None = None
    seconds: float | None = None
    query: str | None = None
    argument: Sequence[str] = ()
    timeouts: Sequence[str] = ()
    verbose: bool = False
    histories: int | None = None

    @property
    def given(self) -> list[str]:
        """The given options, by their names on the command line."""
        others = [one for one in fields(self) if one.name not in ("verbose", "histories")]
        return [one.name.replace("_", "-") for one in others if getattr(self, one.name) != one.default]


def takes_job(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of a job, and pass the options to the command as the parameter `job`."""
    own = [one for name, one in inspect.signature(command).parameters.items() if name != "job"]
    hints = get_type_hints(command, include_extras=True)
    more = [
        inspect.Parameter(
            one.name, inspect.Parameter.KEYWORD_ONLY, default=one.default or None, annotation=OF_JOBS[one.name]
        )
        for one in fields(JobOptions)
        if one.name in OF_JOBS.keys() - hints.keys()
    ]

    @wraps(command)
    def with_job(**given: Any) -> None:
        of_job = {one.name: given.pop(one.name) for one in more}
        said: dict[str, Any] = {name: value for name, value in of_job.items() if value is not None}
        command(**given, job=JobOptions(**said, histories=given.get("histories")))

    keywords = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name]) for one in own]
    vars(with_job)["__signature__"] = inspect.Signature([*keywords, *more])
    with_job.__annotations__ = {one.name: one.annotation for one in (*keywords, *more)}
    return with_job


SCRIPTS = (".py", ".ipynb", *SUFFIXES)
"""The endings of files that are checked as scripts."""


def job_among(names: Sequence[str], of_operators: Mapping[str, object]) -> str | None:
    """Return the job in a check's arguments, `module:function` or `script.py` (None: the arguments are operators).

    Args:
        names: The arguments.
        of_operators: The operators' options, by name (None: the user didn't give the option).

    Raises:
        BadInput: A job is combined with other names or with an operator's option; or a folder is named.
    """
    from ....reference.core.operator import OPERATORS

    folders = [name for name in names if name not in OPERATORS and Path(name).is_dir()]
    for name in folders:
        if project_of(Path(name)) is None:
            raise BadInput(_no_folder(name))
    jobs = [name for name in names if ":" in name or name.endswith(SCRIPTS) or name in folders]
    for name in names:
        if name not in (*jobs, *OPERATORS) and Path(name).is_file():
            raise BadInput(f"{visible(name)} isn't a script: give a file that ends in {', '.join(SCRIPTS)}")
    job = next(iter(jobs), None)
    if job is not None and len(names) > 1:
        raise BadInput(f"{job} is a job: check each job in a separate command")
    for option, value in of_operators.items():
        if job is not None and value is not None:
            raise BadInput(f"--{option} is for operators, and {job} is a job: leave the option out")
    return job


def _no_folder(name: str) -> str:
    """Return the reason why a folder isn't checked, with the scripts in it that start a query."""
    files = (path for path in sorted(Path(name).rglob("*")) if path.suffix in (".py", ".ipynb") and path.is_file())
    scripts = [path for path in files if _QUERY in path.read_text(encoding="utf-8", errors="replace")]
    if not scripts:
        return (
            f"{visible(name)} is a folder without a .py or .ipynb file that contains {_QUERY}: give a script that "
            "starts a query"
        )
    shown = ", ".join(visible(str(path)) for path in scripts[:MAX_SCRIPTS_SHOWN])
    rest = len(scripts) - MAX_SCRIPTS_SHOWN
    return (
        f"{visible(name)} is a folder: check its scripts one by one: {shown}{f' and {rest} more' if rest > 0 else ''}"
    )


def check_one_job(
    name: str,
    options: JobOptions,
    seed: int,
    folder: Path,
    report_to: Path | None = None,
    *,
    mutants: bool = False,
    as_json: bool = False,
) -> NoReturn:
    """Check a job, and its mutants if requested, print the verdict, and exit."""
    command = again("mutants" if mutants else "check", [name], histories=options.histories, seed=seed)

    def check_of(common: Mapping[str, Any], outcomes: list[JobOutcome]) -> Callable[[], object]:
        more = {**common, **({"mutants": True} if mutants else {})}
        return checking(name, job_named(name, options), options, more, outcomes)

    exit_by_verdict(name, check_of, options, seed, folder, command, report_to, as_json=as_json)


def exit_by_verdict(
    name: str,
    check_of: Callable[[Mapping[str, Any], list[JobOutcome]], Callable[[], object]],
    options: JobOptions,
    seed: int,
    folder: Path,
    command: str,
    report_to: Path | None,
    doing: str = "",
    *,
    as_json: bool = False,
) -> NoReturn:
    """Create and run a check of a job, print the verdict, and exit with the verdict's exit code.

    Args:
        name: The name of the check: the job, `module:function` or `script.py`.
        check_of: Creates the check from the common arguments, and from the list that receives the result.
        options: The further options of the command line.
        seed: The seed of the histories.
        folder: The folder of counterexamples, with a subfolder for each job.
        command: The command that repeats the check.
        report_to: The report's folder (None: no report).
        doing: The text of the progress; by default, the text is the number of histories.
        as_json: Whether to print the result as JSON.

    Raises:
        BadInput: The job, an input or the oracle can't be found or used.
        StreamproofError: The job's query failed.
        Exit: The exit code is 0 if the job conforms, 1 if the job is violated, 2 if the check is inconclusive.
    """
    from ...checking.jobs.reports import JobReport
    from ...checking.jobs.verdicts import CheckFailed
    from ...counterexamples.of_jobs import folder_of
    from ...report import making
    from ...witnesses.spark.platform import connect
    from ...witnesses.spark.session import session_of_jobs

    outcomes: list[JobOutcome] = []
    verdict = "conforms"

    def content(ended: str) -> Content:
        return making.content([*outcomes, *making.the_rest(f"{name}: {ended}" if ended else "")], command)

    with reporting(report_to, content, as_json=as_json):
        with signals.interrupting(), steps() as progress, logged_by(progress):
            say("starting Spark")
            # Start the session before the module is imported, because the module's functions for Spark may need a
            # session to read their types.
            session_of_jobs()
            connect.begin()
            common = {
                "histories": options.histories,
                "seed": seed,
                "seconds": options.seconds or SECONDS,
                "folder": folder_of(name, folder),
            }
            check = check_of(common, outcomes)
            drawn = f": {options.histories} histories" if options.histories else ""
            say(visible(doing) or f"checking {visible(name)}{drawn}")
            try:
                check()
            except CheckFailed as found:
                outcomes.append(found)
                verdict = found.verdict
        for outcome in outcomes:
            text = outcome.brief if isinstance(outcome, JobReport) and not options.verbose else str(outcome)
            results.out(text)
        results.print(f"{visible(name)}: [{STYLES[verdict]}]{verdict}[/]", soft_wrap=True)
    raise typer.Exit(EXITS[verdict])


def checking(
    name: str, job: Any, options: JobOptions, common: Mapping[str, Any], outcomes: list[JobOutcome]
) -> Callable[[], object]:
    """Return a function that checks the job, and adds the result to the given list.

    A function with the parameter `check_job` or `invariants` is a test, and is called with these fixtures.

    Raises:
        BadInput: An input or the oracle can't be found or used.
    """
    from ...checking.jobs.job import check_job, invariants

    noted = partial(_noted, options, common, outcomes)
    fixtures = {"check_job": partial(noted, check_job), "invariants": partial(noted, invariants)}
    parameters = [*inspect.signature(job).parameters] if callable(job) else []
    if parameters and {*parameters} <= fixtures.keys():
        if options.given:
            raise BadInput(f"{name} is a test, and sets its own options: leave out --{options.given[0]}")
        return partial(_run_test, job, {parameter: fixtures[parameter] for parameter in parameters})
    inputs = _inputs_for(name, job, options)
    more = _more(options)
    if options.expect is None:
        return partial(fixtures["invariants"], job, *inputs, **more)
    return partial(fixtures["check_job"], job, *inputs, expect=expected(options.expect), **more)


def upgrading(
    names: tuple[str, str],
    options: JobOptions,
    of_old: Mapping[str, Any],
    common: Mapping[str, Any],
    outcomes: list[JobOutcome],
) -> Callable[[], object]:
    """Return a function that checks a job's upgrade, and adds the result to the given list.

    Args:
        names: The earlier version and the new version, each as `module:function` or `script.py`.
        options: The further options of the command line.
        of_old: The check's arguments about the earlier version.
        common: The common arguments of all checks.
        outcomes: The list that receives the result.

    Raises:
        BadInput: A version, an input or the oracle can't be found or used.
    """
    from ...checking.jobs.job import upgrade

    old, new = (job_named(name, options) for name in names)
    more = {**_more(options), "expect": None if options.expect is None else expected(options.expect)}
    inputs = _inputs_for(names[1], new, options)
    return partial(_noted, options, common, outcomes, upgrade, old, new, *inputs, **of_old, **more)


def replaying(
    names: tuple[str, str, str],
    reads: Sequence[str],
    expect: str | None,
    options: JobOptions,
    common: Mapping[str, Any],
    outcomes: list[JobOutcome],
) -> Callable[[], object]:
    """Return a function that judges a run in production, and adds the result to the given list.

    Args:
        names: The checkpoint, the job, and the output: a folder, or `module:name` of a function.
        reads: The format and options of each input, as `name=format option=value …`.
        expect: The expected rows (None: the rows that the job emits here).
        options: The further options of the command line.
        common: The common arguments of all checks.
        outcomes: The list that receives the result.

    Raises:
        BadInput: The job, an input, the output or the expected rows can't be found or used.
    """
    from ...checking.jobs.job import replay

    unused = [name for name in ("trigger", "out-of-order", "timeouts") if name in options.given]
    if unused:
        raise BadInput(
            f"--{unused[0]} is for drawn histories, and a run in production has its own rows: leave the option out"
        )
    checkpoint, name, output = names
    job = job_named(name, options)
    more = {key: value for key, value in _more(options).items() if key in ("mode", "static")}
    more |= {"expect": None if expect is None else expected(expect), "reads": dict(map(_read_of, reads))}
    if options.seconds is not None:
        more["seconds"] = options.seconds
    target = named(output) if _OBJECT.fullmatch(output) and "://" not in output else output
    inputs = _inputs_for(name, job, options)
    own = {"folder": common["folder"]}
    return partial(_noted, options, own, outcomes, replay, checkpoint, job, *inputs, output=target, **more)


def _read_of(text: str) -> tuple[str, dict[str, str]]:
    """Return an input's name, and the format and the options of the input's reader."""
    name, _, said = text.partition("=")
    form, *more = said.split() or [""]
    pairs = [option.partition("=") for option in more]
    if not (name and form and all(value for _, _, value in pairs)):
        raise BadInput(f'--read {text}: write name=format and then its options: "clicks=csv header=true"')
    return name, {"format": form, **{option: value for option, _, value in pairs}}


def _noted(
    options: JobOptions,
    common: Mapping[str, Any],
    outcomes: list[JobOutcome],
    check: Callable[..., JobOutcome],
    *arguments: Any,
    **named: Any,
) -> JobOutcome:
    """Run a check with the common arguments, and add the check's result to the given list."""
    asked = {} if options.histories is None else {"histories": options.histories}
    with _others_raised_as(explained):
        outcomes.append(check(*arguments, **{**common, **named, **asked}))
    return outcomes[-1]


def _inputs_for(name: str, job: Any, options: JobOptions) -> list[Input]:
    """Return the given inputs of a job, or none for a script, which contains its own inputs."""
    from ...witnesses.job.scripts.script import Script

    if isinstance(job, Script):
        return []
    if options.query is not None or options.argument:
        raise BadInput(f"{name} is a function: --query and --argument are for scripts, so leave them out")
    if options.input:
        return inputs_of(options)
    raise BadInput(
        f'{name} has no input: give the columns of each input, such as --input "user string, at timestamp" --key user'
    )


def _more(options: JobOptions) -> dict[str, Any]:
    """Return the arguments of a check other than the job and its inputs."""
    return {
        "mode": options.mode,
        "trigger": options.trigger,
        "out_of_order": options.out_of_order,
        "static": static_of(options.static),
        "timeouts": options.timeouts,
    }


def _run_test(test: Callable[..., object], fixtures: Mapping[str, object]) -> None:
    from ...witnesses.job.contract import location, raised

    with without_exit(location(test)), _others_raised_as(lambda error: BadInput(raised(test, error))):
        test(**fixtures)


@contextlib.contextmanager
def _others_raised_as(explain: Callable[[Exception], StreamproofError]) -> Iterator[None]:
    """Explain the errors of a block, except verdicts and errors that are already explained."""
    from ...checking.jobs.verdicts import CheckFailed

    try:
        yield
    except (StreamproofError, CheckFailed):
        raise
    except Exception as error:
        raise explain(error) from error


def job_named(name: str, options: JobOptions) -> Any:
    """Return the function of `module:function`, or the script of a path.

    Raises:
        BadInput: The function or the script doesn't exist, or the import of the module fails.
    """
    return named(name) if ":" in name else script_of(name, options)


def named(name: str) -> Any:
    """Return the object of `module:name` or `folder/file.py:name`.

    Raises:
        BadInput: The object doesn't exist, or the import of the module fails.
    """
    module, _, attribute = name.rpartition(":")
    where = Path(module)
    if where.suffix == ".py":
        if not where.is_file():
            raise BadInput(f"{name}: there is no file {module}")
        folder, module = str(where.parent.resolve()), where.stem
    else:
        folder = os.getcwd()
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        with without_exit(f"{name}: its module"):
            found: Any = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module != error.name and not module.startswith(f"{error.name}."):
            raise BadInput(f"{name}: its module imports {error.name}, which isn't installed") from None
        raise BadInput(f"{name}: there is no module {error.name} in {folder} or among the installed packages") from None
    except StreamproofError:
        raise
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        raise BadInput(
            f"{name}: importing its module raised {type(error).__name__}: {error}, in line {frame.lineno} of "
            f"{frame.filename}"
        ) from error
    if not hasattr(found, attribute):
        known = [one for one, value in vars(found).items() if callable(value) and not one.startswith("_")]
        known = [one for one in known if getattr(vars(found)[one], "__module__", "") == found.__name__]
        raise BadInput(f"{name}: {module} has no {attribute!r}; it has {', '.join(known) or 'no function'}")
    return getattr(found, attribute)


def script_of(path: str, options: JobOptions) -> Script:
    """Return the script of a path, with the command line's inputs for its reads.

    Raises:
        BadInput: The file doesn't exist, or the user gives no input.
    """
    from ...witnesses.job.scripts.script import Script

    reads = {given.name: given for given in inputs_of(options)}
    query = options.query
    chosen = int(query) if query is not None and query.isdecimal() else query
    return Script(path, reads, query=chosen, args=[*options.argument])


def inputs_of(options: JobOptions) -> list[Input]:
    """Return the given inputs.

    Raises:
        BadInput: An input can't be read, or the user gives more keys or times than inputs.
    """
    keys = for_each("--key", options.key, len(options.input))
    count = len(options.input)
    more = {
        "time": for_each("--time", options.time, count),
        "time_format": for_each("--time-format", options.time_format, count),
        "format": for_each("--format", options.format, count),
        "value": for_each("--value", options.value, count),
    }
    own = [{name: each[number] for name, each in more.items() if each[number] is not None} for number in range(count)]
    return [_input(*one) for one in zip(options.input, keys, own, strict=True)]


def _input(text: str, key: str | None, more: Mapping[str, Any]) -> Input:
    from ...generators.columns.inputs import Input

    name, columns = "events", text
    if (match := _NAMED.fullmatch(text)) is not None:
        name, columns = match.groups()
    if _OBJECT.fullmatch(columns):
        found = named(columns)
        if not isinstance(found, Input):
            raise BadInput(
                f"--input {text}: {columns} is a {type(found).__name__}: name an Input, or write its columns"
            )
        return found
    own: dict[str, Any] = {"sample": columns} if columns.endswith(TABLES) else {"schema": columns}
    if key is not None:
        own["key"] = tuple(one.strip() for one in key.split(","))
    return Input(name=name, **own, **more)


def for_each(option: str, given: Sequence[str], inputs: int) -> list[str | None]:
    """Return an option's value for each input; the user gives the option for each input, once for all inputs, or not at
    all.

    Raises:
        BadInput: The number of values is neither 1 nor the number of inputs.
    """
    if len(given) not in (0, 1, inputs):
        raise BadInput(
            f"{option} is given {len(given)} times for {inputs} inputs: give it once, or once for each input"
        )
    return [*given] if len(given) == inputs else [given[0] if given else None] * inputs


def static_of(texts: Sequence[str]) -> dict[str, Any]:
    """Return the given static tables.

    Raises:
        BadInput: A table can't be read.
    """
    from pyarrow import ArrowException, csv, parquet

    tables = {}
    for text in texts:
        match = _NAMED.fullmatch(text)
        if match is None or not match[2].endswith(TABLES):
            raise BadInput(f"--static {text}: write it as name=file.parquet, or .csv")
        try:
            tables[match[1]] = (parquet.read_table if match[2].endswith(".parquet") else csv.read_csv)(match[2])
        except (OSError, ArrowException) as error:
            raise BadInput(f"--static {text}: it can't be read: {error}") from None
    return tables


def expected(text: str) -> Any:
    """Return the oracle, rule or function that `--expect` names.

    Raises:
        BadInput: The text doesn't name an oracle, a rule or a function, or the named object can't be found.
    """
    from ...laws.expected.oracles import as_batch, sql

    if text == "batch":
        return as_batch()
    if text.endswith(".sql"):
        return sql(read_text(Path(text)))
    if _OBJECT.fullmatch(text):
        return named(text)
    raise BadInput(
        f"--expect {text}: use batch, a file that ends in .sql, or the module:name of an oracle, a rule or a function"
    )
