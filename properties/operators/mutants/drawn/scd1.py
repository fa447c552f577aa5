"""Mutants of the dimension of type 1 that need drawn definitions, keys and values."""

from __future__ import annotations

from .....spark_impl.scd1 import Scd1Logic
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
    stripped,
    through_float,
)

BooleansAsNumbers = altering(Scd1Logic, "A row of true or false is emitted as 1 or 0", boolean_to_number)
NegativesAsZero = altering(Scd1Logic, "A negative number is treated as 0", not_below_zero)
LargeNumbersRounded = altering(Scd1Logic, "Whole numbers aren't exact beyond 2^53", through_float)
TextsNormalised = altering(Scd1Logic, "The characters of a text are recomposed", normalised)
TextsStripped = altering(Scd1Logic, "A text loses the spaces around it", stripped)
KeysStripped = mistaking_keys(Scd1Logic, "Keys that differ in the spaces around them share their rows", stripped)
KeysInLowerCase = mistaking_keys(Scd1Logic, "Keys that differ in case share their rows", lower_case)
EmptyKeyDropped = mixed(Scd1Logic, DroppingEmptyKeys)
CauseOfRowBefore = mixed(Scd1Logic, MistakingCauses)
TombstonesAreUpdates = mixed(Scd1Logic, MislabellingTombstones)
FalsyRowsDelete = mixed(Scd1Logic, bugs.FalsyRowsDelete)
FalsyRowsNotSaved = mixed(Scd1Logic, bugs.FalsyRowsNotSaved)
EqualRowsSilent = mixed(Scd1Logic, bugs.EqualRowsSilent)
ZeroSequenceDropped = mixed(Scd1Logic, bugs.ZeroSequenceDropped)
ZeroTimeNotSaved = mixed(Scd1Logic, bugs.ZeroTimeNotSaved)
NoTombstonesForEver = redeclaring(
    Scd1Logic,
    "Deleted keys with a retention of 0 ms are remembered forever",
    lambda changes: {"tombstone_ms": changes.tombstone_ms or None},
)

MUTANTS_OF_DRAWN = mutants_of(
    "scd1",
    Scd1Logic,
    "timestamps",
    logics_in(globals(), Scd1Logic),
    {"tombstones": (NoTombstonesForEver,)},
)
