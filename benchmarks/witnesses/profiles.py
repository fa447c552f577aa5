"""The options of the session windows whose histories are measured; the clock advances alike in all histories."""

from __future__ import annotations

from streamproof.properties.generators.draws import SCHEDULE, HistorySettings
from streamproof.properties.registration.registration import registration_of

SESSIONS = registration_of("session_windows")
PROFILES = {
    name: HistorySettings("session_windows", SESSIONS.profiles[name], SCHEDULE) for name in ("update", "close", "own")
}
assert SESSIONS.native is not None
PROFILES["native"] = HistorySettings("session_windows", SESSIONS.native.profiles["native"].options, SCHEDULE)
