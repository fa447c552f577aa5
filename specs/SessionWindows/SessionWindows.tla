---------------------------- MODULE SessionWindows ----------------------------
(* Session windows: records of a key at most a gap apart share a session.                                              *)
(*                                                                                                                     *)
(* Records arrive one by one, in any order. A record merges with the open sessions within the gap. The changelog emits *)
(* tombstones for the merged sessions, then the new session. A session is closed when it ends more than gap + grace    *)
(* before the clock. A closed session is final, and a record that belongs only to a closed session is late and         *)
(* dropped. The store may forget sessions that ended before the retention.                                             *)
(*                                                                                                                     *)
(* The behaviours include every order of arrival of every bag of records, and every time at which the store may        *)
(* forget.                                                                                                             *)
(*                                                                                                                     *)
(* Source: KIP-94, "Proposed Changes", "Late arriving data", "SessionStore"; KIP-633 for grace; Spark's session window *)
(* for the batch clock and for lateness of the record alone. The operator in Python is reference/session_windows.py,   *)
(* which uses the same names with the suffix _ms.                                                                      *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Keys,           \* the keys of records
    LastTime,       \* timestamps are 0 to LastTime
    Arrivals,       \* the largest number of records with a key
    Gap,            \* the inactivity gap; records exactly one gap apart still merge
    Grace,          \* the time for which a session stays open after its gap
    Retention,      \* the time for which a session is stored after its end; at least Gap + Grace
    Clock,          \* "stream_time": the largest timestamp so far; "batch": the largest timestamp of earlier batches
    Emit,           \* "update": every change of a session is emitted; "close": only its final value, once
    Late,           \* "merged": a record is late if its merged session is closed; "own": if the record is before the edge
    Closed,         \* "final": a closed session is never merged; "revised": a closed session can merge while it is stored
    Mutant          \* "none", or the mutation; see Mutants

Mutants == {
    "none",
    "gap exclusive",         \* records exactly one gap apart do not merge
    "merges one",            \* if a record connects two sessions, only the first session is merged
    "no tombstone",          \* merged sessions emit no tombstone
    "closes early",          \* KAFKA-8289: a session is closed when it ends exactly gap + grace before the clock
    "gap forgotten",         \* KAFKA-12718: a session is closed when it ends more than grace before the clock
    "late kept",             \* a late record is not dropped, and starts a closed session
    "rescue forgotten",      \* a record before the edge is dropped, even if it would merge with an open session
    "forgets early",         \* Kafka Streams: the store forgets sessions that end exactly the retention before the clock
    "clock follows",         \* the clock is the last timestamp, not the largest
    "null key moves clock",  \* a record without a key moves the clock
    "tells again"}           \* a closed session is emitted whenever the clock moves, not once

ASSUME LastTime \in Nat /\ Arrivals \in Nat /\ Gap \in Nat \ {0} /\ Grace \in Nat /\ Retention >= Gap + Grace
ASSUME Clock \in {"stream_time", "batch"} /\ Emit \in {"update", "close"} /\ Late \in {"merged", "own"}
ASSUME Closed \in {"final", "revised"} /\ Mutant \in Mutants

VARIABLES
    store,          \* for each key the stored sessions, also closed sessions
    clock,          \* the time of the clock
    largest,        \* the largest timestamp so far, to which the batch clock moves at a cut
    emitted,        \* the folded changelog: for each key the emitted sessions, one for each window
    emissions,      \* the number of emitted sessions, if Emit is "close"
    accepted,       \* the accepted records, each with the time of the clock at its arrival
    dropped         \* the dropped late records, each with the time of the clock at its arrival

vars == <<store, clock, largest, emitted, emissions, accepted, dropped>>

-----------------------------------------------------------------------------
(* Definitions of sessions and records. The aggregate is a count. A number distinguishes equal records.                *)

Times == 0..LastTime
Session(start, end, count) == [start |-> start, end |-> end, count |-> count]
Window(session) == <<session.start, session.end>>
Record(key, timestamp, now, number) == [key |-> key, timestamp |-> timestamp, clock |-> now, number |-> number]

Maximum(numbers) == CHOOSE number \in numbers : \A other \in numbers : other <= number
Minimum(numbers) == CHOOSE number \in numbers : \A other \in numbers : other >= number
Larger(one, other) == IF one > other THEN one ELSE other

(* A session is closed if it ends before the close edge, and may be forgotten if it ends before the edge of the        *)
(* retention.                                                                                                          *)
CloseEdge(now) == now - Gap - Grace
ExpiryEdge(now) == now - Retention

(* The edge that the state machine uses, which differs from the right edge only in mutants.                            *)
EdgeUsed(now) ==
    CASE Mutant = "closes early" -> CloseEdge(now) + 1
      [] Mutant = "gap forgotten" -> now - Grace
      [] OTHER -> CloseEdge(now)

-----------------------------------------------------------------------------
(* The meaning: the table of the accepted records, independent of the order of arrival.                                *)

Timestamps(session) == {record.timestamp : record \in session}
EndOf(session) == Maximum(Timestamps(session))

(* The island of a record: all records connected to it by steps of at most a gap.                                      *)
RECURSIVE Island(_, _)
Island(found, records) ==
    LET near == {record \in records \ found : \E other \in found :
            record.timestamp - other.timestamp \in -Gap..Gap}
    IN  IF near = {} THEN found ELSE Island(found \cup near, records)

Islands(records) == {Island({record}, records) : record \in records}

(* The sessions of a key at the time `now` of the clock, as sets of records. At every close edge the sessions that     *)
(* ended before the edge are final. All other records form islands with the records accepted at this edge.             *)
RECURSIVE SessionsAt(_, _)
SessionsAt(key, now) ==
    IF now < 0 THEN {}
    ELSE LET before == SessionsAt(key, now - 1)
             final == {session \in before : EndOf(session) < CloseEdge(now)}
             came == {record \in accepted : record.key = key /\ record.clock = now}
         IN  final \cup Islands(UNION (before \ final) \cup came)

Whole(session) == Session(Minimum(Timestamps(session)), EndOf(session), Cardinality(session))

Sessions(key) == {Whole(session) : session \in SessionsAt(key, LastTime)}

Meaning(key) ==
    IF Emit = "update" THEN Sessions(key) ELSE {session \in Sessions(key) : session.end < CloseEdge(clock)}

(* The session of a record if it were accepted: its island among the records that aren't final.                        *)
EndWith(record) ==
    LET open == UNION {session \in SessionsAt(record.key, LastTime) : EndOf(session) >= CloseEdge(record.clock)}
    IN  EndOf(Island({record}, open))

IsLate(record) == (IF Late = "merged" THEN EndWith(record) ELSE record.timestamp) < CloseEdge(record.clock)

-----------------------------------------------------------------------------
(* The state machine.                                                                                                  *)

(* The sessions that a move of the clock closes, and which are emitted if Emit is "close".                             *)
Closing(key, now) ==
    {session \in store[key] :
        session.end < EdgeUsed(now) /\ (session.end >= EdgeUsed(clock) \/ Mutant = "tells again")}

(* The table of a key after some sessions are emitted, and the sessions of some windows are retracted.                 *)
Folded(table, taken_back, sessions) ==
    {session \in table : Window(session) \notin {Window(other) : other \in taken_back \cup sessions}} \cup sessions

(* The clock moves, and the sessions that it closes are emitted.                                                       *)
MoveClock(now, table) ==
    LET moves == IF Mutant = "clock follows" THEN now # clock ELSE now > clock
        closing(key) == IF Emit = "close" /\ moves THEN Closing(key, now) ELSE {}
    IN  /\ clock' = now
        /\ emitted' = [key \in Keys |-> Folded(table[key], {}, closing(key))]
        /\ emissions' = emissions + Cardinality(UNION {{<<key, session>> : session \in closing(key)} : key \in Keys})

(* The open sessions of a key within the gap of a timestamp.                                                           *)
Near(key, timestamp, edge) ==
    LET reach == IF Mutant = "gap exclusive" THEN Gap - 1 ELSE Gap
        near == {session \in store[key] :
            /\ session.end >= timestamp - reach /\ session.start <= timestamp + reach
            /\ session.end >= edge \/ Closed = "revised"}
    IN  IF Mutant = "merges one" /\ near # {}
        THEN {session \in near : session.end = Minimum({other.end : other \in near})}
        ELSE near

RECURSIVE Counted(_)
Counted(sessions) ==
    IF sessions = {} THEN 0
    ELSE LET one == CHOOSE session \in sessions : TRUE IN one.count + Counted(sessions \ {one})

Numbered(key, timestamp, now, records) ==
    LET same == {record \in records : record.key = key /\ record.timestamp = timestamp /\ record.clock = now}
    IN  Record(key, timestamp, now, Cardinality(same) + 1)

ClockAfter(timestamp) ==
    CASE Clock = "batch" -> clock
      [] Mutant = "clock follows" -> timestamp
      [] OTHER -> Larger(clock, timestamp)

(* A record arrives and moves the clock. It merges with the open sessions within the gap, and the new session is       *)
(* emitted.                                                                                                            *)
Arrive(key, timestamp) ==
    LET now == ClockAfter(timestamp)
        edge == EdgeUsed(now)
        near == Near(key, timestamp, edge)
        start == Minimum({timestamp} \cup {session.start : session \in near})
        end == Maximum({timestamp} \cup {session.end : session \in near})
        session == Session(start, end, Counted(near) + 1)
        late == /\ Mutant # "late kept"
                /\ (IF Late = "merged" /\ Mutant # "rescue forgotten" THEN end ELSE timestamp) < edge
        taken_back == IF Mutant = "no tombstone" THEN {} ELSE near
    IN  /\ Cardinality(accepted) + Cardinality(dropped) < Arrivals
        /\ largest' = Larger(largest, timestamp)
        /\ IF late
           THEN /\ dropped' = dropped \cup {Numbered(key, timestamp, now, dropped)}
                /\ MoveClock(now, emitted)
                /\ UNCHANGED <<store, accepted>>
           ELSE /\ accepted' = accepted \cup {Numbered(key, timestamp, now, accepted)}
                /\ store' = [store EXCEPT ![key] = (@ \ near) \cup {session}]
                /\ dropped' = dropped
                /\ IF Emit = "close"
                   THEN MoveClock(now, emitted)
                   ELSE MoveClock(now, [emitted EXCEPT ![key] = Folded(@, taken_back, {session})])

(* A record without a key is dropped, and doesn't move the clock.                                                      *)
ArriveWithoutKey ==
    /\ Cardinality(accepted) + Cardinality(dropped) < Arrivals
    /\ IF Mutant = "null key moves clock"
       THEN \E timestamp \in Times :
            /\ MoveClock(ClockAfter(timestamp), emitted)
            /\ UNCHANGED <<store, largest, accepted, dropped>>
       ELSE UNCHANGED vars

(* A micro-batch ends: the batch clock moves. Cuts that don't move it change nothing.                                  *)
Cut ==
    /\ Clock = "batch" /\ largest > clock
    /\ MoveClock(largest, emitted)
    /\ UNCHANGED <<store, largest, accepted, dropped>>

(* The store may forget a session that ended before the retention, at any later time or never: "a guaranteed lower     *)
(* bound".                                                                                                             *)
Forget(key) ==
    \E session \in store[key] :
        /\ session.end < ExpiryEdge(clock) + (IF Mutant = "forgets early" THEN 1 ELSE 0)
        /\ store' = [store EXCEPT ![key] = @ \ {session}]
        /\ UNCHANGED <<clock, largest, emitted, emissions, accepted, dropped>>

-----------------------------------------------------------------------------

Init ==
    /\ store = [key \in Keys |-> {}] /\ emitted = [key \in Keys |-> {}]
    /\ clock = 0 /\ largest = 0 /\ emissions = 0
    /\ accepted = {} /\ dropped = {}

(* All records have arrived. Any other state without a successor is a deadlock.                                        *)
Finished ==
    /\ Cardinality(accepted) + Cardinality(dropped) = Arrivals
    /\ UNCHANGED vars

Next ==
    \/ Finished
    \/ \E key \in Keys, timestamp \in Times : Arrive(key, timestamp)
    \/ ArriveWithoutKey
    \/ Cut
    \/ \E key \in Keys : Forget(key)

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The properties.                                                                                                     *)

IsSession(session) ==
    /\ session.start \in Times /\ session.end \in Times /\ session.start <= session.end
    /\ session.count \in 1..Arrivals

IsRecord(record) ==
    /\ record.key \in Keys /\ record.timestamp \in Times /\ record.clock \in Times /\ record.number \in 1..Arrivals

(* Every variable has the right type, and no window of a key is emitted twice.                                         *)
Types ==
    /\ \A key \in Keys :
        /\ \A session \in store[key] \cup emitted[key] : IsSession(session)
        /\ \A one, other \in emitted[key] : Window(one) = Window(other) => one = other
    /\ clock \in Times /\ largest \in Times /\ clock <= largest
    /\ emissions \in Nat
    /\ \A record \in accepted \cup dropped : IsRecord(record)

(* The folded changelog equals the meaning of the accepted records.                                                    *)
FoldIsMeaning == \A key \in Keys : emitted[key] = Meaning(key)

(* For any order of arrival, no record is dropped, and the sessions are the islands of all timestamps. This property   *)
(* needs a grace so large that no session ever closes.                                                                 *)
SessionsAreIslands ==
    /\ dropped = {}
    /\ \A key \in Keys : emitted[key] = {Whole(island) : island \in Islands({record \in accepted : record.key = key})}

(* Two sessions have more than a gap between them.                                                                     *)
Apart(one, other) == one.start - other.end > Gap \/ other.start - one.end > Gap
Overlap(one, other) == one.start <= other.end /\ other.start <= one.end

IsOpen(session) == session.end >= CloseEdge(clock)

(* Open sessions of a key lie more than a gap apart. Sessions may lie closer only if one was already closed.           *)
OpenApart ==
    \A key \in Keys : \A one, other \in store[key] :
        one # other /\ IsOpen(one) /\ IsOpen(other) => Apart(one, other)

(* Two accepted records of a key at most a gap apart share a session. This property holds only if closed sessions are  *)
(* revised, and never forgotten.                                                                                       *)
GapClosure == \A key \in Keys : \A one, other \in emitted[key] : one # other => Apart(one, other)

(* No two sessions of a key overlap. This property holds only if lateness is tested on the record alone.               *)
NoOverlap == \A key \in Keys : \A one, other \in emitted[key] : one # other => ~Overlap(one, other)

(* The store contains every session within the retention, and only sessions.                                           *)
RetainedIsStored ==
    \A key \in Keys :
        /\ \A session \in Sessions(key) : session.end >= ExpiryEdge(clock) => session \in store[key]
        /\ store[key] \subseteq Sessions(key)

(* The clock is the largest timestamp of a record with a key, at cuts or always.                                       *)
ClockIsLargest ==
    /\ largest = Maximum({0} \cup Timestamps(accepted \cup dropped))
    /\ Clock = "stream_time" => clock = largest

(* If sessions are emitted when they close, each session is emitted once, and never retracted.                         *)
EmittedOnce ==
    Emit = "close" => emissions = Cardinality(UNION {{<<key, session>> : session \in emitted[key]} : key \in Keys})

(* An emitted closed session never changes.                                                                            *)
ClosedIsFinal ==
    [][\A key \in Keys : \A session \in emitted[key] : ~IsOpen(session) => session \in emitted'[key]]_vars

(* Exactly the late records are dropped.                                                                               *)
LateIsDropped ==
    [][/\ \A record \in dropped' \ dropped : IsLate(record)
       /\ \A record \in accepted' \ accepted : ~IsLate(record)]_vars

=============================================================================
