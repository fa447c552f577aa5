------------------------------ MODULE MicroBatch ------------------------------
(* The micro-batch engine cuts an input into batches, runs a stateful operator on each batch, and survives crashes.    *)
(*                                                                                                                     *)
(* The engine first writes a batch's plan to the offset log: the end offset and the clock. Then the engine runs the    *)
(* operator from the saved state of the previous batch. It saves the new state and writes the rows to the sink, in     *)
(* either order, and then records the batch in the commit log. After a crash, the engine runs a planned, uncommitted   *)
(* batch again with the same plan, so the sink may receive the batch twice.                                            *)
(*                                                                                                                     *)
(* The operator's output depends on the order and the clock: it is the list of records of each window. A record is     *)
(* late, and dropped, if its window has ended by the batch's clock. The state forgets ended windows. The last output   *)
(* of a window counts, because rows are folded by window. The clock of a batch is the largest timestamp of earlier     *)
(* batches, as Spark's watermark.                                                                                      *)
(*                                                                                                                     *)
(* Source: docs/facts.md, "Spark, observed"; Spark's offset log, commit log and state store, as SPARK-24699 and        *)
(* SPARK-52008 report them. The sink in Python is spark_impl/sinks/materialize.py.                                     *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Records,      \* the number of records of the input, which are identified by their offsets, from 1
    MaxTimestamp, \* timestamps are 0..MaxTimestamp
    WindowSize,   \* the length of a window
    Crashes,      \* the largest number of crashes
    Emit,         \* "update": a batch emits the windows that it changed; "close": the windows that its clock has ended;
                  \* "cuts": another operator, which emits nothing and stores the list of cuts so far; see Inductive
    Sink,         \* "idempotent": the sink skips a batch whose number it has; "plain": the sink adds the rows again
    Mutant,       \* "none", or the mutation; see Mutants
    None          \* nothing

Mutants == {
    "none",
    "plans anew",                 \* after a crash the uncommitted batch is planned again, and may have another end offset
    "watermark of all planned",   \* after a crash the clock is computed from all planned batches, including the batch itself
    "watermark not committed",    \* SPARK-24699: after a crash the clock is the clock of the newest plan
    "newest state",               \* a repeated batch starts from the newest state, which may be its own state
    "state is the commit",        \* after a crash a batch counts as committed if its state was saved
    "repeated batch not run",     \* a sink that has the batch returns at once, so the operator doesn't run
    "late by the record's clock"} \* a record is late by the largest earlier timestamp, also of its own batch

ASSUME Emit \in {"update", "close", "cuts"} /\ Sink \in {"idempotent", "plain"} /\ Mutant \in Mutants
ASSUME {Records, MaxTimestamp, WindowSize, Crashes} \subseteq Nat /\ WindowSize > 0

VARIABLES
    input,   \* the timestamp of each record, which doesn't change
    offsets, \* the offset log: the end offset and the clock of each planned batch
    commits, \* the commit log: for each committed batch the clock of the next batch
    states,  \* the saved states: for each batch the records of each window that hasn't ended
    sink,    \* the written rows, in order: the number of a batch, and the batch's rows
    engine,  \* the state of the engine: "down", "idle", "planned" or "run"
    clock,   \* in memory: the clock of the current batch or, when idle, of the next batch
    ran,     \* in memory: the state and rows of the run, and whether they are saved and written
    crashes  \* the number of crashes so far

vars == <<input, offsets, commits, states, sink, engine, clock, ran, crashes>>

-----------------------------------------------------------------------------
(* The operator.                                                                                                      *)

Timestamps == 0..MaxTimestamp
Windows == 0..(MaxTimestamp \div WindowSize)
WindowOf(timestamp) == timestamp \div WindowSize
End(window) == (window + 1) * WindowSize
Empty == [window \in Windows |-> <<>>]

Largest(set) == CHOOSE one \in set : \A other \in set : one >= other
LargestUpTo(offset) ==
    IF Emit = "cuts" THEN offset ELSE Largest({0} \cup {input[other] : other \in 1..offset})
Larger(one, other) == IF one > other THEN one ELSE other

(* Whether a record is late in a batch with this clock.                                                                *)
IsLate(offset, now) ==
    End(WindowOf(input[offset])) <=
        (IF Mutant = "late by the record's clock" THEN Larger(now, LargestUpTo(offset - 1)) ELSE now)

(* The records of each window after a batch has read from `first` to `last`, without the records in `late`.            *)
Added(state, first, last, late(_)) ==
    [window \in Windows |->
        LET joins(offset) == WindowOf(input[offset]) = window /\ ~late(offset)
        IN  IF Emit = "cuts"
            THEN Append(state[window], last)
            ELSE state[window] \o SelectSeq([place \in 1..(last - first + 1) |-> first + place - 1], joins)]

Ended(records, now) == {window \in Windows : End(window) <= now /\ records[window] # <<>>}

(* The output of a batch, given each window's records `before` and now (`records`): the changed or the ended windows.  *)
RowsOf(before, records, now) ==
    IF Emit = "cuts" THEN {}
    ELSE {[window |-> window, records |-> records[window]] :
            window \in IF Emit = "close" THEN Ended(records, now)
                      ELSE {window \in Windows : records[window] # before[window]}}

(* The state after the batch: the windows that haven't ended.                                                          *)
Rest(records, now) ==
    IF Emit = "cuts" THEN records
    ELSE [window \in Windows |-> IF window \in Ended(records, now) THEN <<>> ELSE records[window]]

-----------------------------------------------------------------------------
(* The engine.                                                                                                        *)

ReadUpTo(batch) == IF batch = 0 THEN 0 ELSE offsets[batch].upto
Batch == Len(commits) + 1
NextClock == Larger(clock, LargestUpTo(ReadUpTo(Batch)))

(* The engine plans a batch up to some offset. If the clock has moved, a batch without data follows.                   *)
Plan ==
    /\ engine = "idle"
    /\ \E upto \in 0..Records :
        /\ upto >= ReadUpTo(Batch - 1)
        /\ upto > ReadUpTo(Batch - 1) \/ (Batch > 1 /\ clock > offsets[Batch - 1].clock)
        /\ offsets' = Append(offsets, [upto |-> upto, clock |-> clock])
    /\ engine' = "planned"
    /\ UNCHANGED <<input, commits, states, sink, clock, ran, crashes>>

IsWritten(batch) == \E place \in 1..Len(sink) : sink[place].batch = batch

(* The engine runs the batch from the state of the previous batch.                                                     *)
Run ==
    /\ engine = "planned"
    /\ ~(Mutant = "repeated batch not run" /\ IsWritten(Batch))
    /\ Len(states) >= Batch - 1
    /\ LET first == ReadUpTo(Batch - 1) + 1
           version == IF Mutant = "newest state" THEN Len(states) ELSE Batch - 1
           before == IF version = 0 THEN Empty ELSE states[version]
           late(offset) == IsLate(offset, clock)
           records == Added(before, first, ReadUpTo(Batch), late)
       IN  ran' = [state |-> Rest(records, clock), rows |-> RowsOf(before, records, clock),
                   saved |-> FALSE, written |-> FALSE]
    /\ engine' = "run"
    /\ UNCHANGED <<input, offsets, commits, states, sink, clock, crashes>>

(* The engine saves the state under the number of the batch, and replaces a state that was saved before a crash.       *)
SaveState ==
    /\ engine = "run" /\ ~ran.saved
    /\ states' = Append(SubSeq(states, 1, Batch - 1), ran.state)
    /\ ran' = [ran EXCEPT !.saved = TRUE]
    /\ UNCHANGED <<input, offsets, commits, sink, engine, clock, crashes>>

WriteRows ==
    /\ engine = "run" /\ ~ran.written
    /\ sink' = IF Sink = "idempotent" /\ IsWritten(Batch) THEN sink
               ELSE Append(sink, [batch |-> Batch, rows |-> ran.rows])
    /\ ran' = [ran EXCEPT !.written = TRUE]
    /\ UNCHANGED <<input, offsets, commits, states, engine, clock, crashes>>

IsDone ==
    \/ engine = "run" /\ ran.saved /\ ran.written
    \/ Mutant = "repeated batch not run" /\ engine = "planned" /\ IsWritten(Batch)

(* The engine commits the batch, with the clock of the next batch.                                                     *)
Commit ==
    /\ IsDone
    /\ commits' = Append(commits, [clock |-> NextClock])
    /\ clock' = NextClock
    /\ engine' = "idle"
    /\ ran' = None
    /\ UNCHANGED <<input, offsets, states, sink, crashes>>

(* A crash loses the memory, but not the logs, states and sink.                                                        *)
Crash ==
    /\ engine # "down" /\ crashes < Crashes
    /\ crashes' = crashes + 1
    /\ engine' = "down"
    /\ clock' = 0
    /\ ran' = None
    /\ UNCHANGED <<input, offsets, commits, states, sink>>

(* The engine restarts from its logs, and runs the planned, uncommitted batch, if any.                                 *)
Restart ==
    /\ engine = "down"
    /\ LET planned == Len(offsets)
           committed == IF Mutant = "state is the commit" /\ Len(states) = planned THEN planned ELSE Len(commits)
           next == IF committed = 0 THEN 0 ELSE LargestUpTo(ReadUpTo(committed))
       IN  /\ commits' = IF committed > Len(commits) THEN Append(commits, [clock |-> next]) ELSE commits
           /\ IF committed < planned /\ Mutant = "plans anew"
              THEN /\ offsets' = SubSeq(offsets, 1, committed)
                   /\ engine' = "idle"
                   /\ clock' = offsets[planned].clock
              ELSE /\ UNCHANGED offsets
                   /\ engine' = IF committed < planned THEN "planned" ELSE "idle"
                   /\ clock' = CASE planned = 0 -> 0
                                 [] Mutant = "watermark of all planned" -> LargestUpTo(ReadUpTo(planned))
                                 [] committed < planned \/ Mutant = "watermark not committed" -> offsets[planned].clock
                                 [] OTHER -> commits'[committed].clock
    /\ UNCHANGED <<input, states, sink, ran, crashes>>

-----------------------------------------------------------------------------

NothingYet ==
    /\ offsets = <<>> /\ commits = <<>> /\ states = <<>> /\ sink = <<>>
    /\ engine = "idle"
    /\ clock = 0
    /\ ran = None
    /\ crashes = 0

Init == input \in [1..Records -> Timestamps] /\ NothingYet

(* The engine has read all records, and no batch without data is due.                                                  *)
AllDone ==
    /\ engine = "idle" /\ ReadUpTo(Batch - 1) = Records
    /\ Batch = 1 \/ clock <= offsets[Batch - 1].clock

(* The input is processed. Any other state without a successor is a deadlock.                                          *)
Finished == AllDone /\ UNCHANGED vars

Next == Finished \/ Plan \/ Run \/ SaveState \/ WriteRows \/ Commit \/ Crash \/ Restart

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* The right output, computed from the input and the cuts alone. A cut is the end offset of a planned batch.           *)

(* The right clock of a batch.                                                                                         *)
ClockOf(batch) == IF batch = 0 THEN 0 ELSE LargestUpTo(ReadUpTo(batch - 1))

(* The batch that reads a record, and whether the batch's clock drops the record.                                      *)
BatchOf(offset) == CHOOSE batch \in 1..Len(offsets) :
    offset <= ReadUpTo(batch) /\ (batch = 1 \/ offset > ReadUpTo(batch - 1))
IsDropped(offset) == End(WindowOf(input[offset])) <= ClockOf(BatchOf(offset))

(* The records of each window after a batch, also of windows that have ended.                                          *)
AllRecords(batch) == Added(Empty, 1, ReadUpTo(batch), IsDropped)

StateOf(batch) == Rest(AllRecords(batch), ClockOf(batch))
RowsOfBatch(batch) ==
    LET before == AllRecords(batch - 1)
    IN  RowsOf(before, AllRecords(batch), ClockOf(batch)) \
            (IF Emit = "close" THEN RowsOf(before, before, ClockOf(batch - 1)) ELSE {})

(* The folded output of the input in a single batch and the following batch without data, in which no record is late.  *)
FoldedOfOneBatch ==
    LET never(offset) == FALSE
        all == Added(Empty, 1, Records, never)
        ended == Ended(all, LargestUpTo(Records))
    IN  [window \in Windows |-> IF Emit = "update" \/ window \in ended THEN all[window] ELSE <<>>]

(* No record is late, even if each record had its own batch.                                                           *)
NothingLate == \A offset \in 1..Records : End(WindowOf(input[offset])) > LargestUpTo(offset - 1)

(* The folded sink: for each window the records in its last output.                                                    *)
Folded ==
    [window \in Windows |->
        LET rows(place) == {row \in sink[place].rows : row.window = window}
            places == {place \in 1..Len(sink) : rows(place) # {}}
        IN  IF places = {} THEN <<>> ELSE (CHOOSE row \in rows(Largest(places)) : TRUE).records]

-----------------------------------------------------------------------------
(* The properties.                                                                                                     *)

(* Every variable has the right type.                                                                                  *)
Types ==
    /\ input \in [1..Records -> Timestamps]
    /\ \A batch \in 1..Len(offsets) : offsets[batch] \in [upto : 1..Records, clock : Timestamps]
    /\ \A batch \in 1..Len(commits) : commits[batch] \in [clock : Timestamps]
    /\ Len(offsets) \in {Len(commits), Len(commits) + 1} /\ Len(states) <= Len(offsets)
    /\ \A place \in 1..Len(sink) : sink[place].batch \in 1..Len(offsets)
    /\ engine \in {"down", "idle", "planned", "run"} /\ clock \in Timestamps /\ crashes \in 0..Crashes
    /\ (ran = None) <=> (engine # "run")

(* The clock of each planned batch is the largest timestamp of the batches before it, despite any crash.               *)
ClockIsLargest == \A batch \in 1..Len(offsets) : offsets[batch].clock = ClockOf(batch)

(* The input and the cuts determine a saved state, despite any crash.                                                  *)
StateIsOfTheCuts == \A batch \in 1..Len(states) : states[batch] = StateOf(batch)

(* The input and the cuts determine the written rows: a repeated batch writes the same rows.                           *)
RowsAreOfTheCuts == \A place \in 1..Len(sink) : sink[place].rows = RowsOfBatch(sink[place].batch)

(* The rows of a committed batch are in the sink.                                                                     *)
AtLeastOnce == \A batch \in 1..Len(commits) : IsWritten(batch)

(* No batch is in the sink twice. This property needs an idempotent sink.                                              *)
AtMostOnce == \A place, other \in 1..Len(sink) : sink[place].batch = sink[other].batch => place = other

(* If no record is late, the folded sink in the end equals the output of a single batch, for any cuts.                 *)
CutsDoNotMatter == AllDone /\ NothingLate => Folded = FoldedOfOneBatch

(* The same claim for any input. This property fails, because the cuts decide whether a late record is dropped.        *)
CutsNeverMatter == AllDone => Folded = FoldedOfOneBatch

(* In the end a record is emitted or stored exactly if its window hadn't ended by the clock of its batch.              *)
DroppedByTheBatchClock ==
    AllDone =>
        LET kept == IF states = <<>> THEN Empty ELSE states[Len(states)]
            records(lists) == UNION {{lists[window][place] : place \in 1..Len(lists[window])} : window \in Windows}
        IN  records(Folded) \cup records(kept) = {offset \in 1..Records : ~IsDropped(offset)}

(* A plan never changes: a repeated batch reads the same records.                                                      *)
PlansStand ==
    [][Len(offsets') >= Len(offsets) /\ \A batch \in 1..Len(offsets) : offsets'[batch] = offsets[batch]]_vars

-----------------------------------------------------------------------------
(* The inductive invariant, for any operator and any number of records, batches and crashes. If Emit is "cuts", the    *)
(* state is the list of cuts. The state of any operator follows from this list and the input. So if each batch starts  *)
(* from the right list, each batch starts from the right state. In the same way, the clock is represented by the       *)
(* offset up to which it was computed. A batch without data may follow whenever this offset has grown, which allows    *)
(* more behaviours than timestamps do. `streamproof spec prove MicroBatch` proves the invariant by induction.          *)

(* If Emit is "cuts", the engine doesn't read the input, so any input is allowed.                                      *)
InitOfCuts == input = [offset \in 1..Records |-> 0] /\ NothingYet

TypesOfCuts ==
    /\ input \in [1..Records -> Timestamps]
    /\ offsets \in Seq([upto : Nat, clock : Nat]) /\ commits \in Seq([clock : Nat])
    /\ states \in Seq([Windows -> Seq(Nat)])
    /\ sink \in Seq([batch : Nat, rows : {{}}])
    /\ engine \in {"down", "idle", "planned", "run"} /\ clock \in Nat /\ crashes \in Nat
    /\ ran \in [state : [Windows -> Seq(Nat)], rows : {{}}, saved : BOOLEAN, written : BOOLEAN] \cup {None}

(* 1. At most one batch is planned and not committed. The state of every committed batch is saved. The state of the    *)
(*    uncommitted batch may be saved, too.                                                                             *)
LogsFit ==
    /\ Len(offsets) \in {Len(commits), Len(commits) + 1}
    /\ Len(commits) <= Len(states) /\ Len(states) <= Len(offsets)
    /\ engine = "idle" => Len(offsets) = Len(commits)
    /\ engine \in {"planned", "run"} => Len(offsets) = Len(commits) + 1
    /\ (ran = None) <=> (engine # "run")

(* 2. Each batch starts at the end offset of the previous batch.                                                       *)
PlansReadOn ==
    \A batch \in 1..Len(offsets) : ReadUpTo(batch - 1) <= offsets[batch].upto /\ offsets[batch].upto <= Records

(* 3. The clock in memory is the clock of the planned batch or of the next batch, as in the commit log.                *)
ClocksFit ==
    /\ \A batch \in 1..Len(commits) : commits[batch].clock = LargestUpTo(ReadUpTo(batch))
    /\ engine = "idle" => clock = LargestUpTo(ReadUpTo(Len(commits)))
    /\ engine \in {"planned", "run"} => clock = offsets[Batch].clock
    /\ engine = "down" => clock = 0

(* 4. The sink contains rows of planned batches only, and contains all saved or written results of the run.            *)
SinkIsOfPlans == \A place \in 1..Len(sink) : sink[place].batch \in 1..Len(offsets)
RunIsKnown == engine = "run" => (ran.saved => Len(states) = Len(offsets)) /\ (ran.written => IsWritten(Batch))
IdempotentOnce == Sink = "idempotent" => AtMostOnce

(* 5. Each saved state, and the state of the run, contains all cuts up to its batch, each once and in order.           *)
StatesAreOfTheCuts ==
    \A batch \in 1..Len(states) :
        /\ Len(states[batch][0]) = batch
        /\ \A place \in 1..batch : states[batch][0][place] = offsets[place].upto
RunIsOfTheCuts ==
    engine = "run" =>
        /\ Len(ran.state[0]) = Batch
        /\ \A place \in 1..Batch : ran.state[0][place] = offsets[place].upto

Inductive ==
    /\ TypesOfCuts
    /\ LogsFit
    /\ PlansReadOn
    /\ ClockIsLargest
    /\ ClocksFit
    /\ SinkIsOfPlans
    /\ RunIsKnown
    /\ AtLeastOnce
    /\ IdempotentOnce
    /\ StatesAreOfTheCuts
    /\ RunIsOfTheCuts

=============================================================================
