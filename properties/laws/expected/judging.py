"""The judge of a job: runs the job on histories, and compares the job's output with the oracle's output."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ....reference.core.errors import BadInput
from ...generators.columns import debezium
from ...generators.columns.formatting import shown_row
from ...generators.columns.forms.rows import Row
from ...generators.columns.key_spaces import key_space
from ...generators.columns.model import Comparing, Expected, JobHistory
from ...outcomes.equality import TWELVE_DIGITS, Equality, comparable
from ...outcomes.outcomes import Difference
from ...witnesses.job.dying.faults import FaultOutcome, counted, lost_or_doubled
from ...witnesses.job.plan.plans import Plan
from ...witnesses.job.rows import flat
from ...witnesses.job.running import Declared, QueryOutput
from ...witnesses.job.sinks.sink import Sink
from ...witnesses.job.witness import EmittedBatches, RowsWitness
from ...witnesses.run_options import Mode, Moment
from ..variation import CHANGED, Variation
from .comparison import (
    Kinds,
    check_columns,
    check_kinds,
    columns_of,
    difference,
    in_their_form,
    note_kinds,
    table_of,
    with_columns,
)
from .oracle import Oracle


class Judgement(NamedTuple):
    """The comparison of a job with an oracle on one history.

    Attributes:
        expected: The rows that the oracle expects.
        emitted: The rows that the job emits.
        difference: The first difference between the rows; None: the rows are equal.
        output: The output of the query that ran the history.
    """

    expected: Expected
    emitted: EmittedBatches
    difference: Difference | None
    output: QueryOutput

    @property
    def differs(self) -> bool:
        """Whether the job's output differs from the expected output."""
        return self.difference is not None

    @property
    def under_fault(self) -> str:
        """The verdicts on a sink's rows after a fault, in a sentence: lost, doubled, torn or stuck."""
        expected, emitted = (
            counted([comparable(row[name]) for name in sorted(row)] for rows in side for row in rows)
            for side in (self.expected.rows, self.emitted)
        )
        outcome = self.output.fault
        verdicts = [
            *lost_or_doubled(expected, emitted),
            *["torn"] * bool(outcome.torn),
            *["stuck"] * bool(outcome.stuck),
        ]
        why = "".join(f"; {one}" for one in [outcome.stuck, *outcome.refusals] if one)
        return f"Its rows: {', '.join(verdicts) or 'other values'}{why}."

    @property
    def expects_rows(self) -> bool:
        """Whether the oracle expects at least one row."""
        return any(len(rows) > 0 for rows in self.expected.rows)


@dataclass
class Met:
    """The coverage goals met, and the facts about the job that a check's queries have shown so far.

    Attributes:
        covered: The coverage goals of the variation that queries have met.
        crashed: The points of a batch (such as before its output) at which queries crashed as planned.
        stateful: Whether one of the queries used state.
        columns: The columns of the result, with a window as columns start and end; a sink's columns are known only
            after a run.
        extra: The columns of the result that the oracle doesn't return.
        left_out: The columns of the oracle that the result lacks.
        comparing: The kind of comparison: of rows by batch, or of tables.
        wanted: The types of expected values, if the job has a sink.
        came: The types of the values read from a sink.
        alike: A message about two rows of a batch that `unique` doesn't distinguish; None: `unique` distinguishes all
            rows.
        nondeterministic: The columns whose values vary between runs, according to plans and runs; they aren't compared.
        plan: The last query's plan.
        settings: The session settings that the job changes.
        triggers: The triggers that a sink sets and the check replaces.
        divergences: The names of the known divergences of Spark's optimizer in a sink's query plan.
        fault: The outcome of the fault in the first query that simulated the fault; None: no query has simulated the
            fault.
    """

    covered: set[str] = field(default_factory=set)
    crashed: set[Moment] = field(default_factory=set)
    stateful: bool = False
    columns: Sequence[str] = ()
    extra: Sequence[str] = ()
    left_out: Sequence[str] = ()
    comparing: Comparing = "end"
    wanted: Kinds = field(default_factory=dict)
    came: Kinds = field(default_factory=dict)
    alike: str | None = None
    nondeterministic: frozenset[str] = frozenset()
    plan: Plan = field(default_factory=Plan)
    settings: dict[str, str] = field(default_factory=dict)
    triggers: set[str] = field(default_factory=set)
    divergences: Sequence[str] = ()
    fault: FaultOutcome | None = None


