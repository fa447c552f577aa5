"""The documentation: its samples run, its commands exist, its histories give what it shows, its links work."""

from __future__ import annotations

from typing import Any

from doc_pages import PAGES, Block, blocks_of

BLOCKS = [block for page in PAGES for block in blocks_of(page)]


def written_in(language: str) -> list[Block]:
    return [block for block in BLOCKS if block.language == language]


def run_python(page: str, namespace: dict[str, Any]) -> None:
    for block in blocks_of(page):
        if block.language == "python" and not {"not run", "file"} & block.notes.keys():
            exec(compile(block.text, str(block), "exec"), namespace)


def pages_of_python(need: str | None) -> list[str]:
    """Return the pages whose Python blocks, taken together, need Spark, TLC, or neither."""
    needs: dict[str, set[str]] = {}
    for block in written_in("python"):
        if not {"not run", "file"} & block.notes.keys():
            needs.setdefault(block.page, set()).update({"spark", "tlc"} & block.notes.keys())
    return [page for page, needed in needs.items() if needed == ({need} if need else set())]
