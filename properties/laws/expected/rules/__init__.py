"""What is expected of a job by the rules of Spark's own operators: windows, sessions, deduplication and joins.

Each factory says what the job means to do, its watermark included, and returns an oracle: Spark's own rules as a
reference model, from `reference/spark`. `>>` puts one after another.
"""

from .aggregations import session_windows, windows
from .duplicates import drop_duplicates
from .rule import Rule
from .static_joins import StaticJoinKind, static_join
from .stream_joins import StreamJoinKind, stream_join

__all__ = [
    "Rule",
    "StaticJoinKind",
    "StreamJoinKind",
    "drop_duplicates",
    "session_windows",
    "static_join",
    "stream_join",
    "windows",
]
