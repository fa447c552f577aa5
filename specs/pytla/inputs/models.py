"""A model for TLC: a module, a configuration, and overrides from Python."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..values import TlaValue


@dataclass(frozen=True)
class Model:
    """A TLA+ module with a configuration.

    Attributes:
        module: The `.tla` file. TLC searches extended modules in the module's folder, and then among the standard
            modules.
        configuration: The `.cfg` file.
        constants: Values for constants, instead of the configuration's.
        invariants: The invariants to check, instead of the configuration's; if empty, TLC checks no invariant.
        properties: The properties to check, instead of the configuration's; if empty, TLC checks no property.
        deadlock: Whether a state without a successor is an error.
    """

    module: Path
    configuration: Path
    constants: Mapping[str, TlaValue] = field(default_factory=dict)
    invariants: tuple[str, ...] | None = None
    properties: tuple[str, ...] | None = None
    deadlock: bool = True
