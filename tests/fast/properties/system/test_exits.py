"""Code of the user's that would end the program is refused, and nothing else is kept from ending it."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest
from streamproof import BadInput
from streamproof.properties.system.exits import without_exit

OTHER_THREAD = """
import os, threading
from streamproof.properties.system.exits import without_exit
with without_exit("the job"):
    with without_exit("its oracle"):
        pass
    threading.Thread(target=lambda: os._exit(99)).start()
    threading.Event().wait()
"""


@without_exit("the job")
def leaving(leave: Callable[[int], None]) -> None:
    with without_exit("its oracle"):
        pass
    leave(3)


@pytest.mark.parametrize("leave", [sys.exit, lambda status: os._exit(status)])
def test_an_exit_is_refused_within_a_block_that_has_had_another_block(leave: Callable[[int], None]) -> None:
    with pytest.raises(BadInput, match=r"the job ended the program with exit\(3\): return instead"):
        leaving(leave)


def test_another_thread_ends_the_program_while_a_block_runs() -> None:
    assert subprocess.run([sys.executable, "-c", OTHER_THREAD], timeout=600, check=False).returncode == 99


def test_blocks_of_two_threads_that_end_in_any_order_leave_each_other_alone() -> None:
    began, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with without_exit("the other job"):
            began.set()
            ended.wait(600)

    thread = threading.Thread(target=hold)
    with without_exit("the job"):
        thread.start()
        began.wait(600)
    ended.set()
    thread.join(600)
    with pytest.raises(BadInput, match="the last job ended"), without_exit("the last job"):
        os._exit(1)
