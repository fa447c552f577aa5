from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from paths import ROOT

COUNT, BATCHES = 3000, 3


@pytest.fixture(autouse=True)
def benchmarks_on_the_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT))


@pytest.fixture
def events(tmp_path: Path) -> Path:
    """A folder of events in a few batches; a second has 50, so that sessions end within them."""
    from benchmarks.nexmark.events import events
    from benchmarks.production.run import write_batches

    ends = [*(COUNT * batch // BATCHES for batch in range(1, BATCHES)), COUNT + 3]
    write_batches(events(COUNT, rate=50, closing=True)._asdict(), ends, tmp_path / "events")
    return tmp_path / "events"


def differing(events: Path, query: str, rows: Path) -> int:
    """Return how many rows differ from DuckDB's, of which there are some."""
    from benchmarks.nexmark.sql import compared, load

    with duckdb.connect(":memory:") as connection:
        load(connection, str(events))
        found = compared(connection, query, str(rows))
    assert found.rows > 1
    return found.differing


class State:
    """A key's state, and its timeout, as Spark has it for `applyInPandasWithState`."""

    def __init__(self) -> None:
        self.value: tuple[Any, ...] | None = None
        self.timeout: int | None = None
        self.watermark = 0
        self.hasTimedOut = False

    @property
    def exists(self) -> bool:
        return self.value is not None

    @property
    def get(self) -> tuple[Any, ...]:
        assert self.value is not None
        return self.value

    def update(self, value: tuple[Any, ...]) -> None:
        assert not any(isinstance(part, np.generic | list) for part in value)
        self.value = value

    def remove(self) -> None:
        self.value = None

    def setTimeoutTimestamp(self, at: int) -> None:
        assert at > self.watermark
        self.timeout = at

    def getCurrentWatermarkMs(self) -> int:
        return self.watermark


def in_pandas(events: Path, keys: Sequence[str], columns: Sequence[str], function: Any) -> list[Any]:
    """Call a function for the bids as Spark does: the keys with bids in a batch, then those whose timeout is past."""
    states: dict[tuple[int, ...], State] = {}
    found, watermark = [], 0

    def call(key: tuple[int, ...], bids: Any, timed_out: bool) -> None:
        state = states.setdefault(key, State())
        state.watermark, state.hasTimedOut, state.timeout = watermark, timed_out, None
        found.extend(row for rows in function(key, bids, state) for row in rows.to_dict("records"))

    files = sorted((events / "bid").glob("*.parquet"))
    for file in [*files, None]:  # a batch without data follows
        seen = set()
        bids = pq.read_table(file or files[-1]).to_pandas()
        for key, of_key in bids.groupby([*keys]) if file else ():
            seen.add(key)
            # In two parts, as Spark gives many bids of a key.
            call(key, iter([of_key[[*columns]].iloc[:1], of_key[[*columns]].iloc[1:]][: len(of_key)]), False)
        past = [key for key, one in states.items() if one.exists and key not in seen and one.timeout]
        for key in (key for key in past if (states[key].timeout or 0) < watermark):
            call(key, iter([]), True)
        watermark = max(watermark, int(bids["time"].max()) - 4000)
    # The bid that closes all others is left.
    assert [key for key, one in states.items() if one.exists] == [(-1,) * len(keys)]
    return found


def pandas_rows(events: Path, query: str, rows: Path) -> Path:
    from benchmarks.nexmark import pandas as forms

    keys, columns, function = {
        "q11": (["bidder"], ["time"], forms._sessions),
        "q18": (["bidder", "auction"], forms.OF_LAST, forms._last_bid),
    }[query]
    pq.write_table(pa.Table.from_pylist(in_pandas(events, keys, columns, function)), rows)
    return rows


@pytest.mark.parametrize("query", ["q11", "q18"])
def test_the_functions_for_pandas_have_the_rows_of_duckdb_and_keep_no_state_in_the_end(
    query: str, events: Path, tmp_path: Path
) -> None:
    assert differing(events, query, pandas_rows(events, query, tmp_path / "rows.parquet")) == 0


def test_a_function_for_pandas_that_drops_the_last_session_or_keeps_the_first_bid_differs(
    events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.nexmark import pandas as forms

    merged: Callable[..., Any] = forms.merged
    with monkeypatch.context() as patch:
        patch.setattr(forms, "merged", lambda *of: [part[: max(1, len(part) - 1)] for part in merged(*of)])
        assert differing(events, "q11", pandas_rows(events, "q11", tmp_path / "rows.parquet")) > 0
    monkeypatch.setattr(forms, "GAP_MS", 9_000)
    assert differing(events, "q11", pandas_rows(events, "q11", tmp_path / "rows.parquet")) > 0
    monkeypatch.setattr(forms, "max", min, raising=False)
    assert differing(events, "q18", pandas_rows(events, "q18", tmp_path / "rows.parquet")) > 0


def test_sessions_that_bids_out_of_order_bring_together_are_merged() -> None:
    from benchmarks.nexmark.pandas import merged

    starts, lasts = np.array([0, 30_000, 100_000, 20_000, 10_000]), np.array([0, 35_000, 100_000, 20_000, 10_000])
    found = merged(starts, lasts, np.array([1, 2, 1, 1, 1]))
    assert [part.tolist() for part in found] == [[0, 100_000], [35_000, 100_000], [5, 1]]


class Batch:
    """The rows of a micro-batch, as a merge into DuckDB reads them."""

    def __init__(self, rows: pa.Table) -> None:
        self.toArrow = lambda: rows


def batches(events: Path, query: str) -> list[pa.Table]:
    """Return the batches that a query's merge gets from Spark."""
    from benchmarks.nexmark.queries import AUCTION, BID

    read = {kind: [pq.read_table(file) for file in sorted((events / kind).iterdir())] for kind in ("bid", "auction")}
    if query == "q18":
        return [rows.select([*BID, "order"]) for rows in read["bid"]]
    found = []
    for bids, auctions in zip(read["bid"], read["auction"], strict=True):
        ours = [row for row in auctions.select(AUCTION).to_pylist() if row["category"] == 10]
        theirs = pa.array(bids.select(BID).to_pylist())
        there = [*theirs.to_pylist(), *[None] * len(ours)]
        found.append(pa.table({"bid": there, "auction": [*[None] * len(theirs), *ours]}))
    return found


def merged_rows(events: Path, query: str, folder: Path, order: Sequence[int] = (0, 1, 1, 2, 0)) -> Path:
    """Merge batches in an order, in which some come again, into tables of DuckDB; return the file of the rows."""
    from benchmarks.nexmark.merge import DUCKDB, TABLES

    rows = batches(events, query)
    with closing(TABLES[DUCKDB][query](folder)) as tables:
        for batch in order:
            tables.write_batch(Batch(rows[batch]), batch)  # type: ignore[arg-type]
        tables.write_rows(folder / "rows.parquet")
    assert tables.sizes[-1] >= tables.sizes[0] > 0
    return folder / "rows.parquet"


@pytest.mark.parametrize("query", ["q18", "q20"])
def test_a_merge_into_duckdb_has_the_rows_of_duckdb_even_if_batches_come_again(
    query: str, events: Path, tmp_path: Path
) -> None:
    assert differing(events, query, merged_rows(events, query, tmp_path / "tables")) == 0


def test_a_merge_that_loses_a_batch_or_repeats_pairs_or_keeps_an_earlier_bid_differs(
    events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.nexmark import merge as forms

    assert differing(events, "q18", merged_rows(events, "q18", tmp_path / "lost", order=(0, 2))) > 0
    with monkeypatch.context() as patch:
        late = forms.LastBids.statements[0].replace(") > (last", ") < (last")
        patch.setattr(forms.LastBids, "statements", (late,))
        assert differing(events, "q18", merged_rows(events, "q18", tmp_path / "early")) > 0
    with monkeypatch.context() as patch:
        patch.setattr(forms.DuckdbTables, "is_merged", lambda self, batch: False)
        assert differing(events, "q20", merged_rows(events, "q20", tmp_path / "repeated")) > 0
    # Without the pairs of earlier bids with new auctions.
    alone = (*forms.Pairs.statements[:2], forms.Pairs.statements[2].split("UNION ALL SELECT")[0])
    monkeypatch.setattr(forms.Pairs, "statements", (*alone, *forms.Pairs.statements[3:]))
    assert differing(events, "q20", merged_rows(events, "q20", tmp_path / "alone")) > 0


def delta_rows(events: Path, folder: Path, order: Sequence[int]) -> Path:
    """Merge the last bids of batches, in an order, into a table of Delta; return the file of the rows."""
    from benchmarks.nexmark.merge import LastBidsInDelta

    tables, found = LastBidsInDelta(folder / "table"), batches(events, "q18")
    last = 'FROM rows QUALIFY row_number() OVER (PARTITION BY bidder, auction ORDER BY time DESC, "order" DESC) = 1'
    for batch in order:
        rows = found[batch]
        assert rows is not None  # which DuckDB finds by its name
        tables.merge(duckdb.sql(last).to_arrow_table(), batch)
    tables.write_rows(folder / "rows.parquet")
    return folder / "rows.parquet"


def test_a_merge_into_delta_has_the_rows_of_duckdb_even_if_batches_come_again(events: Path, tmp_path: Path) -> None:
    deltalake = pytest.importorskip("deltalake", reason="the benchmark merges into Delta where deltalake is installed")
    assert differing(events, "q18", delta_rows(events, tmp_path / "right", (0, 1, 1, 2, 0))) == 0
    assert deltalake.DeltaTable(tmp_path / "right" / "table").version() == BATCHES
    assert differing(events, "q18", delta_rows(events, tmp_path / "lost", (0, 2))) > 0


def test_events_and_rows_of_kafka_keep_each_field(events: Path) -> None:
    from benchmarks.nexmark.kafka import EVENTS, QUERIES, lines, table_of

    made = lines(events / "bid", EVENTS["bid"])
    first, last = (line.split("\t") for line in (made[0], made[-1]))
    assert (len(made), len(first), first[0], last[1]) == (COUNT * 46 // 50 + 1, len(EVENTS["bid"]), "4", "-1")
    rows = ["7\t2\t10\t20", "-1\t1\t30\t30", "8\t1\t40\t40"]
    assert table_of(rows, QUERIES["q11"]).to_pydict() == {
        "bidder": [7, 8],
        "bids": [2, 1],
        "start": [10, 40],
        "last": [20, 40],
    }
    assert table_of(['1\t2\t3\tnan\t\t4\t"x'], QUERIES["q18"]).to_pylist() == [
        {"auction": 1, "bidder": 2, "price": 3, "channel": "nan", "url": "", "time": 4, "extra": '"x'}
    ]


def test_forms_that_can_not_run_here_are_left_out_and_the_reason_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.figures import Setting
    from benchmarks.nexmark import nexmark

    monkeypatch.setattr(nexmark.nexmark_kafka, "why_not", lambda: "there is no javac")
    monkeypatch.setattr(nexmark.nexmark_merge, "is_installed", lambda: False)
    monkeypatch.setattr(nexmark.nexmark_bytewax, "is_installed", lambda: True)
    nexmark._why_not_kafka.cache_clear()
    told: list[str] = []
    forms: Mapping[str, Sequence[str]] = {
        query: nexmark._forms(Setting(True, None, told.append), query) for query in ("q4", "q11", "q18", "q20")
    }
    nexmark._why_not_kafka.cache_clear()
    assert forms == {
        "q4": ["operators"],
        "q11": ["operators", "spark", "pandas", "bytewax"],
        "q18": ["operators", "spark", "pandas", "merge"],
        "q20": ["operators", "spark", "merge"],
    }
    assert told == [
        "q11: without Kafka Streams: there is no javac",
        "q18: without a merge into Delta: deltalake isn't installed",
        "q18: without Kafka Streams: there is no javac",
        "q20: without Kafka Streams: there is no javac",
    ]


@pytest.mark.weekly("it starts a broker six times, and none of our commits but those of a benchmark changes it")
@pytest.mark.parametrize("planted", [False, True])
@pytest.mark.parametrize(
    ("query", "right", "wrong"),
    [
        ("q11", "Duration.ofSeconds(10)", "Duration.ofSeconds(9)"),
        ("q18", "? one : two", "? two : one"),
        ("q20", "== 10", "== 11"),
    ],
)
def test_kafka_streams_has_the_rows_of_duckdb_and_a_planted_bug_shows(
    query: str, right: str, wrong: str, planted: bool, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks.nexmark import kafka as nexmark_kafka

    if (why := nexmark_kafka.why_not()) is not None:
        pytest.skip(why)
    program = nexmark_kafka.SOURCE.read_text(encoding="utf-8")
    assert program.count(right) == 1
    source = tmp_path / nexmark_kafka.SOURCE.name
    source.write_text(program.replace(right, wrong) if planted else program, encoding="utf-8")
    monkeypatch.setattr(nexmark_kafka, "SOURCE", source)
    found = nexmark_kafka.through(query, events, tmp_path / "rows", 1)
    assert found["used"][-1]["streams"] > 0 < found["broker"]
    assert (differing(events, query, tmp_path / "rows" / "rows.parquet") > 0) == planted
