"""The store of counterexamples: a folder each, named by its content, whole or not there, and never overwritten.

A folder is written under a hidden name beside its own and then renamed, so that an interruption at any moment leaves
all of it or nothing; the hidden folder is locked by its writer, so that the next process recognizes that of a dead
process and sweeps it. Any number of processes may save into one folder at once.
"""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from ...reference.core.errors import BadInput
from ...reference.core.files import read_text
from ...reference.core.history import History, read_history
from ..laws.all import Subject
from ..runner.counterexample import Metadata, digest, folder_name
from ..system.files import HIDDEN
from ..system.held import hold, remove_unless_held
from ..system.visible import visible
from ..witnesses.run_options import run_options

METADATA = "counterexample.json"
HISTORY = "history.jsonl"
ORIGINAL = "original.jsonl"
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""The errors of a rename onto a name that is taken."""


def save_history(
    history: History, metadata: Metadata, others: Mapping[str, str] | None = None, refresh: bool = True
) -> tuple[Path, bool]:
    """Save a counterexample as a folder `metadata.folder/operator/name`.

    Args:
        history: Its history.
        metadata: What is known of it; its `folder` is the store's.
        others: Further files of its folder, by name.
        refresh: Whether one that is there already gets today's metadata and text where these differ.

    Returns:
        The folder, and whether this call made it.

    Raises:
        BadInput: It can't be written.
    """
    known = {name: getattr(metadata, name) for name in FIELDS}
    known["original"] = metadata.original is not None
    known["way"] = None if metadata.way is None else metadata.way.to_json()
    files = {
        HISTORY: history.to_text(),
        **(others or {}),
        METADATA: json.dumps(known, ensure_ascii=False, indent=2, sort_keys=True) + "\n",
    }
    if metadata.original is not None:
        files[ORIGINAL] = metadata.original.to_text()
    of_content = digest(metadata.law, metadata.subject, metadata.mutant, history, metadata.original, metadata.way)
    parent, name = metadata.folder / history.operator, folder_name(metadata.law, of_content)
    try:
        return put(parent, name, files, refresh)
    except OSError as error:
        raise BadInput(f"{parent / name}: can't be written ({error.strerror})") from None


def put(parent: Path, name: str, files: Mapping[str, str], refresh: bool = True) -> tuple[Path, bool]:
    """Write files into the folder `parent/name`, whole or not at all; where it is taken by another content, beside it.

    A counterexample is identified by its history, its original, and its law, subject and mutant in the metadata. One
    that is there already stays, with today's metadata and text where it is (no longer) confirmed.

    Args:
        parent: The operator's folder, which is made where it is missing.
        name: The folder's name.
        files: The texts, by the files' names.
        refresh: Whether one that is there already gets today's metadata and text.

    Returns:
        The folder, and whether this call made it.

    Raises:
        OSError: It can't be written; nothing is left of it then.
    """
    parent.mkdir(parents=True, exist_ok=True)
    sweep(parent)
    with _hidden(parent) as hidden:
        for file, text in files.items():
            _write(hidden / file, text)
        _sync(hidden)
        number = 1
        while True:
            target = parent / (name if number == 1 else f"{name}-{number}")
            try:
                hidden.rename(target)
            except OSError as error:
                if error.errno not in TAKEN:
                    raise
                if _is_same(target, files):
                    if refresh:
                        _refresh(hidden, target, files)
                    return target, False
                number += os.path.lexists(target)  # else another process has removed it meanwhile
            else:
                _sync(parent)
                return target, True


def remove_folder(folder: Path) -> None:
    """Remove a folder; an interruption leaves it whole, or hidden until it is swept. Nothing happens where none is."""
    with suppress(OSError), _hidden(folder.parent) as hidden:
        folder.rename(hidden)  # an empty folder is replaced; leaving the context removes it


def sweep(parent: Path) -> None:
    """Remove what dead processes left hidden: folders that weren't finished, or were being removed, and files."""
    for hidden in parent.glob(f"{HIDDEN}*"):
        remove_unless_held(hidden)


def saved(folder: Path, operator: str) -> Iterator[tuple[History, Metadata]]:
    """Yield the saved counterexamples of an operator, in the order of their folders' names.

    A folder without metadata is of an earlier version: its name has its law, and its clock says which check found it.

    Raises:
        BadInput: One can't be read any more; the message names the file and the remedy.
    """
    parent = folder / operator
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
                yield _read(path, operator)
        except BadInput as error:
            if path.exists():  # else another check has just replaced it by a smaller one
                raise BadInput(f"{error}; or remove the folder {path}, {_what_it_is(path)}") from None
        except OSError as error:
            raise BadInput(f"{path}: can't be read ({error.strerror}): check its permissions") from None


