"""Mutants of the dimension of type 2 that need drawn definitions, keys and values."""

from __future__ import annotations

from .....spark_impl.dimensions.events import PlacedEvent
from .....spark_impl.scd2 import Scd2Logic
from ....registration.mutants import mutants_of
from ..making import logics_in, mixed, redeclaring
from . import dimensions as bugs
from .common import (
    DroppingEmptyKeys,
    MislabellingTombstones,
    MistakingCauses,
    altering,
    boolean_to_number,
    lower_case,
    mistaking_keys,
    normalised,
    not_below_zero,
    same,
    stripped,
    through_float,
)

BooleansAsNumbers = altering(Scd2Logic, "A row of true or false is emitted as 1 or 0", boolean_to_number)
NegativesAsZero = altering(Scd2Logic, "A negative number is treated as 0", not_below_zero)
LargeNumbersRounded = altering(Scd2Logic, "Whole numbers aren't exact beyond 2^53", through_float)
TextsNormalised = altering(Scd2Logic, "The characters of a text are recomposed", normalised)
KeysStripped = mistaking_keys(Scd2Logic, "Keys that differ in the spaces around them share their rows", stripped)
KeysInLowerCase = mistaking_keys(Scd2Logic, "Keys that differ in case share their rows", lower_case)
EmptyKeyDropped = mixed(Scd2Logic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(Scd2Logic, MistakingCauses)
TombstonesAreUpdates = mixed(Scd2Logic, MislabellingTombstones)
FalsyRowsDelete = mixed(Scd2Logic, bugs.FalsyRowsDelete)
FalsyRowsNotSaved = mixed(Scd2Logic, bugs.FalsyRowsNotSaved)
ZeroSequenceDropped = mixed(Scd2Logic, bugs.ZeroSequenceDropped)
ZeroTimeNotSaved = mixed(Scd2Logic, bugs.ZeroTimeNotSaved)
NoTombstonesForEver = redeclaring(
    Scd2Logic,
    "Deleted keys with a retention of 0 ms are remembered forever",
    lambda changes: {"tombstone_ms": changes.tombstone_ms or None},
)
AllFieldsTracked = redeclaring(Scd2Logic, "Every field is tracked", lambda changes: {"track": None})


class EqualRowsAreOneVersion(Scd2Logic):
    """Rows that are equal in Python, for example 1 and true, are one version."""

    def differs(self, event: PlacedEvent, after: PlacedEvent) -> bool:
        return super().differs(event, after) and not same(event.row, after.row)


class MergedAtTheLastEvent(Scd2Logic):
    """A version that merges several past events is stored with the sequence of the last event."""

    def merged(self, past: list[PlacedEvent]) -> list[PlacedEvent]:
        return past[-1:] if super().merged(past) else []


class MergedVersionEnds(Scd2Logic):
    """A version that is merged in the state ends at the next event, even if the event's row is equal."""

    def merged(self, past: list[PlacedEvent]) -> list[PlacedEvent]:
        return [one._replace(tracked=None) for one in super().merged(past)]


MUTANTS_OF_DRAWN = mutants_of(
    "scd2",
    Scd2Logic,
    "timestamps",
    logics_in(globals(), Scd2Logic),
    {
        "tombstones": (NoTombstonesForEver, MergedAtTheLastEvent, MergedVersionEnds),
        "tracked": (AllFieldsTracked,),
    },
)
