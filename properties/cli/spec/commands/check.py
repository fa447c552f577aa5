"""The command `spec check`, which checks models with TLC, each against the model's expected result."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

import typer
from rich.markup import escape

from .....reference.core.errors import BadInput, StreamproofError
from ....system.outputs import CHART, REPORT, require_replaceable
from ...options import ReportFolder
from ...reporting import again, reporting
from ...terminal import EXITS, STYLES, messages, results, steps

if TYPE_CHECKING:
    from .....specs.pytla import TlaValue, Tools
    from ....report.content import Content

from ..checked import CheckedModel
from ..files import write_text
from ..models import ChosenModel, constants_given, one_model
from ..options import (
    ChartFile,
    Configuration,
    Constants,
    Deadlock,
    Force,
    Jobs,
    JsonFile,
    Memory,
    ModelNames,
    Size,
    SizeChoice,
    Timeout,
    WithTraces,
    Workers,
)
from ..printing import print_counterexample
from ..tlc import reporter, tools_with

_AS_VERB = {"conforms": "conform"}


def check_models(
    models: ModelNames = None,
    size: Size = SizeChoice.SMALL,
    workers: Workers = 1,
    jobs: Jobs = None,
    constant: Constants = None,
    config: Configuration = None,
    deadlock: Deadlock = True,
    timeout: Timeout = None,
    memory: Memory = None,
    trace: WithTraces = False,
    chart: ChartFile = None,
    json_file: JsonFile = None,
    force: Force = False,
    report: ReportFolder = None,
) -> None:
    """Check models with TLC against their expected results: the outcome, the violated property, and the counts.

    A model that should fail but passes is a violation. With --constant, or for your own module, no result is expected.
    If TLC doesn't finish within --timeout, the result is inconclusive: exit 2.
    """
    chosen = _chosen(models, size, constants_given(constant), config, deadlock)
    if (constant or chart) and len(chosen) != 1:
        raise BadInput(f"{'--constant' if constant else '--chart'} is for a single model: name the model")
    for path, kind in ((chart, CHART), (json_file, REPORT)):
        if path is not None:
            require_replaceable(path, kind, force)
    given = {} if size is SizeChoice.SMALL else {"size": size.value}
    command = again("spec check", models or [], **given, config=config, timeout=timeout)
    command += "".join(f" --constant {shlex.quote(one)}" for one in constant or ())
    command += "" if deadlock else " --no-deadlock"
    tools = tools_with(memory)
    width = max(len(one.name) for one in chosen)
    # In a short run, TLC waits for files and its own threads during a third of the time.
    at_a_time = jobs or max(1, available_cores() * 3 // 2 // workers)
    checked: list[CheckedModel] = []
    started = time.monotonic()

    def content(ended: str) -> Content:
        from ..content import content

        return content(chosen, checked, command, ended)

    try:
        with reporting(report, content):
            progress = _Progress()
            answers = _check_all(chosen, tools, workers, at_a_time, timeout, progress)
            for _ in chosen:
                with progress.shown():
                    checked.append(next(answers))
                _print_checked(checked[-1], width, trace)
    finally:
        if json_file is not None:
            write_text(json_file, json.dumps([one.to_json() for one in checked], indent=2, ensure_ascii=False) + "\n")
    if chart is not None:
        _draw(checked[0], chart)
    counts: Counter[str] = Counter(one.verdict for one in checked)
    if len(checked) > 1:
        _print_counts(counts, time.monotonic() - started, workers)
    raise typer.Exit(next((EXITS[verdict] for verdict in ("violated", "inconclusive") if counts[verdict]), 0))


def _print_counts(counts: Counter[str], seconds: float, workers: int) -> None:
    summary = ", ".join(f"{counts[each]} {_AS_VERB.get(each, each)}" for each in EXITS if counts[each])
    note = "" if workers == 1 else f" Counts aren't compared with {workers} workers."
    results.print(f"{sum(counts.values())} models: {summary}; {seconds:.0f} s.{note}", markup=False)


def _chosen(
    names: Sequence[str] | None,
    size: SizeChoice,
    constants: Mapping[str, TlaValue],
    config: Path | None,
    deadlock: bool,
) -> list[ChosenModel]:
    from .....specs.catalogue import catalogue

    if names:
        return [one_model(name, constants, config, deadlock) for name in names]
    if config is not None:
        raise BadInput("--config is for a .tla file of your own: name the file")
    wanted = [model for one in catalogue() for model in one.models if size in (SizeChoice.ALL, model.size)]
    if not wanted:
        raise BadInput(f"the catalogue has no {size.value} models")
    return [one_model(model.name, constants) for model in wanted]


class _Progress:
    """Reports the current step; on a terminal, the step disappears while results are printed."""

    def __init__(self) -> None:
        self._report: Callable[[str], None] = lambda step: None

    def __call__(self, step: str) -> None:
        self._report(step)

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Show steps during the block."""
        with steps() as self._report:
            yield


