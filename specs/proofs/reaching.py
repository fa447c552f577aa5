"""Checks whether the specification can reach a state, such as the first state of a counterexample to induction."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

from ..pytla import Model, TlaValue, Tools, check, to_tla
from .entries import ProofEntry


def steps_to(
    entry: ProofEntry, state: Mapping[str, TlaValue], tools: Tools, timeout: float | None = None
) -> int | None:
    """Return the number of steps to a state, or None if TLC can't reach the state with the constants in `entry.reach`.

    Args:
        entry: The proof.
        state: The state; its counters may have any value.
        tools: Java and TLC.
        timeout: TLC's timeout (s).

    Raises:
        TlcError: TLC fails, or runs out of time.
    """
    conjuncts = [f"    /\\ {name} = {to_tla(value)}" for name, value in state.items() if name not in entry.counters]
    text = [f"---- MODULE Reached ----\nEXTENDS {entry.module.stem}\nNotReached == ~(", *conjuncts, "    )\n===="]
    constants = {**entry.constants, **entry.sets, **entry.small, **entry.reach}
    configuration = [f"INIT {entry.first}\nNEXT {entry.step}\nINVARIANT NotReached\nCONSTANTS"]
    configuration += [f"    {name} = {to_tla(value)}" for name, value in constants.items()]
    with tempfile.TemporaryDirectory() as named:
        folder = Path(named)
        for module in entry.module.parent.glob("*.tla"):
            shutil.copy(module, folder)
        (folder / "Reached.tla").write_text("\n".join(text) + "\n", encoding="utf-8")
        (folder / "Reached.cfg").write_text("\n".join(configuration) + "\n", encoding="utf-8")
        found = check(Model(folder / "Reached.tla", folder / "Reached.cfg", deadlock=False), tools, timeout=timeout)
    return None if found.trace is None else len(found.trace) - 1
