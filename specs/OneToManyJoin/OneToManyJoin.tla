----------------------------- MODULE OneToManyJoin -----------------------------
(* The one-to-many join of KIP-213's first design: the left side sends whole rows, and the result has two keys.        *)
(*                                                                                                                     *)
(* A left row refers to a right row by its foreign key. The left side sends the whole row to the right key. The right  *)
(* side stores the row under the combined key, and joins the row at its arrival and at every change of the right row.  *)
(* If a row's foreign key changes, the left side sends the row to the new key, and a tombstone to the old key. So the  *)
(* result is keyed by both keys.                                                                                       *)
(*                                                                                                                     *)
(* A table by left key groups the results by left key. Each result travels on a route from its right key to its left   *)
(* key. Messages on one route keep their order. Messages on different routes may overtake each other. So the tombstone *)
(* of the old foreign key may arrive after the result of the new key: "Problem: Out-of-order processing of Rekeyed     *)
(* data". The constant Collect selects the grouping.                                                                   *)
(*                                                                                                                     *)
(* Source: KIP-213, "Jan Filipiak's Original Proposal", "Algorithm" and "Step by Step" (A there is the right table, B  *)
(* the left one), and "Rejected Alternatives". The join in Python is reference/one_to_many_join.py, which uses the     *)
(* same names.                                                                                                         *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    LeftKeys,       \* the keys of the left table
    RightKeys,      \* the keys of the right table
    LeftChanges,    \* the largest number of left changes
    RightChanges,   \* the largest number of right changes
    Join,           \* "inner" or "left"
    Protocol,       \* "kip": an inner join emits a result for a left change only if the right row exists; "answer": always
    NullForeignKey, \* "ignore": a left row without a foreign key joins nothing; "keep": a left join emits the row
    Collect,        \* the grouping of results by left key; see Collects
    Offsets,        \* "unique": each left change has its own offset; "shared": two changes have the same offset
    Mutant,         \* "none", or the mutation; see Mutants
    None            \* no row, no value, no key

Collects == {
    "last",         \* the last arrival is the row
    "map",          \* Solution B of the KIP: a map from foreign key to result, for each left key
    "highwater"}    \* Solution A of the KIP: a result with a smaller offset than the newest result is discarded

Mutants == {
    "none",
    "old key kept",           \* a change of foreign key sends no tombstone to the old key
    "null key kept",          \* a row that loses its foreign key is not deleted at the old key
    "first row only",         \* a right change reaches only the first left row of the range
    "no prefix length",       \* the scan of "r1" also finds the rows of "r10"
    "right tombstone silent", \* the delete of a right row is not emitted
    "rows out of order",      \* any row of a route may be delivered
    "results out of order"}   \* any result of a route may be delivered

ASSUME Join \in {"inner", "left"} /\ Protocol \in {"kip", "answer"} /\ NullForeignKey \in {"ignore", "keep"}
ASSUME Collect \in Collects /\ Offsets \in {"unique", "shared"} /\ Mutant \in Mutants
ASSUME LeftChanges \in Nat /\ RightChanges \in Nat

VARIABLES
    left,           \* the left table: a row or None for each left key
    right,          \* the right table: a row or None for each right key
    rows,           \* the queue of left rows and tombstones to each right key
    kept,           \* the right side's store of left rows, by both keys: a left row or None
    result,         \* the emitted result so far, by both keys: a pair or None
    results,        \* the queue of results from each right key to each left key
    collected,      \* the results grouped by left key: for each left key and right key a pair or None
    newest,         \* if Collect is "highwater", for each left key the age of the newest result so far
    left_changes,   \* the number of left changes so far
    right_changes   \* the number of right changes so far

vars == <<left, right, rows, kept, result, results, collected, newest, left_changes, right_changes>>

-----------------------------------------------------------------------------
(* Definitions of rows and messages. A right row contains its key, so that a pair identifies its right row.            *)

(* Rows without a foreign key are stored under a separate key, if NullForeignKey is "keep".                            *)
Places == RightKeys \cup {None}

LeftRow(version, foreign_key) == [version |-> version, foreign_key |-> foreign_key]
RightRow(version, key) == [version |-> version, key |-> key]
ForeignKeyOf(row) == IF row = None THEN None ELSE row.foreign_key
RightAt(place) == IF place = None THEN None ELSE right[place]

AnswersAll == Protocol = "answer" \/ Join = "left"
KeepsNull == Join = "left" /\ NullForeignKey = "keep"

(* The right key to which a row is sent. A missing row, and an ignored row without a foreign key, aren't sent.         *)
PlacesOf(row) == IF row # None /\ (row.foreign_key # None \/ KeepsNull) THEN {row.foreign_key} ELSE {}

(* The join of a row with a right value, or None if the join has no result.                                            *)
Joined(row, value) ==
    IF row # None /\ (value # None \/ Join = "left") THEN [left |-> row, right |-> value] ELSE None

(* The right result, computed from the tables alone.                                                                   *)
JoinOf(place, key) == IF place \in PlacesOf(left[key]) THEN Joined(left[key], RightAt(place)) ELSE None

(* The age of a message, from the offset of its left change. The tombstone of a change's old foreign key is older than *)
(* the row of the same change. Two changes share an offset if one record causes both: the KIP's example is             *)
(* flatMapValues().groupByKey().aggregate().                                                                           *)
Offset(version) == IF Offsets = "unique" THEN version ELSE (version + 1) \div 2
Age(version, row) ==
    IF Collect # "highwater" THEN 0 ELSE IF row = None THEN 2 * Offset(version) - 1 ELSE 2 * Offset(version)

RowMessage(key, row, age) == [key |-> key, row |-> row, age |-> age]
ResultMessage(value, age) == [value |-> value, age |-> age]

(* The waiting message that may be delivered next: the oldest.                                                         *)
Deliverable(queue, mutant) == IF Mutant = mutant THEN 1..Len(queue) ELSE {1} \cap 1..Len(queue)
Without(queue, number) == SubSeq(queue, 1, number - 1) \o SubSeq(queue, number + 1, Len(queue))

-----------------------------------------------------------------------------
(* The left side: "forward(key, null) for old, forward(key, b) for new, skip old if A's key didn't change".            *)

Leaves(old, new) ==
    CASE Mutant = "old key kept" /\ new # None -> {}
      [] Mutant = "null key kept" /\ new # None /\ ForeignKeyOf(new) = None -> {}
      [] OTHER -> PlacesOf(old) \ PlacesOf(new)

ChangeLeft(key, new) ==
    /\ left_changes < LeftChanges
    /\ left_changes' = left_changes + 1
    /\ left' = [left EXCEPT ![key] = new]
    /\ rows' = [place \in Places |->
        CASE place \in Leaves(left[key], new) ->
                Append(rows[place], RowMessage(key, None, Age(left_changes + 1, None)))
          [] place \in PlacesOf(new) -> Append(rows[place], RowMessage(key, new, Age(left_changes + 1, new)))
          [] OTHER -> rows[place]]
    /\ UNCHANGED <<right, kept, result, results, collected, newest, right_changes>>

UpdateLeft(key) ==
    \E foreign_key \in Places : ChangeLeft(key, LeftRow(left_changes + 1, foreign_key))

DeleteLeft(key) == ChangeLeft(key, None)

-----------------------------------------------------------------------------
(* The right side.                                                                                                     *)

(* A row arrives at its right key, or a tombstone at the old right key. The right side stores, joins and emits it.     *)
DeliverRow(place) ==
    \E number \in Deliverable(rows[place], "rows out of order") :
        LET message == rows[place][number]
            key == message.key
            row == message.row
            value == Joined(row, RightAt(place))
        IN  /\ rows' = [rows EXCEPT ![place] = Without(@, number)]
            /\ kept' = [kept EXCEPT ![place][key] = IF row = None THEN None ELSE message]
            /\ IF (row # None \/ kept[place][key] # None) /\ (RightAt(place) # None \/ AnswersAll)
               THEN /\ result' = [result EXCEPT ![place][key] = value]
                    /\ results' = [results EXCEPT ![place][key] = Append(@, ResultMessage(value, message.age))]
               ELSE UNCHANGED <<result, results>>
            /\ UNCHANGED <<left, right, collected, newest, left_changes, right_changes>>

(* Combined keys begin with the foreign key. Without the key's length in front, the scan of "r1" also finds "r10".     *)
Scans(right_key, place) ==
    place = right_key \/ (Mutant = "no prefix length" /\ right_key = "r1" /\ place = "r10")

IsFirst(place, key) ==
    key = CHOOSE other \in LeftKeys : kept[place][other] # None

(* "On event uses A's key to perform a range scan on B's materialization": all rows under this key are joined and      *)
(* emitted.                                                                                                            *)
ChangeRight(right_key, new) ==
    LET Finds(place, key) ==
            /\ Scans(right_key, place) /\ kept[place][key] # None
            /\ ~(Mutant = "first row only" /\ ~IsFirst(place, key))
            /\ ~(Mutant = "right tombstone silent" /\ new = None)
    IN  /\ right_changes < RightChanges
        /\ right_changes' = right_changes + 1
        /\ right' = [right EXCEPT ![right_key] = new]
        /\ result' = [place \in Places |-> [key \in LeftKeys |->
            IF Finds(place, key) THEN Joined(kept[place][key].row, new) ELSE result[place][key]]]
        /\ results' = [place \in Places |-> [key \in LeftKeys |->
            IF Finds(place, key)
            THEN Append(results[place][key], ResultMessage(Joined(kept[place][key].row, new), kept[place][key].age))
            ELSE results[place][key]]]
        /\ UNCHANGED <<left, rows, kept, collected, newest, left_changes>>

UpdateRight(right_key) == ChangeRight(right_key, RightRow(right_changes + 1, right_key))

DeleteRight(right_key) == ChangeRight(right_key, None)

-----------------------------------------------------------------------------
(* The grouping by left key, which isn't part of the join: in the first design, the user adds this grouping.           *)

DeliverResult(place, key) ==
    \E number \in Deliverable(results[place][key], "results out of order") :
        LET message == results[place][key][number]
            alone == [other \in Places |-> IF other = place THEN message.value ELSE None]
        IN  /\ results' = [results EXCEPT ![place][key] = Without(@, number)]
            /\ collected' =
                CASE Collect = "map" -> [collected EXCEPT ![key][place] = message.value]
                  [] Collect = "highwater" /\ message.age < newest[key] -> collected
                  [] OTHER -> [collected EXCEPT ![key] = alone]
            /\ newest' = IF message.age > newest[key] THEN [newest EXCEPT ![key] = message.age] ELSE newest
            /\ UNCHANGED <<left, right, rows, kept, result, left_changes, right_changes>>

-----------------------------------------------------------------------------

Init ==
    /\ left = [key \in LeftKeys |-> None]
    /\ right = [key \in RightKeys |-> None]
    /\ rows = [place \in Places |-> <<>>]
    /\ kept = [place \in Places |-> [key \in LeftKeys |-> None]]
    /\ result = [place \in Places |-> [key \in LeftKeys |-> None]]
    /\ results = [place \in Places |-> [key \in LeftKeys |-> <<>>]]
    /\ collected = [key \in LeftKeys |-> [place \in Places |-> None]]
    /\ newest = [key \in LeftKeys |-> 0]
    /\ left_changes = 0 /\ right_changes = 0

RowsQuiet == \A place \in Places : rows[place] = <<>>
Quiet == RowsQuiet /\ \A place \in Places, key \in LeftKeys : results[place][key] = <<>>

(* All changes are made and no message waits. Any other state without a successor is a deadlock.                       *)
Finished ==
    /\ left_changes = LeftChanges /\ right_changes = RightChanges /\ Quiet
    /\ UNCHANGED vars

Next ==
    \/ Finished
    \/ \E key \in LeftKeys : UpdateLeft(key) \/ DeleteLeft(key)
    \/ \E right_key \in RightKeys : UpdateRight(right_key) \/ DeleteRight(right_key)
    \/ \E place \in Places : DeliverRow(place)
    \/ \E place \in Places, key \in LeftKeys : DeliverResult(place, key)

Spec == Init /\ [][Next]_vars

(* Every waiting message is delivered eventually.                                                                      *)
FairSpec ==
    /\ Spec
    /\ \A place \in Places : WF_vars(DeliverRow(place))
    /\ \A place \in Places, key \in LeftKeys : WF_vars(DeliverResult(place, key))

-----------------------------------------------------------------------------
(* The properties.                                                                                                     *)

LeftRows == [version : 1..LeftChanges, foreign_key : Places]
RightRows == [version : 1..RightChanges, key : RightKeys]
Ages == 0..(2 * LeftChanges)

IsPair(value) == value = None \/ (value.left \in LeftRows /\ (value.right = None \/ value.right \in RightRows))

(* Every variable has the right type.                                                                                  *)
Types ==
    /\ \A key \in LeftKeys : left[key] = None \/ left[key] \in LeftRows
    /\ \A key \in RightKeys : right[key] = None \/ right[key] \in RightRows
    /\ \A place \in Places :
        /\ \A number \in 1..Len(rows[place]) :
            LET message == rows[place][number]
            IN  message.key \in LeftKeys /\ (message.row = None \/ message.row \in LeftRows) /\ message.age \in Ages
        /\ \A key \in LeftKeys :
            /\ kept[place][key] = None \/ kept[place][key].row \in LeftRows
            /\ IsPair(result[place][key]) /\ IsPair(collected[key][place])
            /\ \A number \in 1..Len(results[place][key]) :
                IsPair(results[place][key][number].value) /\ results[place][key][number].age \in Ages
    /\ \A key \in LeftKeys : newest[key] \in Ages
    /\ left_changes \in 0..LeftChanges /\ right_changes \in 0..RightChanges

(* When no row waits, the result under both keys is the join of the tables.                                            *)
QuietIsJoined == RowsQuiet => \A place \in Places, key \in LeftKeys : result[place][key] = JoinOf(place, key)

(* When no row waits, each row is stored at its foreign key only.                                                      *)
QuietIsKept ==
    RowsQuiet => \A place \in Places, key \in LeftKeys :
        IF place \in PlacesOf(left[key])
        THEN kept[place][key] # None /\ kept[place][key].row = left[key]
        ELSE kept[place][key] = None

(* When no message waits, the table by left key is the join of the tables.                                             *)
QuietIsCollected == Quiet => \A place \in Places, key \in LeftKeys : collected[key][place] = JoinOf(place, key)

(* A left row is shown under one right key at a time. This property fails, because a row may temporarily be shown      *)
(* under two.                                                                                                          *)
ShownOnce ==
    \A key \in LeftKeys : Cardinality({place \in Places : result[place][key] # None}) <= 1

Emitted(place, key) == result'[place][key] # result[place][key] /\ result'[place][key] # None

(* No row is joined with the right row of another key, or shown under another key.                                     *)
NoRowOfAnotherKey ==
    [][\A place \in Places, key \in LeftKeys : Emitted(place, key) =>
        /\ result'[place][key].left.foreign_key = place
        /\ result'[place][key].right # None => result'[place][key].right.key = place]_vars

(* After the last change, the table by left key becomes the join, and stays so. This property needs FairSpec, and no   *)
(* symmetry.                                                                                                           *)
Settles == <>[](\A place \in Places, key \in LeftKeys : collected[key][place] = JoinOf(place, key))

=============================================================================
