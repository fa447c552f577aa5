"""The store of counterexamples: each has a folder named after its content, which is written atomically and never
overwritten.

`put` writes a folder under a hidden name next to its final path, and then renames it: an interruption leaves the
complete folder or nothing. The writing process locks the hidden folder; the next process removes hidden folders without
a lock, whose process has died. Any number of processes may save into one folder at once.
"""

from __future__ import annotations

import errno
import json
import os
import shutil
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypeVar

from ...reference.core.errors import BadInput
from ...reference.core.files import read_text
from ..system.files import HIDDEN
from ..system.locks import hold, remove_unless_held
from .counterexample import Counterexample
from .text import versions

HISTORY, ORIGINAL, TEXT, METADATA = "history.jsonl", "original.jsonl", "counterexample.txt", "counterexample.json"
Refresh: TypeAlias = Literal["never", "unconfirmed", "always"]
"""When to replace the texts of an equal saved counterexample: never, unless both are confirmed, or always."""
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""The error numbers of a rename to an existing name."""
FolderVersion: TypeAlias = tuple[int, int]
"""The inode and the modification time (ns) of the metadata file; a refresh of the counterexample changes both."""
T = TypeVar("T")


class Store:
    """Writes and removes counterexamples' folders, which several processes may share."""

    def __init__(self) -> None:
        self._written: dict[tuple[int, Path], FolderVersion] = {}

    def write(
        self,
        path: Path,
        counterexample: Counterexample[Any],
        texts: Mapping[str, str],
        more: Mapping[str, object],
        *,
        identity: Sequence[str] = (),
        refresh: Refresh = "unconfirmed",
    ) -> Path:
        """Write a counterexample's folder with `put`, and return the folder; `forget` can remove a new folder.

        Args:
            path: The folder.
            counterexample: The counterexample.
            texts: Further files of the folder, by name.
            more: Metadata in addition to the metadata of all counterexamples.
            identity: As for `put`.
            refresh: As for `put`.

        Raises:
            OSError: The folder can't be written.
        """
        way, original = counterexample.way, counterexample.original_text
        files = {HISTORY: counterexample.history_text, **({} if original is None else {ORIGINAL: original}), **texts}
        metadata = {name: getattr(counterexample, name) for name in ("law", "subject", "confirmed", "seed")}
        metadata |= {
            "versions": counterexample.versions or versions(),
            "way": None if way is None else way.to_json(),
            **more,
        }
        path, written = put(path, files, metadata, identity=identity, refresh=refresh)
        if written is not None:
            self._written[os.getpid(), path] = written
        return path

    def forget(self, path: Path | None) -> None:
        """Remove a counterexample that this process wrote, after a smaller counterexample is saved.

        The counterexample stays if another process has written or found the same counterexample in the meantime.
        """
        written = None if path is None else self._written.pop((os.getpid(), path), None)
        if path is not None and written is not None:
            with _alone_in(path.parent):
                if _version(path) == written:
                    remove_folder(path)


def put(
    path: Path,
    files: Mapping[str, str],
    metadata: Mapping[str, object],
    *,
    identity: Sequence[str] = (),
    refresh: Refresh = "unconfirmed",
) -> tuple[Path, FolderVersion | None]:
    """Write a counterexample's folder atomically; if the folder exists with other content, write under another name.

    Args:
        path: The folder; missing parents are created.
        files: The texts, by file name: the history, and others.
        metadata: The counterexample's metadata, as JSON; including `confirmed`.
        identity: The metadata fields that, with the history and the original, identify the counterexample.
        refresh: When to replace the saved metadata and texts.

    Returns:
        The folder, and its version if this call created it.

    Raises:
        OSError: The folder can't be written; no part of the folder remains.
    """
    parent = path.parent
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    with _hidden(parent) as hidden:
        of_metadata = json.dumps(metadata, ensure_ascii=False, indent=2, sort_keys=True) + "\n"
        for file, text in {**files, METADATA: of_metadata}.items():
            _write(hidden / file, text)
        _sync(hidden)
        version = _version(hidden)
        number = 1
        while True:
            target = path if number == 1 else path.with_name(f"{path.name}-{number}")
            try:
                hidden.rename(target)
            except OSError as error:
                if error.errno not in TAKEN:
                    raise
                with _alone_in(parent):
                    if _is_same(target, files, metadata, identity):
                        if refresh != "never":
                            _refresh(hidden, target, metadata, refresh)
                        return target, None
                number += os.path.lexists(target)  # try the name again if it is free now
            else:
                _sync(parent)
                return target, version


