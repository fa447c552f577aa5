"""The proofs of the catalogue: module, constants, and the expected result of each."""

from __future__ import annotations

import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ...reference.core.errors import BadInput
from ..catalogue import field_of, read_json
from ..pytla import TlaValue, ValueSyntaxError, parse_value

ExpectedProof = Literal["proved", "not proved"]

FILE = Path(__file__).parent.parent / "proofs.json"


@dataclass(frozen=True)
class ProofEntry:
    """A proof that an invariant is inductive and implies properties.

    Attributes:
        name: Its name, `ForeignKeyJoin_left`.
        module: The file of the module.
        says: The meaning of the proof, in one sentence.
        sets: The constants that are arbitrary sets in the proof, each with its elements in a counterexample.
        numbers: The constants that are arbitrary numbers in the proof.
        small: The values of constants in the search for a counterexample, and in TLC's search for its first state.
        reach: The values of the numbers in TLC's search for the counterexample's first state.
        counters: The variables whose values TLC ignores when it compares a reached state with the counterexample's
            first state.
        constants: The values of the other constants.
        invariant: The name of the invariant.
        properties: The names of the implied properties.
        first: The name of the initial predicate.
        step: The name of the next-state relation.
        result: Whether the proof is expected to succeed.
    """

    name: str
    module: Path
    says: str
    sets: Mapping[str, frozenset[TlaValue]]
    numbers: tuple[str, ...]
    small: Mapping[str, TlaValue]
    reach: Mapping[str, TlaValue]
    counters: tuple[str, ...]
    constants: Mapping[str, TlaValue]
    invariant: str
    properties: tuple[str, ...]
    first: str
    step: str
    result: ExpectedProof


def proofs(file: Path = FILE) -> tuple[ProofEntry, ...]:
    """Read the catalogue of proofs.

    Raises:
        BadInput: The catalogue is unreadable, or an entry is invalid; the message names the entry.
    """
    where = str(file)
    return tuple(
        _entry(group, entry, f"{where}, module {number}, proof {place}", file.parent)
        for number, group in enumerate(field_of(read_json(file), "modules", list, where), 1)
        for place, entry in enumerate(field_of(group, "proofs", list, f"{where}, module {number}"), 1)
    )


def find_proofs(names: Sequence[str], file: Path = FILE) -> tuple[ProofEntry, ...]:
    """Find proofs by their names, or by the name of their module; without names, all proofs.

    Args:
        names: The names.
        file: The catalogue of proofs.

    Raises:
        BadInput: No proof has this name; the message lists similar names.
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


def _entry(group: Mapping[str, Any], entry: Any, where: str, folder: Path) -> ProofEntry:
    """Read a proof; a field that the proof lacks has the value of the module's entry."""
    name = field_of(entry, "name", str, where)
    where = f"{where} ({name})"
    merged = {**group, **entry}
    merged["constants"] = {
        each: text for of in (group, entry) for each, text in field_of(of, "constants", dict, where).items()
    }
    module = folder / field_of(merged, "module", str, where)
    if not module.is_file():
        raise BadInput(f"{where}: the file {module} is missing")
    result = field_of(merged, "result", str, where)
    if result not in get_args(ExpectedProof):
        raise BadInput(f"{where}: its result is {result!r}, but must be one of: {', '.join(get_args(ExpectedProof))}")
    numbers, counters, properties = (_texts(merged, field, where) for field in ("numbers", "counters", "properties"))
    small, reach, constants = (_values(merged, field, where) for field in ("small", "reach", "constants"))
    says, invariant, first, step = (
        field_of(merged, field, str, where) for field in ("says", "invariant", "init", "next")
    )
    sets = _values(merged, "sets", where)
    for constant, elements in sets.items():
        if not isinstance(elements, frozenset) or not elements:
            raise BadInput(f'{where}: {constant!r} is not a set with elements, such as {{"r1", "r2"}}')
    return ProofEntry(
        name, module, says, sets, numbers, small, reach, counters, constants, invariant, properties, first, step, result
    )


def _texts(entry: Mapping[str, Any], name: str, where: str) -> tuple[str, ...]:
    texts = field_of(entry, name, list, where)
    if not all(isinstance(text, str) for text in texts):
        raise BadInput(f"{where}: {name!r} is {json.dumps(texts)}, but must be a list of names")
    return tuple(texts)


def _values(entry: Mapping[str, Any], name: str, where: str) -> dict[str, Any]:
    """Return the values of constants that a field gives, each written in TLA+."""
    texts = field_of(entry, name, dict, where)
    try:
        return {constant: parse_value(field_of(texts, constant, str, f"{where}, {name}")) for constant in texts}
    except ValueSyntaxError as error:
        raise BadInput(f"{where}: a constant in {name!r} isn't a value of TLA+: {error}") from None
