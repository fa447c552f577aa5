"""Make users' text safe to show: no name, key or option may control a terminal or imitate another line."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

_UNSEEN = (
    r"\x00-\x1f\x7f-\x9f"  # control characters; some terminals treat 0x80 to 0x9f as escape sequences too
    r"\xad\u061c\u200b\u200e\u200f\u2060-\u206f\ufeff\ufff9-\ufffb"  # marks of text direction, and invisible characters
    r"\u2028-\u202e\ud800-\udfff\U000e0000-\U000e007f"  # line separators, text directions, surrogates, tags
)
_ONE_LINE = re.compile(f"[{_UNSEEN}]")
_LINES = re.compile(rf"(?![\n\t])[{_UNSEEN}]")
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def visible(text: object, *, lines: bool = False) -> str:
    r"""Return a text with invisible characters escaped as in Python: `\x1b`, `\n`, `\u202e`.

    Args:
        text: Any object; objects other than strings are converted by `str`.
        lines: Whether newlines and tabs belong to the text and stay.
    """
    return (_LINES if lines else _ONE_LINE).sub(lambda found: _escaped(found[0]), str(text))


def json_line(content: Any) -> str:
    r"""Return a value as one line of JSON with invisible characters escaped (`\u202e`); it parses to the same value."""
    return _ONE_LINE.sub(lambda found: _as_json(found[0]), json.dumps(content, ensure_ascii=False))


def _escaped(character: str) -> str:
    code = ord(character)
    if 0xDC80 <= code <= 0xDCFF:  # Python's form of a file name's byte that isn't UTF-8
        return f"\\x{code - 0xDC00:02x}"
    if code < 0x100:
        return _SHORT.get(character, f"\\x{code:02x}")
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _as_json(character: str) -> str:
    return json.dumps(character)[1:-1]


def visible_path(path: str) -> str:
    """Return a path as text, relative to the working directory if it is inside."""
    with contextlib.suppress(ValueError, OSError):
        return visible(Path(path).resolve().relative_to(Path.cwd()))
    return visible(path)


def first_cause(exception: Any) -> Any:
    """Return the innermost cause of a Java exception, or the exception itself."""
    while exception.getCause() is not None:
        exception = exception.getCause()
    return exception


def first_line(text: object) -> str:
    """Return the first non-blank line of a text or an error's message, or an empty string."""
    return next((line.strip() for line in text_of(text).splitlines() if line.strip()), "")


def text_of(shown: object) -> str:
    """Return an object as text; if its `str` raises, a text that names the error."""
    try:
        return str(shown)
    except Exception as error:
        return f"its message can't be shown: {type(error).__name__}"