@dataclass
class Judge:
    """Compares a job's output with an oracle's output.

    Attributes:
        witness: Runs the job.
        oracle: The oracle, which returns the expected outcomes.
        declared: The facts that the job's declaration shows.
        unique: The columns that identify the rows of an updated table, if the user names them.
        equality: The rule by which two values count as equal.
        without: The columns that the user leaves out of the comparison.
        met: The coverage goals met, and the facts about the job that queries have shown so far.
    """

    witness: RowsWitness
    oracle: Oracle
    declared: Declared
    unique: Sequence[str] | None = None
    equality: Equality = TWELVE_DIGITS
    without: frozenset[str] = frozenset()
    met: Met = field(default_factory=Met)
    _alone: dict[str, Judgement] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.oracle = self.oracle.beside(self.witness)
        self.met.columns = self.met.columns or self.declared.columns

    @property
    def name(self) -> str:
        """The job's name."""
        return self.witness.name

    @property
    def is_sink(self) -> bool:
        """Whether the job is a sink, whose output is known only at the end."""
        return isinstance(self.witness.runner.job, Sink)

    @property
    def divergences(self) -> Sequence[str]:
        """The names of the known divergences of Spark's optimizer in the job's plan."""
        return self.declared.divergences or self.met.divergences

    @property
    def unique_columns(self) -> list[str] | None:
        """The columns that identify the rows of an updated table; None: no row updates another row."""
        grouping = self.declared.grouping
        if self.unique is None and grouping is None:
            return None
        named = grouping.columns if self.unique is None and grouping is not None else self.unique or ()
        # The comparison uses a window's fields `start` and `end` instead of the window.
        return [part for column in named for part in ((column,) if column in self.met.columns else ("start", "end"))]

    @property
    def without_table(self) -> str | None:
        """The reason why the rows of an updated table can't be identified without `unique=`; None: they can."""
        return self.met.alike if self.unique is None else None

    @property
    def computed_keys(self) -> list[str]:
        """The key columns with which the job's plan computes."""
        return self._keys_among(self.declared.plan.computed | self.met.plan.computed)

    @property
    def keys_in_functions(self) -> list[str]:
        """The key columns that the job passes to Python functions, which may compute with them."""
        return self._keys_among(self.declared.plan.in_functions | self.met.plan.in_functions)

    def _keys_among(self, names: Collection[str]) -> list[str]:
        keys = dict.fromkeys(column for source in self.witness.sources for column in source.key)
        return [column for column in keys if column.lower() in names]

    def each_alone(self) -> Judge:
        """Return a judge that runs each history in its own query."""
        return replace(self, witness=replace(self.witness, alone=True))

    def with_tables(self, keyed: Mapping[str, str]) -> Judge:
        """Return a judge of the same job in which each history has its own copy of static table rows, as in
        `RowsWitness.keyed`.
        """
        return replace(self, witness=replace(self.witness, keyed=keyed))

    def compare(self, histories: Sequence[JobHistory], variation: Variation) -> list[Judgement]:
        """Run the job on histories, in a shared query where possible, and compare the job's output with the oracle's.

        Raises:
            UnreadableKey: A row of a shared query's result belongs to no known history.
            BadInput: The emitted rows can't be compared with the expected rows; the message says what to do.
            StreamproofError: A query fails or exceeds its time limit.
        """
        if not histories:
            return []
        return self.compared(histories, *self.emitted(histories, variation), variation)

    def emitted(
        self, histories: Sequence[JobHistory], variation: Variation
    ) -> tuple[list[EmittedBatches], list[QueryOutput]]:
        """Run the job on histories; return each history's emitted rows, and the outputs of the queries.

        Raises:
            UnreadableKey: A row of a shared query's result belongs to no known history.
            StreamproofError: A query fails or exceeds its time limit.
        """
        return self.witness.evaluate([self._varied(history, variation) for history in histories], variation.run)

    def compared(
        self,
        histories: Sequence[JobHistory],
        emitted: Sequence[EmittedBatches],
        outputs: Sequence[QueryOutput],
        variation: Variation,
    ) -> list[Judgement]:
        """Compare the emitted rows of histories with the oracle's outcomes.

        Args:
            histories: The histories.
            emitted: The rows that the job emits for each history.
            outputs: The outputs of the queries: of one shared query, or of one query for each history.
            variation: The run options.

        Raises:
            BadInput: The emitted rows can't be compared with the expected rows; the message says what to do.
        """
        if not self.met.columns:  # a sink's columns are known from its first rows
            self.refuse_without({name: None for batches in emitted for rows in batches for row in rows for name in row})
            self.met.columns = columns_of(flat(rows) for batches in emitted for rows in batches)
        for output in outputs:
            self._note(output, variation)
        self.met.columns = [column for column in self.met.columns if column not in self._not_compared]
        expected, emitted = self.side_by_side(self.expected(histories, variation), emitted, variation)
        if self.met.alike is not None and any(each.comparing != "batches" for each in expected):
            raise BadInput(self.met.alike)
        self.met.comparing = "end" if self.is_sink else expected[0].comparing
        if self.met.columns:
            self.met.extra = check_columns(expected, self.met.columns, self.name)
        if self.is_sink:
            note_kinds(self.met.wanted, (rows for one in expected for rows in one.rows))
            note_kinds(self.met.came, (rows for batches in emitted for rows in batches))
            check_kinds(self.met.wanted, self.met.came, self.name)
        differences = (self.difference(*pair, variation) for pair in zip(expected, emitted, strict=True))
        if len(outputs) < len(histories):  # one shared query's output, for all its histories
            outputs = [*outputs] * len(histories)
        return [Judgement(*fields) for fields in zip(expected, emitted, differences, outputs, strict=True)]

    def _varied(self, history: JobHistory, variation: Variation) -> JobHistory:
        varied = variation.vary(history)
        if varied.batches != history.batches:
            self.met.covered.add(CHANGED)
        return debezium.keep_order(history, varied, self.witness.sources)

    def compare_alone(self, history: JobHistory, variation: Variation) -> Judgement:
        """Run the job on a history in its own query, or use the cached result, and compare the job's output with the
        oracle's.
        """
        text = repr((history.played, variation.saved))
        if text not in self._alone:
            (self._alone[text],) = self.compare([history], variation)
        return self._alone[text]

    def expected(self, histories: Sequence[JobHistory], variation: Variation) -> list[Expected]:
        """Return the expected outcome of each history."""
        expected = [
            Expected("end", table_of(each.rows, variation.run.mode, self.unique_columns)[-1:]) if each.at_end else each
            for each in self.of_oracle(histories, variation)
        ]
        if self.met.columns and self.oracle.allows_fewer_columns:
            expected, left_out = with_columns(expected, self.met.columns)
            if lacking := [name for name in self.oracle.required(self.witness.sources) if name in left_out]:
                raise BadInput(
                    f"{self.oracle.name} returns the columns {', '.join(lacking)}, and the result of {self.name} "
                    f"has {', '.join(self.met.columns)}: rename the job's columns, for example with "
                    f'.withColumnRenamed("total", "{lacking[-1]}")'
                )
            self.met.left_out = list(dict.fromkeys([*self.met.left_out, *left_out]))
        return expected

    def of_oracle(self, histories: Sequence[JobHistory], variation: Variation) -> list[Expected]:
        """Return the oracle's outcome of each history."""
        return self.oracle.expected(histories, self.witness.sources, variation.run)

    def beside(self, history: JobHistory, expected: Expected, variation: Variation) -> Judgement:
        """Run the job on a history in its own query, and compare its rows with the rows expected of the history in the
        shared query.
        """
        ((emitted,), (output,)) = self.witness.evaluate([self._varied(history, variation)], variation.run)
        return self._compared(expected, emitted, output, variation)

    def without_others(
        self, histories: Sequence[JobHistory], number: int, expected: Expected, variation: Variation
    ) -> Judgement:
        """Run the job on one history of a shared query: keep its keys and the static tables, but leave out all other
        histories' rows.

        The keys stay the same, because a job may treat some keys specially.

        Args:
            histories: The histories of the shared query.
            number: The index of the history to run.
            expected: The rows that the oracle expects of the history in the shared query.
            variation: The run options of the job's query.
        """
        silent = [history if index == number else history.silent for index, history in enumerate(histories)]
        emitted, outputs = self.witness.evaluate(
            [self._varied(history, variation) for history in silent], variation.run
        )
        return self._compared(expected, emitted[number], outputs[0], variation)

    def _compared(
        self, expected: Expected, emitted: EmittedBatches, output: QueryOutput, variation: Variation
    ) -> Judgement:
        self._note_nondeterministic(output, variation)
        (expected,), (emitted,) = self.side_by_side([expected], [emitted], variation)
        return Judgement(expected, emitted, self.difference(expected, emitted, variation), output)

    def side_by_side(
        self, expected: Sequence[Expected], emitted: Sequence[EmittedBatches], variation: Variation
    ) -> tuple[list[Expected], list[EmittedBatches]]:
        """Return the expected and the emitted rows of histories, reduced to the compared columns."""
        if self._not_compared:
            expected = [replace(one, rows=[*map(self._compared_part, one.rows)]) for one in expected]
            emitted = [[*map(self._compared_part, batches)] for batches in emitted]
        return in_their_form(expected, emitted, self.witness.sources), [*emitted]

    @property
    def _not_compared(self) -> frozenset[str]:
        return self.met.nondeterministic | self.without

    def _compared_part(self, rows: Sequence[Row]) -> list[Row]:
        left_out = self._not_compared
        return [{name: row[name] for name in row if name not in left_out} for row in rows]

    def refuse_without(self, names: Collection[str]) -> None:
        """Refuse to leave out columns that the result lacks, if the result's columns are known.

        Raises:
            BadInput: The result lacks a column to leave out, or no column remains.
        """
        unknown = sorted(self.without - {*names}) if names else []
        if unknown or (names and not {*names} - self.without):
            why = f"has {unknown[0]!r}, which is not one of the" if unknown else "leaves out all"
            raise BadInput(
                f"without {why} columns of {self.name}, {', '.join(names)}: name columns to leave out of the comparison"
            )

    def leave_out(self, columns: Collection[str]) -> None:
        """Leave columns out of the comparison, because their values vary between runs."""
        self.met.nondeterministic |= {*columns}
        self._alone.clear()

    def other_in_each_run(self, history: JobHistory, variation: Variation) -> frozenset[str] | None:
        """Run a history twice with equal options, and return the columns whose values vary between the runs.

        Args:
            history: The history.
            variation: The run options of the job's query.

        Returns: The columns that differ between the two runs; empty if the runs are equal; None: the runs also differ
            in other ways, such as the number of rows.
        """
        run = getattr(self.oracle, "run", None) or variation.run
        runs = [self.witness.evaluate([history], run)[0][0] for _ in range(2)]
        one, other = ([self._compared_part(rows) for rows in batches] for batches in runs)

        def differs(names: Collection[str]) -> bool:
            sides = [
                [[{name: row.get(name) for name in names} for row in rows] for rows in each] for each in (one, other)
            ]
            return difference(Expected("batches", sides[0]), sides[1], "append", None, self.equality) is not None

        names = {name: None for rows in (*one, *other) for row in rows for name in row}
        found = frozenset(name for name in names if differs([name]))
        if len(one) != len(other) or differs([name for name in names if name not in found]):
            return None
        return found - {*(self.unique_columns or ())}

    def difference(self, expected: Expected, emitted: EmittedBatches, variation: Variation) -> Difference | None:
        """Return the first difference between the emitted and the expected rows; None: the rows are equal."""
        mode: Mode = "complete" if self.is_sink else variation.run.mode
        return difference(self.as_written(expected), emitted, mode, self.unique_columns, self.equality)

    def as_written(self, expected: Expected) -> Expected:
        """Return the expected outcome in the compared form: for a sink, the rows of all batches together."""
        if not self.is_sink or expected.comparing != "batches":
            return expected
        return Expected("end", [[row for rows in expected.rows for row in rows]])

    def _note(self, output: QueryOutput, variation: Variation) -> None:
        """Record the coverage goals and the facts that a query of the job has shown."""
        self.met.crashed |= {crash.moment for crash, _ in output.crashed}
        self.met.stateful |= output.stateful
        self.met.covered |= output.covered
        self.met.plan = output.plan
        self.met.settings |= output.settings
        self.met.triggers |= {*output.triggers}
        self.met.divergences = output.divergences or self.met.divergences
        self.met.fault = self.met.fault or output.fault
        self._note_nondeterministic(output, variation)
        # Skip runs row by row, in which a function may emit several rows of a key in a batch.
        if variation.run.mode == "update" and not (self.is_sink or variation.run.row_by_row or self.met.alike):
            self.met.alike = next(self._rows_alike(output), None)

    def _note_nondeterministic(self, output: QueryOutput, variation: Variation) -> None:
        """Record the columns whose values vary between runs."""
        for plan in (self.declared.plan, output.plan):
            # If processing time follows the history's clock, the current time is the same in each run.
            found = plan.nondeterministic | (frozenset() if variation.run.processing_time else plan.of_clock)
            found |= plan.of_places if variation.law else frozenset()
            self.met.nondeterministic |= found - {*(self.unique_columns or ())}

    def _rows_alike(self, output: QueryOutput) -> Iterator[str]:
        """Yield a message with advice if two rows of a micro-batch have equal `unique_columns`."""
        unique, grouping = self.unique_columns, self.declared.grouping
        if unique is None:
            return
        remedy = (
            "name the columns of the result that identify a row of its table, unique=[…] with some of "
            f"{', '.join(self.met.columns)}"
        )
        if self.unique is None and grouping is not None and grouping.by and not unique:
            yield f"{self.name} groups by {', '.join(grouping.by)}, but its result has none of these columns: {remedy}"
        given = "unique=" if self.unique is not None else "the columns of its grouping"
        space = None if self.witness.alone else key_space(self.witness.sources)
        for part in output.parts:
            seen: dict[Any, Row] = {}
            for row in flat(part):
                key = comparable([row.get(column) for column in unique])
                if key in seen:
                    both = [shown_row(each if space is None else space.plain(each)) for each in (seen[key], row)]
                    yield (
                        f"{self.name} emits two rows in one batch with equal values in {given} "
                        f"({', '.join(unique) or 'none'}), {both[0]} and {both[1]}: {remedy}"
                    )
                seen[key] = row
