"""Counterexamples of jobs: their text, their folders, and the histories that are run first the next time."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path

from ...reference.core.errors import BadInput
from ...reference.core.files import read_text
from ...reference.spark.watermarks import micro_batches
from ..generators.columns.formatting import shown_row, typed_row
from ..generators.columns.forms.rows import Row
from ..generators.columns.histories.text import parse, pasted, to_text
from ..generators.columns.model import Expected, JobHistory, Source
from ..laws.all import UPGRADE
from ..laws.expected.comparison import both_flat, table_of
from ..outcomes.equality import TWELVE_DIGITS, Equality
from ..outcomes.outcomes import Difference
from ..system.visible import visible
from ..witnesses.run_options import RunOptions
from .store import HISTORY, TEXT, Refresh, Store, put, read_each, read_metadata
from .tables import BatchWatermarks, ResultRow, arrivals_table, result_rows, results_table
from .text import versions
from .timeline import timeline

SAVED = Path(".streamproof/jobs")
"""The folder of jobs' counterexamples, below the root folder of the tests, or the working directory."""
MOST_LINES = 60
"""The most lines of a history that is printed to be pasted."""
NO_ROW = "no such row"
AS_FOUND = "The history that it was shrunk from differs in another way, so there may be two reasons:"


@dataclass(frozen=True, kw_only=True)
class JobCounterexample:
    """A history on which a job differs from what is expected.

    Attributes:
        job: The job's name and line.
        oracle: The oracle's name.
        history: The smallest history that was found.
        sources: The job's inputs.
        expected: The outcome that the oracle expects.
        emitted: The rows of each batch that the job emitted; for a sink one list, of the end.
        difference: The first difference; None if it didn't differ any more.
        run: How the query was run.
        unique: The columns that tell the rows of an updated table apart.
        seed: The seed that the history was drawn from.
        delays_us: The delay of each input's watermark, in microseconds; None: it isn't known.
        equality: When two values count as equal.
        runs: How the query was run, and how the plain query to compare with was run; None: there is one run.
        is_sink: Whether the job writes its result itself, so that the table at the end is compared.
        says: The verdict in one sentence, of a run that wasn't a check's; empty: the difference says it.
    """

    job: str
    oracle: str
    history: JobHistory
    sources: Sequence[Source]
    expected: Expected
    emitted: Sequence[Sequence[Row]]
    difference: Difference | None
    run: RunOptions
    unique: Sequence[str] | None
    seed: int
    delays_us: Mapping[str, int] | None = None
    equality: Equality = TWELVE_DIGITS
    runs: tuple[str, str] | None = None
    is_sink: bool = False
    says: str = ""

    @property
    def text(self) -> str:
        """The verdict in a sentence, the expected and the actual rows, the arrivals, and their timeline."""
        history = self.history.first(self.history.used) if self.says else self.history  # of a run no more is of use
        drawn = timeline(history, self.sources, self.watermarks)
        lines = [self.sentence, "", f"Expected by {self.oracle}, and emitted by {self.job}:"]
        lines += [*results_table(self.results), "", "What arrives:"]
        by_time = self.run.processing_time
        arrives = arrivals_table(history, self.sources, self.watermarks, processing_time=by_time)
        lines += [*arrives, "", *drawn, *[""] * bool(drawn)]
        compared = "what the sink holds at the end" if self.is_sink else f"mode {self.run.mode}"
        lines.append(f"Seed {self.seed}, {compared}, trigger {self.run.trigger}; {versions()}.")
        return visible("\n".join(lines), lines=True)

    @property
    def sentence(self) -> str:
        """The verdict in one sentence."""
        if self.says:
            return self.says
        found = self.difference
        if found is None:
            return f"violated: {self.job} differs from {self.oracle}, but not each time that it runs."
        where = "at the end" if found.when is None else f"in batch {found.when}"
        came, wanted = (shown_row(rows[0]) if rows else NO_ROW for rows in (found.actual, found.expected))
        if came == wanted:
            wanted, came = typed_row(found.expected[0]), typed_row(found.actual[0])
        elif not (found.actual and found.expected):
            if self.runs is None:  # the sentence names what is expected first
                wanted, came = self._counted(wanted, came)
            else:
                came, wanted = self._counted(came, wanted)
        if self.runs is not None:
            when, otherwise = self.runs
            return f"violated: {when}, {self.job} emits {came} {where}; {otherwise} it emits {wanted}."
        return f"violated: {where} {self.oracle} expects {wanted}, and {self.job} emits {came}."

    def _counted(self, first: str, second: str) -> tuple[str, str]:
        """Return a row with how often it comes on each side, if it comes on both."""
        both = sum(of.side == "both" and shown_row(of.row) in (first, second) for of in self.results)
        assert self.difference is not None
        more = sum(shown_row(row) in (first, second) for row in (*self.difference.expected, *self.difference.actual))
        return counted(first, second, both, more)

    @property
    def results(self) -> list[ResultRow]:
        """The expected and the emitted rows, side by side; for a table up to the first difference."""
        expected, came = both_flat(self.expected.rows, self.emitted)
        if self.expected.comparing == "batches" and len(expected) == len(came):
            return result_rows(expected, came, [f"batch {number}" for number in range(len(came))], self.equality)
        found = self.difference
        at = -1 if found is None or found.when is None else found.when
        table = table_of(came, self.run.mode, self.unique)[min(at, len(came) - 1)] if came else []
        when = "at the end" if at < 0 else f"after batch {at}"
        return result_rows([expected[at]], [table], [when], self.equality)

    @property
    def watermarks(self) -> list[BatchWatermarks]:
        """The watermarks of each batch; empty if they aren't known."""
        delays = self.delays_us
        if delays is None or not self.history.batches:
            return []
        largest: list[dict[str, int | None]] = [dict.fromkeys(delays, clock) for clock in self.history.clock]
        if not largest:  # the rows alone move the watermark
            largest = [
                {source.name: source.latest_us(batch) for source in self.sources} for batch in self.history.batches
            ]
        with_one_more = micro_batches([*largest, {}], delays, trigger=self.run.trigger)  # for the last watermark
        late, after = zip(*((one.late_ms, one.eviction_ms) for one in with_one_more if one.has_data), strict=True)
        return [BatchWatermarks(*(ms * 1_000 or None for ms in both)) for both in zip(late, after[1:], strict=False)]


