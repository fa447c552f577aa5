"""Output as TLC 2.15 prints it, for tests of what is made of it."""

from __future__ import annotations

MODULE = """\
---- MODULE M ----
EXTENDS Integers
CONSTANT N
VARIABLE x
ASSUME N >
  5
Init == x = 0
Next == x' = x + 1
Low == x < 3
Up == [][x' > x]_x
Live == <>(x = 5)
====
"""
CONFIGURATION = """\
INIT Init
NEXT Next
CONSTANT N = 3
INVARIANTS Low
  Nope
PROPERTY Up Live
"""


def message(code, text, severity=0):
    return f"@!@!@STARTMSG {code}:{severity} @!@!@\n{text}\n@!@!@ENDMSG {code} @!@!@\n"


INITIALLY = "current state is not a legal state\nWhile working on the initial state:\n/\\ x = 0\n/\\ y = null"
NESTED = "0. Line 7, column 9 to line 8, column 21 in M\n1. Line 7, column 12 to line 7, column 38 in M"
ASSERTED = message(2132, "Assert evaluated to FALSE").rstrip()
UP = "<Up line 8, col 1 to line 8, col 5 of module M>"
STATES = message(2217, "1: <Initial predicate>\nx = 0\n", 4) + message(
    2217, "2: <Next line 8, col 9 to line 8, col 18 of module M>\nx = 1\n", 4
)
COUNTS = (
    message(2200, "Progress(3) at 2026-11-21 13:33:28: 4 states generated (84 s/min), "
                  "3 distinct states found (42 ds/min), 1 states left on queue.")
    + message(2199, "4 states generated, 3 distinct states found, 1 states left on queue.")
    + message(2194, "The depth of the complete state graph search is 2.")
)  # fmt: skip
SUCCESS = message(2193, "Model checking completed. No error has been found.")
