"""Mutants of what a logic doesn't decide: the runtime, columns, state types, the guard. Each is a patch of the source.

A mutant is planted in a copy of the tree, which is imported instead of the tree itself, by Spark's Python workers too.
`python tests/helpers/runtime_mutants.py FOLDER` runs all of them, one after the other in one Spark session, and prints in how
many histories each shows; names after the folder choose some.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from paths import ROOT

PACKAGES = ("properties", "reference", "spark_impl", "specs", "docs")
PATCHED = "spark_impl"
"""The one folder that is copied; the others are links."""


class Shows(Enum):
    """Where a mutant shows: in a layout of columns, by its number, or in shared queries, which are played in memory."""

    TEXTS = 0
    BIGINT = 1
    BATCH = 2
    SHARED = 3


TEXTS, BIGINT, BATCH, SHARED = Shows


@dataclass(frozen=True)
class RuntimeMutant:
    """A mutant, and where it shows.

    Attributes:
        name: What it does.
        file: The file that is changed.
        old: A text that stands in it once.
        new: What takes its place.
        operator: The operator that is asked.
        shows: Where it shows.
    """

    name: str
    file: str
    old: str
    new: str
    operator: str
    shows: Shows


def planted(mutants: Sequence[RuntimeMutant], folder: Path, root: Path = ROOT) -> Path:
    """Make a tree with these mutants in a folder; return what PYTHONPATH must name.

    Raises:
        LookupError: The source of a mutant has changed: its text stands there no more, or more than once.
    """
    package = folder / "streamproof"
    package.mkdir(parents=True)
    for one in (root / "streamproof").iterdir():
        if one.suffix == ".py" or one.name == "py.typed":
            (package / one.name).symlink_to(one)
    for name in PACKAGES:
        if name == PATCHED:
            shutil.copytree(root / name, package / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            (package / name).symlink_to(root / name)
    for mutant in mutants:
        file = package / PATCHED / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            raise LookupError(f"{mutant.name}: {mutant.old!r} stands {text.count(mutant.old)} times in {mutant.file}")
        file.write_text(text.replace(mutant.old, mutant.new), encoding="utf-8")
    return folder


def shown(mutants: Sequence[RuntimeMutant], folder: Path) -> Iterator[tuple[RuntimeMutant, int]]:
    """Yield in how many histories each mutant shows, of those that a check of its operator draws at its default size.

    Raises:
        RuntimeError: What asks them has ended; the message has its last words.
    """
    asked = []
    for number, mutant in enumerate(mutants):
        tree = planted([mutant], folder / f"{number}")
        asked.append(f"{tree}:{mutant.operator}:{mutant.shows.value}")
    command = [sys.executable, "-m", "typed_samples", *asked]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests" / "helpers"), "PYTHONDONTWRITEBYTECODE": "1"}
    with (folder / "log").open("w", encoding="utf-8") as log:
        running = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=log, text=True)
        assert running.stdout is not None
        lines = (line for line in running.stdout if line.startswith('{"violated"'))
        yield from ((mutant, json.loads(line)["violated"]) for mutant, line in zip(mutants, lines, strict=False))
    if running.wait():
        raise RuntimeError(f"{command} ended with {running.returncode}: {(folder / 'log').read_text()[-3000:]}")


KEYED, ENDS, CODEC, PAGES = "runtime/keyed.py", "runtime/ends.py", "runtime/codec.py", "runtime/pages.py"
PROCESSOR, COLUMNS, STATE = "runtime/processor.py", "runtime/columns.py", "runtime/state.py"
_LONG, _INT = "T.LongType()", "T.IntegerType()"


def _mutants(file: str, *rows: tuple[str, str, str, str, Shows]) -> tuple[RuntimeMutant, ...]:
    return tuple(RuntimeMutant(name, file, old, new, operator, shows) for name, old, new, operator, shows in rows)


def _of_32_bits(name: str, file: str, old: str, operator: str) -> RuntimeMutant:
    return RuntimeMutant(name, file, old, old.replace('"long"', '"integer"'), operator, TEXTS)


STATE_TYPES = (
    _of_32_bits(
        "the times of sessions have 32 bits",
        "session_windows.py",
        '.add("start", "long").add("end", "long").add("value"',
        "session_windows",
    ),
    _of_32_bits(
        "the times of windows have 32 bits",
        "window_aggregate.py",
        'T.StructType().add("start", "long").add("end", "long")',
        "window_aggregate",
    ),
    _of_32_bits(
        "the times of buffered records have 32 bits",
        "stream_stream_join.py",
        'T.StructType().add("timestamp", "long")',
        "stream_stream_join",
    ),
    _of_32_bits(
        "the times of windowed tables have 32 bits",
        "windowed_table.py",
        'T.StructType().add("start", "long").add("value", result).add("timestamp", "long")',
        "windowed_table",
    ),
    _of_32_bits("the emitted clock has 32 bits", STATE, '.add("closed", "long").add("due", "long")', "session_windows"),
    *_mutants(
        STATE,
        (
            "the times of a key in the state are swapped",
            "stored.emitted, stored.due, bytes",
            "stored.due, stored.emitted, bytes",
            "session_windows",
            TEXTS,
        ),
        (
            "one group of a record batch is read",
            "for packed in batch.column(0).to_pylist()",
            "for packed in batch.column(0).to_pylist()[:1]",
            "session_windows",
            TEXTS,
        ),
    ),
)
OF_COLUMNS = (
    *_mutants(
        COLUMNS,
        (
            "sums of fractions are whole",
            "T.LongType() if whole else T.DoubleType()",
            _LONG,
            "session_windows",
            TEXTS,
        ),
        (
            "averages of fractions are of whole sums",
            '.add("sum", "long" if whole else "double")',
            '.add("sum", "long")',
            "window_aggregate",
            TEXTS,
        ),
        (
            "an average is whole",
            'case "average" if isinstance(kind, NUMBERS):\n            return column, T.DoubleType()',
            'case "average" if isinstance(kind, NUMBERS):\n            return column, T.LongType()',
            "window_aggregate",
            TEXTS,
        ),
        ("a list is of whole numbers", "T.ArrayType(kind)", "T.ArrayType(T.IntegerType())", "session_windows", BATCH),
        (
            "times without zone are read as UTC",
            'return column.cast("timestamp")',
            'return F.convert_timezone(F.lit("UTC"), F.current_timezone(), column).cast("timestamp")',
            "range_aggregate",
            BATCH,
        ),
        (
            "NaNs are many keys",
            'F.when(F.isnan(column), F.lit(float("nan"))).otherwise(column + F.lit(0.0))',
            "(column + F.lit(0.0))",
            "table_table_join",
            BATCH,
        ),
        (
            "times in ms are read as seconds",
            "return F.timestamp_millis(column)",
            "return F.timestamp_seconds(F.floor(column / 1000))",
            "range_aggregate",
            BIGINT,
        ),
    ),
    *_mutants(
        "runtime/stages.py",
        (
            "both zeros are two foreign keys",
            "(same_bits(column, field), field)",
            "(column, field)",
            "foreign_key_join",
            BATCH,
        ),
    ),
    *_mutants(
        "session_windows.py",
        (
            "the rows of sessions are whole numbers of 32 bits",
            "one._replace(value=value_column, value_type=events.select(value_column).schema[0].dataType)",
            "one._replace(value=value_column)",
            "session_windows",
            BATCH,
        ),
    ),
)
OF_KEYED = _mutants(
    KEYED,
    ("a null key moves the clock", "F.when(has_key, clock).alias(CLOCK)", "clock.alias(CLOCK)", "session_windows", TEXTS),
    ("rows of the second input move no clock", "F.when(has_key, clock)", "F.when(has_key & F.lit(side < 1), clock)", "stream_stream_join", TEXTS),
    ("rows move no clock", "F.when(has_key, clock)", "F.lit(None).cast('long')", "window_aggregate", BIGINT),
    ("a row of a stage has a place without a time", "order = F.struct(order, at,", "order = F.struct(order, F.lit(0).cast('long'),", "foreign_key_join", BIGINT),
    ("emitted windows begin in 32 bits", '("start", T.LongType())', '("start", T.IntegerType())', "session_windows", BATCH),
    ("emitted times have 32 bits", '("timestamp", T.LongType())', '("timestamp", T.IntegerType())', "range_aggregate", BATCH),
    ("the bounds of windows are swapped", "bounds = [F.timestamp_millis(name).alias(name)", 'bounds = [F.timestamp_millis(name).alias({"start": "end"}.get(name, "start"))', "session_windows", BATCH),
    ("a window that starts in 1970 is none", 'F.col("start").isNotNull()', 'F.col("start") != 0', "windowed_table", BIGINT),
    ("a change has its row's time", 'F.timestamp_millis("timestamp").alias', 'F.timestamp_millis("at").alias', "table_table_join", BATCH),
    ("the cause is the place's time", 'F.col("cause.order").alias("cause")', 'F.col("cause.at").alias("cause")', "table_aggregate", BATCH),
    ("rows count by seconds", "F.unix_millis(source.time), source.order", "F.unix_seconds(source.time) * 1000, source.order", "range_aggregate", BATCH),
    ("both zeros are two keys", "[same_bits(column, field).alias", "[column.alias", "table_table_join", BATCH),
    ("the step of a place is lost", 'F.col("ordinal").alias("step")', 'F.lit(0).alias("step")', "range_aggregate", BATCH),
    ("a checkpoint is of any state_groups", ' with state_groups={groups}"', '"', "session_windows", BIGINT),
    ("a checkpoint is of any options", "return f\"{operator}({', '.join(shown)})\"", 'return f"{operator}({bool(shown)})"', "range_aggregate", BIGINT),
)  # fmt: skip
OF_ENDS = _mutants(
    ENDS,
    ("one record batch of many is packed", "if rows:\n        yield _together(gathered)", "if rows:\n        yield gathered[0]", "range_aggregate", BATCH),
    ("a group's clock is its least", "np.maximum.reduceat", "np.minimum.reduceat", "session_windows", TEXTS),
    ("all rows are of the first input", "pa.array([side] * len(found)", "pa.array([0] * len(found)", "table_table_join", BATCH),
    ("inputs have other groups", "np.int64, len(keys)) % self.groups", "np.int64, len(keys)) // (self.side + 1) % self.groups", "table_table_join", BATCH),
    ("the order of arrival is lost", 'listed(columns["order"], self.order, EVERY_LEVEL)', '[None] * len(keys)', "table_table_join", BATCH),
    ("a row of a stage is a dict", "self.as_tuples", "0", "one_to_many_join", BATCH),
    ("one binary of messages is routed", "for packed in batch.column(0).to_pylist():\n                for column, more in zip(columns, read", "for packed in batch.column(0).to_pylist()[:1]:\n                for column, more in zip(columns, read", "foreign_key_join", BATCH),
    ("messages have other groups than rows", "np.array(hashes) % self.groups", "np.array(hashes) // 7 % self.groups", "foreign_key_join", BATCH),
    ("the parts of a key are swapped", "zip(*map(read_key, keys), strict=True)", "list(zip(*map(read_key, keys), strict=True))[::-1]", "range_aggregate", TEXTS),
    ("ordinals are all the same", "range(len(found[0]))", "[0] * len(found[0])", "session_windows", BATCH),
    ("ordinals count backwards", "range(len(found[0]))", "range(len(found[0]), 0, -1)", "session_windows", BATCH),
    ("one binary of changes is unpacked", "for packed in batch.column(0).to_pylist():\n                found", "for packed in batch.column(0).to_pylist()[:1]:\n                found", "range_aggregate", BATCH),
)  # fmt: skip
OF_CODEC = _mutants(
    CODEC,
    ("dates come back as text", "    T.DateType: date,\n", "", "stream_table_join", BATCH),
    ("decimals come back as floats", "Decimal,\n}", "float,\n}", "stream_table_join", BATCH),
    ("values lose their microseconds", "    return pa.array(values, arrow_type(kind))", "    return pa.array([one.replace(microsecond=0) if isinstance(one, datetime) else one for one in values], arrow_type(kind))", "stream_table_join", BATCH),
    ("decimals have the digits of floats", "    return pa.array(values, arrow_type(kind))", "    return pa.array([round(Decimal(float(one)), 18) if isinstance(one, Decimal) else one for one in values], arrow_type(kind))", "stream_table_join", BATCH),
    ("a null struct comes back as one of nulls", "fields=fields, mask=_nulls(values))", "fields=fields)", "stream_table_join", BATCH),
    ("a null struct is read as one of nulls", "if column.null_count:", "if column.null_count < 0:", "stream_table_join", TEXTS),
    ("a null array comes back empty", "from_arrays(ends, members, mask=_nulls(values))", "from_arrays(ends, members)", "stream_table_join", BATCH),
    ("an array of structs that are all null fails", "pa.array([one is None for one in values], pa.bool_())", "pa.array([one is None for one in values])", "stream_table_join", BATCH),
    ("maps are in order of their keys", "else list(one.items())", "else sorted(one.items())", "stream_table_join", BATCH),
    ("the keys of maps stay text", "key, inner = python_type(kind.keyType)", "key, inner = Any", "stream_table_join", BATCH),
    ("a struct is read as a tuple alone", "return tuple[tuple(members)] | named | None", "return tuple[tuple(members)] | None", "stream_table_join", BATCH),
)  # fmt: skip
OF_PAGES = _mutants(
    PAGES,
    ("a page is due with its last key", "Page(min(dues, default=None), _encode(page))", "Page(max(dues, default=None), _encode(page))", "session_windows", SHARED),
    ("keys of closed pages are lost when keys are spread", "for number in range(len(self.closed)) for found in self.open(number).items()]", "for number in list(self.opened) for found in self.open(number).items()]", "table_table_join", SHARED),
    ("the last key of a group is lost", "if not count:", "if count < 2:", "table_table_join", BIGINT),
    ("one page that is due is opened", "                self.open(number)\n        return [", "                self.open(number)\n                break\n        return [", "session_windows", SHARED),
    ("closed pages are forgotten", "        for number, page in self.opened.items():\n            dues", "        self.closed = [Page(None, _NO_KEYS)] * len(self.closed)\n        for number, page in self.opened.items():\n            dues", "table_table_join", SHARED),
)  # fmt: skip
OF_PROCESSOR = _mutants(
    PROCESSOR,
    ("tombstones are updates", "[one.change for one in emitted]", "[one.change if one.change == DROPPED else 'update' for one in emitted]", "table_table_join", BATCH),
    ("the cause of a change is lost", "[one.cause for one in emitted]", "[one.cause if one.change == DROPPED else None for one in emitted]", "table_table_join", BATCH),
    ("what closes at the end is in the phase of rows", "END_OF_TIME, AFTER)", "END_OF_TIME, WITHIN)", "session_windows", BATCH),
    ("a place has no time", "[change[3] for change in changes]", "[0 for change in changes]", "range_aggregate", BATCH),
    ("one binary of a group is taken", "for side, packed, _ in rows:", "for side, packed, _ in [*rows][:1]:", "table_table_join", BATCH),
    ("rows are called by the first side", "repeat(self.stage.sides[side].name)", "repeat(self.stage.sides[0].name)", "table_table_join", BATCH),
    ("a batch frame begins in 1970", "return BEFORE_ALL_TIMES if self.stage.ended else max", "return 0 if self.stage.ended else max", "session_windows", BATCH),
    ("a batch frame doesn't close", "            changes += self.closed(held, END_OF_TIME, AFTER)\n", "            pass\n", "session_windows", BATCH),
    ("a removed key stays", "                one.page.pop(of_key, None)", "                pass", "table_table_join", SHARED),
    ("timers are set late", "self.handle.registerTimer(first)", "self.handle.registerTimer(first + 5)", "windowed_table", BIGINT),
    ("timers are never set", "self.handle.registerTimer(first)", "pass", "windowed_table", BIGINT),
    ("what was emitted isn't noted", "one.emitted = max(one.emitted, clock)", "pass", "session_windows", SHARED),
    ("closings come before they are due", "emitted = one.logic.close(one.state, one.emitted, clock)", "emitted = one.logic.close(one.state, one.emitted, clock + 1)", "session_windows", SHARED),
    ("state is stored before keep", "state = logic.keep(held.state, held.emitted, clock)", "state = held.state", "session_windows", SHARED),
    ("a null key is a key", 'nullable = logic.keeps_null_keys or None not in key', "nullable = True", "table_table_join", BATCH),
    ("a row without a time isn't dropped", "elif row.timestamp is None:", "elif row.timestamp is ...:", "session_windows", BATCH),
    ("dropped rows come unasked", "if not self.stage.report_dropped:", "if False:", "windowed_table", BIGINT),
    ("messages lose their place", "(*change.cause, ordinal)", "(*[0 for _ in change.cause], ordinal)", "foreign_key_join", BATCH),
    ("messages lose their time", "(change.timestamp, change.reason, *value)", "(0, change.reason, *value)", "foreign_key_join", BATCH),
    ("messages without a key aren't sent", "            to = encode(key)\n", "            to = encode(key)\n            if None in key:\n                continue\n", "table_aggregate", BATCH),
    ("the guard refuses nothing", "if not found:", "if found != ...:", "range_aggregate", BIGINT),
    ("the guard compares no types", "!= types.simpleString():", "== ...:", "windowed_table", BIGINT),
    ("the guard refuses its own checkpoint", '{stage.declaration}, form {FORM}"', '{stage.declaration}, form {id(handle)}"', "range_aggregate", BIGINT),
    ("the guard stores nothing", "            state.update((f\"{declaration}\\n{types.json()}\",))", "            pass", "range_aggregate", BIGINT),
    ("what the clock closes is lost", "        changes = self.closed(held, clock, BEFORE)\n", "        changes: list[Change] = []\n", "session_windows", SHARED),
)  # fmt: skip
MUTANTS = (*STATE_TYPES, *OF_COLUMNS, *OF_KEYED, *OF_ENDS, *OF_CODEC, *OF_PAGES, *OF_PROCESSOR)
LEAST = 10
"""In so many histories a mutant must show, at the least: in one it could be luck."""

SOME = (
    "the times of sessions have 32 bits",
    "a null key moves the clock",
    "sums of fractions are whole",
    "tombstones are updates",
    "values lose their microseconds",
    "one record batch of many is packed",
    "the guard compares no types",
    "closed pages are forgotten",
    "times without zone are read as UTC",
    "dropped rows come unasked",
)
"""Of each way in which a mutant shows, and of each part that is patched."""


def named(name: str) -> RuntimeMutant:
    """Return a mutant by its name."""
    (found,) = (one for one in MUTANTS if one.name == name)
    return found


if __name__ == "__main__":
    chosen = [named(name) for name in sys.argv[2:]] or sorted(MUTANTS, key=lambda one: -one.shows.value)
    for mutant, count in shown(chosen, Path(sys.argv[1])):
        verdict = "killed" if count >= LEAST else "SURVIVED"
        print(f"{verdict} | {mutant.name} | {mutant.operator} | {mutant.shows.name} | {count}", flush=True)
