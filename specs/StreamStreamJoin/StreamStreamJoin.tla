--------------------------- MODULE StreamStreamJoin ---------------------------
(* The join of two streams: records of the same key, within time bounds, make one output a pair.                      *)
(*                                                                                                                    *)
(* Records of both streams arrive in any order. The join buffers those that a later record of the other stream may    *)
(* still find, and forgets a row when the clock says that none can come any more: past its timestamp + reach + grace. *)
(* The reach of a left row is After, of a right one Before. A record that comes later than that is late, and dropped. *)
(*                                                                                                                    *)
(* Source: join semantics, "KStream-KStream Join" and "Output of Join" (one output a pair, however many windows both  *)
(* are in); Samza's window operator, "Stream-Stream Join" (the bounds). The same in Python is                         *)
(* reference/stream_stream_join.py; its names are used here.                                                          *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Keys,         \* the keys, which are numbers: rows that close together are emitted in their order
    MaxTimestamp, \* timestamps are 0..MaxTimestamp
    Records,      \* how many records arrive, on either input
    Heartbeats,   \* how many heartbeats come, which move the clock and are nothing else
    Cuts,         \* how many micro-batches end, which moves the batch clock
    Clock,        \* "stream_time": the largest timestamp so far; "batch": the largest of the batches that have ended
    Join,         \* "inner", "left" or "outer"
    Before,       \* how far before a left record its partners may lie, inclusive
    After,        \* how far after it, inclusive
    Grace,        \* how much longer than its reach a row can be found
    Emit,         \* when a row without partner is emitted: at "arrival" (left alone drives), "eager" or on "close"
    Mutant,       \* "none", or the mutation; see Mutants
    None          \* no row, no key

Mutants == {
    "none",
    "pair for every window", \* a pair is emitted for each of the hopping windows that both are in
    "bound exclusive",       \* a partner exactly Before earlier is not joined
    "bounds swapped",        \* Before is taken for After, and After for Before
    "expires early",         \* a row is forgotten 1 ms before it ought to be
    "closes without grace",  \* KAFKA-19536: a row is emitted unmatched once it is out of reach, though grace is left
    "match forgotten",       \* SPARK-26154: a row counts as matched only while its partner is in the buffer
    "late records join",     \* KAFKA-16123: late records are not dropped
    "clock of each input",   \* each input has a clock of its own
    "clock goes back",       \* the clock says the timestamp of the last record, though there was a larger one
    "left rows kept",        \* where the left record alone drives, left rows are buffered, too
    "null in any case",      \* a record is emitted without partner when it comes, whether it has one or not
    "null again on close",   \* a row that was emitted without partner at once is emitted so again when it closes
    "right closes silently"} \* of the rows that close, only left ones are emitted

ASSUME Join \in {"inner", "left", "outer"} /\ Emit \in {"arrival", "eager", "close"}
ASSUME ~(Join = "outer" /\ Emit = "arrival")  \* both sides drive an outer join
ASSUME Clock \in {"stream_time", "batch"} /\ (Cuts = 0 \/ Clock = "batch") /\ Mutant \in Mutants
ASSUME Keys \subseteq Nat /\ {MaxTimestamp, Records, Heartbeats, Cuts, Before, After, Grace} \subseteq Nat

VARIABLES
    arrived, \* all that came, in order: records, heartbeats and cuts, and what the clock said then. A record is called
             \* by its place among them
    seen,    \* the largest timestamp of each input
    clock,   \* what the clock says
    buffer,  \* of each input the rows that may still be found, in the order in which they came
    emitted  \* all that was emitted, in order: a left and a right record, or None where there is none

vars == <<arrived, seen, clock, buffer, emitted>>

-----------------------------------------------------------------------------
(* What the declaration says, and what rows and outputs are.                                                          *)

Inputs == {"left", "right"}
Timestamps == 0..MaxTimestamp
Other(input) == IF input = "left" THEN "right" ELSE "left"
Larger(one, other) == IF one > other THEN one ELSE other

Reach(input) == IF input = "left" THEN After ELSE Before

(* Whether a row of that input and timestamp can still find a partner when the clock says `now`.                      *)
IsOpen(input, timestamp, now) == timestamp + Reach(input) + Grace >= now

(* Whether a left and a right timestamp lie within the bounds.                                                        *)
Within(left, right) == left <= right + Before /\ right <= left + After

(* Whether a right record is answered when it arrives, rather than just kept for left ones. Only then are left rows   *)
(* found.                                                                                                             *)
RightDrives == ~(Join = "left" /\ Emit = "arrival")
IsFound(input) == input = "right" \/ RightDrives

EmitsUnmatched(input) == Join = "outer" \/ (Join = "left" /\ input = "left")

Row(number, key, timestamp, matched) ==
    [number |-> number, key |-> key, timestamp |-> timestamp, matched |-> matched]
Pair(left, right) == [left |-> left, right |-> right]
PairOf(input, number, other) == IF input = "left" THEN Pair(number, other) ELSE Pair(other, number)
Alone(input, number) == PairOf(input, number, None)

-----------------------------------------------------------------------------
(* What the join does, mutations included.                                                                            *)

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

(* Rows that close together are emitted by timestamp, right before left, then by key, then as they came.              *)
ClosesBefore(one, other) ==
    CASE one.row.timestamp # other.row.timestamp -> one.row.timestamp < other.row.timestamp
      [] one.input # other.input -> one.input = "right"
      [] one.row.key # other.row.key -> one.row.key < other.row.key
      [] OTHER -> one.row.number < other.row.number

(* What closes when the clock of each input comes to `now`, and what the buffer holds then.                           *)
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

(* How often a pair is emitted: once. The mutant counts the windows [start, start + After] that both are in.          *)
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

(* What the clock says once the inputs have seen what `sees` says, the last of it at `timestamp`.                     *)
Moved(sees, timestamp) ==
    CASE Clock = "batch" -> clock
      [] Mutant = "clock goes back" -> timestamp
      [] OTHER -> Larger(sees["left"], sees["right"])

(* What it says to each input: the same, but for a mutant.                                                            *)
ClockOfEach(sees, timestamp) ==
    [input \in Inputs |-> IF Mutant = "clock of each input" THEN sees[input] ELSE Moved(sees, timestamp)]

(* How many of the arrivals came on one of these inputs.                                                              *)
Count(inputs) == Cardinality({number \in 1..Len(arrived) : arrived[number].input \in inputs})

Came(input, key, timestamp) ==
    arrived' = Append(arrived, [input |-> input, key |-> key, timestamp |-> timestamp, now |-> clock'])

