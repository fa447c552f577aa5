"""The micro-batches of plans, and the watermarks of each operator."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from streamproof.reference.spark.aggregates import AggregateFunction
from streamproof.reference.spark.execution import ExecutedBatch, Execution
from streamproof.reference.spark.expressions import column, constant
from streamproof.reference.spark.groups import Groups
from streamproof.reference.spark.plans import (
    Aggregation,
    Deduplication,
    Filter,
    Join,
    Limit,
    Node,
    Project,
    Scan,
    Union,
    WithWatermark,
)
from streamproof.reference.spark.stream_join import StreamJoin
from streamproof.reference.spark.windows import Windows

S = 1_000_000
COUNT = {"n": AggregateFunction("count", None)}


def source(name: str = "a") -> Scan:
    return Scan(name, ("k", "ts"))


def timed(name: str = "a", delay_us: int = 0) -> WithWatermark:
    return WithWatermark((source(name),), "ts", delay_us)


def window(node: Node, size_us: int = 10 * S, mode: Any = "append") -> Aggregation:
    return Aggregation((node,), Windows("ts", ("k",), size_us, size_us, 0, COUNT, mode), "ts")


def join(left: Node, right: Node, kind: Any = "inner", before_us: int | None = S, after_us: int | None = 3 * S) -> Join:
    renamed = Project((right,), (("k2", column("k")), ("ts2", column("ts"))))
    return Join((left, renamed), StreamJoin(kind, (("k",), ("k2",)), ("ts", "ts2"), before_us, after_us))


def batch(**seconds: float | list[float]) -> dict[str, list[dict[str, Any]]]:
    """Return a batch of rows of one key, by the seconds of their event times."""
    of = {name: one if isinstance(one, list) else [one] for name, one in seconds.items()}
    return {name: [{"k": "k", "ts": round(time * S)} for time in times] for name, times in of.items()}


def watermarks(plan: Node, *batches: Any, **options: Any) -> list[tuple[int, bool, float]]:
    """Return each micro-batch: the batch that it is or follows, whether it has data, and its watermark in seconds."""
    done = Execution(plan, **options).run(batches)
    return [(micro.batch, micro.has_data, micro.watermark_ms / 1_000) for micro in done]


def times(done: list[ExecutedBatch]) -> list[list[float]]:
    return [[row["ts"] / S for row in micro.rows] for micro in done]


def of_inputs(plan: Node, watermark_s: int = 100) -> list[float]:
    """Return the watermarks of the inputs of the stateful operators, in seconds, those below first."""
    execution = Execution(plan)
    found = zip(execution.nodes, execution.inputs_ms(watermark_s * 1_000), strict=True)
    return [ms / 1_000 for (node, _), ms in found if node.is_stateful]


@pytest.mark.parametrize(
    ("plan", "seconds"),
    [
        (window(timed()), [100]),
        (window(window(timed())), [100, 100]),
        (window(Filter((timed(),), constant(True))), [100]),
        # The left state is kept for 3 seconds, the right state for 1, each but for a millisecond.
        (window(join(timed(), timed("b"))), [100, 96.999]),
        (window(join(timed(), timed("b"), before_us=5 * S)), [100, 94.999]),
        (window(join(timed(), timed("b"), "left_semi", before_us=5 * S)), [100, 96.999]),
        (window(join(timed(), timed("b"), after_us=None)), [100, 98.999]),
        (window(join(timed(), timed("b"), before_us=None, after_us=None)), [100, 100]),
        (window(join(timed(), timed("b"), before_us=-2 * S)), [100, 96.999]),
        (window(join(timed(), timed("b"), before_us=-2 * S, after_us=-S)), [100, 100]),
        (window(join(timed(), source("b"))), [100, 100]),
        (join(join(timed(), timed("b")), timed("c")), [100, 96.999]),
        (window(join(join(timed(), timed("b")), timed("c"))), [100, 96.999, 93.998]),
        (window(Union((timed(), join(timed(), timed("b"), "left_semi")))), [100, 96.999]),
        (window(Union((join(timed(), timed("b"), "left_semi"), source("c")))), [100, 96.999]),
        (window(Union((source(), timed("b")))), [100]),
        (window(source()), [0]),
        (join(source(), window(source("b"))), [0, 0]),
    ],
)
def test_an_operator_has_the_least_watermark_of_those_below(plan: Node, seconds: list[float]) -> None:
    assert of_inputs(plan) == seconds


def test_no_operator_has_a_watermark_before_1970() -> None:
    assert of_inputs(window(join(timed(), timed("b"))), 1) == [1, 0]
    assert of_inputs(window(join(timed(), timed("b"))), 0) == [0, 0]


@pytest.mark.parametrize("without_data", [True, False])
def test_a_row_is_late_by_the_watermark_of_the_micro_batch_before(without_data: bool) -> None:
    """At the second batch that is the first watermark, unless a batch without data has come in between."""
    done = Execution(Deduplication((timed(),), ("k", "ts")), without_data=without_data).run(
        [batch(a=20), batch(a=[20, 15]), batch(a=[20, 14])]
    )
    assert times([micro for micro in done if micro.has_data]) == [[20], [] if without_data else [15], []]


def test_state_is_evicted_by_the_watermark_of_the_micro_batch_itself() -> None:
    done = Execution(window(timed()), without_data=False).run([batch(a=5), batch(a=10), batch(a=[3, 11]), batch(a=3)])
    assert [[row["n"] for row in micro.rows] for micro in done] == [[], [], [2], []]


def test_a_window_above_a_window_closes_when_that_has_given_it_all() -> None:
    done = Execution(window(window(timed(), 5 * S))).run([batch(a=[1, 2, 6]), batch(a=10), batch(a=[4, 11])])
    assert times(done) == [[], [], [], [9.999_999], [], []]
    assert [row["n"] for micro in done for row in micro.rows] == [2]


@pytest.mark.parametrize(
    ("plan", "asks"),
    [
        (window(timed()), True),
        (window(timed(), mode="update"), True),
        (window(timed(), mode="complete"), False),
        (Deduplication((timed(),), ("k",)), True),
        (join(timed(), timed()), True),
        (join(timed(), timed(), after_us=None), True),
        (join(timed(), timed(), before_us=None, after_us=None), False),
        (join(timed(), source()), False),
        (Limit((timed(),), 1), False),
        (Filter((timed(),), constant(True)), False),
        (Aggregation((timed(),), Groups((), None, COUNT, "update")), True),
        (Deduplication((source(),), ("k",)), False),
        (Union((timed(), Deduplication((source("b"),), ("k",)))), False),
    ],
)
def test_a_batch_without_data_follows_if_an_operator_asks_for_it(plan: Node, asks: bool) -> None:
    assert watermarks(plan, batch(a=5, b=5)) == [(0, True, 0), *[(0, False, 5)] * asks]
    assert watermarks(plan, batch(a=5, b=5), without_data=False) == [(0, True, 0)]


def test_no_batch_without_data_follows_where_the_operators_watermark_has_not_moved() -> None:
    above = window(join(timed(), timed("b"), before_us=None, after_us=50 * S))
    assert watermarks(above, batch(a=40, b=40)) == [(0, True, 0), (0, False, 40)]
    untimed = Deduplication((join(timed(), timed("b"), before_us=None, after_us=None),), ("k",))
    assert watermarks(replace(untimed, inputs=(source(),)), batch(a=40)) == [(0, True, 0)]


def test_a_batch_without_any_new_data_does_not_run() -> None:
    assert watermarks(window(timed()), batch(a=5), {}, batch(a=6)) == [
        (0, True, 0),
        (0, False, 5),
        (2, True, 5),
        (2, False, 6),
    ]
    assert watermarks(window(timed()), batch(a=[])) == [(0, True, 0)]


@pytest.mark.parametrize(
    ("policy", "seconds"),
    [("min", [0, 0, 4, 7]), ("max", [0, 10, 10, 10])],
)
def test_of_several_watermarks_the_least_counts_or_the_largest(policy: Any, seconds: list[float]) -> None:
    """The second input is silent at first, and the watermark stands at 1970 until it has had a row."""
    plan = Union((timed(), timed("b", 5 * S)))
    found = watermarks(plan, batch(a=10), batch(a=7, b=9), batch(b=[12, 8]), batch(a=1, b=1), policy=policy)
    assert [watermark for _, _, watermark in found] == seconds


@pytest.mark.parametrize(("starts", "seconds"), [((), [0, 8, 10, 11]), ((1,), [0, 8, 8, 8]), ((3,), [0, 8, 10, 11])])
def test_the_watermark_stands_still_if_a_start_forgets_the_times_of_a_silent_input(starts: Any, seconds: Any) -> None:
    plan = Union((timed(), timed("b")))
    found = watermarks(plan, batch(a=8, b=20), batch(a=10), batch(a=11), batch(a=12), starts=starts)
    assert [watermark for _, _, watermark in found] == seconds


def test_times_and_delays_are_cut_to_milliseconds_each() -> None:
    for delay_us, seconds in ((1_999, 0.009), (999, 0.010)):
        assert watermarks(window(timed(delay_us=delay_us)), batch(a=0.010_999))[1:] == [(0, False, seconds)]


def test_a_null_event_time_moves_no_watermark() -> None:
    nulls = {"a": [{"k": "k", "ts": None}]}
    assert watermarks(window(timed()), nulls, batch(a=-1)) == [(0, True, 0), (1, True, 0)]


def test_a_filter_above_a_watermark_leaves_its_rows_to_it_and_one_below_does_not() -> None:
    above = window(Filter((timed(),), constant(False)))
    below = window(WithWatermark((Filter((source(),), constant(False)),), "ts", 0))
    assert watermarks(above, batch(a=5)) == [(0, True, 0), (0, False, 5)]
    assert watermarks(below, batch(a=5)) == [(0, True, 0)]


def test_without_an_event_time_nothing_is_late_or_closed_though_there_is_a_watermark() -> None:
    untimed = Union((source(), timed("b")))
    done = Execution(Deduplication((untimed,), ("k", "ts"))).run([batch(b=20), batch(a=5), batch(a=[5, 6])])
    assert times([micro for micro in done if micro.has_data]) == [[20], [5], [6]]


def test_batches_run_under_given_watermarks() -> None:
    execution = Execution(window(timed(delay_us=99 * S)))
    done = execution.run_at([(True, 0), (False, 10_000), (True, 10_000)], [batch(a=5), {}, batch(a=[5, 15])])
    assert [(micro.batch, micro.has_data, len(micro.rows)) for micro in done] == [
        (0, True, 0),
        (0, False, 1),
        (2, True, 0),
    ]


def test_a_row_whose_other_columns_are_null_moves_the_watermark_as_others_do() -> None:
    given = batch(a=[5, 7]), {"a": [{"k": None, "ts": 50 * S}]}
    assert [one for *_, one in watermarks(window(timed()), *given)] == [0, 7, 7, 50]
