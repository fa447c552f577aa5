"""Compares the rows that a run in production wrote with the rows that an oracle expects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias

from .....reference.core.errors import BadInput
from ....counterexamples.of_jobs import counterexample_of, watermarks_of
from ....counterexamples.tables import BatchWatermarks
from ....generators.columns.forms.rows import Row, microseconds
from ....generators.columns.model import Expected, JobHistory
from ....laws.expected.comparison import both_flat, columns_of, table_of, unmatched
from ....laws.expected.oracles import JobOracle, ModelOracle
from ....laws.expected.rules.rule import Rule
from ....laws.variation import Variation
from ....outcomes.equality import comparable
from ....outcomes.outcomes import Difference
from ....witnesses.job.plan.plans import delays_by_input
from ..arguments import CheckOptions
from ..job_check import JobCheck
from ..verdicts import Inconclusive
from .run import ProductionRun

_Placed: TypeAlias = tuple[int | None, Row]
"""A row, with the id of the micro-batch that wrote it; None: unknown."""


def place_of(row: Row) -> Any:
    """Return the timestamps in a row, by which the row differs from other rows with the same key."""
    return comparable({name: value for name, value in row.items() if isinstance(value, datetime)})


def _values_of(row: Row) -> Iterator[Any]:
    """Yield the values of a row, including values in structs."""
    for value in row.values():
        yield from _values_of(value) if isinstance(value, Mapping) else [value]


def wrong_row(difference: Difference) -> Row:
    """Return the missing or surplus row of a difference that consists of one row."""
    rows: list[Row] = [*difference.expected, *difference.actual]
    return rows[0]


class Judging:
    """The comparison of a run in production with an oracle.

    Args:
        check: The check of the job, with the judge and the store of counterexamples.
        options: The options of the query in production.
        run: The run.
    """

    def __init__(self, check: JobCheck, options: CheckOptions, run: ProductionRun) -> None:
        self.options, self.run, self.draws = options, run, check.draws
        self.judge, self.declared, self.store = check.judge, check.judge.declared, check.store
        self.sources, self.mode = options.runner.sources, options.run.mode
        self.exact = isinstance(self.judge.oracle, (Rule, JobOracle)) and run.checkpoint.is_whole
        self.by_batch = self.exact and self.mode == "append" and run.written.has_batches
        # All other oracles return the final table, which doesn't depend on the batches.
        self.by_batches = isinstance(self.judge.oracle, (Rule, JobOracle, ModelOracle))
        self.not_checked: list[str] = []
        self.unsure_keys = self._keys_with_late_rows()
        plan = self.declared.plan
        self.delays_us = delays_by_input(plan, self.sources)
        self.counterexample = partial(
            counterexample_of,
            oracle=self.judge.oracle.name,
            sources=self.sources,
            unique=None,
            seed=0,
            delays_us=self.delays_us,
            equality=options.equality,
        )
        self.judge.leave_out((plan.nondeterministic | plan.of_clock).difference(self.judge.unique_columns or ()))

    def _keys_with_late_rows(self) -> set[Any]:
        """Return the keys with rows for which the oracle can't decide whether Spark dropped them as late.

        An oracle that returns rows by batch is unsure only if a batch without data may have run before the row's batch.
        """
        keys: set[Any] = set()
        if self.exact or not self.declared.plan.delays_us:
            return keys
        by_name, before_ms = {source.name: source for source in self.sources}, -1
        for watermark_ms, batch in zip(self.run.watermarks_ms, self.run.history.batches, strict=False):
            least_ms = before_ms if self.by_batches else -1
            for name, row in batch:
                time_us = by_name[name].time_us_of(row)
                if time_us is not None and least_ms < time_us // 1_000 <= watermark_ms:
                    keys.add(comparable([*by_name[name].key_of(row)]))
            before_ms = watermark_ms
        return keys

    def emitted(self, expected: Expected) -> tuple[Expected, list[Row]]:
        """Return the expected and the written rows in the columns that both have.

        The method also records the columns that the oracle doesn't return. The result leaves out the rows of keys that
        may have late rows.

        Raises:
            BadInput: The written rows lack a column that the oracle expects.
            Inconclusive: Input rows may be late, and the output doesn't show which of its rows depend on the late rows.
        """
        __tracebackhide__ = True
        written = self.run.written
        expected, (rows,) = self.in_form(expected, [written.rows])
        wanted = columns_of(expected.rows)
        self.judge.met.extra = [column for column in columns_of([rows]) if wanted and column not in wanted]
        if not self.unsure_keys:
            return expected, rows
        columns = wanted or columns_of([rows])
        if columns and not self.key_columns(dict.fromkeys(columns)):
            raise Inconclusive(
                f"inconclusive: the run of {self.judge.name} has read {self._why_unsure()}; or keep the columns "
                "of the inputs' key in the output, so that other keys can be judged",
                job=self.judge.name,
            )
        count = len(self.unsure_keys)
        self.not_checked.append(f"{count:,} key{'s' * (count != 1)} with {self._why_unsure()}")
        kept = [at for at, row in enumerate(rows) if self._is_sure(row)]
        rows, batches = [rows[at] for at in kept], [written.batches[at] for at in kept]
        self.run = replace(self.run, written=replace(written, rows=rows, batches=batches))
        return replace(expected, rows=[[*filter(self._is_sure, of_batch)] for of_batch in expected.rows]), rows

    def _is_sure(self, row: Row) -> bool:
        """Return whether a row of the output is independent of possibly late input rows."""
        return comparable([row[column] for column in self.key_columns(row)]) not in self.unsure_keys

    def _why_unsure(self) -> str:
        if self.by_batches and not self.run.checkpoint.is_whole:
            return (
                "rows that are late if a batch without data ran before their batch, whose log is deleted: "
                "spark.sql.streaming.minBatchesToRetain keeps more logs"
            )
        return (
            f"rows at or behind the watermark, and {self.judge.oracle.name} can't decide whether such rows "
            "count: expect a rule, such as windows(…)"
        )

    def differing(self, expected: Expected, written: Sequence[Row]) -> list[Difference]:
        """Return a difference for each missing or surplus row, by batch and key, in any order."""
        return sorted(self._wrong(expected, written), key=self._order)

    def _order(self, one: Difference) -> tuple[bool, int, str]:
        row = wrong_row(one)
        key = [row[column] for column in self.key_columns(row)]
        return one.when is None, one.when or 0, repr(comparable(key))

    def key_columns(self, row: Row) -> Sequence[str]:
        """Return the key columns in a row of the output; return an empty list if the output lacks a key column."""
        keys = self.sources[0].key
        same = all(source.key == keys for source in self.sources)
        return keys if same and {*keys} <= {*row} else ()

    def given(self, history: JobHistory) -> JobHistory:
        """Return a history as the oracle needs it: with all rows in one batch, if only the final table is compared."""
        return history if self.mode == "append" or self.by_batches else _at_once(history)

    def expected(self, histories: Sequence[JobHistory]) -> list[Expected]:
        """Return the oracle's expected outcome of each history."""
        return self.judge.expected(histories, Variation(self.options.run))

    def in_form(self, expected: Expected, emitted: Sequence[Sequence[Row]]) -> tuple[Expected, list[list[Row]]]:
        """Return the expected and the written rows in the columns that both have.

        Raises:
            BadInput: The written rows lack a column that the oracle expects.
        """
        batches = [[*rows] for rows in emitted]
        (in_form,), (batches,) = self.judge.side_by_side([expected], [batches], Variation(self.options.run))
        wanted, came = both_flat(in_form.rows, batches)
        needed, present = columns_of(wanted), columns_of(came)
        missing = [column for column in needed if present and column not in present]
        if missing:
            raise BadInput(
                f"the output has the columns {', '.join(present)}, but not {', '.join(missing)}, which "
                f"{self.judge.oracle.name} expects: give output= a function that returns columns with these "
                "names"
            )
        return replace(in_form, rows=wanted), came

    def _wrong(self, expected: Expected, written: Sequence[Row]) -> Iterator[Difference]:
        """Yield the missing and the surplus rows."""
        columns = sorted(columns_of(expected.rows))
        if self.by_batch:
            by_number: dict[int | None, list[Row]] = {}
            for row, batch in zip(written, self.run.written.batches, strict=True):
                by_number.setdefault(batch, []).append(row)
            for number, rows in zip(self.run.numbers, expected.rows, strict=False):
                yield from self._of_bags(
                    [(number, row) for row in rows], [(number, r) for r in by_number.get(number, [])], columns
                )
            return
        must, may = self._must_and_may(expected)
        came = [*zip(self.run.written.batches, written, strict=True)]
        if self.mode == "append":
            yield from (one for one in self._of_bags(may, came, columns) if one.actual)
            yield from (one for one in self._of_bags(must, came, columns) if one.expected)
        else:
            yield from self._of_bags(must, came, columns)

    def _of_bags(
        self, expected: Sequence[_Placed], came: Sequence[_Placed], columns: Sequence[str]
    ) -> Iterator[Difference]:
        wanted, emitted = ([row for _, row in side] for side in (expected, came))
        missing, surplus = unmatched(wanted, emitted, columns, self.options.equality)
        yield from (Difference(batch, [row], []) for batch, row in (expected[at] for at in missing))
        yield from (Difference(batch, [], [row]) for batch, row in (came[at] for at in surplus))

    def watermarks(self, history: JobHistory) -> list[BatchWatermarks]:
        """Return the watermark of each batch for a part of the run; return an empty list if the watermarks are
        unknown.
        """
        return watermarks_of(history, self.sources, self.delays_us, self.options.run.trigger)

    def at_end(self, expected: Expected) -> list[Row]:
        """Return all rows that the oracle expects by the end: the rows of all batches, or the table."""
        if expected.comparing != "batches":
            return [*expected.rows[-1]]
        if self.mode != "append":
            return [*table_of(expected.rows[:-1], self.mode, self.judge.unique_columns)[-1]]
        return [row for rows in expected.rows for row in rows]

    def _must_and_may(self, expected: Expected) -> tuple[list[_Placed], list[_Placed]]:
        """Return the rows that the run must have written by now, and the rows that it may have written, each with its
        batch.

        Spark emits a closed window in the next batch, which the run may not have executed yet.
        """
        rows, numbers = expected.rows, [*self.run.numbers, None]
        if self.mode != "append":
            if expected.comparing == "batches":
                rows = table_of(rows[:-1], self.mode, self.judge.unique_columns)
            return _at_end(rows[-1]), []
        if expected.comparing == "batches":
            by_batch = [
                (number, row) for number, of_batch in zip(numbers[:-1], rows[:-1], strict=True) for row in of_batch
            ]
            if isinstance(self.judge.oracle, ModelOracle):
                # The oracle closes a window in the batch whose rows move the clock; Spark closes it in the next batch.
                last = len(rows) - 2
                return [(numbers[at + 1], row) for at in range(last) for row in rows[at]], by_batch
            return by_batch, by_batch
        if expected.comparing == "cuts":
            return _at_end(rows[-3] if len(rows) > 2 else []), _at_end(rows[-2])
        may, must = _at_end(rows[-1]), _at_end(filter(self._is_closed, rows[-1]))
        if len(may) > len(must):
            self.not_checked.append(
                f"{len(may) - len(must):,} expected rows whose times the watermark may not have passed: the "
                "check doesn't report them as missing"
            )
        return must, may

    def _is_closed(self, row: Row) -> bool:
        """Return whether the watermark has passed a row's times plus all durations of the job, so that the run must
        have written the row.
        """
        plan = self.declared.plan
        if not plan.delays_us:
            return True
        times_us = [microseconds(value) for value in _values_of(row) if isinstance(value, datetime)]
        return bool(times_us) and max(times_us) + sum(plan.durations_us) < self.run.watermarks_ms[-1] * 1_000


def _at_end(rows: Iterable[Row]) -> list[_Placed]:
    return [(None, row) for row in rows]


def _at_once(history: JobHistory) -> JobHistory:
    """Return a history with all rows in one batch."""
    return replace(history, batches=(tuple(history.arrivals),))
