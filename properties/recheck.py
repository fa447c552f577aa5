"""Asks one saved counterexample again, alone, by the law that found it: what is confirmed, shrunk and pasted as a test.

A pasted test needs nothing else of ours: `assert_holds(law, HISTORY)` fails as long as the law is broken.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..reference.errors import BadInput
from ..reference.histories import History, parse_history
from ..reference.operators import operator_named
from ..reference.play import play
from ..reference.records import Record
from .cohorts import Cohort, cohorts_of, one_cohort
from .decoupled_witness import play_decoupled, play_protocol, staged_differences
from .duckdb_witness import tables
from .examinations import examine, examine_restart
from .findings import sentence, side_by_side, versions
from .laws import (
    LAWS,
    Variant,
    fold_is_meaning,
    repeated_twice,
    same_entries,
    same_for_key,
    same_table,
    state_left,
)
from .native_check import same_as_reference, taken_by_spark
from .outcomes import Difference, Grain, Outcome, differences
from .partitions import PARTITIONS, named_count
from .retention import RETAINED, retention_broken, retention_plan, still_kept
from .shapes import SHAPES
from .spark_witness import MANY_KEYS, PLAIN, Plan, run_cohort
from .store import Subject
from .variants import Companion, alone, keys_told, parted

if TYPE_CHECKING:
    from .spark_witness import Job

STOP_AFTER, CRASH_IN = 1, 2
"""After which batch a restarted query is stopped, and in which one it crashes."""
RELATED = ("order", "cuts", "repeats", "keys")
"""The laws that relate a history, a variant, to its original."""
REFERENCE = "reference"

Named = tuple[str, Outcome]


class CannotAsk(BadInput):
    """A law can't be asked again about a history; the message says why."""


@dataclass(frozen=True)
class Answer:
    """What two witnesses say of one history, alone.

    Attributes:
        left: What is expected, and by whom.
        right: What came, and of whom.
        differences: Where they differ; none where the law holds.
    """

    left: Named
    right: Named
    differences: list[Difference]

    def sentence(self, says: str) -> str:
        """Give the verdict in one sentence; `says` is what the law says."""
        return sentence(says, self.right[0], self.differences[0], expected_by(self.left[0]))

    def account(self, law: str, history: History, subject: Subject = "spark") -> str:
        """Give the verdict in one sentence, the history, and both outcomes side by side."""
        says = sentence_of(law, history.operator, subject)
        if not self.differences:
            return f"conforms: {says}."
        lines = [self.sentence(says), "", "History:"]
        lines += ["    " + line for line in history.to_text().splitlines()]
        keys = {difference.key for difference in self.differences}
        return "\n".join([*lines, "", *side_by_side(self.left, self.right, keys), "", f"{versions()}."])


def recheck(
    law: str,
    history: History,
    *,
    subject: Subject = "spark",
    mutant: str | None = None,
    original: History | None = None,
    job: Job | None = None,
) -> list[Difference]:
    """Ask a law about one history again, alone.

    Args:
        law: The law's name, as a check reports it.
        history: The history: a counterexample, as it was saved.
        subject: Which check the law is of: `spark`, `reference`, or `job`, that of a user's own job.
        mutant: The mutant that runs instead of the operator's own logic, if any.
        original: The history that `history` is a variant of, for the laws `order`, `cuts`, `repeats` and `keys`.
        job: The user's job that runs instead of the operator.

    Returns:
        Where the law is broken; nothing where it holds.

    Raises:
        CannotAsk: There is no such law, or it can't be asked about this history alone; the message says why.
        BadInput: There is no such mutant.
        MissingTool: The machine lacks what the law needs, such as Java or Kafka's jars.
        StreamproofError: A query failed.
    """
    return answer_again(law, history, plan_of(history.operator, mutant, job), subject, original).differences


