from __future__ import annotations

import shlex
import threading

import pytest
from streamproof.properties.witnesses.spark.platform import jvm as spark_jvm


@pytest.mark.parametrize("folder", ["/tmp", "/a b", "/it's", '/say "so"', "/back\\slash"])
def test_an_option_is_read_as_one_whatever_is_in_it(folder: str) -> None:
    # Spark reads a list of options as a shell does, but for variables.
    option = f"-Djava.io.tmpdir={folder}"
    assert shlex.split(f"-XX:+UseSerialGC {spark_jvm._quoted(option)}") == ["-XX:+UseSerialGC", option]


def test_only_the_main_thread_asks_for_the_end_of_the_jvm_with_its_own() -> None:
    asked = []
    thread = threading.Thread(target=lambda: asked.append(spark_jvm.ending_with_parent()))
    thread.start()
    thread.join()
    assert asked == [None]
