"""The store of counterexamples: a folder each, named by its content, whole or not there, and never overwritten.

A folder is written hidden beside its place and renamed into it, so that an interruption at any moment leaves all of it
or nothing; the hidden folder is locked by its writer, so that whoever comes next can tell one of a dead process and
sweep it. Any number of processes may save into one folder at once.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from ..reference.errors import BadInput
from ..reference.files import read_text
from ..reference.histories import History, read_history

Subject: TypeAlias = Literal["spark", "reference", "job"]
METADATA = "counterexample.json"
HISTORY = "history.jsonl"
ORIGINAL = "original.jsonl"
HIDDEN = ".writing-"
"""What the name of a folder begins with that isn't finished, or that is being removed."""
TAKEN = (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR)
"""The errors of a rename onto a name that is taken."""


@dataclass(frozen=True)
class Metadata:
    """What is known of a saved counterexample besides its history.

    Attributes:
        folder: Where it lies.
        law: The law that it breaks.
        subject: Whose check found it: that of the operator on Spark, of the reference, or of a user's own job.
        operator: The operator's name.
        mutant: The mutant that stood in for the operator's own logic, if any.
        confirmed: Whether the history alone, outside its cohort, broke the law too.
        seed: The seed of the run that found it; None where it was saved without.
        versions: The versions that it was found with; empty where it was saved without.
        original: The history that its history is a metamorphic variant of, where the law relates the two.
    """

    folder: Path
    law: str
    subject: Subject
    operator: str
    mutant: str | None = None
    confirmed: bool = True
    seed: int | None = None
    versions: str = ""
    original: History | None = None


def digest(law: str, subject: str, mutant: str | None, history: History, original: History | None = None) -> str:
    """Give what a counterexample is called by: 12 hexadecimal digits of a hash of what makes it that one."""
    content = [law, subject, mutant, history.to_text(), None if original is None else original.to_text()]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12]


def folder_name(law: str, digest_of_content: str) -> str:
    """Give the name of a counterexample's folder: `changelog-0123456789ab`."""
    return f"{re.sub(r'[^A-Za-z0-9_]+', '-', law).strip('-')}-{digest_of_content}"


def save_history(
    history: History, metadata: Metadata, others: Mapping[str, str] | None = None, refresh: bool = True
) -> tuple[Path, bool]:
    """Save a counterexample below `metadata.folder`, in a folder of its own in that of its operator.

    Args:
        history: Its history.
        metadata: What is known of it; its `folder` is the store's.
        others: Further files of its folder, by name.
        refresh: Whether one that is there already gets the metadata and account of today where these say otherwise.

    Returns:
        The folder, and whether this call made it.

    Raises:
        BadInput: It can't be written.
    """
    known = {name: getattr(metadata, name) for name in FIELDS}
    known["original"] = metadata.original is not None
    files = {
        HISTORY: history.to_text(),
        **(others or {}),
        METADATA: json.dumps(known, ensure_ascii=False, indent=2, sort_keys=True) + "\n",
    }
    if metadata.original is not None:
        files[ORIGINAL] = metadata.original.to_text()
    of_content = digest(metadata.law, metadata.subject, metadata.mutant, history, metadata.original)
    parent, name = metadata.folder / history.operator, folder_name(metadata.law, of_content)
    try:
        return put(parent, name, files, refresh)
    except OSError as error:
        raise BadInput(f"{parent / name}: can't be written ({error.strerror})") from None


def put(parent: Path, name: str, files: Mapping[str, str], refresh: bool = True) -> tuple[Path, bool]:
    """Write files into the folder `parent/name`, whole or not at all; where it is taken by another content, beside it.

    What makes a counterexample that one are its history, its original, and its law, subject and mutant in the
    metadata. One that is there already stays, with the metadata and account of today where it is (no longer) confirmed.

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


def take_away(folder: Path) -> None:
    """Remove a folder: an interruption leaves it whole, or hidden until it is swept. What isn't there is gone."""
    with suppress(OSError), _hidden(folder.parent) as hidden:
        folder.rename(hidden)  # an empty folder is replaced; leaving the context removes it


def sweep(parent: Path) -> None:
    """Remove the hidden folders that dead processes left."""
    for hidden in parent.glob(f"{HIDDEN}*"):
        with suppress(OSError):
            held = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused as long as its writer lives
                shutil.rmtree(hidden, ignore_errors=True)
            finally:
                os.close(held)


def saved(folder: Path, operator: str) -> Iterator[tuple[History, Metadata]]:
    """Give the saved counterexamples of an operator, in the order of their folders' names.

    A folder without metadata is of an earlier version: its name has its law, and its clock tells which check found it.

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
    for place in (parent / name for name in names):
        try:
            if any((place / name).exists() for name in (HISTORY, METADATA)):
                yield _read(place, operator)
        except BadInput as error:
            if place.exists():  # else another check has just put a smaller one in its place
                raise BadInput(f"{error}; or remove the folder {place}, a damaged counterexample") from None
        except OSError as error:
            raise BadInput(f"{place}: can't be read ({error.strerror}): check its permissions") from None


def _read(place: Path, operator: str) -> tuple[History, Metadata]:
    history = replace(read_history(place / HISTORY), name=place.name)
    if history.operator != operator:
        raise BadInput(
            f"{place / HISTORY}: a history of {history.operator} among those of {operator}: move it into the folder "
            f"{history.operator}"
        )
    if not (place / METADATA).exists():
        law = re.sub(r"-\d+-records$", "", place.name).replace("-", " ")
        return history, Metadata(place, law, "spark" if history.clock == "batch" else "reference", operator)
    content = _object(place / METADATA)
    fields = {name: _field(place / METADATA, content, name, kinds) for name, kinds in FIELDS.items()}
    for name, allowed in (("subject", get_args(Subject)), ("operator", (operator,))):
        if fields[name] not in allowed:
            raise BadInput(
                f"{place / METADATA}: {name} is {fields[name]!r}, not {' or '.join(allowed)}: write it as it was"
            )
    original = replace(read_history(place / ORIGINAL), name="original") if fields.pop("original") else None
    return history, Metadata(place, **fields, original=original)


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
        before.get(name) == now[name] for name in ("law", "subject", "operator", "mutant")
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
    """A hidden folder that is locked for as long as it is in use, and gone afterwards."""
    while True:
        hidden = parent / f"{HIDDEN}{uuid.uuid4().hex}"
        hidden.mkdir()  # mkdtemp would keep others of the group out
        try:
            held = os.open(hidden, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:  # swept before it could be locked
            continue
        try:
            try:
                fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:  # it is being swept
                continue
            except OSError:  # where nothing can be locked, nothing is swept either
                pass
            if not hidden.exists():
                continue
            yield hidden
            return
        finally:
            shutil.rmtree(hidden, ignore_errors=True)
            os.close(held)


def _write(path: Path, text: str) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    """Have the disk keep a folder's entries."""
    held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with suppress(OSError):  # not every file system can
            os.fsync(held)
    finally:
        os.close(held)
