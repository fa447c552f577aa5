"""Measures the table-table join as plain Spark SQL over its state and a batch, compared with the operator in Python.

Both forms compute the same changelog, which is compared row by row. Each form runs in a separate process. The SQL form
(`sql_table_table_join`) keeps its state in parquet files, and the operator keeps its state in RocksDB.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from itertools import product

from ..figures import Figure, Setting, Target, figure, ratio
from ..processes import require_proc
from .cases import AS_MANY
from .production import BATCHES, HERE, UNIT, cpu_seconds, differing, measured, over_states
from .run import SQL, TODAYS
from .sql_table_table_join import CHANGES, OPERATOR

FORMS = {TODAYS: "in Python", SQL: "in SQL"}
TIMES = Target("at least", 3)
"""The target ratio of the SQL form's records per CPU second, while a batch is a tenth of the state."""


def run(setting: Setting) -> list[Figure]:
    """Measure both forms over the same records, and over states of several sizes; compare their changelogs."""
    require_proc()
    rows, batches = setting.size(1_000_000, 8_000), setting.size(BATCHES, 4)
    with tempfile.TemporaryDirectory(prefix="streamproof-") as folder:
        words = (OPERATOR, folder, str(rows), str(batches))
        through = {form: measured(setting, HERE, "production.run", ("through", form, *words)) for form in FORMS}
    sizes = f"{rows:,} records in {batches} batches"
    rates = {
        form: figure(f"{OPERATOR}, {FORMS[form]}", UNIT, [rows / cpu_seconds(found)], sizes)
        for form, found in through.items()
    }
    changes = differing("changes that differ", [through[SQL]["results"][TODAYS]])
    return [
        *rates.values(),
        ratio("the SQL form over Python", rates[SQL], rates[TODAYS]),
        replace(changes, sizes=f"{changes.sizes}: {', '.join(CHANGES)}"),
        *_over_states(setting),
    ]


def _over_states(setting: Setting) -> list[Figure]:
    """Measure batches of several sizes over states of several sizes."""
    keys = [setting.size(many, many // 100) for many in (10_000, 100_000, 1_000_000)]
    sizes = [setting.size(many, many // 100) for many in (10_000, 100_000)]
    turns = setting.size(5, 2)
    used = {form: over_states(setting, form, OPERATOR, AS_MANY, keys, sizes, turns) for form in FORMS}
    figures: list[Figure] = []
    for many, size in product(keys, sizes):
        name = f"a batch of {size:,} records over {many:,} keys"
        in_sql, in_python = (
            figure(f"{name}, {FORMS[form]}", UNIT, [size / each for each in used[form][many, size]], "a batch")
            for form in (SQL, TODAYS)
        )
        target = TIMES if 10 * size == many else None
        figures += [in_sql, in_python, ratio(f"{name}, the SQL form over Python", in_sql, in_python, target)]
    return figures