def remove_folder(folder: Path) -> None:
    """Remove a folder, if it exists; an interruption leaves the complete folder, or a hidden folder for `sweep`."""
    with suppress(OSError), _hidden(folder.parent) as hidden:
        folder.rename(hidden)  # `_hidden` then removes it


def sweep(parent: Path) -> None:
    """Remove the hidden folders and files that dead processes left unfinished, or partially removed."""
    for hidden in parent.glob(f"{HIDDEN}*"):
        remove_unless_held(hidden)


def read_each(parent: Path, read: Callable[[Path], T], remedy: Callable[[Path], str]) -> Iterator[T]:
    """Yield the counterexamples in a folder, in the order of their folders' names.

    Args:
        parent: The folder, which may be missing.
        read: Reads a counterexample's folder; may raise BadInput or OSError.
        remedy: Returns a further remedy for an unreadable folder, such as `; or remove …`.

    Raises:
        BadInput: A counterexample can't be read; the message names the file and the remedy.
    """
    try:
        names = sorted(name for name in os.listdir(parent) if not name.startswith("."))
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise BadInput(f"{parent}: can't be read ({error.strerror}): check its permissions") from None
    sweep(parent)
    for path in (parent / name for name in names):
        try:
            if any((path / name).exists() for name in (HISTORY, METADATA)):
                yield read(path)
        except BadInput as error:
            if path.exists():  # if the folder is gone, another check has replaced it by a smaller counterexample
                raise BadInput(f"{error}{remedy(path)}") from None
        except OSError as error:
            raise BadInput(f"{path}: can't be read ({error.strerror}): check its permissions") from None


def read_metadata(folder: Path) -> dict[str, Any]:
    """Return the metadata of a counterexample that any version of streamproof saved.

    Raises:
        BadInput: The metadata can't be read; the message names the file.
    """
    path = folder / METADATA
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON ({error}): write the JSON object that it was") from None
    if not isinstance(content, dict):
        raise BadInput(f"{path}: {type(content).__name__} instead of an object: write the JSON object that it was")
    return content


def _is_same(folder: Path, files: Mapping[str, str], metadata: Mapping[str, object], identity: Sequence[str]) -> bool:
    """Return whether a folder already contains the counterexample with these files and this metadata."""
    try:
        texts = {name: (folder / name).read_bytes() for name in (HISTORY, ORIGINAL) if (folder / name).exists()}
        before = read_metadata(folder) if identity else {}
    except (BadInput, OSError):
        return False
    return texts == {name: files[name].encode() for name in (HISTORY, ORIGINAL) if name in files} and all(
        before.get(name) == metadata.get(name) for name in identity
    )


def _refresh(hidden: Path, folder: Path, metadata: Mapping[str, object], refresh: Refresh) -> None:
    """Replace the files of a saved counterexample by those in `hidden`, each atomically, if `refresh` says so."""
    with suppress(BadInput, FileNotFoundError):  # another process may have removed the folder
        if refresh == "unconfirmed" and metadata["confirmed"] and read_metadata(folder).get("confirmed"):
            return
        files = {path.name for path in hidden.iterdir()}
        for stale in {path.name for path in folder.glob("test_*.py")} - files:
            (folder / stale).unlink()
        # Replace the metadata last, because their field `confirmed` must not precede the other files.
        for name in sorted(files, key=lambda name: name == METADATA):
            os.replace(hidden / name, folder / name)
        _sync(folder)


@contextmanager
def _hidden(parent: Path) -> Iterator[Path]:
    """Create a hidden folder that is locked in the block, and removed afterwards."""
    while True:
        hidden = parent / f"{HIDDEN}{uuid.uuid4().hex}"
        hidden.mkdir()  # not mkdtemp, whose folders other users can't read
        try:
            descriptor = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # another process removed the folder before the lock
            continue
        try:
            hold(descriptor)
            if not hidden.exists():  # swept meanwhile
                continue
            yield hidden
            return
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
            os.close(descriptor)


@contextmanager
def _alone_in(parent: Path) -> Iterator[None]:
    """Prevent other processes from refreshing or removing counterexamples in a folder during the block."""
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        hold(descriptor)
        yield
    finally:
        os.close(descriptor)


def _version(folder: Path) -> FolderVersion | None:
    """Return the version of a saved counterexample; None if the counterexample no longer exists."""
    try:
        status = (folder / METADATA).stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Flush a folder's entries to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # not all file systems can flush a folder
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
