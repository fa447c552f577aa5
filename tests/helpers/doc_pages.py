"""The pages of the documentation, and the fenced blocks in them, for the tests that run them.

An HTML comment before a block says more of it:

- `file: NAME`: the block is a file, which the blocks after it find under that name.
- `run`, `run: exit 2`, `run: any exit`: its command lines are run, and what is below a command is its output;
  `run: tlc` runs TLC. Other command lines are parsed: command, options and their values exist.
- `spark`, `tlc`: the Python block needs that.
- `not run: REASON`: the Python block is compiled alone, and the command lines are parsed.
- `file: test_NAME.py`: its tests are run; those that fail are named by `fails: test_a, test_b`.
- `printed by: NAME`: what the tests of that file print, or fail with; a line `…` stands for what is left out.
- `test to paste of: NAME`: what pytest prints for that file.
- `copy of: PATH`: the block is that file of the project.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paths import ROOT

PAGES = sorted(
    str(page.relative_to(ROOT))
    for page in [
        ROOT / "README.md",
        ROOT / "CONTRIBUTING.md",
        ROOT / "ARCHITECTURE.md",
        ROOT / "CHANGELOG.md",
        ROOT / "examples/README.md",
        *(ROOT / "docs").rglob("*.md"),
        *(ROOT / "specs").glob("*.md"),
    ]
)

_BLOCK = re.compile(r"((?:^<!-- [^\n]* -->\n)*)^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    Attributes:
        page: The page, from the project's root.
        line: The line that it begins in.
        language: What it is written in.
        text: What it says.
        notes: What the comments before it say, by the word that they begin with.
    """

    page: str
    line: int
    language: str
    text: str
    notes: dict[str, str]

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        """The command lines, each with the lines of output below it."""
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:].split("  #")[0].strip(), []))
            elif found:
                found[-1][1].append(line)
        return found


def text_of(page: str) -> str:
    return (ROOT / page).read_text(encoding="utf-8")


def blocks_of(page: str) -> list[Block]:
    """Return the fenced blocks of a page."""
    text = text_of(page)
    return [
        Block(
            page,
            text.count("\n", 0, found.start(2)) + 1,
            found[2],
            found[3],
            {
                note.partition(":")[0]: note.partition(":")[2].strip()
                for note in re.findall(r"<!-- (.*?) -->", found[1])
            },
        )
        for found in _BLOCK.finditer(text)
    ]


def fences_of(page: str) -> int:
    """Return how many lines of a page open or close a fenced block, in any form that Markdown knows."""
    return len(re.findall(r"^[ \t>]*(?:```|~~~)", text_of(page), re.MULTILINE))


def prose_of(page: str) -> str:
    """Return a page without its fenced blocks."""
    return _BLOCK.sub("", text_of(page))


def anchors_of(page: str) -> set[str]:
    """Return the anchors of a page's headings, as the site and its repository make them."""
    headings = re.findall(r"^#+ (.+)$", prose_of(page), re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) for heading in headings}


def links_of(page: str) -> list[tuple[str, str]]:
    """Return the relative links of a page, each as a target and an anchor, empty where there is none."""
    links = re.findall(r"(?<!!)\[[^\]\n]+\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)", prose_of(page))
    return [(target, anchor) for target, anchor in links]


def write_files(blocks: list[Block], folder: Path) -> None:
    """Write the blocks that are files into a folder."""
    for block in blocks:
        if "file" in block.notes:
            path = folder / block.notes["file"]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")


BLOCKS = [block for page in PAGES for block in blocks_of(page)]
MODULES = [block for block in BLOCKS if block.notes.get("file", "").startswith("test_")]
"""The samples that are test modules."""


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


def printed_by(module: Block) -> Block | None:
    """Return the block that shows what a module prints: the next one of its page that names it."""
    of_page = [block for block in BLOCKS if block.page == module.page and block.line > module.line]
    return next((block for block in of_page if block.notes.get("printed by") == module.notes["file"]), None)
