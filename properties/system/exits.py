"""Turn an exit by the user's code into a message, because its caller would end silently."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NoReturn

from ...reference.core.errors import BadInput


@contextlib.contextmanager
def without_exit(where: str) -> Iterator[None]:
    """Refuse code that ends the program within the block, by `sys.exit` or `os._exit`.

    A process that the code forks ends where it would leave the block: only the first process continues.

    Args:
        where: The code's name in messages, such as a function with its file and line.

    Raises:
        BadInput: The code would have ended the program.
    """
    own, leave, within = os.getpid(), os._exit, True

    def refuse(status: int) -> NoReturn:
        if within and os.getpid() == own:
            raise SystemExit(status)
        leave(status)

    os._exit = refuse
    try:
        yield
    except SystemExit as error:
        raise BadInput(f"{where} ended the program with exit({error.code!r}): return instead") from None
    finally:
        if os.getpid() != own:
            leave(0)
        os._exit, within = leave, False
