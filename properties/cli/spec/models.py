"""The model in a command, from the catalogue or from the user's own module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ....reference.core.errors import BadInput

if TYPE_CHECKING:
    from ....specs.catalogue import CatalogueModel
    from ....specs.pytla import Model, TlaValue


class ChosenModel(NamedTuple):
    """A model to run: from the catalogue, with its expected result, or a user's own model."""

    name: str
    model: Model
    entry: CatalogueModel | None

    @property
    def title(self) -> str:
        """The name, followed by the catalogue's description."""
        return self.name if self.entry is None else f"{self.entry.name}: {self.entry.says}"

    @property
    def fails(self) -> bool:
        """Return whether the model should fail with a counterexample."""
        return self.entry is not None and self.entry.fails


def constants_given(given: Sequence[str] | None) -> dict[str, TlaValue]:
    """Return the constants that options of the form `NAME=VALUE` set.

    Raises:
        BadInput: An option doesn't have this form.
    """
    from ....specs.pytla import ValueSyntaxError, parse_value

    constants: dict[str, TlaValue] = {}
    for text in given or ():
        name, equals, value = text.partition("=")
        if not equals or not name.strip():
            raise BadInput(f"--constant {text}: not NAME=VALUE, such as LeftChanges=2 or Join='\"inner\"'")
        try:
            constants[name.strip()] = parse_value(value)
        except ValueSyntaxError as error:
            raise BadInput(f"--constant {text}: {error}; strings have quotes, '{name}=\"text\"'") from None
    return constants


def one_model(
    name: str, constants: Mapping[str, TlaValue], config: Path | None = None, deadlock: bool = True
) -> ChosenModel:
    """Return a model of the catalogue, or a user's own model.

    Args:
        name: The model's name, or the path of a `.tla` file.
        constants: Values that replace the configuration's constants; a model with replaced constants has no expected
            result.
        config: The configuration of a user's own module (None: the `.cfg` file next to the module).
        deadlock: Whether a state without a next state is an error; only for a user's own module.

    Raises:
        BadInput: The model is unknown, or an option doesn't apply to the model.
    """
    from ....specs.catalogue import find_model
    from ....specs.checking import model_of, own_model

    if name.endswith(".tla"):
        own = own_model(Path(name), config, constants, deadlock)
        return ChosenModel(own.configuration.stem, own, None)
    if config is not None:
        raise BadInput(f"--config goes with a .tla file of your own, and {name} has its own configuration")
    if name.endswith(".cfg"):
        raise BadInput(f"{name}: name the .tla file, and name this configuration with --config")
    if not deadlock:
        raise BadInput(
            f"--no-deadlock goes with a .tla file of your own, but the catalogue has the expected result of {name}"
        )
    entry = find_model(name)
    return ChosenModel(entry.name, model_of(entry, constants), entry if not constants else None)