(* A record arrives. First all is emitted that the clock has closed, then its pairs, or that it has none.             *)
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

(* A micro-batch ends, and the batch clock moves to the largest timestamp of all that have ended.                     *)
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

(* All has come. So that any other state without a next one is a deadlock.                                            *)
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
(* What ought to be emitted, by what arrived alone.                                                                   *)

Numbers(input) == {number \in 1..Len(arrived) : arrived[number].input = input}
AllNumbers == Numbers("left") \cup Numbers("right")
IsOpenAt(number, now) == IsOpen(arrived[number].input, arrived[number].timestamp, now)
Taken == {number \in AllNumbers : IsOpenAt(number, arrived[number].now)}

(* All pairs of the same key within the bounds, whatever the clock said.                                              *)
PairsByBounds ==
    {pair \in [left : Numbers("left"), right : Numbers("right")] :
        /\ arrived[pair.left].key = arrived[pair.right].key
        /\ Within(arrived[pair.left].timestamp, arrived[pair.right].timestamp)}

Earlier(pair) == IF pair.left < pair.right THEN pair.left ELSE pair.right
Later(pair) == Larger(pair.left, pair.right)

(* Of these the ones that a record finds: neither was late, and the earlier was open yet when the later came.         *)
PairsFound ==
    {pair \in PairsByBounds :
        /\ pair.left \in Taken /\ pair.right \in Taken
        /\ IsOpenAt(Earlier(pair), arrived[Later(pair)].now)
        /\ RightDrives \/ pair.right < pair.left}

IsPair(output) == output.left # None /\ output.right # None
EmittedPairs == {output \in {emitted[place] : place \in 1..Len(emitted)} : IsPair(output)}
IsEmittedAlone(number) == \E place \in 1..Len(emitted) : emitted[place] = Alone(arrived[number].input, number)

