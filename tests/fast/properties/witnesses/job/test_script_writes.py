"""How a script's queries are noted as they are written and started, without Spark."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.witnesses.job.scripts import answers, notebooks
from streamproof.properties.witnesses.job.scripts.answers import _Writer
from streamproof.properties.witnesses.job.scripts.lifting import Lift
from streamproof.properties.witnesses.job.scripts.notebooks import display
from streamproof.properties.witnesses.job.scripts.reads import Frames, Read
from streamproof.properties.witnesses.job.scripts.writes import EndedQuery, Idle, Write, started_of

FRAME: Any = SimpleNamespace(isStreaming=True)


class Writer:
    """A writer of a frame, whose methods are those of a script's, over others that are noted."""

    def __init__(self, targets: Any = None, asked: int | None = None) -> None:
        self.__dict__.update(_df=FRAME, called=[], begun=[])
        lift = SimpleNamespace(
            asked=asked,
            folder=Path("run"),
            instead_of=(targets or {}).get,
            begun=lambda write, start: self.begun.append((write, start)) or "the query",
        )
        self.lift: Any = lift
        made = _Writer(lift)

        def noting(name: str) -> Any:
            return lambda writer, *given, **named: self.called.append((name, *given, *named.items())) or writer

        made.own = {name: noting(name) for name in made.own}
        for name, method in made.methods().items():
            self.__dict__[name] = lambda *given, method=method, **named: method(self, *given, **named)

    @property
    def write(self) -> Write:
        found: Write = self.__dict__["_streamproof_write"]
        return found


def test_what_a_query_writes_is_noted_and_passed_on() -> None:
    one: Any = Writer()
    one.outputMode("update").queryName("totals").format("delta").option("a", 1).option("Path", "/out")
    one.options(b=2, path="/later")
    assert (one.write.mode, one.write.name, one.write.format, one.write.target) == (
        "update",
        "totals",
        "delta",
        "/later",
    )
    assert one.called == [
        ("outputMode", "update"),
        ("queryName", "totals"),
        ("format", "delta"),
        ("option", "a", 1),
        ("option", "b", 2),
    ]
    assert one.trigger(processingTime="1 minute", once=True) is one
    assert (one.write.trigger, one.write.frame) == ("processingTime='1 minute', once=True", FRAME)


@pytest.mark.parametrize(("name", "attribute"), [("foreachBatch", "function"), ("foreach", "of_rows")])
def test_a_function_of_a_sink_is_passed_on_only_where_the_query_is_run(
    name: str, attribute: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answers, "_guarded", lambda lift, function: function)
    for asked in (None, 0):
        one: Any = Writer(asked=asked)
        assert getattr(one, name)(print) is one
        assert getattr(one.write, attribute) is print
        assert one.called == [(name, print)] * (asked is not None)


@pytest.mark.parametrize("how", ["start", "toTable", "table"])
def test_a_query_is_begun_with_the_target_and_the_format_that_it_is_started_with(how: str) -> None:
    one: Any = Writer()
    named = {"format": "delta", "outputMode": "complete", "queryName": "totals", "a": 1}
    assert getattr(one, how)("out", **named) == "the query"
    ((write, _),) = one.begun
    assert (write.target, write.format, write.mode, write.name) == ("out", "delta", "complete", "totals")
    assert ("option", "a", 1) in one.called
    other: Any = Writer()
    getattr(other, how)(*["out"] if how != "start" else [])
    assert other.write.format == ("" if how == "start" else "table")
    kept: Any = Writer()
    kept.option("path", "/out").start()
    assert kept.write.target == "/out"


@pytest.mark.parametrize(
    ("format", "targets", "calls"),
    [
        ("delta", {}, [("toTable", "out")]),
        ("delta", {"out": "instead"}, [("start", "instead")]),
        (None, {"out": "instead"}, [("format", "parquet"), ("start", "instead")]),
        (None, {"other": "instead"}, [("toTable", "out")]),
    ],
)
def test_a_query_runs_once_in_its_own_checkpoint_and_into_what_stands_for_its_target(
    format: str | None, targets: dict[str, str], calls: list[Any]
) -> None:
    one: Any = Writer(targets)
    one.toTable("out", **({} if format is None else {"format": format}))
    one.called.clear()
    ((_, start),) = one.begun
    start()
    assert one.called == [
        ("option", "checkpointLocation", "run/checkpoint"),
        ("trigger", ("availableNow", True)),
        *calls,
    ]


