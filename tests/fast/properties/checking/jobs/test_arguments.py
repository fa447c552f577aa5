"""Whatever is given to the functions of the door is taken, or refused in one message, before Spark is started."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamproof import (
    Inconclusive,
    Input,
    Sink,
    as_batch,
    check_job,
    drop_duplicates,
    invariants,
    other_job,
    reference_of,
    replay,
    session_windows,
    sql,
    static_join,
    stream_join,
    upgrade,
    windows,
    write_report,
)
from streamproof.properties.checking.jobs.arguments import LARGEST_SEED, SECONDS, check_arguments
from streamproof.properties.checking.jobs.job import REPLAY_SECONDS
from streamproof.properties.generators.columns.histories.drawing import closed, draw_histories
from streamproof.properties.generators.columns.key_spaces import MOST
from streamproof.properties.generators.columns.resolving import resolve
from streamproof.properties.system.arguments import checked
from streamproof.properties.witnesses.job.running import Runner
from streamproof.reference.core.durations import LONGEST_DAYS, UNITS_US
from streamproof.reference.core.errors import BadInput

CLICKS = Input("user string, at timestamp, amount bigint", key="user", name="clicks")


class Taken(Exception):
    """What a job is asked first raises it."""


def job(clicks: Any) -> Any:
    return clicks


class Strange:
    def __repr__(self) -> str:
        return "strange\x1b[31m\nand more"


VALUES: dict[str, Any] = {
    "None": None,
    "True": True,
    "-1": -1,
    "10^5000": 10**5000,
    "1.5": 1.5,
    "nan": float("nan"),
    "Decimal": Decimal("NaN"),
    "empty": "",
    "x": "x",
    "ESC": "\x1b[31m",
    "surrogate": "\ud800",
    "NUL": "a\0b",
    "-5 minutes": "-5 minutes",
    "9999999 days": "9999999 days",
    "long": "9" * 50 + " days",
    "timedelta": timedelta.max,
    "bytes": b"x",
    "[]": [],
    "[x]": ["x"],
    "[None]": [None],
    "[[x]]": [["x"]],
    "(x, )": ("x", "y", "z"),
    "{}": {},
    "{x: x}": {"x": "x"},
    "{x: []}": {"x": []},
    "{x: sum}": {"x": ("sum", 5)},
    "{1: x}": {1: "x"},
    "{x: rows}": {"x": [{"a": 1}, {"a": "x"}]},
    "{x: large}": {"x": [{"a": 2**70}]},
    "range": range(10**12),
    "set": {"x"},
    "frame": pd.DataFrame({"a": [1]}),
    "int": int,
    "job": job,
    "iterator": iter("x"),
    "Path": Path("x\0"),
    "strange": Strange(),
    "Sink": Sink,
}
GIVEN: dict[Callable[..., Any], dict[str, Any]] = {
    check_job: {"job": job, "expect": job},
    invariants: {"job": job},
    Sink: {"start": job, "read": job},
    Sink.json: {"start": job},
    Sink.sqlite: {"start": job, "table": "totals"},
    sql: {"statement": "select 1"},
    as_batch: {},
    other_job: {"job": job},
    reference_of: {"operator": "session_windows", "gap_ms": 10},
    session_windows: {"gap": "30 minutes"},
    windows: {"size": "1 hour"},
    drop_duplicates: {},
    stream_join: {"on": "user"},
    static_join: {"table": [{"user": "a"}], "on": "user"},
    write_report: {"folder": "report"},
}
CALLS = [
    (function, name)
    for function in GIVEN
    for name, parameter in inspect.signature(function).parameters.items()
    if parameter.kind is not parameter.VAR_POSITIONAL
]


@pytest.mark.parametrize(("function", "argument"), CALLS, ids=[f"{one.__name__}-{name}" for one, name in CALLS])
def test_whatever_is_given_is_taken_or_refused_in_one_message(
    function: Callable[..., Any], argument: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def taken(*arguments: Any) -> Any:
        raise Taken

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Runner, "declare", taken)
    inputs = [CLICKS] * (function in (check_job, invariants))
    for name, value in VALUES.items():
        given = {**GIVEN[function], argument: value}
        positional = [given.pop("job"), *inputs] if "job" in given else []
        said = "taken"
        try:
            function(*positional, **given)
        except Taken:
            pass
        except BadInput as refused:
            said = refused.message
        except Exception as error:
            said = f"{type(error).__name__}:\n{error}"
        assert said.isprintable(), f"{argument}={name}: {said}"
        assert len(said) < 1000, f"{argument}={name}: {said}"


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: check_job(None, CLICKS, expect=job), "check_job: job is None: give a function or a Sink or a Script"),
        (lambda: check_job(job, CLICKS, expect=int), "expect is <class 'int'>: give a rule such as session_windows"),
        (lambda: check_job(job, CLICKS, expect=job, seconds=0), "seconds is 0: give a number above 0, such as 120"),
        (lambda: check_job(job, CLICKS, expect=job, seed=float("nan")), "check_job: seed is nan: give a whole number"),
        (
            lambda: check_job(job, CLICKS, expect=job, histories=0),
            "histories is 0: give a whole number from 1 to 99,999",
        ),
        (
            lambda: check_job(job, CLICKS, expect=job, out_of_order="-5 minutes"),
            "out_of_order is '-5 minutes': give zero or more",
        ),
        (
            lambda: check_job(job, CLICKS, expect=job, out_of_order="9999999 days"),
            "out_of_order is '9999999 days': give 3,650 days or less",
        ),
        (
            lambda: invariants(job, CLICKS, out_of_order=5),
            'invariants: out_of_order is 5: give a duration such as "10 minutes" or None',
        ),
        (lambda: invariants(job, CLICKS, unique="user"), "unique is 'user': give a list, a text each or None"),
        (lambda: check_job(job, CLICKS, expect=" "), "the SQL statement is empty: write a SELECT"),
        (lambda: check_job(job, CLICKS, expect=job, static={"t": []}), "the static table t has no columns: give rows"),
        (
            lambda: check_job(job, CLICKS, expect=job, examples=None),
            "examples is None: give a list, a text or a Path each",
        ),
        (lambda: session_windows(5), 'session_windows: gap is 5: give a duration such as "10 minutes"'),
        (
            lambda: windows("1 hour", aggregates=["sum"]),
            "windows: aggregates is .'sum'.: give a dict from a text to a text",
        ),
        (lambda: stream_join("outer"), "stream_join: join is 'outer': give one of inner, left, right"),
    ],
)
def test_what_is_refused_is_named_with_its_value_and_the_remedy(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(BadInput, match=message):
        call()


def test_names_in_a_message_steer_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    hostile = "a\x1b[31m\u202e\x9b"
    with pytest.raises(
        BadInput, match=r"^input a\\x1b\[31m\\u202e\\x9b: there is no column 'k\\x1b', named as the key"
    ):
        check_job(job, Input("at timestamp", key="k\x1b", name=hostile), expect=job)
    with pytest.raises(BadInput, match=r"the static table a\\x1b\[31m\\u202e\\x9b: expected rows, and got int"):
        check_job(job, CLICKS, expect=job, static={hostile: 5})

    def inconclusive(*arguments: Any) -> None:
        raise Inconclusive(hostile)

    monkeypatch.setattr(Runner, "declare", inconclusive)
    with pytest.raises(Inconclusive, match=r"^a\\x1b\[31m\\u202e\\x9b$"):
        check_job(job, CLICKS, expect=job)


@pytest.mark.parametrize("late", [True, False])
def test_the_longest_durations_can_be_drawn(late: bool) -> None:
    longest = LONGEST_DAYS * UNITS_US["day"]
    distances = [longest - 2, longest - 1, longest]
    for seed in range(7):
        for history in draw_histories([resolve(CLICKS)], distances, 100, seed, late=late, delay_us=longest):
            closed(history, 3 * sum(distances))


def test_of_a_type_that_is_imported_for_type_checkers_alone_anything_is_taken() -> None:
    def function(one: Nowhere, *rest: int, **named: str) -> object:  # type: ignore[name-defined] # noqa: F821
        return one

    assert checked(function)(5, "x", more=7) == 5


def test_an_argument_has_the_same_default_in_every_function_that_takes_it() -> None:
    functions = (check_job, invariants, upgrade, replay)
    defaults: dict[str, dict[str, Any]] = {}
    for function in functions:
        for name, parameter in inspect.signature(function).parameters.items():
            if parameter.default is not inspect.Parameter.empty:
                defaults.setdefault(name, {})[function.__name__] = parameter.default
    assert (SECONDS, REPLAY_SECONDS) == (120, 600)
    shared = {name: {*map(repr, of.values())} for name, of in defaults.items() if len(of) > 1}
    assert {name for name, found in shared.items() if found != {"None"}} == {
        *("seed", "digits", "trigger", "alone", "timeouts", "without", "examples")
    }
    assert (shared["seed"], shared["digits"], shared["trigger"]) == ({"0"}, {"12"}, {"'default'"})
    assert (shared["alone"], shared["timeouts"], shared["without"]) == ({"False"}, {"()"}, {"()"})
    assert shared["examples"] == {"()"}


def test_the_least_and_the_most_of_a_number_are_taken_and_what_is_beyond_them_is_refused() -> None:
    for histories in (1, MOST):
        for seed in (-LARGEST_SEED, LARGEST_SEED):
            check_arguments(histories, seed, threading.TIMEOUT_MAX, "0 seconds")
    for histories in (0, MOST + 1):
        with pytest.raises(BadInput, match=r"^histories is "):
            check_arguments(histories)
    for seed in (-LARGEST_SEED - 1, LARGEST_SEED + 1):
        with pytest.raises(BadInput, match=r"^seed is "):
            check_arguments(1, seed)
    for seconds in (0, threading.TIMEOUT_MAX * 1.001):
        with pytest.raises(BadInput, match=r"^seconds is "):
            check_arguments(1, seconds=seconds)
