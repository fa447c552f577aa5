"""The foreign-key join is proved for any hash that tells values of different right keys apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from streamproof.specs.checking import find_tools
from streamproof.specs.proofs.entries import find_proofs
from streamproof.specs.proofs.proving import prove
from streamproof.specs.pytla import TlaValue

GROUP = r"IF Size < 2 THEN row.version ELSE row.version \div Size"
"""The hash of a version, where as many versions in a row as the arbitrary number `Size` share a hash.

A version only names a value. So every way in which finitely many values collide is one of these, with suitable names.
"""
OTHERS = pytest.mark.weekly("ten seconds each: CI proves the left join")
PROOFS = [
    "ForeignKeyJoin_left",
    pytest.param("ForeignKeyJoin_inner_answer", marks=OTHERS),
    pytest.param("ForeignKeyJoin_kafka_4_3_left", marks=OTHERS),
    pytest.param("ForeignKeyJoin_kafka_4_3_answer_inner", marks=OTHERS),
]


def answers(proof: str, hashed: str, folder: Path) -> set[str]:
    (entry,) = find_proofs([proof])
    source = entry.module.read_text(encoding="utf-8")
    for text, other in (
        ("Hash(row) == row\n", f"Hash(row) == IF row = None THEN None ELSE {hashed}\n"),
        ("CONSTANTS\n", "CONSTANTS\n    Size,\n"),
    ):
        assert source.count(text) == 1
        source = source.replace(text, other)
    module = folder / entry.module.name
    module.write_text(source, encoding="utf-8")
    small: Mapping[str, TlaValue] = {**entry.small, "Size": 1}
    altered = replace(entry, module=module, numbers=(*entry.numbers, "Size"), small=small)
    return {each.answer for each in prove(altered, find_tools(), 60_000)}


@pytest.mark.parametrize("proof", PROOFS)
def test_values_of_one_right_key_may_have_equal_hashes(proof: str, tmp_path: Path) -> None:
    assert answers(proof, f"LeftRow({GROUP}, row.foreign_key)", tmp_path) == {"proved"}


@pytest.mark.weekly("a minute and a half: CI proves that values of one right key may")
def test_values_of_different_right_keys_must_not(tmp_path: Path) -> None:
    assert "not proved" in answers("ForeignKeyJoin_left", f"LeftRow({GROUP}, None)", tmp_path)