def test_a_notebook_s_display_starts_the_query_of_a_stream_and_shows_other_frames(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(notebooks, "to_check", lambda shown: shown)
    lift: Any = SimpleNamespace(writes=[], line=7)
    still = SimpleNamespace(isStreaming=False)
    display(lift, FRAME, streamName="totals")
    display(lift, still)
    display(lift, "text")
    display(lift)
    assert lift.writes == [
        Write(FRAME, name="totals", format="display", line=7),
        Write(still, format="shown", line=7),  # type: ignore[arg-type]
    ]
    shown, _ = lift.writes
    started = Write(FRAME, format="delta")
    assert started_of(lift.writes) == [shown]
    assert started_of([*lift.writes, started]) == [started]


@pytest.mark.parametrize(
    ("write", "shown"),
    [
        (Write(FRAME, line=3), "(line 3, a sink without a format)"),
        (Write(FRAME, line=3, target="out"), "(line 3, out)"),
        (Write(FRAME, line=3, target="out", format="delta", name="totals"), "'totals' (line 3, delta)"),
        (Write(FRAME, line=3, format="delta", of_rows=print), "(line 3, foreach)"),
        (Write(FRAME, line=3, format="delta", function=print, of_rows=print), "(line 3, foreachBatch)"),
    ],
)
def test_a_query_is_named_by_its_name_its_line_and_its_sink(write: Write, shown: str) -> None:
    assert str(write) == shown


@pytest.mark.parametrize(
    ("target", "lines"),
    [("bronze.orders", [1, 3]), ("orders", [1, 3]), ("bronze.returns", [2]), ("bronze.other", [])],
)
def test_all_queries_that_write_what_is_read_hand_on_their_rows(target: str, lines: list[int]) -> None:
    targets = ("bronze.orders", "bronze.returns", "Bronze.Orders")
    writes = [Write(FRAME, target=one, line=number) for number, one in enumerate(targets, 1)]
    lift: Any = SimpleNamespace(inputs=Frames({}), writes=writes)
    assert [write.line for write in Lift.writers_of(lift, Read(target=target))] == lines


def test_a_query_that_has_ended_answers_as_one_that_is_done() -> None:
    query = EndedQuery("totals")
    assert (query.name, query.isActive, query.lastProgress, query.status["message"]) == (
        "totals",
        False,
        None,
        "Stopped",
    )
    assert (query.awaitTermination(), query.awaitTermination(5)) == (None, True)
    for method in (query.stop, query.processAllAvailable, query.explain, query.exception):
        assert method() is None
    other = EndedQuery()
    assert (other.name, other.id != query.id, other.id != other.runId) == (None, True, True)


def test_a_query_is_told_by_its_name_its_line_and_its_sink() -> None:
    def write(rows: Any, batch: int) -> None: ...

    for more, shown in (
        ({}, "(line 3, a sink without a format)"),
        ({"name": "n", "format": "delta", "target": "/out"}, "'n' (line 3, delta)"),
        ({"target": "/out"}, "(line 3, /out)"),
        ({"function": write, "format": "delta"}, "(line 3, foreachBatch)"),
        ({"of_rows": write, "format": "delta"}, "(line 3, foreach)"),
    ):
        assert str(Write(FRAME, line=3, **more)) == shown  # type: ignore[arg-type]


def test_the_java_side_of_a_writer_that_does_not_stream_takes_whatever_it_is_told() -> None:
    idle = Idle()
    assert idle.format("x").option("a", 1) is idle
    assert idle.called == ["format", "option"]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"format": "parquet"}, "(line 3, parquet)"),
        ({"name": "q", "target": "lake.t"}, "'q' (line 3, lake.t)"),
        ({"function": print, "format": "parquet"}, "(line 3, foreachBatch)"),
        ({"of_rows": print, "target": "lake.t"}, "(line 3, foreach)"),
        ({}, "(line 3, a sink without a format)"),
        ({"is_elsewhere": True, "format": "delta"}, "(line 3 of b.py, delta)"),
    ],
)
def test_a_query_of_a_script_is_named_by_its_line_and_sink(given: dict[str, Any], text: str) -> None:
    assert str(Write(None, line=3, where="b.py", **given)) == text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("method", "arguments", "ran", "notes"),
    [
        ("run_line_magic", ("run", "./other"), ["./other"], []),
        ("magic", ("run", "./other"), ["./other"], []),
        ("run_line_magic", ("pip", "install x"), [], ["pip install x isn't run"]),
        ("system", ("run", "x"), [], ["run x isn't run"]),
    ],
)
def test_a_notebook_runs_other_notebooks_by_the_magic_of_that_name_alone(
    method: str, arguments: tuple[str, ...], ran: list[str], notes: list[str]
) -> None:
    seen: list[str] = []
    said: list[str] = []
    lift: Any = SimpleNamespace(note=said.append)
    getattr(notebooks.Notebook(lift, seen.append), method)(*arguments)
    assert (seen, said) == (ran, notes)