def assert_holds(
    law: str,
    history: str,
    *,
    original: str | None = None,
    subject: Subject = "spark",
    mutant: str | None = None,
    job: Job | None = None,
) -> None:
    """Fail as long as a counterexample stands; what a pasted test calls.

    Args:
        law: The law's name.
        history: The text of a history file.
        original: The text of the history that it is a variant of, where the law relates the two.
        subject: Which check the law is of: `spark`, `reference`, or `job`, that of a user's own job.
        mutant: The mutant that runs instead of the operator's own logic, if any.
        job: The user's job that runs instead of the operator.

    Raises:
        AssertionError: The law is broken; the message has both outcomes side by side.
        BadInput: As `recheck`, or a text is no history file.
        MissingTool: As `recheck`.
        StreamproofError: As `recheck`.
    """
    __tracebackhide__ = True
    parsed = parse_history(history)
    related = None if original is None else parse_history(original, "original", "original")
    answer = answer_again(law, parsed, plan_of(parsed.operator, mutant, job), subject, related)
    if answer.differences:
        raise AssertionError(answer.account(law, parsed, subject))


def plan_of(operator: str, mutant: str | None, job: Job | None = None) -> Plan:
    """Give the plan that runs an operator, a mutant of it, or a user's job instead.

    Raises:
        BadInput: There is no such operator or mutant.
    """
    if mutant is None:
        return PLAIN if job is None else Plan(job=job)
    from .hunting import chosen  # it takes what runs a whole check

    return Plan(logic=chosen(operator, [mutant])[0].logic, mutant=mutant)


def answer_again(
    law: str, history: History, plan: Plan = PLAIN, subject: Subject = "spark", original: History | None = None
) -> Answer:
    """Ask a law about one history again, alone, under a plan; as `recheck`, and with both outcomes."""
    if subject == "job" and plan.job is None:
        raise CannotAsk("the law was asked of a job of yours, which wasn't given: give it as job")
    if law in RELATED and subject != "reference":
        if original is None:
            raise CannotAsk(f"the law {law!r} relates a variant to its original, which wasn't saved: check once more")
        return _related(law, history, original, plan)
    return answers_again(law, [history], plan, subject)[0]


def answers_again(
    law: str, histories: Sequence[History], plan: Plan = PLAIN, subject: Subject = "spark"
) -> list[Answer]:
    """Ask a law that needs no original about histories again; those that may travel together do.

    Raises:
        CannotAsk: As `recheck`.
        StreamproofError: As `recheck`.
    """
    if subject == "reference":
        return _by_reference(law, histories)
    if law == "fold is meaning":
        return [_by_meaning(history) for history in histories]
    if law == "schedules":
        return _by_schedule(histories, plan)
    if law == "packing":
        return [_packed(history, plan) for history in histories]
    ask = _BY_COHORT.get(law)
    if ask is None:
        raise CannotAsk(f"there is no law {law!r} of {histories[0].operator} on Spark that can be asked again")
    answers: dict[int, Answer] = {}
    for cohort, places in cohorts_of(histories):
        answers |= zip(places, ask(law, cohort, plan), strict=True)
    return [answers[place] for place in range(len(histories))]


def sentence_of(law: str, operator: str, subject: Subject = "spark") -> str:
    """Give what a law says of an operator, as the check says it that it is of."""
    from .oracle import SENTENCES
    from .shape_check import laws_of

    if subject == "reference":
        return SENTENCES[law]
    laws = {one.name: one for one in laws_of(operator)} if operator != "session_windows" else LAWS
    return (laws.get(law) or LAWS[law]).sentence


def expected_by(name: str) -> str:
    """Say who expects what the left outcome has, as a sentence calls it."""
    return "the reference" if name == REFERENCE else name


def _reference(history: History) -> Named:
    return REFERENCE, Outcome.of_play(history.name, play(history))


def _by_reference(law: str, histories: Sequence[History]) -> list[Answer]:
    from .oracle import JUDGES, WITNESSES

    if law not in JUDGES:
        raise CannotAsk(f"there is no law {law!r} of the reference: there are {', '.join(JUDGES)}")
    judged = JUDGES[law](histories)
    return [
        Answer(_reference(history), (WITNESSES[law], outcome), found)
        for history, (found, outcome) in zip(histories, judged, strict=True)
    ]


