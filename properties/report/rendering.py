"""Fill the templates of reports; users' texts and invisible characters are escaped."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..system.visible import visible

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def safe(text: str) -> str:
    r"""Return a text with control characters, escape sequences and characters that XML forbids escaped, as `\x1b`."""
    return _NOT_XML.sub("\ufffd", visible(text, lines=True))


def rendered(template: str, **names: Any) -> str:
    """Fill a template of this folder.

    Args:
        template: The template's file.
        names: The values of the template's names.
    """
    return _environment().get_template(template).render(**names)


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finished,
    )


def _finished(value: Any) -> Any:
    """Convert a value for a template: coordinates with at most one decimal, and safe texts."""
    if isinstance(value, float):
        return f"{value:.1f}".removesuffix(".0")
    if isinstance(value, Markup):
        return value
    return safe(value) if isinstance(value, str) else value
