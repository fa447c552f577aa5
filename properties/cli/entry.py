"""The entry point of the command `streamproof`: it handles signals before the slow import of the other modules."""

from __future__ import annotations

import contextlib
import os
import sys
from typing import NoReturn

from ..system import signals

COULD_NOT_RUN = 3


def main() -> NoReturn:
    """Run the command line, and end with its exit code."""
    signals.install()
    try:
        with signals.interrupting():
            from .app import main as run
    except KeyboardInterrupt:
        signals.leave()
        _say("interrupted: nothing was begun yet")
        os._exit(COULD_NOT_RUN)
    try:
        run()
    except KeyboardInterrupt:  # Ctrl-C, before the command line could handle it
        signals.leave()
        _say("interrupted: the results so far are on disk")
        raise SystemExit(COULD_NOT_RUN) from None


def _say(text: str) -> None:
    with contextlib.suppress(OSError):  # the terminal may be closed
        print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
