-------------------------- MODULE ForeignKeyJoinTrace --------------------------
(* Trace validation: is a recorded run of a foreign-key join a behaviour of ForeignKeyJoin?                            *)
(*                                                                                                                     *)
(* A trace has the events that are visible from outside: the changes of both tables, the sent messages, and the        *)
(* output, each in order. A step is possible only if the trace continues with all messages and outputs of the step. If *)
(* the trace has the total order of events, steps follow this order. If the trace has only the order of each topic,    *)
(* any interleaving that explains the topics is allowed. The specification explains a trace if a behaviour reaches the *)
(* trace's end.                                                                                                        *)
(*                                                                                                                     *)
(* specs/traces.py reads traces. specs/validation.py runs TLC on them, and reports where a trace is refused.           *)
EXTENDS ForeignKeyJoin

CONSTANTS
    Traces,  \* the traces, which are independent; see Example
    StrayAt  \* for each trace: 0, or 1 more than the progress at which any step is possible, as the last step

ASSUME Mutant = "none"

VARIABLES
    number,  \* the number of the trace
    at,      \* the explained part of the trace: the number of entries of each log, and the number of steps
    strayed  \* the effects of a step that the trace doesn't have, or None

trace_vars == <<vars, number, at, strayed>>

T == Traces[number]

RECURSIVE Total(_, _)
Total(counts, keys) ==
    IF keys = {} THEN 0 ELSE LET key == CHOOSE one \in keys : TRUE IN counts[key] + Total(counts, keys \ {key})

Progress ==
    at.steps + Total(at.sent, Routes) + Total(at.answered, LeftKeys) + Total(at.emitted, LeftKeys)

-----------------------------------------------------------------------------
(* The comparison of a step's effects with the next events of the trace. Unrecorded hashes and senders match any       *)
(* value.                                                                                                              *)

IsSubscription(subscription, entry) ==
    /\ subscription.key = entry.key
    /\ subscription.instruction = entry.instruction
    /\ entry.hashed => subscription.hash = entry.hash

IsResponse(from, response, entry) ==
    /\ (response.value = None) = (entry.value = None)
    /\ entry.value # None => response.value.version = entry.value.version
    /\ entry.named => from = entry.from
    /\ entry.hashed => response.hash = entry.hash

(* A change sends at most one message to each right key.                                                                *)
SentAsRecorded(sent) ==
    \A place \in 1..Len(sent) :
        LET to == sent[place][1]
            next == at.sent[to] + 1
        IN  next <= Len(T.sent[to]) /\ IsSubscription(sent[place][2], T.sent[to][next])

(* A step sends at most one response to each left key.                                                                 *)
AnsweredAsRecorded(answers) ==
    \A answer \in answers :
        LET next == at.answered[answer.key] + 1
        IN  /\ next <= Len(T.answered[answer.key])
            /\ IsResponse(answer.from, answer.response, T.answered[answer.key][next])

EmittedAsRecorded(key, emitted) ==
    emitted # <<>> =>
        LET next == at.emitted[key] + 1
        IN  next <= Len(T.emitted[key]) /\ emitted[1] = T.emitted[key][next]

(* A trace with the total order of events says how many messages, responses and outputs each step has.                 *)
InItsOrder(action, route, key, sent, answers, emitted) ==
    T.total =>
        /\ at.steps < Len(T.schedule)
        /\ T.schedule[at.steps + 1] =
            [action |-> action, route |-> route, key |-> key,
             sent |-> Len(sent), answers |-> Cardinality(answers), emitted |-> Len(emitted)]

One(counts, key, by) == [counts EXCEPT ![key] = @ + by]

Explained(action, route, key, sent, answers, emitted) ==
    \/ /\ InItsOrder(action, route, key, sent, answers, emitted)
       /\ SentAsRecorded(sent)
       /\ AnsweredAsRecorded(answers)
       /\ EmittedAsRecorded(key, emitted)
       /\ at' = [
            steps |-> at.steps + 1,
            left |-> IF action = "left" THEN One(at.left, key, 1) ELSE at.left,
            right |-> IF action = "right" THEN One(at.right, route, 1) ELSE at.right,
            sent |-> [to \in Routes |-> at.sent[to] + Cardinality({one \in 1..Len(sent) : sent[one][1] = to})],
            answered |-> [to \in LeftKeys |-> at.answered[to] + Cardinality({one \in answers : one.key = to})],
            delivered |-> IF action = "response" THEN One(at.delivered, key, 1) ELSE at.delivered,
            emitted |-> IF emitted = <<>> THEN at.emitted ELSE One(at.emitted, key, 1)]
       /\ UNCHANGED <<number, strayed>>
    \/ /\ StrayAt[number] = Progress + 1
       /\ strayed' = [action |-> action, route |-> route, key |-> key,
                       sent |-> sent, answers |-> answers, emitted |-> emitted]
       /\ UNCHANGED <<number, at>>

-----------------------------------------------------------------------------
(* The steps of ForeignKeyJoin, with the subscriptions, responses and outputs of each step.                            *)

TraceLeft(key) ==
    /\ at.left[key] < Len(T.left[key])
    /\ LET old == left[key]
           new == T.left[key][at.left[key] + 1]
       IN  /\ ChangeLeft(key, new)
           /\ Explained("left", None, key, Sent(key, old, new), {},
                        IF OwesAnAnswer(key, old, new) THEN <<Joined(new, None)>> ELSE <<>>)

