-------------------------- MODULE ForeignKeyJoinAgain --------------------------
(* The foreign-key join with repeated messages: each side may crash, and restart from its last commit.                 *)
(*                                                                                                                     *)
(* After a restart a side receives all messages again that it has received since its commit. It also sends all         *)
(* messages again that it has sent since its commit, behind all other messages. It doesn't matter whether the side's   *)
(* state is reset, because the same messages in the same order lead to the same state. In this module the state stays, *)
(* which is the harder case: repeated messages meet a newer state.                                                     *)
(*                                                                                                                     *)
(* The decoupled join on Spark has three queries with topics between them. Each query has its own checkpoint, and      *)
(* delivers messages at least once to the next query.                                                                  *)
EXTENDS ForeignKeyJoin

CONSTANTS
    Restarts        \* the largest number of restarts

VARIABLES
    sent_subscriptions,  \* the subscriptions that the left side sent to each right key since its last commit
    taken_subscriptions, \* the subscriptions that the right side received for each right key since its last commit
    sent_responses,      \* the responses that the right side sent since its last commit, by right key and left key
    taken_responses,     \* the responses that the left side received since its last commit, by right key and left key
    restarts             \* the number of restarts so far

since == <<sent_subscriptions, taken_subscriptions, sent_responses, taken_responses>>

ChangeLeftAgain(key, new) ==
    /\ ChangeLeft(key, new)
    /\ sent_subscriptions' = [route \in Routes |->
            sent_subscriptions[route] \o SentTo(route, Sent(key, left[key], new))]
    /\ UNCHANGED <<taken_subscriptions, sent_responses, taken_responses, restarts>>

UpdateLeftAgain(key) ==
    \E version \in Payloads(left_changes + 1), foreign_key \in RightKeys \cup {None} :
        ChangeLeftAgain(key, LeftRow(version, foreign_key))

DeleteLeftAgain(key) == ChangeLeftAgain(key, None)

ChangeRightAgain(right_key, new) ==
    /\ ChangeRight(right_key, new)
    /\ sent_responses' = [route \in Routes |-> [key \in LeftKeys |->
            sent_responses[route][key] \o Told(right_key, new, route, key)]]
    /\ UNCHANGED <<sent_subscriptions, taken_subscriptions, taken_responses, restarts>>

UpdateRightAgain(right_key) ==
    \E version \in Payloads(right_changes + 1) : ChangeRightAgain(right_key, RightRow(version, right_key))

DeleteRightAgain(right_key) == ChangeRightAgain(right_key, None)

TakeSubscription(route) ==
    \E place \in Deliverable(route, subscriptions[route]) :
        LET subscription == subscriptions[route][place]
        IN  /\ DeliverSubscriptionAt(route, place)
            /\ taken_subscriptions' = [taken_subscriptions EXCEPT ![route] = Append(@, subscription)]
            /\ sent_responses' = [sent_responses EXCEPT ![route][subscription.key] = @ \o Answer(route, subscription)]
            /\ UNCHANGED <<sent_subscriptions, taken_responses, restarts>>

TakeResponse(route, key) ==
    \E place \in Deliverable(route, responses[route][key]) :
        /\ DeliverResponseAt(route, key, place)
        /\ taken_responses' = [taken_responses EXCEPT ![route][key] = Append(@, responses[route][key][place])]
        /\ UNCHANGED <<sent_subscriptions, taken_subscriptions, sent_responses, restarts>>

-----------------------------------------------------------------------------
(* Commits and restarts.                                                                                               *)

NoSubscriptions == [route \in Routes |-> <<>>]
NoResponses == [route \in Routes |-> [key \in LeftKeys |-> <<>>]]

(* On Spark the left side has two queries: one sends subscriptions, and the other receives responses.                  *)
CommitSender ==
    /\ sent_subscriptions' = NoSubscriptions
    /\ UNCHANGED <<vars, taken_subscriptions, sent_responses, taken_responses, restarts>>

CommitRight ==
    /\ taken_subscriptions' = NoSubscriptions /\ sent_responses' = NoResponses
    /\ UNCHANGED <<vars, sent_subscriptions, taken_responses, restarts>>

CommitReceiver ==
    /\ taken_responses' = NoResponses
    /\ UNCHANGED <<vars, sent_subscriptions, taken_subscriptions, sent_responses, restarts>>

Restart == restarts < Restarts /\ restarts' = restarts + 1

SenderSendsAgain ==
    /\ Restart
    /\ subscriptions' = [route \in Routes |-> subscriptions[route] \o sent_subscriptions[route]]
    /\ UNCHANGED <<left, right, subscribed, responses, result, left_changes, right_changes, together, since>>

RightTakesAgain ==
    /\ Restart
    /\ subscriptions' = [route \in Routes |-> taken_subscriptions[route] \o subscriptions[route]]
    /\ taken_subscriptions' = NoSubscriptions
    /\ UNCHANGED <<left, right, subscribed, responses, result, left_changes, right_changes, together>>
    /\ UNCHANGED <<sent_subscriptions, sent_responses, taken_responses>>

