"""The samples that are test modules: each is run as it stands, on one Spark session, and prints what its page shows."""

from __future__ import annotations

from doc_pages import PAGES, Block, blocks_of

BLOCKS = [block for page in PAGES for block in blocks_of(page)]
MODULES = [block for block in BLOCKS if block.notes.get("file", "").startswith("test_")]


def printed_by(module: Block) -> Block | None:
    """Return the block that shows what a module prints: the next one of its page that names it."""
    of_page = [block for block in BLOCKS if block.page == module.page and block.line > module.line]
    return next((block for block in of_page if block.notes.get("printed by") == module.notes["file"]), None)


def test_what_is_shown_as_printed_belongs_to_a_module_above_it() -> None:
    shown = [block for block in BLOCKS if "printed by" in block.notes]
    owned = [printed for module in MODULES if (printed := printed_by(module)) is not None]
    assert [str(block) for block in shown if block not in owned] == []
