"""The laws by what they judge, in the order in which reports name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias

from ..registration.registration import Registration
from .base import CannotRecheck, Law
from .metamorphic.cuts import Cuts
from .metamorphic.keys import Keys
from .metamorphic.order import Order
from .metamorphic.packing import Packing
from .metamorphic.partitions import Partitions
from .metamorphic.repeats import Repeats
from .metamorphic.replay import Replay
from .metamorphic.restart import Restart
from .of_reference.duckdb import DuckDBOfReference
from .of_reference.fold_is_meaning import FoldIsMeaning
from .of_reference.kafka import Kafka
from .of_reference.kafka_schedules import SchedulesOnKafka
from .of_reference.protocol import Protocol
from .of_reference.schedules import SchedulesOfReference
from .on_spark.changelog import Changelog
from .on_spark.columns import InColumns
from .on_spark.duckdb import DuckDB
from .on_spark.labels import Labels
from .on_spark.native import Native
from .on_spark.retention import Retention
from .on_spark.schedules import Schedules
from .on_spark.state import State
from .on_spark.table_at_every_cut import TableAtEveryCut

Subject: TypeAlias = Literal["spark", "reference", "job"]
"""What is checked: the operator on Spark, its reference, or a user's own job."""

ON_SPARK: Sequence[Law] = (
    Changelog(),
    Labels(),
    TableAtEveryCut(),
    Packing(),
    Partitions(),
    Restart(),
    Replay(),
    DuckDB(),
    Keys(),
    Order(),
    Cuts(),
    Repeats(),
    Retention(),
    Native(),
    Schedules(),
    State(),
    InColumns(),
)
OF_REFERENCE: Sequence[Law] = (
    FoldIsMeaning(),
    DuckDBOfReference(),
    Protocol(),
    SchedulesOfReference(),
    Kafka(),
    SchedulesOnKafka(),
)
LAWS: Mapping[Subject, Mapping[str, Law]] = {
    "spark": {law.name: law for law in ON_SPARK},
    "reference": {law.name: law for law in OF_REFERENCE},
    "job": {law.name: law for law in ON_SPARK},
}


def law_named(name: str, subject: Subject = "spark") -> Law:
    """Return a law by its name.

    Raises:
        CannotRecheck: There is none of that name; the message lists those there are.
    """
    law = LAWS[subject].get(name)
    if law is None:
        of = "of the reference" if subject == "reference" else "on Spark"
        raise CannotRecheck(f"there is no law {name!r} {of}: there are {', '.join(LAWS[subject])}")
    return law


def asked_of(registration: Registration, laws: Sequence[Law]) -> tuple[list[Law], dict[str, str]]:
    """Return the laws that an operator is asked, and of each other one why it isn't."""
    reasons = {law.name: reason for law in laws if (reason := law.not_checked(registration))}
    return [law for law in laws if law.name not in reasons], reasons
