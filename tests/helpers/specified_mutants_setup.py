"""The same bug has one name: as a value of the constant `Mutant` of a specification, and as a mutant on Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from streamproof.specs.replays import (
    foreign_key_mutants,
    session_windows_mutants,
    stream_stream_join_mutants,
    table_table_join_mutants,
)

SPECIFIED: Mapping[str, Mapping[str, Any]] = {
    "session_windows": session_windows_mutants.MUTANTS,
    "stream_stream_join": stream_stream_join_mutants.MUTANTS,
    "table_table_join": table_table_join_mutants.MUTANTS,
    "foreign_key_join": foreign_key_mutants.MUTANTS,
}
"""By operator: the mutants of its specification, as mutants of the reference."""
SAME: Mapping[str, set[str]] = {
    "session_windows": {
        "gap exclusive",
        "merges one",
        "no tombstone",
        "closes early",
        "gap forgotten",
        "late kept",
        "rescue forgotten",
        "forgets early",
    },
    "stream_stream_join": {"bounds swapped", "late records join"},
    "table_table_join": {"right silent"},
    "foreign_key_join": {"move silent", "delete silent", "right tombstone silent"},
}
"""By operator: the specification's mutants that Spark has too, where no message waits."""


def name_of(value: str) -> str:
    """Return the name on Spark of a value of the constant `Mutant`."""
    return value.replace(" ", "_")
