"""The command `broker-races` on a broker of its own: what it finds, and what is left after whatever goes wrong.

Skipped by name where the broker's jars can't be had.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from faults import Fault, Running, assert_ends_as_it_must, processes_left, processes_of
from streamproof.properties.models.broker.races import changes_of, of_join
from streamproof.properties.system.work import sweep
from streamproof.properties.witnesses.by_name import witness_named
from streamproof.properties.witnesses.kafka.jvm import kafka_jars
from streamproof.properties.witnesses.kafka_broker import broker
from streamproof.properties.witnesses.kafka_broker.broker import Cluster, broker_jars, free_ports, own_broker
from streamproof.reference.core.errors import MissingTool
from streamproof.reference.core.history import CUT, History
from streamproof.reference.core.records import Record
from streamproof.specs.checking import find_tools
from streamproof.specs.traces import read_trace
from streamproof.specs.validation import validate

SELDOM = pytest.mark.weekly("our commits hardly change it: CI has the inner join, and SIGINT")
CACHE = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
SECONDS = 240


@pytest.fixture(scope="module", autouse=True)
def jars() -> None:
    try:
        kafka_jars()
        broker_jars()
    except MissingTool as error:
        pytest.skip(f"kafka-broker: {error}")


@pytest.fixture(scope="module")
def cluster(jars: None) -> Iterator[Cluster]:
    """A broker for the tests that don't ask how the command's own is started and stopped."""
    with own_broker() as started:
        yield started


class Races(Running):
    """A run of `streamproof broker-races` in a process of its own."""

    def __init__(self, folder: Path, *arguments: str, given: Mapping[str, str] = {}) -> None:
        super().__init__(("broker-races", *arguments), folder, given=given)

    def wait_for(self, text: str) -> None:
        self.wait_until(lambda running: any(text in line for line in [*running.err]))

    def broker(self) -> int:
        """Return the process of the broker."""
        is_broker = [p for p in processes_of(self.mark) if b"kafka_2.13" in Path(f"/proc/{p}/cmdline").read_bytes()]
        (found,) = (p for p in is_broker if p != self.process.pid)
        return found

    def end(self) -> tuple[int, str, str]:
        return self.ended(), "".join(self.out), "".join(self.err)

    def folders_left(self) -> list[Path]:
        return [path for path in self.temporary.glob("streamproof-*/*") if path.is_dir()]


@pytest.mark.weekly("half a minute: CI reads the topics of each race of the same join")
def test_every_race_of_left_changes_ends_stale_in_nine_of_ten_histories_the_others_in_some_and_all_stay_so(
    tmp_path: Path,
) -> None:
    running = Races(tmp_path, "--histories", "300", "--restart", "--wipe", "--json")
    code, out, err = running.end()
    assert code == 1, err
    report = json.loads(out)
    assert [race["race"] for race in report["races"]] == of_join("inner")
    for race in report["races"]:
        # Left and right changes reach Kafka Streams by two topics: on a busy machine one may be ahead of the other.
        on_two_topics = "R " in changes_of(race["race"])
        assert race["stale"] >= (1 if on_two_topics else 270), race
        assert race["after"] == {"after a restart": race["stale"], "after wiping the state": race["stale"]}
        assert race["kinds"] == {"a row remains that should be deleted": race["stale"]}
    assert not processes_left(running.mark)
    assert running.folders_left() == []


@pytest.mark.parametrize(
    "settings",
    [
        ("--join", "left"),
        pytest.param(
            ("--join", "inner-by-left", "--guarantee", "exactly_once_v2", "--partitions", "2", "--threads", "2"),
            marks=SELDOM,
        ),
    ],
    ids=" ".join,
)
def test_joins_that_ask_for_every_answer_never_end_stale(
    tmp_path: Path, settings: tuple[str, ...], cluster: Cluster
) -> None:
    on_cluster = (*settings, "--bootstrap", cluster.bootstrap)
    running = Races(tmp_path, "drawn", "lose-gain", "--histories", "1000", *on_cluster)
    code, out, err = running.end()
    assert (code, "conforms: 0 of 2,000 results are stale" in out) == (0, True), out + err


@pytest.mark.parametrize("join", ["inner", *(pytest.param(join, marks=SELDOM) for join in ("left", "inner-by-left"))])
def test_what_the_topics_have_is_a_behaviour_of_the_specification(tmp_path: Path, join: str, cluster: Cluster) -> None:
    recording = tmp_path / "trace.jsonl"
    on_cluster = ("--record", str(recording), "--bootstrap", cluster.bootstrap)
    code, _, err = Races(tmp_path, "--histories", "5", "--join", join, *on_cluster).end()
    assert code == (1 if join == "inner" else 0), err
    trace = read_trace(recording)
    found = validate(trace, find_tools(), timeout=SECONDS)
    assert (len(trace.parts()) >= 5 * len(of_join("inner")), found.refusals) == (True, ())
    # The same with one message that asks otherwise: it is refused at its line, and the others stand.
    doctored = next(event for event in trace.events if event.kind == "subscription sent" and event.of is None)
    asks = "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"
    events = tuple(replace(event, instruction=asks) if event is doctored else event for event in trace.events)
    (refusal,) = validate(replace(trace, events=events), find_tools(), timeout=SECONDS).refusals
    assert refusal.event is not None
    assert refusal.event.line == doctored.line


@pytest.mark.weekly("half a minute: CI reads the topics of the same join")
def test_the_witness_has_the_table_of_each_history_with_its_timestamps() -> None:
    def history(name: str, artist: str, **options: str) -> History:
        rows = [("right", "r1", "x", 7), ("left", "a", {artist: "r1"}, 3), ("left", "b", {artist: "r2"}, 5)]
        lines = [Record(*row) for row in rows]
        return History("foreign_key_join", {"foreign_key": artist, **options}, (*lines, CUT), name=name)

    kept = {"join": "left", "null_foreign_key": "keep"}
    histories = [history("inner", "artist"), history("left", "artist", **kept), history("other", "band")]
    found, wanted = (witness_named(name).evaluate(histories) for name in ("kafka-broker", "reference"))
    assert [(one.history, one.result) for one in found] == [(one.history, one.result) for one in wanted]
    assert [len(one.result) for one in found] == [1, 2, 1]


SIGNALS = [signal.SIGINT, *(pytest.param(number, marks=SELDOM) for number in (signal.SIGTERM, signal.SIGKILL))]


@pytest.mark.parametrize("number", SIGNALS)
def test_a_signal_leaves_no_process_and_no_folder(tmp_path: Path, number: signal.Signals, monkeypatch) -> None:
    running = Races(tmp_path, "lose-gain", "--histories", "2000", "--pause-ms", "0:20000")
    running.wait_for("1 of 2")
    running.process.send_signal(number)
    code, _, err = running.end()
    killed = number is signal.SIGKILL
    assert code == (-number if killed else 3), err
    assert not processes_left(running.mark)
    if killed:  # the next process sweeps
        monkeypatch.setattr("tempfile.tempdir", str(running.temporary))
        sweep()
    assert running.folders_left() == []


def test_a_broker_that_dies_in_the_middle_is_reported_and_nothing_is_left(tmp_path: Path) -> None:
    running = Races(tmp_path, "lose-gain", "--histories", "2000", "--pause-ms", "0:20000")
    running.wait_for("1 of 2")
    os.kill(running.broker(), signal.SIGKILL)
    code, out, err = running.end()
    assert code == 3, out + err
    assert err.splitlines()[-1].startswith("error: the Kafka broker ended; its log is ")
    assert not processes_left(running.mark)
    assert running.folders_left() == []


@pytest.mark.weekly("a broker that starts twice, for a rare failure")
def test_a_port_that_another_process_takes_first_is_left_to_it(monkeypatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        offered = [[taken.getsockname()[1], *free_ports(1)], free_ports(2)]
        monkeypatch.setattr(broker, "free_ports", lambda count: offered.pop(0))
        with own_broker() as cluster:
            assert cluster.bootstrap != f"127.0.0.1:{taken.getsockname()[1]}"
            cluster.require_alive()
        assert not offered


LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule required"
WITH_CREDENTIALS = {
    "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "listener.name.plaintext.plain.sasl.jaas.config": f'{LOGIN} username="us" password="right" user_us="right";',
}


@SELDOM
def test_credentials_are_those_of_the_file_that_is_named(tmp_path: Path) -> None:
    def asked(password: str) -> tuple[int, str, str]:
        folder = tmp_path / password
        folder.mkdir()
        login = f'sasl.jaas.config={LOGIN} username="us" password="{password}";'
        client = f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n{login}\n"
        of_cluster = ("--bootstrap", cluster.bootstrap, "--client-config", "client")
        return Races(folder, "lose-gain", "--histories", "20", *of_cluster, given={"client": client}).end()

    with own_broker(WITH_CREDENTIALS) as cluster:
        code, out, err = asked("right")
        assert code == 1, out + err
        code, out, err = asked("wrong")
    assert code == 3, out + err
    assert "refuses this client (SaslAuthenticationException: " in err.splitlines()[-1]
    assert err.splitlines()[-1].endswith("or ask the cluster's owner for rights")


def test_a_cluster_of_others_is_used_and_left_as_it_was(tmp_path: Path, cluster: Cluster) -> None:
    from streamproof.properties.witnesses.kafka.jvm import kafka_jvm
    from streamproof.properties.witnesses.kafka_broker.clients import Clients

    code, out, err = Races(tmp_path, "lose-gain", "--histories", "50", "--bootstrap", cluster.bootstrap).end()
    assert code == 1, out + err
    clients = Clients(kafka_jvm().gateway, cluster)
    deadline = time.monotonic() + SECONDS
    while clients.topics("streamproof-") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert clients.topics("streamproof-") == []
    clients.close()


def large(key: str) -> str:
    header = '{"operator": "foreign_key_join", "options": {"foreign_key": "f"}}\n'
    return header + json.dumps({"input": "right", "key": key, "value": "x" * 2_000_000, "timestamp": 1}) + "\n"


FAULTS = [
    Fault(
        "nothing listens",
        ("broker-races", "--bootstrap", "127.0.0.1:1"),
        r"error: can't reach Kafka at 127.0.0.1:1 \(Connection refused\): start it, .+",
    ),
    Fault(
        "no jars and no network",
        ("broker-races",),
        r"error: The jars of org.apache.kafka:\S+ are missing, and Ivy can't fetch them .+",
        environment={
            "XDG_CACHE_HOME": None,
            "STREAMPROOF_KAFKA_JARS": None,
            "JAVA_TOOL_OPTIONS": " ".join(
                f"-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort=1" for kind in ("http", "https")
            ),
        },
        left=(),
        after_steps=True,
    ),
    Fault(
        "a folder without the broker's jars",
        ("broker-races",),
        "error: STREAMPROOF_KAFKA_JARS=.+ has no kafka-streams-test-utils-.+",
        environment={"STREAMPROOF_KAFKA_JARS": "."},
    ),
    Fault(
        "a record that Kafka refuses",
        ("broker-races", "large.jsonl", "--histories", "1"),
        r"error: the Kafka at \S+ failed \(RecordTooLargeException: .+\)",
        given={"large.jsonl": large("r")},
        environment={"XDG_CACHE_HOME": CACHE},
        after_steps=True,
    ),
]


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_what_cannot_be_run_ends_with_one_message(fault: Fault, tmp_path: Path) -> None:
    assert_ends_as_it_must(fault, tmp_path)
