"""The proofs of the catalogue: of which module, with which constants, and whether each is expected to succeed."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ...reference.core.errors import BadInput
from ..pytla import Value, ValueSyntaxError, parse_value

Expected = Literal["proved", "not proved"]

FILE = Path(__file__).parent.parent / "proofs.json"


@dataclass(frozen=True)
class ProofEntry:
    """A proof that an invariant is inductive and implies properties.

    Attributes:
        name: Its name, `ForeignKeyJoin_left`.
        module: The file of the module.
        says: What it shows, in one sentence.
        sets: The constants that are arbitrary sets, each with the elements that a counterexample has.
        numbers: The constants that are arbitrary numbers.
        small: The values of constants in a counterexample, and where TLC looks whether it reaches one.
        reach: The values of the numbers there.
        counters: The variables that TLC may reach with any value.
        constants: The values of the other constants.
        invariant: The name of the invariant.
        properties: The names of the properties that it implies.
        first: The name of the initial predicate.
        step: The name of the next-state relation.
        result: Whether it is expected to be proved.
    """

    name: str
    module: Path
    says: str
    sets: Mapping[str, frozenset[Value]]
    numbers: tuple[str, ...]
    small: Mapping[str, Value]
    reach: Mapping[str, Value]
    counters: tuple[str, ...]
    constants: Mapping[str, Value]
    invariant: str
    properties: tuple[str, ...]
    first: str
    step: str
    result: Expected


def proofs(file: Path = FILE) -> tuple[ProofEntry, ...]:
    """Read the catalogue of proofs.

    Raises:
        BadInput: It can't be read, or an entry of it is wrong; the message names the entry.
    """
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadInput(f"{file}: can't be read: {error}") from None
    try:
        given = [
            (group, entry, f"{group['module']}, {entry['name']}")
            for group in content["modules"]
            for entry in group["proofs"]
        ]
    except (KeyError, TypeError) as error:
        raise BadInput(f"{file}: not a catalogue of proofs, such as {FILE.name} of streamproof: {error!r}") from None
    return tuple(_entry(group, entry, f"{file}: {where}", file.parent) for group, entry, where in given)


def find_proofs(names: Sequence[str], file: Path = FILE) -> tuple[ProofEntry, ...]:
    """Find proofs by their names, or by the name of their module; all of them where none is named.

    Args:
        names: The names.
        file: The catalogue that has them.

    Raises:
        BadInput: There is no such proof; the message lists those of a similar name.
    """
    known = proofs(file)
    chosen: list[ProofEntry] = []
    for name in names:
        found = [proof for proof in known if name in (proof.name, proof.module.stem)]
        if not found:
            every = sorted({each for proof in known for each in (proof.name, proof.module.stem)})
            close = difflib.get_close_matches(name, every, n=5, cutoff=0.4) or every
            raise BadInput(f"no proof is called {name!r}: did you mean {', '.join(close)}?")
        chosen += [proof for proof in found if proof not in chosen]
    return tuple(chosen) if names else known


def _entry(group: Mapping[str, Any], entry: Mapping[str, Any], where: str, folder: Path) -> ProofEntry:
    try:
        merged = {**group, **entry, "constants": {**group["constants"], **entry["constants"]}}
        module = folder / merged["module"]
        result = merged["result"]
        if result not in get_args(Expected):
            raise BadInput(f"{where}: its result is {result!r}, where it is one of: {', '.join(get_args(Expected))}")
        if not module.is_file():
            raise BadInput(f"{where}: there is no file {module}")
        return ProofEntry(
            merged["name"], module, merged["says"],
            {name: _elements(text) for name, text in merged["sets"].items()}, tuple(merged["numbers"]),
            _values(merged["small"]), _values(merged["reach"]), tuple(merged["counters"]), _values(merged["constants"]),
            merged["invariant"], tuple(merged["properties"]), merged["init"], merged["next"], result,
        )  # fmt: skip
    except KeyError as error:
        raise BadInput(f"{where}: {error} is missing") from None
    except ValueSyntaxError as error:
        raise BadInput(f"{where}: a constant isn't a value of TLA+: {error}") from None


def _values(texts: Mapping[str, str]) -> dict[str, Value]:
    return {name: parse_value(text) for name, text in texts.items()}


def _elements(text: str) -> frozenset[Value]:
    value = parse_value(text)
    if not isinstance(value, frozenset) or not value:
        raise BadInput(f'{text}: not a set with elements, such as {{"r1", "r2"}}')
    return value