def _by_meaning(history: History) -> Answer:
    played = play(history)
    meant = operator_named(history.operator).meaning(played.definition, played.accepted, played.clock)
    outcome = Outcome(history.name, Grain.END, final=meant, is_stream=played.definition.is_stream)
    return Answer(_reference(history), ("the meaning", outcome), fold_is_meaning(history, played))


def _examined(law: str, cohort: Cohort, plan: Plan) -> list[Answer]:
    examination = examine(cohort, replace(plan, read_state=law == "state"))
    return [
        Answer(_reference(history), ("Spark" if plan.job is None else "the job", outcome), broken.get(law, []))
        for history, outcome, broken in zip(cohort.histories, examination.outcomes, examination.broken, strict=True)
    ]


def _by_duckdb(law: str, cohort: Cohort, plan: Plan) -> list[Answer]:
    """Session windows' reference against DuckDB; of the other operators what Spark's changelog folds to."""
    is_session = cohort.operator == "session_windows"
    outcomes = [] if is_session else examine(cohort, plan).outcomes
    answers = []
    for place, (history, result) in enumerate(zip(cohort.histories, tables(cohort.histories), strict=True)):
        if is_session:
            left, right = _reference(history), ("DuckDB", result)
        else:
            left, right = ("DuckDB", result), ("Spark", outcomes[place])
        unordered = operator_named(cohort.operator).declare(cohort.options).unordered
        answers.append(Answer(left, right, differences(left[1], right[1], unordered)))
    return answers


def _restarted(law: str, cohort: Cohort, plan: Plan) -> list[Answer]:
    plain = examine(cohort, plan)
    restarted = examine_restart(plain, plan, STOP_AFTER, CRASH_IN)
    return [
        Answer(("Spark without a restart", before), ("Spark with a stop and a crash", after), broken.get(law, []))
        for before, after, broken in zip(plain.outcomes, restarted.outcomes, restarted.broken, strict=True)
    ]


def _repartitioned(law: str, cohort: Cohort, plan: Plan) -> list[Answer]:
    """Hold the runs with more partitions to that with the fewest, until one of them differs."""
    first, *others = PARTITIONS
    expected, _ = run_cohort(cohort, replace(plan, partitions=first))
    answers: list[Answer] = []
    for count in others:
        outcomes, _ = run_cohort(cohort, replace(plan, partitions=count))
        answers = [
            Answer((f"Spark in {named_count(first)}", before), (f"Spark in {named_count(count)}", now), found)
            for before, now in zip(expected, outcomes, strict=True)
            for found in [same_entries(before, now)]
        ]
        if any(answer.differences for answer in answers):
            break
    return answers


