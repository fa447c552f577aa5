"""Read the text of a module or a configuration. These functions refuse any other file, such as a binary file, before
Java starts.
"""

from __future__ import annotations

import codecs
from pathlib import Path

from ..tlc_error import TlcError

LARGEST = 16 << 20
"""The largest size of a file (bytes); a module has thousands."""

_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def read_source(path: Path, what: str, failed: type[TlcError]) -> str:
    """Return the text of a file.

    Args:
        path: The file.
        what: The word for the file in the message: `module` or `configuration`.
        failed: The exception class to raise.

    Raises:
        failed: The file is unreadable, too large, or not text that TLC can read.
    """
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
    except OSError as error:
        message = f"the {what} can't be read ({error.strerror}): a model is a module and a .cfg file."
        raise failed(message, file=path) from None
    if len(content) > LARGEST:
        raise failed(f"it is larger than {LARGEST >> 20} MiB, too large for a {what}: name another file.", file=path)
    if content.startswith(_WIDE):
        raise failed("it is UTF-16, which TLC can't read: save it as UTF-8.", file=path, line=1)
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise failed(f"it has a NUL byte, so it isn't text: name a {what}, saved as UTF-8.", file=path, line=line)
    return content.decode("utf-8", "replace").removeprefix("\ufeff")
