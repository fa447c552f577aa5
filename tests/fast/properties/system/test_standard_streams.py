"""Standard output that is kept for one text."""

from __future__ import annotations

import subprocess
import sys

WRITING = """
import os, subprocess, sys
from streamproof.properties.system.standard_streams import output_alone

with output_alone() as show:
    print("by Python")
    subprocess.run(["echo", "by a process"])
    show("first")
    show("the text")
print(" and what follows")
"""


def test_only_the_last_text_is_on_standard_output_whoever_writes_meanwhile() -> None:
    done = subprocess.run([sys.executable, "-c", WRITING], capture_output=True, text=True, timeout=60)
    assert done.stdout == "the text and what follows\n"
    assert sorted(done.stderr.splitlines()) == ["by Python", "by a process"]
