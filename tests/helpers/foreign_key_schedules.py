"""Schedules of the foreign-key join, as texts of `notation`: the worked example, bugs that shipped, and the races."""

from __future__ import annotations

from typing import Any

EXAMPLE = "R Y=bar L A=1|Y A=2|Y >Y <Y/A >Y <Y/A"
"""KIP-213, "Original Value Hash": without the hash the same result is emitted twice."""

BUG_SCHEDULES: dict[str, tuple[str, dict[str, Any]]] = {
    "1 KAFKA-9244": ("R r1=A r2=B L l=v|r1 >r1 <r1/l l=v|r2 >r1 >r2 <r2/l R r1=A2 <r1/l", {"join": "left"}),
    "2 KAFKA-3705": ("R r1=A L l=v|r1 >r1 <r1/l l=v|r9 >r1 >r9 <r9/l", {}),
    "2 KAFKA-3705, left": ("R r1=A L l=v|r1 >r1 <r1/l l=v|r9 >r1 >r9 <r9/l", {"join": "left"}),
    "3 KAFKA-16434": ("R r1=A L l=v|r1 >r1 <r1/l l=v|null >r1 <r1/l", {}),
    "4 KAFKA-16407": ("R r1=A L l=v|null l=v|r1 >r1 <r1/l", {}),
    "5 KAFKA-18713": ("R r1=A r2=B L l=v|r1 >r1 <r1/l l=v|r2 >r1 >r2 <r2/l <r1/l", {"join": "left"}),
    "6 KAFKA-16394": ("R r1=A L l=v|r1 >r1 <r1/l l=∅ >r1 <r1/l <r1/l", {}),
    "8 no hash check": ("R r1=A L l=v1|r1 >r1 l=v2|r1 <r1/l", {}),
    "8 no hash check, deleted": ("R r1=A L l=v1|r1 >r1 l=∅ <r1/l", {}),
    "9 KAFKA-15303": ("R r1=A L l=v|r1 >r1 <r1/l", {}),
}
"""Bugs that shipped (`docs/facts.md`): a schedule on which each shows, and the options of the join."""

GOOD = {
    "1 KAFKA-9244": "l=(v|r1,A)@2 l=(v|r2,B)@3",
    "2 KAFKA-3705": "l=(v|r1,A)@1 l=∅@2",
    "2 KAFKA-3705, left": "l=(v|r1,A)@1 l=(v|r9,null)@2",
    "3 KAFKA-16434": "l=(v|r1,A)@1 l=∅@2",
    "4 KAFKA-16407": "l=(v|r1,A)@2",
    "5 KAFKA-18713": "l=(v|r1,A)@2 l=(v|r2,B)@3",
    "6 KAFKA-16394": "l=(v|r1,A)@1 l=∅@2",
    "8 no hash check": "",
    "8 no hash check, deleted": "",
    "9 KAFKA-15303": "l=(v|r1,A)@1",
}
"""What comes out of those schedules where the bug isn't."""

SHOWN = "R r1=x L l=a|r1 >r1 <r1/l"
RACES = {
    "1 delete, then insert": f"{SHOWN} l=∅ >r1 l=b|r2 >r2 <r1/l",
    "1 delete, then insert under the same key while the row goes away": (
        f"{SHOWN} l=∅ l=b|r1 R r1=∅ <r1/l >r1 >r1 <r1/l"
    ),
    "1 delete, then insert with a null key": f"{SHOWN} l=∅ >r1 l=b|null <r1/l",
    "2 update under the same key while the row goes away": f"{SHOWN} R r1=∅ L l=b|r1 <r1/l >r1",
    "3 null key twice": f"{SHOWN} l=b|null >r1 l=c|null <r1/l",
    "3 null key, then delete": f"{SHOWN} l=b|null >r1 l=∅ <r1/l",
    "3 null key, then one whose row isn't there": f"{SHOWN} l=b|null >r1 l=c|r2 >r2 <r1/l",
    "4 move to a row that isn't there, then update": f"{SHOWN} l=b|r2 >r1 >r2 l=c|r2 <r2/l >r2",
}
