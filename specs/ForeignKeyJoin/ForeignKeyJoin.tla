---------------------------- MODULE ForeignKeyJoin ----------------------------
(* The foreign-key join of two tables, as a protocol between two sides that send messages through queues.              *)
(*                                                                                                                     *)
(* A left row refers to a right row by its foreign key. When a left row changes, the left side sends subscriptions to  *)
(* the old and the new right key. A right key sends a response to a subscription, and every change of a right row      *)
(* sends a response to all subscribers. The left side joins a response with the current left row, if the row is still  *)
(* the row that caused the response. Messages on one route keep their order. The route of a subscription is a right    *)
(* key, and the route of a response is a right key and a left key. Messages on different routes may overtake each      *)
(* other.                                                                                                              *)
(*                                                                                                                     *)
(* Source: KIP-213, "Workflow", "Original Value Hash", "Tombstones & Foreign Key Changes" and the table of left        *)
(* changes. The protocol in Python is reference/foreign_key_protocol.py, which uses the same names. Source of Kafka's  *)
(* variants: Kafka Streams 4.3.1 and 3.9.0, package kstream.internals.foreignkeyjoin.                                  *)
EXTENDS Naturals, Sequences, FiniteSets, TLC

CONSTANTS
    LeftKeys,       \* the keys of the left table
    RightKeys,      \* the keys of the right table
    LeftChanges,    \* the largest number of left changes
    RightChanges,   \* the largest number of right changes
    Join,           \* "inner" or "left"
    Protocol,       \* the protocol of the left side's instructions; see Protocols
    NullForeignKey, \* "ignore": a left row without a foreign key joins nothing; "keep": a left join emits the row
    LeftKinds,      \* the allowed kinds of left changes, a subset of AllLeftKinds
    RightKinds,     \* the allowed kinds of right changes, a subset of {"update", "delete"}
    Versions,       \* payloads, "fresh": no two are equal; "few": 1 and 2, so that values repeat; "same": only 1;
                    \* "any": any numbers, for proofs
    Ghost,          \* whether to record which pairs were current together (for NoFiction; this multiplies states)
    Mutant,         \* "none", or the mutation; see Mutants
    None            \* no row, no value, no key

Protocols == {
    "kip",                         \* the KIP: an insert, and an update under the same key, ask "only if available"
    "answer",                      \* every left change gets a response, in an inner join too
    "kafka 4.3",                   \* Kafka Streams since KAFKA-16407 and KAFKA-18713: 3.9.1, 4.0.1, 4.1.1, 4.2.0, 4.3.1
    "kafka 4.3 answer",            \* "kafka 4.3", where an inner join sends the instructions of the left join
    "kafka 3.9"}                   \* earlier Kafka Streams: up to 3.9.0, and 4.0.0

Mutants == {
    "none",
    "no hash check",               \* a response is joined even if it belongs to another left value
    "routes out of order",         \* any message of a route may be delivered
    "asks the old key",            \* KAFKA-18713: a change of foreign key also asks the old key for a response
    "unsubscribe not sent",        \* KAFKA-9244, first form: the old key isn't notified of a change of foreign key
    "unsubscribe stores the hash", \* KAFKA-9244, second form: the old key is notified, but stays subscribed, with the new hash
    "move silent",                 \* a change to a missing foreign key gets no response
    "delete silent",               \* a delete gets no response
    "null key silent",             \* the left join emits nothing for a new row without a foreign key
    "no prefix length",            \* the scan of "r1" also finds the subscriptions to "r10"
    "right tombstone silent"}      \* the right side doesn't send the delete of a right row to its subscribers

AllLeftKinds == {"insert", "insert without key", "update", "move", "lose key", "gain key", "delete"}

ASSUME LeftKinds \subseteq AllLeftKinds /\ RightKinds \subseteq {"update", "delete"}
ASSUME Join \in {"inner", "left"} /\ Protocol \in Protocols /\ NullForeignKey \in {"ignore", "keep"}
ASSUME Versions \in {"fresh", "few", "same", "any"} /\ Ghost \in BOOLEAN /\ Mutant \in Mutants
ASSUME LeftChanges \in Nat /\ RightChanges \in Nat

VARIABLES
    left,           \* the left table: a row or None for each left key
    right,          \* the right table: a row or None for each right key
    subscribed,     \* the store of the right side, for each right key and left key: the subscription's hash, or None
    subscriptions,  \* the queue of subscriptions to each right key; see Routes
    responses,      \* the queue of responses from each right key to each left key
    result,         \* the emitted result so far: a pair or None for each left key
    left_changes,   \* the number of left changes so far
    right_changes,  \* the number of right changes so far
    together        \* if Ghost is TRUE, the pairs that were current together

vars == <<left, right, subscribed, subscriptions, responses, result, left_changes, right_changes, together>>

-----------------------------------------------------------------------------
(* Definitions of rows and messages. A right row contains its key, so that a pair identifies its right row.            *)

Payloads(next) ==
    CASE Versions = "fresh" -> {next} [] Versions = "few" -> {1, 2} [] Versions = "same" -> {1} [] OTHER -> Nat
LeftRow(version, foreign_key) == [version |-> version, foreign_key |-> foreign_key]
RightRow(version, key) == [version |-> version, key |-> key]
ForeignKeyOf(row) == IF row = None THEN None ELSE row.foreign_key

(* The kind of a change from one row or None to another. The delete of a missing row is a delete, too.                 *)
Kind(old, new) ==
    CASE new = None -> "delete"
      [] old = None -> IF new.foreign_key = None THEN "insert without key" ELSE "insert"
      [] new.foreign_key = old.foreign_key -> "update"
      [] new.foreign_key = None -> "lose key"
      [] old.foreign_key = None -> "gain key"
      [] OTHER -> "move"

(* Values have equal hashes exactly if they are equal, so a value represents its hash. The hash of a tombstone is      *)
(* None.                                                                                                               *)
Hash(row) == row

OfKafka == Protocol \notin {"kip", "answer"}
ASSUME OfKafka => Mutant = "none"

AnswersAll == ~OfKafka /\ (Protocol = "answer" \/ Join = "left")
ShowsNull == Join = "left"

(* Kafka's left join also sends a message for a row without a foreign key. This message has no key, and goes to any    *)
(* partition.                                                                                                          *)
AsksWithoutKey == OfKafka /\ (Join = "left" \/ Protocol = "kafka 4.3 answer")
Routes == IF AsksWithoutKey THEN RightKeys \cup {None} ELSE RightKeys

Subscription(key, hash, instruction) == [key |-> key, hash |-> hash, instruction |-> instruction]
Response(hash, value) == [hash |-> hash, value |-> value]

(* The join of a row with a right value, or None if the join has no result.                                            *)
Joined(row, value) ==
    CASE row = None -> None
      [] value # None -> [left |-> row, right |-> value]
      [] ShowsNull /\ (row.foreign_key # None \/ NullForeignKey = "keep") -> [left |-> row, right |-> None]
      [] OTHER -> None

(* The right result, computed from the tables alone.                                                                   *)
JoinOf(key) == Joined(left[key], IF ForeignKeyOf(left[key]) = None THEN None ELSE right[ForeignKeyOf(left[key])])

Emit(key, value) == result' = [result EXCEPT ![key] = Joined(left[key], value)]
Remember == together' = IF Ghost THEN together \cup {JoinOf(key)' : key \in LeftKeys} ELSE together

-----------------------------------------------------------------------------
(* The left side.                                                                                                      *)

Instruction(before, after) ==
    IF AnswersAll \/ before \notin {None, after}
    THEN IF Mutant = "move silent" /\ before \notin {None, after}
         THEN "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"
         ELSE "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE"
    ELSE "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"

(* The messages of a change of a row from `old` to `new`, as pairs of a right key and a subscription, in order.        *)
SentByProtocol(key, old, new) ==
    LET before == ForeignKeyOf(old)
        after == ForeignKeyOf(new)
        unsubscribe ==
            CASE Mutant = "asks the old key" ->
                    <<before, Subscription(key, Hash(new), "DELETE_KEY_AND_PROPAGATE")>>
              [] Mutant = "unsubscribe stores the hash" ->
                    <<before, Subscription(key, Hash(new), "DELETE_KEY_NO_PROPAGATE")>>
              [] OTHER -> <<before, Subscription(key, None, "DELETE_KEY_NO_PROPAGATE")>>
        subscribe == <<after, Subscription(key, Hash(new), Instruction(before, after))>>
        delete == <<before, Subscription(key, Hash(new),
                            IF Mutant = "delete silent" THEN "DELETE_KEY_NO_PROPAGATE" ELSE "DELETE_KEY_AND_PROPAGATE")>>
    IN  CASE before = None /\ after = None -> <<>>
          [] before # None /\ after = None -> <<delete>>
          [] before \in {None, after} -> <<subscribe>>
          [] Mutant = "unsubscribe not sent" -> <<subscribe>>
          [] OTHER -> <<unsubscribe, subscribe>>

(* Kafka's messages of a change: SubscriptionSendProcessorSupplier, whose unsubscribe also has a hash, which no code   *)
(* reads.                                                                                                              *)
SentByKafka(key, old, new) ==
    LET before == ForeignKeyOf(old)
        after == ForeignKeyOf(new)
        Ask(right_key, instruction) == <<right_key, Subscription(key, Hash(new), instruction)>>
        moved == before \notin {None, after}
        Leave(instruction) == IF moved THEN <<Ask(before, instruction)>> ELSE <<>>
        always == <<Ask(after, "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE")>>
        only == <<Ask(after, "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE")>>
        delete == <<Ask(before, "DELETE_KEY_AND_PROPAGATE")>>
    IN  CASE AsksWithoutKey /\ old = None /\ new = None -> <<>>
          [] AsksWithoutKey /\ Protocol = "kafka 3.9" -> Leave("DELETE_KEY_AND_PROPAGATE") \o always
          [] AsksWithoutKey -> Leave("DELETE_KEY_NO_PROPAGATE") \o always
          [] Protocol = "kafka 3.9" ->
                CASE old = None -> IF after = None THEN <<>> ELSE only
                  [] before = None \/ (new # None /\ after = None) -> <<>> \* KAFKA-16407 and KAFKA-16434: skipped
                  [] new = None -> delete
                  [] OTHER -> Leave("DELETE_KEY_NO_PROPAGATE") \o always
          [] after = None -> IF before = None THEN <<>> ELSE delete
          [] moved -> Leave("DELETE_KEY_NO_PROPAGATE") \o always
          [] OTHER -> only

Sent(key, old, new) == IF OfKafka THEN SentByKafka(key, old, new) ELSE SentByProtocol(key, old, new)

(* A row without a foreign key has no right key to ask, so a protocol that answers every change emits the result here. *)
OwesAnAnswer(key, old, new) ==
    /\ ForeignKeyOf(old) = None /\ ForeignKeyOf(new) = None
    /\ AnswersAll
    /\ result[key] # None \/ (new # None /\ ShowsNull /\ NullForeignKey = "keep" /\ Mutant # "null key silent")

(* The messages for one route.                                                                                         *)
SentTo(route, sent) ==
    LET mine(pair) == pair[1] = route
        of == SelectSeq(sent, mine)
    IN  [number \in 1..Len(of) |-> of[number][2]]

Send(sent) == subscriptions' = [route \in Routes |-> subscriptions[route] \o SentTo(route, sent)]

ChangeLeft(key, new) ==
    /\ left_changes < LeftChanges
    /\ Kind(left[key], new) \in LeftKinds
    /\ left_changes' = left_changes + 1
    /\ left' = [left EXCEPT ![key] = new]
    /\ Send(Sent(key, left[key], new))
    /\ result' = IF OwesAnAnswer(key, left[key], new) THEN [result EXCEPT ![key] = Joined(new, None)] ELSE result
    /\ UNCHANGED <<right, subscribed, responses, right_changes>>
    /\ Remember

UpdateLeft(key) ==
    \E version \in Payloads(left_changes + 1), foreign_key \in RightKeys \cup {None} :
        ChangeLeft(key, LeftRow(version, foreign_key))

DeleteLeft(key) == ChangeLeft(key, None)

(* The waiting messages that may be delivered: the oldest message of a route, but any message without a key.           *)
Deliverable(route, queue) ==
    IF Mutant = "routes out of order" \/ route = None THEN 1..Len(queue) ELSE {1} \cap 1..Len(queue)
Without(queue, place) == SubSeq(queue, 1, place - 1) \o SubSeq(queue, place + 1, Len(queue))

DeliverResponseAt(route, key, place) ==
    LET response == responses[route][key][place]
    IN  /\ responses' = [responses EXCEPT ![route][key] = Without(@, place)]
        /\ IF Mutant = "no hash check" \/ response.hash = Hash(left[key])
           THEN Emit(key, response.value)
           ELSE UNCHANGED result
        /\ UNCHANGED <<left, right, subscribed, subscriptions, left_changes, right_changes, together>>

DeliverResponse(route, key) ==
    \E place \in Deliverable(route, responses[route][key]) : DeliverResponseAt(route, key, place)

-----------------------------------------------------------------------------
(* The right side.                                                                                                     *)

Deletes == {"DELETE_KEY_NO_PROPAGATE", "DELETE_KEY_AND_PROPAGATE"}

Answer(route, subscription) ==
    LET value == IF route = None THEN None ELSE right[route]
        instruction == subscription.instruction
    IN  CASE instruction = "DELETE_KEY_AND_PROPAGATE" -> <<Response(subscription.hash, None)>>
          [] instruction = "DELETE_KEY_NO_PROPAGATE" -> <<>>
          [] value # None -> <<Response(subscription.hash, value)>>
          [] instruction = "PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE" -> <<Response(subscription.hash, None)>>
          [] OTHER -> <<>>

DeliverSubscriptionAt(route, place) ==
    LET subscription == subscriptions[route][place]
        key == subscription.key
        kept == IF subscription.instruction \in Deletes /\ Mutant # "unsubscribe stores the hash"
                THEN None ELSE subscription.hash
    IN  /\ subscriptions' = [subscriptions EXCEPT ![route] = Without(@, place)]
        /\ subscribed' = IF route = None THEN subscribed ELSE [subscribed EXCEPT ![route][key] = kept]
        /\ responses' = [responses EXCEPT ![route][key] = @ \o Answer(route, subscription)]
        /\ UNCHANGED <<left, right, result, left_changes, right_changes, together>>

DeliverSubscription(route) ==
    \E place \in Deliverable(route, subscriptions[route]) : DeliverSubscriptionAt(route, place)

(* Combined keys begin with the foreign key. Without the key's length in front, the scan of "r1" also finds "r10".     *)
Scans(right_key, other) ==
    other = right_key \/ (Mutant = "no prefix length" /\ right_key = "r1" /\ other = "r10")

(* A change of a right row sends a response to all subscribers.                                                        *)
Told(right_key, new, route, key) ==
    CASE new = None /\ Mutant = "right tombstone silent" -> <<>>
      [] Scans(right_key, route) /\ subscribed[route][key] # None -> <<Response(subscribed[route][key], new)>>
      [] OTHER -> <<>>

ChangeRight(right_key, new) ==
    /\ right_changes < RightChanges
    /\ (IF new = None THEN "delete" ELSE "update") \in RightKinds
    /\ right_changes' = right_changes + 1
    /\ right' = [right EXCEPT ![right_key] = new]
    /\ responses' = [route \in Routes |-> [key \in LeftKeys |->
            responses[route][key] \o Told(right_key, new, route, key)]]
    /\ UNCHANGED <<left, subscribed, subscriptions, result, left_changes>>
    /\ Remember

UpdateRight(right_key) ==
    \E version \in Payloads(right_changes + 1) : ChangeRight(right_key, RightRow(version, right_key))

DeleteRight(right_key) == ChangeRight(right_key, None)

-----------------------------------------------------------------------------

Init ==
    /\ left = [key \in LeftKeys |-> None]
    /\ right = [key \in RightKeys |-> None]
    /\ subscribed = [right_key \in RightKeys |-> [key \in LeftKeys |-> None]]
    /\ subscriptions = [route \in Routes |-> <<>>]
    /\ responses = [route \in Routes |-> [key \in LeftKeys |-> <<>>]]
    /\ result = [key \in LeftKeys |-> None]
    /\ left_changes = 0 /\ right_changes = 0
    /\ together = {}

Quiet ==
    /\ \A route \in Routes : subscriptions[route] = <<>>
    /\ \A route \in Routes, key \in LeftKeys : responses[route][key] = <<>>

(* No message waits. A state with a waiting message but without a step is then a deadlock.                             *)
Finished == Quiet /\ UNCHANGED vars

Next ==
    \/ Finished
    \/ \E key \in LeftKeys : UpdateLeft(key) \/ DeleteLeft(key)
    \/ \E right_key \in RightKeys : UpdateRight(right_key) \/ DeleteRight(right_key)
    \/ \E route \in Routes : DeliverSubscription(route)
    \/ \E route \in Routes, key \in LeftKeys : DeliverResponse(route, key)

(* A constraint: the result is empty before the last left change. So a wrong result after this change was never right. *)
NothingShownBefore == left_changes < LeftChanges => \A key \in LeftKeys : result[key] = None

(* Another constraint: the result of the first left change is never retracted.                                         *)
ShownFromTheFirst == left_changes > 1 => \A key \in LeftKeys : result[key] # None

(* Keys that are model values are symmetric.                                                                           *)
Symmetry == Permutations(LeftKeys) \cup Permutations(RightKeys)

Spec == Init /\ [][Next]_vars

(* Every waiting message is delivered eventually.                                                                      *)
FairSpec ==
    /\ Spec
    /\ \A route \in Routes : WF_vars(DeliverSubscription(route))
    /\ \A route \in Routes, key \in LeftKeys : WF_vars(DeliverResponse(route, key))

-----------------------------------------------------------------------------
(* The properties.                                                                                                     *)

AnyPayload == CASE Versions = "few" -> {1, 2} [] Versions = "same" -> {1} [] OTHER -> Nat
LeftRows == [version : AnyPayload, foreign_key : RightKeys \cup {None}]
RightRows == [version : AnyPayload, key : RightKeys]
Pairs == [left : LeftRows, right : RightRows \cup {None}]
Instructions == Deletes \cup {"PROPAGATE_NULL_IF_NO_FK_VAL_AVAILABLE", "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"}
Subscriptions == [key : LeftKeys, hash : LeftRows \cup {None}, instruction : Instructions]
Responses == [hash : LeftRows \cup {None}, value : RightRows \cup {None}]

(* Every variable has the right type.                                                                                  *)
Types ==
    /\ left \in [LeftKeys -> LeftRows \cup {None}]
    /\ right \in [RightKeys -> RightRows \cup {None}]
    /\ subscribed \in [RightKeys -> [LeftKeys -> LeftRows \cup {None}]]
    /\ subscriptions \in [Routes -> Seq(Subscriptions)]
    /\ responses \in [Routes -> [LeftKeys -> Seq(Responses)]]
    /\ result \in [LeftKeys -> Pairs \cup {None}]
    /\ left_changes \in Nat /\ right_changes \in Nat
    /\ together \in IF Ghost THEN SUBSET (Pairs \cup {None}) ELSE {{}}

(* When no message waits, the result is the join of the tables.                                                         *)
QuietIsJoined == Quiet => \A key \in LeftKeys : result[key] = JoinOf(key)

(* When no message waits, each row is subscribed at its foreign key only, with its hash.                               *)
QuietIsSubscribed ==
    Quiet => \A right_key \in RightKeys, key \in LeftKeys :
        subscribed[right_key][key] = IF ForeignKeyOf(left[key]) = right_key THEN Hash(left[key]) ELSE None

Emitted(key) == result'[key] # result[key] /\ result'[key] # None

(* No result is emitted for a row that is deleted.                                                                      *)
NoResultForDeletedRow == [][\A key \in LeftKeys : Emitted(key) => left'[key] # None]_vars

(* No row is joined with the right row of another key.                                                                 *)
NoRowOfAnotherKey ==
    [][\A key \in LeftKeys : Emitted(key) /\ result'[key].right # None =>
        result'[key].right.key = result'[key].left.foreign_key]_vars

(* Each emitted pair was current together at some time. This property needs distinct values, and Ghost = TRUE.         *)
NoFiction == \A key \in LeftKeys : result[key] \in together \cup {None}

-----------------------------------------------------------------------------
(* The inductive invariant: each action preserves it, for any number of keys, changes and messages. The invariant      *)
(* holds if every change gets a response. It fails in the inner joins of the KIP and of Kafka, where each              *)
(* counterexample is a race. `streamproof spec prove ForeignKeyJoin` proves the invariant by induction.                *)

Names(row, right_key) == row # None /\ ForeignKeyOf(row) = right_key

(* No later message of the queue is about this left key.                                                               *)
IsNewest(queue, place) == \A later \in 1..Len(queue) : later > place => queue[later].key # queue[place].key

(* A right row has its key.                                                                                            *)
RightRowsHaveTheirKey == \A right_key \in RightKeys : right[right_key] # None => right[right_key].key = right_key

(* 1. A message goes to the right key that its row refers to. An unsubscribe goes to the old key instead, and requests *)
(*    a response only if the row has no new key. If every change gets a response, every message that subscribes        *)
(*    requests a response.                                                                                             *)
Belongs(route, message) ==
    /\ CASE route = None -> message.instruction \notin Deletes /\ ForeignKeyOf(message.hash) = None
         [] message.instruction = "DELETE_KEY_AND_PROPAGATE" -> ForeignKeyOf(message.hash) = None
         [] message.instruction = "DELETE_KEY_NO_PROPAGATE" -> TRUE
         [] OTHER -> Names(message.hash, route)
    /\ AnswersAll \/ AsksWithoutKey => message.instruction # "PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE"

SubscriptionsGoWhereTheyBelong ==
    \A route \in Routes : \A place \in 1..Len(subscriptions[route]) : Belongs(route, subscriptions[route][place])

(* 2. The stored value of a subscriber refers to the right key of its subscription.                                    *)
SubscribersNamedTheKey ==
    \A right_key \in RightKeys, key \in LeftKeys :
        subscribed[right_key][key] # None => Names(subscribed[right_key][key], right_key)

(* 3. A response belongs to a left value that refers to the right key, and contains the right row of this key. Or the  *)
(*    response belongs to a left value without a foreign key, and contains no right row.                               *)
ComesFrom(route, message) ==
    /\ ForeignKeyOf(message.hash) \in {route, None}
    /\ ForeignKeyOf(message.hash) = None => message.value = None
    /\ message.value # None => message.value.key = route

ResponsesComeFromTheKey ==
    \A route \in Routes, key \in LeftKeys : \A place \in 1..Len(responses[route][key]) :
        ComesFrom(route, responses[route][key][place])

(* 4. The newest message to a right key says whether the row refers to this key. If no message waits, the right side's *)
(*    store says so.                                                                                                   *)
SaysTheTruth(right_key, message) ==
    IF Names(left[message.key], right_key)
    THEN message.instruction \notin Deletes /\ message.hash = Hash(left[message.key])
    ELSE message.instruction \in Deletes

NewestSubscriptionIsRight ==
    \A right_key \in RightKeys, key \in LeftKeys :
        LET queue == subscriptions[right_key]
        IN  /\ \A place \in 1..Len(queue) :
                queue[place].key = key /\ IsNewest(queue, place) => SaysTheTruth(right_key, queue[place])
            /\ (\A place \in 1..Len(queue) : queue[place].key # key) =>
                subscribed[right_key][key] = IF Names(left[key], right_key) THEN Hash(left[key]) ELSE None

(* 5. If no subscription of a row waits, the newest response belongs to the current left row, and contains the current *)
(*    right row. Or no response waits, and the result is right. All other parts support this part.                     *)
NewestResponseIsRight ==
    \A right_key \in RightKeys, key \in LeftKeys :
        LET queue == subscriptions[right_key]
            answers == responses[right_key][key]
        IN  Names(left[key], right_key) /\ (\A place \in 1..Len(queue) : queue[place].key # key) =>
                IF answers = <<>> THEN result[key] = Joined(left[key], right[right_key])
                ELSE answers[Len(answers)] = Response(Hash(left[key]), right[right_key])

(* 6. For a row without a foreign key, the request or the response that retracts the old result is waiting, or the     *)
(*    result is right.                                                                                                 *)
WithoutKeyIsRight ==
    \A key \in LeftKeys : ForeignKeyOf(left[key]) = None =>
        \/ result[key] = Joined(left[key], None)
        \/ \E route \in Routes : \E place \in 1..Len(subscriptions[route]) :
            LET message == subscriptions[route][place]
            IN  /\ message.key = key /\ message.hash = Hash(left[key])
                /\ message.instruction = "DELETE_KEY_AND_PROPAGATE" \/ route = None
        \/ \E route \in Routes : \E place \in 1..Len(responses[route][key]) :
            responses[route][key][place].hash = Hash(left[key])

Inductive ==
    /\ Types
    /\ RightRowsHaveTheirKey
    /\ SubscriptionsGoWhereTheyBelong
    /\ SubscribersNamedTheKey
    /\ ResponsesComeFromTheKey
    /\ NewestSubscriptionIsRight
    /\ NewestResponseIsRight
    /\ WithoutKeyIsRight

(* After the last change, the result becomes the join, and stays so. This property needs FairSpec, and no symmetry.    *)
Settles == <>[](\A key \in LeftKeys : result[key] = JoinOf(key))

=============================================================================
