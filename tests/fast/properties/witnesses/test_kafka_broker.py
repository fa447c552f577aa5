"""What is played on a Kafka broker, when it is quiet, and how results are judged: without a broker."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from streamproof.properties.generators.cohorts import record_batches
from streamproof.properties.models.broker.judging import (
    MISSES,
    OUTDATED,
    STANDS,
    Stale,
    counted,
    expected,
    judged,
    smallest,
)
from streamproof.properties.models.broker.races import ARRIVALS, changes_of, chosen, drawn, race
from streamproof.properties.models.broker.recording import require_recordable
from streamproof.properties.models.broker.shrinking import MOST_LINES, REPEATS, Ask, Shrunk, shorter, shrink
from streamproof.properties.witnesses.kafka_broker.application import (
    INNER,
    INNER_BY_LEFT,
    LEFT,
    Look,
    Settings,
    await_quiet,
)
from streamproof.properties.witnesses.kafka_broker.broker import (
    Cluster,
    existing_cluster,
    free_ports,
    read_client_properties,
    said,
    server_properties,
)
from streamproof.properties.witnesses.kafka_broker.clients import Partition, Received, explained
from streamproof.properties.witnesses.kafka_broker.cohort import PER_MS, Pauses, due, prefixed, stamped, tables
from streamproof.properties.witnesses.kafka_broker.witness import refusal
from streamproof.reference.core.errors import BadInput, StreamproofError
from streamproof.reference.core.history import Cut, History, parse_history
from streamproof.reference.core.records import Record
from streamproof.reference.definitions.joins import ForeignKeyJoin
from streamproof.specs.races import RACES

HEADER = {"operator": "foreign_key_join", "options": {"foreign_key": "artist"}}
ROW = {"input": "left", "key": "l", "value": {"artist": "r"}, "timestamp": 1}


def history(*lines: dict[str, Any], **options: Any) -> History:
    header = {**HEADER, "options": {**HEADER["options"], **options}}
    return parse_history("\n".join(map(json.dumps, [header, *lines])))


@pytest.mark.parametrize("name", RACES)
def test_a_race_is_its_schedule_without_the_deliveries_after_what_is_shown(name):
    found, scheduled = race(name, INNER), RACES[name].history()
    assert found.records == scheduled.records
    assert [len(batch) for batch in record_batches(found)] == [2, len(found.records) - 2]
    assert "delivery" not in found.options


def test_the_changes_of_a_race_are_those_of_the_findings():
    assert changes_of("delete-insert-same-key") == "l=∅ R r1=∅ L l=b|r1"
    assert changes_of("drawn") == ""


def test_drawn_histories_have_one_cut_in_their_middle_and_are_the_same_for_a_seed():
    found = drawn(3, LEFT, 7)
    assert found == drawn(3, LEFT, 7) != drawn(3, LEFT, 8)
    assert all(isinstance(one.lines[ARRIVALS // 2], Cut) and len(one.records) == ARRIVALS for one in found)
    assert not any(refusal(one, LEFT) for one in found)


def test_all_races_of_the_join_are_played_where_none_is_named():
    assert [one.name for one in chosen([], 2, LEFT, 0)] == list(RACES)
    assert set(RACES) - {one.name for one in chosen([], 2, INNER, 0)} == {"move"}
    assert {len(one.histories) for one in chosen([], 2, INNER, 0)} == {2}


@pytest.mark.parametrize(
    ("names", "says"),
    [
        (["nope"], "unknown race 'nope': use delete-insert, .*, drawn, or a history file"),
        (["drawn", "drawn"], "drawn is named twice"),
    ],
)
def test_what_is_no_race_is_refused(names, says):
    with pytest.raises(BadInput, match=says):
        chosen(names, 1, INNER, 0)


def test_a_history_file_is_played_as_often_as_is_asked_and_apart_from_those_with_other_fields(tmp_path):
    path = tmp_path / "mine.jsonl"
    path.write_text(history(ROW).to_text())
    (found,) = chosen([str(path)], 3, INNER, 0)
    assert (found.name, len(found.histories)) == ("mine", 3)
    with pytest.raises(BadInput, match=r"different fields \(artist, foreign_key\)"):
        chosen([str(path), "lose-gain"], 1, INNER, 0)


@pytest.mark.parametrize(
    ("given", "join", "says"),
    [
        (history(ROW, join="left", null_foreign_key="keep"), INNER, "use --join left"),
        (history(ROW), LEFT, "use --join inner"),
        (history(ROW, protocol="answer"), INNER, "no protocol 'answer'"),
        (history(ROW, delivery="manual"), INNER, "leave delivery manual and the deliver lines out"),
        (history({**ROW, "key": None}), INNER, "a record without a key"),
        (
            history({**ROW, "value": {"artist": None}}, join="left", null_foreign_key="ignore"),
            LEFT,
            "use null_foreign_key keep",
        ),
        (parse_history('{"operator": "table_table_join", "options": {}}'), INNER, "a history of table_table_join"),
        (history(ROW), INNER, None),
    ],
)
def test_what_cannot_be_played_on_a_broker_is_refused(given, join, says):
    found = refusal(given, join)
    assert found is None if says is None else says in found


def test_keys_and_foreign_keys_are_those_of_the_history_alone():
    record = Record("left", "a", {"artist": "r1", "value": 2}, 5)
    found = prefixed(3, record, ForeignKeyJoin("artist"))
    assert found == Record("left", "00003|a", {"artist": "00003|r1", "value": 2}, 5)
    assert prefixed(3, Record("right", "r1", None, 5), ForeignKeyJoin("artist")).value is None


TOPICS = {"left": "L", "right": "R"}


def generator() -> random.Random:
    return random.Random(1)


def test_without_pauses_the_changes_of_a_history_come_back_to_back():
    found = due([race("right-delete-update", INNER)] * 2, 1, TOPICS, Pauses(), generator())
    assert [(one.at, one.sent.topic, one.sent.key) for one in found] == [
        (0, "R", "00000|r1"),
        (0, "L", "00000|l"),
        (0, "R", "00001|r1"),
        (0, "L", "00001|l"),
    ]


def test_with_pauses_each_change_waits_for_the_one_before_it_and_all_are_in_order():
    found = due([race("lose-gain", INNER)] * 50, 1, TOPICS, Pauses(10, 20), generator(), first=7)
    assert [one.at for one in found] == sorted(one.at for one in found)
    for key in {one.sent.key for one in found}:
        first, second = (one for one in found if one.sent.key == key)
        assert 10 <= first.at <= 20 + 100 // PER_MS
        assert 10 <= second.at - first.at <= 20
        assert (first.sent.timestamp, second.sent.timestamp) == (2, 3)
    assert {one.sent.key for one in found} == {f"{index:05d}|l" for index in range(7, 57)}


def test_with_pauses_no_more_is_due_at_once_than_can_be_sent():
    found = due([race("lose-gain", INNER)] * 2000, 1, TOPICS, Pauses(0, 100), generator())
    most = max(sum(start <= one.at < start + 100 for one in found) for start in range(0, 700, 50))
    assert most <= 1.2 * 100 * PER_MS
    assert 500 <= found[-1].at <= 700


def test_timestamps_say_in_which_order_records_are_sent():
    found = stamped(due([race("right-delete-update", INNER)] * 2, 1, TOPICS, Pauses(), generator()), 40)
    assert [(one.sent.topic, one.sent.timestamp) for one in found] == [("R", 40), ("L", 41), ("R", 42), ("L", 43)]


def test_a_history_without_such_a_batch_sends_nothing_in_it():
    assert due([history(ROW)], 1, TOPICS, Pauses(), generator()) == []


def output(key: str, value: Any) -> Received:
    return Received(0, 0, key, None if value is None else json.dumps(value), 1)


def test_the_table_of_a_history_is_its_output_folded():
    pair = [{"artist": "00005|r", "value": 1}, "x"]
    found = tables(
        [
            output("00005|a", pair),
            output("00006|a", pair),
            output("00005|b", pair),
            output("00005|b", None),
            output("00004|a", pair),
            output("00007|a", None),
            output("00007|b", [{"artist": None}, None]),
        ],
        [history(ROW)] * 3,
        first=5,
    )
    assert found[0] == {"a": ([{"artist": "r", "value": 1}, "x"], 1)}
    assert list(found[1]) == ["a"]
    assert found[2] == {"b": ([{"artist": None}, None], 1)}


def test_a_result_is_judged_by_the_join_of_the_folded_inputs():
    given = race("lose-gain", INNER)
    assert expected(given) == {}
    assert judged(given, {}) is None
    stands = judged(given, {"l": [{"value": "a", "foreign_key": "r1"}, "x"]})
    assert stands is not None
    assert stands.kinds == (STANDS,)
    shown = race("lose-gain", INNER).with_lines(given.lines[:2])
    right = [{"value": "a", "foreign_key": "r1"}, "x"]
    assert expected(shown) == {"l": right}
    assert [judged(shown, {}).kinds, judged(shown, {"l": ["old", "x"], "m": 1}).kinds] == [  # type: ignore[union-attr]
        (MISSES,),
        (STANDS, OUTDATED),
    ]


def test_the_smallest_stale_history_of_each_kind_has_the_fewest_records():
    long, short = race("delete-insert-same-key", INNER), race("lose-gain", INNER)
    stale = [found for one in (long, short) if (found := judged(one, {"l": 1})) is not None]
    stale += [found for found in [judged(long, {"l": 1}, {"l": 2})] if found is not None]
    assert counted(stale) == {STANDS: 2, OUTDATED: 1}
    assert {kind: one.history for kind, one in smallest(stale).items()} == {STANDS: short, OUTDATED: long}


# Shrinking: the player is a function.


def stale_where(is_stale: Callable[[int, History], bool]) -> Ask:
    """Return a player under which the nth history of those played is stale as is said."""
    numbers = count()

    def ask(histories: Sequence[History]) -> list[Stale | None]:
        return [Stale(one, (STANDS,), {}, {"l": 1}) if is_stale(next(numbers), one) else None for one in histories]

    return ask


def deletes(one: History) -> int:
    return sum(record.value is None for record in one.records)


def test_lines_are_left_out_while_a_history_is_stale():
    (found,) = drawn(1, INNER, 3)
    assert deletes(found) > 1
    shrunk = shrink(Stale(found, (STANDS,), {}, {}), STANDS, stale_where(lambda number, one: deletes(one) > 0))
    assert [record.value for record in shrunk.stale.history.lines] == [None]
    assert shrunk.times == REPEATS


def test_a_history_that_is_stale_now_and_then_is_shrunk_too_and_in_its_own_way_alone():
    (found,) = drawn(1, INNER, 3)
    now_and_then = stale_where(lambda number, one: number % 7 == 0 and deletes(one) > 0)
    shrunk = shrink(Stale(found, (STANDS,), {}, {}), STANDS, now_and_then)
    assert (len(shrunk.stale.history.lines), 0 < shrunk.times < REPEATS) == (1, True)
    assert shrink(Stale(found, (MISSES,), {}, {}), MISSES, now_and_then) == Shrunk(
        Stale(found, (MISSES,), {}, {}), times=0
    )


def test_a_history_that_is_too_long_is_not_shrunk():
    long = history(*[ROW] * (MOST_LINES + 1))
    assert [*shorter(long)] == []
    assert len([*shorter(history(*[ROW] * MOST_LINES))]) == 1
    assert shrink(Stale(long, (STANDS,), {}, {}), STANDS, stale_where(lambda *_: True)).times == REPEATS


# Quiet: a clock that only sleeping moves, and looks that follow each other.

IN, OUT = Partition("in", 0), Partition("out", 0)


def look(committed: int, end: int, out: int = 0, stable: int | None = None) -> Look:
    ends = {IN: (end, end), OUT: (out, out if stable is None else stable)}
    return Look({IN: committed} if committed else {}, ends, ["in"])


class Clock:
    def __init__(self, *looks: Look) -> None:
        self.looks, self.now = [*looks], 0.0

    def look(self) -> Look:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def quiet(self, patience: float = 10) -> float:
        return await_quiet(self.look, patience, lambda: self.now, self.sleep)


BUSY = {
    "everything is committed": ([look(0, 0)], 0),
    "a record is behind": ([*[look(4, 5)] * 100, look(5, 5, out=3)], 5),
    "nothing is committed": ([*[look(0, 5)] * 100, look(5, 5, out=3)], 5),
    "a transaction is open": ([*[look(5, 5, out=3, stable=2)] * 100, look(5, 5, out=3)], 5),
    "an end that moves begins the half second anew": (
        [*[look(5, 5)] * 8, *[look(5, 5, out=1)] * 8, look(6, 6, out=2)],
        0.8,
    ),
    "it makes progress": ([*(look(committed, 1000) for committed in range(1, 500)), look(1000, 1000)], 0.05 * 499),
}


@pytest.mark.parametrize(("looks", "seconds"), BUSY.values(), ids=BUSY)
def test_it_is_quiet_once_everything_is_committed_and_no_end_moves(looks, seconds):
    assert Clock(*looks).quiet() == pytest.approx(seconds)


def test_an_application_that_makes_no_progress_is_given_up_with_what_waits():
    with pytest.raises(StreamproofError, match=r"hasn't processed anything for 10 s, and records wait \(in-0\)"):
        Clock(look(1, 5)).quiet()


def test_the_settings_become_properties_of_kafka_streams():
    cluster = Cluster("h:1", {"security.protocol": "SSL"})
    plain = Settings().properties("app", cluster, Path("/state"))
    assert plain["security.protocol"] == "SSL"
    assert "producer.linger.ms" not in plain
    set_up = Settings("left", 7, 8, "exactly_once_v2", 2, 3, 4).properties("app", cluster, Path("/state"))
    assert {name: set_up[name] for name, value in plain.items() if set_up[name] != value} == {
        "commit.interval.ms": "7",
        "statestore.cache.max.bytes": "8",
        "processing.guarantee": "exactly_once_v2",
        "num.stream.threads": "3",
    }
    assert set_up["producer.linger.ms"] == "4"


def test_before_4_3_an_inner_join_that_answers_every_change_cannot_be_recorded(monkeypatch):
    require_recordable(Settings(join=INNER_BY_LEFT))
    monkeypatch.setenv("STREAMPROOF_KAFKA_VERSION", "4.0.0")
    require_recordable(Settings())
    with pytest.raises(BadInput, match="record inner or left, or a later release"):
        require_recordable(Settings(join=INNER_BY_LEFT))


def test_the_broker_is_on_loopback_alone_and_keeps_its_data_in_its_folder(tmp_path):
    found = server_properties(tmp_path, 1, 2)
    assert {part.split("//")[1].split(":")[0] for part in found["listeners"].split(",")} == {"127.0.0.1"}
    assert found["log.dirs"].startswith(str(tmp_path))


def test_free_ports_differ():
    assert len(set(free_ports(5))) == 5


def test_the_reason_in_a_brokers_log_is_the_exception_at_its_root(tmp_path):
    log = tmp_path / "log"
    assert said(log) is None
    log.write_text("[main] WARN something\n")
    assert said(log) is None
    log.write_text(
        "org.apache.kafka.common.KafkaException: bind failed\n\tat x\nCaused by: java.net.BindException: in use\n"
    )
    assert said(log) == "java.net.BindException: in use"
    log.write_text("x\njava.lang.OutOfMemoryError: Java heap space\n\tat x\n")
    assert said(log) == "OutOfMemoryError: Java heap space"


@pytest.mark.parametrize("address", ["", "localhost", "localhost:", "localhost:x", ":9092", "h:0", "h:65536"])
def test_what_is_no_address_is_refused(address):
    with pytest.raises(BadInput, match="give host:port"):
        existing_cluster(address)


def test_a_cluster_that_is_not_reached_is_named_with_the_reason():
    (port,) = free_ports(1)
    with pytest.raises(StreamproofError, match=rf"can't reach Kafka at 127.0.0.1:{port} \(Connection refused\)"):
        existing_cluster(f"127.0.0.1:{port}")


def test_client_properties_are_read_as_kafka_reads_them(tmp_path):
    path = tmp_path / "client.properties"
    path.write_text('# mine\nsecurity.protocol = SASL_SSL\n\nsasl.jaas.config=a b \\\n  password="x=y";\n')
    assert read_client_properties(path) == {
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": 'a b   password="x=y";',
    }


def test_client_properties_that_are_none_are_refused(tmp_path):
    path = tmp_path / "client.properties"
    with pytest.raises(BadInput, match="No such file"):
        read_client_properties(path)
    path.write_text("a=b\nnonsense\n")
    with pytest.raises(BadInput, match="line 2 contains no ="):
        read_client_properties(path)
    path.write_bytes(b"\xff\xff")
    with pytest.raises(BadInput, match="not UTF-8"):
        read_client_properties(path)


def exception(kind: str, message: str | None, cause: Any = None) -> Any:
    return SimpleNamespace(
        getCause=lambda: cause, getMessage=lambda: message, getClass=lambda: SimpleNamespace(getSimpleName=lambda: kind)
    )


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        ("TimeoutException", r"the Kafka at h:1 doesn't answer \(why\): .*--client-config"),
        ("SaslAuthenticationException", "refuses this client .* correct the credentials"),
        ("TopicAuthorizationException", "refuses this client .* ask the cluster's owner for rights"),
        ("RecordTooLargeException", r"the Kafka at h:1 failed \(RecordTooLargeException: why\)"),
    ],
)
def test_an_exception_of_kafka_is_explained_by_its_root(kind, says):
    assert re.search(says, explained(exception("ExecutionException", "x", exception(kind, "why")), "h:1"))
