"""The tables of options in `operators.md`, made of the operators' definitions: `python docs/options.py` writes them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Any

from streamproof.reference.core.operator import operator_named

PAGE = Path(__file__).with_name("operators.md")
TABLE = re.compile(r"(<!-- options: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def option(field: Field[Any]) -> str:
    """Return the name of a definition's field in a history file; `with_` is `with`."""
    return field.name.removesuffix("_")


def default(field: Field[Any]) -> str:
    """Return what an option is where it isn't given."""
    if field.default_factory is not MISSING:
        return "see there"
    if field.default is MISSING:
        return "needed"
    if field.metadata.get("python_only"):
        return "nothing"
    value = getattr(field.default, "name", field.default)
    return "none" if value is None else f"`{value}`"


def descriptions(definition: type) -> dict[str, str]:
    """Return what the docstring says of each attribute."""
    text = inspect.getdoc(definition) or ""
    part = re.search(r"^Attributes:\n(.*?)(?=^\S|\Z)", text, re.DOTALL | re.MULTILINE)
    found = re.findall(r"^    (\w+): (.*?)(?=^    \w+: |\Z)", part[1] if part else "", re.DOTALL | re.MULTILINE)
    return {name: " ".join(said.split()) for name, said in found}


def rows(operator: str) -> Iterator[str]:
    """Yield the lines of an operator's table."""
    definition = operator_named(operator).definition
    said = descriptions(definition)
    yield "| option | default | is |"
    yield "|---|---|---|"
    for field in fields(definition):
        python = " (from Python alone)" if field.metadata.get("python_only") else ""
        yield f"| `{option(field)}`{python} | {default(field)} | {said.get(field.name, '').replace('|', '&#124;')} |"


def page(text: str) -> str:
    """Return the text of the page with each table up to date."""
    return TABLE.sub(lambda found: found[1] + "\n" + "\n".join(rows(found[2])) + "\n\n" + found[4], text)


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
