"""The remedies of errors of a script, in terms of the command line, where a test says them by arguments of `Script`."""

from __future__ import annotations

import re

from .....reference.core.errors import BadInput

_REMEDIES = (
    (
        r"give its arguments with args=\[…\], and its environment with env=\{…\}",
        "give its arguments, --argument VALUE, and set the environment variables that it needs",
    ),
    (r"mend it, or name the query to check, Script\(…, query=0\)", "mend it, or name the query to check, --query 0"),
    (r"reads=\{'([^']+)': Input\(…\)\}", r'--input "\1=user string, at timestamp, …"'),
    (r"reads=\{'([^']+)': \[\{…\}\]\}", r"--static \1=FILE.csv"),
    (r"give what its platform has with globals=\{'(\w+)': …\}", r"define \1, or guard the line by a test for it"),
    (r"; install it, or give a stand-in in sys\.modules", "; install it beside streamproof"),
)
"""Patterns of remedies, each with what replaces it."""


def in_options(error: BadInput) -> BadInput:
    """Return an error of a script with its remedy as options of the command line."""
    message = error.message
    for pattern, by in _REMEDIES:
        message = re.sub(pattern, by, message)
    return error if message == error.message else BadInput(message)
