"""The rules of Spark's own operators, for use as `expect=`: windows, sessions, deduplication, joins and unions.

Each function describes an operator that the job should run, with its watermark, and returns an oracle. The oracle uses
the model of Spark's operators in `reference/spark`. `>>` applies a rule to the output of another rule.
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