RightSendsAgain ==
    /\ Restart
    /\ responses' = [route \in Routes |-> [key \in LeftKeys |->
            responses[route][key] \o sent_responses[route][key]]]
    /\ UNCHANGED <<left, right, subscribed, subscriptions, result, left_changes, right_changes, together, since>>

ReceiverTakesAgain ==
    /\ Restart
    /\ responses' = [route \in Routes |-> [key \in LeftKeys |->
            taken_responses[route][key] \o responses[route][key]]]
    /\ taken_responses' = NoResponses
    /\ UNCHANGED <<left, right, subscribed, subscriptions, result, left_changes, right_changes, together>>
    /\ UNCHANGED <<sent_subscriptions, taken_subscriptions, sent_responses>>

InitAgain ==
    /\ Init
    /\ sent_subscriptions = NoSubscriptions /\ taken_subscriptions = NoSubscriptions
    /\ sent_responses = NoResponses /\ taken_responses = NoResponses
    /\ restarts = 0

FinishedAgain == Quiet /\ UNCHANGED <<vars, since, restarts>>

NextAgain ==
    \/ FinishedAgain
    \/ \E key \in LeftKeys : UpdateLeftAgain(key) \/ DeleteLeftAgain(key)
    \/ \E right_key \in RightKeys : UpdateRightAgain(right_key) \/ DeleteRightAgain(right_key)
    \/ \E route \in Routes : TakeSubscription(route)
    \/ \E route \in Routes, key \in LeftKeys : TakeResponse(route, key)
    \/ CommitSender \/ CommitRight \/ CommitReceiver
    \/ SenderSendsAgain \/ RightTakesAgain \/ RightSendsAgain \/ ReceiverTakesAgain

SpecAgain == InitAgain /\ [][NextAgain]_<<vars, since, restarts>>

-----------------------------------------------------------------------------
(* The inductive invariant: the messages that may be repeated end with the newest message.                             *)

TypesAgain ==
    /\ sent_subscriptions \in [Routes -> Seq(Subscriptions)]
    /\ taken_subscriptions \in [Routes -> Seq(Subscriptions)]
    /\ sent_responses \in [Routes -> [LeftKeys -> Seq(Responses)]]
    /\ taken_responses \in [Routes -> [LeftKeys -> Seq(Responses)]]
    /\ restarts \in Nat

(* 7. Messages that may be repeated satisfy parts 1 and 3, too.                                                        *)
RepeatedSubscriptionsGoWhereTheyBelong ==
    \A route \in Routes :
        /\ \A place \in 1..Len(sent_subscriptions[route]) : Belongs(route, sent_subscriptions[route][place])
        /\ \A place \in 1..Len(taken_subscriptions[route]) : Belongs(route, taken_subscriptions[route][place])

RepeatedResponsesComeFromTheKey ==
    \A route \in Routes, key \in LeftKeys :
        /\ \A place \in 1..Len(sent_responses[route][key]) : ComesFrom(route, sent_responses[route][key][place])
        /\ \A place \in 1..Len(taken_responses[route][key]) : ComesFrom(route, taken_responses[route][key][place])

(* 8. The newest subscription that may be repeated says whether the row refers to the right key. This holds for the    *)
(*    subscriptions sent since the sender's commit, and for the received subscriptions if none waits.                  *)
NewestRepeatedSubscriptionIsRight ==
    \A right_key \in RightKeys, key \in LeftKeys :
        LET sent == sent_subscriptions[right_key]
            taken == taken_subscriptions[right_key]
            waiting == subscriptions[right_key]
        IN  /\ \A place \in 1..Len(sent) :
                sent[place].key = key /\ IsNewest(sent, place) => SaysTheTruth(right_key, sent[place])
            /\ (\A place \in 1..Len(waiting) : waiting[place].key # key) =>
                \A place \in 1..Len(taken) :
                    taken[place].key = key /\ IsNewest(taken, place) => SaysTheTruth(right_key, taken[place])

(* 9. If no subscription of a row waits, the newest response that may be repeated is the newest response of all.       *)
NewestRepeatedResponseIsRight ==
    \A right_key \in RightKeys, key \in LeftKeys :
        LET queue == subscriptions[right_key]
            sent == sent_responses[right_key][key]
            taken == taken_responses[right_key][key]
            answer == Response(Hash(left[key]), right[right_key])
        IN  Names(left[key], right_key) /\ (\A place \in 1..Len(queue) : queue[place].key # key) =>
                /\ sent # <<>> => sent[Len(sent)] = answer
                /\ taken # <<>> /\ responses[right_key][key] = <<>> => taken[Len(taken)] = answer

InductiveAgain ==
    /\ Inductive
    /\ TypesAgain
    /\ RepeatedSubscriptionsGoWhereTheyBelong
    /\ RepeatedResponsesComeFromTheKey
    /\ NewestRepeatedSubscriptionIsRight
    /\ NewestRepeatedResponseIsRight

NoResultForDeletedRowAgain == [][\A key \in LeftKeys : Emitted(key) => left'[key] # None]_<<vars, since, restarts>>

NoRowOfAnotherKeyAgain ==
    [][\A key \in LeftKeys : Emitted(key) /\ result'[key].right # None =>
        result'[key].right.key = result'[key].left.foreign_key]_<<vars, since, restarts>>

=============================================================================
