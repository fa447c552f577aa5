"""Read users' text files. Devices, files that are too large and binary formats are refused with an error that names the
file.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .errors import BadInput

LARGEST_MB = 64
"""The largest size of a history file (MB of 2^20 bytes), some 700,000 records."""
MAGIC = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "Zstandard",
    b"PK\x03\x04": "zip",
    b"BZh": "bzip2",
    b"\xfd7zXZ\x00": "xz",
    b"PAR1": "parquet",
    b"SQLite format 3\x00": "SQLite",
}
"""The names of binary formats, by the first bytes of their files."""
_UNPACK = {"gzip": "gunzip", "Zstandard": "unzstd", "zip": "unzip", "bzip2": "bunzip2", "xz": "unxz"}


def read_text(path: Path, largest_mb: int = LARGEST_MB) -> str:
    """Return the text of a file or a pipe, without a byte order mark.

    Args:
        path: The path of a file or a pipe; a pipe is read until its writer closes it.
        largest_mb: The largest size (MB of 2^20 bytes).

    Raises:
        BadInput: The file is unreadable, a device, too large, in a binary format or not UTF-8; the message names the
            file.
    """
    try:
        return read_content(path, largest_mb).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: not UTF-8 at byte {error.start}: save the file as UTF-8") from None


def read_content(path: Path, largest_mb: int = LARGEST_MB) -> bytes:
    """Return the bytes of a text file or a pipe.

    Args:
        path: The path of a file or a pipe; a pipe is read until its writer closes it.
        largest_mb: The largest size (MB of 2^20 bytes).

    Raises:
        BadInput: The file is unreadable, a device, too large or in a binary format; the message names the file.
    """
    largest = largest_mb << 20
    try:
        kind = os.stat(path).st_mode
        if stat.S_ISCHR(kind) or stat.S_ISBLK(kind) or stat.S_ISSOCK(kind):
            raise BadInput(f"{path}: a device or a socket, which may never end: name a file or a pipe")
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            content = b"" if size > largest else file.read(largest + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise BadInput(f"{path}: can't be read ({reason}): check the path and its permissions") from None
    if max(size, len(content)) > largest:
        raise BadInput(f"{path}: larger than {largest_mb} MB, the most that can be read at once: split it")
    if (packed := format_of(content)) is not None:
        remedy = f"unpack it first, with `{_UNPACK[packed]}`" if packed in _UNPACK else "write it as text"
        raise BadInput(f"{path}: a {packed} file, and not JSON Lines: {remedy}")
    return content


def format_of(content: bytes) -> str | None:
    """Return the name of the binary format that starts with these bytes; None for any other content."""
    return next((name for magic, name in MAGIC.items() if content.startswith(magic)), None)