def _read(path: Path, operator: str) -> tuple[History, Metadata]:
    history = replace(read_history(path / HISTORY), name=path.name)
    if history.operator != operator:
        raise BadInput(
            f"{path / HISTORY}: a history of {history.operator} among those of {operator}: move it into the folder "
            f"{history.operator}"
        )
    if not (path / METADATA).exists():
        if not path.exists():
            raise BadInput(f"{path}: it is gone")
        law = re.sub(r"-\d+-records$", "", path.name).replace("-", " ")
        return history, Metadata(path, law, "spark" if history.clock == "batch" else "reference", operator)
    content = _object(path / METADATA)
    fields = {name: _field(path / METADATA, content, name, kinds) for name, kinds in FIELDS.items()}
    for name, allowed in (("subject", get_args(Subject)), ("operator", (operator,))):
        if fields[name] not in allowed:
            raise BadInput(
                f"{path / METADATA}: {name} is {fields[name]!r}, not {' or '.join(allowed)}: write it as it was"
            )
    original = replace(read_history(path / ORIGINAL), name="original") if fields.pop("original") else None
    try:
        way = None if content.get("way") is None else run_options(content["way"])  # once none was saved
    except BadInput as error:
        raise BadInput(f"{path / METADATA}: way: {error}; write it as it was") from None
    return history, Metadata(path, **fields, original=original, way=way)


def _what_it_is(path: Path) -> str:
    """Say what a folder is that can't be read: of another version of streamproof, where it names one, or damaged."""
    with suppress(BadInput, OSError):
        by = re.match(r"streamproof (\S+?),", str(_object(path / METADATA).get("versions")))
        if by is not None and by[1] != version("streamproof"):
            return f"a counterexample of streamproof {visible(by[1])}, which this version can't read"
    return "a damaged counterexample"


FIELDS: Mapping[str, tuple[type, ...]] = {
    "law": (str,),
    "subject": (str,),
    "operator": (str,),
    "mutant": (str, type(None)),
    "confirmed": (bool,),
    "seed": (int, type(None)),
    "versions": (str,),
    "original": (bool,),
}
"""The fields of the metadata, and their types in JSON."""


def _object(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(read_text(path))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{path}: not JSON ({error}): write the JSON object that it was") from None
    if not isinstance(content, dict):
        raise BadInput(f"{path}: {type(content).__name__} instead of an object: write the JSON object that it was")
    return content


def _field(path: Path, content: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    if name not in content:
        raise BadInput(f"{path}: without the field {name!r}: write it as it was")
    value = content[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise BadInput(f"{path}: {name} is {value!r:.40}, and must be {wanted}: write it as it was")
    return value


def _is_same(folder: Path, files: Mapping[str, str]) -> bool:
    """Whether the counterexample of these files lies in a folder already."""
    try:
        before = _object(folder / METADATA)
        texts = {name: (folder / name).read_bytes() for name in (HISTORY, ORIGINAL) if (folder / name).exists()}
    except (BadInput, OSError):
        return False
    now = json.loads(files[METADATA])
    return texts == {name: files[name].encode() for name in (HISTORY, ORIGINAL) if name in files} and all(
        before.get(name) == now.get(name) for name in ("law", "subject", "operator", "mutant", "way")
    )


def _refresh(hidden: Path, folder: Path, files: Mapping[str, str]) -> None:
    """Move today's files into the folder, each at once, where it is confirmed today and wasn't, or the reverse."""
    with suppress(BadInput, FileNotFoundError):  # another process has removed it meanwhile
        before, now = _object(folder / METADATA).get("confirmed"), json.loads(files[METADATA])["confirmed"]
        if before != now or not now:  # what isn't confirmed says why today
            for stale in {path.name for path in folder.glob("test_*.py")} - files.keys():
                (folder / stale).unlink()
            for name in sorted(files, key=lambda name: name == METADATA):  # it says last that it is done
                os.replace(hidden / name, folder / name)
            _sync(folder)


@contextmanager
def _hidden(parent: Path) -> Iterator[Path]:
    """Make a hidden folder, which is locked for as long as it is in use, and gone afterwards."""
    while True:
        hidden = parent / f"{HIDDEN}{uuid.uuid4().hex}"
        hidden.mkdir()  # mkdtemp would keep others of the group out
        try:
            descriptor = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # swept before it could be locked
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


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Have a folder's entries written to the disk."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # not every file system can
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
