"""The rules of Spark's own operators, as expectations: windows, sessions, deduplication, joins and unions.

Each function declares the operator that the job should run, including its watermark, and returns an oracle: Spark's own
rules as a reference model, from `reference/spark`. `>>` chains one rule after another.
"""

from .aggregations import session_windows, windows
from .duplicates import drop_duplicates
from .rule import Rule
from .static_joins import static_join
from .stream_joins import stream_join
from .unions import union

__all__ = [
    "Rule",
    "drop_duplicates",
    "session_windows",
    "static_join",
    "stream_join",
    "union",
    "windows",
]
