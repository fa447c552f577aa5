---------------------------- MODULE TableTableJoin ----------------------------
(* The join of two tables by the same key, which changes of either table update.                                       *)
(*                                                                                                                     *)
(* Changes of each table wait in a queue. Changes of one table keep their order, and may overtake changes of the other *)
(* table. The join processes one change at a time, stores both tables, and emits the current joined row of the key.    *)
(*                                                                                                                     *)
(* The law: let T be a changelog and f(T) the table that it folds to. Then join(f(T1), f(T2)) = f(join(T1, T2)), for   *)
(* inner, left and outer joins. "Thus, in this sense, table-table joins are eventually consistent."                    *)
(*                                                                                                                     *)
(* Source: join semantics, "KTable-KTable Join"; docs/facts.md for the output of changes without effect. The join in   *)
(* Python is reference/table_table_join.py, which uses the same names. The module has no timestamps, because the last  *)
(* arrival wins regardless of its timestamp.                                                                           *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    Keys,       \* the keys of both tables
    Changes,    \* the largest number of changes of each table
    Join,       \* "inner", "left" or "outer"
    Tombstones, \* "again": a tombstone is emitted even without a result, as in Kafka Streams; "once": only with a result
    Mutant,     \* "none", or the mutation; see Mutants
    None        \* no row

Mutants == {
    "none",
    "left tombstone ignored", \* a tombstone of the left table deletes nothing
    "right silent",           \* only changes of the left table update the left join, as in a stream-table join
    "stale other side",       \* a change is joined with the other row before the last change of its table
    "null shown",             \* an inner join emits a row without a partner, with null
    "tombstone for nothing",  \* a tombstone is emitted although neither table has or had a row
    "changes overtake"}       \* any change of a queue may be processed

ASSUME Join \in {"inner", "left", "outer"} /\ Tombstones \in {"again", "once"} /\ Mutant \in Mutants
ASSUME Changes \in Nat

VARIABLES
    log,    \* for each input all changes so far, in order
    queue,  \* for each input the waiting changes
    tables, \* the join's tables: for each input and key a value or None
    result, \* the emitted result so far: for each key a pair or None
    emitted \* the output of the last change: nothing or one output

vars == <<log, queue, tables, result, emitted>>

-----------------------------------------------------------------------------
(* Definitions of changes and outputs. The n-th change of a table has the value n, or is a tombstone.                  *)

Inputs == {"left", "right"}
Other(input) == IF input = "left" THEN "right" ELSE "left"
Change(key, value) == [key |-> key, value |-> value]

Pair(left, right) == [left |-> left, right |-> right]
PairOf(input, value, other) == IF input = "left" THEN Pair(value, other) ELSE Pair(other, value)

(* The join of two rows, or None if the join has no result.                                                            *)
Joined(pair) ==
    LET shown == CASE Join = "inner" -> pair.left # None /\ pair.right # None
                   [] Join = "left" -> pair.left # None
                   [] OTHER -> pair.left # None \/ pair.right # None
    IN  IF shown THEN pair ELSE None

(* The table that results from folding the first `count` changes of an input.                                          *)
Folded(input, count) ==
    [key \in Keys |->
        LET places == {place \in 1..count : log[input][place].key = key}
        IN  IF places = {} THEN None
            ELSE log[input][CHOOSE place \in places : \A other \in places : place >= other].value]

JoinOf(left, right) == [key \in Keys |-> Joined(Pair(left[key], right[key]))]

(* The right result, computed from the tables alone.                                                                   *)
JoinOfSources == JoinOf(Folded("left", Len(log["left"])), Folded("right", Len(log["right"])))

-----------------------------------------------------------------------------
(* The actions of the join, mutations included.                                                                        *)

(* The owner of a table makes a change, which waits in the queue.                                                      *)
Make(input) ==
    /\ Len(log[input]) < Changes
    /\ \E key \in Keys, value \in {Len(log[input]) + 1, None} :
        /\ log' = [log EXCEPT ![input] = Append(@, Change(key, value))]
        /\ queue' = [queue EXCEPT ![input] = Append(@, Change(key, value))]
    /\ emitted' = <<>>
    /\ UNCHANGED <<tables, result>>

(* Whether a change from `old` to `value` has an output if the other table has `other`.                                *)
IsEmitted(input, old, value, other) ==
    CASE Mutant = "right silent" /\ Join = "left" /\ input = "right" -> FALSE
      [] Mutant = "null shown" -> TRUE
      [] Join = "inner" \/ (Join = "left" /\ input = "right") -> other # None
      [] OTHER -> old # None \/ value # None \/ other # None \/ Mutant = "tombstone for nothing"

(* The emitted value, or None for a tombstone.                                                                         *)
Output(input, value, other) ==
    IF Mutant = "null shown" /\ value # None THEN PairOf(input, value, other) ELSE Joined(PairOf(input, value, other))

(* The row of the other table. The mutant uses the row before the last change of the other table.                      *)
LookedUp(input, key) ==
    IF Mutant = "stale other side"
    THEN LET taken == Len(log[input]) - Len(queue[input])
         IN  Folded(input, IF taken > 0 THEN taken - 1 ELSE 0)[key]
    ELSE tables[input][key]

(* The waiting change that may be processed next: the oldest.                                                          *)
Takeable(input) ==
    IF Mutant = "changes overtake" THEN 1..Len(queue[input]) ELSE {1} \cap 1..Len(queue[input])

(* The join processes a change: it stores the change in the table, and emits at most one output.                       *)
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

(* All changes are made and no change waits. Any other state without a successor is a deadlock.                        *)
Finished ==
    /\ \A input \in Inputs : Len(log[input]) = Changes
    /\ Drained
    /\ UNCHANGED vars

Next ==
    \/ Finished
    \/ \E input \in Inputs : Make(input)
    \/ \E input \in Inputs : Take(input)

(* Keys that are model values are symmetric.                                                                           *)
Symmetry == Permutations(Keys)

Spec == Init /\ [][Next]_vars

(* Every waiting change is processed eventually.                                                                       *)
FairSpec == Spec /\ \A input \in Inputs : WF_vars(Take(input))

-----------------------------------------------------------------------------
(* The properties.                                                                                                     *)

Values == 1..Changes

(* Every variable has the right type.                                                                                  *)
Types ==
    /\ \A input \in Inputs :
        /\ \A place \in 1..Len(log[input]) :
            log[input][place].key \in Keys /\ log[input][place].value \in Values \cup {None}
        /\ Len(queue[input]) <= Len(log[input])
        /\ tables[input] \in [Keys -> Values \cup {None}]
    /\ \A key \in Keys :
        result[key] = None \/ (result[key].left \in Values \cup {None} /\ result[key].right \in Values \cup {None})
    /\ Len(emitted) \in {0, 1}

(* The join's tables equal the folded changes so far.                                                                  *)
TablesAreFolded ==
    \A input \in Inputs : tables[input] = Folded(input, Len(log[input]) - Len(queue[input]))

(* Every result, also every intermediate result, is the join of a prefix of each changelog.                            *)
ResultIsJoinOfPrefixes ==
    \E left \in 0..Len(log["left"]), right \in 0..Len(log["right"]) :
        result = JoinOf(Folded("left", left), Folded("right", right))

(* When no change waits, the result is the join of the tables.                                                        *)
DrainedIsJoined == Drained => result = JoinOfSources

(* An inner join only shows pairs, a left join only left rows, and an outer join only rows of either table.            *)
NothingElseShown == \A key \in Keys : result[key] # None => result[key] = Joined(result[key])

(* A tombstone is emitted only for a key with a result, or with a row in one of the tables.                            *)
TombstoneHasReason ==
    [][\A place \in 1..Len(emitted') :
        LET key == emitted'[place].key
        IN  emitted'[place].row = None => result[key] # None \/ \E input \in Inputs : tables[input][key] # None]_vars

(* A tombstone is emitted only for a key with a result. This property holds for Tombstones = "once", and for outer     *)
(* joins.                                                                                                              *)
TombstoneOnlyWhereShown ==
    [][\A place \in 1..Len(emitted') : emitted'[place].row = None => result[emitted'[place].key] # None]_vars

(* After the last change, the result becomes the join, and stays so. This property needs FairSpec, and no symmetry.    *)
Settles == <>[](result = JoinOfSources)

=============================================================================
