"""The samples that are test modules: each is run as it stands, on one Spark session, and prints what its page shows."""

from __future__ import annotations

from doc_pages import BLOCKS, MODULES, printed_by


def test_what_is_shown_as_printed_belongs_to_a_module_above_it() -> None:
    shown = [block for block in BLOCKS if "printed by" in block.notes]
    owned = [printed for module in MODULES if (printed := printed_by(module)) is not None]
    assert [str(block) for block in shown if block not in owned] == []