(* Whether a record that is yet to come could find that one: there is a timestamp with which it would.                *)
MayBeFound(number) ==
    LET row == arrived[number]
        others == 0..(MaxTimestamp + Before + After)
        now(other) == IF Clock = "batch" THEN clock ELSE Larger(clock, other)
    IN  \E other \in others :
            /\ IF row.input = "left" THEN Within(row.timestamp, other) ELSE Within(other, row.timestamp)
            /\ IsOpenAt(number, now(other))
            /\ IsOpen(Other(row.input), other, now(other))

(* No record came more than Grace behind the clock.                                                                   *)
AllInTime == \A number \in AllNumbers : arrived[number].timestamp + Grace >= arrived[number].now

-----------------------------------------------------------------------------
(* What ought to hold.                                                                                                *)

(* Every variable holds what it is meant to hold.                                                                     *)
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

(* The clock says the largest timestamp so far; the batch clock that of the batches that have ended.                  *)
ClockIsLargest ==
    LET cuts == {place \in 1..Len(arrived) : arrived[place].input = "cut"}
        last == CHOOSE place \in cuts \cup {0} : \A other \in cuts : place >= other
        timestamps == {arrived[place].timestamp : place \in 1..(IF Clock = "batch" THEN last ELSE Len(arrived))}
    IN  clock \in timestamps \cup {0} /\ \A timestamp \in timestamps : timestamp <= clock

(* A pair is emitted once, however many windows both are in.                                                          *)
OneOutputAPair ==
    \A place, other \in 1..Len(emitted) : place # other /\ IsPair(emitted[place]) => emitted[place] # emitted[other]

(* Pairs have one key, and lie within the bounds.                                                                     *)
PairsWithinBounds == EmittedPairs \subseteq PairsByBounds

(* No late record is joined, nor one that had expired when its partner came.                                          *)
NoPairTooLate == \A pair \in EmittedPairs \cap PairsByBounds : pair \in PairsFound

(* Every pair is emitted in which neither came late and the earlier had not expired.                                  *)
NoPairMissed == PairsFound \subseteq EmittedPairs

(* If no record comes more than Grace behind the clock, the pairs emitted are exactly the join by the bounds.         *)
InTimeIsJoined == AllInTime /\ RightDrives => EmittedPairs = PairsByBounds

(* If no record is dropped as late, the pairs emitted are exactly the join by the bounds. It does not hold: a record  *)
(* may be in time by its own timestamp, and its partner have expired.                                                 *)
NotLateIsJoined == Taken = AllNumbers /\ RightDrives => EmittedPairs = PairsByBounds

(* A row is emitted without partner at most once, and only of an input that emits such rows.                          *)
AloneOnce ==
    /\ \A place, other \in 1..Len(emitted) : place # other => emitted[place] # emitted[other] \/ IsPair(emitted[place])
    /\ \A number \in AllNumbers : IsEmittedAlone(number) => number \in Taken /\ EmitsUnmatched(arrived[number].input)

(* Unless nulls are eager, no row is emitted both without partner and with one.                                       *)
NeverBoth == Emit # "eager" => \A number \in AllNumbers : ~(IsEmittedAlone(number) /\
    \E pair \in EmittedPairs : number \in {pair.left, pair.right})

(* On close: no row is emitted without partner while one can come.                                                    *)
AloneNotTooEarly == Emit = "close" => \A number \in AllNumbers : IsEmittedAlone(number) => ~IsOpenAt(number, clock)

(* On close: a row is emitted without partner as soon as none can come, if it never found one.                        *)
ClosedAreEmitted ==
    Emit = "close" =>
        LET paired == UNION {{pair.left, pair.right} : pair \in PairsFound}
        IN  \A number \in Taken \ paired :
                EmitsUnmatched(arrived[number].input) /\ ~IsOpenAt(number, clock) => IsEmittedAlone(number)

(* Eager or at arrival: a row is emitted without partner at once, exactly if it finds none that came before it.       *)
AloneAtOnce ==
    Emit # "close" =>
        LET finders == {Later(pair) : pair \in PairsFound}
        IN  \A number \in Taken :
                IsEmittedAlone(number) <=> (EmitsUnmatched(arrived[number].input) /\ number \notin finders)

(* The buffer holds exactly the records that one yet to come may find; so it is bounded by the clock.                 *)
BufferIsWhatMayBeFound ==
    \A input \in Inputs :
        {buffer[input][place].number : place \in 1..Len(buffer[input])} =
        {number \in Taken \cap Numbers(input) : IsFound(input) /\ MayBeFound(number)}

=============================================================================
