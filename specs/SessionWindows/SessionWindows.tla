---------------------------- MODULE SessionWindows ----------------------------
(* Session windows: records of a key no more than a gap apart share a session.                                         *)
(*                                                                                                                     *)
(* Records come one by one, in any order. A record merges the open sessions within the gap of it and is added to them; *)
(* the changelog emits tombstones for the sessions that are no more, then the new one. A session is closed when it     *)
(* ends more than gap + grace before the clock; a closed session is final, and a record that would only be in a closed *)
(* one is late and dropped. The store may forget what ended before the retention.                                      *)
(*                                                                                                                     *)
(* Every order of arrival of every bag of so many records is a behaviour, and so are all moments to forget.            *)
(*                                                                                                                     *)
(* Source: KIP-94, "Proposed Changes", "Late arriving data", "SessionStore"; KIP-633 for grace; Spark's session window *)
(* for the batch clock and for lateness of the record alone. In Python it is reference/session_windows.py; its names   *)
(* are used here, without the suffix _ms.                                                                              *)
EXTENDS Integers, FiniteSets, TLC

CONSTANTS
    Keys,           \* the keys of records
    LastTime,       \* timestamps are 0 to LastTime
    Arrivals,       \* how many records with a key there may be
    Gap,            \* the inactivity gap; records exactly one gap apart still merge
    Grace,          \* how much longer than the gap a session stays open
    Retention,      \* how long a session is kept after its end; no less than Gap + Grace
    Clock,          \* "stream_time": the largest timestamp so far; "batch": the largest of the batches before
    Emit,           \* "update": every change of a session is emitted; "close": its final value alone, once
    Late,           \* "merged": a record is late if its merged session is closed; "own": if it lies before the edge
    Closed,         \* "final": a closed session is never merged; "revised": it is, as long as it is stored
    Mutant          \* "none", or the mutation; see Mutants

Mutants == {
    "none",
    "gap exclusive",         \* records exactly one gap apart do not merge
    "merges one",            \* of two sessions that a record bridges, the first alone is merged
    "no tombstone",          \* sessions that are no more are not emitted
    "closes early",          \* KAFKA-8289: a session is closed when it ends exactly gap + grace before the clock
    "gap forgotten",         \* KAFKA-12718: a session is closed when it ends more than grace before the clock
    "late kept",             \* a late record is not dropped, and begins a session that is closed
    "rescue forgotten",      \* a record before the edge is dropped, whatever session it would be in
    "forgets early",         \* of Kafka Streams: forgotten is what ends exactly the retention before the clock
    "clock follows",         \* the clock is the timestamp that came last, not the largest
    "null key moves clock",  \* a record without a key moves the clock
    "tells again"}           \* a closed session is emitted whenever the clock moves, not once

ASSUME LastTime \in Nat /\ Arrivals \in Nat /\ Gap \in Nat \ {0} /\ Grace \in Nat /\ Retention >= Gap + Grace
ASSUME Clock \in {"stream_time", "batch"} /\ Emit \in {"update", "close"} /\ Late \in {"merged", "own"}
ASSUME Closed \in {"final", "revised"} /\ Mutant \in Mutants

VARIABLES
    store,          \* for each key the sessions that the store holds, closed ones too
    clock,          \* what the clock says
    largest,        \* the largest timestamp so far, to which the batch clock moves at a cut
    emitted,        \* what the changelog folds to: for each key the sessions emitted, one for each window
    emissions,      \* how many sessions were emitted, where Emit is "close"
    accepted,       \* the records taken, each with what the clock said then
    dropped         \* the records dropped for being late, likewise

vars == <<store, clock, largest, emitted, emissions, accepted, dropped>>

-----------------------------------------------------------------------------
(* What sessions and records are. The aggregate is a count. A number distinguishes equal records.                      *)

Times == 0..LastTime
Session(start, end, count) == [start |-> start, end |-> end, count |-> count]
Window(session) == <<session.start, session.end>>
Record(key, timestamp, now, number) == [key |-> key, timestamp |-> timestamp, clock |-> now, number |-> number]

Maximum(numbers) == CHOOSE number \in numbers : \A other \in numbers : other <= number
Minimum(numbers) == CHOOSE number \in numbers : \A other \in numbers : other >= number
Larger(one, other) == IF one > other THEN one ELSE other

(* A session is closed if it ends before this edge, and may be forgotten if it ends before that one.                   *)
CloseEdge(now) == now - Gap - Grace
ExpiryEdge(now) == now - Retention

(* The edge that the state machine goes by: it differs from the above only where a mutant has it wrong.                *)
EdgeUsed(now) ==
    CASE Mutant = "closes early" -> CloseEdge(now) + 1
      [] Mutant = "gap forgotten" -> now - Grace
      [] OTHER -> CloseEdge(now)

-----------------------------------------------------------------------------
(* The meaning: the table of the accepted records. The order of arrival plays no part in it.                           *)

Timestamps(session) == {record.timestamp : record \in session}
EndOf(session) == Maximum(Timestamps(session))

(* A record with all that hang together with it, each no more than a gap from the next.                                *)
RECURSIVE Island(_, _)
Island(found, records) ==
    LET near == {record \in records \ found : \E other \in found :
            record.timestamp - other.timestamp \in -Gap..Gap}
    IN  IF near = {} THEN found ELSE Island(found \cup near, records)

Islands(records) == {Island({record}, records) : record \in records}

(* The sessions of a key when the clock said `now`, as sets of records. At every close edge the sessions that ended    *)
(* before it are final; the records of all others fall into islands with those accepted at that edge.                  *)
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

(* Where a record would be if it were taken: in an island of the records that aren't final.                            *)
EndWith(record) ==
    LET open == UNION {session \in SessionsAt(record.key, LastTime) : EndOf(session) >= CloseEdge(record.clock)}
    IN  EndOf(Island({record}, open))

IsLate(record) == (IF Late = "merged" THEN EndWith(record) ELSE record.timestamp) < CloseEdge(record.clock)

-----------------------------------------------------------------------------
(* The state machine.                                                                                                  *)

(* The sessions that a move of the clock closes, which have to be emitted where Emit is "close".                       *)
Closing(key, now) ==
    {session \in store[key] :
        session.end < EdgeUsed(now) /\ (session.end >= EdgeUsed(clock) \/ Mutant = "tells again")}

(* What the table of a key is after sessions are emitted, those of some windows being taken back.                      *)
Folded(table, taken_back, sessions) ==
    {session \in table : Window(session) \notin {Window(other) : other \in taken_back \cup sessions}} \cup sessions

(* The clock moves: what it closes is emitted.                                                                         *)
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

(* A record comes: the clock observes it, the open sessions within the gap are merged, it is added, and emitted.       *)
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

(* A record without a key is dropped, and changes nothing, nor does it move the clock.                                 *)
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

(* The store may forget what ended before the retention, at any time from then on, or never: "a guaranteed lower       *)
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

(* All records came. So that any other state without a next one is a deadlock.                                         *)
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
(* What ought to hold.                                                                                                 *)

IsSession(session) ==
    /\ session.start \in Times /\ session.end \in Times /\ session.start <= session.end
    /\ session.count \in 1..Arrivals

IsRecord(record) ==
    /\ record.key \in Keys /\ record.timestamp \in Times /\ record.clock \in Times /\ record.number \in 1..Arrivals

(* Every variable holds what it is meant to hold, and no two sessions of a key are emitted under one window.           *)
Types ==
    /\ \A key \in Keys :
        /\ \A session \in store[key] \cup emitted[key] : IsSession(session)
        /\ \A one, other \in emitted[key] : Window(one) = Window(other) => one = other
    /\ clock \in Times /\ largest \in Times /\ clock <= largest
    /\ emissions \in Nat
    /\ \A record \in accepted \cup dropped : IsRecord(record)

(* What the changelog emits, folded, is the meaning of the accepted records.                                           *)
FoldIsMeaning == \A key \in Keys : emitted[key] = Meaning(key)

(* Whatever the order of arrival, no record is dropped and the sessions are the islands of all timestamps. It holds    *)
(* where the grace is so large that nothing is ever closed.                                                            *)
SessionsAreIslands ==
    /\ dropped = {}
    /\ \A key \in Keys : emitted[key] = {Whole(island) : island \in Islands({record \in accepted : record.key = key})}

(* Two sessions have more than a gap between them.                                                                     *)
Apart(one, other) == one.start - other.end > Gap \/ other.start - one.end > Gap
Overlap(one, other) == one.start <= other.end /\ other.start <= one.end

IsOpen(session) == session.end >= CloseEdge(clock)

(* Open sessions of a key lie more than a gap apart: those that don't, one was closed before the other came so near.   *)
OpenApart ==
    \A key \in Keys : \A one, other \in store[key] :
        one # other /\ IsOpen(one) /\ IsOpen(other) => Apart(one, other)

(* Two accepted records of a key no more than a gap apart are in one session. It holds only where closed sessions are  *)
(* revised, and never forgotten.                                                                                       *)
GapClosure == \A key \in Keys : \A one, other \in emitted[key] : one # other => Apart(one, other)

(* No two sessions of a key share an instant. It holds only where late records are dropped whatever they would join.   *)
NoOverlap == \A key \in Keys : \A one, other \in emitted[key] : one # other => ~Overlap(one, other)

(* The store holds every session within the retention, and nothing that is no session.                                 *)
RetainedIsStored ==
    \A key \in Keys :
        /\ \A session \in Sessions(key) : session.end >= ExpiryEdge(clock) => session \in store[key]
        /\ store[key] \subseteq Sessions(key)

(* The clock is the largest timestamp of a record with a key, at cuts or always.                                       *)
ClockIsLargest ==
    /\ largest = Maximum({0} \cup Timestamps(accepted \cup dropped))
    /\ Clock = "stream_time" => clock = largest

(* Where sessions are emitted when they close, each is emitted once, and never taken back.                             *)
EmittedOnce ==
    Emit = "close" => emissions = Cardinality(UNION {{<<key, session>> : session \in emitted[key]} : key \in Keys})

(* A closed session that was emitted stays as it is.                                                                   *)
ClosedIsFinal ==
    [][\A key \in Keys : \A session \in emitted[key] : ~IsOpen(session) => session \in emitted'[key]]_vars

(* A record is dropped if it is late, and taken if not.                                                                *)
LateIsDropped ==
    [][/\ \A record \in dropped' \ dropped : IsLate(record)
       /\ \A record \in accepted' \ accepted : ~IsLate(record)]_vars

=============================================================================
