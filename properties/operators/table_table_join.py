"""The registration of the table-table join; values are JSON text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ...reference.core.history import History
from ...reference.core.operator import operator_named
from ...reference.core.play import Played
from ...reference.definitions.joins import JOINS, TableTableJoin
from ..generators.values import any_kind
from ..registration.bindings import AskedOptions, join_binding
from ..registration.coverage import Coverage, accepted_records, changes_of, rows_changed
from ..registration.domain import Domain, table_row
from ..registration.kafka import Kafka
from ..registration.options import OptionSpace
from ..registration.registration import FreeOrder, MutantsOf, Registration, StoredTables
from ..registration.repeats import unchanged
from ..registration.sql import Sql, beside, pair_values

if TYPE_CHECKING:
    from ..witnesses.kafka.builder import Builder


def _topology(builder: Builder, join: TableTableJoin) -> Any:
    return builder.joined(join.join, builder.table("left"), builder.table("right"), builder.joiner())


def _met(history: History, played: Played) -> Iterator[str]:
    changes = changes_of(played)
    yield from rows_changed(accepted_records(played))
    if any(change.value is not None and None not in change.value for change in changes):
        yield "both sides"
    if any(change.value is None for change in changes):
        yield "tombstone"


_ASKED = tuple(AskedOptions({"join": join}) for join in ("outer", "left", "inner"))

REGISTRATION = Registration(
    operator_named("table_table_join"),
    profiles={join: {"join": join} for join in JOINS},
    space=OptionSpace({"join": JOINS}),
    domain=Domain(value=table_row, kinds=any_kind),
    coverage=Coverage(
        _met, lambda join: ("both sides", "row changed", "row deleted", "missing row deleted", "tombstone")
    ),
    free_order=lambda join: FreeOrder.INPUTS,
    repeats=unchanged,
    stamped_by_last=True,
    spark=join_binding("table_table_join", "TableTableLogic", lambda join: {"join": join.join}, _ASKED),
    sql=Sql(beside(__file__), values=pair_values),
    kafka=Kafka(_topology),
    tables=StoredTables(lambda join: join.inputs),
    mutants=MutantsOf("table_table_join"),
)
