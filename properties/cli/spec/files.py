"""The output files of the commands of `spec`, which are written atomically."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ....reference.core.errors import BadInput
from ...system.files import whole_file


def write_text(path: Path, text: str) -> None:
    """Write a file atomically.

    Raises:
        BadInput: The file can't be written.
    """
    write_lines(path, [text.removesuffix("\n")])


def write_lines(path: Path, lines: Iterable[str]) -> int:
    """Write a file atomically, and print the number of the file's lines.

    Raises:
        BadInput: The file can't be written.
    """
    count = 0
    try:
        with whole_file(path) as file:
            for line in lines:
                file.write(line + "\n")
                count += 1
    except OSError as error:
        raise BadInput(f"{path}: can't be written ({error.strerror})") from None
    return count
