"""Each argument of a check reaches the options that all of it goes by; a script has a mode and settings of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from memory_jobs import CLICKS, MemoryRunner, copy
from streamproof import BadInput, Input, Script, Sink, as_batch, other_job
from streamproof.properties.checking.jobs import arguments
from streamproof.properties.checking.jobs.arguments import (
    ALONE_HISTORIES,
    BATCHES,
    SECONDS,
    check_options,
    divided,
    mode_of,
    oracle_of,
    settings_of,
)
from streamproof.properties.laws.expected.oracles import BatchOracle, FunctionOracle, ModelOracle, SqlOracle
from streamproof.properties.outcomes.equality import Equality
from streamproof.properties.witnesses.job.plan.plans import Plan
from streamproof.properties.witnesses.job.running import Declared
from streamproof.properties.witnesses.run_options import PLAIN, RunOptions

MINUTE_US = 60_000_000
PLANS: list[Plan] = []
DECLARED: list[RunOptions] = []


class Planned(MemoryRunner):
    """Its job's plan is the last of `PLANS`."""

    def declare(self, run: RunOptions = PLAIN) -> Declared:
        DECLARED.append(run)
        return Declared(plan=PLANS[-1] if PLANS else Plan())


@pytest.fixture(autouse=True)
def in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    PLANS.clear()
    DECLARED.clear()
    monkeypatch.setattr(arguments, "Runner", Planned)


def made(job: Any = copy, *, asked: Any = None, inputs: Any = (CLICKS,), **how: Any) -> Any:
    return check_options(job, inputs, how, asked or {})  # type: ignore[arg-type]


def script(mode: str | None = None, settings: Any = None, **reads: Any) -> Script:
    found = Script(copy, {"clicks": CLICKS, **reads})
    found.found.mode, found.found.settings = mode, settings or {}
    return found


def test_without_arguments_each_has_its_default() -> None:
    options = made()
    run = options.run
    assert (run.trigger, run.mode, run.seconds, run.settings) == ("default", "append", SECONDS, {})
    assert (run.empty_batches, run.processing_time, run.is_sink) == (True, False, False)
    assert (options.seed, options.unique, options.out_of_order, options.alone) == (0, None, None, False)
    assert [*options.timeouts_us, *options.timers_us, *options.without] == []
    assert options.folder is None
    assert (options.equality, options.batches) == (Equality(12), BATCHES)
    assert 2 * options.least_alone == ALONE_HISTORIES
    assert not DECLARED


def test_each_argument_reaches_its_option(tmp_path: Path) -> None:
    given: dict[str, Any] = {
        **{"trigger": "available_now", "mode": "update", "seconds": 7, "settings": {"spark.a": True, "spark.b": 5}},
        **{"unique": ["user"], "out_of_order": "5 minutes", "alone": True, "without": ["at"], "digits": 3},
        "static": {"names": [{"user": "a"}]},
    }
    options = made(asked={"seed": 4, "folder": tmp_path, "histories": 40}, **given)
    run = options.run
    assert (run.trigger, run.mode, run.seconds) == ("available_now", "update", 7)
    assert run.settings == {"spark.a": "true", "spark.b": "5"}
    assert (options.seed, options.unique, options.out_of_order, options.alone) == (4, ["user"], "5 minutes", True)
    assert (options.without, options.equality, options.least_alone) == (frozenset({"at"}), Equality(3), 20)
    assert options.folder == tmp_path
    assert options.runner.static == {"names": pa.table({"user": ["a"]})}
    assert [source.name for source in options.runner.sources] == ["clicks"]
    assert (options.runner.job, made(Sink(copy, copy)).run.is_sink) == (copy, True)
    assert divided({"seed": 1, "mode": "update", "histories": 2}) == ({"mode": "update"}, {"seed": 1, "histories": 2})


def test_timeouts_run_batches_at_their_times_and_those_of_event_time_are_timers() -> None:
    options = made(timeouts=["30 minutes", "10 minutes", "30 minutes"])
    assert (options.timeouts_us, options.timers_us) == ([10 * MINUTE_US, 30 * MINUTE_US], ())
    assert (options.run.processing_time, options.batches, DECLARED[0].processing_time) == (True, 8, True)
    with pytest.raises(
        BadInput, match='timeouts are checked under the default trigger: leave out trigger="available_now"'
    ):
        made(timeouts=["30 minutes"], trigger="available_now")
    PLANS.append(Plan(by_event_time=True))
    options = made(timeouts=["30 minutes"], trigger="available_now")
    assert (options.timeouts_us, options.timers_us) == ((), [30 * MINUTE_US])
    assert (options.run.processing_time, options.batches) == (False, BATCHES)
    PLANS.append(Plan(by_event_time=True, by_processing_time=True))
    assert made(timeouts=["30 minutes"]).timeouts_us == [30 * MINUTE_US]


