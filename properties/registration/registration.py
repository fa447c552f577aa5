"""One registration an operator: everything that the framework knows of it.

What is left out is not checked, and the verdict names it; nothing is skipped in silence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypeAlias

from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.operator import OPERATORS, Operator, operator_named
from ...reference.core.records import Key, Record
from ..outcomes.outcomes import Difference, Outcome, Result
from .bindings import Binding, Native
from .coverage import Coverage
from .domain import Domain
from .kafka import Kafka
from .options import OptionSpace
from .protocol import MessageProtocol
from .sql import Sql

if TYPE_CHECKING:
    from .mutants import Mutant

Options: TypeAlias = Mapping[str, Any]
"""Options of an operator, as in a history file; durations in ms."""


class FreeOrder(Enum):
    """Which records of a history may be swapped without effect; the value is how a law's sentence says it.

    `ANY`: all, where nothing is late: a window or a pair doesn't ask who came first, and the final result stays.
    `INPUTS`: those of different keys or inputs: of a table's rows the last to arrive stands, and the final values stay.
    `KEYS`: those of different keys: a record is answered by what came before it, and each key's changes stay.
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
    """How the law *keys* divides a history by key: what is emitted for a key depends on what concerns that key alone.

    Attributes:
        keys: Of a history: the keys under which something may be emitted, sorted.
        concerns: Of a history and one of those keys: whether a record (called in order of arrival) concerns it.
        is_of: Of a definition, the key of an emitted change and one of those keys: whether the change is of it.
    """

    keys: Callable[[History], list[Key]] = _keys_of
    concerns: Callable[[History, Key], Callable[[Record], bool]] = _concerns_key
    is_of: Callable[[Any, Key, Key], bool] = lambda definition, emitted, key: emitted == key


@dataclass(frozen=True)
class Retention:
    """An operator that keeps rows for ever, unless its Spark implementation's parameter `retention` says otherwise.

    Attributes:
        profiles: By the name of a profile: options that differ from that profile's, and the retention (ms).
        build: Of a definition, the cohort's streaming input, a logic (None for the operator's own), the number of state
            groups and a retention such as `"11 ms"`: the changelog.
        differences: Of a history, a retention (ms) and what Spark emitted: where that differs from the reference.
        sides: Of a history and a retention (ms): which of `within the retention` and `beyond the retention` it met.
    """

    profiles: Mapping[str, tuple[Options, int]]
    build: Callable[..., Any]
    differences: Callable[[History, int, Outcome], list[Difference]]
    sides: Callable[[History, int], Iterable[str]]


def _keeps_nothing(definition: Any, fields: Sequence[Any]) -> bool:
    return False


@dataclass(frozen=True)
class Tables:
    """The tables whose rows an operator stores on Spark until they are deleted.

    Attributes:
        inputs: Of a definition: the inputs that are such tables; none where the definition stores no rows of one.
        keeps: What it is declared to store even then, and why, as a law's sentence says it; empty for nothing.
        is_kept: Of a definition and the fields that its logic has packed of a key: whether they are that alone.
    """

    inputs: Callable[[Any], tuple[str, ...]]
    keeps: str = ""
    is_kept: Callable[[Any, Sequence[Any]], bool] = _keeps_nothing


