"""Outputs as text, in the notation of the documentation: `a@[0,10]=2`, `∅ a@[0,0]`, `dropped a (late)`."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any
from unicodedata import normalize

from ...reference.core.records import Change, Dropped
from ..system.visible import visible
from .equality import Truth, typed
from .outcomes import are_same


def shown(output: Any) -> str:
    """Return an output in the notation of the documentation, with invisible characters escaped."""
    return _shown(output, str(output.value) if isinstance(output, Change) else "")


def _shown(output: Any, value: str) -> str:
    match output:
        case Dropped():
            return f"dropped {visible(output.key)} ({visible(output.reason)})"
        case Change():
            key = visible(output.key)
            where = key if output.window is None else f"{key}@[{output.window[0]},{output.window[1]}]"
            emitted = f"∅ {where}" if output.value is None else f"{where}={visible(value)}"
            due = output.window is None or output.timestamp != output.window[1]
            return f"{emitted} at {output.timestamp}" if due else emitted
    return visible(output)


def both_shown(one: Any, other: Any, nothing: str = "nothing") -> tuple[str, str]:
    r"""Return two outputs, or lists of outputs, as text like `shown`; the texts of different outputs differ.

    If the texts would be equal, the texts include types: `a=1 (str)` and `a=1 (int)`, also within lists and objects. If
    values look alike but differ by outer spaces or by Unicode encoding, both are written in Python's ASCII notation:
    `a='e\u0301'` and `a='\xe9'`.

    Args:
        one: One output or list.
        other: The other.
        nothing: The text for None, and for an empty list.
    """
    if isinstance(one, list) or isinstance(other, list):
        ours, theirs = ([] if side is None else side if isinstance(side, list) else [side] for side in (one, other))
        pairs = [both_shown(*pair) for pair in zip_longest(ours, theirs)]
        return (
            ", ".join(pair[0] for pair in pairs[: len(ours)]) or nothing,
            ", ".join(pair[1] for pair in pairs[: len(theirs)]) or nothing,
        )
    texts = (nothing if one is None else shown(one), nothing if other is None else shown(other))
    if are_same(one, other):
        return texts
    if isinstance(one, Change) and isinstance(other, Change):
        if texts[0] == texts[1]:
            values = _with_types(one.value, other.value, str)
        elif _look_alike(one.value, other.value):
            values = ascii(one.value), ascii(other.value)
        else:
            return texts
        return _shown(one, values[0]), _shown(other, values[1])
    if texts[0] != texts[1]:
        return texts
    types = _with_types(one, other, str)
    return visible(types[0]), visible(types[1])


def _look_alike(one: Any, other: Any) -> bool:
    """Return whether different values look the same."""
    seen = [normalize("NFKC", str(value)).strip() for value in (one, other)]
    return one != other and seen[0] == seen[1]


def _with_types(one: Any, other: Any, text: Callable[[Any], str] = repr) -> tuple[str, str]:
    """Return two values as texts, with the types of the parts that differ."""
    if typed(one) == typed(other):
        return text(one), text(other)
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        members = [_with_types(*pair) for pair in zip(one, other, strict=True)]
        ours, theirs = (", ".join(pair[side] for pair in members) for side in (0, 1))
        return f"[{ours}]", f"[{theirs}]"
    if isinstance(one, dict) and isinstance(other, dict) and list(one) == list(other):
        fields = [(name, _with_types(one[name], other[name])) for name in one]
        ours, theirs = (", ".join(f"{name!r}: {pair[side]}" for name, pair in fields) for side in (0, 1))
        return f"{{{ours}}}", f"{{{theirs}}}"
    if type(one) is type(other):
        return repr(one), repr(other)
    names = ["bool" if isinstance(value, Truth) else type(value).__name__ for value in (one, other)]
    if names[0] == names[1]:
        names = [f"{type(value).__module__}.{type(value).__qualname__}" for value in (one, other)]
        text = repr
    return f"{text(one)} ({names[0]})", f"{text(other)} ({names[1]})"