TraceRight(right_key) ==
    /\ at.right[right_key] < Len(T.right[right_key])
    /\ LET new == T.right[right_key][at.right[right_key] + 1]
           to == {key \in LeftKeys : subscribed[right_key][key] # None}
       IN  /\ ChangeRight(right_key, new)
           /\ Explained("right", right_key, None, <<>>,
                        {[from |-> right_key, key |-> key, response |-> Response(subscribed[right_key][key], new)] :
                            key \in to},
                        <<>>)

TraceSubscription(route) ==
    \E place \in Deliverable(route, subscriptions[route]) :
        LET subscription == subscriptions[route][place]
            answer == Answer(route, subscription)
        IN  /\ DeliverSubscriptionAt(route, place)
            /\ Explained("subscription", route, subscription.key, <<>>,
                         {[from |-> route, key |-> subscription.key, response |-> answer[one]] : one \in DOMAIN answer},
                         <<>>)

(* A left key's responses arrive in the order of its topic, from any sender.                                           *)
TraceResponse(route, key) ==
    \E place \in Deliverable(route, responses[route][key]) :
        LET response == responses[route][key][place]
            next == at.delivered[key] + 1
        IN  /\ T.total \/ IsResponse(route, response, T.answered[key][next])
            /\ DeliverResponseAt(route, key, place)
            /\ Explained("response", route, key, <<>>, {},
                         IF response.hash = Hash(left[key]) THEN <<Joined(left[key], response.value)>> ELSE <<>>)

-----------------------------------------------------------------------------

TraceInit ==
    /\ Init
    /\ number \in DOMAIN Traces
    /\ at = [
        steps |-> 0,
        left |-> [key \in LeftKeys |-> 0],
        right |-> [key \in RightKeys |-> 0],
        sent |-> [route \in Routes |-> 0],
        answered |-> [key \in LeftKeys |-> 0],
        delivered |-> [key \in LeftKeys |-> 0],
        emitted |-> [key \in LeftKeys |-> 0]]
    /\ strayed = None

(* The whole trace is explained. If the trace goes on until no message waits, no message waits.                        *)
IsExplained ==
    /\ \A key \in LeftKeys : at.left[key] = Len(T.left[key])
    /\ \A key \in RightKeys : at.right[key] = Len(T.right[key])
    /\ \A route \in DOMAIN T.sent : (IF route \in Routes THEN at.sent[route] ELSE 0) = Len(T.sent[route])
    /\ \A key \in LeftKeys : at.answered[key] = Len(T.answered[key]) /\ at.emitted[key] = Len(T.emitted[key])
    /\ T.total => at.steps = Len(T.schedule)
    /\ T.quiet => Quiet

(* With this condition, a trace with total order that can't be explained further is a deadlock.                        *)
TraceFinished == (strayed # None \/ IsExplained) /\ UNCHANGED trace_vars

TraceNext ==
    \/ TraceFinished
    \/ /\ strayed = None
       /\ \/ \E key \in LeftKeys : TraceLeft(key)
          \/ \E right_key \in RightKeys : TraceRight(right_key)
          \/ \E route \in Routes : TraceSubscription(route)
          \/ \E route \in Routes, key \in LeftKeys : TraceResponse(route, key)

TraceSpec == TraceInit /\ [][TraceNext]_trace_vars

-----------------------------------------------------------------------------
(* An example: the right row x, a left row that refers to x, and the deletion of the left row; and a wrong variant in  *)
(* which the last response has a value.                                                                                *)

LOCAL Step(action, route, key, sent, answers, emitted) ==
    [action |-> action, route |-> route, key |-> key, sent |-> sent, answers |-> answers, emitted |-> emitted]
LOCAL A == LeftRow(1, "r1")
LOCAL X == RightRow(1, "r1")
LOCAL Asks(instruction, hash) == [key |-> "l", instruction |-> instruction, hashed |-> TRUE, hash |-> hash]
LOCAL Answers(hash, value) == [named |-> TRUE, from |-> "r1", hashed |-> TRUE, hash |-> hash, value |-> value]
LOCAL ExampleWith(last) == [
    total |-> TRUE,
    quiet |-> TRUE,
    left |-> [l |-> <<A, None>>],
    right |-> [r1 |-> <<X>>],
    sent |-> [r1 |-> <<Asks("PROPAGATE_ONLY_IF_FK_VAL_AVAILABLE", A), Asks("DELETE_KEY_AND_PROPAGATE", None)>>],
    answered |-> [l |-> <<Answers(A, X), Answers(None, last)>>],
    emitted |-> [l |-> <<[left |-> A, right |-> X], None>>],
    schedule |-> <<
        Step("right", "r1", None, 0, 0, 0),
        Step("left", None, "l", 1, 0, 0),
        Step("subscription", "r1", "l", 0, 1, 0),
        Step("response", "r1", "l", 0, 0, 1),
        Step("left", None, "l", 1, 0, 0),
        Step("subscription", "r1", "l", 0, 1, 0),
        Step("response", "r1", "l", 0, 0, 1)>>]

Example == <<ExampleWith(None)>>
Doctored == <<ExampleWith(X)>>
NeverStray == [one \in DOMAIN Traces |-> 0]

=============================================================================
