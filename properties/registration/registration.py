"""The registration of an operator: everything that the framework knows about it.

If a registration lacks a part, the laws that need the part are not checked, and the verdict names these laws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.operator import OPERATORS, Operator, operator_named
from ...reference.core.records import Key, Record
from ..outcomes.outcomes import Difference, FinalResult, Outcome
from .bindings import Binding, Native
from .coverage import Coverage
from .domain import Domain
from .kafka import Kafka
from .options import OptionSpace
from .protocol import MessageProtocol
from .sql import Options as Options
from .sql import Sql

if TYPE_CHECKING:
    from .mutants import Mutant


class FreeOrder(Enum):
    """The records of a history that may be swapped without effect; the value is the wording in a law's sentence.

    `ANY`: all records may be swapped if no record is late; the final result stays the same, because windows and pairs
    don't depend on the order. `INPUTS`: records of different keys or inputs may be swapped; the final values stay the
    same, because a table's last arrival counts. `KEYS`: records of different keys may be swapped; each key's changes
    stay the same, because a key's output depends only on the key's earlier records.
    """

    ANY = "when nothing is late"
    INPUTS = "between records of different keys or inputs"
    KEYS = "between records of different keys"


def _keys_of(history: History) -> list[Key]:
    return sorted({record.key for record in history.records if record.key is not None})


def _concerns_key(history: History, key: Key) -> Callable[[Record], bool]:
    return lambda record: record.key == key


@dataclass(frozen=True)
class KeyIndependence:
    """How the law *keys* divides a history by key: a key's output depends only on the key's records.

    Attributes:
        keys: Returns the keys that a history's output may have, sorted.
        concerns: Returns a function for a history and a key. That function, called with each record in order of
            arrival, decides whether the record affects the key.
        is_of: Returns whether a change belongs to a key, given a definition, the change's key, and the key.
    """

    keys: Callable[[History], list[Key]] = _keys_of
    concerns: Callable[[History, Key], Callable[[Record], bool]] = _concerns_key
    is_of: Callable[[Any, Key, Key], bool] = lambda definition, emitted, key: emitted == key


@dataclass(frozen=True)
class Retention:
    """The retention of an operator that keeps rows for ever unless its Spark parameter `retention` is set.

    Attributes:
        profiles: The options that differ from a profile's options, and the retention (ms), by the name of that profile.
        build: Returns the changelog, given a definition, the streaming input, a logic (None for the operator's own),
            the number of state groups and a retention such as `"11 ms"`.
        differences: Returns the differences from the reference, given a history, a retention (ms) and Spark's output.
        sides: Returns which of the goals `within the retention` and `beyond the retention` a history covers, given the
            history and a retention (ms).
    """

    profiles: Mapping[str, tuple[Options, int]]
    build: Callable[..., Any]
    differences: Callable[[History, int, Outcome], list[Difference]]
    sides: Callable[[History, int], Iterable[str]]


def _keeps_nothing(definition: Any, fields: Sequence[Any]) -> bool:
    return False


@dataclass(frozen=True)
class StoredTables:
    """The tables whose rows an operator stores on Spark until they are deleted.

    Attributes:
        inputs: Returns the inputs of a definition whose rows are stored; empty if no table's rows are stored.
        keeps: The state that remains after all rows are deleted, and the reason, as words for the law's sentence; empty
            if none remains.
        is_kept: Returns whether a key's packed fields contain only the remaining state, given a definition and the
            fields.
    """

    inputs: Callable[[Any], tuple[str, ...]]
    keeps: str = ""
    is_kept: Callable[[Any, Sequence[Any]], bool] = _keeps_nothing


@dataclass(frozen=True)
class Registration:
    """Everything that the framework knows about an operator.

    The operator and its profiles are mandatory.

    Attributes:
        operator: The reference: name, definition, behaviour, meaning.
        profiles: Named sets of options, which are always checked; every option occurs in at least one profile.
        space: The options to draw, in addition to the profiles; if None, only the profiles are checked.
        domain: The distances, edges, values and numbers of a definition, which shape the drawn histories.
        coverage: The coverage goals; if None, a law's only goal is that at least one history emits output.
        free_order: Returns which records may be swapped without effect, given a definition.
        by_clock: Returns whether the output of a definition depends on the clock: a record may be late, or output may
            wait for the clock. If not, no record is late in any order.
        without_late_data: The options that prevent late records, by the name of a profile. A profile has them if its
            final result doesn't depend on order and cuts unless a record is late.
        repeats: Returns the expected and the actual result, given a definition, the outcome of a history, and the
            outcome with each record repeated. Without a function, or if the function returns None, the law *repeats*
            isn't checked.
        keeps_lists_in_order: Returns whether an aggregated list of a definition keeps the order of its records; the law
            *order* then ignores the order inside lists.
        stamped_by_last: Whether a row has the timestamp of the side that arrived last, so that reordering changes the
            timestamp.
        key_independence: How the law *keys* divides a history by key; None if the law isn't checked.
        spark: The call of the Spark implementation; None if there is none.
        native: The call of Spark's own operator; None if Spark has no operator with the same meaning.
        sql: The statement for DuckDB; None if there is none.
        kafka: The topology of Kafka Streams; None if Kafka Streams has no equivalent operator.
        protocol: The model of the operator's messages; None for an operator without channels.
        bounded_state: Returns whether the state of a definition on Spark is empty once the clock has passed all
            records.
        tables: The tables whose rows the operator stores on Spark until they are deleted; after all deletes the state
            is empty.
        unbounded: The definitions without `bounded_state` and `tables`, and the reason, as words for the law *state*.
        retention: How the Spark implementation forgets rows that the definition never forgets.
        mutants: The mutants of the operator's Spark implementation, by name.
    """

    operator: Operator
    profiles: Mapping[str, Options]
    space: OptionSpace | None = None
    domain: Domain = field(default_factory=Domain)
    coverage: Coverage | None = None
    free_order: Callable[[Any], FreeOrder] = lambda definition: FreeOrder.KEYS
    by_clock: Callable[[Any], bool] = lambda definition: False
    without_late_data: Mapping[str, Options] = field(default_factory=dict)
    repeats: Callable[[Any, Outcome, Outcome], tuple[FinalResult, FinalResult] | None] | None = None
    keeps_lists_in_order: Callable[[Any], bool] = lambda definition: False
    stamped_by_last: bool = False
    key_independence: KeyIndependence | None = field(default_factory=KeyIndependence)
    spark: Binding | None = None
    native: Native | None = None
    sql: Sql | None = None
    kafka: Kafka | None = None
    protocol: MessageProtocol | None = None
    bounded_state: Callable[[Any], bool] | None = None
    tables: StoredTables | None = None
    unbounded: str = ""
    retention: Retention | None = None
    mutants: Mapping[str, Mutant] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name

    @property
    def is_staged(self) -> bool:
        """Return whether its Spark implementation runs in stages."""
        return self.spark is not None and self.spark.shared is not None and self.spark.shared.hops is not None

    def declare(self, options: Options) -> Any:
        """Convert options to a definition, as `Operator.declare` does."""
        return self.operator.declare(options)

    def bounds_state(self, definition: Any) -> bool:
        """Return whether a definition's state is empty once the clock has passed all records."""
        return self.bounded_state is not None and self.bounded_state(definition)

    def tables_stored(self, definition: Any) -> tuple[str, ...]:
        """Return the inputs of a definition whose rows are stored until they are deleted."""
        return () if self.tables is None else self.tables.inputs(definition)


class MutantsOf(Mapping[str, "Mutant"]):
    """The mutants of an operator, imported on demand, because they need PySpark."""

    def __init__(self, operator: str) -> None:
        self.module = f"...operators.mutants.{operator}"
        self.drawn = f"...operators.mutants.drawn.{operator}"

    @property
    def _mutants(self) -> Mapping[str, Mutant]:
        found: Mapping[str, Mutant] = import_module(self.module, __name__).MUTANTS
        drawn: Mapping[str, Mutant] = import_module(self.drawn, __name__).MUTANTS_OF_DRAWN
        return {**found, **drawn}

    def __getitem__(self, name: str) -> Mutant:
        return self._mutants[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._mutants)

    def __len__(self) -> int:
        return len(self._mutants)


_OURS = tuple(OPERATORS)
_REGISTERED: dict[str, Registration] = {}


def add(registration: Registration) -> None:
    """Add an operator to the registry without validation; `register` validates the operator first.

    Raises:
        BadInput: The name is already used.
    """
    name = registration.name
    if name in OPERATORS:
        raise BadInput(f"there is already an operator {name}: give this operator another name")
    OPERATORS[name] = registration.operator
    _REGISTERED[name] = registration


def unregister(name: str) -> None:
    """Remove an operator that `register` added, for example at the end of a test; the twelve operators stay.

    Raises:
        BadInput: No operator with that name was registered.
    """
    if name in _OURS or name not in _REGISTERED:
        raise BadInput(f"no operator {name} was registered: only registered operators can be removed")
    del OPERATORS[name], _REGISTERED[name]


def registered() -> Mapping[str, Registration]:
    """Return the registrations by the operator's name, the twelve operators first."""
    return {name: registration_of(name) for name in OPERATORS}


def registration_of(name: str) -> Registration:
    """Return an operator's registration.

    Raises:
        BadInput: No operator has this name; the message lists the known names.
    """
    operator_named(name)
    if name not in _REGISTERED:
        _REGISTERED[name] = import_module(f"...operators.{name}", __name__).REGISTRATION
    return _REGISTERED[name]
