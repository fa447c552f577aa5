"""Find the file system's reason for a refused read or write in errors of Spark, DuckDB and Python."""

from __future__ import annotations

_REASONS = (
    "No space left on device",
    "Disk quota exceeded",
    "Read-only file system",
    "Permission denied",
    "File too large",
    "Too many open files",
    "Input/output error",
    "Not a directory",
    "Is a directory",
    "Checksum error",
)
_OTHERS = {
    "Mkdirs failed to create": "a folder can't be made there",
    "arent path is not a directory": "a part of its path is a file",
    "ParentNotDirectoryException": "a part of its path is a file",
}


def file_system_reason(error: BaseException) -> str | None:
    """Return the reason why files couldn't be read or written, such as `Disk quota exceeded`; None for other errors."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = str(error)
    for reason in _REASONS:
        if reason in text:
            return reason
    return next((reason for said, reason in _OTHERS.items() if said in text), None)