@dataclass(frozen=True)
class Registration:
    """Everything that the framework knows of an operator.

    The operator and its profiles are mandatory.

    Attributes:
        operator: The reference: name, definition, behaviour, meaning.
        profiles: Sets of options with a name, which are always asked; every option is in one of them.
        space: The options that are drawn beside them; without it the profiles are all.
        domain: Distances, edges, values and numbers of a definition, from which histories are drawn.
        coverage: The coverage goals; without them a law shows nothing but that something was emitted.
        free_order: Of a definition: which records may be swapped.
        by_clock: Of a definition: whether the clock means something to it: a record may be late, or something waits for
            the clock. Where it doesn't, histories of any order are without late data.
        without_late_data: By the name of a profile whose final result no order and no cut can change once nothing is
            late: the options that differ from that profile's so that nothing is.
        repeats: Of a definition, the outcome of a history and that of the history with each record twice in a row: what
            is expected, and what came. None: the law *repeats* isn't checked; likewise where it returns None.
        keeps_lists_in_order: Of a definition: whether members of an aggregated list come in an order that the law
            *order* can't expect to stay.
        stamped_by_last: Whether the timestamp of a row is that of the side that came last, so that reordering moves it.
        key_independence: How the law *keys* divides a history by key; None: not checked.
        spark: How the Spark implementation is called; None: there is none.
        native: How Spark's own operator is called; None: Spark has none that can mean the same.
        sql: The statement for DuckDB; None: there is none.
        kafka: The topology of Kafka Streams; None: it has no counterpart.
        protocol: The model of its messages, where it has channels.
        bounded_state: Of a definition: whether its state on Spark is empty once the clock has passed everything.
        tables: The tables whose rows it stores on Spark until they are deleted: then its state is empty.
        unbounded: Of which definitions neither is so, and why, as the law *state* says it.
        has_timers: Whether its Spark implementation sets timers.
        retention: How its Spark implementation is made to forget rows that the definition keeps for ever.
        mutants: The mutants of its Spark implementation, by name.
        specification: The name of its TLA+ module.
    """

    operator: Operator
    profiles: Mapping[str, Options]
    space: OptionSpace | None = None
    domain: Domain = field(default_factory=Domain)
    coverage: Coverage | None = None
    free_order: Callable[[Any], FreeOrder] = lambda definition: FreeOrder.KEYS
    by_clock: Callable[[Any], bool] = lambda definition: False
    without_late_data: Mapping[str, Options] = field(default_factory=dict)
    repeats: Callable[[Any, Outcome, Outcome], tuple[Result, Result] | None] | None = None
    keeps_lists_in_order: Callable[[Any], bool] = lambda definition: False
    stamped_by_last: bool = False
    key_independence: KeyIndependence | None = field(default_factory=KeyIndependence)
    spark: Binding | None = None
    native: Native | None = None
    sql: Sql | None = None
    kafka: Kafka | None = None
    protocol: MessageProtocol | None = None
    bounded_state: Callable[[Any], bool] | None = None
    tables: Tables | None = None
    unbounded: str = ""
    has_timers: bool = False
    retention: Retention | None = None
    mutants: Mapping[str, Mutant] = field(default_factory=dict)
    specification: str | None = None

    @property
    def name(self) -> str:
        """The operator's name."""
        return self.operator.name

    def declare(self, options: Options) -> Any:
        """Turn options into a definition; as `Operator.declare`."""
        return self.operator.declare(options)

    def bounds_state(self, definition: Any) -> bool:
        """Whether nothing of a definition is stored any more once the clock has passed everything."""
        return self.bounded_state is not None and self.bounded_state(definition)

    def tables_stored(self, definition: Any) -> tuple[str, ...]:
        """Return the inputs of a definition whose rows are stored until they are deleted."""
        return () if self.tables is None else self.tables.inputs(definition)


class MutantsOf(Mapping[str, "Mutant"]):
    """The mutants of one of our operators, imported when they are needed, for they take PySpark."""

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
    """Add an operator to those that are known, as it is; `register` looks at it first.

    Raises:
        BadInput: There is an operator of that name.
    """
    name = registration.name
    if name in OPERATORS:
        raise BadInput(f"there is an operator {name} already: give this one another name")
    OPERATORS[name] = registration.operator
    _REGISTERED[name] = registration


def unregister(name: str) -> None:
    """Take back what `register` has done, such as at the end of a test; our own operators stay.

    Raises:
        BadInput: No operator of that name was registered.
    """
    if name in _OURS or name not in _REGISTERED:
        raise BadInput(f"no operator {name} was registered: there is nothing to take back")
    del OPERATORS[name], _REGISTERED[name]


def registered() -> Mapping[str, Registration]:
    """Return the registrations by the operator's name, our own ten first."""
    return {name: registration_of(name) for name in OPERATORS}


def registration_of(name: str) -> Registration:
    """Return an operator's registration.

    Raises:
        BadInput: There is no operator of that name; the message lists those there are.
    """
    operator_named(name)
    if name not in _REGISTERED:
        _REGISTERED[name] = import_module(f"...operators.{name}", __name__).REGISTRATION
    return _REGISTERED[name]
