"""Declarations: convert an operator's options to its definition, and validate them.

A definition is a frozen dataclass, and its fields are the operator's options. The option `with` is the field `with_`,
because `with` is a keyword of Python. `PYTHON_ONLY` marks a field that only Python code can set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, TypeVar

from ..core.errors import BadInput
from ..core.records import Record

PYTHON_ONLY = {"python_only": True}
UNSET: Any = None


@dataclass(frozen=True)
class Definition:
    """The base class of definitions: an operator's options, with default methods."""

    @property
    def inputs(self) -> tuple[str, ...]:
        """The names of the inputs."""
        return ("events",)

    @property
    def is_stream(self) -> bool:
        """Return whether the result is a stream (a bag of all results) rather than a table."""
        return False

    @property
    def unordered(self) -> bool:
        """Return whether the operator's meaning leaves the order within a list value undefined."""
        return False

    def check(self, record: Record) -> None:
        """Refuse a record that the operator can't process.

        Raises:
            BadInput: The value is invalid; the message names the value and the type that the operator needs.
        """


Defined = TypeVar("Defined", bound=Definition)


def declare(name: str, definition: type[Defined], options: Mapping[str, Any]) -> Defined:
    """Make a definition from options.

    Args:
        name: The operator's name in messages.
        definition: The definition's class.
        options: The options as in a history file; durations in ms.

    Raises:
        BadInput: An option is unknown, missing or invalid.
    """
    known = {
        field.name.removesuffix("_"): field for field in fields(definition) if not field.metadata.get("python_only")
    }
    unknown = sorted(set(options) - set(known))
    if unknown:
        raise BadInput(f"{name} has no option {unknown[0]!r}: it takes {', '.join(sorted(known))}")
    values: dict[str, Any] = {}
    for option, field in known.items():
        if option in options:
            value = options[option]
            if value is None and field.default is not None:
                needed = field.metadata.get("needed")
                give = field.metadata.get("give", f"{needed}" if needed else "a value, or leave it out")
                raise BadInput(f"{option} is null: give {give}")
            values[field.name] = field.metadata.get("read", _as_it_is)(value)
        elif field.default is MISSING and field.default_factory is MISSING:
            raise BadInput(f"{name} needs the option {option}: {field.metadata['needed']}")
    return definition(**values)


def whole_milliseconds(definition: Definition, *names: str) -> None:
    """Refuse durations that aren't a whole number of ms."""
    for name in names:
        if not is_whole(getattr(definition, name)):
            raise BadInput(f"{name} is {getattr(definition, name)!r}: give a whole number of milliseconds")


def not_negative(definition: Definition, *names: str) -> None:
    """Refuse durations that aren't a whole number of ms, or are negative."""
    whole_milliseconds(definition, *names)
    for name in names:
        if getattr(definition, name) < 0:
            raise BadInput(f"{name} is {getattr(definition, name)}: it can't be negative; use 0 for none")


def one_of(definition: Definition, name: str, *values: str | None) -> None:
    """Refuse an option whose value isn't among the allowed values."""
    value = getattr(definition, name)
    if value not in values or isinstance(value, bool):
        shown = [str(value) for value in values if value is not None]
        known = ", ".join(shown[:-1]) + f" or {shown[-1]}" if len(shown) > 1 else shown[0]
        raise BadInput(f"{name.removesuffix('_')} is {value!r}: use {known}")


def is_whole(number: object) -> bool:
    """Return whether an object is an integer; a boolean isn't."""
    return isinstance(number, int) and not isinstance(number, bool)


def field_of(value: Any, name: str, what: str, remedy: str = "use null for none") -> Any:
    """Return a field of a value object.

    Args:
        value: A record's value.
        name: The field's name.
        what: The field's meaning for messages, such as `the foreign key`.
        remedy: The remedy for a missing field, for the message.

    Raises:
        BadInput: The value isn't an object, or lacks the field.
    """
    if not isinstance(value, Mapping):
        raise BadInput(
            f'the value {value!r} is not an object: {what} is read from its field {name!r}: write {{"{name}": …}}'
        )
    if name not in value:
        raise BadInput(f"the value {value!r} has no field {name!r}: {what} is read from it; {remedy}")
    return value[name]


def text_field(value: Any, name: str, what: str) -> str | None:
    """Return a key (a string or null) from a field of a value object; the arguments are those of `field_of`.

    Raises:
        BadInput: The value isn't an object, lacks the field, or the field contains another type.
    """
    found = field_of(value, name, what)
    if not isinstance(found, str | None):
        raise BadInput(f"the field {name!r} holds {found!r}, not a string: {what} is a string, or null for none")
    return found


def _as_it_is(value: Any) -> Any:
    return value
