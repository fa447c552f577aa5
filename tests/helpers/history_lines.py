"""Lines of history files, which tests of several files use."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import settings

QUIET = settings(deadline=None, max_examples=40, derandomize=True, database=None)
LATEST = 253_402_300_799_999
HEADER = '{"operator": "session_windows", "options": {"gap_ms": 10}}'
RECORD = '{"input": "events", "key": "a", "value": "x", "timestamp": 0}'


def text_of(*lines: str) -> str:
    return "".join(line + "\n" for line in lines)


def record(**fields: Any) -> str:
    return json.dumps({**json.loads(RECORD), **fields})
