------------------------------ MODULE MicroBatch ------------------------------
(* The micro-batch engine: it cuts an input into batches, runs an operator with state on each, and survives crashes.  *)
(*                                                                                                                    *)
(* Before a batch is run, its plan is written to the offset log: up to which offset it reads, and what its clock      *)
(* says. Then the operator is run from the state that the batch before it saved; it saves its own state, and its rows *)
(* are written to the sink, in either order. When both are done, the commit log says so. After a crash, a batch that  *)
(* was planned and not committed is run again, as it was planned, and the sink sees it for a second time.             *)
(*                                                                                                                    *)
(* The operator is a small one whose answer depends on order and clock: for each window the list of its records. A    *)
(* record of a window that has ended by the batch's clock is late, and dropped; a window that has ended is forgotten. *)
(* What is emitted of a window last is what counts: the rows are folded by window. The clock of a batch is the        *)
(* largest timestamp of the batches before it: Spark's watermark.                                                     *)
(*                                                                                                                    *)
(* Source: docs/facts.md, "Spark, observed"; Spark's offset log, commit log and state                                 *)
(* store, as SPARK-24699 and SPARK-52008 report them. A sink like this in Python is spark_impl/sinks/materialize.py.  *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Records,      \* how many records the input has; each is called by its offset, from 1
    MaxTimestamp, \* their timestamps are 0..MaxTimestamp
    WindowSize,   \* how long a window is
    Crashes,      \* how often the engine may crash
    Emit,         \* "update": a batch emits the windows that it changed; "close": those that its clock has ended;
                  \* "cuts": another operator, which emits nothing and keeps the list of the cuts so far; see Inductive
    Sink,         \* "idempotent": it skips the rows of a batch whose number it has; "plain": it adds them again
    Mutant,       \* "none", or the mutation; see Mutants
    None          \* nothing

Mutants == {
    "none",
    "plans anew",                 \* after a crash the uncommitted batch is planned again, and may read up to elsewhere
    "watermark of all planned",   \* after a crash the clock is computed from all that is planned, the batch itself too
    "watermark not committed",    \* SPARK-24699: after a crash the clock is that of the newest plan
    "newest state",               \* a batch that is run again starts from the newest state, which may be its own
    "state is the commit",        \* after a crash a batch counts as committed if its state was saved
    "repeated batch not run",     \* a sink that has the batch returns at once, so that the operator isn't run
    "late by the record's clock"} \* a record is late by the largest timestamp before it, of its own batch too

ASSUME Emit \in {"update", "close", "cuts"} /\ Sink \in {"idempotent", "plain"} /\ Mutant \in Mutants
ASSUME {Records, MaxTimestamp, WindowSize, Crashes} \subseteq Nat /\ WindowSize > 0

VARIABLES
    input,   \* the timestamp of each record; it doesn't change
    offsets, \* the offset log: of each planned batch up to which offset it reads, and its clock
    commits, \* the commit log: of each committed batch the clock of the one after it
    states,  \* the saved states: of each batch the records in each window that hasn't ended
    sink,    \* what was written, in order: the number of a batch, and its rows
    engine,  \* what the engine is about: "down", "idle", "planned" or "run"
    clock,   \* in memory: the clock of the present batch; when idle, of the next one
    ran,     \* in memory: the state and the rows that the run has given, and which of them are saved and written
    crashes  \* how often the engine has crashed

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

(* Whether a record is late, in a batch of that clock.                                                                *)
IsLate(offset, now) ==
    End(WindowOf(input[offset])) <=
        (IF Mutant = "late by the record's clock" THEN Larger(now, LargestUpTo(offset - 1)) ELSE now)

(* The records of each window, once a batch has read from `first` to `last`; late ones are those that `late` names.   *)
Added(state, first, last, late(_)) ==
    [window \in Windows |->
        LET joins(offset) == WindowOf(input[offset]) = window /\ ~late(offset)
        IN  IF Emit = "cuts"
            THEN Append(state[window], last)
            ELSE state[window] \o SelectSeq([place \in 1..(last - first + 1) |-> first + place - 1], joins)]

Ended(records, now) == {window \in Windows : End(window) <= now /\ records[window] # <<>>}

(* What a batch emits, if windows had the records `before` and have `records` now: of those it changed, or that       *)
(* ended.                                                                                                             *)
RowsOf(before, records, now) ==
    IF Emit = "cuts" THEN {}
    ELSE {[window |-> window, records |-> records[window]] :
            window \in IF Emit = "close" THEN Ended(records, now)
                      ELSE {window \in Windows : records[window] # before[window]}}

(* The state after it: the windows that haven't ended.                                                                *)
Rest(records, now) ==
    IF Emit = "cuts" THEN records
    ELSE [window \in Windows |-> IF window \in Ended(records, now) THEN <<>> ELSE records[window]]

-----------------------------------------------------------------------------
(* The engine.                                                                                                        *)

ReadUpTo(batch) == IF batch = 0 THEN 0 ELSE offsets[batch].upto
Batch == Len(commits) + 1
NextClock == Larger(clock, LargestUpTo(ReadUpTo(Batch)))

(* A batch is planned: it reads on to some offset. One without data follows when the clock has moved.                 *)
Plan ==
    /\ engine = "idle"
    /\ \E upto \in 0..Records :
        /\ upto >= ReadUpTo(Batch - 1)
        /\ upto > ReadUpTo(Batch - 1) \/ (Batch > 1 /\ clock > offsets[Batch - 1].clock)
        /\ offsets' = Append(offsets, [upto |-> upto, clock |-> clock])
    /\ engine' = "planned"
    /\ UNCHANGED <<input, commits, states, sink, clock, ran, crashes>>

IsWritten(batch) == \E place \in 1..Len(sink) : sink[place].batch = batch

(* The batch is run, from the state of the one before it.                                                             *)
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

(* The state is saved under the number of the batch. One that was saved before a crash is replaced.                   *)
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

(* The batch is committed, with the clock of the next one.                                                            *)
Commit ==
    /\ IsDone
    /\ commits' = Append(commits, [clock |-> NextClock])
    /\ clock' = NextClock
    /\ engine' = "idle"
    /\ ran' = None
    /\ UNCHANGED <<input, offsets, states, sink, crashes>>

(* What is in memory is gone; logs, states and sink stay.                                                             *)
Crash ==
    /\ engine # "down" /\ crashes < Crashes
    /\ crashes' = crashes + 1
    /\ engine' = "down"
    /\ clock' = 0
    /\ ran' = None
    /\ UNCHANGED <<input, offsets, commits, states, sink>>

(* The engine starts again by its logs: it runs the batch that is planned and not committed, if there is one.         *)
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

(* All is read, and no batch without data is due.                                                                     *)
AllDone ==
    /\ engine = "idle" /\ ReadUpTo(Batch - 1) = Records
    /\ Batch = 1 \/ clock <= offsets[Batch - 1].clock

(* All is done. So that any other state without a next one is a deadlock.                                             *)
Finished == AllDone /\ UNCHANGED vars

Next == Finished \/ Plan \/ Run \/ SaveState \/ WriteRows \/ Commit \/ Crash \/ Restart

Spec == Init /\ [][Next]_vars

-----------------------------------------------------------------------------
(* What ought to come out, by the input and the cuts alone. A cut is up to where a planned batch reads.               *)

(* What the clock of a batch ought to be.                                                                             *)
ClockOf(batch) == IF batch = 0 THEN 0 ELSE LargestUpTo(ReadUpTo(batch - 1))

(* The batch that a record is read in, and whether it is dropped by its clock.                                        *)
BatchOf(offset) == CHOOSE batch \in 1..Len(offsets) :
    offset <= ReadUpTo(batch) /\ (batch = 1 \/ offset > ReadUpTo(batch - 1))
IsDropped(offset) == End(WindowOf(input[offset])) <= ClockOf(BatchOf(offset))

(* The records of each window after a batch, those of windows that have ended by then too.                            *)
AllRecords(batch) == Added(Empty, 1, ReadUpTo(batch), IsDropped)

StateOf(batch) == Rest(AllRecords(batch), ClockOf(batch))
RowsOfBatch(batch) ==
    LET before == AllRecords(batch - 1)
    IN  RowsOf(before, AllRecords(batch), ClockOf(batch)) \
            (IF Emit = "close" THEN RowsOf(before, before, ClockOf(batch - 1)) ELSE {})

(* What the input folds to in one batch, and the batch without data after it: nothing is late.                        *)
FoldedOfOneBatch ==
    LET never(offset) == FALSE
        all == Added(Empty, 1, Records, never)
        ended == Ended(all, LargestUpTo(Records))
    IN  [window \in Windows |-> IF Emit = "update" \/ window \in ended THEN all[window] ELSE <<>>]

(* No record is late, not even if each were a batch of its own.                                                       *)
NothingLate == \A offset \in 1..Records : End(WindowOf(input[offset])) > LargestUpTo(offset - 1)

(* What the sink folds to: of each window the records that were emitted last.                                         *)
Folded ==
    [window \in Windows |->
        LET rows(place) == {row \in sink[place].rows : row.window = window}
            places == {place \in 1..Len(sink) : rows(place) # {}}
        IN  IF places = {} THEN <<>> ELSE (CHOOSE row \in rows(Largest(places)) : TRUE).records]

-----------------------------------------------------------------------------
(* What ought to hold.                                                                                                *)

(* Every variable holds what it is meant to hold.                                                                     *)
Types ==
    /\ input \in [1..Records -> Timestamps]
    /\ \A batch \in 1..Len(offsets) : offsets[batch] \in [upto : 1..Records, clock : Timestamps]
    /\ \A batch \in 1..Len(commits) : commits[batch] \in [clock : Timestamps]
    /\ Len(offsets) \in {Len(commits), Len(commits) + 1} /\ Len(states) <= Len(offsets)
    /\ \A place \in 1..Len(sink) : sink[place].batch \in 1..Len(offsets)
    /\ engine \in {"down", "idle", "planned", "run"} /\ clock \in Timestamps /\ crashes \in 0..Crashes
    /\ (ran = None) <=> (engine # "run")

(* The clock of each planned batch is the largest timestamp of the batches before it, whatever crashed in between.    *)
ClockIsLargest == \A batch \in 1..Len(offsets) : offsets[batch].clock = ClockOf(batch)

(* A state that is saved is that of the input and the cuts, whatever crashed in between.                              *)
StateIsOfTheCuts == \A batch \in 1..Len(states) : states[batch] = StateOf(batch)

(* So are the rows that are written: a batch gives the same whenever it is run.                                       *)
RowsAreOfTheCuts == \A place \in 1..Len(sink) : sink[place].rows = RowsOfBatch(sink[place].batch)

(* The rows of a committed batch are in the sink.                                                                     *)
AtLeastOnce == \A batch \in 1..Len(commits) : IsWritten(batch)

(* No batch is in the sink twice. It holds where the sink is idempotent.                                              *)
AtMostOnce == \A place, other \in 1..Len(sink) : sink[place].batch = sink[other].batch => place = other

(* If no record is late, then in the end the sink folds to what a single batch would give, wherever the cuts were.    *)
CutsDoNotMatter == AllDone /\ NothingLate => Folded = FoldedOfOneBatch

(* The same of any input. It does not hold: a late record is dropped or not, by where the cuts are.                   *)
CutsNeverMatter == AllDone => Folded = FoldedOfOneBatch

(* In the end a record is emitted or kept exactly if its window hadn't ended by the clock of its batch.               *)
DroppedByTheBatchClock ==
    AllDone =>
        LET kept == IF states = <<>> THEN Empty ELSE states[Len(states)]
            records(lists) == UNION {{lists[window][place] : place \in 1..Len(lists[window])} : window \in Windows}
        IN  records(Folded) \cup records(kept) = {offset \in 1..Records : ~IsDropped(offset)}

(* A plan stands: the same batch reads the same, when it is run again.                                                *)
PlansStand ==
    [][Len(offsets') >= Len(offsets) /\ \A batch \in 1..Len(offsets) : offsets'[batch] = offsets[batch]]_vars

-----------------------------------------------------------------------------
(* Why it holds, whatever the operator is, for any number of records, batches and crashes. Where Emit is "cuts", the  *)
(* state is the list of the cuts from which it was made. The state of any operator follows from that list and the     *)
(* input; so if each batch starts from the right list, it starts from the right state. In the same way the clock is   *)
(* the offset up to which it was computed; a batch without data may follow wherever that has grown, and so in more    *)
(* behaviours than with timestamps. `streamproof spec prove MicroBatch` proves it by induction.                       *)

(* The input isn't read where Emit is "cuts": any will do.                                                            *)
InitOfCuts == input = [offset \in 1..Records |-> 0] /\ NothingYet

TypesOfCuts ==
    /\ input \in [1..Records -> Timestamps]
    /\ offsets \in Seq([upto : Nat, clock : Nat]) /\ commits \in Seq([clock : Nat])
    /\ states \in Seq([Windows -> Seq(Nat)])
    /\ sink \in Seq([batch : Nat, rows : {{}}])
    /\ engine \in {"down", "idle", "planned", "run"} /\ clock \in Nat /\ crashes \in Nat
    /\ ran \in [state : [Windows -> Seq(Nat)], rows : {{}}, saved : BOOLEAN, written : BOOLEAN] \cup {None}

(* 1. At most one batch is planned and not committed. The state of every committed batch is saved, and at most the    *)
(*    state of that one besides.                                                                                      *)
LogsFit ==
    /\ Len(offsets) \in {Len(commits), Len(commits) + 1}
    /\ Len(commits) <= Len(states) /\ Len(states) <= Len(offsets)
    /\ engine = "idle" => Len(offsets) = Len(commits)
    /\ engine \in {"planned", "run"} => Len(offsets) = Len(commits) + 1
    /\ (ran = None) <=> (engine # "run")

(* 2. Each batch reads on from where the one before it ended.                                                         *)
PlansReadOn ==
    \A batch \in 1..Len(offsets) : ReadUpTo(batch - 1) <= offsets[batch].upto /\ offsets[batch].upto <= Records

(* 3. The clock in memory is that of the planned batch, or of the next one; the commit log has it, too.               *)
ClocksFit ==
    /\ \A batch \in 1..Len(commits) : commits[batch].clock = LargestUpTo(ReadUpTo(batch))
    /\ engine = "idle" => clock = LargestUpTo(ReadUpTo(Len(commits)))
    /\ engine \in {"planned", "run"} => clock = offsets[Batch].clock
    /\ engine = "down" => clock = 0

(* 4. The sink has rows of planned batches alone, and what the run has saved or written is there.                     *)
SinkIsOfPlans == \A place \in 1..Len(sink) : sink[place].batch \in 1..Len(offsets)
RunIsKnown == engine = "run" => (ran.saved => Len(states) = Len(offsets)) /\ (ran.written => IsWritten(Batch))
IdempotentOnce == Sink = "idempotent" => AtMostOnce

(* 5. Each state that is saved, and that of the run, was made from all the cuts up to it, each once and in order.     *)
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
