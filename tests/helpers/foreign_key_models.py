"""Models of `ForeignKeyJoin.tla`: their constants, counterexamples and state graphs, each asked of TLC once a run."""

from __future__ import annotations

from collections.abc import Mapping

import tla_models
from streamproof.specs.pytla import StateGraph, TlaValue
from tla_models import Counterexample

MODULE = "ForeignKeyJoin"
MUTANTS = [
    "no_hash_check",
    "no_hash_check_deleted_row",
    "routes_out_of_order",
    "kafka_18713",
    "kafka_9244_not_sent",
    "kafka_9244_hash_stored",
    "move_silent",
    "delete_silent",
    "null_key_silent",
    "no_prefix_length",
    "no_prefix_length_other_key",
    "right_tombstone_silent",
]
NOT_ON_SPARK = ("routes_out_of_order", "no_prefix_length", "no_prefix_length_other_key")
RACES = ["race_any", "race_delete_insert", "race_lose_update"]
"""Of the races one of each kind; `streamproof spec replay` plays them all."""
GRAPHS = {"left": "", "left, null keys kept": "_keep", "inner, kip": "_race_any", "inner, answer": "_inner_answer"}
"""Models with every kind of change: what their names add to the module's."""
FEWER: Mapping[str, TlaValue] = {"LeftChanges": 2, "RightChanges": 2}
"""Enough for every mutant to show, and quicker than the models' own."""
SMALL: Mapping[str, TlaValue] = {"LeftChanges": 2, "RightChanges": 1, "Ghost": False}


def counterexample(name: str) -> Counterexample:
    return tla_models.counterexample(MODULE, f"_{name}", **(FEWER if name.startswith("mutant") else {}))


def graph(name: str) -> tuple[StateGraph, Mapping[str, TlaValue]]:
    """A model with 2 left and 1 right changes: its state graph and its constants."""
    return tla_models.graph(MODULE, GRAPHS[name], **SMALL)
