"""A user's job as a witness, which runs many histories in one query if they can share a query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa

from ....reference.core.errors import BadInput
from ...generators.columns.forms.rows import Row
from ...generators.columns.inputs import ResolvedInput
from ...generators.columns.key_spaces import key_space
from ...generators.columns.model import JobHistory, Source
from ...generators.columns.packing import UnreadableKey, pack, pack_tables, tables_alone, unpack
from ..run_options import RunOptions
from .plan.tables import TablesUsed
from .query.runnable import JobOrSink, name_of
from .running import QueryOutput, Runner
from .sinks.sink import Sink

OTHER_STATE = "the job's initial state isn't a static table with the key of its input"
OTHER_TABLES = "the compared jobs look up their key in different tables"
OTHER_RELATION = "the job looks up its key in a relation of its own, which has no keys of a shared query"
EmittedBatches = list[list[Row]]
"""The rows of each batch; for a sink, a single list of the rows at the end."""


class TablesOfKeys(UnreadableKey):
    """The run of a sink's query has shown the tables in which the job looks up its key.

    Attributes:
        keyed: The tables, each with its key column.
    """

    def __init__(self, keyed: Mapping[str, str]) -> None:
        super().__init__(OTHER_RELATION)
        self.keyed = keyed


def keyed_tables(sources: Sequence[Source], used: TablesUsed) -> dict[str, str]:
    """Return the static tables whose rows belong to the histories' keys, each with its key column."""
    carriers = _carriers(sources)
    found = (
        (name, column) for name, columns in used.by_key.items() for column, of in columns.items() if of in carriers
    )
    return dict(found)


def why_unkeyed(sources: Sequence[Source], used: TablesUsed) -> str | None:
    """Return the reason why the job's use of static tables prevents a shared query of the histories (None: no such
    reason).
    """
    carriers = _carriers(sources)
    if not used.initial <= {*keyed_tables(sources, used)}:
        return OTHER_STATE
    by_two = any(sum(of in carriers for of in columns.values()) > 1 for columns in used.by_key.values())
    return OTHER_RELATION if by_two or used.elsewhere & carriers else None


def _carriers(sources: Sequence[Source]) -> set[str]:
    return {column.lower() for column in key_space(sources).columns.values()}


