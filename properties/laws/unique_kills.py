"""Laws of an implementation: the mutant that only this law kills, or the reason to keep a law without a mutant."""

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

_BY_REFERENCE = "a check asks it of the reference, and of Spark with --all-laws: it shows what both have wrong alike"
STAYS: Mapping[str, str] = {
    **dict.fromkeys(("table at every cut", "cuts", "order", "keys", "repeats", "duckdb"), _BY_REFERENCE),
    "packing": "it says that sharing a query does no harm, on which all other laws rest; it costs a query a mutant",
    "retention": "it judges definitions with a retention, which mutants aren't asked; it costs queries a mutant",
    "native": "it judges Spark's own operators, which have no mutants",
    "columns": "it judges how a declaration reads typed columns, which no logic decides",
}
"""The reason to keep a law that is never the only law to kill a mutant."""


def why(law: str) -> str:
    """Return the reason for a law that alone kills none of the given mutants; empty for a law that isn't ours."""
    if law in KILLS_ALONE:
        operator, mutant = KILLS_ALONE[law]
        return f"of {operator} it alone kills {mutant}"
    return STAYS.get(law, "")
