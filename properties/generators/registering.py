"""Register an operator of the user, and validate the registration, so that no check fails on a mistake in it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from ...reference.core.clocks import StreamTime
from ...reference.core.errors import BadInput
from ...reference.core.history import History
from ...reference.core.play import Played, play
from ...reference.core.records import Change, Record
from ..registration.registration import Options, Registration, add, unregister
from ..system.arguments import short
from .draws import SCHEDULE, HistorySettings, draw_histories
from .options import impossible_values

FEW = 20
"""The number of histories of each profile to run with null keys, and the number to run without."""
MANY = 200
"""The number of histories without output after which a profile is refused."""


def register(registration: Registration) -> Registration:
    """Register an operator of your own for history files, generators, witnesses, laws and commands.

    Raises:
        BadInput: The name is taken; or the behaviour lacks a method or raises, a definition can't be written to a
            history file or is refused, the meaning is neither a table nor a stream, or a profile never emits output.
            The message names the profile or option, and the remedy.
    """
    add(registration)
    try:
        validate(registration)
    except BaseException:
        unregister(registration.name)
        raise
    return registration


def validate(registration: Registration) -> None:
    """Refuse a registration on which a check would fail.

    Raises:
        BadInput: As `register`.
    """
    if not registration.profiles:
        raise BadInput(
            f"{registration.name} has no profile: give at least one, by name and options, such as {{'plain': {{}}}}"
        )
    _require_callable(registration, registration.operator, "operator", ("behaviour", "meaning"))
    for name, options in registration.profiles.items():
        definition = _declared(registration, name, options)
        machine = _made(registration, name, definition)
        _require_callable(registration, machine, type(machine).__name__, ("arrive", "advance"))
        _require_output(registration, name, options)
    _require_legal_space(registration)


def _require_legal_space(registration: Registration) -> None:
    if registration.space is None:
        return
    unnamed = [name for name in registration.space.independent if name not in registration.space.values]
    if unnamed:
        raise BadInput(f"{registration.name}: {unnamed[0]} is independent in its space of options, but has no values")
    empty = [name for name, values in registration.space.values.items() if not values]
    if empty:
        raise BadInput(f"{registration.name}: {empty[0]} has no values in its space of options: give some")
    impossible = impossible_values(registration)
    if impossible:
        raise BadInput(
            f"{registration.name}: no legal options of its space contain {impossible[0]}: leave that value out, or add "
            "values of other options that go with it"
        )


def _made(registration: Registration, name: str, definition: Any) -> Any:
    try:
        return registration.operator.behaviour(definition, StreamTime())
    except Exception as error:
        raise BadInput(
            f"{registration.name}, profile {name!r}: the behaviour can't be created, {type(error).__name__}: {error}: "
            "let the behaviour take a definition and a clock"
        ) from error


def _require_callable(registration: Registration, thing: object, called: str, methods: tuple[str, ...]) -> None:
    for method in methods:
        if not callable(getattr(thing, method, None)):
            raise BadInput(
                f"{registration.name}: {called} has no method {method}: give it one; a behaviour has "
                "arrive(record) and advance(), an operator a behaviour and a meaning"
            )


def _declared(registration: Registration, name: str, options: Options) -> Any:
    where = f"{registration.name}, profile {name!r}"
    try:
        same = json.loads(json.dumps(dict(options), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise BadInput(
            f"{where}: the options {dict(options)!r} can't be written into a history file ({error}): "
            "use numbers, strings, lists and objects of them"
        ) from None
    if same != dict(options):
        raise BadInput(
            f"{where}: the options {dict(options)!r} come back from a history file as {same!r}: use lists, not tuples, "
            "and strings for names"
        )
    try:
        return registration.declare(options)
    except BadInput as error:
        raise BadInput(f"{where}: its definition refuses the options: {error}") from None


def _require_output(registration: Registration, name: str, options: Options) -> None:
    for history in islice(_drawn(registration, name, options, null_keys=True), FEW):
        _played(registration, name, history)
    emits = False
    for number, history in enumerate(_drawn(registration, name, options, null_keys=False), 1):
        played = _played(registration, name, history)
        emits = emits or any(isinstance(entry.output, Change) for entry in played.entries)
        if emits and number >= FEW:
            return
    raise BadInput(
        f"{registration.name}, profile {name!r}: {MANY} drawn histories emit nothing, so that the "
        "profile can't be checked: give a domain of values for which the operator emits rows, or other options"
    )


def _drawn(registration: Registration, name: str, options: Options, null_keys: bool) -> Iterator[History]:

    settings = HistorySettings(registration.name, options, SCHEDULE, null_keys=null_keys)
    try:
        yield from draw_histories(settings, MANY, seed=0)
    except Exception as error:
        raise BadInput(
            f"{registration.name}, profile {name!r}: its domain raises {type(error).__name__}: {error}: let the "
            "domain draw from any small integers"
        ) from error


def _played(registration: Registration, name: str, history: History) -> Played:
    try:
        played = play(history)
        meaning = registration.operator.meaning(played.definition, played.accepted, played.clock)
    except Exception as error:
        record = _last_record(history)
        raise BadInput(
            f"{registration.name}, profile {name!r}: the reference raises {type(error).__name__}: {error}, at the "
            f"record {tuple(record) if record else None} of a drawn history: fix the reference, or "
            "give a domain of values that the reference accepts"
        ) from error
    if not (_is_bag(meaning) if played.definition.is_stream else _is_table(meaning)):
        shape = (
            "a list of Change, because its definition's is_stream is True"
            if played.definition.is_stream
            else "a table, {(key, window): (value, timestamp)}, window (start, end) or None; or set is_stream = True"
        )
        raise BadInput(f"{registration.name}: its meaning returned {short(meaning)}: return {shape}")
    return played


def _is_bag(meaning: object) -> bool:
    return isinstance(meaning, list) and all(isinstance(change, Change) for change in meaning)


def _is_table(meaning: object) -> bool:
    return isinstance(meaning, Mapping) and all(
        isinstance(pair, tuple) and len(pair) == 2 for row in meaning.items() for pair in row
    )


def _last_record(history: History) -> Record | None:
    """Return the record at which the reference raises an error: the last record of the history's shortest failing
    prefix.
    """
    for length in range(len(history.lines) + 1):
        try:
            play(replace(history, lines=history.lines[:length]))
        except Exception:
            records = [line for line in history.lines[:length] if isinstance(line, Record)]
            return records[-1] if records else None
    return history.records[-1] if history.records else None
