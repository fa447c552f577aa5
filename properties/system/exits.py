"""Convert an exit of the program by the user's code to an error, because streamproof would end silently."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import Counter
from collections.abc import Iterator
from typing import NoReturn

from ...reference.core.errors import BadInput

_leave = os._exit
_refusing: Counter[tuple[int, int]] = Counter()
"""The number of active blocks of each thread, by process and thread number."""


@contextlib.contextmanager
def without_exit(where: str) -> Iterator[None]:
    """Refuse code that ends the program within the block, by `sys.exit` or `os._exit`, in this thread.

    A process that the code forks ends at the end of the block: only the original process continues.

    Args:
        where: The code's name in messages, such as a function with its file and line.

    Raises:
        BadInput: The code tried to end the program.
    """
    own = os.getpid(), threading.get_ident()
    os._exit = _refuse
    _refusing[own] += 1
    try:
        yield
    except SystemExit as error:
        raise BadInput(f"{where} ended the program with exit({error.code!r}): return instead") from None
    finally:
        if os.getpid() != own[0]:
            _leave(0)
        _refusing[own] -= 1


def _refuse(status: int) -> NoReturn:
    if _refusing[os.getpid(), threading.get_ident()]:
        raise SystemExit(status)
    _leave(status)