def counted(first: str, second: str, both: int, more: int) -> tuple[str, str]:
    """Return a row that one side has more often with how often each side has it, if both sides have it.

    Args:
        first: The row of the side that is named first, or `NO_ROW`.
        second: That of the other side; one of them is `NO_ROW`.
        both: How often both sides have the row.
        more: How often the one side has it beyond that.
    """
    row = next(text for text in (first, second) if text != NO_ROW)
    counts = [both + more * (text == row) for text in (first, second)]
    times, others = ({1: "once", 2: "twice"}.get(count, f"{count} times") for count in counts)
    return (f"{row} {times}", f"it {others}") if both else (first, second)


def folder_of(name: str, folder: Path) -> Path:
    """Return the folder for the counterexamples of a test or a job; `name` is a node id, or module:function."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name)[-80:].strip("-")
    return folder / f"{readable}-{sha256(name.encode(errors='surrogateescape')).hexdigest()[:8]}"


class JobStore(Store):
    """The counterexamples of a check of a job, each in a folder of its own.

    Args:
        folder: The folder that they are saved in; None: they aren't saved.
        sources: The job's inputs.
        job: The job's name and line.
        oracle: The oracle's name.
        seed: The seed that the check draws histories from.
    """

    def __init__(
        self, folder: Path | None, sources: Sequence[Source], *, job: str = "", oracle: str = "", seed: int = 0
    ) -> None:
        super().__init__()
        self.folder, self.sources, self.job, self.oracle, self.seed = folder, sources, job, oracle, seed

    def keep(self, history: JobHistory, run: RunOptions) -> Path | None:
        """Save a history before it is shrunk, so that an interrupted check doesn't lose it.

        Returns:
            Its folder, for `forget` once a smaller history is saved; None if it can't be saved.
        """
        why = f"{self.job} differs from {self.oracle} on this history. The check ended before it had shrunk it."
        with contextlib.suppress(OSError):  # a full disk is reported where the smaller history is to be saved
            text = self._text(why, "What arrives:", history, run)
            return self._put(history, run, text, confirmed=False, refresh="never")
        return None

    def violation(
        self,
        counterexample: JobCounterexample,
        head: str,
        unshrunk: Path | None = None,
        as_found: JobCounterexample | None = None,
    ) -> tuple[str, Path | None]:
        """Save a counterexample; return the message of the violation, and the folder (None: it isn't saved).

        Args:
            counterexample: The counterexample.
            head: A line with the number of histories on which the job differs.
            unshrunk: The folder of the history that it was shrunk from; removed once the counterexample is saved.
            as_found: The counterexample that it was shrunk from, if that differs in another way: it is saved, too.
        """
        text, confirmed = counterexample.text, counterexample.difference is not None
        lines, path = self._saved(counterexample.history, counterexample.run, text, confirmed)
        if as_found is not None:
            others, _ = self._saved(as_found.history, as_found.run, as_found.text)
            lines += ["", AS_FOUND, "", as_found.text, *others]
        elif path is not None and path != unshrunk:
            self.forget(unshrunk)
        return "\n".join([text, head, *lines]), path  # the sentence first: pytest's summary shows one line

    def failure(self, history: JobHistory, run: RunOptions, why: str) -> str:
        """Save a history that makes the job's query fail, and return the message."""
        text = self._text(why, "It fails when this arrives, and not without:", history, run)
        return "\n".join([text, *self._saved(history, run, text)[0]])

    def _text(self, why: str, head: str, history: JobHistory, run: RunOptions) -> str:
        arrives = arrivals_table(history, self.sources, [], processing_time=run.processing_time)
        return visible("\n".join([why, "", head, *arrives]), lines=True)

    def _saved(
        self, history: JobHistory, run: RunOptions, report: str, confirmed: bool = True
    ) -> tuple[list[str], Path | None]:
        """Save a history and its report; return the folder, and lines that name it, with the examples to paste."""
        lines, path, shown = [""], None, pasted(history, self.sources)
        check = "check_job"
        if history.variation:
            check = "upgrade" if history.variation["law"] == UPGRADE.of_jobs else "invariants"
        if self.folder is not None:
            try:
                path = self._put(history, run, report, confirmed=confirmed, refresh="always")
                lines += [f"Saved in {visible(path)}, and run first the next time.", ""]
            except OSError as error:
                where = visible(self._folder_for(self.folder, history))
                lines += [f"It can't be saved in {where} ({error.strerror}): keep what stands below.", ""]
        if path is not None and len(shown) > MOST_LINES:
            return [*lines, f"It is too long to be pasted: give {check} the saved file, as examples=[Path(…)]."], path
        lines += [f"To run it first in every run of the test, give {check} these examples:", ""]
        return [*lines, *("    " + line for line in shown)], path

    def _put(
        self, history: JobHistory, run: RunOptions, report: str, *, confirmed: bool, refresh: Refresh
    ) -> Path | None:
        """Write a history, its report and its metadata, and return their folder; None: there is no folder to save in.

        Raises:
            OSError: The files can't be written.
        """
        if self.folder is None:
            return None
        metadata = {
            "law": visible(history.variation.get("law", self.oracle)),
            "subject": "job",
            "job": visible(self.job),
            "confirmed": confirmed,
            "seed": self.seed if history.seed is None else history.seed,
            "versions": versions(),
            "trigger": run.trigger,
            "mode": run.mode,
            "settings": {**run.settings},
            "way": run.to_json(),
        }
        files = {HISTORY: to_text(history, self.sources), TEXT: report + "\n"}
        return self.remembered(*put(self._folder_for(self.folder, history), files, metadata, refresh=refresh))

    def _folder_for(self, folder: Path, history: JobHistory) -> Path:
        return folder / f"job-{sha256(to_text(history, self.sources).encode()).hexdigest()[:12]}"


def saved_histories(examples: Sequence[str | Path], folder: Path | None, sources: Sequence[Source]) -> list[JobHistory]:
    """Return the histories of examples, and the histories saved in a folder, by any version.

    Raises:
        BadInput: A history can't be read; the message names it and the line.
    """
    found = []
    for number, example in enumerate(examples):
        if isinstance(example, Path) or not ("\n" in example or example.lstrip().startswith("{")):
            path = Path(example)
            found.append(parse(read_text(path), sources, os.fspath(path)))
        else:
            found.append(parse(example, sources, f"example {number}"))
    if folder is not None:
        found += read_each(
            folder,
            lambda path: replace(parse(read_text(path / HISTORY), sources, f"{path / HISTORY}"), seed=_seed(path)),
            lambda path: f"; or remove {path}, if the job's inputs have changed since",
        )
    return found


def _seed(folder: Path) -> int | None:
    """Return the seed of the check that saved a counterexample; None: its metadata don't have it."""
    with contextlib.suppress(BadInput):  # the history alone is replayed
        seed = read_metadata(folder).get("seed")
        return seed if type(seed) is int else None
    return None
