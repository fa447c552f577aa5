"""Write a report to a folder, as HTML, text, JSON, JUnit XML and SARIF; each file completely or not at all."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ...reference.core.errors import BadInput
from ..system.files import write_whole
from ..system.outputs import OutputKind, require_replaceable
from .content import Content
from .junit import junit
from .page import html, text
from .sarif import sarif

FORMAT = 1
"""The version of `report.json`."""


class ReportFormat(NamedTuple):
    """The format of a file of a report.

    Attributes:
        text: Returns the text of the file.
        mark: A text within the first 200 characters that identifies streamproof's own files, which may be replaced.
    """

    text: Callable[[Content], str]
    mark: str


def to_json(content: Content) -> str:
    """Return a report as JSON in ASCII, without the drawings, which the histories determine."""
    plain: dict[str, Any] = msgspec.to_builtins(content)
    for found in plain["found"]:
        del found["timeline"]
        for line in found["compared"]:
            del line["key"]  # the JSON format has no such field
    return json.dumps({"streamproof_report": FORMAT, **plain}, indent=1, allow_nan=False).replace("{\n ", "{", 1) + "\n"


FORMATS = {
    "report.html": ReportFormat(html, '<meta name="generator" content="streamproof">'),
    "report.txt": ReportFormat(text, "streamproof report: "),
    "report.json": ReportFormat(to_json, '{"streamproof_report": '),
    "junit.xml": ReportFormat(junit, '<testsuites name="streamproof"'),
    "report.sarif": ReportFormat(sarif, '"name": "streamproof"'),
}
"""The formats of a report's files, by file name."""


def write_content(folder: Path, content: Content) -> Path:
    """Write a report to a folder, replacing an earlier report, and return the path of its page.

    Raises:
        BadInput: The folder isn't writable.
    """
    files = {name: format.text(content) for name, format in FORMATS.items()}
    try:
        for name, file in files.items():
            write_whole(folder / name, file)
    except OSError as error:
        raise BadInput(
            f"the report can't be written into {folder} ({error.strerror}): name a writable folder"
        ) from None
    return folder / "report.html"


def require_folder(folder: Path) -> None:
    """Refuse a folder that isn't writable, or where a report would replace a file that isn't streamproof's.

    Raises:
        BadInput: The path isn't a folder, isn't writable, or contains another file with a report's name.
    """
    if folder.exists() and not folder.is_dir():
        raise BadInput(f"the report can't be written into {folder}, which isn't a folder: name a writable folder")
    for path in (folder / name for name in FORMATS):
        try:
            require_replaceable(path, OutputKind("a report", path.suffix, _is_ours), force=False)
        except BadInput as error:
            said = str(error).replace("name another file, or add --force to replace it", "name another folder")
            raise BadInput(said) from None


def _is_ours(path: Path) -> bool:
    with path.open(encoding="utf-8") as file:
        return FORMATS[path.name].mark in file.read(200)
