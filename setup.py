"""The package page, which is the README: the rest of the package is declared in pyproject.toml.

Where the README is shown by a package index, a relative link leads nowhere. It becomes one to the repository, where
`[project.urls]` names that as `Repository`; and plain text where it doesn't.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import setup

ROOT = Path(__file__).parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def package_page() -> str:
    """Return the README as it reads outside of the repository."""
    repository = PROJECT.get("urls", {}).get("Repository", "").rstrip("/")
    link = rf"[\1]({repository}/blob/v{PROJECT['version']}/\2)" if repository else r"\1"
    page = re.sub(r"(?<!!)\[([^\]\n]+)\]\((?!https?:|#)([^)\s]+)\)", link, (ROOT / "README.md").read_text("utf-8"))
    return re.sub(r"^<!-- .* -->\n", "", page, flags=re.MULTILINE)  # notes for the tests


setup(long_description=package_page(), long_description_content_type="text/markdown")
