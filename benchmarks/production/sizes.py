"""Measures the cost of batches of 1,000 to 200,000 records, uniform and skewed, with states of 10,000 to 1,000,000
keys.

The benchmark first fills the state: each key arrives once. Then batches of each size follow in turn. For each batch the
benchmark measures the CPU seconds of the whole process tree (Python, the JVM and the workers). The operator and Spark's
operator run in separate processes.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from ..figures import Figure, Setting, figure, ratio
from ..processes import require_proc
from .cases import CASES, FILLED, SKEWED, UNIFORM
from .production import UNIT, over_states
from .run import BASELINE, TODAYS

KEYS, SIZES, TURNS = (10_000, 100_000, 1_000_000), (1_000, 20_000, 200_000), 4
SPREADS: Mapping[str, str] = {UNIFORM: "uniform keys", SKEWED: "skewed keys"}


def run(setting: Setting) -> list[Figure]:
    """Measure each operator whose state can be filled, compared with Spark's own operator, if any."""
    require_proc()
    keys = [setting.size(many, many // 100) for many in KEYS]
    sizes = [setting.size(many, many // 100) for many in SIZES]
    turns, spreads = setting.size(TURNS, 2), [*SPREADS.items()][: setting.size(len(SPREADS), 1)]
    figures: list[Figure] = []
    for operator, (spread, shown) in product(setting.among(FILLED), spreads):
        case = CASES[operator]()
        names = {TODAYS: f"{operator}, {shown}"}
        if case.streaming:
            names[BASELINE] = f"{case.against}, {shown}"
        used = {form: over_states(setting, form, operator, spread, keys, sizes, turns) for form in names}
        for many, size in product(keys, sizes):
            at = f"a batch of {size:,} records over {many:,} keys"
            rates = {
                form: figure(f"{name}: {at}", UNIT, [size / each for each in used[form][many, size]], "a batch")
                for form, name in names.items()
            }
            figures += rates.values()
            if BASELINE in rates:
                over = f"{names[TODAYS]} over {case.against}: {at}"
                figures.append(ratio(over, rates[TODAYS], rates[BASELINE]))
    return figures
