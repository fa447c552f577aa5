"""Counterexamples of jobs: create and save counterexamples, and read saved histories for the next check."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from pathlib import Path

from ...reference.core.errors import BadInput
from ...reference.core.files import read_text
from ...reference.spark.watermarks import micro_batches
from ..generators.columns.formatting import shown_row, typed_row
from ..generators.columns.forms.rows import Row
from ..generators.columns.histories.text import parse, pasted
from ..generators.columns.model import Expected, JobHistory, Source
from ..laws.all import UPGRADE
from ..laws.expected.comparison import both_flat, in_words, table_of
from ..outcomes.equality import TWELVE_DIGITS, Equality
from ..outcomes.outcomes import Difference
from ..system.visible import visible
from ..witnesses.run_options import Mode, RunOptions, Trigger
from .counterexample import Counterexample
from .store import HISTORY, TEXT, Refresh, Store, read_each, read_metadata
from .tables import BatchWatermarks, RowAndSide, arrivals_table, result_rows
from .text import counterexample_text

SAVED = Path(".streamproof/jobs")
"""The folder of jobs' counterexamples, below pytest's root folder or the working directory."""
MOST_LINES = 60
"""The largest number of lines of a history to print for pasting into a test."""
NO_ROW = "no such row"
AS_FOUND = "The history before shrinking differs in another way, so there may be two reasons:"


def counterexample_of(
    *,
    job: str,
    oracle: str,
    history: JobHistory,
    sources: Sequence[Source],
    expected: Expected,
    emitted: Sequence[Sequence[Row]],
    difference: Difference | None,
    run: RunOptions,
    unique: Sequence[str] | None,
    seed: int,
    delays_us: Mapping[str, int] | None = None,
    equality: Equality = TWELVE_DIGITS,
    runs: tuple[str, str] | None = None,
    says: str = "",
) -> Counterexample[JobHistory]:
    """Return the counterexample of a job.

    Args:
        job: The job's name and line.
        oracle: The oracle's name.
        history: The smallest history found.
        sources: The job's inputs.
        expected: The oracle's expected outcome.
        emitted: The job's emitted rows of each batch; for a sink, the final rows in a single list.
        difference: The first difference; None if a repeated run didn't differ.
        run: The query's run options.
        unique: The columns that identify the rows of an updated table.
        seed: The seed of the drawn history.
        delays_us: The watermark's delay of each input (µs); None if unknown.
        equality: The rules of equality of two values.
        runs: The two compared runs, in words, with run options and with default options; None for a single run.
        says: The verdict on a run in production, in one sentence; if empty, the sentence is made from the difference.
    """
    rows = _results(expected, emitted, difference, run.mode, unique, equality)
    return Counterexample(
        law=law_of(history, oracle),
        history=history,
        subject="job",
        way=run,
        confirmed=difference is not None,
        seed=seed,
        sentence=says or _sentence(job, oracle, difference, rows, runs),
        expected=(oracle, expected),
        actual=(job, emitted),
        differences=[] if difference is None else [difference],
        sources=sources,
        rows=rows,
        watermarks=watermarks_of(history, sources, delays_us, run.trigger),
        compared=in_words(expected.comparing, equality),
        is_of_run=bool(says),
    )


def _sentence(
    job: str, oracle: str, found: Difference | None, rows: Sequence[RowAndSide], runs: tuple[str, str] | None
) -> str:
    """Return the verdict in one sentence; the arguments are those of `counterexample_of`."""
    if found is None:
        return f"violated: {job} differs from {oracle}, but not in every run."
    where = "at the end" if found.when is None else f"in batch {found.when}"
    texts = [shown_row(row) for row in (*found.expected, *found.actual)]
    both = sum(one.side == "both" and shown_row(one.row) == texts[0] for one in rows)
    wanted, came = sides_in_words(found, both, texts.count(texts[0]), actual_first=runs is not None)
    if runs is not None:
        when, otherwise = runs
        return f"violated: {when}, {job} emits {came} {where}; {otherwise} it emits {wanted}."
    return f"violated: {where} {oracle} expects {wanted}, and {job} emits {came}."


def _results(
    expected: Expected,
    emitted: Sequence[Sequence[Row]],
    difference: Difference | None,
    mode: Mode,
    unique: Sequence[str] | None,
    equality: Equality,
) -> list[RowAndSide]:
    """Return the expected and the emitted rows, side by side; for a table, up to the first difference."""
    wanted, came = both_flat(expected.rows, emitted)
    if expected.comparing == "batches" and len(wanted) == len(came):
        return result_rows(wanted, came, [f"batch {number}" for number in range(len(came))], equality)
    at = -1 if difference is None or difference.when is None else difference.when
    table = table_of(came, mode, unique)[min(at, len(came) - 1)] if came else []
    when = "at the end" if at < 0 else f"after batch {at}"
    return result_rows([wanted[at]], [table], [when], equality)


def watermarks_of(
    history: JobHistory, sources: Sequence[Source], delays_us: Mapping[str, int] | None, trigger: Trigger
) -> list[BatchWatermarks]:
    """Return the watermarks of each batch; empty if unknown."""
    if delays_us is None or not history.batches:
        return []
    largest: list[dict[str, int | None]] = [dict.fromkeys(delays_us, clock) for clock in history.clock]
    if not largest:  # without clock advances, only the history's rows move the watermark
        largest = [{source.name: source.latest_us(batch) for source in sources} for batch in history.batches]
    # A batch's second watermark is the next batch's first, so the last batch needs an empty batch after it.
    with_one_more = micro_batches([*largest, {}], delays_us, trigger=trigger)
    late, after = zip(*((one.late_ms, one.eviction_ms) for one in with_one_more if one.has_data), strict=True)
    return [BatchWatermarks(*(ms * 1_000 or None for ms in both)) for both in zip(late, after[1:], strict=False)]


def sides_in_words(found: Difference, both: int, more: int, *, actual_first: bool) -> tuple[str, str]:
    """Return the first expected and the first actual row as text, with types or counts if the texts are equal.

    Args:
        found: The difference.
        both: The number of copies of the row that are expected and emitted.
        more: The number of further copies that are only expected, or only emitted.
        actual_first: Whether the sentence names the actual row first.
    """
    wanted, came = (shown_row(side[0]) if side else NO_ROW for side in (found.expected, found.actual))
    if wanted == came:
        return typed_row(found.expected[0]), typed_row(found.actual[0])
    if (found.expected and found.actual) or not both:
        return wanted, came
    counts = (both + more * bool(side) for side in (found.expected, found.actual))
    often, as_often = ({1: "once", 2: "twice"}.get(count, f"{count} times") for count in counts)
    row = wanted if found.expected else came
    return (f"it {often}", f"{row} {as_often}") if actual_first else (f"{row} {often}", f"it {as_often}")


def folder_of(name: str, folder: Path) -> Path:
    """Return the folder for the counterexamples of a test or a job; `name` is a node id, or module:function."""
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name)[-80:].strip("-")
    return folder / f"{readable}-{sha256(name.encode(errors='surrogateescape')).hexdigest()[:8]}"


class JobStore(Store):
    """The counterexamples of a job's check, each in its own folder.

    Args:
        folder: The folder in which to save; None to save no counterexample.
        sources: The job's inputs.
        job: The job's name and line.
        oracle: The oracle's name.
        seed: The seed of the check's draws.
    """

    def __init__(
        self, folder: Path | None, sources: Sequence[Source], *, job: str = "", oracle: str = "", seed: int = 0
    ) -> None:
        super().__init__()
        self.folder, self.sources, self.job, self.oracle, self.seed = folder, sources, job, oracle, seed

    def keep(self, history: JobHistory, run: RunOptions) -> Path | None:
        """Save a history before shrinking, so that an interrupted check doesn't lose the history.

        Returns: The saved folder, for `forget` after a smaller history is saved; None if saving failed.
        """
        why = (
            f"{self.job} differs from {self.oracle} on this history. The check ended before it had shrunk the history."
        )
        unshrunk = replace(self._without_rows(history, run, why), confirmed=False)
        with contextlib.suppress(OSError):  # a full disk is reported when the smaller history is saved
            return self._put(unshrunk, _arriving(unshrunk, "What arrives:"), "never")
        return None

    def violation(
        self,
        counterexample: Counterexample[JobHistory],
        head: str,
        unshrunk: Path | None = None,
        as_found: Counterexample[JobHistory] | None = None,
    ) -> tuple[str, Path | None]:
        """Save a counterexample; return the message of the violation, and the folder (None if not saved).

        Args:
            counterexample: The counterexample.
            head: A line with the number of differing histories.
            unshrunk: The folder of the history before shrinking, which is removed after the counterexample is saved.
            as_found: The counterexample before shrinking, which is saved too; None if shrinking didn't change the kind
                of difference.
        """
        text = counterexample_text(counterexample)
        lines, path = self._saved(counterexample, text)
        if as_found is not None:
            other = counterexample_text(as_found)
            lines += ["", AS_FOUND, "", other, *self._saved(as_found, other)[0]]
        elif path is not None and path != unshrunk:
            self.forget(unshrunk)
        return "\n".join([text, head, *lines]), path  # pytest's summary shows only the first line

    def failure(self, history: JobHistory, run: RunOptions, why: str) -> str:
        """Save a history that makes the job's query fail, and return the message."""
        failing = self._without_rows(history, run, why)
        text = _arriving(failing, "The query fails when these rows arrive, but not without them:")
        return "\n".join([text, *self._saved(failing, text)[0]])

    def _without_rows(self, history: JobHistory, run: RunOptions, why: str) -> Counterexample[JobHistory]:
        return Counterexample(
            law=law_of(history, self.oracle),
            history=history,
            subject="job",
            way=run,
            seed=self.seed if history.seed is None else history.seed,
            sentence=why,
            expected=(self.oracle, None),
            actual=(self.job, None),
            sources=self.sources,
        )

    def _saved(self, one: Counterexample[JobHistory], report: str) -> tuple[list[str], Path | None]:
        """Save a counterexample and its report; return lines with the path and examples to paste, and the folder."""
        lines, path, shown = [""], None, pasted(one.history, one.sources)
        check = "check_job"
        if one.history.variation:
            check = "upgrade" if one.law == UPGRADE.of_jobs else "invariants"
        if self.folder is not None:
            try:
                path = self._put(one, report, "always")
                lines += [f"Saved in {visible(path)}; the next check runs it first.", ""]
            except OSError as error:
                where = visible(self.folder / one.name)
                lines += [f"The history can't be saved in {where} ({error.strerror}): copy it from below.", ""]
        if path is not None and len(shown) > MOST_LINES:
            return [
                *lines,
                f"The history is too long to paste: give {check} the saved file, as examples=[Path(…)].",
            ], path
        lines += [f"To run the history first in every test run, give {check} these examples:", ""]
        return [*lines, *("    " + line for line in shown)], path

    def _put(self, one: Counterexample[JobHistory], report: str, refresh: Refresh) -> Path | None:
        """Write a counterexample and its report, and return its folder; None if no folder is configured.

        Raises:
            OSError: The files can't be written.
        """
        if self.folder is None:
            return None
        run = one.way or RunOptions()
        metadata = {
            "law": visible(one.law),
            "job": visible(one.actual[0]),
            "trigger": run.trigger,
            "mode": run.mode,
            "settings": {**run.settings},
        }
        return self.write(self.folder / one.name, one, {TEXT: report + "\n"}, metadata, refresh=refresh)


def law_of(history: JobHistory, oracle: str) -> str:
    """Return the name of the law that a history breaks: the invariant that its run tests, or the oracle."""
    return str(history.variation.get("law", oracle))


def _arriving(one: Counterexample[JobHistory], head: str) -> str:
    """Return the text of a counterexample without outcomes: the sentence, a headline, and a table of the arrivals."""
    by_time = one.way is not None and one.way.processing_time
    arrives = arrivals_table(one.history, one.sources, [], processing_time=by_time)
    return visible("\n".join([one.sentence, "", head, *arrives]), lines=True)


def saved_histories(examples: Sequence[str | Path], folder: Path | None, sources: Sequence[Source]) -> list[JobHistory]:
    """Return the histories of examples, and the histories saved in a folder by any version of streamproof.

    Raises:
        BadInput: A history can't be read; the message names the history and the line.
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
    """Return the seed of the check that saved a counterexample; None if its metadata contain no seed."""
    with contextlib.suppress(BadInput):  # ignore damaged metadata, because a replay needs only the history
        seed = read_metadata(folder).get("seed")
        return seed if type(seed) is int else None
    return None
