--------------------------- MODULE StreamStreamJoin ---------------------------
(* The join of two streams: each pair of records with the same key and within the time bounds has one output.          *)
(*                                                                                                                     *)
(* Records of both streams arrive in any order. The join buffers rows that may still find a partner. It forgets a row  *)
(* when the clock is past the row's timestamp + reach + grace. The reach of a left row is After, and of a right row    *)
(* Before. A record that arrives after this time is late, and dropped.                                                 *)
(*                                                                                                                     *)
(* Source: join semantics, "KStream-KStream Join" and "Output of Join" (one output per pair, even if several windows   *)
(* contain the pair); Samza's window operator, "Stream-Stream Join" (the bounds). The join in Python is                *)
(* reference/stream_stream_join.py, which uses the same names.                                                         *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Keys,         \* the keys, numbers that define the order of rows that close together
    MaxTimestamp, \* timestamps are 0..MaxTimestamp
    Records,      \* the number of records, on either input
    Heartbeats,   \* the number of heartbeats, which only move the clock
    Cuts,         \* the number of cuts between micro-batches, which move the batch clock
    Clock,        \* "stream_time": the largest timestamp so far; "batch": the largest timestamp of completed batches
    Join,         \* "inner", "left" or "outer"
    Before,       \* the time before a left record within which its partners lie, inclusive
    After,        \* the time after a left record within which its partners lie, inclusive
    Grace,        \* the time for which a row can be found after its reach
    Emit,         \* when a row without a partner is emitted: at "arrival" (only left records emit), "eager" or on "close"
    Mutant,       \* "none", or the mutation; see Mutants
    None          \* no row, no key

Mutants == {
    "none",
    "pair for every window", \* a pair is emitted for each hopping window that contains both records
    "bound exclusive",       \* a partner exactly Before earlier is not joined
    "bounds swapped",        \* Before and After are swapped
    "expires early",         \* a row is forgotten 1 ms too early
    "closes without grace",  \* KAFKA-19536: a row is emitted without a partner after its reach, although its grace isn't over
    "match forgotten",       \* SPARK-26154: a row counts as matched only while its partner is in the buffer
    "late records join",     \* KAFKA-16123: late records are not dropped
    "clock of each input",   \* each input has its own clock
    "clock goes back",       \* the clock is the timestamp of the last record, even after a larger timestamp
    "left rows kept",        \* left rows are buffered even if only left records emit results
    "null in any case",      \* a record is emitted without a partner at its arrival, even if it has a partner
    "null again on close",   \* a row that was emitted without a partner at once is emitted again when it closes
    "right closes silently"} \* only left rows are emitted when they close

ASSUME Join \in {"inner", "left", "outer"} /\ Emit \in {"arrival", "eager", "close"}
ASSUME ~(Join = "outer" /\ Emit = "arrival")  \* in an outer join records of both inputs emit results
ASSUME Clock \in {"stream_time", "batch"} /\ (Cuts = 0 \/ Clock = "batch") /\ Mutant \in Mutants
ASSUME Keys \subseteq Nat /\ {MaxTimestamp, Records, Heartbeats, Cuts, Before, After, Grace} \subseteq Nat

VARIABLES
    arrived, \* all arrivals in order: records, heartbeats and cuts, each with the time of the clock. A record is
             \* identified by its index among the arrivals
    seen,    \* the largest timestamp of each input
    clock,   \* the time of the clock
    buffer,  \* for each input the rows that may still find a partner, in the order of arrival
    emitted  \* all outputs in order: a left and a right record, or None for a missing record

vars == <<arrived, seen, clock, buffer, emitted>>

-----------------------------------------------------------------------------
(* Definitions of the declaration, rows and outputs.                                                                   *)

Inputs == {"left", "right"}
Timestamps == 0..MaxTimestamp
Other(input) == IF input = "left" THEN "right" ELSE "left"
Larger(one, other) == IF one > other THEN one ELSE other

Reach(input) == IF input = "left" THEN After ELSE Before

(* Whether a row with this input and timestamp can still find a partner at the time `now` of the clock.                *)
IsOpen(input, timestamp, now) == timestamp + Reach(input) + Grace >= now

(* Whether a left and a right timestamp lie within the bounds.                                                        *)
Within(left, right) == left <= right + Before /\ right <= left + After

(* Whether a right record emits results at its arrival, rather than only being stored for left records. Only then can  *)
(* left rows be found.                                                                                                 *)
RightDrives == ~(Join = "left" /\ Emit = "arrival")
IsFound(input) == input = "right" \/ RightDrives

EmitsUnmatched(input) == Join = "outer" \/ (Join = "left" /\ input = "left")

Row(number, key, timestamp, matched) ==
    [number |-> number, key |-> key, timestamp |-> timestamp, matched |-> matched]
Pair(left, right) == [left |-> left, right |-> right]
PairOf(input, number, other) == IF input = "left" THEN Pair(number, other) ELSE Pair(other, number)
Alone(input, number) == PairOf(input, number, None)

-----------------------------------------------------------------------------
(* The actions of the join, mutations included.                                                                        *)

IsLate(input, timestamp, now) == Mutant # "late records join" /\ ~IsOpen(input, timestamp, now)

IsExpired(input, row, now) ==
    CASE Mutant = "expires early" -> row.timestamp + Reach(input) + Grace <= now
      [] Mutant = "closes without grace" -> row.timestamp + Reach(input) < now
      [] OTHER -> ~IsOpen(input, row.timestamp, now)

Joins(left, right) ==
    CASE Mutant = "bound exclusive" -> left < right + Before /\ right <= left + After
      [] Mutant = "bounds swapped" -> left <= right + After /\ right <= left + Before
      [] OTHER -> Within(left, right)

JoinsRow(input, key, timestamp, row) ==
    /\ row.key = key
    /\ IF input = "left" THEN Joins(timestamp, row.timestamp) ELSE Joins(row.timestamp, timestamp)

HasMatched(input, row) ==
    IF Mutant = "match forgotten"
    THEN \E place \in 1..Len(buffer[Other(input)]) :
            JoinsRow(input, row.key, row.timestamp, buffer[Other(input)][place])
    ELSE row.matched

EmittedOnClose(input) ==
    /\ EmitsUnmatched(input)
    /\ Emit = "close" \/ Mutant = "null again on close"
    /\ input = "left" \/ Mutant # "right closes silently"

(* Rows that close together are emitted by timestamp, right before left, then by key, then in the order of arrival.    *)
ClosesBefore(one, other) ==
    CASE one.row.timestamp # other.row.timestamp -> one.row.timestamp < other.row.timestamp
      [] one.input # other.input -> one.input = "right"
      [] one.row.key # other.row.key -> one.row.key < other.row.key
      [] OTHER -> one.row.number < other.row.number

(* The rows that close when the clock of each input reaches `now`, and the buffer afterwards.                          *)
Closed(now) ==
    LET unmatched(input) ==
            LET closes(row) == IsExpired(input, row, now[input]) /\ ~HasMatched(input, row)
                rows == SelectSeq(buffer[input], closes)
            IN  IF EmittedOnClose(input)
                THEN [place \in 1..Len(rows) |-> [input |-> input, row |-> rows[place]]]
                ELSE <<>>
        closed == SortSeq(unmatched("left") \o unmatched("right"), ClosesBefore)
    IN  [place \in 1..Len(closed) |-> Alone(closed[place].input, closed[place].row.number)]

Kept(now) ==
    [input \in Inputs |->
        LET keeps(row) == ~IsExpired(input, row, now[input])
        IN  SelectSeq(buffer[input], keeps)]

(* The number of outputs of a pair, which is 1. The mutant counts the windows [start, start + After] that contain      *)
(* both.                                                                                                               *)
Times(timestamp, other) ==
    IF Mutant = "pair for every window"
    THEN Cardinality({start \in 0..MaxTimestamp :
            start <= timestamp /\ start <= other /\ timestamp <= start + After /\ other <= start + After})
    ELSE 1

RECURSIVE Pairs(_, _, _, _)
Pairs(input, number, timestamp, partners) ==
    IF partners = <<>> THEN <<>>
    ELSE [time \in 1..Times(timestamp, Head(partners).timestamp) |-> PairOf(input, number, Head(partners).number)]
            \o Pairs(input, number, timestamp, Tail(partners))

(* The time of the clock after the largest timestamps of the inputs are `sees`, with the last record at `timestamp`.   *)
Moved(sees, timestamp) ==
    CASE Clock = "batch" -> clock
      [] Mutant = "clock goes back" -> timestamp
      [] OTHER -> Larger(sees["left"], sees["right"])

(* The time of each input's clock: the same for both inputs, except in a mutant.                                       *)
ClockOfEach(sees, timestamp) ==
    [input \in Inputs |-> IF Mutant = "clock of each input" THEN sees[input] ELSE Moved(sees, timestamp)]

(* The number of arrivals on these inputs.                                                                             *)
Count(inputs) == Cardinality({number \in 1..Len(arrived) : arrived[number].input \in inputs})

Came(input, key, timestamp) ==
    arrived' = Append(arrived, [input |-> input, key |-> key, timestamp |-> timestamp, now |-> clock'])

(* A record arrives. The join first emits the rows that the clock closes, then the record's pairs or its output        *)
(* without a partner.                                                                                                  *)
Arrive(input, key, timestamp) ==
    LET number == Len(arrived) + 1
        sees == [seen EXCEPT ![input] = Larger(@, timestamp)]
        now == ClockOfEach(sees, timestamp)
        kept == Kept(now)
        found(row) == JoinsRow(input, key, timestamp, row)
        earlier(one, other) ==
            one.timestamp < other.timestamp \/ (one.timestamp = other.timestamp /\ one.number < other.number)
        partners == IF input = "left" \/ RightDrives
                    THEN SortSeq(SelectSeq(kept[Other(input)], found), earlier)
                    ELSE <<>>
        alone == (partners = <<>> \/ Mutant = "null in any case") /\ Emit # "close" /\ EmitsUnmatched(input)
        own == IF IsFound(input) \/ Mutant = "left rows kept"
               THEN Append(kept[input], Row(number, key, timestamp, partners # <<>>))
               ELSE kept[input]
        others == [place \in 1..Len(kept[Other(input)]) |->
                    LET row == kept[Other(input)][place]
                    IN  IF partners # <<>> /\ found(row) THEN [row EXCEPT !.matched = TRUE] ELSE row]
    IN  /\ Count(Inputs) < Records
        /\ seen' = sees
        /\ clock' = Moved(sees, timestamp)
        /\ Came(input, key, timestamp)
        /\ IF IsLate(input, timestamp, now[input])
           THEN /\ emitted' = emitted \o Closed(now)
                /\ buffer' = kept
           ELSE /\ emitted' = emitted \o Closed(now) \o Pairs(input, number, timestamp, partners)
                            \o (IF alone THEN <<Alone(input, number)>> ELSE <<>>)
                /\ buffer' = [side \in Inputs |-> IF side = input THEN own ELSE others]

(* A heartbeat moves the clock as a record would.                                                                     *)
Heartbeat(timestamp) ==
    LET sees == [input \in Inputs |-> Larger(seen[input], timestamp)]
        now == ClockOfEach(sees, timestamp)
    IN  /\ Count({"heartbeat"}) < Heartbeats
        /\ seen' = sees
        /\ clock' = Moved(sees, timestamp)
        /\ Came("heartbeat", None, timestamp)
        /\ emitted' = emitted \o Closed(now)
        /\ buffer' = Kept(now)

(* A micro-batch ends, and the batch clock moves to the largest timestamp of all completed batches.                    *)
Cut ==
    LET now == [input \in Inputs |-> Larger(seen["left"], seen["right"])]
    IN  /\ Count({"cut"}) < Cuts
        /\ clock' = now["left"]
        /\ Came("cut", None, 0)
        /\ emitted' = emitted \o Closed(now)
        /\ buffer' = Kept(now)
        /\ UNCHANGED seen

-----------------------------------------------------------------------------

Init ==
    /\ arrived = <<>>
    /\ seen = [input \in Inputs |-> 0]
    /\ clock = 0
    /\ buffer = [input \in Inputs |-> <<>>]
    /\ emitted = <<>>

(* All records, heartbeats and cuts have arrived. Any other state without a successor is a deadlock.                   *)
Finished ==
    /\ Count(Inputs) = Records /\ Count({"heartbeat"}) = Heartbeats /\ Count({"cut"}) = Cuts
    /\ UNCHANGED vars

Next ==
    \/ Finished
    \/ \E input \in Inputs, key \in Keys, timestamp \in Timestamps : Arrive(input, key, timestamp)
    \/ \E timestamp \in Timestamps : Heartbeat(timestamp)
    \/ Cut

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The right output, computed from the arrivals alone.                                                                 *)

Numbers(input) == {number \in 1..Len(arrived) : arrived[number].input = input}
AllNumbers == Numbers("left") \cup Numbers("right")
IsOpenAt(number, now) == IsOpen(arrived[number].input, arrived[number].timestamp, now)
Taken == {number \in AllNumbers : IsOpenAt(number, arrived[number].now)}

(* All pairs with the same key within the bounds, at any time of the clock.                                            *)
PairsByBounds ==
    {pair \in [left : Numbers("left"), right : Numbers("right")] :
        /\ arrived[pair.left].key = arrived[pair.right].key
        /\ Within(arrived[pair.left].timestamp, arrived[pair.right].timestamp)}

Earlier(pair) == IF pair.left < pair.right THEN pair.left ELSE pair.right
Later(pair) == Larger(pair.left, pair.right)

(* The pairs that the join finds: neither record was late, and the earlier record was still open at the later arrival. *)
PairsFound ==
    {pair \in PairsByBounds :
        /\ pair.left \in Taken /\ pair.right \in Taken
        /\ IsOpenAt(Earlier(pair), arrived[Later(pair)].now)
        /\ RightDrives \/ pair.right < pair.left}

IsPair(output) == output.left # None /\ output.right # None
EmittedPairs == {output \in {emitted[place] : place \in 1..Len(emitted)} : IsPair(output)}
IsEmittedAlone(number) == \E place \in 1..Len(emitted) : emitted[place] = Alone(arrived[number].input, number)

(* Whether some future record, with some timestamp, could find this record.                                            *)
MayBeFound(number) ==
    LET row == arrived[number]
        others == 0..(MaxTimestamp + Before + After)
        now(other) == IF Clock = "batch" THEN clock ELSE Larger(clock, other)
    IN  \E other \in others :
            /\ IF row.input = "left" THEN Within(row.timestamp, other) ELSE Within(other, row.timestamp)
            /\ IsOpenAt(number, now(other))
            /\ IsOpen(Other(row.input), other, now(other))

(* No record arrived more than Grace behind the clock.                                                                 *)
AllInTime == \A number \in AllNumbers : arrived[number].timestamp + Grace >= arrived[number].now

-----------------------------------------------------------------------------
(* The properties.                                                                                                     *)

(* Every variable has the right type.                                                                                  *)
Types ==
    /\ \A number \in 1..Len(arrived) :
        /\ arrived[number].input \in Inputs \cup {"heartbeat", "cut"}
        /\ arrived[number].key \in Keys \cup {None}
        /\ arrived[number].timestamp \in Timestamps /\ arrived[number].now \in Timestamps
    /\ seen \in [Inputs -> Timestamps] /\ clock \in Timestamps
    /\ \A input \in Inputs : \A place \in 1..Len(buffer[input]) :
        LET row == buffer[input][place]
        IN  /\ row.number \in Numbers(input) /\ row.key \in Keys
            /\ row.timestamp \in Timestamps /\ row.matched \in BOOLEAN
    /\ \A place \in 1..Len(emitted) :
        /\ emitted[place].left = None \/ emitted[place].left \in Numbers("left")
        /\ emitted[place].right = None \/ emitted[place].right \in Numbers("right")
        /\ emitted[place].left # None \/ emitted[place].right # None

(* The clock is the largest timestamp so far; the batch clock is the largest of the completed batches.                 *)
ClockIsLargest ==
    LET cuts == {place \in 1..Len(arrived) : arrived[place].input = "cut"}
        last == CHOOSE place \in cuts \cup {0} : \A other \in cuts : place >= other
        timestamps == {arrived[place].timestamp : place \in 1..(IF Clock = "batch" THEN last ELSE Len(arrived))}
    IN  clock \in timestamps \cup {0} /\ \A timestamp \in timestamps : timestamp <= clock

(* A pair is emitted once, even if its records share several windows.                                                  *)
OneOutputAPair ==
    \A place, other \in 1..Len(emitted) : place # other /\ IsPair(emitted[place]) => emitted[place] # emitted[other]

(* The records of a pair have the same key, and lie within the bounds.                                                 *)
PairsWithinBounds == EmittedPairs \subseteq PairsByBounds

(* No record is joined that is late, or had expired when its partner arrived.                                          *)
NoPairTooLate == \A pair \in EmittedPairs \cap PairsByBounds : pair \in PairsFound

(* Every pair is emitted in which no record was late and the earlier record had not expired.                           *)
NoPairMissed == PairsFound \subseteq EmittedPairs

(* If no record arrives more than Grace behind the clock, the emitted pairs are exactly the join by the bounds.        *)
InTimeIsJoined == AllInTime /\ RightDrives => EmittedPairs = PairsByBounds

(* If no record is dropped as late, the emitted pairs are exactly the join by the bounds. This property fails, because *)
(* a partner of a record that isn't late may have expired.                                                             *)
NotLateIsJoined == Taken = AllNumbers /\ RightDrives => EmittedPairs = PairsByBounds

(* A row is emitted without a partner at most once, and only on an input that emits such rows.                         *)
AloneOnce ==
    /\ \A place, other \in 1..Len(emitted) : place # other => emitted[place] # emitted[other] \/ IsPair(emitted[place])
    /\ \A number \in AllNumbers : IsEmittedAlone(number) => number \in Taken /\ EmitsUnmatched(arrived[number].input)

(* Unless Emit is "eager", no row is emitted both with and without a partner.                                          *)
NeverBoth == Emit # "eager" => \A number \in AllNumbers : ~(IsEmittedAlone(number) /\
    \E pair \in EmittedPairs : number \in {pair.left, pair.right})

(* If Emit is "close", no row is emitted without a partner while a partner can arrive.                                 *)
AloneNotTooEarly == Emit = "close" => \A number \in AllNumbers : IsEmittedAlone(number) => ~IsOpenAt(number, clock)

(* If Emit is "close", a row that found no partner is emitted as soon as no partner can arrive.                        *)
ClosedAreEmitted ==
    Emit = "close" =>
        LET paired == UNION {{pair.left, pair.right} : pair \in PairsFound}
        IN  \A number \in Taken \ paired :
                EmitsUnmatched(arrived[number].input) /\ ~IsOpenAt(number, clock) => IsEmittedAlone(number)

(* If Emit is "eager" or "arrival", a row is emitted without a partner at its arrival exactly if no earlier record is  *)
(* its partner.                                                                                                        *)
AloneAtOnce ==
    Emit # "close" =>
        LET finders == {Later(pair) : pair \in PairsFound}
        IN  \A number \in Taken :
                IsEmittedAlone(number) <=> (EmitsUnmatched(arrived[number].input) /\ number \notin finders)

(* The buffer contains exactly the records that a future record may find, so the clock bounds the buffer.              *)
BufferIsWhatMayBeFound ==
    \A input \in Inputs :
        {buffer[input][place].number : place \in 1..Len(buffer[input])} =
        {number \in Taken \cap Numbers(input) : IsFound(input) /\ MayBeFound(number)}

=============================================================================
