"""A checked model, to print and to write."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .behaviours import behaviour_json
from .models import ChosenModel

if TYPE_CHECKING:
    from ....specs.checking import ModelResult
    from ...checking.checked import VerdictName


@dataclass(frozen=True)
class CheckedModel:
    """A checked model and its verdict."""

    chosen: ChosenModel
    found: ModelResult | None
    broken: Sequence[str]
    verdict: VerdictName
    why: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the check of the model in the form of `--json`."""
        found, chosen = self.found, self.chosen
        content: dict[str, Any] = {
            "model": chosen.name,
            "module": str(chosen.model.module),
            "configuration": str(chosen.model.configuration),
            "verdict": self.verdict,
        }
        if found is None:
            return {**content, "why": self.why}
        return {
            **content,
            "result": found.result,
            "property": found.violated,
            "unexpected": list(self.broken),
            "distinctStates": found.distinct,
            "totalStates": found.generated,
            "stateDepth": found.depth,
            "seconds": round(found.seconds, 3),
            "trace": None if found.trace is None else behaviour_json(found.trace),
        }
