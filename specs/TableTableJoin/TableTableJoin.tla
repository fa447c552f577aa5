---------------------------- MODULE TableTableJoin ----------------------------
(* The join of two tables by the same key, kept up to date by changes of either.                                      *)
(*                                                                                                                    *)
(* Changes of each table wait in a queue. Changes of one queue keep their order; the two queues overtake each other   *)
(* freely. The join takes them one at a time, keeps both tables, and emits what the joined row of the key is now.     *)
(*                                                                                                                    *)
(* The law: let T be a changelog and f(T) the table that it folds to. Then join(f(T1), f(T2)) =                       *)
(* f(join(T1, T2)), for inner, left and outer joins. "Thus, in this sense, table-table joins are eventually           *)
(* consistent."                                                                                                       *)
(*                                                                                                                    *)
(* Source: join semantics, "KTable-KTable Join"; docs/facts.md for what is emitted when nothing                       *)
(* changes. The same in Python is reference/table_table_join.py; its names are used here. Timestamps are left out:    *)
(* whatever they say, the change that comes last stands.                                                              *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Keys,       \* the keys of both tables
    Changes,    \* how many changes of each table there may be
    Join,       \* "inner", "left" or "outer"
    Tombstones, \* "again": a tombstone is emitted again where nothing is shown, as Kafka Streams does; "once": it isn't
    Mutant,     \* "none", or the mutation; see Mutants
    None        \* no row

Mutants == {
    "none",
    "left tombstone ignored", \* a tombstone of the left table deletes nothing
    "right silent",           \* the left join is driven by the left table alone, like that of a stream and a table
    "stale other side",       \* a change is joined with the other row as it was before its last change
    "null shown",             \* an inner join shows a row without partner, with null
    "tombstone for nothing",  \* a tombstone is emitted though neither table has or had a row
    "changes overtake"}       \* any change of a queue may be taken

ASSUME Join \in {"inner", "left", "outer"} /\ Tombstones \in {"again", "once"} /\ Mutant \in Mutants
ASSUME Changes \in Nat

VARIABLES
    log,    \* of each input all changes that were made, in order
    queue,  \* of each input those that wait
    tables, \* the tables as the join has them: of each input and key a value or None
    result, \* the join as emitted so far: of each key a pair or None
    emitted \* what the last change has emitted: nothing or one output

vars == <<log, queue, tables, result, emitted>>

-----------------------------------------------------------------------------
(* What changes and outputs are. The n-th change of a table has the value n, or is a tombstone.                       *)

Inputs == {"left", "right"}
Other(input) == IF input = "left" THEN "right" ELSE "left"
Change(key, value) == [key |-> key, value |-> value]

Pair(left, right) == [left |-> left, right |-> right]
PairOf(input, value, other) == IF input = "left" THEN Pair(value, other) ELSE Pair(other, value)

(* What the join of two rows is, None where it isn't shown.                                                           *)
Joined(pair) ==
    LET shown == CASE Join = "inner" -> pair.left # None /\ pair.right # None
                   [] Join = "left" -> pair.left # None
                   [] OTHER -> pair.left # None \/ pair.right # None
    IN  IF shown THEN pair ELSE None

(* The table that the first `count` changes of an input fold to.                                                      *)
Folded(input, count) ==
    [key \in Keys |->
        LET places == {place \in 1..count : log[input][place].key = key}
        IN  IF places = {} THEN None
            ELSE log[input][CHOOSE place \in places : \A other \in places : place >= other].value]

JoinOf(left, right) == [key \in Keys |-> Joined(Pair(left[key], right[key]))]

(* What the result ought to be, by the tables alone.                                                                  *)
JoinOfSources == JoinOf(Folded("left", Len(log["left"])), Folded("right", Len(log["right"])))

-----------------------------------------------------------------------------
(* What the join does, mutations included.                                                                            *)

(* A table is changed where it is kept: a change is made, and waits.                                                  *)
Make(input) ==
    /\ Len(log[input]) < Changes
    /\ \E key \in Keys, value \in {Len(log[input]) + 1, None} :
        /\ log' = [log EXCEPT ![input] = Append(@, Change(key, value))]
        /\ queue' = [queue EXCEPT ![input] = Append(@, Change(key, value))]
    /\ emitted' = <<>>
    /\ UNCHANGED <<tables, result>>

(* Whether anything is emitted of a change from `old` to `value`, where the other table has `other`.                  *)
IsEmitted(input, old, value, other) ==
    CASE Mutant = "right silent" /\ Join = "left" /\ input = "right" -> FALSE
      [] Mutant = "null shown" -> TRUE
      [] Join = "inner" \/ (Join = "left" /\ input = "right") -> other # None
      [] OTHER -> old # None \/ value # None \/ other # None \/ Mutant = "tombstone for nothing"

(* What it is emitted as, None for a tombstone.                                                                       *)
Output(input, value, other) ==
    IF Mutant = "null shown" /\ value # None THEN PairOf(input, value, other) ELSE Joined(PairOf(input, value, other))

(* The row of the other table. The mutant looks where the last change of that table isn't yet.                        *)
LookedUp(input, key) ==
    IF Mutant = "stale other side"
    THEN LET taken == Len(log[input]) - Len(queue[input])
         IN  Folded(input, IF taken > 0 THEN taken - 1 ELSE 0)[key]
    ELSE tables[input][key]

(* Which of the waiting changes may be taken: the oldest.                                                             *)
Takeable(input) ==
    IF Mutant = "changes overtake" THEN 1..Len(queue[input]) ELSE {1} \cap 1..Len(queue[input])

(* The join takes a change: the table holds it, and at most one output is emitted.                                    *)
Take(input) ==
    \E place \in Takeable(input) :
        LET change == queue[input][place]
            key == change.key
            value == IF Mutant = "left tombstone ignored" /\ input = "left" /\ change.value = None
                     THEN tables[input][key] ELSE change.value
            old == tables[input][key]
            other == LookedUp(Other(input), key)
            output == Output(input, value, other)
            again == Tombstones = "once" /\ output = None /\ result[key] = None
        IN  /\ queue' = [queue EXCEPT ![input] = SubSeq(@, 1, place - 1) \o SubSeq(@, place + 1, Len(@))]
            /\ tables' = [tables EXCEPT ![input][key] = value]
            /\ IF IsEmitted(input, old, value, other) /\ ~again
               THEN /\ emitted' = <<[key |-> key, row |-> output]>>
                    /\ result' = [result EXCEPT ![key] = output]
               ELSE emitted' = <<>> /\ UNCHANGED result
            /\ UNCHANGED log

-----------------------------------------------------------------------------

Init ==
    /\ log = [input \in Inputs |-> <<>>]
    /\ queue = [input \in Inputs |-> <<>>]
    /\ tables = [input \in Inputs |-> [key \in Keys |-> None]]
    /\ result = [key \in Keys |-> None]
    /\ emitted = <<>>

Drained == \A input \in Inputs : queue[input] = <<>>

(* All changes are made and none waits. So that any other state without a next one is a deadlock.                     *)
Finished ==
    /\ \A input \in Inputs : Len(log[input]) = Changes
    /\ Drained
    /\ UNCHANGED vars

Next ==
    \/ Finished
    \/ \E input \in Inputs : Make(input)
    \/ \E input \in Inputs : Take(input)

(* Keys are alike, where they are model values.                                                                       *)
Symmetry == Permutations(Keys)

Spec == Init /\ [][Next]_vars

(* Whatever waits is taken in the end.                                                                                *)
FairSpec == Spec /\ \A input \in Inputs : WF_vars(Take(input))

-----------------------------------------------------------------------------
(* What ought to hold.                                                                                                *)

Values == 1..Changes

(* Every variable holds what it is meant to hold.                                                                     *)
Types ==
    /\ \A input \in Inputs :
        /\ \A place \in 1..Len(log[input]) :
            log[input][place].key \in Keys /\ log[input][place].value \in Values \cup {None}
        /\ Len(queue[input]) <= Len(log[input])
        /\ tables[input] \in [Keys -> Values \cup {None}]
    /\ \A key \in Keys :
        result[key] = None \/ (result[key].left \in Values \cup {None} /\ result[key].right \in Values \cup {None})
    /\ Len(emitted) \in {0, 1}

(* The join has each table as it was after the changes that were taken.                                               *)
TablesAreFolded ==
    \A input \in Inputs : tables[input] = Folded(input, Len(log[input]) - Len(queue[input]))

(* Every result, those in between too, is the join of a prefix of each changelog.                                     *)
ResultIsJoinOfPrefixes ==
    \E left \in 0..Len(log["left"]), right \in 0..Len(log["right"]) :
        result = JoinOf(Folded("left", left), Folded("right", right))

(* When no change waits, the result is the join of the tables.                                                        *)
DrainedIsJoined == Drained => result = JoinOfSources

(* No row is shown that the join doesn't show: inner shows pairs, left shows left rows, outer those of either.        *)
NothingElseShown == \A key \in Keys : result[key] # None => result[key] = Joined(result[key])

(* A tombstone is emitted only where something was shown, or where one of the tables has a row.                       *)
TombstoneHasReason ==
    [][\A place \in 1..Len(emitted') :
        LET key == emitted'[place].key
        IN  emitted'[place].row = None => result[key] # None \/ \E input \in Inputs : tables[input][key] # None]_vars

(* A tombstone is emitted only where something was shown. It holds where Tombstones is "once", and for outer joins.   *)
TombstoneOnlyWhereShown ==
    [][\A place \in 1..Len(emitted') : emitted'[place].row = None => result[emitted'[place].key] # None]_vars

(* Once changes end, the result becomes the join, and stays it. It needs FairSpec, and no symmetry.                   *)
Settles == <>[](result = JoinOfSources)

=============================================================================
