"""The oldest PySpark that runs the operators, and the names that the operators import from PySpark."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from ...reference.core.errors import MissingTool

if TYPE_CHECKING:
    from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
    from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
else:
    try:
        from pyspark.sql.streaming import StatefulProcessor, StatefulProcessorHandle
        from pyspark.sql.streaming.stateful_processor_api_client import StatefulProcessorHandleState
    except ImportError:  # PySpark before 4.0, which `require_pyspark` refuses later
        StatefulProcessor = StatefulProcessorHandle = StatefulProcessorHandleState = object

__all__ = [
    "OLDEST",
    "StatefulProcessor",
    "StatefulProcessorHandle",
    "StatefulProcessorHandleState",
    "platform_version",
    "require_pyspark",
]

OLDEST = "4.3"
"""The oldest PySpark that runs the operators, because they use its `transformWithState`."""


def require_pyspark() -> None:
    """Refuse to run the operators on a PySpark older than `OLDEST`.

    Raises:
        MissingTool: PySpark is older, or isn't installed.
    """
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        found = platform_version() or "none"
    if not _at_least(found, OLDEST):
        raise MissingTool(
            f"the twelve operators of streamproof need PySpark {OLDEST} or newer, but {found} is installed: "
            f"`pip install 'pyspark~={OLDEST}.0'`; jobs of your own are checked on older ones too, by check_job"
        )


def platform_version() -> str:
    """Return the version of a PySpark that belongs to a platform instead of pip; empty if there is none."""
    spec = find_spec("pyspark")
    if spec is None or spec.origin is None:
        return ""
    file = Path(spec.origin).with_name("version.py")
    found = re.search(
        r"""^__version__.*["']([^"']+)["']""", file.read_text("utf-8") if file.is_file() else "", re.MULTILINE
    )
    return found[1] if found else ""


def _at_least(found: str, oldest: str) -> bool:
    def numbers(text: str) -> list[int]:
        return [int(part) for part in text.split(".")[:2] if part.isdecimal()]

    return numbers(found) >= numbers(oldest)
