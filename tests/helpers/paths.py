"""The folders that tests read."""

from __future__ import annotations

from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
ROOT, GOLDEN = TESTS.parent, TESTS / "golden"
