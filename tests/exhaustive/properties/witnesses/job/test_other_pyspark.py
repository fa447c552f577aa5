"""What a process of another PySpark is given: jobs by their names, tables as they are, an environment that fits it."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest
from streamproof.properties.witnesses.job import other_pyspark

PARENT = f"""
import os, socket, subprocess, sys
ours, theirs = socket.socketpair()
both = [ours.fileno(), theirs.fileno()]  # its own end stays open, so that it reads on
child = subprocess.Popen([sys.executable, "-P", "-m", {other_pyspark.PROGRAM!r}, str(both[1])], pass_fds=both)
print(child.pid, flush=True)
sys.stdin.read()
os._exit(0)
"""


def test_the_process_ends_with_the_process_that_started_it() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    time.sleep(20)  # it has imported what it needs, and waits
    os.kill(child, 0)
    parent.kill()
    parent.communicate()
    for _ in range(100):
        try:
            os.kill(child, 0)
        except ProcessLookupError:
            return
        time.sleep(0.1)
    pytest.fail(f"process {child} lives on")
