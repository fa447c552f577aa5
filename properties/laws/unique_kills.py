"""For each law on Spark, a mutant that only this law kills, or the reason to keep the law without such a mutant."""

from __future__ import annotations

from collections.abc import Mapping

KILLS_ALONE: Mapping[str, tuple[str, str]] = {
    "changelog": ("session_windows", "tombstones_in_wrong_order"),
    "labels": ("session_windows", "causeless_tombstones"),
    "partitions": ("table_table_join", "third_partition_lost"),
    "replay": ("table_table_join", "takes_no_row_twice"),
    "restart": ("table_table_join", "forgets_at_second_restart"),
    "schedules": ("foreign_key_join", "asks_the_old_key"),
    "state": ("session_windows", "state_never_expires"),
}
"""For each law, an operator and its mutant that no other law kills."""

_BY_REFERENCE = (
    "a check judges it on the reference, and with --all-laws on Spark: it detects bugs that the reference and Spark "
    "share"
)
STAYS: Mapping[str, str] = {
    **dict.fromkeys(("table at every cut", "cuts", "order", "keys", "repeats", "duckdb"), _BY_REFERENCE),
    "packing": (
        "it shows that sharing a query changes nothing, which all other laws assume; it costs a query for each mutant"
    ),
    "retention": "it judges definitions with a retention, which mutants don't have; it costs queries for each mutant",
    "native": "it judges Spark's own operators, which have no mutants",
    "columns": "it judges how a declaration reads typed columns, which no mutant's logic changes",
}
"""The reason to keep a law that is never the only law to kill a mutant."""


def why(law: str) -> str:
    """Return the reason to keep a law: a mutant that only this law kills, or another reason; return an empty text for a
    user's law.
    """
    if law in KILLS_ALONE:
        operator, mutant = KILLS_ALONE[law]
        return f"it alone kills {mutant} of {operator}"
    return STAYS.get(law, "")
