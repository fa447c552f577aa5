"""MkDocs hooks: add pages from outside `docs/`, and rewrite links to files that aren't pages.

The site also has the README, the changelog, the examples and the chapters of `specs/` as pages. A link to one of these
files leads to its page. A link to any other file of the project becomes the file's path as text.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

BESIDE = {
    "README.md": "readme.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "ARCHITECTURE.md": "architecture.md",
    "examples/README.md": "examples.md",
    "specs/README.md": "specifications.md",
    "specs/findings.md": "findings.md",
}
"""The pages from outside `docs/`: their paths in the project, and their paths on the site."""
LINK = re.compile(r"(?<!!)\[([^\]\n]+)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from outside `docs/`."""
    root = Path(config.docs_dir).parent
    for source, place in BESIDE.items():
        files.append(File.generated(config, place, abs_src_path=str(root / source)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Point links at the site's pages, and replace links to other files by the files' paths."""
    sources = {place: source for source, place in BESIDE.items()}
    here = page.file.src_uri
    folder = PurePosixPath(sources.get(here, f"docs/{here}")).parent

    def resolved(link: re.Match[str]) -> str:
        text, target, anchor = link[1], normpath(folder / link[2]), link[3] or ""
        place = BESIDE.get(target, target.removeprefix("docs/"))
        if files.get_file_from_path(place) is None:
            return text if text.startswith("`") or " " in text else f"`{target}`"
        return f"[{text}]({relpath(place, PurePosixPath(here).parent)}{anchor})"

    return LINK.sub(resolved, markdown)
