from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from streamproof.properties.witnesses.kafka import jvm as kafka_jvm
from streamproof.properties.witnesses.kafka.functions import JavaFunctions
from streamproof.properties.witnesses.kafka.versions import DEFAULT

# A process that has started a JVM, emits its id, and then waits to be ended. It heeds Ctrl-C, which is ignored where
# the tests run in the background of a shell.
STARTS = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
from streamproof.properties.witnesses.kafka.jvm import kafka_jvm
print(kafka_jvm()._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL, None], ids=str)
def test_the_jvm_ends_with_its_process_however_that_ends(kafka, how):
    process = subprocess.Popen(
        [sys.executable, "-c", STARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert process.stdin is not None
    assert process.stdout is not None
    jvm = int(process.stdout.readline())
    process.stdin.close() if how is None else process.send_signal(how)
    process.wait(30)
    process.stdout.close()
    assert ends(jvm)


def ends(process: int, within_seconds: float = 300) -> bool:
    deadline = time.monotonic() + within_seconds
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        if Path(f"/proc/{process}/stat").is_file() and " Z " in Path(f"/proc/{process}/stat").read_text():
            return True  # ended, and nobody has asked for its exit code
        time.sleep(0.05)
    return False


def test_there_is_one_jvm_a_process_and_release(kafka):
    assert kafka_jvm.kafka_jvm() is kafka_jvm.kafka_jvm(DEFAULT)


def test_a_jvm_that_ended_is_started_anew(kafka, monkeypatch):
    monkeypatch.setattr(kafka_jvm, "_jvms", {})
    first = kafka_jvm.kafka_jvm()
    first.stop()
    first.stop()
    second = kafka_jvm.kafka_jvm()
    assert (first.is_alive, second.is_alive) == (False, True)
    second.stop()


def test_ctrl_c_is_left_to_this_process(kafka):
    jvm = kafka_jvm.kafka_jvm()
    assert os.getpgid(jvm._process.pid) != os.getpgid(0)


def test_functions_are_made_without_java_code(kafka):
    functions = JavaFunctions(kafka_jvm.kafka_jvm().gateway)
    shout = functions.then(functions.template("%s!", 1), functions.method("String", "toUpperCase", "String"))
    every = functions.implementing("java.util.function.Function", functions.each(shout))
    assert [*every.apply(functions.java.util.List.of("one", "two"))] == ["ONE!", "TWO!"]
