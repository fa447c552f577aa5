"""The gate kills mutants of what a logic doesn't decide: the runtime, columns, state types, the guard.

`python tests/helpers/runtime_mutants.py FOLDER` runs all of them in half an hour. Here some are run of each kind.
"""

from __future__ import annotations

SOME = (
    "the times of sessions have 32 bits",
    "a null key moves the clock",
    "sums of fractions are whole",
    "tombstones are updates",
    "values lose their microseconds",
    "one record batch of many is packed",
    "the guard compares no types",
    "closed pages are forgotten",
)
"""Of each way in which a mutant shows, and of each part that is patched."""
