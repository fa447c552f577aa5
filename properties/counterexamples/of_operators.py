"""Save the counterexamples of operators as `folder/operator/name`, and read saved counterexamples for a replay."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args

from ...reference.core.errors import BadInput
from ...reference.core.history import History, read_history
from ..laws.all import Subject
from ..system.visible import visible
from ..witnesses.run_options import run_options
from .counterexample import Counterexample
from .store import HISTORY, METADATA, ORIGINAL, TEXT, Refresh, Store, read_each, read_metadata
from .text import counterexample_text, test_to_paste

DEFAULT_FOLDER = Path(".streamproof/counterexamples")
IDENTITY = ("law", "subject", "operator", "mutant", "way")
"""The metadata fields that, with the history and the original, identify a counterexample."""
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
"""The metadata fields, and their types in JSON."""


class FolderStore(Store):
    """A folder of operators' counterexamples.

    Args:
        folder: The folder, which is created for the first counterexample.
    """

    def __init__(self, folder: Path = DEFAULT_FOLDER) -> None:
        super().__init__()
        self.folder = folder

    def save(self, counterexample: Counterexample[History]) -> Path:
        """Write a counterexample atomically into `folder/operator/name/`, and return that folder.

        An existing folder with the same counterexample stays; its metadata and texts are replaced, unless both are
        confirmed.

        Raises:
            BadInput: The folder can't be written; the message contains the counterexample, so that nothing is lost.
        """
        others = {TEXT: counterexample_text(counterexample)}
        test = test_to_paste(counterexample)
        if test is not None:
            others[f"test_{counterexample.name.replace('-', '_')}.py"] = test
        try:
            return self.write_history(
                counterexample, others, "never" if counterexample.awaits_recheck else "unconfirmed"
            )
        except BadInput as error:
            raise BadInput(f"{error}; the counterexample was:", counterexample_text(counterexample)) from None

    def write_history(
        self, counterexample: Counterexample[History], others: Mapping[str, str], refresh: Refresh = "unconfirmed"
    ) -> Path:
        """Write a counterexample's history, metadata and further files (by name), as `save` does.

        Raises:
            BadInput: The folder can't be written.
        """
        operator, has_original = counterexample.history.operator, counterexample.original is not None
        metadata = {"operator": operator, "mutant": counterexample.mutant, "original": has_original}
        path = self.folder / operator / counterexample.name
        try:
            return self.write(path, counterexample, others, metadata, identity=IDENTITY, refresh=refresh)
        except OSError as error:
            raise BadInput(f"{path}: can't be written ({error.strerror})") from None

    def saved(self, operator: str, subject: Subject, mutant: str | None = None) -> list[Counterexample[History]]:
        """Return the counterexamples that a check replays: those of the operator and of the mutant.

        Counterexamples under stream time aren't replayed on Spark, because under Spark's batch clock another output may
        be right.

        Raises:
            BadInput: A counterexample of the operator can't be read.
        """
        by_content = {
            known.name: known
            for known in saved(self.folder, operator)
            if known.subject == subject
            and known.mutant in (None, mutant)
            and (subject == "reference" or known.history.clock == "batch")
        }
        return list(by_content.values())  # of equal counterexamples that two versions saved, replay one


def saved(folder: Path, operator: str) -> Iterator[Counterexample[History]]:
    """Yield the saved counterexamples of an operator, in the order of their folders' names.

    An earlier version wrote folders without metadata: the folder's name contains the law, and the history's clock
    identifies the subject.

    Raises:
        BadInput: A counterexample can't be read; the message names the file and the remedy.
    """
    yield from read_each(
        folder / operator,
        lambda path: _read(path, operator),
        lambda path: f"; or remove the folder {path}, {_what_it_is(path)}",
    )


def _read(path: Path, operator: str) -> Counterexample[History]:
    history = replace(read_history(path / HISTORY), name=path.name)
    if history.operator != operator:
        raise BadInput(
            f"{path / HISTORY}: a history of {history.operator} among those of {operator}: move it into the folder "
            f"{history.operator}"
        )
    if not (path / METADATA).exists():
        if not path.exists():
            raise BadInput(f"{path}: no longer exists")
        law = re.sub(r"-\d+-records$", "", path.name).replace("-", " ")
        subject: Subject = "spark" if history.clock == "batch" else "reference"
        return Counterexample(law=law, history=history, subject=subject, folder=path)
    content = read_metadata(path)
    fields = {name: _field(path / METADATA, content, name, kinds) for name, kinds in FIELDS.items()}
    for name, allowed in (("subject", get_args(Subject)), ("operator", (operator,))):
        if fields[name] not in allowed:
            raise BadInput(
                f"{path / METADATA}: {name} is {fields[name]!r}, not {' or '.join(allowed)}: write it as it was"
            )
    del fields["operator"]
    original = replace(read_history(path / ORIGINAL), name="original") if fields.pop("original") else None
    try:
        way = None if content.get("way") is None else run_options(content["way"])  # earlier versions saved no `way`
    except BadInput as error:
        raise BadInput(f"{path / METADATA}: way: {error}; write it as it was") from None
    return Counterexample(history=history, **fields, original=original, way=way, folder=path)


def _field(path: Path, content: Mapping[str, Any], name: str, kinds: tuple[type, ...]) -> Any:
    if name not in content:
        raise BadInput(f"{path}: without the field {name!r}: write it as it was")
    value = content[name]
    if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
        wanted = " or ".join("null" if kind is type(None) else kind.__name__ for kind in kinds)
        raise BadInput(f"{path}: {name} is {value!r:.40}, and must be {wanted}: write it as it was")
    return value


def _what_it_is(path: Path) -> str:
    """Describe an unreadable folder for a message: saved by another version of streamproof, or damaged."""
    with suppress(BadInput, OSError):
        by = re.match(r"streamproof (\S+?),", str(read_metadata(path).get("versions")))
        if by is not None and by[1] != version("streamproof"):
            return f"a counterexample of streamproof {visible(by[1])}, which this version can't read"
    return "a damaged counterexample"