def _check_all(
    chosen: Sequence[ChosenModel],
    tools: Tools,
    workers: int,
    at_a_time: int,
    timeout: float | None,
    progress: Callable[[str], None],
) -> Iterator[CheckedModel]:
    """Check models concurrently, and yield the results in the models' order."""
    if at_a_time == 1 or len(chosen) == 1:
        for one in chosen:
            yield _check(one, tools, workers, timeout, progress)
        return
    answers: list[Future[CheckedModel]] = [Future() for _ in chosen]
    waiting = deque(zip(chosen, answers, strict=True))

    def work() -> None:
        while waiting:
            with suppress(IndexError):  # another thread may take the last model first
                one, answer = waiting.popleft()
                try:
                    answer.set_result(_check(one, tools, workers, timeout, progress))
                except BaseException as error:
                    answer.set_exception(error)

    # Daemon threads don't delay an early end of a check, and TLC ends with this process.
    for _ in range(min(at_a_time, len(chosen))):
        Thread(target=work, daemon=True).start()
    try:
        for answer in answers:
            yield answer.result()
    finally:
        waiting.clear()


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _tools_for(chosen: ChosenModel, tools: Tools) -> Tools:
    """Limit Java's compiler for a small model, because compilation would take longer than the model."""
    from .....specs.checking import QUICK

    others = tuple(option for option in tools.options if option not in QUICK)
    return tools._replace(
        options=(*QUICK, *others) if chosen.entry is not None and chosen.entry.size == "small" else others
    )


def _check(
    chosen: ChosenModel, tools: Tools, workers: int, timeout: float | None, progress: Callable[[str], None]
) -> CheckedModel:
    from .....specs.checking import broken_expectations, check, tlc_errors
    from .....specs.pytla import StateSpaceTooLarge, TimedOut

    with tlc_errors():
        try:
            found = check(chosen.model, _tools_for(chosen, tools), workers, timeout, reporter(chosen.name, progress))
        except (TimedOut, StateSpaceTooLarge) as unfinished:
            return CheckedModel(chosen, None, [], "inconclusive", str(unfinished))
    if chosen.entry is None:
        return CheckedModel(chosen, found, [], "conforms" if found.passed else "violated")
    broken = broken_expectations(chosen.entry, found, exact=workers == 1)
    return CheckedModel(chosen, found, broken, "violated" if broken else "conforms")


def _print_checked(checked: CheckedModel, width: int, with_trace: bool) -> None:
    name, found = checked.chosen.name, checked.found
    verdict = f"[{STYLES[checked.verdict]}]{checked.verdict:12}[/] {escape(f'{name:{width}}')}"
    if found is None:
        results.print(f"{verdict} {escape(checked.why)}", soft_wrap=True)
        return
    expected = checked.chosen.entry is not None and not checked.broken
    if found.trace is None:
        said = found.verdict
    else:
        said = f"{found.verdict} in {len(found.trace)} states" + (", as it should" if expected else "")
    results.print(
        f"{verdict} {escape(said)}; {found.distinct:,} distinct states of {found.generated:,} generated, "
        f"depth {found.depth}; {found.seconds:.1f} s",
        soft_wrap=True,
    )
    for sentence in checked.broken:
        results.out(f"  {sentence}")
    if found.trace is not None and (with_trace or not expected):
        print_counterexample(found, checked.chosen.model.module)


def _draw(checked: CheckedModel, path: Path) -> None:
    from .....specs.sequence_chart import sequence_chart

    found = checked.found
    if found is None or found.trace is None:
        raise StreamproofError(f"{path}: not written, because {checked.chosen.name} has no counterexample to draw")
    chosen = checked.chosen
    write_text(path, sequence_chart(found.trace, chosen.model.module, chosen.title, found.violation))
    messages.out(f"{path}: the counterexample, {len(found.trace)} states")