@dataclass(frozen=True)
class RowsWitness:
    """Runs a job over histories of rows with the job's own columns.

    Attributes:
        runner: Runs the job's queries.
        inputs: The job's inputs.
        seed: The seed for mixing the rows of histories that share a query.
        takes_late: Whether histories contain late rows.
        alone: Whether each history runs in a separate query.
        keyed: The static tables whose rows belong to a key, each with its key column; in a shared query, each history
            has its own rows.
        renamed: The result's columns that rename an input's column, each with the input's name for it.
    """

    runner: Runner
    inputs: Sequence[ResolvedInput]
    seed: int = 0
    takes_late: bool = True
    alone: bool = False
    keyed: Mapping[str, str] = field(default_factory=dict)
    renamed: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The job's name, with its file and line."""
        return name_of(self.runner.job)

    @property
    def sources(self) -> Sequence[Source]:
        """The job's inputs."""
        return self.runner.sources

    def of(self, job: JobOrSink) -> RowsWitness:
        """Return the witness of another job over the same inputs, without an earlier version."""
        return replace(self, runner=replace(self.runner, job=job, earlier=None))

    def evaluate(
        self, histories: Sequence[JobHistory], run: RunOptions
    ) -> tuple[list[EmittedBatches], list[QueryOutput]]:
        """Return the rows that the job emits for each history, and the output of each query.

        Raises:
            UnreadableKey: Histories share a query, and a row of the result doesn't show its history.
            BadInput: The job follows another clock than the check's, so that a comparison would show nothing.
            StreamproofError: A query failed, or exceeded its time limit.
        """
        if self.alone or len(histories) == 1:
            outputs = [self._run(tables_alone(history, self.sources), history, run) for history in histories]
            return [output.batches for output in outputs], outputs
        if not histories:
            return [], []
        sharing = self._sharing(len(histories))
        output = sharing._run(pack(histories, self.inputs, self.seed), histories[0], run)
        self._require_keyed(output.tables)
        # a sink's plan is known only after its run
        renamed = replace(self, renamed={**self.renamed, **output.plan.renamed})
        batches = [renamed._unpacked(rows, histories) for rows in output.batches]
        return [[batch[number] for batch in batches] for number in range(len(histories))], [output]

    def _require_keyed(self, used: TablesUsed) -> None:
        """Check that the tables in which the job looks up its key contain the keys of the shared query.

        Raises:
            TablesOfKeys: A sink's run has shown that the job looks up its key in tables that lack the keys.
            UnreadableKey: A table lacks the keys, or the job looks up its key in another relation.
        """
        if (why := why_unkeyed(self.sources, used)) is not None:
            raise UnreadableKey(why)
        if (keyed := keyed_tables(self.sources, used)) != self.keyed:
            is_known = bool(self.keyed) or not isinstance(self.runner.job, Sink)
            raise UnreadableKey(OTHER_TABLES) if is_known else TablesOfKeys(keyed)

    def as_batch(self, histories: Sequence[JobHistory], run: RunOptions) -> list[list[Row]]:
        """Run the job as a batch, and return the rows of each history.

        Raises:
            UnreadableKey: Histories share a query, and a row of the result doesn't show its history.
            StreamproofError: A query failed, or exceeded its time limit.
        """
        if self.alone or len(histories) == 1:
            each = [_together(tables_alone(history, self.sources)) for history in histories]
            return [[*self.runner.as_batch(tables, run)] for tables in each]
        tables = _together(pack(histories, self.inputs, self.seed))
        return self._unpacked(self._sharing(len(histories)).runner.as_batch(tables, run), histories)

    def _sharing(self, count: int) -> RowsWitness:
        """Return the witness whose static tables have rows for the keys of all histories."""
        if not self.keyed:
            return self
        static = pack_tables(self.runner.static, self.keyed, count, self.sources)
        return replace(self, runner=replace(self.runner, static=static))

    def _run(self, batches: Sequence[Mapping[str, pa.Table]], history: JobHistory, run: RunOptions) -> QueryOutput:
        times = {"times_ms": history.times_ms(self.sources)} if run.processing_time else {}
        output = self.runner.run(batches, history.clock, run, **times)
        if output.ahead or (output.other_times and output.dropped and not self.takes_late):
            raise BadInput(self._other_clock(output.ahead))
        return output

    def _other_clock(self, ahead: bool) -> str:
        """Return the message that a job follows another clock than the check's, with the remedy."""
        encoded = [source for source in self.sources if source.wire_time is None]
        how = "moved the watermark beyond the check's" if ahead else "were behind the watermark"
        if encoded:
            times = " and ".join(f"{source.time!r} of {source.name}" for source in encoded)
            return (
                f"{self.name} reads the event time {times} as another time than the Input declares, and rows that the "
                f"check has drawn {how}: fix how the job reads the time, or declare its format, Input(…, "
                'time_format="s", "ms" or "us", or a pattern of strftime)'
            )
        return (
            f"{self.name} takes its event time from other columns than the Input's, and rows that the check has "
            f'drawn {how}: declare the format of the source, such as Input(…, time_format="ms") for a number, or '
            'format="kafka" for a payload'
        )

    def _unpacked(self, rows: Sequence[Row], histories: Sequence[JobHistory]) -> list[list[Row]]:
        if not rows:
            return [[] for _ in histories]
        carriers = set(key_space(self.sources).columns.values())
        keys = [column for column in rows[0] if column in carriers]
        if not keys:
            keys = [column for column in rows[0] if self.renamed.get(column) in carriers]
        if not keys:
            own = {source.records_key for source in self.sources}
            keys = [column for column in rows[0] if column in own]
        if not keys:
            raise UnreadableKey(
                f"the result has the columns {', '.join(rows[0])}, and no column of the key "
                f"({', '.join(sorted(carriers))}); with one, hundreds of histories share a query"
            )
        of_tables = {key for name in self.keyed for key in self.keys_of(name)}
        return unpack(rows, histories, self.sources, keys, of_tables)

    def keys_of(self, table: str) -> set[Any]:
        """Return the values of a static table's key column."""
        return {*self.runner.static[table][self.keyed[table]].to_pylist()}


def _together(batches: Sequence[Mapping[str, pa.Table]]) -> dict[str, pa.Table]:
    return {name: pa.concat_tables([tables[name] for tables in batches]) for name in batches[0]}
