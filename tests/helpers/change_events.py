"""Change events of two keys, drawn for a profile of options, and what a reference of dimensions makes of them."""

from __future__ import annotations

import importlib.util
import random
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from streamproof.reference.core.clocks import StreamTime
from streamproof.reference.core.errors import BadInput
from streamproof.reference.core.operator import Operator
from streamproof.reference.core.records import Accepted, Dropped, Output, Record, fold

SEQUENCED = {"sequence_by": "seq", "deletes": {"op": "D"}}
PROFILES: Mapping[str, Mapping[str, Any]] = {
    "plain": {},
    "fields": SEQUENCED,
    "columns": {"columns": ["v"]},
    "ties": {**SEQUENCED, "ties": "n"},
    "tombstones": {"tombstone_ms": 2},
}
TRACKED: Mapping[str, Mapping[str, Any]] = {name: {**of, "track": ["v"]} for name, of in PROFILES.items()}
"""The profiles of type 2 in which only `v` is tracked, not `w`."""
BASE = "streamproof.reference"


def profiles_of(name: str) -> dict[str, Mapping[str, Any]]:
    tracked = {f"{profile}, tracked": of for profile, of in TRACKED.items()} if name == "scd2" else {}
    return {**PROFILES, **tracked}


def drawn(generator: random.Random, options: Mapping[str, Any], *, tied: float = 0, count: int = 20) -> list[Record]:
    """Draw records in order of arrival, with repeats, deletes and null keys, and a share of events that tie."""
    seen: dict[Any, Record] = {}
    records: list[Record] = []
    for _ in range(generator.randrange(1, count)):
        if records and generator.random() < 0.1:
            records.append(generator.choice(records))
            continue
        key, sequence, order = generator.choice("aabb-"), generator.randrange(2 if tied else 5), generator.randrange(3)
        is_delete = generator.random() < 0.3
        value: Any = {"v": generator.randrange(2), "w": generator.randrange(2)}
        if "sequence_by" in options:
            value = {**value, "seq": sequence, "op": "D" if is_delete else "U", "n": order}
            value = None if generator.random() < 0.1 else value
            timestamp = generator.randrange(5)
        else:
            sequence += len(records) // 2 if "tombstone_ms" in options else 0  # so that rows grow old
            value, timestamp = None if is_delete else value, sequence
        record = Record("events", None if key == "-" else key, value, timestamp)
        same = (key, sequence, order if "ties" in options else 0, value is None and "sequence_by" in options)
        records.append(record if generator.random() < tied else seen.setdefault(same, record))
    return records


def played(operator: Operator, options: Mapping[str, Any], records: list[Record]) -> tuple[list[Output], Any]:
    """Return what the behaviour emits, and the meaning of the records that it accepts; or that they are refused."""
    clock, outputs, accepted = StreamTime(), list[Output](), list[Accepted]()
    try:
        definition = operator.declare(options)
        machine = operator.behaviour(definition, clock)
        for record in records:
            came = machine.arrive(record)
            outputs += came
            if not (came and isinstance(came[-1], Dropped)):
                accepted.append(Accepted(record, clock.now))
        outputs += machine.advance()
        return outputs, operator.meaning(definition, accepted, clock.now)
    except BadInput:
        return [], "refused"
    except (TypeError, ValueError, AttributeError, IndexError, KeyError) as error:  # of a mutant
        return [], type(error).__name__


def is_consistent(outcome: tuple[list[Output], Any]) -> bool:
    """Whether the changelog folds to the meaning."""
    return outcome[1] == "refused" or fold(outcome[0]) == outcome[1]


def reference(name: str, *changed: tuple[str, str]) -> Operator:
    """Return the operator of `scd1` or `scd2`, or its mutant: with other text in the one file that has the text."""
    loaded: dict[str, ModuleType] = {}
    left = [*changed]
    for module in ("definitions.changes", name):
        spec = importlib.util.find_spec(f"{BASE}.{module}")
        assert spec is not None
        assert spec.origin is not None
        text = Path(spec.origin).read_text(encoding="utf-8")
        for old, new in changed:
            if old in text:
                assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in {module}"
                text, left = text.replace(old, new), [one for one in left if one != (old, new)]
        made = ModuleType(f"{BASE}.{module}_mutant")
        made.__package__ = made.__name__.rpartition(".")[0]
        sys.modules[made.__name__] = loaded[module] = made
        exec(
            compile(text.replace(".definitions.changes ", ".definitions.changes_mutant "), spec.origin, "exec"),
            made.__dict__,
        )
    assert not left, f"no file has {left}"
    definition = loaded["definitions.changes"].__dict__[name.capitalize()]
    return Operator(name, definition, loaded[name].__dict__["Behaviour"], loaded[name].__dict__["meaning"])


def histories(name: str, count: int, seed: int = 0) -> Iterator[tuple[Mapping[str, Any], list[Record]]]:
    """Yield `count` histories of each profile; one in four may have ties."""
    for profile, options in profiles_of(name).items():
        for number in range(count):
            generator = random.Random(f"{seed} {profile} {number}")
            yield options, drawn(generator, options, tied=0.6 if number % 4 == 0 else 0, count=40)
