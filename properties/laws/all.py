"""All laws: of operators on Spark, of the reference, and of jobs, each group in the order of reports."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, TypeAlias

from ...reference.core.errors import BadInput
from ..registration.registration import Registration
from ..witnesses.run_options import RunOptions
from .base import CannotRecheck, Law
from .metamorphic.crash import Replay
from .metamorphic.cuts import Cuts
from .metamorphic.keys import KeysLaw
from .metamorphic.order import OrderLaw
from .metamorphic.packing import Packing
from .metamorphic.partitions import Partitions
from .metamorphic.repeats import Repeats
from .metamorphic.restart import Restart
from .metamorphic.row_by_row import RowsOneAtATime
from .metamorphic.sink_fault import SINK_FAULTS
from .metamorphic.upgrade import Upgrade
from .metamorphic.variants import VariantLaw
from .of_reference.duckdb import DuckDBOfReference
from .of_reference.fold_is_meaning import FoldIsMeaning
from .of_reference.kafka import KafkaLaw
from .of_reference.kafka_schedules import SchedulesOnKafka
from .of_reference.protocol import ProtocolLaw
from .of_reference.schedules import SchedulesOfReference
from .on_spark.changelog import Changelog
from .on_spark.columns import InColumns
from .on_spark.duckdb import DuckDB
from .on_spark.labels import Labels
from .on_spark.native import NativeLaw
from .on_spark.retention import RetentionLaw
from .on_spark.schedules import Schedules
from .on_spark.state import StateLaw
from .on_spark.table_at_every_cut import TableAtEveryCut
from .variation import Invariant, Variation

Subject: TypeAlias = Literal["spark", "reference"]
"""The subject of a check: the operator on Spark, or the operator's reference."""

METAMORPHIC: Sequence[Law] = (
    Restart(),
    Replay(),
    Partitions(),
    Cuts(),
    OrderLaw(),
    Packing(),
    KeysLaw(),
    Repeats(),
)
"""The laws that compare several runs, and so need no oracle. The `Invariant`s among them also check jobs, in this
order.
"""
OF_JOBS: Sequence[Invariant] = (RowsOneAtATime(),)
"""The invariants that check only jobs."""
UPGRADE = Upgrade()
"""The law that compares a job with its earlier version."""
ON_SPARK: Sequence[Law] = (
    Changelog(),
    Labels(),
    TableAtEveryCut(),
    *METAMORPHIC,
    DuckDB(),
    RetentionLaw(),
    NativeLaw(),
    Schedules(),
    StateLaw(),
    InColumns(),
)
OF_REFERENCE: Sequence[Law] = (
    FoldIsMeaning(),
    DuckDBOfReference(),
    *(type(law)(of_reference=True) for law in METAMORPHIC if isinstance(law, VariantLaw)),
    ProtocolLaw(),
    SchedulesOfReference(),
    KafkaLaw(),
    SchedulesOnKafka(),
)
LAWS: Mapping[Subject, Mapping[str, Law]] = {
    "spark": {law.name: law for law in ON_SPARK},
    "reference": {law.name: law for law in OF_REFERENCE},
}


AS_OF_REFERENCE: Mapping[str, str] = {
    TableAtEveryCut.name: FoldIsMeaning.name,
    **{law.name: law.name for law in ON_SPARK if isinstance(law, VariantLaw | DuckDB)},
}
"""The laws that a check of Spark skips unless `--all-laws` is given, and the laws of the reference that replace
them.
"""
_AS = f"'{TableAtEveryCut.name}' as '{FoldIsMeaning.name}'"
BY_REFERENCE = (
    f"checked only on the reference, {_AS}: where changelog holds, Spark emits the reference's output, and so "
    "keeps the reference's state; --all-laws checks Spark too"
)
"""The reason why a check of Spark skips these laws."""
WITHOUT_REFERENCE = (
    f"not checked here: a check includes the law for the reference ({_AS}), and with --all-laws for Spark too"
)
"""The reason why a check without the reference skips these laws."""


def law_named(name: str, subject: Subject = "spark") -> Law:
    """Return the law with a name.

    Raises:
        CannotRecheck: No law has this name; the message lists the known names.
    """
    law = LAWS[subject].get(name)
    if law is None:
        of = "of the reference" if subject == "reference" else "on Spark"
        raise CannotRecheck(f"there is no law {name!r} {of}: there are {', '.join(LAWS[subject])}")
    return law


def asked_of(registration: Registration, laws: Sequence[Law]) -> tuple[list[Law], dict[str, str]]:
    """Return the laws that apply to an operator and, for each law that doesn't apply, the reason."""
    reasons = {law.name: reason for law in laws if (reason := law.not_checked(registration))}
    return [law for law in laws if law.name not in reasons], reasons


def invariants() -> Iterator[Invariant]:
    """Yield the invariants that check any job."""
    yield from (law for law in METAMORPHIC if isinstance(law, Invariant))
    yield from OF_JOBS


def variations_of(run: RunOptions, seed: int, batches: int) -> list[Variation]:
    """Return each invariant's variation of a job's run with default options; arguments as in `Invariant.draw`."""
    return [law.variation(run, law.draw(run, seed, batches)) for law in invariants()]


def saved_variation(run: RunOptions, saved: Mapping[str, Any]) -> Variation:
    """Return the variation that a saved counterexample names.

    Raises:
        BadInput: The law is unknown, or refuses the saved argument.
    """
    # Leave out *packing*, whose violations can't be replayed without the other histories of the query.
    laws = {law.of_jobs: law for law in (*invariants(), *SINK_FAULTS.values(), UPGRADE) if not isinstance(law, Packing)}

    def refuse() -> NoReturn:
        raise BadInput(
            f"a saved history has the variation {dict(saved)!r}: remove it, or give it a law of {', '.join(laws)}"
        )

    if not saved:
        return Variation(run)
    law = laws.get(str(saved.get("law")))
    if law is None:
        refuse()
    try:
        return law.variation(run, saved.get("given"))
    except (TypeError, ValueError, IndexError):
        refuse()