@pytest.mark.parametrize(
    ("timeout", "clicks", "is_taken"),
    [
        ("2 milliseconds", CLICKS, True),
        ("1 millisecond", CLICKS, False),
        ("1500 microseconds", CLICKS, False),
        ("2 seconds", Input("user string, at bigint", key="user", time="at", time_format="s"), True),
        ("1 second", Input("user string, at bigint", key="user", time="at", time_format="s"), False),
        ("2500 milliseconds", Input("user string, at bigint", key="user", time="at", time_format="s"), False),
    ],
)
def test_a_timeout_is_a_whole_number_of_the_units_of_event_times_and_more_than_one(
    timeout: str, clicks: Input, is_taken: bool
) -> None:
    if is_taken:
        assert len(made(inputs=(clicks,), timeouts=[timeout]).timeouts_us) == 1
        return
    with pytest.raises(
        BadInput, match=f"timeouts has '{timeout}': batches run at event times of the inputs, so give a"
    ):
        made(inputs=(clicks,), timeouts=[timeout])


def test_what_is_said_of_a_script_s_query_goes_before_what_it_says_itself() -> None:
    one = script("Complete", {"spark.a": "1", "spark.b": "1"}, names=[{"user": "a"}])
    options = made(one, inputs=(), settings={"spark.b": "2"})
    assert (options.run.mode, options.run.settings) == ("complete", {"spark.a": "1", "spark.b": "2"})
    assert made(one, inputs=(), mode="update").run.mode == "update"
    assert made(script(), inputs=()).run.mode == mode_of(script()) == "append"
    assert [*options.runner.static] == one.found.tables == ["names"]
    given = made(one, inputs=(), static={"names": [{"user": "b"}], "more": [{"n": 1}]}).runner.static
    assert {name: table.to_pylist() for name, table in given.items()} == {"names": [{"user": "b"}], "more": [{"n": 1}]}
    with pytest.raises(BadInput, match="has its inputs in reads=: leave out the other inputs"):
        made(one)
    with pytest.raises(BadInput, match="has the output mode 'once': Spark has append, update, complete"):
        mode_of(script("once"))


def test_inputs_and_static_tables_have_names_of_their_own() -> None:
    empty = pa.table({"n": pa.array([], pa.int64())})
    assert made(static={"names": empty}).runner.static == {"names": empty}
    for table in (pa.table({}), []):
        with pytest.raises(BadInput, match="the static table names has no columns: give rows"):
            made(static={"names": table})
    for inputs, static in (([CLICKS], "clicks"), ([CLICKS, CLICKS], "names")):
        with pytest.raises(BadInput, match="clicks"):
            made(inputs=inputs, static={static: [{"n": 1}]})


def test_settings_are_text_as_spark_writes_it() -> None:
    assert settings_of({"a": True, "b": False, "c": 5, "d": "True"}) == {
        "a": "true",
        "b": "false",
        "c": "5",
        "d": "True",
    }
    assert settings_of(None) == {}
    with pytest.raises(BadInput, match="settings has 'b'"):
        settings_of({"a": "1", "b": "x\x1b"})


class Model:
    def arrive(self, row: Any) -> list[Any]:
        return []


def test_what_is_expected_stands_for_an_oracle() -> None:
    kinds = {"SELECT 1": SqlOracle, copy: FunctionOracle, Model: ModelOracle, as_batch(): BatchOracle}
    assert {kind: type(oracle_of(kind)) for kind in kinds} == kinds
    for expect in (5, int, None, object()):
        with pytest.raises(BadInput, match=r"expect is .*: give a rule such as"):
            oracle_of(expect)
    sink = Sink(copy, copy)
    for expect, job in ((as_batch(), sink), (as_batch(sink), copy), (as_batch(sink), None)):
        with pytest.raises(BadInput, match="a Sink can't be run as a batch"):
            oracle_of(expect, job)
    assert oracle_of(as_batch(copy), sink) == as_batch(copy)
    one = Script(copy, {"clicks": CLICKS}, read=copy)
    own: Any = oracle_of(as_batch(), one)
    assert (own.job.read, own.job.source) == (None, copy)
    other, job = script(), script()
    job.found.tables = ["names"]
    found: Any = oracle_of(other_job(other), job)
    assert (found.job, other.found.tables) == (other.job, ["names"])