def _packed(history: History, plan: Plan) -> Answer:
    """A history alone, and among so many others that keys share their state: itself, and itself without a record."""
    others = [
        history.with_lines([*history.lines[:index], *history.lines[index + 1 :]])
        for index, line in enumerate(history.lines)
        if isinstance(line, Record)
    ]
    mates = [other for other in others if cohorts_of([history, other])[0][0].histories == (history, other)]
    packed = [history, *mates] * (1 + MANY_KEYS // (1 + len(mates)))
    if len(cohorts_of([history] * 2)) > 1:
        raise CannotAsk("a history with a null key travels in no cohort: there is nothing to hold it to")
    (expected,), _ = run_cohort(one_cohort([history]), plan)
    outcomes = examine(one_cohort(packed), plan).outcomes
    own = outcomes[:: 1 + len(mates)]
    broken = [(outcome, found) for outcome in own if (found := same_entries(outcome, expected))]
    shown, found = broken[0] if broken else (own[0], [])
    return Answer(("Spark in a cohort", shown), ("Spark alone", expected), found)


def _retained(law: str, cohort: Cohort, plan: Plan) -> list[Answer]:
    retention_ms = retention_of_history(cohort.histories[0])
    outcomes, output = run_cohort(cohort, retention_plan(cohort.operator, cohort.options, retention_ms, plan.logic))
    return [
        Answer(
            _reference(history),
            ("Spark", outcome),
            retention_broken(history, retention_ms, outcome) or state_left(history.name, left),
        )
        for history, outcome, left in zip(cohort.histories, outcomes, still_kept(cohort, output), strict=True)
    ]


def retention_of_history(history: History) -> int:
    """Give the retention (ms) with which the law `retention` asks about histories of such options.

    Raises:
        CannotAsk: It asks about none of such options.
    """
    for name, (changed, retention_ms) in RETAINED.get(history.operator, {}).items():
        if {**SHAPES[history.operator][name], **changed} == dict(history.options):
            return retention_ms
    raise CannotAsk(f"with which retention {history.operator} ran under {dict(history.options)} isn't known any more")


def _by_spark_itself(law: str, cohort: Cohort, plan: Plan) -> list[Answer]:
    """Spark's own operator, which no mutant of ours replaces."""
    native = Plan(native=True, merge_in_partition=law == "native partial merge")
    outcomes, _ = run_cohort(cohort, native)
    answers = []
    for history, outcome in zip(cohort.histories, outcomes, strict=True):
        expected = _reference(taken_by_spark(history))
        is_session = cohort.operator == "session_windows"
        found = differences(expected[1], outcome) if is_session else same_as_reference(history, outcome)
        answers.append(Answer(expected, ("Spark's own operator", outcome), found))
    return answers


def _by_schedule(histories: Sequence[History], plan: Plan) -> list[Answer]:
    logics = None if plan.logic is None else [plan.logic] * len(histories)
    staged = play_decoupled(histories, logics, strict=logics is None)
    return [
        Answer(
            ("the protocol", Outcome.of_play(history.name, play_protocol(history)[0])),
            ("Spark in three queries", found.outcome),
            staged_differences(history, found),
        )
        for history, found in zip(histories, staged, strict=True)
    ]


def _related(law: str, history: History, original: History, plan: Plan) -> Answer:
    """A variant and its original in one query, each held to what the other one gave."""
    try:
        cohort = one_cohort([original, history])
    except ValueError:
        raise CannotAsk("the history and its original don't travel together: one of them was changed") from None
    before, after = examine(cohort, plan).outcomes
    if history.operator == "session_windows":
        found = _session_related(law, history, before, after)
    else:
        found = [
            difference
            for companion in _companions(law, history, original)
            for difference in parted(companion, before, after)
        ]
    whole = law == "keys"
    told = [outcome if whole else at_end(outcome) for outcome in (before, after)]
    return Answer(("the original", told[0]), ("Spark", told[1]), found)


def _session_related(law: str, history: History, original: Outcome, outcome: Outcome) -> list[Difference]:
    if law == "keys":
        keys = sorted({record.key for record in history.records if record.key is not None})
        if len(keys) != 1:
            raise CannotAsk(f"the history has {len(keys)} keys: the law 'keys' is about the only one of a history")
        return same_for_key(history.name, keys[0], original, outcome)
    judge = repeated_twice if law == "repeats" else same_table
    return judge(history.name, original, outcome)


def _companions(law: str, history: History, original: History) -> list[Companion]:
    """The variant as it travelled; of the law `keys` for each key without whose others the original is the history."""
    if law != "keys":
        return [Companion(original, 0, Variant(law, history))]
    keys = [key for key in keys_told(original) if alone(original, key).history.lines == history.lines]
    if not keys:
        raise CannotAsk("the history isn't its original without what doesn't concern a key: one of them was changed")
    return [Companion(original, 0, Variant(law, history), key) for key in keys]


def at_end(outcome: Outcome) -> Outcome:
    """Give what an outcome comes to at the end."""
    return replace(outcome, grain=Grain.END, entries=[], final=outcome.result)


_BY_COHORT: Mapping[str, Callable[[str, Cohort, Plan], list[Answer]]] = {
    **dict.fromkeys(("changelog", "table at every cut", "state"), _examined),
    "duckdb": _by_duckdb,
    **dict.fromkeys(("restart", "replay"), _restarted),
    "partitions": _repartitioned,
    "retention": _retained,
    **dict.fromkeys(("native", "native partial merge"), _by_spark_itself),
}
